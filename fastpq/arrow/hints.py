"""Arrow fields of columns (``Column.arrow``). They come with imported Arrow data, and are stored in a file's ARROW:schema entry.

Parquet has fewer types than Arrow. Writers keep what Parquet's types lack (timezones, dictionaries, layouts, durations,
extension types) in the footer metadata, as an Arrow schema with one field for each column. This entry decides in which Arrow
format a column is exported, but changes no value. A broken entry is ignored. A field that contradicts its column is ignored too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from fastpq.arrays.column_base import ColumnBase
from fastpq.arrays.nodes import DURATION_UNITS, NULLABLE, TYPE_ID, FieldNode
from fastpq.arrays.table import AnyColumn, Column, ListColumn, StructColumn, Table
from fastpq.arrow.ipc_schema import IpcSchema, encode_schema
from fastpq.arrow.plain_fields import with_plain_field
from fastpq.errors import FormatError, UnsupportedError
from fastpq.schema.parquet_schema import ColumnDescriptor, GroupNode
from fastpq.schema.parquet_schema import SchemaNode as ParquetNode
from fastpq.schema.types import ColumnType

# Number of decoded ARROW:schema entries in the cache, and the longest such entry, in characters. A dataset's files usually share
# one entry.
CACHE_SIZE = 8
LONGEST_CACHED = 1 << 16
# The same for longer entries, of which fewer are cached.
LONG_CACHE_SIZE = 2
LONGEST_LONG_CACHED = 1 << 20

# Metadata key of a struct that holds a union. Its value is the union's format. In ARROW:schema, too, a union is a struct with
# this key, so that other readers get the struct that the file holds.
UNION_FORMAT = b"fastpq.union"
# Arrow field of the type codes in such a struct.
TYPE_ID_FIELD = FieldNode("c", TYPE_ID, flags=0)
# Metadata key of a field's id (parquet.thrift, SchemaElement.field_id), as in pyarrow.
FIELD_ID = b"PARQUET:field_id"
# Field metadata keys that only describe the field's type.
_TYPE_METADATA = frozenset({b"ARROW:extension:name", b"ARROW:extension:metadata", FIELD_ID, UNION_FORMAT})

_LISTS = ("+l", "+L", "+vl", "+vL")


def with_field(column: AnyColumn, field: FieldNode) -> AnyColumn:
    """Return a column with its Arrow field, and its inner columns with theirs.

    Args:
        column: the column.
        field: the field, with children. A field that contradicts the nesting of its column is left out.
    """
    field = stored_field(field)
    children = field.children
    if not column.is_nested:
        return column if children else with_plain_field(column, field)
    own = replace(field, children=()) if children else field
    match column:
        case StructColumn():
            if field.format != "+s":
                return column
            by_name = {child.name: child for child in children}
            fields = [by_name.get(member.name) for member in column.type.fields]
            inner = [_with(child, own_field) for child, own_field in zip(column.children, fields, strict=True)]
            return column._with(children=tuple(inner), arrow=own)
        case ListColumn(pairs=None):
            if len(children) != 1 or not (field.format in _LISTS or field.format.startswith("+w:")):
                return column
            return column._with(elements=with_field(column.elements, children[0]), arrow=own)
        case ListColumn(pairs=StructColumn() as pairs):
            members = children[0].children if field.format == "+m" and len(children) == 1 else ()
            if len(members) != 2:
                return column
            parts = tuple(with_field(child, each) for child, each in zip(pairs.children, members, strict=True))
            elements = pairs._with(children=parts, arrow=replace(children[0], children=()))
            return column._with(elements=elements, arrow=own)
    raise AssertionError(f"{type(column).__name__} is not a nested column")


def stored_field(field: FieldNode) -> FieldNode:
    """Return an imported column's Arrow field.

    For run-end encoded values it is the values' field. For a union it is the struct's field, whose metadata keeps the union's
    format. Other fields do not change.

    Args:
        field: the producer's field.
    """
    children = field.children
    if field.format == "+r" and len(children) == 2:
        values = children[1]
        metadata = {**(values.metadata or {}), **(field.metadata or {})}
        flags = (values.flags & ~NULLABLE) | (field.flags & NULLABLE)
        return stored_field(replace(values, name=field.name, flags=flags, metadata=metadata or None))
    if field.format.startswith("+u"):
        members = (replace(child, flags=child.flags | NULLABLE) for child in children)
        metadata = {**(field.metadata or {}), UNION_FORMAT: field.format.encode()}
        return replace(field, format="+s", metadata=metadata, children=(TYPE_ID_FIELD, *members))
    return field


def _with(column: AnyColumn, field: FieldNode | None) -> AnyColumn:
    return column if field is None else with_field(column, field)


class ArrowFields:
    """The Arrow fields of a file's columns. They are decoded when they are first used.

    Args:
        text: the ARROW:schema entry in the file metadata, or None.
        nodes: the columns' schema nodes.
        stored_names: the names that the columns have in the file, or None if the nodes have these names.
    """

    def __init__(self, text: str | None, nodes: Sequence[ParquetNode], stored_names: Sequence[str] | None = None) -> None:
        self._stored_names = stored_names
        self._numbers = {node: number for number, node in enumerate(nodes)}
        self._schema = None if text is None else _opened(text, len(nodes))
        self._fields: dict[ParquetNode, FieldNode | None] = {}     # decoded fields, None for broken or misplaced ones

    def restored(self, table: Table, nodes: Iterable[ParquetNode]) -> Table:
        """Return a table whose columns have their Arrow fields. If the file has no usable entry, nothing changes.

        Args:
            table: a table with columns from the file.
            nodes: its columns' schema nodes.
        """
        if self._schema is None:
            return table
        fields = self._fields
        columns: list[AnyColumn] = []
        for column, node in zip(table.columns, nodes, strict=True):
            field = fields[node] if node in fields else self._field(node)
            if type(column) is Column and field is not None and field.format[0] != "+" and not field.children:
                columns.append(with_plain_field(column, field))
            else:
                columns.append(_with(column, field))
        return table._of(columns)

    def durations(self) -> list[tuple[str, ...]]:
        """Return the path of each duration field and each list of one size, with its format as the last item.

        Parquet stores durations as plain numbers, and says nothing of the size of lists. Files in which these differ cannot be
        joined, because one ARROW:schema would describe all values.
        """
        if self._schema is None:
            return []
        fields = [field for node in self._numbers if (field := self._field(node)) is not None]
        return [path for field in fields for path in _durations(field)]

    def duration_unit(self, leaf: ColumnDescriptor) -> str | None:
        """Return the unit of a duration column, which may be in structs, or None for other columns.

        Args:
            leaf: the column.
        """
        field = None if self._schema is None else self._field(leaf.top)
        for name in leaf.path[1:]:
            if field is None or stored_field(field).format != "+s":
                return None
            field = next((child for child in stored_field(field).children if child.name == name), None)
        return None if field is None else DURATION_UNITS.get(stored_field(field).format)

    def has_dictionary(self, node: ParquetNode) -> bool:
        """Return whether a flat column's Arrow field is a dictionary.

        Args:
            node: the column's schema node.
        """
        if self._schema is None or not self._schema.may_be_dictionary(self._numbers[node]):
            return False
        field = self._field(node)
        return field is not None and stored_field(field).dictionary is not None

    def _field(self, node: ParquetNode) -> FieldNode | None:
        if node not in self._fields:
            self._fields[node] = self._decoded(node)
        return self._fields[node]

    def _decoded(self, node: ParquetNode) -> FieldNode | None:
        assert self._schema is not None
        try:
            most = 2 * _count(node) if isinstance(node, GroupNode) else 2
            field = self._schema.field(self._numbers[node], most)
        except (FormatError, UnsupportedError):
            return None
        name = node.element.name
        if self._stored_names is None:
            return field if field.name == name else None
        return replace(field, name=name) if field.name == self._stored_names[self._numbers[node]] else None


def _durations(field: FieldNode) -> Iterator[tuple[str, ...]]:
    if field.is_duration or field.format.startswith("+w:"):
        yield field.name, field.format
    for child in field.children:
        for path in _durations(child):
            yield field.name, *path


def _opened(text: str, count: int) -> IpcSchema | None:
    if len(text) > LONGEST_LONG_CACHED:
        return _parsed(text, count)
    schema = (_cached_schema if len(text) <= LONGEST_CACHED else _cached_long_schema)(text, count)
    return None if schema is None else schema.anew()


def _parsed(text: str, count: int) -> IpcSchema | None:
    try:
        schema = IpcSchema(text)
        return schema if len(schema) == count else None
    except (FormatError, UnsupportedError):
        return None


_cached_schema = lru_cache(maxsize=CACHE_SIZE)(_parsed)
_cached_long_schema = lru_cache(maxsize=LONG_CACHE_SIZE)(_parsed)


def _count(node: ParquetNode) -> int:
    """Return a column's schema node count. The column has at most twice as many Arrow fields.

    A repeated field without an annotation is two fields in Arrow. Any other schema node is at most one field.
    """
    return 1 + (sum(map(_count, node.children)) if isinstance(node, GroupNode) else 0)


def arrow_schema_entry(fields: FieldNode, metadata: Mapping[str, str]) -> str:
    """Return the ARROW:schema entry for a file.

    Args:
        fields: Arrow schema of the file's first table.
        metadata: the file's key-value metadata. If there is an entry, pyarrow takes the metadata from it.

    Raises:
        UnsupportedError: Arrow's IPC format does not have a type in the schema.
    """
    return encode_schema(replace(fields, metadata=stored_texts(metadata)))


def stored_texts(metadata: Mapping[str, str]) -> dict[bytes, bytes]:
    """Return key-value metadata as the bytes that the footer stores. Invalid UTF-8 from another file does not change."""
    return {key.encode(errors="surrogateescape"): value.encode(errors="surrogateescape") for key, value in metadata.items()}


def texts_of(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    """Return an Arrow schema's key-value metadata as texts."""
    pairs = (metadata or {}).items()
    return {key.decode(errors="surrogateescape"): value.decode(errors="surrogateescape") for key, value in pairs}


