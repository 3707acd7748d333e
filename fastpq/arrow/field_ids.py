"""Field ids (parquet.thrift, ``SchemaElement.field_id``) as metadata of Arrow fields, with pyarrow's key.

A column keeps its ids in its Arrow field, so that they stay with it until it is exported or written.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fastpq import format as fmt
from fastpq.arrays.nodes import FieldNode
from fastpq.arrays.table import AnyColumn, ListColumn, StructColumn, Table
from fastpq.arrow.hints import FIELD_ID
from fastpq.errors import SchemaError
from fastpq.schema.parquet_schema import GroupNode, ParquetSchema, SchemaNode
from fastpq.schema.shape import is_element

_LEAST, _MOST = -(1 << 31), (1 << 31) - 1


def with_field_ids(column: AnyColumn, node: SchemaNode, name: str = "") -> AnyColumn:
    """Return a column of a file whose Arrow fields, at every level, have the ids of its schema nodes.

    Args:
        column: the column, with all or some of the node's fields.
        node: its schema node.
        name: the name that the column gets if it has no Arrow field.
    """
    if not node.has_field_ids:
        return column
    match column:
        case StructColumn(type=type_) if isinstance(node, GroupNode) and type_.annotation is None:
            by_name = {child.element.name: child for child in node.children}
            pairs = zip(column.children, type_.fields, strict=True)
            children = tuple(
                with_field_ids(child, by_name[field.name]) if field.name in by_name else child for child, field in pairs)
            column = column._with(children=children)
        case ListColumn(pairs=StructColumn() as pairs):
            entry = _repeated_group(node)
            if entry is not None and len(entry.children) == len(pairs.children):
                children = tuple(map(with_field_ids, pairs.children, entry.children))
                column = column._with(elements=pairs._with(children=children))
        case ListColumn(pairs=None) if (element := _element_node(node)) is not None:
            column = column._with(elements=with_field_ids(column.elements, element, "element"))
    number = node.element.field_id
    if number is None:
        return column
    field = FieldNode(column.type.arrow_format, name) if column.arrow is None else column.arrow
    return column._with(arrow=replace(field, metadata={**(field.metadata or {}), FIELD_ID: str(number).encode()}))


def schema_with_ids(schema: ParquetSchema, table: Table | None, ids: Mapping[str, int]) -> ParquetSchema:
    """Return the schema of a new file with field ids.

    Args:
        schema: the schema, which was made from the table's types.
        table: the table whose Arrow fields have ids, or None if only ``ids`` count.
        ids: ids by dotted path. They take precedence over those of the table.

    Raises:
        SchemaError: a path is not in the schema, or an id occurs twice or is no 32-bit number.
    """
    numbers: dict[int, int] = {}        # by the identity of a node
    if table is not None:
        for node, column in zip(schema.root.children, table.columns, strict=True):
            numbers |= {id(inner): number for inner, number in _ids_of(node, column)}
    if ids:
        numbers |= _ids_by_path(schema, ids)
    if not numbers:
        return schema
    elements = []
    for node in schema.nodes():
        element = node.element
        if id(node) in numbers:
            element = copy.copy(element)
            element.field_id = numbers[id(node)]
        elements.append(element)
    return ParquetSchema.from_thrift(elements)


def _ids_by_path(schema: ParquetSchema, ids: Mapping[str, int]) -> dict[int, int]:
    nodes = {".".join(node.path): node for node in schema.nodes() if node is not schema.root}
    numbers: dict[int, int] = {}
    for path, number in ids.items():
        if path not in nodes:
            raise SchemaError(f"field_ids names {path!r}, but the schema has {', '.join([*nodes][:20])}")
        if isinstance(number, bool) or not hasattr(number, "__index__") or not _LEAST <= number <= _MOST:
            raise SchemaError(f"a field id must be a 32-bit number, not {number!r}", column=path)
        if number in numbers.values():
            raise SchemaError(f"the field id {number} occurs twice", column=path)
        numbers[id(nodes[path])] = int(number)
    return numbers


def _ids_of(node: SchemaNode, column: AnyColumn) -> Iterator[tuple[SchemaNode, int]]:
    """Yield the nodes of a column that have a field id in their Arrow fields, with the id."""
    number = _field_id(column.arrow)
    if number is not None:
        yield node, number
    if not isinstance(node, GroupNode):
        return
    inner: Sequence[SchemaNode] = ()
    columns: Sequence[AnyColumn] = ()
    match column:
        case StructColumn():
            inner, columns = node.children, column.children
        case ListColumn() if (entry := _repeated_group(node)) is not None:
            inner = entry.children
            columns = (column.elements,) if column.pairs is None else column.pairs.children
    if len(inner) == len(columns):
        for child, child_column in zip(inner, columns, strict=True):
            yield from _ids_of(child, child_column)


def _field_id(field: FieldNode | None) -> int | None:
    text = (field.metadata or {}).get(FIELD_ID) if field is not None else None
    try:
        number = None if text is None else int(text)
    except ValueError:
        return None
    return number if number is not None and 0 <= number <= _MOST else None      # pyarrow writes -1 for none


def _element_node(node: SchemaNode) -> SchemaNode | None:
    """Return the node of a list's elements, or None for a repeated field without a group around it."""
    if not isinstance(node, GroupNode) or len(node.children) != 1:
        return None
    child = node.children[0]
    if child.repetition is not fmt.FieldRepetitionType.REPEATED:
        return None
    return child if not isinstance(child, GroupNode) or is_element(node, child) else child.children[0]


def _repeated_group(node: SchemaNode) -> GroupNode | None:
    """Return the repeated group of a list or map with three levels, or None."""
    if not isinstance(node, GroupNode) or len(node.children) != 1:
        return None
    child = node.children[0]
    return child if isinstance(child, GroupNode) and child.repetition is fmt.FieldRepetitionType.REPEATED else None
