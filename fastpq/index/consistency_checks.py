"""CHECKS: a table of claims about a column chunk that the schema, the footer or another index can refute.

Filters do not use evidence that has a refuted claim. They then read more rows, and find the same matches.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Literal, NamedTuple

from fastpq import format as fmt
from fastpq.errors import FormatError
from fastpq.index.bloom_size import BLOCK_BYTES
from fastpq.index.chunk_claims import Bound, ChunkMetadataClaims, Part
from fastpq.index.page_locations import LocationFault
from fastpq.schema.types import ColumnType, Decimal, Integer, Type
from fastpq.stats.bounds import FLOAT_ORDERS, bound_lengths
from fastpq.stats.statistics import Order, compare, exceed, extreme, is_monotonic

Refuter = Literal["itself", "schema", "footer", "statistics", "offset index"]

_LEVEL_ENCODINGS = {fmt.Encoding.RLE, fmt.Encoding.BIT_PACKED}


class Check(NamedTuple):
    """One row in the table.

    Attributes:
        part: the part of the file that makes the claim, and is not used if the claim is refuted.
        against: the part that refutes the claim.
        claim: what is wrong with the part, for messages.
        is_refuted: returns whether the claim is refuted. It is called only after the part's earlier checks have passed.
    """

    part: Part
    against: Refuter
    claim: str
    is_refuted: Callable[[ChunkMetadataClaims], bool]


def fault(part: Part, claims: ChunkMetadataClaims) -> str | None:
    """Return a part's first refuted claim, or None if no claim is refuted."""
    for check in _CHECKS_OF[part]:
        if check.is_refuted(claims):
            return check.claim
    return None


def refuse_refuted(part: Part, claims: ChunkMetadataClaims) -> None:
    """Raise FormatError if a claim of a part is refuted."""
    if (claim := fault(part, claims)) is not None:
        raise FormatError(claim)


def without_refuted_statistics(claims: ChunkMetadataClaims) -> ChunkMetadataClaims:
    """Return the claims without the statistics if these are refuted. Indexes can be compared with the result."""
    if claims.usable is None or fault(Part.STATISTICS, claims) is None:
        return claims
    metadata = copy.copy(claims.metadata)
    metadata.statistics = None
    return ChunkMetadataClaims(claims.column, claims.num_rows, metadata, claims.usable)


# ---- statistics


def have_impossible_value(type_: ColumnType, bounds: Sequence[Bound]) -> bool:
    """Return whether a bound has an impossible length, or is outside the range that the column type allows."""
    shortest, longest = bound_lengths(type_)
    for bound in bounds:
        if bound is not None and not shortest <= len(bound) <= longest:
            return True
    if isinstance(type_.logical, Decimal):
        byte_order: Literal["little", "big"] = "little" if type_.physical in (Type.INT32, Type.INT64) else "big"
        numbers = (int.from_bytes(bound, byte_order, signed=True) for bound in bounds if bound is not None)
        return any(abs(number) >= 10**type_.logical.precision for number in numbers)
    if type_.physical is Type.BOOLEAN:
        return any(bound is not None and bound[0] > 1 for bound in bounds)
    if type_.physical is Type.INT32 and isinstance(type_.logical, Integer) and type_.logical.bit_width < 32:
        signed, bits = type_.logical.signed, type_.logical.bit_width
        values = (int.from_bytes(bound, "little", signed=True) for bound in bounds if bound is not None)
        return any(not (-(1 << bits - 1) <= value < 1 << bits - 1 if signed else 0 <= value < 1 << bits) for value in values)
    return False


def _exceeds(claims: ChunkMetadataClaims, bound: Bound, other: Bound) -> bool:
    """Return whether a bound is above another. Unknown bounds, NaNs and bounds without an order never are."""
    return bound is not None and other is not None and compare(claims.order, bound, other) > 0


def _disagrees_with_deprecated(claims: ChunkMetadataClaims) -> bool:
    statistics, usable = claims.metadata.statistics, claims.usable
    if statistics is None or usable is None or not (usable.bounds and usable.deprecated_bounds):
        return False
    type_ = claims.column.type
    return any(
        old is not None and new is not None and (have_impossible_value(type_, [old]) or compare(claims.order, old, new) != 0)
        for old, new in ((statistics.min, statistics.min_value), (statistics.max, statistics.max_value))
    )


