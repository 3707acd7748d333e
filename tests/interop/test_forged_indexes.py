"""Indexes that contradict their file: the right rows, read without the index."""

from __future__ import annotations

import copy
import functools
import io
import struct
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpq
from fastpq import format as fmt
from tests.narrowing import present

ROWS, PAGE_ROWS = 600, 50
LOOKUPS = [0, 49, 50, 155, 300, 599]


def table() -> pa.Table:
    return pa.table(
        {
            "id": np.arange(ROWS),
            "text": [f"{i:04}" for i in range(ROWS)],
            "list": [[i] * (i % 4) for i in range(ROWS)],
            "word": [f"word {i // 60}" for i in range(ROWS)],
        }
    )


@functools.cache
def original(version: str) -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        table(), sink, max_rows_per_page=PAGE_ROWS, write_batch_size=10, write_page_index=True, data_page_version=version,
        use_dictionary=["word"], compression="none", bloom_filter_options={"id": {"ndv": ROWS, "fpp": 0.01}},
    )
    return sink.getvalue()


Change = Callable[[fmt.FileMetaData, list[fmt.OffsetIndex], list[fmt.ColumnIndex]], None]


def forged(data: bytes, change: Change) -> bytes:
    """The file with its indexes and footer changed; the indexes are written anew behind the old ones."""
    (footer_size,) = struct.unpack("<I", data[-8:-4])
    body = bytearray(data[: -8 - footer_size])
    metadata, _ = fmt.decode(fmt.FileMetaData, data, len(body))
    chunks = metadata.row_groups[0].columns
    offsets = [fmt.decode(fmt.OffsetIndex, data, present(chunk.offset_index_offset))[0] for chunk in chunks]
    bounds = [fmt.decode(fmt.ColumnIndex, data, present(chunk.column_index_offset))[0] for chunk in chunks]
    change(metadata, offsets, bounds)
    for chunk, offset_index, column_index in zip(chunks, offsets, bounds, strict=True):
        for name, struct_ in (("offset_index", offset_index), ("column_index", column_index)):
            stored = fmt.encode(struct_)
            setattr(chunk, f"{name}_offset", len(body))
            setattr(chunk, f"{name}_length", len(stored))
            body += stored
    footer = fmt.encode(metadata)
    return bytes(body) + footer + struct.pack("<I", len(footer)) + b"PAR1"


def assert_right(data: bytes) -> None:
    """Every lookup gives its row, whatever the indexes claim: the pages are readable."""
    for row in LOOKUPS:
        for read in (
            lambda file, row=row: file.take([row]),
            lambda file, row=row: file.read(filters=[("id", "==", row)]),
            lambda file, row=row: next(file.iter_batches(7, row_ranges=[(row, row + 1)])),
            lambda file, row=row: next(file.iter_batches(7, filters=[("text", "==", f"{row:04}")])),
        ):
            with fastpq.ParquetFile(data) as file:
                assert read(file).to_pylist() == table().slice(row, 1).to_pylist()
                assert file.count(filters=[("id", "<", row)]) == row


def test_nothing_changed() -> None:
    assert_right(forged(original("1.0"), lambda *_: None))


def swapped(locations: list[fmt.PageLocation], one: int, other: int) -> None:
    """Two pages, each under the other's rows."""
    for name in ("offset", "compressed_page_size"):
        mine, theirs = getattr(locations[one], name), getattr(locations[other], name)
        setattr(locations[one], name, theirs)
        setattr(locations[other], name, mine)


def shifted(locations: list[fmt.PageLocation]) -> None:
    """Each page under the rows of the one before it: every page that is read is whole, and of as many rows as it should be."""
    for before, after in pairwise(locations):
        before.offset, before.compressed_page_size = after.offset, after.compressed_page_size
    locations.pop()


def merged(locations: list[fmt.PageLocation]) -> None:
    """The first two pages as one of as many rows as one has: those behind come under the wrong rows."""
    locations[0].compressed_page_size += locations[1].compressed_page_size
    for before, after in pairwise(locations[1:]):
        before.offset, before.compressed_page_size = after.offset, after.compressed_page_size
    locations.pop()


