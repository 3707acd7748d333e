"""MeasuredChunk: what the pages of a column chunk hold, measured while they are decoded, to be compared with claims."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.stats.bounds import order_of
from fastpq.stats.geospatial import GeospatialBounds
from fastpq.stats.statistics import Order, extreme
from fastpq.verify.page_content import PageContent
from fastpq.verify.value_block import CodedValues, VariableValues

Array: TypeAlias = NDArray[Any]
Bound: TypeAlias = bytes | None

# Distinct values are counted by their hashes as long as there are at most this many.
MOST_HASHES = 1 << 22


@dataclass(slots=True)
class MeasuredPage:
    """What one data page holds. Without decoding, only the first four attributes are known.

    Attributes:
        offset: offset of its header in the file.
        size: stored bytes, header included.
        num_values: values, nulls included, by the header.
        header_rows: row count by the header, or None if the header has none.
        first_row: first row within the row group, or None if it is unknown.
        num_rows: rows that begin in the page, or None.
        begins_row: whether the first value begins a row.
        num_nulls: values below the maximum definition level.
        repetition_counts, definition_counts: number of values at each level, or None without such levels.
        low, high: extremes of the values that are not NaN, or None.
        num_nans: number of NaNs, or None for other types than floats.
        value_bytes: total size of BYTE_ARRAY values, or None for other types.
        is_decoded: whether the page was decoded.
    """

    offset: int
    size: int
    num_values: int
    header_rows: int | None
    first_row: int | None = None
    num_rows: int | None = None
    begins_row: bool = True
    num_nulls: int = 0
    repetition_counts: list[int] | None = None
    definition_counts: list[int] | None = None
    low: Bound = None
    high: Bound = None
    num_nans: int | None = None
    value_bytes: int | None = None
    is_decoded: bool = False


@dataclass
class MeasuredChunk:
    """What the pages of a column chunk hold.

    Args:
        column: the column.
        counts_distinct: whether to count distinct values.
        geospatial: whether to measure the bounding box of geometries: None for no, else whether they are geographies.

    Attributes:
        order: the order in which the values are compared.
        pages: the data pages.
        kinds: number of pages by page type and encoding.
        level_encodings: encodings of levels.
        size: stored bytes of all pages, headers included.
        uncompressed_size: the same before compression.
        dictionary_offset: offset of the first dictionary page, or None.
        is_whole: whether all pages up to the last value were walked.
        is_decoded: whether all of them were decoded.
        num_rows: rows in the decoded pages.
        missing_values, missing_page: values that the bloom filter denies, and the first page that has one.
    """

    column: ColumnDescriptor
    counts_distinct: bool = False
    geospatial: bool | None = None
    order: Order = field(init=False)
    pages: list[MeasuredPage] = field(default_factory=list)
    kinds: Counter[tuple[int, int]] = field(default_factory=Counter)
    level_encodings: set[int] = field(default_factory=set)
    size: int = 0
    uncompressed_size: int = 0
    dictionary_offset: int | None = None
    is_whole: bool = False
    is_decoded: bool = True
    num_rows: int = 0
    missing_values: int = 0
    missing_page: int | None = None

    def __post_init__(self) -> None:
        self.order = order_of(self.column.type)
        self._hashes: Array | None = np.empty(0, np.uint64) if self.counts_distinct else None
        self._box = None if self.geospatial is None else GeospatialBounds(self.geospatial)

    @property
    def num_values(self) -> int:
        """Values in all pages, nulls included, by the headers."""
        return sum(page.num_values for page in self.pages)

    @property
    def num_distinct(self) -> int | None:
        """Number of distinct values, or None if they were not counted."""
        return None if self._hashes is None or not self.is_decoded else len(self._hashes)

    @property
    def least_nulls(self) -> int | None:
        """Smallest null count that is right. Below a list, writers differ whether a null or empty list counts as a null."""
        levels = self.level_totals("definition_counts")
        if not self.column.max_repetition_level or levels is None:
            return self.total("num_nulls")
        return levels[-2] if self.column.nullable else 0

    @property
    def geospatial_statistics(self) -> fmt.GeospatialStatistics | None:
        """Bounding box and types of the geometries, or None if they were not measured."""
        return None if self._box is None else self._box.statistics()

    @property
    def extremes(self) -> tuple[Bound, Bound]:
        """Smallest and largest value that is not NaN."""
        lows = [page.low for page in self.pages if page.low is not None]
        highs = [page.high for page in self.pages if page.high is not None]
        if not lows or not highs:
            return None, None
        return extreme(self.order, lows, -1), extreme(self.order, highs, 1)

    def total(self, name: str) -> int | None:
        """Return the sum of an attribute over all pages, or None if a page lacks it."""
        numbers = [getattr(page, name) for page in self.pages]
        return None if None in numbers else sum(numbers)

    def level_totals(self, name: str) -> list[int] | None:
        """Return the sums of ``repetition_counts`` or ``definition_counts`` over all pages, or None without such levels."""
        counts = [getattr(page, name) for page in self.pages]
        return None if None in counts or not counts else np.sum(counts, axis=0).tolist()

    def add_content(self, page: MeasuredPage, content: PageContent) -> None:
        """Measure a decoded page."""
        column, values = self.column, content.values
        page.is_decoded = True
        page.num_nulls = content.num_values - len(values)
        if content.repetition is not None:
            counts = np.bincount(content.repetition, minlength=column.max_repetition_level + 1)
            page.repetition_counts = counts.tolist()
            page.num_rows = int(counts[0])
            page.begins_row = not len(content.repetition) or int(content.repetition[0]) == 0
        else:
            page.num_rows = content.num_values
        if content.definition is not None:
            page.definition_counts = np.bincount(content.definition, minlength=column.max_definition_level + 1).tolist()
        page.first_row = self.num_rows
        self.num_rows += page.num_rows
        if self.order != Order.ORDER_NONE:
            page.low, page.high = values.extremes(self.order)
            flags = values.nan_flags(self.order)
            page.num_nans = None if flags is None else int(flags.sum())
        sizes = values.sizes()
        page.value_bytes = None if sizes is None else int(sizes.sum())
        if self._hashes is not None:
            self._hashes = np.union1d(self._hashes, values.hashes())
            if len(self._hashes) > MOST_HASHES:
                self._hashes = None
        plain = values.distinct if isinstance(values, CodedValues) else values
        if self._box is not None and isinstance(plain, VariableValues):
            self._box.observe(plain.reader, 0, len(plain))