def _exact_bound_is_short(claims: ChunkMetadataClaims) -> bool:
    statistics, length = claims.metadata.statistics, claims.column.type.length
    if statistics is None or claims.column.physical_type is not Type.FIXED_LEN_BYTE_ARRAY:
        return False
    flags = (statistics.is_min_value_exact, statistics.is_max_value_exact)
    return any(
        flag is True and bound is not None and len(bound) != length for flag, bound in zip(flags, claims.bounds, strict=True)
    )


def _chunk_is_null_with_bounds(claims: ChunkMetadataClaims) -> bool:
    return claims.null_count == claims.metadata.num_values > 0 and claims.bounds != (None, None)


def _number_of(claims: ChunkMetadataClaims, name: Literal["distinct_count", "nan_count"]) -> int | None:
    statistics = claims.metadata.statistics
    return None if statistics is None else getattr(statistics, name)


def _is_over_values(claims: ChunkMetadataClaims, count: int | None) -> bool:
    """Return whether a count is negative, or higher than the number of values that are not null."""
    return count is not None and not 0 <= count <= claims.metadata.num_values - (claims.null_count or 0)


def _sizes_disagree(claims: ChunkMetadataClaims) -> bool:
    """Return whether the chunk's level histograms contradict its number of values, nulls or rows."""
    sizes, num_values = claims.metadata.size_statistics, claims.metadata.num_values
    if sizes is None:
        return False
    levels, repeats = sizes.definition_level_histogram, sizes.repetition_level_histogram
    if levels:
        if len(levels) != claims.column.max_definition_level + 1 or min(levels) < 0 or sum(levels) != num_values:
            return True
        if claims.has_row_values and claims.null_count is not None and levels[-1] != num_values - claims.null_count:
            return True
    if not repeats:
        return False
    num_levels = claims.column.max_repetition_level + 1
    return len(repeats) != num_levels or min(repeats) < 0 or sum(repeats) != num_values or repeats[0] != claims.num_rows


_STATISTICS = (
    Check(Part.STATISTICS, "footer", "another number of values than rows in a column without repetition",
          lambda claims: claims.has_row_values and claims.metadata.num_values != claims.num_rows),
    Check(Part.STATISTICS, "footer", "a null count below 0 or above the number of values",
          lambda claims: claims.null_count is not None and not 0 <= claims.null_count <= claims.metadata.num_values),
    Check(Part.STATISTICS, "schema", "nulls in a required column",
          lambda claims: claims.is_required and bool(claims.null_count)),
    Check(Part.STATISTICS, "schema", "a bound of an impossible length or outside the range of the type",
          lambda claims: have_impossible_value(claims.column.type, claims.bounds)),
    Check(Part.STATISTICS, "schema", "an exact bound of another length than the values", _exact_bound_is_short),
    Check(Part.STATISTICS, "itself", "a minimum above the maximum", lambda claims: _exceeds(claims, *claims.bounds)),
    Check(Part.STATISTICS, "itself", "other bounds in min and max than in min_value and max_value", _disagrees_with_deprecated),
    Check(Part.STATISTICS, "footer", "bounds of a chunk of nulls alone", _chunk_is_null_with_bounds),
    Check(Part.STATISTICS, "footer", "a number of distinct values below 0 or above the number of values",
          lambda claims: _is_over_values(claims, _number_of(claims, "distinct_count"))),
    Check(Part.STATISTICS, "footer", "a number of NaNs below 0 or above the number of values",
          lambda claims: _is_over_values(claims, _number_of(claims, "nan_count"))),
    Check(Part.STATISTICS, "schema", "NaNs in a column without floats",
          lambda claims: claims.order not in FLOAT_ORDERS and bool(_number_of(claims, "nan_count"))),
    Check(Part.STATISTICS, "footer", "other numbers of levels than values, nulls and rows", _sizes_disagree),
)


# ---- encodings of pages


