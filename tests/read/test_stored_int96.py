"""INT96 values as their 12 stored bytes: no digit is lost on the way to another file, or the write is refused."""

from __future__ import annotations

import datetime as dt
import io
import struct
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.arrays.nested_columns import ListColumn
from fastpq.arrays.table import AnyColumn, Column
from fastpq.convert.numpy_input import column_from_numpy
from fastpq.schema.nested_types import Field, ListType
from fastpq.schema.types import INT96_SIZE, ColumnType, Type

STORED = ColumnType(Type.INT96, INT96_SIZE)
EPOCH_DAY = 2_440_588       # the Julian day of 1970-01-01
# (Julian day, nanoseconds): one nanosecond after 1970, the year 1500, one nanosecond before 1970 in two forms, and a far day
TIMES = [(EPOCH_DAY, 1), (2_268_924, 0), (EPOCH_DAY - 1, 86_400 * 10**9 - 1), (EPOCH_DAY, -1), (4_294_967_295, 7)]
ROWS = 60


def stored_values() -> list[bytes | None]:
    values = [struct.pack("<qI", nanoseconds, day) for day, nanoseconds in TIMES]
    return [None if row % 7 == 3 else values[row % len(values)] for row in range(ROWS)]


def int96_table(*, is_nested: bool = False) -> fastpq.Table:
    """Ids and INT96 values, made of their bytes. A nested column has each value in a list of its own."""
    values = stored_values()
    packed = np.frombuffer(b"".join(value or bytes(INT96_SIZE) for value in values), f"V{INT96_SIZE}")
    is_valid = np.array([value is not None for value in values])
    leaf: AnyColumn = Column(STORED, packed, np.packbits(is_valid, bitorder="little"), int((~is_valid).sum()))
    if is_nested:
        leaf = ListColumn(ListType(Field("element", STORED)), np.arange(ROWS + 1, dtype=np.int32), leaf)
    return fastpq.Table({"id": column_from_numpy(np.arange(ROWS)), "at": leaf})


def stored(where: Any) -> list[Any]:
    return fastpq.read_table(where, ["at"], coerce_int96_timestamp_unit="stored")["at"].to_pylist()


@pytest.mark.parametrize("is_nested", [False, True])
def test_bytes_are_written_as_they_are(is_nested: bool, tmp_path: Path) -> None:
    table, path, copy = int96_table(is_nested=is_nested), tmp_path / "a.parquet", tmp_path / "b.parquet"
    fastpq.write_table(table, path, row_group_size=25, data_page_rows=7)
    assert [column.physical_type for column in fastpq.read_schema(path).columns][1] is Type.INT96
    assert stored(path) == table["at"].to_pylist()
    fastpq.write_table(fastpq.ParquetFile(path, coerce_int96_timestamp_unit="stored"), copy, compression="zstd")
    assert stored(copy) == stored(path)
    dataset = fastpq.ParquetDataset([path, copy], coerce_int96_timestamp_unit="stored")
    assert dataset.read(["at"])["at"].to_pylist() == 2 * stored(path)
    assert [value for batch in dataset.iter_batches(11, ["at"]) for value in batch["at"].to_pylist()] == 2 * stored(path)


def test_strangers_read_the_times(tmp_path: Path) -> None:
    path, copy = tmp_path / "a.parquet", tmp_path / "b.parquet"
    times = [None if row % 5 == 0 else dt.datetime(2000 + row, 2, 1 + row % 28, row % 24, 5, 6, 789) for row in range(ROWS)]
    pq.write_table(pa.table({"at": pa.array(times, pa.timestamp("us"))}), path, use_deprecated_int96_timestamps=True)
    fastpq.write_table(fastpq.ParquetFile(path, coerce_int96_timestamp_unit="stored"), copy)
    assert pq.read_table(copy)["at"].cast(pa.timestamp("us")).to_pylist() == times
    assert pl.read_parquet(copy)["at"].to_list() == times
    with duckdb.connect() as connection:
        assert [row[0] for row in connection.execute(f"from '{copy}'").fetchall()] == times
    assert fastpq.read_table(copy)["at"].type == fastpq.read_table(path)["at"].type


def test_arrow_and_numpy_get_bytes() -> None:
    column = int96_table()["at"]
    assert column.type == STORED
    assert column.to_arrow().type == pa.binary(12)
    assert column.to_arrow().to_pylist() == stored_values()
    assert STORED.numpy_dtype == np.dtype("V12")


def test_arrow_schema_says_timestamps() -> None:
    out = io.BytesIO()
    fastpq.write_table(int96_table(), out, arrow_schema=True)
    assert pq.read_schema(io.BytesIO(out.getvalue())).field("at").type == pa.timestamp("ns")
    assert stored(out.getvalue()) == stored_values()


def test_filters_need_times() -> None:
    out = io.BytesIO()
    fastpq.write_table(int96_table(), out)
    with pytest.raises(fastpq.SchemaError, match='coerce_int96_timestamp_unit="stored" gives bytes, which have no order'):
        fastpq.read_table(out.getvalue(), filters=[("at", ">", dt.datetime(2000, 1, 1))], coerce_int96_timestamp_unit="stored")
    rows = fastpq.read_table(out.getvalue(), filters=[("at", "is null", None)], coerce_int96_timestamp_unit="stored")
    assert rows.num_rows == stored_values().count(None)


@pytest.mark.parametrize("is_nested", [False, True])
def test_no_digit_is_lost_without_a_word(is_nested: bool, tmp_path: Path) -> None:
    """A file or a dataset that is written again has microseconds or milliseconds, because of a few values."""
    path = tmp_path / "a.parquet"
    fastpq.write_table(int96_table(is_nested=is_nested), path)
    for source in (fastpq.ParquetFile(path), fastpq.ParquetDataset([path, path])):
        with pytest.raises(fastpq.UnsupportedError, match="others would lose digits") as caught:
            fastpq.write_table(source, io.BytesIO())
        assert caught.value.context["column"] == "at"
    with pytest.raises(fastpq.UnsupportedError, match="others would lose digits"):
        fastpq.append_table(fastpq.ParquetFile(path), path)


def test_a_length_of_int96_is_12() -> None:
    with pytest.raises(fastpq.SchemaError, match="INT96 does not take a length"):
        ColumnType(Type.INT96, 11)
