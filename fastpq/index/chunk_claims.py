"""ChunkMetadataClaims: what a file says in several places about one column chunk, for ``fastpq.index.consistency_checks``."""

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
from fastpq.stats.bounds import FLOAT_ORDERS, order_of
from fastpq.stats.statistics import Order, compare, nan_count
from fastpq.stats.total_order import is_largest_finite
from fastpq.stats.usable_statistics import UsableStatistics

Int64s = NDArray[np.int64]
Bound = bytes | None


class Part(Enum):
    """A part of a file that makes claims about a column chunk."""

    STATISTICS = "statistics"
    ENCODING_STATS = "encoding_stats"
    OFFSET_INDEX = "offset index"
    COLUMN_INDEX = "column index"
    BLOOM_FILTER = "bloom filter"


@dataclass(slots=True)
class BloomFilterClaims:
    """What a file says about a bloom filter. Claims that have not been read yet are None.

    Attributes:
        offset, length: the filter's place in the file, by the footer.
        file_size: the file's size in bytes.
        num_bytes: the bitset's size in bytes, by the header.
        stored_size: bytes that header and bitset take in the file.
        has_bits: whether any bit is set.
        denies_bounds: whether the filter lacks the statistics' exact minimum or maximum.
    """

    offset: int
    length: int | None
    file_size: int
    num_bytes: int | None = None
    stored_size: int | None = None
    has_bits: bool | None = None
    denies_bounds: bool | None = None