def _encodings_disagree(claims: ChunkMetadataClaims) -> bool:
    """Return whether encoding_stats lacks an encoding. parquet-cpp lists PLAIN for a PLAIN_DICTIONARY chunk's dictionary page."""
    counted_encodings = {stats.encoding for stats in claims.metadata.encoding_stats or ()}
    of_dictionary = {fmt.Encoding.PLAIN} if claims.metadata.dictionary_page_offset else set()
    return bool(counted_encodings) and bool(set(claims.metadata.encodings) - _LEVEL_ENCODINGS - of_dictionary - counted_encodings)


_ENCODING_STATS = (
    Check(Part.ENCODING_STATS, "footer", "fewer encodings in encoding_stats than in encodings", _encodings_disagree),
    Check(Part.ENCODING_STATS, "footer", "a number of pages below 0 in encoding_stats",
          lambda claims: any(stats.count < 0 for stats in claims.metadata.encoding_stats or ())),
)


# ---- offset index


def _has_location_fault(kind: LocationFault) -> Callable[[ChunkMetadataClaims], bool]:
    return lambda claims: claims.location_fault == kind


def _page_counts_disagree(claims: ChunkMetadataClaims) -> bool:
    counts = [stats.count for stats in claims.metadata.encoding_stats or () if stats.page_type in fmt.DATA_PAGE_TYPES]
    return claims.locations is not None and bool(counts) and sum(counts) != claims.locations.shape[1] > 0


def _unencoded_sizes_disagree(claims: ChunkMetadataClaims) -> bool:
    sizes, whole = claims.unencoded_sizes, claims.metadata.size_statistics
    if not sizes or claims.locations is None:
        return False
    if len(sizes) != claims.locations.shape[1] or min(sizes) < 0:
        return True
    total = None if whole is None else whole.unencoded_byte_array_data_bytes
    return total is not None and total != sum(sizes)


_OFFSET_INDEX = (
    *(
        Check(Part.OFFSET_INDEX, "footer", claim, _has_location_fault(kind))
        for kind, claim in (
            (LocationFault.CHUNK, "pages of a column chunk at an impossible place"),
            (LocationFault.NO_PAGES, "no pages for the rows of the row group"),
            (LocationFault.OUTSIDE, "pages outside their column chunk"),
            (LocationFault.OVERLAP, "pages that overlap or do not ascend"),
            (LocationFault.ROWS, "first rows that do not ascend from 0 within the row group"),
            (LocationFault.ENDS, "pages that are not from the first data page to the end of the chunk"),
            (LocationFault.GAPS, "gaps between pages"),
        )
    ),
    Check(Part.OFFSET_INDEX, "footer", "another number of pages than encoding_stats", _page_counts_disagree),
    Check(Part.OFFSET_INDEX, "schema", "sizes of byte arrays in a column of another type",
          lambda claims: bool(claims.unencoded_sizes) and claims.column.physical_type is not Type.BYTE_ARRAY),
    Check(Part.OFFSET_INDEX, "footer", "other sizes of byte arrays than pages and the chunk", _unencoded_sizes_disagree),
)


# ---- column index


def _lists_disagree(claims: ChunkMetadataClaims) -> bool:
    """Return whether the lists in the index differ in length. Each must have one entry, or one histogram, per page."""
    index, column = claims.index, claims.column
    pages = len(index.null_pages)
    optional = (
        (index.null_counts, 1),
        (index.nan_counts, 1),
        (index.repetition_level_histograms, column.max_repetition_level + 1),
        (index.definition_level_histograms, column.max_definition_level + 1),
    )
    return not len(index.min_values) == len(index.max_values) == pages or any(
        counts and len(counts) != pages * width for counts, width in optional
    )


def _counts_are_negative(claims: ChunkMetadataClaims) -> bool:
    index = claims.index
    lists = (claims.null_counts, index.nan_counts, index.repetition_level_histograms, index.definition_level_histograms)
    return any(counts and min(counts) < 0 for counts in lists)


def _null_page_has_bounds(claims: ChunkMetadataClaims) -> bool:
    """Return whether a null page has bounds and no null count. parquet-rs wrote the previous page's bounds there."""
    pages = zip(claims.index.null_pages, claims.index.min_values, claims.index.max_values, strict=True)
    return claims.null_counts is None and any(is_null and (low or high) for is_null, low, high in pages)


