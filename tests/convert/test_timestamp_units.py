"""coerce_timestamps: the same files and refusals as pyarrow's, from Arrow, NumPy and pandas, flat and nested."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.types import Timestamp

UNITS = ("s", "ms", "us", "ns")
NUMBERS = [0, 1, -1, 1_500, -1_500, 123_456_789_000, -123_456_789_001, None]


def timestamps(unit: str, numbers: list[Any] = NUMBERS, zone: str | None = None) -> pa.Table:
    values = pa.array(numbers, pa.timestamp(unit, zone))
    lists = pa.ListArray.from_arrays(pa.array([0, *range(2, len(numbers) + 1, 2)], pa.int32()), values)
    nested = pa.StructArray.from_arrays([values, values], names=["inner", "other"])
    return pa.table({"flat": values, "nested": nested, "lists": pa.concat_arrays([lists, lists]), "text": ["a"] * len(numbers)})


def written(data: Any, **options: Any) -> io.BytesIO:
    sink = io.BytesIO()
    fastpq.write_table(data, sink, **options)
    return sink


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("target", ["ms", "us"])
@pytest.mark.parametrize("unit", UNITS)
def test_same_as_pyarrow(unit: str, target: str, zone: str | None) -> None:
    table, sink = timestamps(unit, zone=zone), io.BytesIO()
    pq.write_table(table, sink, coerce_timestamps=target, allow_truncated_timestamps=True)
    own = written(table, coerce_timestamps=target, allow_truncated_timestamps=True)
    theirs = pq.read_table(sink)
    assert pq.read_table(own).equals(theirs)
    assert pq.read_schema(own).equals(pq.read_schema(sink))
    assert pa.table(fastpq.read_table(own.getvalue())).equals(pa.table(fastpq.read_table(sink.getvalue())))


@pytest.mark.parametrize("is_lossless", [True, False])
@pytest.mark.parametrize("target", ["ms", "us"])
@pytest.mark.parametrize("unit", UNITS)
def test_lost_digits_are_refused_as_by_pyarrow(unit: str, target: str, is_lossless: bool) -> None:
    table = timestamps(unit, [1_000_000 * number for number in (1, -1, 3, 4)] if is_lossless else [1_000_000, 1_000_001, 5, 7])
    try:
        pq.write_table(table, io.BytesIO(), coerce_timestamps=target)
    except pa.ArrowInvalid:
        with pytest.raises(fastpq.SchemaError, match=r"='(ms|us)': 1970-01-01T.* has digits below the unit.*column"):
            written(table, coerce_timestamps=target)
    else:
        assert pq.read_table(written(table, coerce_timestamps=target))["flat"].type == pa.timestamp(target)


def test_times_outside_the_range() -> None:
    for milliseconds in (2**62, -(2**62)):
        with pytest.raises(fastpq.SchemaError, match="is outside the range of the unit"):
            written({"a": np.array([0, milliseconds], "M8[ms]")}, coerce_timestamps="us")
    smallest = pa.array([-(2**63), 0]).cast(pa.timestamp("ms"))      # no null in Arrow, and abs() of it is negative
    with pytest.raises(fastpq.SchemaError, match="is outside the range of the unit"):
        written(pa.table({"a": smallest}), coerce_timestamps="us")
    nothing = written({"a": np.array(["NaT"], "M8[ms]")}, coerce_timestamps="us")
    assert fastpq.read_table(nothing.getvalue())["a"].to_pylist() == [None]


def test_arrays_frames_batches_and_writers(tmp_path: Path) -> None:
    moments = np.array(["2026-01-01T00:00:00.001", "1969-12-31T23:59:59.999"], "M8[ns]")
    batches = pa.table({"a": moments}).to_reader(max_chunksize=1)
    for data in ({"a": moments}, pd.DataFrame({"a": moments}), fastpq.read_table(written({"a": moments}).getvalue()), batches):
        own = written(data, coerce_timestamps="ms")
        assert pq.read_schema(own).field("a").type == pa.timestamp("ms")
        assert pq.read_table(own)["a"].to_numpy().tolist() == moments.astype("M8[ms]").tolist()
    path = tmp_path / "a.parquet"
    with fastpq.ParquetWriter(path, coerce_timestamps="us") as writer:
        writer.write_batch({"a": moments})
        writer.write_batch({"a": moments.astype("M8[ms]")})
    answer = duckdb.connect().execute(f"select typeof(a), count(*) from '{path}' group by all")
    assert answer.fetchall() == [("TIMESTAMP", 4)]


def test_int96_stays(tmp_path: Path) -> None:
    schema = {"a": fastpq.ColumnType(fastpq.Type.INT96, None, Timestamp("ns"))}
    own = written({"a": np.array([1, 2], "M8[ns]")}, schema=schema, coerce_timestamps="ms")
    assert fastpq.read_schema(own.getvalue()).columns[0].element.type == fastpq.Type.INT96


@pytest.mark.parametrize("unit", ["s", "ns", 3])
def test_wrong_units(unit: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="coerce_timestamps"):
        written({"a": [1]}, coerce_timestamps=unit)
