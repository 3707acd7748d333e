"""Bounds of a column's values, from statistics and page indexes, for evaluating predicates; pure, no I/O.

A bound or count counts as unknown where the file has none, where it contradicts the rest of the file, where the column's
order is undefined, and where the writer is known to write wrong ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastpq import format as fmt
from fastpq.filters.literals import NAN, Domain, FloatDomain, SortKey, domain_of
from fastpq.filters.predicate import Bounds
from fastpq.index.page_index import ColumnIndex, OffsetIndex
from fastpq.index.ranges import Int64s
from fastpq.metadata.file_metadata import ColumnChunkMetaData, FileMetaData
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.schema.types import Type
from fastpq.stats.bounds import order_of
from fastpq.stats.quirks import bounds_are_trusted, deprecated_bounds_are_trusted, null_counts_are_trusted
from fastpq.stats.statistics import Order


def chunk_bounds(
    metadata: FileMetaData, column: ColumnDescriptor, chunk: ColumnChunkMetaData, num_rows: int
) -> Bounds:
    """The bounds of a column chunk, from its statistics.

    Args:
        metadata: metadata of the file, for column orders and the writer.
        column: a column without repeated fields in its path.
        chunk: the column's chunk.
        num_rows: rows of the row group.

    Raises:
        KeyAccessError: the metadata are encrypted, and there is no key.
    """
    statistics, count = chunk.statistics, num_rows
    if chunk.num_values != count:
        return Bounds()     # reading the chunk will report the error
    required = column.max_definition_level == 0
    if statistics is None:
        return Bounds(null_count=0 if required else None, num_values=count)
    null_count = 0 if required else statistics.null_count
    if not required and not null_counts_are_trusted(metadata.created_by, column.type):
        null_count = None
    if null_count is not None and not 0 <= null_count <= count:
        null_count = None
    domain = domain_of(column.type)
    low, high = _ordered(*_stored_bounds(metadata, column, statistics), domain)
    nan_count = statistics.nan_count
    if nan_count is not None and not 0 <= nan_count <= count:
        nan_count = None
    return _with_nans(domain, Bounds(low, high, null_count, count), nan_count)


def page_bounds(
    metadata: FileMetaData, column: ColumnDescriptor, column_index: ColumnIndex, offset_index: OffsetIndex
) -> list[Bounds]:
    """The bounds of each page of a column chunk, from its page index.

    Args:
        metadata: metadata of the file, for column orders and the writer.
        column: a column without repeated fields in its path.
        column_index, offset_index: page index of the chunk, both parts checked against each other.
    """
    domain = domain_of(column.type)
    usable = _is_ordered(metadata, column) and bounds_are_trusted(metadata.created_by, column.type)
    required = column.max_definition_level == 0
    rows = offset_index.row_counts.tolist()
    null_counts = [0] * len(rows) if required else _listed(column_index.null_counts, len(rows))
    nan_counts = _listed(column_index.nan_counts, len(rows))
    # Some writers store an empty bound in place of a long text.
    may_lack_bounds = column.physical_type is Type.BYTE_ARRAY
    pages = []
    for page, (count, is_null, low, high) in enumerate(
        zip(rows, column_index.null_pages.tolist(), column_index.min_values, column_index.max_values, strict=True)
    ):
        if is_null:
            pages.append(Bounds(null_count=count, num_values=count))
            continue
        known = usable and not (may_lack_bounds and not high)
        smallest, largest = _ordered(low, high, domain) if known else (None, None)
        bounds = Bounds(smallest, largest, null_counts[page], count)
        pages.append(_with_nans(domain, bounds, nan_counts[page]))
    return pages


def exact_bounds(
    metadata: FileMetaData, column: ColumnDescriptor, chunk: ColumnChunkMetaData
) -> tuple[SortKey, SortKey] | None:
    """The smallest and the largest value of a chunk, NaNs left out; None where the statistics may be inexact.

    Raises:
        KeyAccessError: the metadata are encrypted, and there is no key.
    """
    statistics = chunk.statistics
    if statistics is None:
        return None
    may_be_short = order_of(column.type) == Order.ORDER_BYTES
    for exact in (statistics.is_min_value_exact, statistics.is_max_value_exact):
        if exact is False or (exact is None and may_be_short):
            return None
    low, high = _ordered(*_stored_bounds(metadata, column, statistics), domain_of(column.type))
    return None if low is None or high is None else (low, high)


def _stored_bounds(
    metadata: FileMetaData, column: ColumnDescriptor, statistics: fmt.Statistics
) -> tuple[bytes | None, bytes | None]:
    if statistics.min_value is None and statistics.max_value is None:
        if deprecated_bounds_are_trusted(column.type):
            return statistics.min, statistics.max
    elif _is_ordered(metadata, column) and bounds_are_trusted(metadata.created_by, column.type):
        return statistics.min_value, statistics.max_value
    return None, None


def _is_ordered(metadata: FileMetaData, column: ColumnDescriptor) -> bool:
    """Whether the bounds of a column are in a known order (parquet.thrift, ColumnOrder)."""
    if order_of(column.type) == Order.ORDER_NONE or not _has_known_annotation(column):
        return False
    order = metadata.column_order(column.index)
    if order is None:
        return False
    if order.IEEE_754_TOTAL_ORDER is not None:
        return isinstance(domain_of(column.type), FloatDomain)
    return order.TYPE_ORDER is not None


def _has_known_annotation(column: ColumnDescriptor) -> bool:
    """False for a column with a logical type unknown to fastpq; its order is unknown, too."""
    element = column.element
    return column.type.logical is not None or (element.logicalType is None and element.converted_type is None)


def _ordered(low: bytes | None, high: bytes | None, domain: Domain) -> tuple[SortKey | None, SortKey | None]:
    """Stored bounds as keys; None for both where the minimum exceeds the maximum."""
    smallest = None if low is None else domain.of_bound(low)
    largest = None if high is None else domain.of_bound(high)
    if smallest is not None and largest is not None and smallest > largest:
        return None, None
    return smallest, largest


def _with_nans(domain: Domain, bounds: Bounds, nan_count: int | None) -> Bounds:
    """Bounds with NaN as the largest value: stored bounds leave NaNs out, the order of filters has NaN at the end."""
    if not isinstance(domain, FloatDomain) or nan_count == 0:
        return bounds
    values = None if bounds.null_count is None or bounds.num_values is None else bounds.num_values - bounds.null_count
    only_nans = nan_count is not None and nan_count == values
    return Bounds(NAN if only_nans else bounds.minimum, NAN, bounds.null_count, bounds.num_values)


def _listed(counts: Int64s | None, pages: int) -> Sequence[int | None]:
    return [None] * pages if counts is None else counts.tolist()
