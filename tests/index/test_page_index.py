"""Page indexes: what is checked when they are read, and what is built of pages."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpq import format as fmt
from fastpq.encryption.decryptor import FileDecryptor
from fastpq.errors import FormatError
from fastpq.index.chunk_claims import ChunkMetadataClaims
from fastpq.index.page_index import ColumnIndex, OffsetIndex, column_index_of, offset_index_of
from fastpq.index.written_pages import WrittenPages
from fastpq.metadata.column_chunk import ColumnChunkMetaData
from fastpq.schema import types
from fastpq.schema.parquet_schema import ColumnDescriptor, ParquetSchema
from fastpq.schema.types import ColumnType, Type
from fastpq.stats.bounds import order_of
from fastpq.stats.statistics import Order

BYTES = ColumnType(Type.BYTE_ARRAY)
TEXT = ColumnType(Type.BYTE_ARRAY, None, types.String())
INT32 = ColumnType(Type.INT32)
DOUBLE = ColumnType(Type.DOUBLE)
CHUNK = (100, 60)


def column(type_: ColumnType, nullable: bool = True) -> ColumnDescriptor:
    return ParquetSchema.of([("x", type_, nullable)]).columns[0]


def int32(*values: int) -> list[bytes]:
    return [value.to_bytes(4, "little", signed=True) for value in values]


def offset_index() -> fmt.OffsetIndex:
    return fmt.OffsetIndex(
        page_locations=[
            fmt.PageLocation(offset=100 + 20 * page, compressed_page_size=20, first_row_index=10 * page) for page in range(3)
        ]
    )


def chunk_of(start: int, length: int) -> ColumnChunkMetaData:
    """A chunk without a dictionary page at some place of the file."""
    stored = fmt.ColumnMetaData(
        type=Type.INT32, encodings=[], path_in_schema=["a"], codec=0, num_values=30, total_uncompressed_size=length,
        total_compressed_size=length, data_page_offset=start,
    )
    return ColumnChunkMetaData(fmt.ColumnChunk(file_offset=0, meta_data=stored), 0, 0, FileDecryptor())


def claims(type_: ColumnType, num_rows: int = 30, chunk: tuple[int, int] = CHUNK) -> ChunkMetadataClaims:
    return ChunkMetadataClaims(column(type_), num_rows, chunk_of(*chunk).metadata)


def both(stored: fmt.ColumnIndex) -> ColumnIndex:
    """A checked ColumnIndex beside the OffsetIndex of three pages."""
    known = claims(INT32)
    offset_index_of(fmt.encode(offset_index()), known)
    return column_index_of(stored, known)


def checked(stored: fmt.OffsetIndex, num_rows: int, chunk: tuple[int, int]) -> OffsetIndex:
    return offset_index_of(fmt.encode(stored), claims(INT32, num_rows, chunk))


def column_index() -> fmt.ColumnIndex:
    return fmt.ColumnIndex(
        null_pages=[False, True, False],
        min_values=[*int32(1), b"", *int32(5)],
        max_values=[*int32(4), b"", *int32(9)],
        boundary_order=fmt.BoundaryOrder.ASCENDING,
        null_counts=[0, 10, 3],
    )


def test_good_indexes() -> None:
    offsets = checked(offset_index(), 30, CHUNK)
    assert offsets.row_counts.tolist() == [10, 10, 10]
    assert [location.first_row_index for location in offsets.page_locations] == [0, 10, 20]
    index = both(column_index())
    assert index.null_pages.tolist() == [False, True, False]
    assert index.null_counts is not None
    assert index.null_counts.tolist() == [0, 10, 3]
    assert index.is_ordered(Order.ORDER_INT32)
    assert not index.is_ordered(Order.ORDER_NONE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offset": 99}, "outside"),
        ({"offset": -(1 << 62)}, "outside"),
        ({"offset": (1 << 63) - 1}, "outside"),
        ({"compressed_page_size": 0}, "outside"),
        ({"compressed_page_size": -5}, "outside"),
        ({"compressed_page_size": (1 << 31) - 1}, "outside"),
        ({"compressed_page_size": 21}, "overlap"),
        ({"first_row_index": 0}, "ascend"),
        ({"first_row_index": 20}, "ascend"),
        ({"first_row_index": 30}, "ascend"),
        ({"first_row_index": -1}, "ascend"),
    ],
)
def test_offset_indexes_that_contradict(change: dict[str, int], message: str) -> None:
    stored = offset_index()
    for name, value in change.items():
        setattr(stored.page_locations[1], name, value)
    with pytest.raises(FormatError, match=message):
        checked(stored, 30, CHUNK)


@pytest.mark.parametrize(("rows", "chunk"), [(20, CHUNK), (30, (100, 59)), (30, (101, 60))])
def test_offset_indexes_beside_their_chunk(rows: int, chunk: tuple[int, int]) -> None:
    with pytest.raises(FormatError):
        checked(offset_index(), rows, chunk)


def test_no_pages() -> None:
    assert checked(fmt.OffsetIndex(page_locations=[]), 0, CHUNK).num_pages == 0
    with pytest.raises(FormatError, match="no pages"):
        checked(fmt.OffsetIndex(page_locations=[]), 1, CHUNK)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"null_pages": [False, True]}, "different lengths"),
        ({"min_values": int32(1, 2)}, "different lengths"),
        ({"max_values": int32(1, 2, 3, 4)}, "different lengths"),
        ({"max_values": [*int32(4), b"", b"123"]}, "impossible length"),
        ({"min_values": [b"", b"", *int32(5)]}, "impossible length"),
        ({"boundary_order": 3}, "boundary order"),
        ({"null_counts": [0, 10]}, "different lengths"),
        ({"null_counts": [0, 10, 11]}, "more nulls"),
        ({"null_counts": [0, 9, 3]}, "other null pages"),
        ({"nan_counts": [0, -1, 0]}, "negative"),
        ({"definition_level_histograms": [1, 2, 3]}, "different lengths"),
    ],
)
def test_column_indexes_that_contradict(change: dict[str, Any], message: str) -> None:
    stored = column_index()
    for name, value in change.items():
        setattr(stored, name, value)
    with pytest.raises(FormatError, match=message):
        both(stored)


def test_null_counts_that_a_writer_does_not_know() -> None:
    stored = column_index()
    stored.null_counts = [-1, -1, -1]       # parquet-mr 1.13 where statistics are off
    assert column_index_of(stored, claims(INT32)).null_counts is None


def test_a_boundary_order_is_verified() -> None:
    stored = column_index()
    stored.boundary_order = fmt.BoundaryOrder.DESCENDING
    with pytest.raises(FormatError, match="boundary order"):
        column_index_of(stored, claims(INT32))


# ---- building


Page = dict[str, Any]


def page(values: int, nulls: int, bounds: tuple[bytes, bytes] | None, nan_count: int = 0, unencoded: int = 0) -> Page:
    smallest, largest = bounds or (None, None)
    return {
        "sizes": 20,
        "num_rows": values,
        "num_values": values,
        "null_counts": nulls,
        "minima": smallest,
        "maxima": largest,
        "nan_counts": nan_count,
        "unencoded_byte_array_data_bytes": unencoded,
    }


def written(type_: ColumnType, *pages: Page) -> WrittenPages:
    lists: dict[str, Any] = {name: [each[name] for each in pages] for name in page(0, 0, None)}
    return WrittenPages(type=type_, order=order_of(type_), **lists)


def build(type_: ColumnType, *pages: Page, truncation: int = 64) -> fmt.ColumnIndex | None:
    return written(type_, *pages).column_index(truncation)


def built(type_: ColumnType, *pages: Page, truncation: int = 64) -> fmt.ColumnIndex:
    index = build(type_, *pages, truncation=truncation)
    assert index is not None
    return index


@pytest.mark.parametrize(
    ("lows", "highs", "order"),
    [
        ([], [], "ASCENDING"),
        ([1], [2], "ASCENDING"),
        ([1, 1, 2], [5, 5, 5], "ASCENDING"),
        ([-1, 0, 1], [0, 1, 2], "ASCENDING"),
        ([3, 2, -1], [3, 2, 1], "DESCENDING"),
        ([1, 2, 3], [9, 8, 7], "UNORDERED"),
        ([1, 3, 2], [4, 4, 4], "UNORDERED"),
    ],
)
def test_boundary_order(lows: list[int], highs: list[int], order: str) -> None:
    pages = [page(5, 0, bounds) for bounds in zip(int32(*lows), int32(*highs), strict=True)]
    with_nulls = [each for one in pages for each in (one, page(3, 3, None))]
    for given_pages in (pages, with_nulls):
        assert built(INT32, *given_pages).boundary_order == fmt.BoundaryOrder[order]


def test_null_pages() -> None:
    index = built(INT32, page(5, 5, None), page(5, 1, (int32(1)[0], int32(2)[0])))
    assert (index.null_pages, index.min_values, index.null_counts) == ([True, False], [b"", *int32(1)], [5, 1])


def test_truncation() -> None:
    index = built(TEXT, page(1, 0, ("aé".encode() * 50, "aé".encode() * 50)), page(1, 0, (b"b", b"b")))
    assert index.min_values == ["aé".encode() * 21 + b"a", b"b"]       # 64 bytes would end within a code point
    assert index.max_values == ["aé".encode() * 21 + b"b", b"b"]
    # what has no short upper bound keeps its own
    assert built(BYTES, page(1, 0, (b"\xff" * 70, b"\xff" * 70))).max_values == [b"\xff" * 70]
    fixed = ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 80)
    assert built(fixed, page(1, 0, (b"x" * 80, b"y" * 80))).max_values == [b"y" * 80]
    decimal = ColumnType(Type.BYTE_ARRAY, None, types.Decimal(30, 0))
    assert built(decimal, page(1, 0, (b"\1" * 9, b"\2" * 9)), truncation=4).max_values == [b"\2" * 9]


def test_columns_that_have_no_column_index() -> None:
    nan_page = page(3, 0, None, nan_count=3)
    assert build(DOUBLE, page(1, 0, (b"\0" * 8, b"\0" * 8)), nan_page) is None
    assert build(ColumnType(Type.INT96), page(1, 0, None)) is None


def test_counts_of_floats() -> None:
    assert built(DOUBLE, page(3, 1, (b"\0" * 8, b"\0" * 8), nan_count=1)).nan_counts == [1]
    assert built(INT32, page(1, 0, (int32(1)[0], int32(1)[0]))).nan_counts is None


def test_offset_index_of_pages() -> None:
    pages = [page(4, 4, None, unencoded=number) for number in range(3)]
    index = written(TEXT, *pages).offset_index(1007)
    assert [location.offset for location in index.page_locations] == [1007, 1027, 1047]
    assert [location.first_row_index for location in index.page_locations] == [0, 4, 8]
    assert index.unencoded_byte_array_data_bytes == [0, 1, 2]
    assert offset_index_of(fmt.encode(index), claims(TEXT, 12, (1007, 60))).row_counts.tolist() == [4, 4, 4]


@given(st.lists(st.lists(st.binary(max_size=12), max_size=5), min_size=1, max_size=6), st.integers(1, 8))
def test_bounds_hold_their_values(pages: list[list[bytes]], truncation: int) -> None:
    statistics = [page(len(values), 0, (min(values), max(values)) if values else None) for values in pages]
    index = built(BYTES, *statistics, truncation=truncation)
    read = column_index_of(copy.deepcopy(index), claims(BYTES))
    for number, values in enumerate(pages):
        assert read.null_pages[number] == (not values)
        assert all(read.min_values[number] <= value <= read.max_values[number] for value in values)
        if values:
            assert len(read.min_values[number]) <= truncation
    assert index.boundary_order == 0 or read.is_ordered(Order.ORDER_BYTES)


def test_arrays_are_of_64_bits() -> None:
    assert checked(offset_index(), 30, CHUNK).offsets.dtype == np.int64
