"""Claims: all claims of a file about one column chunk, for ``fastpq.index.contradictions`` to compare."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from itertools import compress, pairwise

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.index.page_locations import LocationFault, location_fault
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.schema.types import Decimal, Integer, Type
from fastpq.stats.bounds import order_of
from fastpq.stats.statistics import Order, compare, nan_count
from fastpq.stats.trust import FLOAT_ORDERS, Trust

Int64s = NDArray[np.int64]
Bound = bytes | None


class Part(Enum):
    """A part of a file with claims about a column chunk."""

    STATISTICS = "statistics"
    ENCODING_STATS = "encoding_stats"
    OFFSET_INDEX = "offset index"
    COLUMN_INDEX = "column index"
    BLOOM_FILTER = "bloom filter"


@dataclass(slots=True)
class FilterClaims:
    """Claims of and about a bloom filter; None for unread parts.

    Attributes:
        offset, length: place in the file, by the footer.
        file_size: bytes of the file.
        num_bytes: bytes of the bitset, by the header.
        stored_size: bytes of header and bitset, as stored.
        has_bits: whether any bit is set.
        denies_bounds: whether the filter lacks the exact minimum or maximum of the statistics.
    """

    offset: int
    length: int | None
    file_size: int
    num_bytes: int | None = None
    stored_size: int | None = None
    has_bits: bool | None = None
    denies_bounds: bool | None = None


@dataclass(slots=True)
class Claims:
    """Claims of a file about one column chunk.

    Attributes:
        column: the chunk's column.
        num_rows: rows of the row group.
        metadata: the chunk's entry in the footer.
        trust: usable kinds of statistics; None for a comparison without statistics.
        locations: shape (3, pages), int64: places of the pages (OffsetIndex); None without an OffsetIndex.
        unencoded: unencoded_byte_array_data_bytes of the OffsetIndex.
        column_index: the ColumnIndex; None without one.
        bloom_filter: the bloom filter; None without one.
        order: order of the column's values.
        has_row_values: whether each row has one value or null: the column has no repeated field in its path.
        bounds: usable minimum and maximum of the statistics, without NaNs.
        null_count: usable null count of the statistics.
        location_fault: first fault of the page locations.
    """

    column: ColumnDescriptor
    num_rows: int
    metadata: fmt.ColumnMetaData
    trust: Trust | None = None
    locations: Int64s | None = None
    unencoded: list[int] | None = None
    column_index: fmt.ColumnIndex | None = None
    bloom_filter: FilterClaims | None = None
    order: Order = field(init=False)
    has_row_values: bool = field(init=False)
    bounds: tuple[Bound, Bound] = field(init=False)
    null_count: int | None = field(init=False)
    location_fault: LocationFault = LocationFault.NONE
    _page_rows: list[int] | None = None
    _page_bounds: tuple[list[bytes], list[bytes]] | None = None

    def __post_init__(self) -> None:
        column, trust, stored = self.column, self.trust, self.metadata.statistics
        self.order = order_of(column.type) if trust is None else trust.order
        self.has_row_values = column.max_repetition_level == 0
        self.bounds, self.null_count = (None, None), None
        if trust is not None and stored is not None:
            self.null_count, bounds = trust.null_count_of(stored), trust.bounds_of(stored)
            if self.order in FLOAT_ORDERS:
                bounds = tuple(None if self._is_nan(bound) else bound for bound in bounds)  # type: ignore[assignment]
            self.bounds = bounds

    @property
    def is_required(self) -> bool:
        """Whether the schema allows no nulls."""
        return self.column.max_definition_level == 0

    def add_offset_index(self, locations: Int64s, unencoded: list[int] | None) -> None:
        """Add the claims of the OffsetIndex.

        Args:
            locations, unencoded: as the attributes.
        """
        self.locations, self.unencoded = locations, unencoded
        start = first_page = self.metadata.data_page_offset
        if self.metadata.dictionary_page_offset:
            start = min(start, self.metadata.dictionary_page_offset)
        else:
            # Some writers give the dictionary page's offset as data_page_offset. The first page is therefore not checked
            # without dictionary_page_offset; reading the page shows its type.
            first_page = -1
        size = self.metadata.total_compressed_size
        self.location_fault = location_fault(locations, self.num_rows, start, size, first_page)

    @property
    def exact_bounds(self) -> tuple[Bound, Bound]:
        """Usable minimum and maximum of the statistics; None for shortened or possibly shortened bounds."""
        stored = self.metadata.statistics
        if stored is None:
            return None, None
        may_be_short = self.order == Order.ORDER_BYTES
        flags = (stored.is_min_value_exact, stored.is_max_value_exact)
        low, high = (
            None if flag is False or (flag is None and may_be_short) else bound
            for flag, bound in zip(flags, self.bounds, strict=True)
        )
        return low, high

    @property
    def certain_values(self) -> list[bytes]:
        """PLAIN encodings of values certainly in the chunk: the exact bounds of a type with one encoding for a value."""
        type_ = self.column.type
        if type_.physical is Type.BOOLEAN or (isinstance(type_.logical, Decimal) and type_.physical is Type.BYTE_ARRAY):
            return []       # in turn: stored as bits; leading sign bytes
        if isinstance(type_.logical, Integer) and type_.logical.bit_width < 32:
            return []       # the bits above bit_width in the file are unknown
        values = {bound for bound in self.exact_bounds if bound is not None}
        if self.order in FLOAT_ORDERS:      # two zeros
            values = {value for value in values if compare(self.order, value, bytes(len(value))) != 0}
        return sorted(values)

    @property
    def page_rows(self) -> list[int] | None:
        """Rows of each page, by the OffsetIndex."""
        if self._page_rows is None and self.locations is not None:
            first = [*self.locations[2].tolist(), self.num_rows]
            self._page_rows = [end - start for start, end in pairwise(first)]
        return self._page_rows

    @property
    def null_counts(self) -> list[int] | None:
        """Usable nulls of each page; None if unknown: parquet-mr writes -1 for an unknown count."""
        if self.trust is not None and not self.trust.null_counts:
            return None
        counts = self.column_index.null_counts if self.column_index is not None else None
        return counts if counts and -1 not in counts else None

    @property
    def page_bounds(self) -> tuple[list[bytes], list[bytes]]:
        """Minima and maxima of the pages with known bounds, without NaNs.

        Some writers store an empty bound in place of a long text.
        """
        if self._page_bounds is not None:
            return self._page_bounds
        index = self.column_index
        if index is None:
            return [], []
        low, high = index.min_values, index.max_values
        known = [not is_null for is_null in index.null_pages]
        if self.column.physical_type is Type.BYTE_ARRAY:
            known = [flag and bound != b"" for flag, bound in zip(known, high, strict=True)]
        if self.order in FLOAT_ORDERS:
            bounds = zip(known, low, high, strict=True)
            known = [flag and not self._is_nan(first) and not self._is_nan(last) for flag, first, last in bounds]
        if not all(known):
            low, high = list(compress(low, known)), list(compress(high, known))
        self._page_bounds = low, high
        return low, high

    def _is_nan(self, bound: Bound) -> bool:
        return bound is not None and nan_count(self.order, bound) > 0
