"""Arrow fields of columns (``Column.arrow``): kept on import from Arrow, stored in and restored from a file's ARROW:schema.

Parquet has fewer types than Arrow. Writers keep the rest (timezones, dictionaries, layouts, durations, extension types) in the
footer metadata, as an Arrow schema with one field for each column, in order. The entry decides the Arrow format of exported
columns and changes no value. A broken entry is ignored, and so is a field in contradiction to its column.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from fastpq.arrays.nodes import DURATION_UNITS, NULLABLE, TYPE_ID, FieldNode
from fastpq.arrays.table import AnyColumn, ListColumn, StructColumn, Table
from fastpq.arrow.ipc_schema import IpcSchema, encode_schema
from fastpq.errors import FormatError, UnsupportedError
from fastpq.schema.parquet_schema import ColumnDescriptor, GroupNode
from fastpq.schema.parquet_schema import SchemaNode as ParquetNode

# Number of ARROW:schema entries kept decoded, and the length of the longest kept one, in characters. The files of a dataset
# have one entry.
MOST_KEPT = 8
LONGEST_KEPT = 1 << 16

# Metadata of a field that say its type and no more.
_TYPE_METADATA = frozenset({b"ARROW:extension:name", b"ARROW:extension:metadata", b"PARQUET:field_id"})

_LISTS = ("+l", "+L", "+vl", "+vL")


def with_field(column: AnyColumn, field: FieldNode) -> AnyColumn:
    """A column with its Arrow field, and its inner columns with theirs.

    Args:
        column: the column.
        field: the field, with children. A field in contradiction to its column's nesting is left out.
    """
    field = stored_field(field)
    children = field.children
    own = replace(field, children=()) if children else field
    match column:
        case StructColumn():
            if field.format != "+s":
                return column
            by_name = {child.name: child for child in children}
            fields = [by_name.get(known.name) for known in column.type.fields]
            inner = [_with(child, known) for child, known in zip(column.children, fields, strict=True)]
            return column._with(children=tuple(inner), arrow=own)
        case ListColumn(pairs=None):
            if len(children) != 1 or not (field.format in _LISTS or field.format.startswith("+w:")):
                return column
            return column._with(elements=with_field(column.elements, children[0]), arrow=own)
        case ListColumn(pairs=StructColumn() as pairs):
            known = children[0].children if field.format == "+m" and len(children) == 1 else ()
            if len(known) != 2:
                return column
            parts = tuple(with_field(child, each) for child, each in zip(pairs.children, known, strict=True))
            elements = pairs._with(children=parts, arrow=replace(children[0], children=()))
            return column._with(elements=elements, arrow=own)
    return column if children else column.with_arrow(own)


def stored_field(field: FieldNode) -> FieldNode:
    """The Arrow field of an imported column: of the values of runs, of the struct of a union; any other field unchanged.

    Args:
        field: the field of the producer.
    """
    children = field.children
    if field.format == "+r" and len(children) == 2:
        values = children[1]
        metadata = {**(values.metadata or {}), **(field.metadata or {})}
        flags = (values.flags & ~NULLABLE) | (field.flags & NULLABLE)
        return stored_field(replace(values, name=field.name, flags=flags, metadata=metadata or None))
    if field.format.startswith("+u"):
        members = (replace(child, flags=child.flags | NULLABLE) for child in children)
        return replace(field, format="+s", children=(FieldNode("c", TYPE_ID, flags=0), *members))
    return field


def _with(column: AnyColumn, field: FieldNode | None) -> AnyColumn:
    return column if field is None else with_field(column, field)


class ArrowFields:
    """The Arrow fields of a file's columns, decoded on first use.

    Args:
        text: the ARROW:schema entry of the file's metadata, or None.
        nodes: schema nodes of the file's columns.
    """

    def __init__(self, text: str | None, nodes: Sequence[ParquetNode]) -> None:
        self._numbers = {node: number for number, node in enumerate(nodes)}
        self._schema = None if text is None else _opened(text, len(nodes))
        self._fields: dict[ParquetNode, FieldNode | None] = {}     # decoded fields; None for a broken or misplaced one

    def restored(self, table: Table, nodes: Iterable[ParquetNode]) -> Table:
        """A table of columns of the file, with their Arrow fields; unchanged for a file without a usable entry.

        Args:
            table: the table.
            nodes: schema nodes of its columns.
        """
        if self._schema is None:
            return table
        return table._of(_with(column, self._field(node)) for column, node in zip(table.columns, nodes, strict=True))

    def durations(self) -> list[tuple[str, ...]]:
        """Path and, as the last item, format of each field of durations, which Parquet stores as plain numbers."""
        if self._schema is None:
            return []
        fields = [field for node in self._numbers if (field := self._field(node)) is not None]
        return [path for field in fields for path in _durations(field)]

    def duration_unit(self, leaf: ColumnDescriptor) -> str | None:
        """Unit of the durations in a column of numbers, flat or in structs; None for other columns.

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
        """Whether the Arrow field of a flat column is a dictionary.

        Args:
            node: schema node of the column.
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
            field = self._schema.field(self._numbers[node], 2 * _count(node))
        except (FormatError, UnsupportedError):
            return None
        return field if field.name == node.element.name else None


def _durations(field: FieldNode) -> Iterator[tuple[str, ...]]:
    if field.is_duration:
        yield field.name, field.format
    for child in field.children:
        for path in _durations(child):
            yield field.name, *path


def _opened(text: str, count: int) -> IpcSchema | None:
    if len(text) > LONGEST_KEPT:
        return _parsed(text, count)
    kept = _kept(text, count)
    return None if kept is None else kept.anew()


def _parsed(text: str, count: int) -> IpcSchema | None:
    try:
        schema = IpcSchema(text)
        return schema if len(schema) == count else None
    except (FormatError, UnsupportedError):
        return None


_kept = lru_cache(maxsize=MOST_KEPT)(_parsed)


def _count(node: ParquetNode) -> int:
    """Number of schema nodes of a column. A repeated field without annotation is two fields in Arrow, any other node at most
    one."""
    return 1 + (sum(map(_count, node.children)) if isinstance(node, GroupNode) else 0)


def arrow_fields(table: Table) -> FieldNode:
    """The Arrow schema of a table, for arrow_schema_entry."""
    from fastpq.arrow.narrow_decimals import schema_with_narrow_decimals

    return schema_with_narrow_decimals(table.slice(0, 0))     # no rows, so that no values are converted for the schema


def arrow_schema_entry(fields: FieldNode, metadata: Mapping[str, str]) -> str:
    """The ARROW:schema entry for a file.

    Args:
        fields: Arrow schema of the file's first table.
        metadata: key-value metadata of the file. Of a file with an entry, pyarrow takes the metadata from the entry.

    Raises:
        UnsupportedError: a type without a place in Arrow's schemas.
    """
    return encode_schema(replace(fields, metadata=stored_texts(metadata)))


def stored_texts(metadata: Mapping[str, str]) -> dict[bytes, bytes]:
    """The bytes of key-value metadata, as the footer stores these: invalid UTF-8 of a file that was read stays as it was."""
    return {key.encode(errors="surrogateescape"): value.encode(errors="surrogateescape") for key, value in metadata.items()}


def texts_of(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    """Key-value metadata of an Arrow schema as texts."""
    found = (metadata or {}).items()
    return {key.decode(errors="surrogateescape"): value.decode(errors="surrogateescape") for key, value in found}


def redacted_entry(
    text: str, nodes: Sequence[ParquetNode], metadata: Mapping[str, str], closed: Collection[str]
) -> tuple[str | None, str | None]:
    """An ARROW:schema entry with its copy of the file's metadata replaced, and without values of closed columns.

    Args:
        text: the entry.
        nodes: schema nodes of the file's columns.
        metadata: key-value metadata of the file, without the entry.
        closed: names of columns whose fields keep no metadata but those of their type.

    Returns:
        The new entry, None where the old one is broken or has unsupported types; and a description of the removed part, None if
        nothing was removed, ``""`` for the whole entry.
    """
    schema = _opened(text, len(nodes))
    if schema is None:
        return None, ""
    try:
        old = tuple(schema.field(number, 2 * _count(node)) for number, node in enumerate(nodes))
        new = tuple(without_field_metadata(field) if field.name in closed else field for field in old)
        parts = [f"metadata of the field {field.name}" for field, left in zip(old, new, strict=True) if field != left]
        told = stored_texts(metadata)
        if any(told.get(key) != value for key, value in schema.metadata.items()):
            parts = parts or ["metadata of the schema"]
        if not parts:
            return text, None
        return arrow_schema_entry(FieldNode("+s", flags=0, children=new), metadata), "; ".join(parts)
    except (FormatError, UnsupportedError):
        return None, ""


def without_field_metadata(field: FieldNode) -> FieldNode:
    """A field, and its inner fields, without metadata but those of its type; others may hold values, as of Polars' enums."""
    kept = {key: value for key, value in (field.metadata or {}).items() if key in _TYPE_METADATA}
    children = tuple(map(without_field_metadata, field.children))
    inner = field.dictionary if field.dictionary is None else without_field_metadata(field.dictionary)
    return replace(field, metadata=kept or None, children=children, dictionary=inner)


def has_arrow_field(column: AnyColumn) -> bool:
    """Whether a column, or a column inside, has an Arrow field: of Arrow data, of a file with an ARROW:schema, of subarrays."""
    return any(each.arrow is not None for above, leaf in column.leaves() for each in (*above, leaf))


def has_dictionary(column: AnyColumn) -> bool:
    """Whether the Arrow field of a column, or of a leaf of the column, is a dictionary."""
    leaves = (leaf for _, leaf in column.leaves()) if column.is_nested else (column,)
    return any(leaf.arrow is not None and leaf.arrow.dictionary is not None for leaf in leaves)


def needs_arrow_schema(column: AnyColumn) -> bool:
    """Whether a column has durations, plain numbers to readers without the ARROW:schema."""
    return any(leaf.arrow is not None and leaf.arrow.is_duration for _, leaf in column.leaves())
