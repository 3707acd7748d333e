"""Schemas that ask for text and bytes as views, for consumers that keep them as views, as Polars does.

In many files, ARROW:schema says that text had offsets, because pyarrow's text has them. An export then copies all text from
views to offsets, and Polars would copy it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fastpq.arrays.nodes import FieldNode
from fastpq.arrays.table import AnyColumn, BinaryOffsets, Column, DictionaryValues, ListColumn, Table
from fastpq.arrow.capsules_out import schema_capsule
from fastpq.arrow.exporting import table_schema

# Formats with views, by the format that has offsets for the same values.
_VIEWS = {"u": "vu", "U": "vu", "z": "vz", "Z": "vz"}


def request_for_views(table: Table) -> Any:
    """Return a table's Arrow schema, but export text and bytes as views if they are views in memory.

    Args:
        table: the table.

    Returns:
        A PyCapsule "arrow_schema", or None if no column would be exported with offsets.
    """
    if not any(_has_offset_format(leaf) for column in table.columns for _, leaf in column.leaves()):
        return None
    # without rows, so that no values are converted
    empty = Table([(name, column.slice(0, 0)) for name, column in table.items()], num_rows=0, metadata=table.metadata)
    node = table_schema(empty)
    return schema_capsule(_with_views(table.columns, node))


def _has_offset_format(column: Column) -> bool:
    """Return whether a column has views in memory, but offsets in its Arrow field."""
    field = column.arrow
    if field is None or field.format not in _VIEWS or field.dictionary is not None:
        return False
    return column.type.is_variable and not isinstance(column.values, BinaryOffsets | DictionaryValues)


def _requested(column: AnyColumn, node: FieldNode) -> FieldNode:
    """Return a column's node with views in place of offsets."""
    if isinstance(column, Column):
        return replace(node, format=_VIEWS.get(node.format, node.format)) if _has_offset_format(column) else node
    return _with_views((column.elements,) if isinstance(column, ListColumn) else column.children, node)


def _with_views(columns: Sequence[AnyColumn], node: FieldNode) -> FieldNode:
    """Return a node whose children have views in place of offsets. There is one column for each child."""
    if len(columns) != len(node.children):      # the node has another form than its column, as variants do
        return node
    return replace(node, children=tuple(map(_requested, columns, node.children)))
