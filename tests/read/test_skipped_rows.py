"""Rows left out inside a chunk without a page index: later values are right, and pages without a wanted row stay unopened."""

from __future__ import annotations

import functools
import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest

import fastpq

ROWS = 3000
LARGE = 100_000         # more than a piece of booleans has
WANTED = [(7, 9), (30, 31), (60, 190), (215, 216), (1000, 1003), (1020, 1031), (2222, 2225), (2999, 3000)]
ENCODED = {
    "plain": (pa.int64(), "PLAIN"),
    "narrow": (pa.int32(), "PLAIN"),
    "fixed": (pa.binary(5), "PLAIN"),
    "flag": (pa.bool_(), "PLAIN"),
    "flag_runs": (pa.bool_(), "RLE"),
    "delta": (pa.int64(), "DELTA_BINARY_PACKED"),
    "split": (pa.float64(), "BYTE_STREAM_SPLIT"),
    "split_fixed": (pa.binary(5), "BYTE_STREAM_SPLIT"),
    "text": (pa.string(), "PLAIN"),
    "text_lengths": (pa.string(), "DELTA_LENGTH_BYTE_ARRAY"),
    "text_delta": (pa.string(), "DELTA_BYTE_ARRAY"),
    "fixed_delta": (pa.binary(5), "DELTA_BYTE_ARRAY"),
    "decimal": (pa.decimal128(9, 2), "PLAIN"),
    "word": (pa.string(), None),
    "number": (pa.int32(), None),
}


def value(kind: pa.DataType, row: int) -> Any:
    if kind == pa.bool_():
        return row % 5 == 0
    if pa.types.is_string(kind):
        return f"{row % 17} word ä" + "x" * (row % 30)
    if pa.types.is_fixed_size_binary(kind):
        return f"{row:05}".encode()
    if pa.types.is_decimal(kind):
        return Decimal(row)
    return kind.to_pandas_dtype()(row * row % 9973)


def table(nulls: bool) -> pa.Table:
    columns = {
        name: pa.array([None if nulls and (row % 7 == 3 or 64 < row < 120) else value(kind, row) for row in range(ROWS)], kind)
        for name, (kind, _) in ENCODED.items()
    }
    fields = [pa.field(name, column.type, nullable=nulls) for name, column in columns.items()]
    return pa.table(list(columns.values()), pa.schema(fields))


@pytest.mark.parametrize("strings", ["views", "dictionary"])
@pytest.mark.parametrize("nulls", [False, True], ids=["required", "nullable"])
@pytest.mark.parametrize(("version", "compression"), [("1.0", "none"), ("2.0", "snappy")])
def test_rows_behind_others(version: Any, compression: str, nulls: bool, strings: Any) -> None:
    data, target = table(nulls), io.BytesIO()
    pq.write_table(
        data, target, data_page_version=version, compression=compression, max_rows_per_page=200, write_batch_size=20,
        use_dictionary=[name for name, (_, encoding) in ENCODED.items() if encoding is None], write_page_index=False,
        column_encoding={name: encoding for name, (_, encoding) in ENCODED.items() if encoding}, store_schema=False,
    )
    expected = pa.concat_tables([data.slice(start, stop - start) for start, stop in WANTED])
    with fastpq.ParquetFile(target, strings=strings) as file:
        got = file.read(row_ranges=WANTED)
    for name in data.column_names:
        assert got[name].to_pylist() == expected[name].to_pylist(), name


@functools.cache
def large(nulls: bool) -> pa.Table:
    """A table with values for several pieces of decoded rows, and the condition's column ``pick``, from 0 to 999."""
    rows = np.arange(LARGE)
    picks = pa.array(np.random.default_rng(1).integers(0, 1000, LARGE), pa.int32())
    return table(nulls).take(pa.array(rows * 7 % ROWS)).append_column(pa.field("pick", pa.int32(), nullable=False), picks)


@functools.cache
def stored(nulls: bool, version: Any, page: int) -> bytes:
    target = io.BytesIO()
    pq.write_table(
        large(nulls), target, data_page_version=version, compression="snappy", max_rows_per_page=page, write_batch_size=20,
        use_dictionary=[name for name, (_, encoding) in ENCODED.items() if encoding is None], write_page_index=page == 20,
        column_encoding={name: encoding for name, (_, encoding) in ENCODED.items() if encoding}, store_schema=False,
        data_page_size=1 << 30, row_group_size=LARGE * 2 // 3,
    )
    return target.getvalue()


