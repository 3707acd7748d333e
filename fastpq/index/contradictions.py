"""CHECKS: claims about a column chunk refuted by the schema, the footer or another index, in one table.

Evidence with a refuted claim is not used by filters: more rows are read, and the same rows are found.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Literal, NamedTuple

from fastpq import format as fmt
from fastpq.errors import FormatError
from fastpq.index.bloom_size import BLOCK_BYTES
from fastpq.index.claims import Bound, Claims, Part
from fastpq.index.page_locations import LocationFault
from fastpq.schema.types import Integer, Type
from fastpq.stats.bounds import bound_lengths
from fastpq.stats.statistics import Order, compare, exceed, extreme, is_monotonic
from fastpq.stats.trust import FLOAT_ORDERS

Refuter = Literal["itself", "schema", "footer", "statistics", "offset index"]

_LEVEL_ENCODINGS = {fmt.Encoding.RLE, fmt.Encoding.BIT_PACKED}


class Check(NamedTuple):
    """One row of the table.

    Attributes:
        part: the unused part of the file if the claim is refuted.
        against: the refuting part.
        claim: the refuted claim.
        is_refuted: compares; the checks of a part before this one have passed.
    """

    part: Part
    against: Refuter
    claim: str
    is_refuted: Callable[[Claims], bool]


def fault(part: Part, claims: Claims) -> str | None:
    """The first refuted claim of a part; None if no claim is refuted."""
    for check in _CHECKS_OF[part]:
        if check.is_refuted(claims):
            return check.claim
    return None


def refuse_refuted(part: Part, claims: Claims) -> None:
    """Raises FormatError for a part with a refuted claim."""
    if (claim := fault(part, claims)) is not None:
        raise FormatError(claim)


def without_refuted_statistics(claims: Claims) -> Claims:
    """The same claims, for comparisons with indexes: without refuted statistics."""
    if claims.trust is None or fault(Part.STATISTICS, claims) is None:
        return claims
    metadata = copy.copy(claims.metadata)
    metadata.statistics = None
    return Claims(claims.column, claims.num_rows, metadata, claims.trust)


# ---- statistics


def _has_no_values(claims: Claims, bounds: Sequence[Bound]) -> bool:
    """Whether a bound has an impossible length, or is outside the range of the column's type."""
    type_ = claims.column.type
    shortest, longest = bound_lengths(type_)
    for bound in bounds:
        if bound is not None and not shortest <= len(bound) <= longest:
            return True
    if type_.physical is Type.BOOLEAN:
        return any(bound is not None and bound[0] > 1 for bound in bounds)
    if type_.physical is Type.INT32 and isinstance(type_.logical, Integer) and type_.logical.bit_width < 32:
        signed, bits = type_.logical.signed, type_.logical.bit_width
        values = (int.from_bytes(bound, "little", signed=True) for bound in bounds if bound is not None)
        return any(not (-(1 << bits - 1) <= value < 1 << bits - 1 if signed else 0 <= value < 1 << bits) for value in values)
    return False


def _exceeds(claims: Claims, left: Bound, right: Bound) -> bool:
    """Whether a bound is greater than another; False for an unknown bound, for NaN and for a column without an order."""
    return left is not None and right is not None and compare(claims.order, left, right) > 0


def _disagrees_with_deprecated(claims: Claims) -> bool:
    stored, trust = claims.metadata.statistics, claims.trust
    if stored is None or trust is None or not (trust.bounds and trust.deprecated_bounds):
        return False
    return any(
        old is not None and new is not None and (_has_no_values(claims, [old]) or compare(claims.order, old, new) != 0)
        for old, new in ((stored.min, stored.min_value), (stored.max, stored.max_value))
    )


def _exact_bound_is_short(claims: Claims) -> bool:
    stored, length = claims.metadata.statistics, claims.column.type.length
    if stored is None or claims.column.physical_type is not Type.FIXED_LEN_BYTE_ARRAY:
        return False
    flags = (stored.is_min_value_exact, stored.is_max_value_exact)
    return any(
        flag is True and bound is not None and len(bound) != length for flag, bound in zip(flags, claims.bounds, strict=True)
    )