def _null_pages_disagree(claims: ChunkMetadataClaims) -> bool:
    """Return whether the null pages differ from the pages that have as many nulls as rows."""
    nulls, rows = claims.null_counts, claims.page_rows
    if nulls is None or rows is None or not claims.has_row_values:
        return False
    return claims.index.null_pages != [null == row for null, row in zip(nulls, rows, strict=True)]


def _has_more_nulls_than_rows(claims: ChunkMetadataClaims) -> bool:
    nulls, rows = claims.null_counts, claims.page_rows
    if nulls is None or rows is None or not claims.has_row_values:
        return False
    return any(null > row for null, row in zip(nulls, rows, strict=True))


def _has_more_nans_than_values(claims: ChunkMetadataClaims) -> bool:
    nans, rows = claims.index.nan_counts, claims.page_rows
    if not nans or rows is None or not claims.has_row_values:
        return False
    nulls = claims.null_counts or [0] * len(rows)
    return any(nan > row - null for nan, null, row in zip(nans, nulls, rows, strict=True))


def _page_bound_is_no_value(claims: ChunkMetadataClaims) -> bool:
    index = claims.index
    has_bounds = [not is_null for is_null in index.null_pages]
    type_, both = claims.column.type, (index.min_values, index.max_values)
    return any(have_impossible_value(type_, list(compress(bounds, has_bounds))) for bounds in both)


def _boundary_order_is_wrong(claims: ChunkMetadataClaims) -> bool:
    index = claims.index
    if index.boundary_order == fmt.BoundaryOrder.UNORDERED or claims.order == Order.ORDER_NONE:
        return False
    sign = 1 if index.boundary_order == fmt.BoundaryOrder.ASCENDING else -1
    return not all(is_monotonic(claims.order, bounds, sign) for bounds in claims.page_bounds)


def _levels_disagree(claims: ChunkMetadataClaims) -> bool:
    """Return whether the level histograms of pages contradict the pages' rows, the pages' nulls or each other."""
    index, rows = claims.index, claims.page_rows
    if rows is None:
        return False
    levels = _histograms(index.definition_level_histograms, claims.column.max_definition_level + 1)
    repeats = _histograms(index.repetition_level_histograms, claims.column.max_repetition_level + 1)
    if repeats and [page[0] for page in repeats] != rows:
        return True
    if levels and repeats and [sum(page) for page in levels] != [sum(page) for page in repeats]:
        return True
    if not levels or not claims.has_row_values:
        return False
    nulls = claims.null_counts or [sum(page[:-1]) for page in levels]
    return [sum(page) for page in levels] != rows or [sum(page[:-1]) for page in levels] != nulls


def _histograms(histograms: list[int] | None, levels: int) -> list[list[int]]:
    """Split a list that holds the histograms of all pages into one list for each page."""
    return [(histograms or [])[start : start + levels] for start in range(0, len(histograms or []), levels)]


def _nulls_disagree_with_chunk(claims: ChunkMetadataClaims) -> bool:
    nulls = claims.null_counts
    return nulls is not None and claims.null_count is not None and sum(nulls) != claims.null_count


def _page_is_outside_chunk(claims: ChunkMetadataClaims) -> bool:
    """Return whether a page has a bound outside the chunk's bounds. Byte bounds may be shortened: both must then be outside."""
    order, (low, high), (lows, highs) = claims.order, claims.bounds, claims.page_bounds
    if not lows:
        return False
    if order == Order.ORDER_BYTES:
        lows, highs = highs, lows
    return _exceeds(claims, low, extreme(order, lows, -1)) or _exceeds(claims, extreme(order, highs, 1), high)


def _no_page_has_extreme(claims: ChunkMetadataClaims) -> bool:
    """Return whether the chunk's exact minimum or maximum is outside the bounds of all pages."""
    lows, highs = claims.page_bounds
    if not lows or len(lows) != claims.index.null_pages.count(False):
        return False
    low, high = claims.exact_bounds
    return _exceeds(claims, extreme(claims.order, lows, -1), low) or _exceeds(claims, high, extreme(claims.order, highs, 1))