def redacted_entry(
    text: str, nodes: Sequence[ParquetNode], metadata: Mapping[str, str], closed: Collection[str]
) -> tuple[str | None, str | None]:
    """Return an ARROW:schema entry without values from closed columns, and with new file metadata.

    Args:
        text: the entry.
        nodes: the columns' schema nodes.
        metadata: the file's key-value metadata, without the entry.
        closed: names of columns whose fields keep only the metadata that describes their type.

    Returns:
        The new entry, or None if the old one is broken or has unsupported types. The second item describes what was removed. It
        is None if nothing was removed, and ``""`` if the whole entry was removed.
    """
    schema = _opened(text, len(nodes))
    if schema is None:
        return None, ""
    try:
        old = tuple(schema.field(number, 2 * _count(node)) for number, node in enumerate(nodes))
        new = tuple(without_field_metadata(field) if field.name in closed else field for field in old)
        parts = [f"metadata of the field {field.name}" for field, other in zip(old, new, strict=True) if field != other]
        new_texts = stored_texts(metadata)
        if any(new_texts.get(key) != value for key, value in schema.metadata.items()):
            parts = parts or ["metadata of the schema"]
        if not parts:
            return text, None
        return arrow_schema_entry(FieldNode("+s", flags=0, children=new), metadata), "; ".join(parts)
    except (FormatError, UnsupportedError):
        return None, ""


