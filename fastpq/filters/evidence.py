"""Bounds for a column's values, from statistics and page indexes, to evaluate predicates. Pure, no I/O.

A bound or count is unknown if the file has none, if the column's order is undefined, or if the writer is known to write wrong
ones. It also counts as unknown if other facts in the file contradict the same statistics or index
(``fastpq.index.consistency_checks``).
"""

from __future__ import annotations

from collections.abc import Sequence

from fastpq.filters.literals import NAN, Domain, FloatDomain, SortKey, domain_of
from fastpq.filters.predicate import Bounds
from fastpq.index.chunk_claims import ChunkMetadataClaims, Part
from fastpq.index.consistency_checks import fault
from fastpq.index.page_index import ColumnIndex, OffsetIndex
from fastpq.index.ranges import Int64s
from fastpq.metadata.column_chunk import ColumnChunkMetaData
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.schema.types import Type
from fastpq.stats.usable_statistics import UsableStatistics, usable_statistics_of


def claims_of(metadata: FileMetaData, column: ColumnDescriptor, chunk: ColumnChunkMetaData, num_rows: int) -> ChunkMetadataClaims:
    """Return what a file says about a column chunk, without its indexes.

    Args:
        metadata: the file's metadata, which has the column orders and names the writer.
        column: the chunk's column.
        chunk: the chunk.
        num_rows: row count of the row group.

    Raises:
        KeyAccessError: the metadata are encrypted, and there is no key.
    """
    return ChunkMetadataClaims(column, num_rows, chunk.metadata, usable_statistics_of(metadata, column))


def chunk_bounds(claims: ChunkMetadataClaims) -> tuple[Bounds, str | None]:
    """Return a column chunk's bounds, from its statistics.

    Args:
        claims: claims about the chunk. Its column has no repeated fields in its path.

    Returns:
        (bounds, contradiction). The second item is a text if other facts in the file make the statistics unusable, else None.
    """
    if (refuted_claim := fault(Part.STATISTICS, claims)) is not None:
        return Bounds(), refuted_claim
    count, domain = claims.num_rows, domain_of(claims.column.type)
    low, high = (key_of_bound(domain, claims.usable, bound) for bound in claims.bounds)
    statistics = claims.metadata.statistics
    nan_count = None if statistics is None else statistics.nan_count
    null_count = 0 if claims.is_required else claims.null_count
    if statistics is None:
        return Bounds(null_count=null_count, num_values=count), None
    return _with_nans(domain, Bounds(low, high, null_count, count), nan_count), None


def page_bounds(
    usable: UsableStatistics, column: ColumnDescriptor, column_index: ColumnIndex, offset_index: OffsetIndex
) -> list[Bounds]:
    """Return the bounds of each page in a column chunk, from the chunk's page index.

    Args:
        usable: which statistics of the column can be used.
        column: a column without repeated fields in its path.
        column_index, offset_index: the chunk's page index. Both parts have been checked against each other.
    """
    domain = domain_of(column.type)
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
        has_bounds = usable.bounds and not (may_lack_bounds and not high)
        smallest, largest = (key_of_bound(domain, usable, bound if has_bounds else None) for bound in (low, high))
        bounds = Bounds(smallest, largest, null_counts[page], count)
        pages.append(_with_nans(domain, bounds, nan_counts[page]))
    return pages


def exact_bounds(claims: ChunkMetadataClaims) -> tuple[SortKey, SortKey] | None:
    """Return a chunk's smallest and largest value, NaNs left out, or None if the statistics are refuted or may be inexact."""
    if fault(Part.STATISTICS, claims) is not None:
        return None
    domain = domain_of(claims.column.type)
    low, high = (key_of_bound(domain, claims.usable, bound) for bound in claims.exact_bounds)
    return None if low is None or high is None else (low, high)


def key_of_bound(domain: Domain, usable: UsableStatistics | None, bound: bytes | None) -> SortKey | None:
    """Return a stored bound's key, in the calendar of the column in memory. None if the bound is unknown or has no key."""
    key = None if bound is None else domain.of_bound(bound)
    return key if usable is None or usable.calendar is None else usable.calendar.key(key)


def _with_nans(domain: Domain, bounds: Bounds, nan_count: int | None) -> Bounds:
    """Return bounds that count NaN as the largest value, as filters do. Stored bounds leave NaN out."""
    if not isinstance(domain, FloatDomain) or nan_count == 0:
        return bounds
    values = None if bounds.null_count is None or bounds.num_values is None else bounds.num_values - bounds.null_count
    only_nans = nan_count is not None and nan_count == values
    return Bounds(NAN if only_nans else bounds.minimum, NAN, bounds.null_count, bounds.num_values)


def _listed(counts: Int64s | None, pages: int) -> Sequence[int | None]:
    return [None] * pages if counts is None else counts.tolist()
