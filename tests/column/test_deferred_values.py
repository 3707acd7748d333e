"""Values of large PLAIN pages, read from the file straight into the output."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import format as fmt
from tests.interop.test_odd_pages import data_page, dictionary_page, file_of, int64s

ROWS = 100_000
LARGE: dict[str, Any] = {"compression": "none", "use_dictionary": False, "data_page_size": 200 << 10}


def table_of(nulls: str) -> pa.Table:
    random = np.random.default_rng(5)
    full = np.ones(ROWS, bool)
    some, pages = random.random(ROWS) < 0.9, np.arange(ROWS) // 40_000 != 1
    present = {"required": full, "none": full, "some": some, "whole pages": pages}[nulls]
    values = {"day": np.arange(ROWS, dtype=np.int32), "number": random.random(ROWS), "raw": random.bytes(16 * ROWS)}
    raw = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), ROWS, [None, pa.py_buffer(values.pop("raw"))])
    columns = {**values, "raw": raw, "small": pa.array(np.arange(ROWS) % 100, pa.int8())}
    table = pa.table({name: pa.compute.if_else(pa.array(present), column, None) for name, column in columns.items()})
    return table.cast(pa.schema([field.with_nullable(nulls != "required") for field in table.schema]))


def nested_table() -> pa.Table:
    random = np.random.default_rng(8)
    present = pa.array(random.random(ROWS) < 0.9)
    starts = np.concatenate([[0], np.cumsum(random.integers(0, 4, ROWS))]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(starts), pa.array(random.random(starts[-1])))
    members = [pa.array(random.random(ROWS)), pa.compute.if_else(present, np.arange(ROWS), None)]
    structs = pa.StructArray.from_arrays(members, ["x", "y"], mask=pa.array(random.random(ROWS) < 0.1))
    return pa.table({"list": lists, "struct": structs})


def varint(number: int) -> bytes:
    low = [number >> shift & 0x7F for shift in range(0, max(7, number.bit_length()), 7)]
    return bytes(byte | 0x80 for byte in low[:-1]) + bytes(low[-1:])


def runs(*levels: tuple[int, int]) -> bytes:
    """Levels of a page V1 as runs of (count, level)."""
    stored = b"".join(varint(count << 1) + bytes([level]) for count, level in levels)
    return struct.pack("<I", len(stored)) + stored


def file_of_row_groups(row_groups: Sequence[tuple[Sequence[bytes], int, bool]]) -> bytes:
    """A file of an optional INT64 column "a": the pages of each row group, its number of rows, and whether the first is a
    dictionary."""
    data, groups = b"PAR1", []
    for pages, rows, has_dictionary in row_groups:
        start, size = len(data), sum(map(len, pages))
        metadata = fmt.ColumnMetaData(
            type=2, encodings=[0, 3, 8], path_in_schema=["a"], codec=0, num_values=rows, total_uncompressed_size=size,
            total_compressed_size=size, data_page_offset=start + (len(pages[0]) if has_dictionary else 0),
            dictionary_page_offset=start if has_dictionary else None)
        chunk = fmt.ColumnChunk(file_offset=0, meta_data=metadata)
        groups.append(fmt.RowGroup(columns=[chunk], total_byte_size=size, num_rows=rows))
        data += b"".join(pages)
    schema = [fmt.SchemaElement(name="schema", num_children=1), fmt.SchemaElement(name="a", type=2, repetition_type=1)]
    footer = fmt.encode(fmt.FileMetaData(
        version=1, schema=schema, num_rows=sum(rows for _, rows, _ in row_groups), row_groups=groups))
    return data + footer + struct.pack("<I", len(footer)) + b"PAR1"


def signed_crc(body: bytes) -> int:
    return (zlib.crc32(body) ^ 1 << 31) - (1 << 31)


def written(path: Path, table: pa.Table, **options: Any) -> Path:
    pq.write_table(table, path, **{**LARGE, "row_group_size": 80_000, "write_page_index": True, **options})
    return path


@pytest.mark.parametrize("nulls", ["required", "none", "some", "whole pages"])
@pytest.mark.parametrize("options", [
    {"write_page_checksum": True}, {}, {"data_page_version": "2.0", "write_page_checksum": True}, {"max_rows_per_page": 20_001},
], ids=str)
def test_values_are_those_that_pyarrow_wrote(tmp_path: Path, nulls: str, options: dict[str, Any]) -> None:
    table = table_of(nulls)
    path = written(tmp_path / "x.parquet", table, **options)
    for source in (path, path.read_bytes()):
        for threads in (1, 2):
            assert pa.table(fastpq.read_table(source, threads=threads)).equals(table)
    with fastpq.ParquetFile(path) as file:
        batches = [pa.table(batch) for batch in file.iter_batches(batch_size=7_001)]
        assert pa.concat_tables(batches).equals(table)
        rows = np.random.default_rng(6).integers(0, ROWS, 300)
        assert pa.table(file.take(rows)).equals(table.take(rows))
    chosen = fastpq.read_table(path, filters=[("day", ">=", 1_000), ("day", "<", 30_000)])
    assert pa.table(chosen).equals(table.filter((pa.compute.field("day") >= 1_000) & (pa.compute.field("day") < 30_000)))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_nested_values_are_those_that_pyarrow_wrote(tmp_path: Path, version: str) -> None:
    table = nested_table()
    path = written(tmp_path / "x.parquet", table, data_page_version=version, write_page_checksum=True)
    for source in (path, path.read_bytes()):
        for threads in (1, 2):
            assert pa.table(fastpq.read_table(source, threads=threads)).equals(table)
    with fastpq.ParquetFile(path) as file:
        assert pa.concat_tables([pa.table(batch) for batch in file.iter_batches(batch_size=7_001)]).equals(table)
        assert pa.table(file.read(row_ranges=[(30_000, 30_010)])).equals(table.slice(30_000, 10))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("kind", ["flat", "list", "struct"])
def test_damaged_levels_are_found_by_reads_of_some_rows(tmp_path: Path, version: str, kind: str) -> None:
    """Of pages whose values are not read, too: all rows behind a damaged list would be others."""
    table = table_of("some").select(["number"]) if kind == "flat" else nested_table().select([kind])
    options = {"data_page_version": version, "write_page_checksum": True, "write_statistics": False, "write_page_index": False}
    path = written(tmp_path / "x.parquet", table, **options)
    start = pq.read_metadata(path).row_group(0).column(0).data_page_offset
    sound = path.read_bytes()
    for place in range(start + 45, start + 400, 13):
        damaged = bytearray(sound)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        with fastpq.ParquetFile(path) as file:
            with pytest.raises(fastpq.FormatError):
                file.take([place - start])
            with pytest.raises(fastpq.FormatError):
                next(file.iter_batches(batch_size=1))
            with pytest.raises(fastpq.FormatError):
                file.read(row_ranges=[(10_000, 10_010)])


def test_a_null_alone_is_not_returned_before_the_page_is_checked(tmp_path: Path) -> None:
    """The checksum is that of a page without the null."""
    values = int64s(range(ROWS))
    crc = signed_crc(runs((1, 1), (ROWS - 1, 1)) + values)
    path = tmp_path / "x.parquet"
    pages = [data_page(ROWS, runs((1, 0), (ROWS - 1, 1)) + values, crc=crc)]
    path.write_bytes(file_of([pages], ROWS, [ROWS], repetition=1))
    with fastpq.ParquetFile(path) as file:
        for read in (
            lambda: file.take([0]), lambda: next(file.iter_batches(batch_size=1)), lambda: file.read(row_ranges=[(0, 1)]),
            file.read,
        ):
            with pytest.raises(fastpq.FormatError, match="CRC-32 does not match"):
                read()


def test_a_dictionary_behind_a_page_read_in_part(tmp_path: Path) -> None:
    """Of the first page only a null is read, and its values are as many bytes as the dictionary has."""
    values = int64s(range(ROWS - 1))
    first = data_page(ROWS, runs((1, 0), (ROWS - 1, 1)) + values)
    indices = b"\x01" + varint(4 << 1) + b"\x01"
    second = data_page(4, runs((4, 1)) + indices, encoding=fmt.Encoding.RLE_DICTIONARY)
    for entries in ([7, 8], [*range(ROWS - 3), 7, 8]):
        pages = [first, dictionary_page([entries[0], 8, *entries[2:]]), second]
        path = tmp_path / "x.parquet"
        path.write_bytes(file_of([pages], ROWS + 4, [ROWS + 4], repetition=1))
        with fastpq.ParquetFile(path) as file:
            assert file.take([0, ROWS, ROWS + 3])["a"].to_pylist() == [None, 8, 8]
            assert file.read()["a"].to_pylist() == [None, *range(ROWS - 1), 8, 8, 8, 8]


def test_a_row_group_that_ends_in_nulls_of_a_page(tmp_path: Path) -> None:
    """The next row group begins with a dictionary; both are decoded without the interpreter between them."""
    path = tmp_path / "x.parquet"
    indices = b"\x01" + varint(4 << 1) + b"\x01"
    pages = [
        ([data_page(ROWS, runs((100, 0), (ROWS - 100, 1)) + int64s(range(ROWS - 100)))], 100, False),
        ([dictionary_page([7, 8]), data_page(4, runs((4, 1)) + indices, encoding=fmt.Encoding.RLE_DICTIONARY)], 4, True),
    ]
    path.write_bytes(file_of_row_groups(pages))
    for threads in (1, 2):
        assert fastpq.read_table(path, threads=threads)["a"].to_pylist() == [None] * 100 + [8] * 4


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("nulls", ["required", "none", "some", "whole pages"])
def test_a_damaged_byte_is_found_by_the_checksum(tmp_path: Path, version: str, nulls: str) -> None:
    table = table_of(nulls).select(["number"])
    path = written(tmp_path / "x.parquet", table, data_page_version=version, write_page_checksum=True, write_statistics=False)
    with fastpq.ParquetFile(path) as file:
        pages = file.metadata.row_group(0).column(0)
        start, stop = pages.data_page_offset, pages.data_page_offset + pages.total_compressed_size
    sound = path.read_bytes()
    for place in [*np.random.default_rng(7).integers(start + 100, stop, 8), stop - 1]:
        damaged = bytearray(sound)
        damaged[place] ^= 0x10
        path.write_bytes(damaged)
        for source in (path, bytes(damaged)):
            with pytest.raises(fastpq.FormatError) as caught:
                fastpq.read_table(source)
            assert caught.value.context["page"] is not None
            assert caught.value.context["column"] == "number"
        try:
            values = fastpq.read_table(path, properties=fastpq.ReaderProperties(verify_checksums=False))
        except fastpq.FormatError:      # a byte of a header or of levels
            continue
        assert not pa.table(values).equals(table)
    damaged = bytearray(sound)
    damaged[stop - 1] ^= 0x10
    path.write_bytes(damaged)
    with pytest.raises(fastpq.FormatError, match="CRC-32 does not match"):
        fastpq.read_table(path)
    with fastpq.ParquetFile(path) as file, pytest.raises(fastpq.FormatError, match="CRC-32 does not match"):
        file.take([70_000])


def test_a_page_of_nulls_is_checked() -> None:
    levels = b"\x04\0\0\0" + b"\xc0\x9a\x0c\0"     # a run of 100,000 zeros
    body = levels + bytes(100_000)                      # bytes that are no values, and have a checksum all the same
    good, bad = (file_of([[data_page(ROWS, body, crc=crc)]], ROWS, [ROWS], repetition=1) for crc in (signed_crc(body), 1))
    assert fastpq.read_table(good)["a"].null_count == ROWS
    with pytest.raises(fastpq.FormatError, match="CRC-32 does not match"):
        fastpq.read_table(bad)


@pytest.mark.parametrize("behind", [1, 8, 70_000])
def test_bytes_behind_the_values_of_a_page(behind: int) -> None:
    values = list(range(10_000))
    pages = [data_page(10_000, int64s(values) + b"?" * behind), data_page(2, int64s([1, 2]))]
    data = file_of([pages], 10_002, [10_002])
    assert fastpq.read_table(data)["a"].to_pylist() == [*values, 1, 2]


def test_a_page_with_fewer_values_than_it_claims() -> None:
    data = file_of([[data_page(10_001, int64s(range(10_000)))]], 10_001, [10_001])
    with pytest.raises(fastpq.FormatError, match=r"values .*page 0"):
        fastpq.read_table(data)


def test_a_chunk_that_ends_in_the_middle_of_a_page() -> None:
    data = file_of([[data_page(10_000, int64s(range(10_000)))]], 9_000, [9_000])
    assert fastpq.read_table(data)["a"].to_pylist() == list(range(9_000))


def test_a_file_that_is_cut_while_it_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", table_of("none"))
    with fastpq.ParquetFile(path) as file:
        os.truncate(path, 500_000)
        with pytest.raises(fastpq.FormatError, match="truncated while it was read"):
            file.read(columns=["number"])
