"""Values of large PLAIN pages, read from the file straight into the output."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from tests.interop.test_odd_pages import data_page, file_of, int64s

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
