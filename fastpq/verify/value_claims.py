"""Comparison of what a column chunk claims with what its pages hold: statistics, page index, bloom filter, sizes and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from fastpq import format as fmt
from fastpq.common.display import shorten
from fastpq.errors import ParquetError
from fastpq.filters.answers import values_of
from fastpq.filters.evidence import key_of_bound
from fastpq.filters.literals import domain_of
from fastpq.index.chunk_claims import Bound, ChunkMetadataClaims, Part
from fastpq.index.consistency_checks import fault
from fastpq.index.page_index import StoredIndexes
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.schema.types import Type
from fastpq.stats.bounds import FLOAT_ORDERS
from fastpq.stats.statistics import Order, compare, nan_count
from fastpq.stats.total_order import is_largest_finite
from fastpq.stats.usable_statistics import UsableStatistics
from fastpq.verify import sections
from fastpq.verify.findings import Findings, PlaceInFile
from fastpq.verify.measured_pages import MeasuredChunk, MeasuredPage

LONGEST_TEXT = 40       # characters of a value in a message
# Encodings that name the same thing, or that writers list beside the encodings of pages.
_DICTIONARY = {fmt.Encoding.PLAIN_DICTIONARY, fmt.Encoding.RLE_DICTIONARY}


class _Reporter(NamedTuple):
    """Reports violations of one chunk.

    Attributes:
        findings: gets the violations.
        place: the chunk.
        offsets: where parts of the file begin, if it is known.
        shows_values: whether messages may show values of the column.
    """

    findings: Findings
    place: PlaceInFile
    offsets: Mapping[str, int | None]
    shows_values: bool

    def __call__(self, part: str, section: str, message: str, page: int | None = None, *, harmless: bool = False) -> None:
        place = self.place._replace(page=page, offset=self.offsets.get(part))
        self.findings.violate(part, section, message, place, harmless=harmless)


def compare_claims(
    findings: Findings, claims: ChunkMetadataClaims, indexes: StoredIndexes | None, measured: MeasuredChunk, place: PlaceInFile,
    *, is_quick: bool, offsets: Mapping[str, int | None], shows_values: bool,
) -> None:
    """Compare everything that a chunk claims with its pages, and report what differs.

    Args:
        findings: gets the violations.
        claims: the claims of schema and footer.
        indexes: the page index, without parts that contradict themselves. None if it could not be read.
        measured: what the pages hold.
        place: the chunk.
        is_quick: whether the pages were not decoded.
        offsets: where the statistics, the page index and the bloom filter stand in the file, by the name of the part. Statistics
            stand in the footer.
        shows_values: whether messages may show values of the column. Those of an encrypted column stay out of reports.
    """
    if not measured.is_whole:
        return
    report = _Reporter(findings, place, offsets, shows_values)
    _compare_pages(report, claims.metadata, measured)
    if indexes is not None and indexes.offset_index is not None:
        _compare_locations(report, indexes.offset_index, measured)
    if is_quick or not measured.is_decoded:
        return
    if measured.num_rows != claims.num_rows:
        report("column chunk", sections.ROW_GROUP, f"{measured.num_rows} rows in a row group of {claims.num_rows}")
    _compare_statistics(report, claims, measured)
    _compare_size_statistics(report, claims.metadata.size_statistics, measured)
    _compare_geospatial(report, claims.metadata.geospatial_statistics, measured)
    if measured.missing_values:
        message = f"the filter denies {measured.missing_values} values of the chunk"
        report("bloom filter", sections.BLOOM_FILTER, message, measured.missing_page)
    if indexes is None:
        return
    if indexes.offset_index is not None:
        _compare_rows(report, indexes.offset_index, measured)
    if indexes.column_index is not None and len(indexes.column_index.null_pages) == len(measured.pages):
        for number, page in enumerate(measured.pages):
            _compare_page_index(report, claims, indexes.column_index, page, number)


# ---- pages and the entry of the chunk


def _compare_pages(report: _Reporter, metadata: fmt.ColumnMetaData, measured: MeasuredChunk) -> None:
    section = sections.CHUNK_METADATA
    for name, claim, number, is_harmless in (
        ("values", metadata.num_values, measured.num_values, False),
        ("stored bytes", metadata.total_compressed_size, measured.size, False),
        ("uncompressed bytes", metadata.total_uncompressed_size, measured.uncompressed_size, True),
    ):
        if claim != number:
            message = f"the entry claims {claim} {name}, and the pages have {number}"
            report("column chunk", section, message, harmless=is_harmless)
    if measured.pages and metadata.data_page_offset != measured.pages[0].offset:
        # Readers begin at the dictionary page. Some writers name it here, and have no dictionary_page_offset.
        has_dictionary = measured.dictionary_offset is not None
        message = "data_page_offset is not where the first data page begins"
        report("column chunk", section, message, harmless=has_dictionary)
    if metadata.dictionary_page_offset and metadata.dictionary_page_offset != measured.dictionary_offset:
        report("column chunk", section, "dictionary_page_offset is not where a dictionary page begins")
    claimed_encodings = {*metadata.encodings}
    for page_type, encoding in measured.kinds:
        names = _DICTIONARY if encoding in _DICTIONARY else {encoding}
        if page_type in fmt.DATA_PAGE_TYPES and not claimed_encodings & names:
            message = f"the entry does not list the encoding {_encoding_name(encoding)} of its pages"
            report("column chunk", section, message, harmless=True)
    _compare_encoding_stats(report, metadata, measured)


def _compare_encoding_stats(report: _Reporter, metadata: fmt.ColumnMetaData, measured: MeasuredChunk) -> None:
    stats = metadata.encoding_stats
    if not stats:
        return
    claimed_counts: Counter[tuple[bool, int]] = Counter()
    for each in stats:
        claimed_counts[each.page_type in fmt.DATA_PAGE_TYPES, _one_dictionary(each.encoding)] += each.count
    counts: Counter[tuple[bool, int]] = Counter()
    for (page_type, encoding), count in measured.kinds.items():
        counts[page_type in fmt.DATA_PAGE_TYPES, _one_dictionary(encoding)] += count
    for is_data, encoding in sorted({*claimed_counts, *counts}):
        claim, count = claimed_counts[is_data, encoding], counts[is_data, encoding]
        if is_data and claim != count:
            name = _encoding_name(encoding)
            report("encoding_stats", sections.ENCODING_STATS, f"{claim} data pages in {name}, and the chunk has {count}")


def _one_dictionary(encoding: int) -> int:
    return fmt.Encoding.RLE_DICTIONARY if encoding in _DICTIONARY else encoding


def _encoding_name(encoding: int) -> str:
    try:
        return fmt.Encoding(encoding).name
    except ValueError:
        return str(encoding)


# ---- offset index


def _compare_locations(report: _Reporter, index: fmt.OffsetIndex, measured: MeasuredChunk) -> None:
    """Compare the places of pages. The walk over the page headers tells them, without decoding."""
    locations, part, section = index.page_locations, "offset index", sections.PAGE_INDEX
    if len(locations) != len(measured.pages):
        report(part, section, f"{len(locations)} pages, and the chunk has {len(measured.pages)}")
        return
    for number, (location, page) in enumerate(zip(locations, measured.pages, strict=True)):
        if (location.offset, location.compressed_page_size) != (page.offset, page.size):
            report(part, section, "another place or size than the page has", number)
        if page.header_rows is not None:
            end = locations[number + 1].first_row_index if number + 1 < len(locations) else None
            if end is not None and end - location.first_row_index != page.header_rows:
                report(part, section, "another number of rows than the header of the page claims", number)


def _compare_rows(report: _Reporter, index: fmt.OffsetIndex, measured: MeasuredChunk) -> None:
    """Compare first rows and sizes of values, which only decoded pages tell."""
    part, section = "offset index", sections.PAGE_INDEX
    if len(index.page_locations) != len(measured.pages):
        return
    sizes = index.unencoded_byte_array_data_bytes or []
    for number, (location, page) in enumerate(zip(index.page_locations, measured.pages, strict=True)):
        if not page.begins_row:
            report(part, section, "a page that begins within a row, in a chunk with an offset index", number)
        elif location.first_row_index != page.first_row:
            report(part, section, f"first row {location.first_row_index}, and the page begins with row {page.first_row}", number)
        if len(sizes) == len(measured.pages) and page.value_bytes is not None and sizes[number] != page.value_bytes:
            report(part, section, f"{sizes[number]} bytes of values, and the page has {page.value_bytes}", number)


# ---- statistics


def _compare_statistics(report: _Reporter, claims: ChunkMetadataClaims, measured: MeasuredChunk) -> None:
    statistics, usable = claims.metadata.statistics, claims.usable
    if statistics is None or usable is None:
        return
    part, section = "statistics", sections.STATISTICS
    num_nulls, num_nans = measured.total("num_nulls"), measured.total("num_nans")
    for name, claim, number, least in (
        ("nulls", claims.null_count, num_nulls, measured.least_nulls),
        ("NaNs", statistics.nan_count, num_nans, num_nans),
        ("distinct values", statistics.distinct_count, measured.num_distinct, measured.num_distinct),
    ):
        if claim is not None and number is not None and least is not None and not least <= claim <= number:
            report(part, section, f"{claim} {name}, and the chunk has {number}")
    if fault(Part.STATISTICS, claims) is not None:
        return      # a bound may be no value of the type
    low, high = measured.extremes
    for side, noun, relation in _escaping(usable, claims.bounds, (low, high)):
        exactness = statistics.is_min_value_exact if side < 0 else statistics.is_max_value_exact
        message = f"a {noun} {relation} a value of the chunk" + (", although the bound claims to be exact" if exactness else "")
        report(part, section, message + _values_of(report, claims, noun, claims.bounds, (low, high), "chunk"))
    if low is None or high is None:
        return
    for name, flag, bound, value in (
        ("minimum", statistics.is_min_value_exact, claims.bounds[0], low),
        ("maximum", statistics.is_max_value_exact, claims.bounds[1], high),
    ):
        if flag and bound is not None and compare(usable.order, bound, value) and _is_inside(usable, name, bound, value):
            report(part, section, f"a {name} that claims to be exact, and is not a value of the chunk")


def _is_inside(usable: UsableStatistics, name: str, bound: bytes, value: bytes) -> bool:
    """Return whether a bound encloses the value. If it does not, that is reported already."""
    return compare(usable.order, bound, value) == (-1 if name == "minimum" else 1)


def _values_of(
    report: _Reporter, claims: ChunkMetadataClaims, noun: str, bounds: tuple[Bound, Bound], values: tuple[Bound, Bound],
    owner: str,
) -> str:
    """Return a sentence with a wrong bound and the value, or "" if the report shows no values."""
    bound, value = (each[noun == "maximum"] for each in (bounds, values))
    if not report.shows_values or claims.usable is None or bound is None or value is None:
        return ""
    return contrast(claims.column, claims.usable, noun, bound, value, owner)


def _escaping(
    usable: UsableStatistics, bounds: tuple[Bound, Bound], values: tuple[Bound, Bound]
) -> list[tuple[int, str, str]]:
    """Return which bounds do not enclose the values: the side, -1 or 1, what the bound is, and how it lies to the value.

    Args:
        usable: how bounds are compared.
        bounds: the claimed minimum and maximum, or None.
        values: the extremes of the values, or None if there are only nulls and NaNs.
    """
    contradictions = []
    for side, noun, relation, bound, value in zip(
        (-1, 1), ("minimum", "maximum"), ("above", "below"), bounds, values, strict=True
    ):
        if bound is None or value is None or usable.order == Order.ORDER_NONE:
            continue
        if not usable.infinities and is_largest_finite(bound, -side):
            continue        # a known mistake of the writer, in place of an infinity
        if compare(usable.order, bound, value) * side < 0:
            contradictions.append((side, noun, relation))
    return contradictions


def _compare_size_statistics(report: _Reporter, sizes: fmt.SizeStatistics | None, measured: MeasuredChunk) -> None:
    if sizes is None:
        return
    part, section = "statistics", sections.SIZE_STATISTICS
    for name, claim in (
        ("repetition_counts", sizes.repetition_level_histogram), ("definition_counts", sizes.definition_level_histogram),
    ):
        counts = measured.level_totals(name)
        if claim and counts is not None and list(claim) != counts:
            report(part, section, f"a histogram of {name.removesuffix('_counts')} levels that differs from the pages")
    claimed_bytes, value_bytes = sizes.unencoded_byte_array_data_bytes, measured.total("value_bytes")
    if measured.column.physical_type is Type.BYTE_ARRAY and claimed_bytes is not None and claimed_bytes != value_bytes:
        report(part, section, f"{claimed_bytes} bytes of values, and the chunk has {value_bytes}")


def _compare_geospatial(report: _Reporter, claim: fmt.GeospatialStatistics | None, measured: MeasuredChunk) -> None:
    truth = measured.geospatial_statistics
    if claim is None or truth is None:
        return
    part, section = "statistics", sections.GEOSPATIAL
    if claim.bbox is not None and truth.bbox is not None:
        for axis in "xyzm":
            low, high = getattr(claim.bbox, f"{axis}min"), getattr(claim.bbox, f"{axis}max")
            true_low, true_high = getattr(truth.bbox, f"{axis}min"), getattr(truth.bbox, f"{axis}max")
            if None in (low, high, true_low, true_high) or (axis == "x" and (low > high or true_low > true_high)):
                continue        # a box that crosses the antimeridian has its minimum above its maximum
            if true_low < low or true_high > high:
                report(part, section, f"a bounding box that does not enclose the {axis} of a geometry")
    if claim.geospatial_types and truth.geospatial_types and {*truth.geospatial_types} - {*claim.geospatial_types}:
        report(part, section, "a type of geometry that geospatial_types does not list")


# ---- column index


def _compare_page_index(
    report: _Reporter, claims: ChunkMetadataClaims, index: fmt.ColumnIndex, page: MeasuredPage, number: int
) -> None:
    part, section, usable, column = "column index", sections.PAGE_INDEX, claims.usable, claims.column
    num_values = page.num_values - page.num_nulls
    is_null = index.null_pages[number]
    if is_null != (num_values == 0) and (is_null or page.num_values):
        report(part, section, f"{'a null page' if is_null else 'no null page'}, and {num_values} values are not null", number)
        return
    counts_are_usable = usable is None or usable.null_counts
    for name, counts, count in (
        ("nulls", index.null_counts if counts_are_usable else None, page.num_nulls), ("NaNs", index.nan_counts, page.num_nans),
    ):
        if counts and count is not None and counts[number] not in (count, -1):
            report(part, section, f"{counts[number]} {name}, and the page has {count}", number)
    for name, histograms, width in (
        ("repetition", index.repetition_level_histograms, column.max_repetition_level + 1),
        ("definition", index.definition_level_histograms, column.max_definition_level + 1),
    ):
        own_counts: Any = getattr(page, f"{name}_counts")
        if histograms and own_counts is not None and list(histograms[number * width : (number + 1) * width]) != own_counts:
            report(part, section, f"a histogram of {name} levels that differs from the page", number)
    if is_null or usable is None or not usable.bounds:
        return
    bounds: tuple[Bound, Bound] = index.min_values[number], index.max_values[number]
    if column.physical_type is Type.BYTE_ARRAY and bounds[1] == b"" and page.high != b"":
        bounds = bounds[0], None        # some writers store no bound in place of a long text
    if usable.order in FLOAT_ORDERS:
        bounds = _without_nans(claims, bounds)
    for _, noun, relation in _escaping(usable, bounds, (page.low, page.high)):
        message = f"a {noun} {relation} a value of the page"
        report(part, section, message + _values_of(report, claims, noun, bounds, (page.low, page.high), "page"), number)


def _without_nans(claims: ChunkMetadataClaims, bounds: tuple[Bound, Bound]) -> tuple[Bound, Bound]:
    low, high = (None if bound is None or nan_count(claims.order, bound) > 0 else bound for bound in bounds)
    return low, high


def contrast(column: ColumnDescriptor, usable: UsableStatistics, noun: str, bound: bytes, value: bytes, owner: str) -> str:
    """Return a sentence with a bound and the value that it does not enclose, or "" if they cannot be printed.

    Args:
        column: the column.
        usable: how bounds are compared.
        noun: what the bound is.
        bound, value: in the form of statistics.
        owner: what holds the value.
    """
    texts = [_printed(column, usable, each) for each in (bound, value)]
    if None in texts or texts[0] == texts[1]:       # long texts may differ in the part that is cut off
        return ""
    return f": the {noun} is {texts[0]}, but the {owner} holds {texts[1]}"


def _printed(column: ColumnDescriptor, usable: UsableStatistics, bound: bytes) -> str | None:
    try:
        key = key_of_bound(domain_of(column.type), usable, bound)
        if key is None:
            return None
        (value,) = values_of([key], column.type)
    except (ParquetError, ValueError, NotImplementedError):     # a cut text, or a type without an order
        return None
    if isinstance(value, bytes):
        return shorten(f"0x{value.hex()}", LONGEST_TEXT)
    return shorten(repr(value) if isinstance(value, str) else str(value), LONGEST_TEXT)