@pytest.mark.parametrize("strings", ["views", "offsets", "dictionary"])
@pytest.mark.parametrize("page", [20, 3000, LARGE])
@pytest.mark.parametrize("nulls", [False, True], ids=["required", "nullable"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_rows_of_every_density(version: Any, nulls: bool, page: int, strings: Any, tmp_path: Path) -> None:
    """Rows chosen at random have short gaps between them, in pages of any size; DuckDB's rows are the same."""
    import duckdb

    (tmp_path / "rows.parquet").write_bytes(stored(nulls, version, page))
    for share in (1, 10, 100, 300, 500, 900, 990):
        expected = large(nulls).filter(pa.compute.field("pick") < share)
        got = fastpq.read_table(tmp_path / "rows.parquet", filters=("pick", "<", share), strings=strings)
        assert pa.table(got).cast(expected.schema).equals(expected), share
        if strings == "views":
            known = expected.drop_columns("split_fixed")        # DuckDB splits no strings of bytes
            found = duckdb.read_parquet(str(tmp_path / "rows.parquet")).filter(f"pick < {share}")
            theirs = found.select(*known.column_names).to_arrow_table()
            assert theirs.cast(known.schema).equals(known), share


@pytest.mark.parametrize("encoding", ["ALP", "PLAIN"])
def test_own_encodings(encoding: str) -> None:
    values, target = np.arange(ROWS) / 4, io.BytesIO()
    fastpq.write_table(
        {"a": values}, target, column_encoding={"a": encoding}, data_page_rows=1100, write_page_index=False, compression=None)
    with fastpq.ParquetFile(target) as file:
        got = file.read(row_ranges=WANTED)["a"].to_numpy()
    assert got.tolist() == np.concatenate([values[start:stop] for start, stop in WANTED]).tolist()


@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_without_wanted_rows_stay_unopened(version: Any, in_pieces: bool, tmp_path: Any) -> None:
    """The body of the second page is broken: no read without rows of this page finds out."""
    text = np.array([f"text of row {row}" for row in range(400)], object)
    target = io.BytesIO()
    fastpq.write_table(
        {"a": text}, target, use_dictionary=False, data_page_rows=100, write_page_index=False, compression=None,
        data_page_version=version)
    stored = bytearray(target.getvalue())
    stored[stored.index(b"text of row 150")] ^= 1
    path = tmp_path / "broken.parquet"
    path.write_bytes(stored)
    with fastpq.ParquetFile(path if in_pieces else bytes(stored)) as file:
        with pytest.raises(fastpq.FormatError, match="CRC-32"):
            file.read(row_ranges=[(90, 110)])
        assert file.read(row_ranges=[(90, 100), (210, 213)])["a"].to_pylist() == [*text[90:100], *text[210:213]]


@pytest.mark.parametrize("nulls", [False, True], ids=["required", "nullable"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_within_a_short_gap_stay_unopened(version: Any, nulls: bool) -> None:
    """Rows before and behind a broken page are decoded together, and the page is not."""
    text = np.array([None if nulls and row % 3 == 0 else f"text of row {row}" for row in range(40)], object)
    target = io.BytesIO()
    fastpq.write_table(
        {"a": text}, target, use_dictionary=False, data_page_rows=10, write_page_index=False, compression=None,
        data_page_version=version)
    broken = bytearray(target.getvalue())
    broken[broken.index(b"text of row 14")] ^= 1
    with fastpq.ParquetFile(bytes(broken)) as file:
        with pytest.raises(fastpq.FormatError, match="CRC-32"):
            file.read(row_ranges=[(0, 1), (8, 9), (19, 21)])
        for wanted in ([(0, 1), (8, 9), (25, 28), (39, 40)], [(0, 10), (20, 22)], [(4, 9), (20, 21), (38, 40)]):
            expected = [value for start, stop in wanted for value in text[start:stop]]
            assert file.read(row_ranges=wanted)["a"].to_pylist() == expected