def put_at_one_place(pages: list[fmt.PageLocation]) -> None:
    for page in pages:
        page.offset = pages[0].offset


LIES: dict[str, Callable[[list[fmt.PageLocation]], Any]] = {
    "neighbours swapped": lambda pages: swapped(pages, 2, 3),
    "first and last swapped": lambda pages: swapped(pages, 0, -1),
    "each page under the rows before": shifted,
    "two pages as one": merged,
    "a page left out": lambda pages: pages.pop(3),
    "the last left out": lambda pages: pages.pop(),
    "the first left out": lambda pages: pages.pop(0),
    "a page twice": lambda pages: pages.insert(3, copy.copy(pages[3])),
    "all at one place": put_at_one_place,
    "rows of another page": lambda pages: setattr(pages[3], "first_row_index", pages[3].first_row_index + 1),
    "pages that overlap": lambda pages: setattr(pages[3], "offset", pages[3].offset - 8),
    "a page within a page": lambda pages: setattr(pages[3], "compressed_page_size", pages[3].compressed_page_size // 2),
    "beyond the chunk": lambda pages: setattr(pages[-1], "compressed_page_size", pages[-1].compressed_page_size + 1),
    "beyond the file": lambda pages: setattr(pages[-1], "offset", 1 << 40),
    "no page": lambda pages: pages.clear(),
}


@pytest.mark.parametrize("column", range(4))
@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_lies_about_pages(version: str, lie: str, column: int) -> None:
    def change(_: fmt.FileMetaData, offsets: list[fmt.OffsetIndex], bounds: list[fmt.ColumnIndex]) -> None:
        LIES[lie](offsets[column].page_locations)

    assert_right(forged(original(version), change))


@settings(max_examples=80)
@given(
    column=st.integers(0, 3),
    page=st.integers(0, ROWS // PAGE_ROWS - 1),
    field=st.sampled_from(["offset", "compressed_page_size", "first_row_index"]),
    by=st.integers(-600, 600) | st.sampled_from([-(1 << 30), 1 << 30]),
)
def test_numbers_changed(column: int, page: int, field: str, by: int) -> None:
    def change(_: fmt.FileMetaData, offsets: list[fmt.OffsetIndex], bounds: list[fmt.ColumnIndex]) -> None:
        location = offsets[column].page_locations[page]
        setattr(location, field, getattr(location, field) + by)

    assert_right(forged(original("1.0"), change))


@pytest.mark.parametrize("column", range(4))
@pytest.mark.parametrize("other", range(4))
def test_indexes_of_another_column(column: int, other: int) -> None:
    def change(_: fmt.FileMetaData, offsets: list[fmt.OffsetIndex], bounds: list[fmt.ColumnIndex]) -> None:
        offsets[column] = offsets[other]

    assert_right(forged(original("1.0"), change))


def test_bounds_in_the_wrong_order_are_not_used() -> None:
    """Lower bounds above upper ones say nothing; a claimed boundary order is not relied on."""

    def change(_: fmt.FileMetaData, offsets: list[fmt.OffsetIndex], bounds: list[fmt.ColumnIndex]) -> None:
        bounds[0].min_values, bounds[0].max_values = bounds[0].max_values, bounds[0].min_values
        bounds[0].boundary_order = fmt.BoundaryOrder.DESCENDING

    assert_right(forged(original("1.0"), change))


@pytest.mark.parametrize(
    "place",
    [(1 << 40, 100), (-5, 100), (4, 1 << 30), (4, 60), (4, 1)],
    ids=["beyond the file", "before it", "too long", "in a page", "too short"],
)
def test_bloom_filters_elsewhere(place: tuple[int, int]) -> None:
    def change(metadata: fmt.FileMetaData, *_: Any) -> None:
        meta_data = metadata.row_groups[0].columns[0].meta_data
        assert meta_data is not None
        meta_data.bloom_filter_offset, meta_data.bloom_filter_length = place

    assert_right(forged(original("1.0"), change))
