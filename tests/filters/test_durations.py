"""Durations as values of filters, and as smallest and largest values; pyarrow writes the files and chooses rows beside."""

from __future__ import annotations

import datetime as dt
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import fastpq

UNITS = ("s", "ms", "us", "ns")
OPS = {"==": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}
COUNTS = [-2, -1, 0, None, 1, 2, 1500, 86_400_000]
VALUES: list[Any] = [
    np.timedelta64(1, "s"), np.timedelta64(-1500, "ms"), np.timedelta64(1, "D"), np.timedelta64(1500, "us"),
    np.timedelta64(1, "ns"), np.timedelta64(1500, "ns"), np.timedelta64(2, "us"), np.timedelta64(-2, "ms"),
    np.timedelta64(0, "s"),
]
_TICKS = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def file_of(unit: str, row_group_size: int = 2) -> bytes:
    table = pa.table({"d": pa.array(COUNTS, pa.duration(unit)), "id": range(len(COUNTS))})
    pq.write_table(table, sink := io.BytesIO(), row_group_size=row_group_size, write_page_index=True)
    return sink.getvalue()


def nanoseconds(value: np.timedelta64) -> int:
    unit, step = np.datetime_data(value.dtype)
    return int(value.astype(np.int64)) * step * _TICKS[unit]