def _chunk_is_null_with_bounds(claims: Claims) -> bool:
    return claims.null_count == claims.metadata.num_values > 0 and claims.bounds != (None, None)


def _number_of(claims: Claims, name: Literal["distinct_count", "nan_count"]) -> int | None:
    stored = claims.metadata.statistics
    return None if stored is None else getattr(stored, name)


def _is_over_values(claims: Claims, count: int | None) -> bool:
    """Whether a count is negative or above the number of values other than null."""
    return count is not None and not 0 <= count <= claims.metadata.num_values - (claims.null_count or 0)


def _sizes_disagree(claims: Claims) -> bool:
    """Whether the level histograms of the chunk contradict its number of values, nulls or rows."""
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
    expected = claims.column.max_repetition_level + 1
    return len(repeats) != expected or min(repeats) < 0 or sum(repeats) != num_values or repeats[0] != claims.num_rows


_STATISTICS = (
    Check(Part.STATISTICS, "footer", "another number of values than rows in a column without repetition",
          lambda claims: claims.has_row_values and claims.metadata.num_values != claims.num_rows),
    Check(Part.STATISTICS, "footer", "a null count below 0 or above the number of values",
          lambda claims: claims.null_count is not None and not 0 <= claims.null_count <= claims.metadata.num_values),
    Check(Part.STATISTICS, "schema", "nulls in a required column",
          lambda claims: claims.is_required and bool(claims.null_count)),
    Check(Part.STATISTICS, "schema", "a bound of an impossible length or outside the range of the type",
          lambda claims: _has_no_values(claims, claims.bounds)),
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


def _encodings_disagree(claims: Claims) -> bool:
    """Whether encoding_stats lacks an encoding; parquet-cpp lists PLAIN for the dictionary page of PLAIN_DICTIONARY."""
    counted = {stats.encoding for stats in claims.metadata.encoding_stats or ()}
    of_dictionary = {fmt.Encoding.PLAIN} if claims.metadata.dictionary_page_offset else set()
    return bool(counted) and bool(set(claims.metadata.encodings) - _LEVEL_ENCODINGS - of_dictionary - counted)


_ENCODING_STATS = (
    Check(Part.ENCODING_STATS, "footer", "fewer encodings in encoding_stats than in encodings", _encodings_disagree),
    Check(Part.ENCODING_STATS, "footer", "a number of pages below 0 in encoding_stats",
          lambda claims: any(stats.count < 0 for stats in claims.metadata.encoding_stats or ())),
)


# ---- offset index


def _has_location_fault(kind: LocationFault) -> Callable[[Claims], bool]:
    return lambda claims: claims.location_fault == kind


def _page_counts_disagree(claims: Claims) -> bool:
    counts = [stats.count for stats in claims.metadata.encoding_stats or () if stats.page_type in fmt.DATA_PAGE_TYPES]
    return claims.locations is not None and bool(counts) and sum(counts) != claims.locations.shape[1] > 0


def _unencoded_sizes_disagree(claims: Claims) -> bool:
    sizes, whole = claims.unencoded, claims.metadata.size_statistics
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
          lambda claims: bool(claims.unencoded) and claims.column.physical_type is not Type.BYTE_ARRAY),
    Check(Part.OFFSET_INDEX, "footer", "other sizes of byte arrays than pages and the chunk", _unencoded_sizes_disagree),
)


# ---- column index


def _lists_disagree(claims: Claims) -> bool:
    """Whether the lists of the index, one entry a page, have different lengths."""
    index, column = claims.column_index, claims.column
    if index is None:
        return False
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


def _counts_are_negative(claims: Claims) -> bool:
    index = claims.column_index
    if index is None:
        return False
    lists = (claims.null_counts, index.nan_counts, index.repetition_level_histograms, index.definition_level_histograms)
    return any(counts and min(counts) < 0 for counts in lists)


