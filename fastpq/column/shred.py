"""Columns taken apart into leaves; a leaf of a nested column is levels, and values without nulls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fastpq.arrays.bitmap import count_zeros
from fastpq.arrays.layouts import DictionaryValues
from fastpq.arrays.nested_columns import ListColumn
from fastpq.column.input import ColumnInput
from fastpq.column.layout import Conversion, Layout, layout_of
from fastpq.column.leaf_entries import Levels
from fastpq.errors import SchemaError

if TYPE_CHECKING:
    from fastpq.arrays.column_base import ColumnBase
    from fastpq.arrays.table import AnyColumn, Column, Table
    from fastpq.schema.parquet_schema import ParquetSchema


# Most entries of a dictionary without an order that are written whole whatever the number of rows.
_MOST_UNUSED = 1000


class LeafToWrite:
    """A leaf of a column.

    Args:
        above: the columns above the leaf, the outermost first; none above a flat column.
        leaf: the leaf.

    Raises:
        SchemaError: a validity bitmap against its column's number of nulls.
    """

    __slots__ = ("_above", "_leaf")

    def __init__(self, above: Sequence[ColumnBase], leaf: Column) -> None:
        self._above, self._leaf = above, leaf
        for column in (*above, leaf):
            if column.validity is not None and column.null_count:
                zeros = count_zeros(column.validity, len(column))
                if zeros != column.null_count:
                    raise SchemaError(f"a validity bitmap with {zeros} of the column's {column.null_count} nulls")

    @property
    def is_dictionary(self) -> bool:
        """Whether the values are, or were in Arrow, dictionary-encoded."""
        arrow = self._leaf.arrow
        return isinstance(self._leaf.values, DictionaryValues) or (arrow is not None and arrow.dictionary is not None)

    def entries(self, layout: Layout, rows: int) -> ColumnInput | None:
        """The entries of a dictionary, to be written whole and in their order; None for any other column.

        Many entries without an order are left to a dictionary of the values in use.

        Args:
            layout: layout of the file's column.
            rows: number of rows to be written.
        """
        values = self._leaf.values
        if not isinstance(values, DictionaryValues):
            return None
        if not values.is_ordered and len(values.dictionary) > max(rows, _MOST_UNUSED):
            return None
        return ColumnInput(values.dictionary, layout)

    def rows(self, layout: Layout, start: int, stop: int) -> ColumnInput:
        """The rows [start, stop), as an input for one thread.

        Args:
            layout: layout of the file's column; INT96 has the units of the leaf in memory.
            start, stop: the rows.

        Raises:
            LimitError: too many levels for one column chunk.
            SchemaError: a null in a required field, without a null above.
        """
        if layout.conversion is Conversion.TIMESTAMP96:
            layout = layout_of(self._leaf.type)
        if not self._above:
            is_whole = start == 0 and stop == len(self._leaf)
            return ColumnInput(self._leaf if is_whole else self._leaf.slice(start, stop), layout)
        values, levels = shred_column(self._above, self._leaf, start, stop)
        return ColumnInput(values, layout, levels)


def table_leaves(table: Table, schema: ParquetSchema) -> list[LeafToWrite]:
    """The leaves of a table's columns, one for each column of the file's schema."""
    nodes = zip(table.columns, schema.root.children, strict=True)
    return [leaf for column, node in nodes for leaf in leaves_to_write(column, node.nullable)]


def leaves_to_write(column: AnyColumn, nullable: bool) -> list[LeafToWrite]:
    """The leaves of a column, in the order of the schema; nullable says whether the schema allows nulls in the column."""
    if not column.is_nested:
        return [LeafToWrite((), column)]
    column = column if column.nullable == nullable else column._with(nullable=nullable)
    return [LeafToWrite(above, leaf) for above, leaf in column.leaves()]


def shred_column(above: Sequence[ColumnBase], leaf: Column, start: int, stop: int) -> tuple[Column, Levels]:
    """The rows [start, stop) of one leaf.

    Args:
        above: the columns above the leaf, the outermost first.
        leaf: the leaf.

    Returns:
        The values of the leaf, without nulls and without values under a null; and the levels of all entries.

    Raises:
        LimitError: too many levels for one column chunk.
        SchemaError: a null in a required field, without a null above.
    """
    levels = Levels(start, stop)
    definition = repetition = 0
    for column in (*above, leaf):
        if column.nullable or column.null_count:
            levels.enter_value(column.validity if column.null_count else None, column.nullable)
            definition += column.nullable
        if isinstance(column, ListColumn):
            definition += 1
            repetition += 1
            levels.enter_list(np.ascontiguousarray(column.offsets), repetition)
    return _values(leaf, levels.finish(definition)), levels


def _values(leaf: Column, slots: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Column:
    count = len(slots)
    first = int(slots[0]) if count else 0
    if count and int(slots[-1]) - first + 1 == count:
        found = leaf.slice(first, first + count)
    else:
        found = leaf.take(slots)
    return found._with(validity=None, null_count=0)
