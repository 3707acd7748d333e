"""The page index of a chunk that is written, from the statistics of its pages (PageIndex.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastpq import format as fmt
from fastpq.index.bounds import order_of, truncate_max, truncate_min
from fastpq.index.page_index import is_monotonic
from fastpq.index.statistics import Order
from fastpq.properties import DEFAULT_STATISTICS_TRUNCATION
from fastpq.schema import ColumnDescriptor
from fastpq.types import Decimal, Type

_FLOAT_ORDERS = (Order.ORDER_FLOAT16, Order.ORDER_FLOAT, Order.ORDER_DOUBLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageStatistics:
    """What a data page holds.

    Attributes:
        offset: where it begins, counted from the chunk's first byte.
        size: stored bytes, header included.
        num_rows: rows that begin in it.
        num_values: values, nulls among them.
        null_count: nulls.
        bounds: smallest and largest value as statistics hold them, NaNs left out; None where there is none.
        nan_count: NaNs, of a float column.
        unencoded_byte_array_data_bytes: bytes of the values, of a BYTE_ARRAY column.
        repetition_level_histogram, definition_level_histogram: how often each level occurs, of a nested column.
    """

    offset: int
    size: int
    num_rows: int
    num_values: int
    null_count: int
    bounds: tuple[bytes, bytes] | None = None
    nan_count: int = 0
    unencoded_byte_array_data_bytes: int = 0
    repetition_level_histogram: Sequence[int] = ()
    definition_level_histogram: Sequence[int] = ()


class PageIndexBuilder:
    """Gathers the pages of one column chunk.

    Args:
        column: whose chunk it is.
        truncation: longest bound of a BYTE_ARRAY column, in bytes; where no upper bound is that short, the value stands.
    """

    def __init__(self, column: ColumnDescriptor, truncation: int = DEFAULT_STATISTICS_TRUNCATION) -> None:
        self._column = column
        self._order = order_of(column.type)
        self._truncation = truncation
        self._pages: list[PageStatistics] = []

    def add(self, page: PageStatistics) -> None:
        """Add the next data page."""
        self._pages.append(page)

    def offset_index(self, start: int) -> fmt.OffsetIndex:
        """The OffsetIndex of a chunk that begins at file offset start."""
        locations, row = [], 0
        for page in self._pages:
            locations.append(
                fmt.PageLocation(offset=start + page.offset, compressed_page_size=page.size, first_row_index=row)
            )
            row += page.num_rows
        unencoded = None
        if self._column.physical_type is Type.BYTE_ARRAY:
            unencoded = [page.unencoded_byte_array_data_bytes for page in self._pages]
        return fmt.OffsetIndex(page_locations=locations, unencoded_byte_array_data_bytes=unencoded)

    def column_index(self) -> fmt.ColumnIndex | None:
        """The ColumnIndex, or None where the chunk may have none.

        That is so where the column has no order, and where a page has values but no bounds: NaNs alone, in the order
        defined by the type (parquet.thrift, ColumnOrder).
        """
        if self._order == Order.ORDER_NONE or any(_has_values(page) and page.bounds is None for page in self._pages):
            return None
        bounds = [self._bound(page) for page in self._pages]
        known = [bound for bound, page in zip(bounds, self._pages, strict=True) if _has_values(page)]
        return fmt.ColumnIndex(
            null_pages=[not _has_values(page) for page in self._pages],
            min_values=[smallest for smallest, _ in bounds],
            max_values=[largest for _, largest in bounds],
            boundary_order=_boundary_order(known, self._order),
            null_counts=[page.null_count for page in self._pages],
            repetition_level_histograms=self._histograms("repetition", self._column.max_repetition_level),
            definition_level_histograms=self._histograms("definition", self._column.max_definition_level - 1),
            nan_counts=[page.nan_count for page in self._pages] if self._order in _FLOAT_ORDERS else None,
        )

    def _bound(self, page: PageStatistics) -> tuple[bytes, bytes]:
        if page.bounds is None or not _has_values(page):
            return b"", b""
        smallest, largest = page.bounds
        column = self._column.type
        if column.physical is not Type.BYTE_ARRAY or isinstance(column.logical, Decimal):
            return smallest, largest
        smallest, _ = truncate_min(smallest, self._truncation, column.is_text)
        shorter, _ = truncate_max(largest, self._truncation, column.is_text)
        return smallest, largest if shorter is None else shorter

    def _histograms(self, level: str, informative: int) -> list[int] | None:
        """The pages' histograms in one list; None where they would tell nothing that null counts do not."""
        if informative < 1:
            return None
        return [count for page in self._pages for count in getattr(page, f"{level}_level_histogram")]


def _has_values(page: PageStatistics) -> bool:
    return page.num_values > page.null_count


def _boundary_order(bounds: list[tuple[bytes, bytes]], order: Order) -> fmt.BoundaryOrder:
    for boundary_order in (fmt.BoundaryOrder.ASCENDING, fmt.BoundaryOrder.DESCENDING):
        if is_monotonic(bounds, order, boundary_order):
            return boundary_order
    return fmt.BoundaryOrder.UNORDERED