def _null_page_has_bounds(claims: Claims) -> bool:
    """Whether a null page has bounds, and no null count confirms the null page; parquet-rs wrote bounds of the page before."""
    index = claims.column_index
    return index is not None and claims.null_counts is None and any(
        is_null and (low or high)
        for is_null, low, high in zip(index.null_pages, index.min_values, index.max_values, strict=True)
    )


def _null_pages_disagree(claims: Claims) -> bool:
    """Whether the null pages are other pages than the pages with as many nulls as rows."""
    index, nulls, rows = claims.column_index, claims.null_counts, claims.page_rows
    if index is None or nulls is None or rows is None or not claims.has_row_values:
        return False
    return index.null_pages != [null == row for null, row in zip(nulls, rows, strict=True)]


def _has_more_nulls_than_rows(claims: Claims) -> bool:
    nulls, rows = claims.null_counts, claims.page_rows
    if nulls is None or rows is None or not claims.has_row_values:
        return False
    return any(null > row for null, row in zip(nulls, rows, strict=True))


def _has_more_nans_than_values(claims: Claims) -> bool:
    index, rows = claims.column_index, claims.page_rows
    if index is None or not index.nan_counts or rows is None or not claims.has_row_values:
        return False
    nulls = claims.null_counts or [0] * len(rows)
    return any(nan > row - null for nan, null, row in zip(index.nan_counts, nulls, rows, strict=True))


def _page_bound_is_no_value(claims: Claims) -> bool:
    index = claims.column_index
    if index is None:
        return False
    known = [not is_null for is_null in index.null_pages]
    return any(_has_no_values(claims, list(compress(bounds, known))) for bounds in (index.min_values, index.max_values))


def _boundary_order_is_wrong(claims: Claims) -> bool:
    index = claims.column_index
    if index is None or index.boundary_order == fmt.BoundaryOrder.UNORDERED or claims.order == Order.ORDER_NONE:
        return False
    sign = 1 if index.boundary_order == fmt.BoundaryOrder.ASCENDING else -1
    return not all(is_monotonic(claims.order, bounds, sign) for bounds in claims.page_bounds)


def _levels_disagree(claims: Claims) -> bool:
    """Whether the level histograms of pages contradict their rows, their nulls or each other."""
    index, rows = claims.column_index, claims.page_rows
    if index is None or rows is None:
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


def _histograms(stored: list[int] | None, levels: int) -> list[list[int]]:
    """The histogram of each page."""
    return [(stored or [])[start : start + levels] for start in range(0, len(stored or []), levels)]


def _nulls_disagree_with_chunk(claims: Claims) -> bool:
    nulls = claims.null_counts
    return nulls is not None and claims.null_count is not None and sum(nulls) != claims.null_count


def _page_is_outside_chunk(claims: Claims) -> bool:
    """Whether a page cannot have a value within the bounds of the chunk; bounds of bytes may be shortened, others not."""
    order, (low, high), (lows, highs) = claims.order, claims.bounds, claims.page_bounds
    if not lows:
        return False
    if order == Order.ORDER_BYTES:
        lows, highs = highs, lows
    return _exceeds(claims, low, extreme(order, lows, -1)) or _exceeds(claims, extreme(order, highs, 1), high)


def _no_page_has_extreme(claims: Claims) -> bool:
    """Whether the exact minimum or maximum of the chunk is outside the bounds of all pages."""
    index, (lows, highs) = claims.column_index, claims.page_bounds
    if index is None or not lows or len(lows) != index.null_pages.count(False):
        return False
    low, high = claims.exact_bounds
    return _exceeds(claims, extreme(claims.order, lows, -1), low) or _exceeds(claims, high, extreme(claims.order, highs, 1))


