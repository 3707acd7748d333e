"""Bounds of pages from the column index, as values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fastpq.cli.cell_values import json_value
from fastpq.errors import CryptoError, ParquetError

if TYPE_CHECKING:
    from fastpq.api.file import ParquetFile
    from fastpq.schema.parquet_schema import ColumnDescriptor


class PageBounds(NamedTuple):
    """What the page index says about one page.

    Attributes:
        rows: row count, or None without an OffsetIndex.
        first_row: first row in the row group, or None.
        nulls: null count, or None.
        low, high: bounds as JSON values, or None for a page of nulls and for values without an order.
        is_null: whether the page has only nulls.
    """

    rows: int | None
    first_row: int | None
    nulls: int | None
    low: Any
    high: Any
    is_null: bool


def bounds_by_page(file: ParquetFile, row_group: int, column: ColumnDescriptor) -> dict[int, PageBounds]:
    """Return what the page index says, by number of the data page. A broken index says nothing."""
    try:
        offset_index, column_index = file.offset_index(row_group, column.index), file.column_index(row_group, column.index)
    except CryptoError:
        raise
    except ParquetError:
        return {}
    count = offset_index.num_pages if offset_index is not None else 0 if column_index is None else column_index.num_pages
    rows = None if offset_index is None else offset_index.row_counts.tolist()
    firsts = None if offset_index is None else offset_index.first_rows.tolist()
    bounds = {}
    for page in range(count):
        is_null = column_index is not None and bool(column_index.null_pages[page])
        low = high = None
        if column_index is not None and not is_null:
            low, high = (decoded(file, column, each[page]) for each in (column_index.min_values, column_index.max_values))
        nulls = None if column_index is None or column_index.null_counts is None else int(column_index.null_counts[page])
        bounds[page] = PageBounds(
            None if rows is None else rows[page], None if firsts is None else firsts[page], nulls, low, high, is_null
        )
    return bounds


def decoded(file: ParquetFile, column: ColumnDescriptor, bound: bytes) -> Any:
    """Return a stored bound as a JSON value, or None if it cannot be decoded."""
    from fastpq.filters.answers import values_of
    from fastpq.filters.evidence import key_of_bound
    from fastpq.filters.literals import domain_of
    from fastpq.stats.usable_statistics import usable_statistics_of

    try:
        key = key_of_bound(domain_of(column.type), usable_statistics_of(file.metadata, column), bound)
        if key is None:
            return None
        (value,) = values_of([key], column.type)
    except (ParquetError, ValueError, NotImplementedError):
        return None
    return json_value(value)
