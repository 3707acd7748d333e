"""Decimals of 32 and 64 bits, which Arrow data had before, for ARROW:schema and for consumers known to read them.

Polars (2.1) takes decimals of 32 and 64 bits from a stream for decimals of 128 bits, and returns other numbers. So fastpq exports
these decimals on request alone; pyarrow is asked for by name, and gets the request.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastpq.arrays.nodes import FieldNode
from fastpq.arrays.table import AnyColumn, Column, ListColumn, Table
from fastpq.arrow.capsules_out import schema_capsule
from fastpq.arrow.exporting import NARROW_DECIMALS, table_schema
from fastpq.arrow.restoring import decimal_bits
from fastpq.schema.types import Decimal


def request_for_narrow_decimals(data: Table | AnyColumn) -> Any:
    """The schema of a table or a column with its decimals as wide as in the Arrow data before.

    Args:
        data: the table or the column.

    Returns:
        A PyCapsule "arrow_schema"; None where no decimal has 32 or 64 bits.
    """
    table = data if isinstance(data, Table) else Table({"": data})
    if not any(_stored_format(leaf) for column in table.columns for _, leaf in column.leaves()):
        return None
    node = schema_with_narrow_decimals(table)
    return schema_capsule(node if isinstance(data, Table) else node.children[0])


def schema_with_narrow_decimals(table: Table) -> FieldNode:
    """The Arrow schema of a table, with decimals as wide as in the Arrow data before.

    Args:
        table: the table.
    """
    node = table_schema(table)
    return _with_children(node, [_narrowed(column, child) for column, child in zip(table.columns, node.children, strict=True)])


def _stored_format(column: Column) -> str | None:
    """The format of a column of decimals of 32 or 64 bits; None of other columns."""
    stored, logical = column.arrow, column.type.logical
    if stored is None or not isinstance(logical, Decimal) or not stored.format.endswith(NARROW_DECIMALS):
        return None
    return None if decimal_bits(logical, stored.format) is None else stored.format


def _narrowed(column: AnyColumn, node: FieldNode) -> FieldNode:
    """The node of a column with the formats of its decimals."""
    if isinstance(column, Column):
        return replace(node, format=_stored_format(column) or node.format) if node.dictionary is None else node
    inner = (column.elements,) if isinstance(column, ListColumn) else column.children
    if len(inner) != len(node.children):        # a form of its own, as of variants
        return node
    return _with_children(node, [_narrowed(child, own) for child, own in zip(inner, node.children, strict=True)])


def _with_children(node: FieldNode, children: list[FieldNode]) -> FieldNode:
    return replace(node, children=tuple(children))