_COLUMN_INDEX = (
    Check(Part.COLUMN_INDEX, "itself", "lists of different lengths", _lists_disagree),
    Check(Part.COLUMN_INDEX, "itself", "negative counts", _counts_are_negative),
    Check(Part.COLUMN_INDEX, "itself", "an unknown boundary order",
          lambda claims: claims.index.boundary_order not in (0, 1, 2)),
    Check(Part.COLUMN_INDEX, "schema", "null pages in a required column",
          lambda claims: claims.is_required and any(claims.index.null_pages)),
    Check(Part.COLUMN_INDEX, "schema", "nulls in pages of a required column",
          lambda claims: claims.is_required and any(claims.null_counts or ())),
    Check(Part.COLUMN_INDEX, "schema", "NaNs in pages of a column without floats",
          lambda claims: claims.order not in FLOAT_ORDERS and any(claims.index.nan_counts or ())),
    Check(Part.COLUMN_INDEX, "schema", "a bound of a page of an impossible length or outside the range of the type",
          _page_bound_is_no_value),
    Check(Part.COLUMN_INDEX, "itself", "bounds of a null page", _null_page_has_bounds),
    Check(Part.COLUMN_INDEX, "itself", "a page with its minimum above its maximum",
          lambda claims: exceed(claims.order, *claims.page_bounds)),
    Check(Part.COLUMN_INDEX, "itself", "a boundary order against the bounds", _boundary_order_is_wrong),
    Check(Part.COLUMN_INDEX, "offset index", "another number of pages than the offset index",
          lambda claims: claims.page_rows is not None and len(claims.index.null_pages) != len(claims.page_rows)),
    Check(Part.COLUMN_INDEX, "offset index", "more nulls than rows in a page", _has_more_nulls_than_rows),
    Check(Part.COLUMN_INDEX, "offset index", "other null pages than pages with as many nulls as rows", _null_pages_disagree),
    Check(Part.COLUMN_INDEX, "offset index", "more NaNs than values in a page", _has_more_nans_than_values),
    Check(Part.COLUMN_INDEX, "offset index", "other numbers of levels than rows and nulls in a page", _levels_disagree),
    Check(Part.COLUMN_INDEX, "statistics", "another number of nulls than the chunk", _nulls_disagree_with_chunk),
    Check(Part.COLUMN_INDEX, "statistics", "a page with bounds outside the bounds of the chunk", _page_is_outside_chunk),
    Check(Part.COLUMN_INDEX, "statistics", "no page around the exact minimum or maximum of the chunk", _no_page_has_extreme),
)


# ---- bloom filter


def _filter_is_elsewhere(claims: ChunkMetadataClaims) -> bool:
    filter_ = claims.filter
    room = filter_.file_size - filter_.offset
    return not 0 < filter_.offset < filter_.file_size or (filter_.length is not None and not 0 < filter_.length <= room)


def _filter_has_no_blocks(claims: ChunkMetadataClaims) -> bool:
    size = claims.filter.num_bytes
    return size is not None and (size <= 0 or size % BLOCK_BYTES != 0)


def _filter_has_another_length(claims: ChunkMetadataClaims) -> bool:
    filter_ = claims.filter
    if filter_.stored_size is None:
        return False
    return filter_.stored_size > filter_.file_size - filter_.offset or filter_.length not in (None, filter_.stored_size)


_BLOOM_FILTER = (
    Check(Part.BLOOM_FILTER, "footer", "a place outside the file", _filter_is_elsewhere),
    Check(Part.BLOOM_FILTER, "itself", "a size of other than whole blocks", _filter_has_no_blocks),
    Check(Part.BLOOM_FILTER, "footer", "another length than header and bitset", _filter_has_another_length),
    Check(Part.BLOOM_FILTER, "statistics", "no value in a chunk with values",
          lambda claims: claims.filter.has_bits is False and claims.null_count is not None
          and claims.null_count < claims.metadata.num_values),
    Check(Part.BLOOM_FILTER, "statistics", "no value like the exact minimum or maximum of the chunk",
          lambda claims: claims.filter.denies_bounds is True),
)

CHECKS = (*_STATISTICS, *_ENCODING_STATS, *_OFFSET_INDEX, *_COLUMN_INDEX, *_BLOOM_FILTER)
_CHECKS_OF = {part: tuple(check for check in CHECKS if check.part is part) for part in Part}
