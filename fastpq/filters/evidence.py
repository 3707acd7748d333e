"""Bounds of a column's values, from statistics and page indexes, for evaluating predicates; pure, no I/O.

A bound or count is unknown where the file has none, where the rest of the file refutes a claim of the same statistics or index
(``fastpq.index.contradictions``), where the column's order is undefined, and where the writer is known to write wrong ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastpq.filters.literals import NAN, Domain, FloatDomain, SortKey, domain_of
from fastpq.filters.predicate import Bounds
from fastpq.index.claims import Claims, Part
from fastpq.index.contradictions import fault
from fastpq.index.page_index import ColumnIndex, OffsetIndex
from fastpq.index.ranges import Int64s
from fastpq.metadata.column_chunk import ColumnChunkMetaData
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.schema.types import Type
from fastpq.stats.trust import Trust, trust_in


def claims_of(metadata: FileMetaData, column: ColumnDescriptor, chunk: ColumnChunkMetaData, num_rows: int) -> Claims:
    """The claims of a file about a column chunk, without its indexes.

    Args:
        metadata: metadata of the file, for column orders and the writer.
        column: the chunk's column.
        chunk: the chunk.
        num_rows: rows of the row group.

    Raises:
        KeyAccessError: the metadata are encrypted, and there is no key.
    """
    return Claims(column, num_rows, chunk.metadata, trust_in(metadata, column))


def chunk_bounds(claims: Claims) -> tuple[Bounds, str | None]:
    """The bounds of a column chunk, from its statistics.

    Args:
        claims: claims about the chunk of a column without repeated fields in its path.

    Returns:
        The bounds; and the refuted claim of unusable statistics, or None.
    """
    if (refuted := fault(Part.STATISTICS, claims)) is not None:
        return Bounds(), refuted
    count, domain = claims.num_rows, domain_of(claims.column.type)
    low, high = (None if bound is None else domain.of_bound(bound) for bound in claims.bounds)
    stored = claims.metadata.statistics
    nan_count = None if stored is None else stored.nan_count
    null_count = 0 if claims.is_required else claims.null_count
    if stored is None:
        return Bounds(null_count=null_count, num_values=count), None
    return _with_nans(domain, Bounds(low, high, null_count, count), nan_count), None


def page_bounds(trust: Trust, column: ColumnDescriptor, column_index: ColumnIndex, offset_index: OffsetIndex) -> list[Bounds]:
    """The bounds of each page of a column chunk, from its page index.

    Args:
        trust: usable statistics of the column.
        column: a column without repeated fields in its path.
        column_index, offset_index: page index of the chunk, both parts checked against each other.
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
        known = trust.bounds and not (may_lack_bounds and not high)
        smallest, largest = (domain.of_bound(low), domain.of_bound(high)) if known else (None, None)
        bounds = Bounds(smallest, largest, null_counts[page], count)
        pages.append(_with_nans(domain, bounds, nan_counts[page]))
    return pages


def exact_bounds(claims: Claims) -> tuple[SortKey, SortKey] | None:
    """The smallest and the largest value of a chunk, NaNs left out; None where the statistics may be inexact or are refuted."""
    if fault(Part.STATISTICS, claims) is not None:
        return None
    domain = domain_of(claims.column.type)
    low, high = (None if bound is None else domain.of_bound(bound) for bound in claims.exact_bounds)
    return None if low is None or high is None else (low, high)


def _with_nans(domain: Domain, bounds: Bounds, nan_count: int | None) -> Bounds:
    """Bounds with NaN as the largest value: stored bounds leave NaNs out, the order of filters has NaN at the end."""
    if not isinstance(domain, FloatDomain) or nan_count == 0:
        return bounds
    values = None if bounds.null_count is None or bounds.num_values is None else bounds.num_values - bounds.null_count
    only_nans = nan_count is not None and nan_count == values
    return Bounds(NAN if only_nans else bounds.minimum, NAN, bounds.null_count, bounds.num_values)


def _listed(counts: Int64s | None, pages: int) -> Sequence[int | None]:
    return [None] * pages if counts is None else counts.tolist()