def forms(value: np.timedelta64) -> list[Any]:
    """A duration as the values of filters that stand for the same duration."""
    whole = nanoseconds(value)
    found: list[Any] = [value, pd.Timedelta(value)]
    return found if whole % 1000 else [*found, dt.timedelta(microseconds=whole // 1000)]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("unit", UNITS)
def test_comparisons_as_in_pyarrow(unit: str, op: str) -> None:
    data = file_of(unit)
    table = pq.read_table(io.BytesIO(data))
    for value in VALUES:
        scalar = pa.scalar(nanoseconds(value), pa.duration("ns"))
        expected = table.filter(OPS[op](table["d"], scalar))["id"].to_pylist()
        with fastpq.ParquetFile(data) as file:
            for form in forms(value):
                filters = [("d", op, form)]
                assert fastpq.read_table(data, filters=filters)["id"].to_pylist() == expected, form
                assert file.read(["id"], filters=filters)["id"].to_pylist() == expected
                assert file.count(filters) == len(expected)
        assert fastpq.read_table(data, filters=OPS[op](pc.field("d"), scalar))["id"].to_pylist() == expected


@pytest.mark.parametrize("unit", UNITS)
def test_lists_of_values(unit: str) -> None:
    data = file_of(unit)
    present = {nanoseconds(value) for value in VALUES}
    counts = [None if count is None else count * _TICKS[unit] for count in COUNTS]
    inside = [number for number, count in enumerate(counts) if count in present]
    outside = [number for number, count in enumerate(counts) if count is not None and count not in present]
    assert inside
    scalars = pa.array([nanoseconds(value) for value in VALUES if nanoseconds(value) % _TICKS[unit] == 0], pa.duration("ns"))
    table = pq.read_table(io.BytesIO(data))
    assert table.filter(pc.is_in(table["d"].cast(pa.duration("ns")), scalars))["id"].to_pylist() == inside
    for values in (VALUES, np.array([nanoseconds(value) for value in VALUES], "m8[ns]"), pd.to_timedelta(VALUES)):
        assert fastpq.read_table(data, filters=[("d", "in", values)])["id"].to_pylist() == inside
        assert fastpq.read_table(data, filters=[("d", "not in", values)])["id"].to_pylist() == outside


def test_row_groups_are_left_out() -> None:
    with fastpq.ParquetFile(file_of("s")) as file:
        explained = file.explain([("d", ">", dt.timedelta(days=1))])
        assert [group.outcome.name for group in explained.row_groups] == ["NONE", "NONE", "NONE", "SOME"]
        assert file.count([("d", ">", 1500)]) == 1      # counts in the unit, as stored


@pytest.mark.parametrize("value", [np.timedelta64("NaT"), np.timedelta64(1, "M"), "1 day", pd.NaT, dt.time(1)])
def test_no_durations(value: Any) -> None:
    with pytest.raises(fastpq.SchemaError, match="does not fit"):
        fastpq.read_table(file_of("s"), filters=[("d", "==", value)])


def test_numbers_are_no_durations(tmp_path: Path) -> None:
    pq.write_table(pa.table({"d": [1, 2]}), tmp_path / "a.parquet")
    for read in (fastpq.ParquetFile(tmp_path / "a.parquet").read, fastpq.ParquetDataset(tmp_path).read):
        with pytest.raises(fastpq.SchemaError, match="does not fit a column of INT64"):
            read(filters=[("d", "==", dt.timedelta(seconds=1))])


def test_durations_in_structs() -> None:
    structs = pa.array([{"d": 1}, None, {"d": 2}], pa.struct({"d": pa.duration("ms")}))
    pq.write_table(pa.table({"s": structs, "id": [1, 2, 3]}), sink := io.BytesIO())
    found = fastpq.read_table(sink.getvalue(), filters=[("s.d", ">", dt.timedelta(milliseconds=1))])
    assert found["id"].to_pylist() == [3]


def test_a_polars_duration_is_refused() -> None:
    polars = pytest.importorskip("polars")
    with pytest.raises(fastpq.UnsupportedError, match="coarser unit"):
        fastpq.read_table(file_of("ms"), filters=polars.col("d") == dt.timedelta(microseconds=1500))


@pytest.mark.parametrize("statistics", [True, False])
@pytest.mark.parametrize("unit", UNITS)
def test_smallest_and_largest(unit: str, statistics: bool) -> None:
    table = pa.table({"d": pa.array(COUNTS, pa.duration(unit))})
    pq.write_table(table, sink := io.BytesIO(), row_group_size=3, write_statistics=statistics)
    with fastpq.ParquetFile(sink.getvalue()) as file:
        low, high = file.min_max("d")
        assert [low, high] == file.read(filters=[("d", "in", [low, high])])["d"].to_pylist()
        assert [type(low), type(high)] == ([np.timedelta64] * 2 if unit == "ns" else [dt.timedelta] * 2)
    assert [nanoseconds(np.timedelta64(value)) for value in (low, high)] == extremes(pq.read_table(sink)["d"])


def extremes(column: pa.ChunkedArray) -> list[int]:
    """The smallest and the largest duration in nanoseconds, by pyarrow."""
    found = pc.min_max(column.cast(pa.int64()))
    return [value.as_py() * _TICKS[column.type.unit] for value in found.values()]


def test_beyond_a_timedelta() -> None:
    pq.write_table(pa.table({"d": pa.array([-(2**62), 5], pa.duration("s"))}), sink := io.BytesIO())
    with fastpq.ParquetFile(sink.getvalue()) as file:
        low, high = file.min_max("d")
        assert (low, high) == (np.timedelta64(-(2**62), "s"), dt.timedelta(seconds=5))
        assert low.dtype == "m8[s]"
        assert file.count([("d", "<=", low)]) == 1
        assert file.min_max("d") == tuple(file.read()["d"].to_pylist())


def test_without_arrow_types_are_numbers() -> None:
    with fastpq.ParquetFile(file_of("s"), arrow_schema=False) as file:
        assert file.min_max("d") == (-2, 86_400_000)
        with pytest.raises(fastpq.SchemaError, match="does not fit"):
            file.count([("d", "==", dt.timedelta(seconds=1))])


@pytest.mark.parametrize("units", [("s", "s"), ("s", "us"), ("ns", "ms")])
def test_datasets(tmp_path: Path, units: tuple[Any, Any]) -> None:
    """Files of one unit, or of two, which the dataset unites."""
    for number, unit in enumerate(units):
        ids = [3 * number, 3 * number + 1, 3 * number + 2]
        table = pa.table({"d": pa.array([number + 1, None, 3], pa.duration(unit)), "id": ids})
        pq.write_table(table, tmp_path / f"{number}.parquet")
    pq.write_table(pa.table({"id": [6]}), tmp_path / "2.parquet")
    dataset = fastpq.ParquetDataset(tmp_path)
    finest = max(units, key=UNITS.index)
    foreign = pyarrow.dataset.dataset(tmp_path, schema=pa.schema({"d": pa.duration(finest), "id": pa.int64()}))
    for value in [np.timedelta64(count, unit) for count in (1, 2, 3) for unit in units]:
        for op, function in OPS.items():
            expected = foreign.to_table(filter=function(pc.field("d"), pa.scalar(value)))["id"].to_pylist()
            for form in forms(value):
                assert dataset.read(filters=[("d", op, form)])["id"].to_pylist() == expected
                assert dataset.count([("d", op, form)]) == len(expected)
    low, high = dataset.min_max("d")
    assert [nanoseconds(np.timedelta64(value)) for value in (low, high)] == extremes(foreign.to_table()["d"])
    assert dataset.count([("d", "<", low)]) == 0
    assert dataset.count([("d", "==", low)]) >= 1
    explained = dataset.explain([("d", ">", np.timedelta64(100, "D"))])
    if len(set(units)) == 1:        # other units are converted before rows are chosen
        assert explained.bytes_read == 0
    assert [Path(path).name for path in explained.left_out] == ["2.parquet"]


def test_nanoseconds_of_pandas() -> None:
    """Timestamps and Timedeltas of pandas have nanoseconds beyond those of datetime's objects."""
    moments = pa.array([1, 2], pa.timestamp("ns", "UTC"))
    table = pa.table({"t": moments, "local": pa.array([1, 2], pa.timestamp("ns")), "day": pa.array([1, 2], pa.time64("ns"))})
    pq.write_table(table, sink := io.BytesIO())
    assert table.filter(pc.field("t") == pa.scalar(2, pa.timestamp("ns", "UTC"))).num_rows == 1
    with fastpq.ParquetFile(sink.getvalue()) as file:
        assert file.count([("t", "==", pd.Timestamp(2, tz="Europe/Berlin"))]) == 1
        assert file.count([("t", "<", pd.Timestamp(2, tz="UTC"))]) == 1
        assert file.count([("local", ">=", pd.Timestamp(2))]) == 1
        assert file.count([("day", "<=", pd.Timedelta(1))]) == 1