def without_field_metadata(field: FieldNode) -> FieldNode:
    """Return a field without metadata, except what describes its type. Other metadata may hold values, as in Polars' enums."""
    type_metadata = {key: value for key, value in (field.metadata or {}).items() if key in _TYPE_METADATA}
    children = tuple(map(without_field_metadata, field.children))
    inner = field.dictionary if field.dictionary is None else without_field_metadata(field.dictionary)
    return replace(field, metadata=type_metadata or None, children=children, dictionary=inner)


def entry_says_more(text: str, nodes: Sequence[ParquetNode]) -> bool:
    """Return whether an ARROW:schema entry says more about columns than their Parquet types. Writers may leave out other entries.

    Args:
        text: the entry.
        nodes: the columns in the file's schema.
    """
    schema = _parsed(text, len(nodes))
    if schema is None:
        return True
    for number, node in enumerate(nodes):
        field = schema.field(number, _count(node) * 2)
        if not isinstance(node, ColumnDescriptor) or field.metadata or field.name != node.element.name:
            return True
        if _says_more(field, node.type):
            return True
    return False


def _says_more(field: FieldNode, type_: ColumnType) -> bool:
    """Return whether a flat column's Arrow field without metadata says more than its type.

    Readers have different layouts for values of variable length. Polars reads the Parquet type of nulls as integers.
    """
    return type_.is_variable or field.dictionary is not None or field.format == "n" or field.format != type_.arrow_format


def has_arrow_field(column: AnyColumn) -> bool:
    """Return whether a column, or a column inside it, has an Arrow field that says more than its type and a field id."""
    columns = [column]
    while columns:
        column = columns.pop()
        field = column.arrow
        if type(column) is Column and field is not None and field.metadata is None:
            if _says_more(field, column.type):
                return True
        elif isinstance(column, StructColumn) and (field is None or (field.metadata is None and field.format == "+s")):
            columns += column.children
        else:
            every_column = (each for above, leaf in column.leaves() for each in (*above, leaf))
            if any(each.arrow is not None and not _is_only_field_id(each) for each in every_column):
                return True
    return False


def _is_only_field_id(column: ColumnBase) -> bool:
    """Return whether a column's Arrow field says nothing but its field id, which the schema holds too."""
    field = column.arrow
    return (
        field is not None and field.metadata is not None and field.metadata.keys() == {FIELD_ID} and field.dictionary is None
        and field.format == column.type.arrow_format and field.name in ("", "element"))


def has_dictionary(column: AnyColumn) -> bool:
    """Return whether a leaf's Arrow field is a dictionary. A flat column is its own leaf."""
    leaves = (leaf for _, leaf in column.leaves()) if column.is_nested else (column,)
    return any(leaf.arrow is not None and leaf.arrow.dictionary is not None for leaf in leaves)


def needs_arrow_schema(column: AnyColumn) -> bool:
    """Return whether a column has durations, which are plain numbers without the ARROW:schema."""
    return any(leaf.arrow is not None and leaf.arrow.is_duration for _, leaf in column.leaves())
