"""Makes a written column chunk's page index and size statistics, from counts and bounds for its data pages (PageIndex.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fastpq import format as fmt
from fastpq.options import DEFAULT_STATISTICS_TRUNCATION
from fastpq.schema.types import ColumnType, Decimal, Type
from fastpq.stats import total_order
from fastpq.stats.bounds import FLOAT_ORDERS, truncate_max, truncate_min
from fastpq.stats.statistics import Order, is_monotonic


class WrittenPages(NamedTuple):
    """Counts and bounds for the data pages of one column chunk. Each list has one entry per page.

    Attributes:
        type: the column type.
        order: the order in which values are compared.
        sizes: stored bytes, headers included.
        num_rows: row counts.
        num_values: value counts, nulls and empty lists included.
        null_counts: number of nulls and empty lists.
        minima, maxima: smallest and largest value, encoded as in statistics, NaNs left out. None for pages without such values.
        nan_counts: number of NaNs, for a float column.
        unencoded_byte_array_data_bytes: bytes that the values have, for a BYTE_ARRAY column.
        repetition_level_histograms, definition_level_histograms: how often each level occurs, page after page. Empty if the
            other counts imply the histograms.
        total_order: whether floats are in IEEE 754 total order. Pages that have only NaNs then have bounds.
    """

    type: ColumnType
    order: int
    sizes: Sequence[int]
    num_rows: Sequence[int]
    num_values: Sequence[int]
    null_counts: Sequence[int]
    minima: Sequence[bytes | None]
    maxima: Sequence[bytes | None]
    nan_counts: Sequence[int]
    unencoded_byte_array_data_bytes: Sequence[int]
    repetition_level_histograms: Sequence[int] = ()
    definition_level_histograms: Sequence[int] = ()
    total_order: bool = False

    def offset_index(self, start: int) -> fmt.OffsetIndex:
        """Return the OffsetIndex for pages that begin at a file offset."""
        locations, first_row = [], 0
        for size, rows in zip(self.sizes, self.num_rows, strict=True):
            locations.append(fmt.PageLocation(offset=start, compressed_page_size=size, first_row_index=first_row))
            start += size
            first_row += rows
        unencoded_sizes = self.unencoded_byte_array_data_bytes if self.type.physical is Type.BYTE_ARRAY else None
        return fmt.OffsetIndex(page_locations=locations, unencoded_byte_array_data_bytes=unencoded_sizes)

    def column_index(self, truncation: int = DEFAULT_STATISTICS_TRUNCATION) -> fmt.ColumnIndex | None:
        """Return the ColumnIndex, or None if the format does not allow one.

        A column without an order has no ColumnIndex. A chunk has none either if a page has values but no bounds. Such a page has
        only NaNs, and the order is the one that the type defines (parquet.thrift, ColumnOrder).

        Args:
            truncation: longest bound in bytes, for a BYTE_ARRAY column. A maximum that has no upper bound this short is written
                whole.
        """
        order = self.order
        if order == Order.ORDER_NONE:
            return None
        null_pages = [values == nulls for values, nulls in zip(self.num_values, self.null_counts, strict=True)]
        if None in self.minima and any(
            bound is None and not empty for bound, empty in zip(self.minima, null_pages, strict=True)
        ):
            return None
        is_cut = self.type.physical is Type.BYTE_ARRAY and not isinstance(self.type.logical, Decimal)
        minima, maxima = self._truncated(truncation) if is_cut else (self.minima, self.maxima)
        return fmt.ColumnIndex(
            null_pages=null_pages,
            min_values=[bound or b"" for bound in minima],
            max_values=[bound or b"" for bound in maxima],
            boundary_order=self._boundary_order(minima, maxima),
            null_counts=self.null_counts,
            repetition_level_histograms=self.repetition_level_histograms or None,
            definition_level_histograms=self.definition_level_histograms or None,
            nan_counts=self.nan_counts if order in FLOAT_ORDERS else None,
        )

    def size_statistics(self) -> fmt.SizeStatistics | None:
        """Return the chunk's SizeStatistics, or None if all fields would be unset."""
        is_bytes = self.type.physical is Type.BYTE_ARRAY
        if not is_bytes and not self.repetition_level_histograms and not self.definition_level_histograms:
            return None
        return fmt.SizeStatistics(
            unencoded_byte_array_data_bytes=sum(self.unencoded_byte_array_data_bytes) if is_bytes else None,
            repetition_level_histogram=self._summed(self.repetition_level_histograms),
            definition_level_histogram=self._summed(self.definition_level_histograms),
        )

    def _summed(self, histograms: Sequence[int]) -> list[int] | None:
        if not histograms:
            return None
        total: list[int] = np.array(histograms).reshape(len(self.sizes), -1).sum(axis=0).tolist()
        return total

    def _boundary_order(self, minima: Sequence[bytes | None], maxima: Sequence[bytes | None]) -> fmt.BoundaryOrder:
        if len(self.sizes) < 2:
            return fmt.BoundaryOrder.ASCENDING
        known_bounds = [[bound for bound in bounds if bound is not None] for bounds in (minima, maxima)]
        for sign, boundary_order in ((1, fmt.BoundaryOrder.ASCENDING), (-1, fmt.BoundaryOrder.DESCENDING)):
            if self.total_order and all(total_order.total_keys_are_monotonic(bounds, sign) for bounds in known_bounds):
                return boundary_order
            if not self.total_order and all(is_monotonic(self.order, bounds, sign) for bounds in known_bounds):
                return boundary_order
        return fmt.BoundaryOrder.UNORDERED

    def _truncated(self, truncation: int) -> tuple[list[bytes | None], list[bytes | None]]:
        is_text = self.type.is_text
        minima, maxima = list(self.minima), list(self.maxima)
        for page, bound in enumerate(minima):
            if bound is not None and len(bound) > truncation:
                minima[page] = truncate_min(bound, truncation, is_text)[0]
        for page, bound in enumerate(maxima):
            if bound is not None and len(bound) > truncation:
                maxima[page] = truncate_max(bound, truncation, is_text)[0] or bound
        return minima, maxima