_COLUMN_INDEX = (
    Check(Part.COLUMN_INDEX, "itself", "lists of different lengths", _lists_disagree),
    Check(Part.COLUMN_INDEX, "itself", "negative counts", _counts_are_negative),
    Check(Part.COLUMN_INDEX, "itself", "an unknown boundary order",
          lambda claims: claims.column_index is not None and claims.column_index.boundary_order not in (0, 1, 2)),
    Check(Part.COLUMN_INDEX, "schema", "null pages in a required column",
          lambda claims: claims.is_required and claims.column_index is not None and any(claims.column_index.null_pages)),
    Check(Part.COLUMN_INDEX, "schema", "nulls in pages of a required column",
          lambda claims: claims.is_required and any(claims.null_counts or ())),
    Check(Part.COLUMN_INDEX, "schema", "NaNs in pages of a column without floats",
          lambda claims: claims.order not in FLOAT_ORDERS
          and claims.column_index is not None and any(claims.column_index.nan_counts or ())),
    Check(Part.COLUMN_INDEX, "schema", "a bound of a page of an impossible length or outside the range of the type",
          _page_bound_is_no_value),
    Check(Part.COLUMN_INDEX, "itself", "bounds of a null page", _null_page_has_bounds),
    Check(Part.COLUMN_INDEX, "itself", "a page with its minimum above its maximum",
          lambda claims: exceed(claims.order, *claims.page_bounds)),
    Check(Part.COLUMN_INDEX, "itself", "a boundary order against the bounds", _boundary_order_is_wrong),
    Check(Part.COLUMN_INDEX, "offset index", "another number of pages than the offset index",
          lambda claims: claims.column_index is not None and claims.page_rows is not None
          and len(claims.column_index.null_pages) != len(claims.page_rows)),
    Check(Part.COLUMN_INDEX, "offset index", "more nulls than rows in a page", _has_more_nulls_than_rows),
    Check(Part.COLUMN_INDEX, "offset index", "other null pages than pages with as many nulls as rows", _null_pages_disagree),
    Check(Part.COLUMN_INDEX, "offset index", "more NaNs than values in a page", _has_more_nans_than_values),
    Check(Part.COLUMN_INDEX, "offset index", "other numbers of levels than rows and nulls in a page", _levels_disagree),
    Check(Part.COLUMN_INDEX, "statistics", "another number of nulls than the chunk", _nulls_disagree_with_chunk),
    Check(Part.COLUMN_INDEX, "statistics", "a page with bounds outside the bounds of the chunk", _page_is_outside_chunk),
    Check(Part.COLUMN_INDEX, "statistics", "no page around the exact minimum or maximum of the chunk", _no_page_has_extreme),
)


# ---- bloom filter


def _filter_is_elsewhere(claims: Claims) -> bool:
    filter_ = claims.bloom_filter
    if filter_ is None:
        return False
    room = filter_.file_size - filter_.offset
    return not 0 < filter_.offset < filter_.file_size or (filter_.length is not None and not 0 < filter_.length <= room)


def _filter_has_no_blocks(claims: Claims) -> bool:
    size = None if claims.bloom_filter is None else claims.bloom_filter.num_bytes
    return size is not None and (size <= 0 or size % BLOCK_BYTES != 0)


def _filter_has_another_length(claims: Claims) -> bool:
    filter_ = claims.bloom_filter
    if filter_ is None or filter_.stored_size is None:
        return False
    return filter_.stored_size > filter_.file_size - filter_.offset or filter_.length not in (None, filter_.stored_size)


_BLOOM_FILTER = (
    Check(Part.BLOOM_FILTER, "footer", "a place outside the file", _filter_is_elsewhere),
    Check(Part.BLOOM_FILTER, "itself", "a size of other than whole blocks", _filter_has_no_blocks),
    Check(Part.BLOOM_FILTER, "footer", "another length than header and bitset", _filter_has_another_length),
    Check(Part.BLOOM_FILTER, "statistics", "no value in a chunk with values",
          lambda claims: claims.bloom_filter is not None and claims.bloom_filter.has_bits is False
          and claims.null_count is not None and claims.null_count < claims.metadata.num_values),
    Check(Part.BLOOM_FILTER, "statistics", "no value like the exact minimum or maximum of the chunk",
          lambda claims: claims.bloom_filter is not None and claims.bloom_filter.denies_bounds is True),
)

CHECKS = (*_STATISTICS, *_ENCODING_STATS, *_OFFSET_INDEX, *_COLUMN_INDEX, *_BLOOM_FILTER)
_CHECKS_OF = {part: tuple(check for check in CHECKS if check.part is part) for part in Part}
