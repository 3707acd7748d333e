"""Mistakes of known writers: files as they made them are read rightly, and those of others by the book."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.schema import types
from fastpq.schema.types import ColumnType, Type
from fastpq.stats.writer_bugs import (
    WRITER_BUGS,
    bloom_filters_are_trusted,
    bounds_are_trusted,
    chunk_slack,
    deprecated_bounds_are_trusted,
    null_counts_are_trusted,
)
from tests.encodings.test_delta_strings import made_by
from tests.index.forging import Forgery
from tests.narrowing import present

TEXT = ColumnType(Type.BYTE_ARRAY, None, types.String())
WIDE = ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16, types.Decimal(30, 2))
NARROW = ColumnType(Type.INT32, None, types.Decimal(9, 2))
UINT32 = ColumnType(Type.INT32, None, types.Integer(32, False))
INT64 = ColumnType(Type.INT64)


@pytest.mark.parametrize(
    ("created_by", "column", "trusted"),
    [
        ("parquet-mr version 1.8.0 (build abc)", TEXT, False),
        ("parquet-mr version 1.8.0 (build abc)", INT64, True),
        ("parquet-mr (build abc)", TEXT, False),
        ("parquet-mr version 1.10.0 (build abc)", TEXT, True),
        ("parquet-cpp version 1.2.1-SNAPSHOT", UINT32, False),
        ("parquet-cpp-arrow version 0.9.0", UINT32, True),
        ("parquet-cpp-arrow version 11.0.0", TEXT, False),
        ("parquet-cpp-arrow version 12.0.0", TEXT, True),
        ("Polars", WIDE, False),
        ("Polars", NARROW, True),
        ("ClickHouse v25.3.2.39", WIDE, False),
        ("ClickHouse v25.8.1", WIDE, True),
        (None, TEXT, True),
        ("parquet7mr ver don 1./.2+(build c6522788629e5", TEXT, True),
    ],
)
def test_bounds(created_by: str | None, column: ColumnType, trusted: bool) -> None:
    assert bounds_are_trusted(created_by, column) is trusted


def test_other_mistakes() -> None:
    assert not deprecated_bounds_are_trusted(TEXT)
    assert not null_counts_are_trusted("parquet-cpp version 1.5.1-SNAPSHOT", TEXT)
    assert null_counts_are_trusted("parquet-cpp version 1.5.1-SNAPSHOT", INT64)
    assert not bloom_filters_are_trusted("parquet-go version 18.4.0")
    assert bloom_filters_are_trusted("parquet-mr version 1.15.0")
    assert (chunk_slack("parquet-mr version 1.2.8"), chunk_slack("parquet-mr version 1.2.9")) == (100, 0)
    assert all(bug.reference for bug in WRITER_BUGS)


def written(**options: Any) -> bytes:
    sink = io.BytesIO()
    values = {"a": np.ma.MaskedArray(np.arange(1000) % 10, np.arange(1000) % 3 == 0)}
    fastpq.write_table(values, sink, use_dictionary=False, write_page_checksum=False, write_page_index=False, **options)
    return sink.getvalue()


EXPECTED = [None if row % 3 == 0 else row % 10 for row in range(1000)]


def test_pages_v2_that_deny_their_compression() -> None:
    """ARROW-10353: is_compressed is False, and the values are compressed."""
    data = written(data_page_version="2.0", compression="zstd")
    header_end = data.index(b"\x11\x00\x00")       # DataPageHeaderV2.is_compressed = true, the last field of the header
    denied = data[:header_end] + b"\x12" + data[header_end + 1 :]
    assert fastpq.read_table(made_by("parquet-cpp version 1.5.1-SNAPSHOT", denied))["a"].to_pylist() == EXPECTED
    with pytest.raises(fastpq.FormatError):
        fastpq.read_table(denied)


def test_pages_v2_with_an_unknown_number_of_nulls() -> None:
    """apache/parquet-java#3585: without statistics, num_nulls is -1."""
    data = written(data_page_version="2.0")
    nulls = data.index(b"\x15\x9c\x05", 4)         # DataPageHeaderV2.num_nulls = 334
    unknown = bytearray(data)
    unknown[nulls + 1 : nulls + 3] = b"\x81\x00"    # -1, in as many bytes
    assert fastpq.read_table(bytes(unknown))["a"].to_pylist() == EXPECTED


def test_sizes_without_the_header_of_the_dictionary_page() -> None:
    """PARQUET-816: bytes behind a chunk's end are read for the writer that counted wrongly, and for no other."""
    sink = io.BytesIO()
    fastpq.write_table({"a": np.arange(1000) % 10}, sink, write_page_index=False)
    data = sink.getvalue()
    (chunk,) = (fastpq.read_metadata(data).row_group(0).column(index) for index in range(1))
    size = chunk.total_compressed_size
    stored = zigzag(size)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    place = data.index(b"\x16" + stored + b"\x26", footer)      # ColumnMetaData.total_compressed_size, data_page_offset
    short = data[: place + 1] + zigzag(size - 14) + data[place + 1 + len(stored) :]
    assert len(short) == len(data)
    with pytest.raises(fastpq.FormatError):
        fastpq.read_table(short)
    assert fastpq.read_table(made_by("parquet-mr version 1.2.8", short))["a"].to_pylist() == (np.arange(1000) % 10).tolist()


def zigzag(value: int) -> bytes:
    value, parts = value << 1, []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


