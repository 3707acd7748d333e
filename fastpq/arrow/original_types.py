"""Schemas with the unions and the narrow decimals (32 and 64 bits) that Arrow data had, for consumers that can read them.

Polars 2.1 reads narrow decimals in a stream as 128-bit decimals, and returns wrong numbers. It refuses unions. DuckDB 2.0
refuses unions whose type codes are not 0, 1, 2 and so on. fastpq therefore exports unions and narrow decimals only on request.
to_arrow() makes this request for pyarrow.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastpq.arrays.nodes import FieldNode
from fastpq.arrays.table import AnyColumn, Column, ListColumn, StructColumn, Table
from fastpq.arrow.capsules_out import schema_capsule
from fastpq.arrow.exporting import NARROW_DECIMALS, table_schema
from fastpq.arrow.hints import UNION_FORMAT, stored_field
from fastpq.arrow.plain_forms import PlainForms
from fastpq.arrow.restoring import decimal_bits, union_format
from fastpq.schema.types import Decimal, Type


def request_for_original_types(data: Table | AnyColumn) -> Any:
    """Return a table's or a column's Arrow schema, with the unions and narrow decimals that the original Arrow data had.

    Args:
        data: the table or the column.

    Returns:
        A PyCapsule "arrow_schema", or None if there are neither unions nor narrow decimals.
    """
    table = data if isinstance(data, Table) else Table({"": data})
    has_decimals = any(_stored_format(leaf) for column in table.columns for _, leaf in column.leaves())
    if not has_decimals and not any(map(_has_union, table.columns)):
        return None
    node = schema_with_original_types(table)
    return schema_capsule(node if isinstance(data, Table) else node.children[0])


def schema_with_original_types(table: Table) -> FieldNode:
    """Return a table's Arrow schema, with the unions and narrow decimals that the original Arrow data had.

    Args:
        table: the table.
    """
    node = table_schema(table)
    return _with_children(node, [_narrowed(column, child) for column, child in zip(table.columns, node.children, strict=True)])


def arrow_fields(table: Table) -> FieldNode:
    """Return the Arrow schema that ARROW:schema stores for a table: decimals have their original width, unions are structs."""
    plain_forms = PlainForms()
    forms = [plain_forms.form(name, column) for name, column in zip(table.names, table.columns, strict=True)]
    others = [pair for pair, form in zip(table.items(), forms, strict=True) if form is None]
    # no rows, so that no values are converted
    rest = Table(((name, column.slice(0, 0)) for name, column in others), num_rows=0, metadata=table.metadata)
    node = _with_structs(schema_with_original_types(rest))
    node = _with_children(node, [_with_times(column, child) for column, child in zip(rest.columns, node.children, strict=True)])
    other_nodes = iter(node.children)
    return _with_children(node, [next(other_nodes) if form is None else form.node for form in forms])


def _with_times(column: AnyColumn, node: FieldNode) -> FieldNode:
    """Return a column's node in which stored INT96 values are timestamps, because readers get timestamps."""
    if isinstance(column, Column):
        is_stored = column.type.physical is Type.INT96 and column.type.length is not None
        return replace(node, format="tsn:") if is_stored else node
    inner = (column.elements,) if isinstance(column, ListColumn) else column.children
    if len(inner) != len(node.children):        # the column is exported in another form, as variants are
        return node
    return _with_children(node, [_with_times(child, own) for child, own in zip(inner, node.children, strict=True)])


def _with_structs(node: FieldNode) -> FieldNode:
    """Return a node in which structs replace the unions that they hold. ARROW:schema has the structs, as the file does."""
    if not node.children:
        return node
    node = _with_children(node, [*map(_with_structs, node.children)])
    return stored_field(node) if node.format.startswith("+u") else node


def _stored_format(column: Column) -> str | None:
    """Return a column's narrow decimal format (32 or 64 bits), or None for other columns."""
    own_field, logical = column.arrow, column.type.logical
    if own_field is None or not isinstance(logical, Decimal) or not own_field.format.endswith(NARROW_DECIMALS):
        return None
    return None if decimal_bits(logical, own_field.format) is None else own_field.format


def _narrowed(column: AnyColumn, node: FieldNode) -> FieldNode:
    """Return a column's node with its original unions and decimal formats."""
    if isinstance(column, Column):
        stored_format = _stored_format(column) if node.dictionary is None else None
        return node if stored_format is None else replace(node, format=stored_format)
    inner = (column.elements,) if isinstance(column, ListColumn) else column.children
    union = union_format(column) if isinstance(column, StructColumn) else None
    if union is not None:
        metadata = {key: value for key, value in (node.metadata or {}).items() if key != UNION_FORMAT}
        node = replace(node, format=union, metadata=metadata or None, children=node.children[1:])
        inner = inner[1:]
    if len(inner) != len(node.children):        # the column is exported in another form, as variants are
        return node
    return _with_children(node, [_narrowed(child, own) for child, own in zip(inner, node.children, strict=True)])


def _has_union(column: AnyColumn) -> bool:
    if isinstance(column, ListColumn):
        return _has_union(column.elements)
    return isinstance(column, StructColumn) and (union_format(column) is not None or any(map(_has_union, column.children)))


def _with_children(node: FieldNode, children: list[FieldNode]) -> FieldNode:
    return replace(node, children=tuple(children))
