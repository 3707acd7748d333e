"""Each row of consistency_checks.CHECKS has forged files; their filters find the rows of the whole table."""

from __future__ import annotations

import functools
import io
import math
import operator
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.filters.evidence import claims_of
from fastpq.index.chunk_claims import Part
from fastpq.index.consistency_checks import CHECKS, fault
from tests.index.forging import Chunk, Forgery
from tests.narrowing import present
from tests.requirements import DATA, needs_data

ROWS, PAGE_ROWS = 600, 50
PAGES = ROWS // PAGE_ROWS
NO_PAGE = range(100, 200)       # rows of null pages


def value_of(row: int) -> int | None:
    return None if row % 3 == 0 or row in NO_PAGE else row


@functools.cache
def table() -> pa.Table:
    text = [f"{row:04}" for row in range(ROWS)]
    fields = [
        pa.field("number", pa.int64(), nullable=False),
        pa.field("maybe", pa.int64()),
        pa.field("float", pa.float64()),
        pa.field("text", pa.string()),
        pa.field("fixed", pa.binary(4), nullable=False),
        pa.field("small", pa.int8(), nullable=False),
        pa.field("word", pa.string(), nullable=False),
    ]
    columns = [
        range(ROWS),
        [value_of(row) for row in range(ROWS)],
        [None if row % 7 == 0 else row / 2 for row in range(ROWS)],
        [None if row % 5 == 0 else text[row] for row in range(ROWS)],
        [struct.pack(">i", row) for row in range(ROWS)],
        [row // 5 - 60 for row in range(ROWS)],
        [f"word {row // 2}" for row in range(ROWS)],
    ]
    return pa.table([pa.array(values, kept.type) for values, kept in zip(columns, fields, strict=True)], pa.schema(fields))


@functools.cache
def original() -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        table(), sink, max_rows_per_page=PAGE_ROWS, write_batch_size=10, write_page_index=True, compression="none",
        use_dictionary=["word"], dictionary_pagesize_limit=700, bloom_filter_options={"number": {"ndv": ROWS, "fpp": 0.01}},
    )
    return sink.getvalue()


def column(name: str) -> int:
    return int(table().schema.get_field_index(name))


# ---- lies that lead filters astray, if the statistics or the index are used


def wrong_bounds(chunk: Chunk) -> None:
    """Bounds around the last page alone."""
    index, stats = chunk.pages, chunk.statistics
    stats.min_value, stats.max_value = index.min_values[-1], index.max_values[-1]
    stats.min = stats.max = None


def wrong_pages(chunk: Chunk) -> None:
    """Each page with the bounds of another."""
    index = chunk.pages
    kept = [page for page in range(PAGES) if not index.null_pages[page]]
    for name in ("min_values", "max_values"):
        bounds = getattr(index, name)
        known = [bounds[page] for page in kept]
        for page, bound in zip(kept, reversed(known), strict=True):
            bounds[page] = bound
    index.boundary_order = fmt.BoundaryOrder.UNORDERED


def set_pages(change: Callable[[list[fmt.PageLocation]], Any]) -> Callable[[Chunk], None]:
    return lambda chunk: change(chunk.offset_index.page_locations) and None


def with_statistics(**fields: Any) -> Callable[[Chunk], None]:
    def change(chunk: Chunk) -> None:
        wrong_bounds(chunk)
        for name, value in fields.items():
            setattr(chunk.statistics, name, value)

    return change


def with_pages(name: str, change: Callable[[Any], Any]) -> Callable[[Chunk], None]:
    """Wrong pages, and one altered list."""

    def altered(chunk: Chunk) -> None:
        wrong_pages(chunk)
        setattr(chunk.pages, name, change(getattr(chunk.pages, name)))

    return altered


def at(page: int, value: Any) -> Callable[[list[Any] | None], list[Any]]:
    """A list of one entry a page with another entry."""
    return lambda known: [value if number == page else each for number, each in enumerate(known or [0] * PAGES)]


def int64(value: int) -> bytes:
    return struct.pack("<q", value)


def double(value: float) -> bytes:
    return struct.pack("<d", value)


def no_values(chunk: Chunk) -> None:
    chunk.bitset[:] = bytes(len(chunk.bitset))