@pytest.mark.parametrize(("created_by", "trusted"), [("parquet-go version latest", False), ("parquet-go version 18.4.0", True)])
def test_null_counts_of_the_latest_parquet_go(created_by: str, trusted: bool) -> None:
    """xitongsys/parquet-go#540: null counts of the chunk and of the pages lack nulls."""
    sink = io.BytesIO()
    values = np.ma.MaskedArray(np.arange(1000) % 10, np.arange(1000) % 3 == 0)
    fastpq.write_table({"a": values}, sink, data_page_size=400, column_encoding={"a": "PLAIN"})
    forgery = Forgery(sink.getvalue())
    chunk = forgery.chunks[0]
    chunk.statistics.null_count = 0
    chunk.pages.null_counts = [0] * len(chunk.pages.null_pages)
    forgery.metadata.created_by = created_by
    with fastpq.ParquetFile(forgery.written()) as file:
        assert null_counts_are_trusted(created_by, INT64) is trusted
        assert file.count([("a", "is null")]) == (334 if not trusted else 0)
        assert file.count([("a", "is not null")]) == (666 if not trusted else 1000)
        assert file.null_count("a") == (334 if not trusted else 0)


@pytest.mark.parametrize(("created_by", "trusted"), [("DuckDB", False), ("DuckDB version v1.1.0 (build fa5c2fe15f)", True)])
def test_null_counts_of_duckdb_without_a_version(created_by: str, trusted: bool) -> None:
    """observablehq/framework, size-heatmap.parquet: the second row group has the nulls of the first in its null count."""
    sink = io.BytesIO()
    texts = [None if row % 3 == 0 else str(row) for row in range(1000)]
    fastpq.write_table({"a": texts}, sink, row_group_size=500, write_page_index=False)
    data = sink.getvalue()
    metadata = fmt.decode(fmt.FileMetaData, data, len(data) - 8 - int.from_bytes(data[-8:-4], "little"))[0]
    statistics = present(present(metadata.row_groups[1].columns[0].meta_data).statistics)
    assert statistics.null_count == 167
    statistics.null_count += 167
    metadata.created_by = created_by
    footer = fmt.encode(metadata)
    with fastpq.ParquetFile(data[:-8] + footer + len(footer).to_bytes(4, "little") + b"PAR1") as file:
        assert null_counts_are_trusted(created_by, INT64)
        assert file.null_count("a") == (501 if trusted else 334)


def test_checksums_of_hawq(tmp_path: Path) -> None:
    """Files of Apache HAWQ have a CRC-32 of 0, and no created_by; they are known by a key of theirs."""
    hawq = with_zero_checksums({"a": np.arange(1000) % 10}, created_by=None, key="hawq.schema")
    assert fastpq.read_table(hawq)["a"].to_pylist() == (np.arange(1000) % 10).tolist()
    assert fastpq.recover_table(hawq, on_error="skip").report.losses == ()
    fastpq.merge_files([hawq], tmp_path / "copied")
    assert fastpq.read_table(tmp_path / "copied").num_rows == 1000
    for other in (
        with_zero_checksums({"a": [1]}, created_by=None, key="another"),
        with_zero_checksums({"a": [1]}, created_by="parquet-mr version 1.15.0", key="hawq.schema"),
    ):
        with pytest.raises(fastpq.FormatError, match="CRC-32"):
            fastpq.read_table(other)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_checksums_of_parquet_jl(on_error: Any, tmp_path: Path) -> None:
    """Parquet.jl before 1.0 writes a CRC-32 of 0."""
    columns = {"a": np.arange(1000) % 10}
    julia = with_zero_checksums(columns, "Parquet.jl 0.6.0")
    assert fastpq.read_table(julia, on_error=on_error)["a"].to_pylist() == (np.arange(1000) % 10).tolist()
    fastpq.merge_files([julia], tmp_path / "copied")
    assert fastpq.read_table(tmp_path / "copied").num_rows == 1000
    for other in (with_zero_checksums(columns), with_zero_checksums(columns, "Parquet.jl version 1.0.0")):
        with pytest.raises(fastpq.FormatError, match="CRC-32"):
            fastpq.read_table(other)


def with_zero_checksums(columns: dict[str, Any], created_by: str | None = "a writer", key: str | None = None) -> bytes:
    """A file of one data page V1, with a crc of 0, and with a key in its metadata."""
    sink = io.BytesIO()
    fastpq.write_table(columns, sink, column_encoding={"a": "PLAIN"}, write_page_index=False, data_page_version="1.0")
    data = sink.getvalue()
    metadata = fmt.decode(fmt.FileMetaData, data, len(data) - 8 - int.from_bytes(data[-8:-4], "little"))[0]
    (chunk,) = metadata.row_groups[0].columns
    described = present(chunk.meta_data)
    header, size = fmt.decode(fmt.PageHeader, data, 4)
    header.crc = 0
    stored = fmt.encode(header)
    described.total_compressed_size += len(stored) - size
    body = data[:4] + stored + data[4 + size : 4 + size + header.compressed_page_size]
    metadata.created_by = created_by
    metadata.key_value_metadata = None if key is None else [fmt.KeyValue(key=key, value="message hawqschema {optional int8 a;}")]
    footer = fmt.encode(metadata)
    return body + footer + len(footer).to_bytes(4, "little") + b"PAR1"
