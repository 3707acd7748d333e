"""Sorting columns: the rows of a row group are sorted, or checked to be sorted, and the footer records the order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fastpq import format as fmt
from fastpq.arrays.table import Table
from fastpq.column.layout import layout_of
from fastpq.column.row_order import SortKey, first_unsorted, sorted_rows
from fastpq.column.shred import LeafToWrite, table_leaves
from fastpq.errors import SchemaError, UnsupportedError
from fastpq.options import SortingColumn, WriterProperties
from fastpq.schema.parquet_schema import ColumnDescriptor, ParquetSchema
from fastpq.stats.bounds import order_of
from fastpq.stats.statistics import Order


class RowOrder:
    """The order of the rows of each row group, if the properties ask for one.

    Args:
        schema: schema of the file.
        properties: options of the file; ``sorting_columns`` and ``sort_by`` are used.

    Raises:
        TypeError: a sorting column that is neither a name nor a SortingColumn.
        SchemaError: an unknown column, a column named twice, or a column with many values in a row.
        UnsupportedError: a column whose values have no order.
        ValueError: both options are given.
    """

    def __init__(self, schema: ParquetSchema, properties: WriterProperties) -> None:
        if properties.sort_by and properties.sorting_columns:
            raise ValueError("sort_by and sorting_columns are two ways to say the same: give one of them")
        self._schema = schema
        self._sorts = bool(properties.sort_by)
        self._columns = _resolved(schema, properties.sort_by or properties.sorting_columns)

    @property
    def sorting_columns(self) -> list[fmt.SortingColumn] | None:
        """``sorting_columns`` of a RowGroup."""
        return [
            fmt.SortingColumn(column_idx=column.index, descending=by.descending, nulls_first=by.nulls_first)
            for column, by in self._columns
        ] or None

    def apply(self, table: Table, size: int) -> Table:
        """Sort the rows of each row group, or check their order.

        Args:
            table: rows of the file's schema.
            size: rows of a row group.

        Returns:
            The table, or one with its rows in order.

        Raises:
            SchemaError: ``sorting_columns`` are given, and the rows are not sorted by these columns.
        """
        if not self._columns:
            return table
        leaves = table_leaves(table, self._schema)
        orders = [
            self._order(leaves, start, min(start + size, table.num_rows)) for start in range(0, table.num_rows, size)
        ]
        if not self._sorts or not orders:
            return table
        rows = np.concatenate(orders)
        return table._of(column.take(rows) for column in table.columns)

    def _order(self, leaves: Sequence[LeafToWrite], start: int, stop: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        keys = []
        for column, by in self._columns:
            values = leaves[column.index].rows(layout_of(column.type), start, stop)
            keys.append(SortKey(values, order_of(column.type), by.descending, by.nulls_first))
        if self._sorts:
            return sorted_rows(keys, stop - start) + start
        row = first_unsorted(keys, stop - start)
        if row >= 0:
            names = ", ".join(by.path for _, by in self._columns)
            raise SchemaError(f"rows are not sorted by {names}: row {start + row} belongs before the one above it")
        return np.arange(start, stop)


def _resolved(
    schema: ParquetSchema, asked: Sequence[str | SortingColumn]
) -> list[tuple[ColumnDescriptor, SortingColumn]]:
    if isinstance(asked, str):
        raise TypeError(f"sorting columns are given as a list, not as {asked!r}")
    by_name = {column.name: column for column in schema.columns}
    found: dict[str, tuple[ColumnDescriptor, SortingColumn]] = {}
    for each in asked:
        by = _sorting_column(schema, each)
        column = by_name.get(by.path)
        if column is None:
            raise SchemaError(f"an unknown sorting column: {by.path}")
        if by.path in found:
            raise SchemaError("a sorting column named twice", column=by.path)
        if column.max_repetition_level:
            raise SchemaError("a sorting column with many values in a row", column=by.path)
        if order_of(column.type) == Order.ORDER_NONE:
            raise UnsupportedError(f"sorting by a {column.type} column: its values have no order", column=by.path)
        found[by.path] = column, by
    return list(found.values())


def _sorting_column(schema: ParquetSchema, given: Any) -> SortingColumn:
    """A sorting column that is given as a name, a SortingColumn, or a SortingColumn of pyarrow."""
    if isinstance(given, SortingColumn):
        return given
    if isinstance(given, str):
        return SortingColumn(given)
    index = getattr(given, "column_index", None)
    if not isinstance(index, int):
        raise TypeError(f"a sorting column is a name or a SortingColumn, not {type(given).__name__}")
    if not 0 <= index < len(schema.columns):
        raise SchemaError(f"a sorting column of number {index}, of {len(schema.columns)} columns")
    return SortingColumn(schema.columns[index].name, descending=given.descending, nulls_first=given.nulls_first)