@dataclass(slots=True)
class ChunkMetadataClaims:
    """What a file says about one column chunk: schema, footer, statistics, page index, bloom filter.

    Attributes:
        column: the chunk's column.
        num_rows: row count of the row group.
        metadata: the chunk's entry in the footer.
        usable: which kinds of statistics can be used, or None to compare nothing with statistics.
        locations: page locations (OffsetIndex), shape (3, pages), int64. None if there is no OffsetIndex.
        unencoded_sizes: unencoded_byte_array_data_bytes in the OffsetIndex.
        column_index: the ColumnIndex, or None if the chunk has none.
        bloom_filter: claims about the bloom filter, or None if the chunk has none.
        order: the order in which the column's values are compared.
        has_row_values: whether each row has exactly one value or null, because no field in the column's path is repeated.
        bounds: the statistics' usable minimum and maximum, without NaNs.
        null_count: the statistics' usable null count.
        location_fault: the first fault in the page locations.
    """

    column: ColumnDescriptor
    num_rows: int
    metadata: fmt.ColumnMetaData
    usable: UsableStatistics | None = None
    locations: Int64s | None = None
    unencoded_sizes: list[int] | None = None
    column_index: fmt.ColumnIndex | None = None
    bloom_filter: BloomFilterClaims | None = None
    order: Order = field(init=False)
    has_row_values: bool = field(init=False)
    bounds: tuple[Bound, Bound] = field(init=False)
    null_count: int | None = field(init=False)
    location_fault: LocationFault = LocationFault.NONE
    _page_rows: list[int] | None = None
    _page_bounds: tuple[list[bytes], list[bytes]] | None = None

    def __post_init__(self) -> None:
        column, usable, statistics = self.column, self.usable, self.metadata.statistics
        self.order = order_of(column.type) if usable is None else usable.order
        self.has_row_values = column.max_repetition_level == 0
        self.bounds, self.null_count = (None, None), None
        if usable is not None and statistics is not None:
            self.null_count, bounds = usable.null_count_of(statistics), usable.bounds_of(statistics)
            if self.order in FLOAT_ORDERS:
                bounds = tuple(None if self._is_nan(bound) else bound for bound in bounds)  # type: ignore[assignment]
            self.bounds = bounds

    @property
    def is_required(self) -> bool:
        """Whether the schema allows no nulls."""
        return self.column.max_definition_level == 0

    @property
    def index(self) -> fmt.ColumnIndex:
        """The ColumnIndex. It must be there: only its own checks ask for it."""
        assert self.column_index is not None
        return self.column_index

    @property
    def filter(self) -> BloomFilterClaims:
        """The claims about the bloom filter. They must be there: only their own checks ask for them."""
        assert self.bloom_filter is not None
        return self.bloom_filter

    def add_offset_index(self, locations: Int64s, unencoded_sizes: list[int] | None) -> None:
        """Add the claims that the OffsetIndex makes.

        Args:
            locations, unencoded_sizes: as the attributes.
        """
        self.locations, self.unencoded_sizes = locations, unencoded_sizes
        start = first_page = self.metadata.data_page_offset
        if self.metadata.dictionary_page_offset:
            start = min(start, self.metadata.dictionary_page_offset)
        else:
            # Some writers give the dictionary page's offset as data_page_offset. Without dictionary_page_offset, the first page
            # is therefore not checked. Its type is known when it is read.
            first_page = -1
        size = self.metadata.total_compressed_size
        self.location_fault = location_fault(locations, self.num_rows, start, size, first_page)

    @property
    def exact_bounds(self) -> tuple[Bound, Bound]:
        """The statistics' usable minimum and maximum, if they are values in the chunk.

        A bound is None if it is shortened or may be, or if the writer may by mistake have put it in the place of an infinity.
        """
        statistics = self.metadata.statistics
        if statistics is None:
            return None, None
        may_be_short = self.order == Order.ORDER_BYTES
        flags = (statistics.is_min_value_exact, statistics.is_max_value_exact)
        low, high = (
            None if flag is False or (flag is None and may_be_short) else bound
            for flag, bound in zip(flags, self.bounds, strict=True)
        )
        if self.usable is not None and not self.usable.infinities:
            low = None if low is not None and is_largest_finite(low, 1) else low
            high = None if high is not None and is_largest_finite(high, -1) else high
        return low, high

    @property
    def certain_values(self) -> list[bytes]:
        """PLAIN encodings of values that the chunk certainly has: the exact bounds, if the type has one encoding per value."""
        type_ = self.column.type
        if type_.physical is Type.BOOLEAN or (isinstance(type_.logical, Decimal) and type_.physical is Type.BYTE_ARRAY):
            return []       # a BOOLEAN is stored as a bit, a BYTE_ARRAY decimal may have more sign bytes
        if isinstance(type_.logical, Integer) and type_.logical.bit_width < 32:
            return []       # the bits above bit_width in the file are unknown
        values = {bound for bound in self.exact_bounds if bound is not None}
        if self.order in FLOAT_ORDERS:      # a zero has two encodings
            values = {value for value in values if compare(self.order, value, bytes(len(value))) != 0}
        return sorted(values)

    @property
    def page_rows(self) -> list[int] | None:
        """Row count of each page, by the OffsetIndex."""
        if self._page_rows is None and self.locations is not None:
            first = [*self.locations[2].tolist(), self.num_rows]
            self._page_rows = [end - start for start, end in pairwise(first)]
        return self._page_rows

    @property
    def null_counts(self) -> list[int] | None:
        """Usable null count of each page, or None if one is unknown. parquet-mr writes -1 for an unknown count."""
        if self.usable is not None and not self.usable.null_counts:
            return None
        counts = self.column_index.null_counts if self.column_index is not None else None
        return counts if counts and -1 not in counts else None

    @property
    def page_bounds(self) -> tuple[list[bytes], list[bytes]]:
        """Minima and maxima of the pages that have known bounds, without NaNs.

        An empty upper bound on BYTE_ARRAY is unknown, because some writers store one in place of a long text.
        """
        if self._page_bounds is not None:
            return self._page_bounds
        index = self.index
        low, high = index.min_values, index.max_values
        has_bounds = [not is_null for is_null in index.null_pages]
        if self.column.physical_type is Type.BYTE_ARRAY:
            has_bounds = [flag and bound != b"" for flag, bound in zip(has_bounds, high, strict=True)]
        if self.order in FLOAT_ORDERS:
            bounds = zip(has_bounds, low, high, strict=True)
            has_bounds = [flag and not self._is_nan(first) and not self._is_nan(last) for flag, first, last in bounds]
        if not all(has_bounds):
            low, high = list(compress(low, has_bounds)), list(compress(high, has_bounds))
        self._page_bounds = low, high
        return low, high

    def _is_nan(self, bound: Bound) -> bool:
        return bound is not None and nan_count(self.order, bound) > 0
