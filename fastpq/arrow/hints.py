"""What a column was in Arrow: kept in ``Column.arrow`` when it comes from Arrow, restored from a file's ARROW:schema.

Parquet has fewer types than Arrow. Writers keep the rest (timezones, dictionaries, layouts, durations, extension types) in the
footer, as an Arrow schema whose fields are the columns in their order. It tells how columns are exported and changes no value: an
entry that is broken, or a field of it that does not fit its column, is as good as none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from fastpq.arrays.nodes import FieldNode
from fastpq.arrays.table import AnyColumn, ListColumn, StructColumn, Table
from fastpq.arrow.ipc_schema import IpcSchema, encode_schema
from fastpq.errors import FormatError, UnsupportedError
from fastpq.schema.nested_types import MapType
from fastpq.schema.parquet_schema import GroupNode
from fastpq.schema.parquet_schema import SchemaNode as ParquetNode

# The files of a dataset are of one schema: so many entries are kept, up to so many characters each.
MOST_KEPT = 8
LONGEST_KEPT = 1 << 16

_LISTS = ("+l", "+L", "+vl", "+vL")


def with_field(column: AnyColumn, field: FieldNode) -> AnyColumn:
    """A column and its inner columns with the fields that they were in Arrow.

    Args:
        column: the column.
        field: with its children; those that do not fit the column's are left out.
    """
    children = field.children
    own = replace(field, children=()) if children else field
    if isinstance(column, StructColumn):
        if field.format != "+s":
            return column
        by_name = {child.name: child for child in children}
        fields = [by_name.get(known.name) for known in column.type.fields]
        inner = [_with(child, known) for child, known in zip(column.children, fields, strict=True)]
        return replace(column, children=tuple(inner), arrow=own)
    if isinstance(column, ListColumn):
        if isinstance(column.type, MapType):
            pairs = children[0].children if field.format == "+m" and len(children) == 1 else ()
            if len(pairs) != 2 or not isinstance(column.elements, StructColumn):
                return column
            parts = tuple(with_field(child, known) for child, known in zip(column.elements.children, pairs, strict=True))
            elements: AnyColumn = replace(column.elements, children=parts, arrow=replace(children[0], children=()))
            return replace(column, elements=elements, arrow=own)
        if len(children) != 1 or not (field.format in _LISTS or field.format.startswith("+w:")):
            return column
        return replace(column, elements=with_field(column.elements, children[0]), arrow=own)
    return column if children else column.with_arrow(own)


def _with(column: AnyColumn, field: FieldNode | None) -> AnyColumn:
    return column if field is None else with_field(column, field)


class ArrowFields:
    """The Arrow fields of a file's columns.

    Args:
        text: the ARROW:schema entry of its metadata, or None.
        nodes: of its columns.
    """

    def __init__(self, text: str | None, nodes: Sequence[ParquetNode]) -> None:
        self._nodes = {node.element.name: (number, node) for number, node in enumerate(nodes)}
        self._schema = None if text is None else _opened(text, len(nodes))
        self._fields: dict[str, FieldNode | None] = {}     # those that were decoded; None for what does not fit

    def restored(self, table: Table) -> Table:
        """A table of columns of the file, as it is where the file says nothing of Arrow."""
        if self._schema is None:
            return table
        return Table({name: self._column(name, column) for name, column in table.items()}, num_rows=table.num_rows)

    def durations(self) -> list[tuple[str, ...]]:
        """The path and format of each field that gives numbers the meaning of a duration."""
        if self._schema is None:
            return []
        fields = [field for name in self._nodes if (field := self._field(name)) is not None]
        return [path for field in fields for path in _durations(field)]

    def _column(self, name: str, column: AnyColumn) -> AnyColumn:
        return _with(column, self._field(name))

    def _field(self, name: str) -> FieldNode | None:
        if name not in self._fields:
            self._fields[name] = self._decoded(name)
        return self._fields[name]

    def _decoded(self, name: str) -> FieldNode | None:
        assert self._schema is not None
        number, node = self._nodes[name]
        try:
            field = self._schema.field(number, 2 * _count(node))
        except (FormatError, UnsupportedError):
            return None
        return field if field.name == name else None


def _durations(field: FieldNode) -> Iterator[tuple[str, ...]]:
    if field.is_duration:
        yield field.name, field.format
    for child in field.children:
        for path in _durations(child):
            yield field.name, *path


def _opened(text: str, count: int) -> IpcSchema | None:
    return _parsed(text, count) if len(text) > LONGEST_KEPT else _kept(text, count)


def _parsed(text: str, count: int) -> IpcSchema | None:
    try:
        schema = IpcSchema(text)
        return schema if len(schema) == count else None
    except (FormatError, UnsupportedError):
        return None


_kept = lru_cache(maxsize=MOST_KEPT)(_parsed)


def _count(node: ParquetNode) -> int:
    """How many nodes a column is; a repeated field without annotation is two fields in Arrow, any other node one at most."""
    return 1 + (sum(map(_count, node.children)) if isinstance(node, GroupNode) else 0)


def arrow_fields(table: Table) -> FieldNode:
    """The struct whose fields stand in the ARROW:schema entry for a table."""
    from fastpq.arrow.exporting import table_schema

    return table_schema(table.slice(0, 0))     # how its rows are exported need not be tried out


def arrow_schema_entry(fields: FieldNode, metadata: Mapping[str, str]) -> str:
    """The ARROW:schema entry for a file.

    Args:
        fields: of its first table.
        metadata: of the file, which pyarrow looks for in this entry when there is one.

    Raises:
        UnsupportedError: a type that Arrow's schemas do not have.
    """
    return encode_schema(replace(fields, metadata={key.encode(): value.encode() for key, value in metadata.items()}))


def with_metadata(text: str, nodes: Sequence[ParquetNode], metadata: Mapping[str, str]) -> str | None:
    """An ARROW:schema entry with other metadata, which are a copy of the file's.

    Args:
        text: the entry.
        nodes: of the file's columns.
        metadata: of the file, without the entry.

    Returns:
        The entry; None where it is none that could be made anew.
    """
    schema = _opened(text, len(nodes))
    if schema is None:
        return None
    try:
        fields = tuple(schema.field(number, 2 * _count(node)) for number, node in enumerate(nodes))
        return arrow_schema_entry(FieldNode("+s", flags=0, children=fields), metadata)
    except (FormatError, UnsupportedError):
        return None


def needs_arrow_schema(column: AnyColumn) -> bool:
    """Whether a column's values mean something else without an ARROW:schema."""
    if isinstance(column, StructColumn):
        return any(map(needs_arrow_schema, column.children))
    if isinstance(column, ListColumn):
        return needs_arrow_schema(column.elements)
    return column.arrow is not None and column.arrow.is_duration