def other_values(chunk: Chunk) -> None:
    """The filter of the second half of the values."""
    found = fastpq.SplitBlockBloomFilter(len(chunk.bitset))
    found.insert(np.arange(ROWS // 2, ROWS).view(np.uint8), 8)
    chunk.bitset[:] = found.bitset.tobytes()


def in_half(chunk: Chunk) -> None:
    """Half of the filter, with another length in the footer."""
    other_values(chunk)
    chunk.bloom_length = 32


def odd_blocks(chunk: Chunk) -> None:
    assert chunk.bloom_header is not None
    chunk.bloom_header.numBytes -= 5
    del chunk.bitset[-5:]


def pages_of_another_order(chunk: Chunk) -> None:
    wrong_pages(chunk)
    chunk.pages.boundary_order = fmt.BoundaryOrder.ASCENDING


def null_chunk(chunk: Chunk) -> None:
    chunk.statistics.null_count = ROWS


def levels(chunk: Chunk) -> None:
    wrong_bounds(chunk)
    chunk.metadata.size_statistics = fmt.SizeStatistics(definition_level_histogram=[1, ROWS - 1])


def repeats(chunk: Chunk) -> None:
    wrong_bounds(chunk)
    chunk.metadata.size_statistics = fmt.SizeStatistics(repetition_level_histogram=[ROWS - 1])


def page_levels(chunk: Chunk) -> None:
    wrong_pages(chunk)
    chunk.pages.definition_level_histograms = [0, PAGE_ROWS] * PAGES


def more_pages(chunk: Chunk) -> None:
    """One page more than the OffsetIndex has, between two others."""
    index = chunk.pages
    lists: tuple[list[Any], ...] = (index.null_pages, index.min_values, index.max_values, index.null_counts or [])
    for values in lists:
        values.insert(0, values[0])
    index.definition_level_histograms = index.repetition_level_histograms = None
    chunk.statistics.null_count = None


def unknown_null_page(chunk: Chunk) -> None:
    """A null page with bounds, and no null counts to confirm the null page."""
    chunk.pages.null_pages[0] = True
    chunk.pages.null_counts = chunk.pages.definition_level_histograms = None


def denied_null_page(chunk: Chunk) -> None:
    """A null page without bounds; the null counts know of its values."""
    index = chunk.pages
    index.null_pages[0], index.min_values[0], index.max_values[0] = True, b"", b""
    index.definition_level_histograms = None


def null_page_of_required(chunk: Chunk) -> None:
    denied_null_page(chunk)
    chunk.pages.null_counts = None


def all_nulls_of_required(chunk: Chunk) -> None:
    """Null pages without the flag null_pages: nulls in all rows."""
    chunk.pages.null_counts = [PAGE_ROWS] * PAGES


def moved_nulls(chunk: Chunk) -> None:
    """The null count of one page is another one's."""
    wrong_pages(chunk)
    counts = chunk.pages.null_counts or []
    counts[0] += 1
    chunk.pages.definition_level_histograms = None


def beside_chunk(chunk: Chunk) -> None:
    """Pages shifted by a thousand: outside the bounds of the chunk."""
    index = chunk.pages
    for values in (index.min_values, index.max_values):
        values[:] = [bound and int64(int.from_bytes(bound, "little") + 1000) for bound in values]


def beside_text(chunk: Chunk) -> None:
    index = chunk.pages
    for values in (index.min_values, index.max_values):
        values[:] = [b"z" + bound for bound in values]


def without_extremes(chunk: Chunk) -> None:
    """All pages have the bounds of a page in the middle."""
    index = chunk.pages
    for values in (index.min_values, index.max_values):
        values[:] = [values[5]] * PAGES
    index.boundary_order = fmt.BoundaryOrder.UNORDERED


def only_dictionary(*others: int, count: int | None = None) -> Callable[[Chunk], None]:
    """The pages behind the dictionary page deny their PLAIN values."""

    def change(chunk: Chunk) -> None:
        stats = [each for each in chunk.metadata.encoding_stats or [] if each.encoding != fmt.Encoding.PLAIN]
        chunk.metadata.encoding_stats = stats
        if count is not None:
            stats.append(fmt.PageEncodingStats(page_type=0, encoding=fmt.Encoding.RLE_DICTIONARY, count=count))
        chunk.metadata.encodings += others

    return change


def one_page_less(chunk: Chunk) -> None:
    chunk.metadata.encoding_stats = [
        fmt.PageEncodingStats(page_type=0, encoding=fmt.Encoding.PLAIN, count=PAGES - 1),
    ]


def unencoded(sizes: list[int]) -> Callable[[Chunk], None]:
    def change(chunk: Chunk) -> None:
        chunk.offset_index.unencoded_byte_array_data_bytes = sizes

    return change


def another_chunk_size(chunk: Chunk) -> None:
    """An index of a chunk without rows; the rows are of the row group."""
    chunk.offset_index.page_locations.clear()
    chunk.offset_index.unencoded_byte_array_data_bytes = None
    chunk.column_index = None


def elsewhere(chunk: Chunk) -> None:
    chunk.bloom_offset = 1 << 40


# column and change, by the claim
FORGERIES: dict[str, list[tuple[str, Callable[[Chunk], Any]]]] = {
    "a null count below 0 or above the number of values": [
        ("maybe", with_statistics(null_count=ROWS + 1)),
        ("number", with_statistics(null_count=-7)),
    ],
    "nulls in a required column": [("number", with_statistics(null_count=3))],
    "a bound of an impossible length or outside the range of the type": [
        ("number", with_statistics(min_value=b"\xff\xff\xff")),
        ("small", with_statistics(max_value=struct.pack("<i", 300))),
        ("fixed", with_statistics(max_value=b"12345")),
    ],
    "an exact bound of another length than the values": [
        ("fixed", with_statistics(min_value=b"\0\0\2", is_min_value_exact=True)),
    ],
    "a minimum above the maximum": [
        ("number", with_statistics(min_value=int64(5), max_value=int64(-5))),
        ("text", with_statistics(min_value=b"1", max_value=b"0")),
    ],
    "other bounds in min and max than in min_value and max_value": [("number", with_statistics(min=int64(0), max=int64(ROWS)))],
    "bounds of a chunk of nulls alone": [("maybe", null_chunk)],
    "a number of distinct values below 0 or above the number of values": [
        ("number", with_statistics(distinct_count=ROWS + 1)),
        ("maybe", with_statistics(distinct_count=-1)),
    ],
    "a number of NaNs below 0 or above the number of values": [("float", with_statistics(nan_count=ROWS))],
    "NaNs in a column without floats": [("number", with_statistics(nan_count=1))],
    "other numbers of levels than values, nulls and rows": [("maybe", levels), ("number", repeats)],
    "fewer encodings in encoding_stats than in encodings": [("word", only_dictionary(fmt.Encoding.DELTA_BYTE_ARRAY))],
    "a number of pages below 0 in encoding_stats": [("word", only_dictionary(count=-1))],
    "no pages for the rows of the row group": [("number", another_chunk_size)],
    "pages outside their column chunk": [
        ("number", set_pages(lambda pages: setattr(pages[-1], "compressed_page_size", 1 << 30))),
        ("maybe", set_pages(lambda pages: setattr(pages[0], "offset", 0))),
    ],
    "pages that overlap or do not ascend": [
        ("number", set_pages(lambda pages: setattr(pages[3], "offset", pages[2].offset))),
        ("text", set_pages(lambda pages: setattr(pages[3], "offset", pages[3].offset - 8))),
    ],
    "first rows that do not ascend from 0 within the row group": [
        ("number", set_pages(lambda pages: setattr(pages[3], "first_row_index", pages[2].first_row_index))),
        ("maybe", set_pages(lambda pages: setattr(pages[-1], "first_row_index", ROWS))),
        ("text", set_pages(lambda pages: setattr(pages[0], "first_row_index", 1))),
    ],
    "pages that are not from the first data page to the end of the chunk": [("number", set_pages(lambda pages: pages.pop()))],
    "gaps between pages": [("number", set_pages(lambda pages: pages.pop(3)))],
    "another number of pages than encoding_stats": [("number", one_page_less), ("word", only_dictionary())],
    "sizes of byte arrays in a column of another type": [("number", unencoded([8] * PAGES))],
    "other sizes of byte arrays than pages and the chunk": [
        ("text", unencoded([8] * (PAGES - 1))),
        ("text", unencoded([-1] * PAGES)),
    ],
    "lists of different lengths": [
        ("number", with_pages("min_values", lambda known: known[:-1])),
        ("maybe", with_pages("null_counts", lambda known: known[1:])),
        ("maybe", with_pages("definition_level_histograms", lambda known: [1])),
    ],
    "negative counts": [("maybe", with_pages("null_counts", at(3, -5))), ("float", with_pages("nan_counts", at(3, -1)))],
    "an unknown boundary order": [("number", with_pages("boundary_order", lambda known: 7))],
    "null pages in a required column": [("number", null_page_of_required)],
    "nulls in pages of a required column": [("number", all_nulls_of_required)],
    "NaNs in pages of a column without floats": [("number", with_pages("nan_counts", at(3, 1)))],
    "a bound of a page of an impossible length or outside the range of the type": [
        ("number", with_pages("max_values", at(3, b"123"))),
        ("small", with_pages("min_values", at(3, struct.pack("<i", -300)))),
    ],
    "bounds of a null page": [("maybe", unknown_null_page)],
    "a page with its minimum above its maximum": [("number", with_pages("min_values", at(3, int64(ROWS + 1))))],
    "a boundary order against the bounds": [("number", pages_of_another_order), ("text", pages_of_another_order)],
    "another number of pages than the offset index": [("number", more_pages)],
    "more nulls than rows in a page": [("maybe", with_pages("null_counts", at(3, PAGE_ROWS + 1)))],
    "other null pages than pages with as many nulls as rows": [("maybe", denied_null_page)],
    "more NaNs than values in a page": [("float", with_pages("nan_counts", at(3, PAGE_ROWS)))],
    "other numbers of levels than rows and nulls in a page": [("maybe", page_levels)],
    "another number of nulls than the chunk": [("maybe", moved_nulls)],
    "a page with bounds outside the bounds of the chunk": [("number", beside_chunk), ("text", beside_text)],
    "no page around the exact minimum or maximum of the chunk": [("number", without_extremes)],
    "a place outside the file": [("number", elsewhere)],
    "a size of other than whole blocks": [("number", odd_blocks)],
    "another length than header and bitset": [("number", in_half)],
    "no value in a chunk with values": [("number", no_values)],
    "no value like the exact minimum or maximum of the chunk": [("number", other_values)],
}
# Other rows: the read of the pages fails as well.
REFUSED = {"another number of values than rows in a column without repetition", "pages of a column chunk at an impossible place"}

OPS = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}


def test_each_check_has_a_forged_file() -> None:
    assert {check.claim for check in CHECKS} == FORGERIES.keys() | REFUSED
    assert len({check.claim for check in CHECKS}) == len(CHECKS)


def forged(name: str, change: Callable[[Chunk], Any]) -> bytes:
    forgery = Forgery(original())
    change(forgery.chunks[column(name)])
    return forgery.written()


def rows_where(name: str, op: str, value: Any) -> list[int]:
    known = table()[name].to_pylist()
    if op in ("is null", "is not null"):
        return [row for row, each in enumerate(known) if (each is None) == (op == "is null")]
    if op in ("in", "not in"):
        return [row for row, each in enumerate(known) if each is not None and (each in value) == (op == "in")]
    return [row for row, each in enumerate(known) if each is not None and OPS[op](each, value)]


def filters_of(name: str) -> list[tuple[str, str, Any]]:
    known = [value for value in table()[name].to_pylist() if value is not None]
    some = [known[0], known[len(known) // 7], known[len(known) // 2], known[-1]]
    compared = [(name, op, value) for op in OPS for value in some]
    return [*compared, (name, "in", some[1:3]), (name, "not in", some[:2]), (name, "is null", None), (name, "is not null", None)]


@pytest.mark.parametrize(("claim", "name", "change"), [(claim, *each) for claim, all_ in FORGERIES.items() for each in all_])
def test_refuted_claims_are_not_used(claim: str, name: str, change: Callable[[Chunk], Any]) -> None:
    data = forged(name, change)
    check = next(check for check in CHECKS if check.claim == claim)
    explained = []
    with fastpq.ParquetFile(data) as file:
        assert file.read([name])[name].to_pylist() == table()[name].to_pylist()
        for filter_ in filters_of(name):
            rows = rows_where(*filter_)
            wanted = [filter_[:2]] if filter_[1].endswith("null") else [filter_]
            assert file.read(["number"], filters=wanted)["number"].to_pylist() == rows, filter_
            assert file.count(wanted) == len(rows), filter_
            batches = file.iter_batches(77, columns=["number"], filters=wanted)
            assert [row for batch in batches for row in batch["number"].to_pylist()] == rows, filter_
            explained.append(str(file.explain(wanted, columns=["number"])))
        leaf = file.schema.column(name)
        claims = claims_of(file.metadata, leaf, file.metadata.row_group(0).column(leaf.index), ROWS)
        if check.part in (Part.STATISTICS, Part.ENCODING_STATS):
            assert fault(check.part, claims) == claim
    if check.part is not Part.ENCODING_STATS:
        assert any(claim in each for each in explained)


def test_an_unaltered_file_passes_each_check() -> None:
    with fastpq.ParquetFile(Forgery(original()).written()) as file:
        for name in table().schema.names:
            assert not any("not usable" in str(file.explain([each])) for each in filters_of(name)[:24])


@needs_data
@pytest.mark.parametrize("name", ["a", "b"])
def test_null_pages_of_required_columns_of_parquet_mr(name: str) -> None:
    """parquet-mr 1.13.0-SNAPSHOT wrote null pages of required columns, without bounds."""
    path = DATA / "parquet-testing/data/datapage_v1-uncompressed-checksum.parquet"
    with fastpq.ParquetFile(path) as file:
        values = file.read([name])[name].to_pylist()
        middle = sorted(values)[len(values) // 2]
        assert file.count([(name, "<", middle)]) == sum(value < middle for value in values)
        assert file.count([(name, "!=", middle)]) == sum(value != middle for value in values)
        assert file.count([(name, "not in", [middle])]) == sum(value != middle for value in values)
        assert file.count([(name, "is null")]) == 0
        with pytest.raises(fastpq.FormatError, match="null pages in a required column"):
            file.column_index(0, name)
    assert pq.read_table(path, filters=[(name, "<", middle)]).num_rows == sum(value < middle for value in values)


def test_nans_do_not_refute_bounds() -> None:
    values = np.arange(300) / 2
    values[100:200] = math.nan
    sink = io.BytesIO()
    fastpq.write_table({"x": values}, sink, data_page_size=400, float_order="total")
    with fastpq.ParquetFile(sink.getvalue()) as file:
        assert file.column_index(0, "x") is not None
        assert file.count([("x", "<", 10)]) == 20


@pytest.mark.parametrize(("type_", "as_integers"), [
    (pa.decimal128(6, 2), True), (pa.decimal128(12, 2), True), (pa.decimal128(6, 2), False), (pa.decimal128(30, 2), False),
], ids=str)
def test_decimal_bounds_beyond_the_precision(type_: pa.Decimal128Type, as_integers: bool) -> None:
    """A bound of more digits than the column has is no value's, in statistics and in pages."""
    values = [Decimal(number) for number in range(ROWS)]
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"x": pa.array(values, type_)}), sink, write_page_index=True, store_decimal_as_integer=as_integers,
        use_dictionary=False, compression="none", max_rows_per_page=PAGE_ROWS, write_batch_size=10)
    for is_index in (False, True):
        forgery = Forgery(sink.getvalue())
        (chunk,) = forgery.chunks
        size = len(present(chunk.statistics.min_value))
        beyond = (10**type_.precision).to_bytes(size, "little" if as_integers else "big", signed=True)
        if is_index:
            chunk.pages.min_values = [beyond] * PAGES
            chunk.pages.max_values = [beyond] * PAGES
            chunk.metadata.statistics = None
        else:
            chunk.statistics.min_value = chunk.statistics.max_value = beyond
            chunk.statistics.min = chunk.statistics.max = None
        with fastpq.ParquetFile(forgery.written()) as file:
            assert file.count([("x", "<", Decimal(7))]) == 7
            assert file.min_max("x") == (Decimal(0), Decimal(ROWS - 1))
            findings = [str(each) for each in file.explain([("x", "<", Decimal(7))]).row_groups[0].evidence]
            assert any("outside the range of the type" in each for each in findings)


def test_counts_and_reads_agree_about_wrong_statistics(tmp_path: Path) -> None:
    """Bounds that no part of the file refutes decide a row group for every route: whole reads, batches, counts."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": range(200), "y": range(200)}), sink, row_group_size=100)
    data = sink.getvalue()
    (size,) = struct.unpack("<I", data[-8:-4])
    metadata, _ = fmt.decode(fmt.FileMetaData, data, len(data) - 8 - size)
    statistics = present(present(metadata.row_groups[0].columns[0].meta_data).statistics)
    statistics.min_value = statistics.max_value = statistics.min = statistics.max = int64(150)
    footer = fmt.encode(metadata)
    forged = data[: len(data) - 8 - size] + footer + struct.pack("<I", len(footer)) + b"PAR1"
    (tmp_path / "a.parquet").write_bytes(forged)
    filters = [("x", ">=", 150)]
    with fastpq.ParquetFile(forged) as file:
        count = file.count(filters)
        assert count == 150
        for columns in (["x"], ["y"], ["x", "y"]):
            assert file.read(columns, filters=filters).num_rows == count
            assert sum(batch.num_rows for batch in file.iter_batches(30, columns, filters=filters)) == count
    dataset = fastpq.ParquetDataset(tmp_path)
    assert dataset.count(filters) == dataset.read(filters=filters).num_rows == count
