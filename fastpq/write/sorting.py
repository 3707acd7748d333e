"""Sorting columns: rows in a row group are sorted, or their order is checked, and the footer records the order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

import numpy as np

from fastpq import format as fmt
from fastpq.arrays.table import Column, Table
from fastpq.column.layout import layout_of
from fastpq.column.row_order import SortKey, first_unsorted, sorted_rows
from fastpq.column.shred import LeafToWrite, table_leaves
from fastpq.errors import SchemaError, UnsupportedError
from fastpq.options import SortingColumn, WriterProperties
from fastpq.schema.parquet_schema import ColumnDescriptor, ParquetSchema
from fastpq.schema.types import INT96_SIZE, ColumnType, Type
from fastpq.stats.bounds import order_of
from fastpq.stats.statistics import Order

NANOSECONDS_PER_DAY = 86_400 * 10**9
_TIME_KEY = ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16)


class RowOrder:
    """The row order in each row group, as the properties request it.

    Args:
        schema: file schema.
        properties: writer properties. Only ``sorting_columns`` and ``sort_by`` are used.
        has_stored_int96: whether INT96 columns have their stored bytes in memory. Then rows can be sorted by them, in order of
            time. The footer does not record this order, because the specification leaves the order of INT96 undefined.

    Raises:
        TypeError: a sorting column is not a name and not a SortingColumn.
        SchemaError: an unknown column, a column that is named twice, or a column with many values in a row.
        UnsupportedError: a column whose values have no order.
        ValueError: both options are set.
    """

    def __init__(self, schema: ParquetSchema, properties: WriterProperties, *, has_stored_int96: bool = False) -> None:
        if properties.sort_by and properties.sorting_columns:
            raise ValueError("sort_by and sorting_columns exclude each other: give one of them")
        self._schema = schema
        self._sorts = bool(properties.sort_by)
        self._columns = _resolved(schema, properties.sort_by or properties.sorting_columns, has_stored_int96)

    @property
    def sorting_columns(self) -> list[fmt.SortingColumn] | None:
        """The field ``sorting_columns`` for a RowGroup."""
        return [
            fmt.SortingColumn(column_idx=column.index, descending=by.descending, nulls_first=by.nulls_first)
            for column, by in self._columns[: len(self.recorded)]
        ] or None

    @property
    def recorded(self) -> list[SortingColumn]:
        """The sorting columns that the footer records: those before the first INT96 column."""
        return [by for _, by in takewhile(lambda pair: pair[0].physical_type is not Type.INT96, self._columns)]

    @property
    def columns(self) -> list[ColumnDescriptor]:
        """The sorting columns, first column first."""
        return [column for column, _ in self._columns]

    def apply(self, table: Table, size: int) -> Table:
        """Sort the rows in each row group, or check their order.

        Args:
            table: rows with the file's schema.
            size: rows in a row group.

        Returns:
            The table, or a table with the rows in order.

        Raises:
            SchemaError: ``sorting_columns`` is set, and the rows are not sorted by these columns.
        """
        if not self._columns:
            return table
        leaves = table_leaves([table], self._schema)
        orders = [
            self.order(leaves, start, min(start + size, table.num_rows)) for start in range(0, table.num_rows, size)
        ]
        if not self._sorts or not orders:
            return table
        rows = np.concatenate(orders)
        return table._of(column.take(rows) for column in table.columns)

    def order(
        self, leaves: Sequence[LeafToWrite] | Mapping[int, LeafToWrite], start: int, stop: int
    ) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return the numbers of the rows [start, stop) in sorted order, or check their order.

        Args:
            leaves: leaves by number. Only those of the sorting columns are used.
            start, stop: the rows.
        """
        keys = []
        for column, by in self._columns:
            leaf, order = leaves[column.index], order_of(column.type)
            if column.physical_type is Type.INT96:
                leaf, order = leaf.converted(_in_order_of_time), Order.ORDER_SIGNED_BYTES
            values = leaf.rows(layout_of(column.type), start, stop)
            keys.append(SortKey(values, order, by.descending, by.nulls_first))
        if self._sorts:
            return sorted_rows(keys, stop - start) + start
        row = first_unsorted(keys, stop - start)
        if row >= 0:
            names = ", ".join(by.path for _, by in self._columns)
            raise SchemaError(f"rows are not sorted by {names}: row {start + row} belongs before the one above it")
        return np.arange(start, stop)


def _resolved(
    schema: ParquetSchema, columns: Sequence[str | SortingColumn], has_stored_int96: bool
) -> list[tuple[ColumnDescriptor, SortingColumn]]:
    if isinstance(columns, str):
        raise TypeError(f"sorting columns must be a list, not {columns!r}")
    by_name = {column.name: column for column in schema.columns}
    sorting_columns: dict[str, tuple[ColumnDescriptor, SortingColumn]] = {}
    for each in columns:
        by = _sorting_column(schema, each)
        column = by_name.get(by.path)
        if column is None:
            raise SchemaError(f"an unknown sorting column: {by.path}")
        if by.path in sorting_columns:
            raise SchemaError("a sorting column is named twice", column=by.path)
        if column.max_repetition_level:
            raise SchemaError("a sorting column may not have many values in a row", column=by.path)
        if order_of(column.type) == Order.ORDER_NONE and not (has_stored_int96 and column.physical_type is Type.INT96):
            raise UnsupportedError(f"sorting by a column of {column.type}: its values have no order", column=by.path)
        sorting_columns[by.path] = column, by
    return list(sorting_columns.values())


def _in_order_of_time(column: Column) -> Column:
    """Return stored INT96 timestamps as signed big-endian numbers that have their order: days and nanoseconds, 8 bytes each."""
    stored_bytes = np.ascontiguousarray(column.values).view(np.uint8).reshape(-1, INT96_SIZE)
    nanoseconds = np.ascontiguousarray(stored_bytes[:, :8]).view("<i8")[:, 0]
    days = np.ascontiguousarray(stored_bytes[:, 8:]).view("<u4")[:, 0].astype(np.int64)
    numbers = np.empty((len(column), 2), ">i8")
    numbers[:, 0], numbers[:, 1] = days + nanoseconds // NANOSECONDS_PER_DAY, nanoseconds % NANOSECONDS_PER_DAY
    assert _TIME_KEY.dtype is not None
    return column._with(type=_TIME_KEY, values=numbers.reshape(-1).view(_TIME_KEY.dtype))


def _sorting_column(schema: ParquetSchema, column: Any) -> SortingColumn:
    """Return a name, a SortingColumn, or one of pyarrow's SortingColumns as a SortingColumn."""
    if isinstance(column, SortingColumn):
        return column
    if isinstance(column, str):
        return SortingColumn(column)
    index = getattr(column, "column_index", None)
    if not isinstance(index, int):
        raise TypeError(f"a sorting column must be a name or a SortingColumn, not a {type(column).__name__}")
    if not 0 <= index < len(schema.columns):
        raise SchemaError(f"a sorting column has the number {index}, but there are {len(schema.columns)} columns")
    return SortingColumn(schema.columns[index].name, descending=column.descending, nulls_first=column.nulls_first)
