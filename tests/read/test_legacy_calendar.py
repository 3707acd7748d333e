"""Old dates and timestamps in files that Spark wrote in the Julian calendar: moved, refused, or kept."""

from __future__ import annotations

import datetime as dt
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.metadata.legacy_calendar import FIRST_DAY, gregorian_days
from fastpq.schema.types import ColumnType, Timestamp, Type

# Spark's own table (RebaseDateTime.scala, Spark 4): from each of these Julian days on, this difference to the Gregorian day.
SWITCH_DAYS = (
    -719164, -682945, -646420, -609895, -536845, -500320, -463795, -390745, -354220, -317695, -244645, -208120, -171595, -141427)
DIFFERENCES = (2, 1, 0, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, 0)
LEGACY = {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": "", "org.apache.spark.legacyINT96": ""}
SPARK_2 = {"org.apache.spark.version": "2.4.8"}
OLD, NEW = dt.datetime(1899, 12, 31), dt.datetime(1900, 1, 1)


def by_table(days: Any) -> Any:
    """Return Gregorian days by Spark's table."""
    return days + np.array(DIFFERENCES)[np.searchsorted(SWITCH_DAYS, days, "right") - 1]


STORED = np.arange(-719164, FIRST_DAY + 3, dtype=np.int32)
EXPECTED = by_table(STORED).astype("datetime64[D]")


def legacy_file(columns: Any, metadata: Any = LEGACY, **options: Any) -> bytes:
    target = io.BytesIO()
    fastpq.write_table(columns, target, key_value_metadata=metadata, **options)
    return target.getvalue()


@pytest.fixture(scope="module")
def days() -> bytes:
    """All days from 0001-01-01 to 1582-10-17, in row groups with page indexes, statistics and bloom filters."""
    return legacy_file(
        {"day": STORED.astype("datetime64[D]"), "number": np.arange(len(STORED))}, row_group_size=100_000, data_page_size=4096,
        bloom_filter={"day": True})


def test_days_are_moved_as_by_spark() -> None:
    old = STORED[STORED < FIRST_DAY]
    assert (gregorian_days(old) == by_table(old)).all()
    assert (np.diff(gregorian_days(np.arange(-2_000_000, FIRST_DAY))) >= 0).all()      # filters on bounds need this
    assert gregorian_days(-719164 - 366) == -719164 + 2 - 366       # 0000-01-01: the year 0 is a leap year in both calendars


@pytest.mark.parametrize("metadata", [LEGACY, SPARK_2])
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_every_route_moves_dates(tmp_path: Path, metadata: dict[str, str], codec: str) -> None:
    stored = STORED[1000::1000].astype("datetime64[D]")      # without days before the first of datetime.date
    stored_days = stored.tolist()
    lists = pa.array([[day, None] for day in stored_days], pa.list_(pa.date32()))
    structs = pa.array([{"inner": day} for day in stored_days], pa.struct({"inner": pa.date32()}))
    maps = pa.array([[(day, day)] for day in stored_days], pa.map_(pa.date32(), pa.date32()))
    table = pa.table({"flat": pa.array(stored), "list": lists, "struct": structs, "map": maps})
    raw = legacy_file(table, metadata, compression=codec)
    before = bytes(raw)
    path = tmp_path / "part-0.parquet"
    path.write_bytes(raw)
    expected = EXPECTED[1000::1000].tolist()
    for where in (raw, path, tmp_path):
        read = fastpq.read_table(where)
        assert read["flat"].to_pylist() == expected
        assert read["list"].to_pylist() == [[day, None] for day in expected]
        assert read["struct"].to_pylist() == [{"inner": day} for day in expected]
        assert [dict(each) for each in read["map"].to_pylist()] == [{day: day} for day in expected]
        assert read.to_pandas()["flat"].tolist() == expected
        assert pa.table(read)["flat"].to_pylist() == expected
        kept = fastpq.read_table(where, legacy_calendar="keep")
        assert kept["flat"].to_pylist() == stored_days
    assert raw == before        # the caller's bytes stay as they are
    with fastpq.ParquetFile(path, memory_map="keep") as file:
        assert file.read(["flat"])["flat"].to_pylist() == expected
        assert [day for batch in file.iter_batches(100) for day in batch["flat"].to_pylist()] == expected
        assert file.take([3, 1])["flat"].to_pylist() == [expected[3], expected[1]]
        array = np.zeros(len(expected), np.int32)
        file.read(["flat"], out={"flat": array})
        assert array.astype("datetime64[D]").tolist() == expected
        assert pa.RecordBatchReader.from_stream(file).read_all()["flat"].to_pylist() == expected
    with fastpq.ParquetFile(raw, on_error="null") as file:
        assert file.read()["flat"].to_pylist() == expected
    assert fastpq.recover_table(raw).table["flat"].to_pylist() == expected
    assert fastpq.recover_table(raw, legacy_calendar="keep").table["flat"].to_pylist() == stored_days


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_values_under_nulls_and_dictionaries(codec: str) -> None:
    stored = [None, dt.date(1500, 3, 1), dt.date(2000, 1, 1)] * 400
    raw = legacy_file({"day": pa.array(stored, pa.date32())},
                      compression=codec, use_dictionary=True)
    moved = fastpq.read_table(raw)["day"].to_pylist()
    assert moved == [None, dt.date(1500, 2, 20), dt.date(2000, 1, 1)] * 400
    assert fastpq.read_table(raw, filters=[("day", "==", dt.date(1500, 2, 20))]).num_rows == 400
    assert fastpq.read_table(raw, filters=[("day", "==", dt.date(1500, 3, 1))]).num_rows == 0


@pytest.mark.parametrize("op", ["==", "!=", "<", "<=", ">", ">=", "in", "not in"])
def test_filters_are_about_moved_dates(days: bytes, op: str) -> None:
    """Statistics, page indexes, dictionaries and bloom filters agree with the values."""
    operators: dict[str, Any] = {
        "==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
        "in": np.isin, "not in": lambda values, keys: ~np.isin(values, keys)}
    for text in ("0001-01-03", "0100-03-01", "1000-02-28", "1000-03-01", "1582-10-04", "1582-10-10", "1582-10-15"):
        day = np.datetime64(text)
        operand: Any = [day, np.datetime64("1582-10-16")] if "in" in op else day
        expected = np.flatnonzero(operators[op](EXPECTED, operand))
        filters = [("day", op, operand)]
        with fastpq.ParquetFile(days) as file:
            assert file.count(filters) == len(expected)
            assert (file.read(["number"], filters=filters)["number"].to_numpy() == expected).all()
            file.explain(filters)


def test_bounds_are_moved(days: bytes) -> None:
    with fastpq.ParquetFile(days) as file:
        assert file.min_max("day") == (dt.date(1, 1, 1), dt.date(1582, 10, 17))
        statistics = file.metadata.row_group(0).column(0).statistics
        assert statistics is not None
        assert statistics.min == dt.date(1, 1, 1)
    with fastpq.ParquetFile(days, legacy_calendar="keep") as file:
        assert file.min_max("day")[0] == np.datetime64("0000-12-30")


def test_files_of_other_calendars_are_unchanged() -> None:
    for metadata in ({}, {"org.apache.spark.version": "3.5.0"}, {"org.apache.spark.legacyDateTime": ""}):
        raw = legacy_file({"day": np.array(["1500-03-01"], "datetime64[D]")}, metadata)
        assert fastpq.read_table(raw)["day"].to_pylist() == [dt.date(1500, 3, 1)]


def test_what_is_written_again_is_not_moved_twice(tmp_path: Path) -> None:
    raw = legacy_file({"day": np.array(["1500-03-01"], "datetime64[D]")})
    table = fastpq.read_table(raw)
    again = legacy_file(table, {})
    assert fastpq.read_table(again)["day"].to_pylist() == table["day"].to_pylist() == [dt.date(1500, 2, 20)]
    kept = legacy_file(fastpq.read_table(raw, legacy_calendar="keep"), {})
    assert fastpq.read_table(kept)["day"].to_pylist() == [dt.date(1500, 2, 20)]      # it keeps the keys and the stored days
    (tmp_path / "a").write_bytes(raw)
    (tmp_path / "b").write_bytes(again)
    with pytest.raises(fastpq.SchemaError, match="calendars"):
        fastpq.merge_files([tmp_path / "a", tmp_path / "b"], tmp_path / "c")


@pytest.mark.parametrize("unit", ["ms", "us", "ns", "INT96"])
@pytest.mark.parametrize("nested", [False, True])
def test_old_timestamps_are_refused(tmp_path: Path, unit: str, nested: bool) -> None:
    moments = [OLD, NEW, dt.datetime(2020, 5, 5)]
    type_ = pa.timestamp("us" if unit == "INT96" else unit, "UTC")
    column = pa.array([[each] for each in moments], pa.list_(type_)) if nested else pa.array(moments, type_)
    target = io.BytesIO()
    table = pa.table({"t": column, "number": [0, 1, 2]}).replace_schema_metadata(LEGACY)
    pq.write_table(table, target, row_group_size=1, use_deprecated_int96_timestamps=unit == "INT96")
    raw = target.getvalue()
    path = tmp_path / "part-0.parquet"
    path.write_bytes(raw)
    for where in (raw, path, tmp_path):
        with pytest.raises(fastpq.UnsupportedError, match=r'before 1900.*legacy_calendar="keep"'):
            fastpq.read_table(where)
        assert fastpq.read_table(where, ["number"]).num_rows == 3
        kept = fastpq.read_table(where, legacy_calendar="keep")["t"].to_pylist()
        values = [each[0] for each in kept] if nested else kept
        assert [each.replace(tzinfo=None) for each in pa.array(values).to_pylist()] == moments
    with fastpq.ParquetFile(raw) as file:
        assert file.read(row_groups=[1, 2]).num_rows == 2
        with pytest.raises(fastpq.UnsupportedError, match="legacy calendar"):
            list(file.iter_batches())


def test_bounds_of_old_timestamps_are_not_used() -> None:
    moments = np.array([OLD, NEW, dt.datetime(2020, 5, 5)], "datetime64[us]")
    raw = legacy_file({"t": moments}, schema={"t": ColumnType(Type.INT64, None, Timestamp("us", utc=True))}, row_group_size=2)
    since = [("t", ">=", dt.datetime(2000, 1, 1, tzinfo=dt.UTC))]
    with fastpq.ParquetFile(raw) as file:
        statistics = file.metadata.row_group(0).column(0).statistics
        assert statistics is not None
        assert not statistics.has_min_max
        with pytest.raises(fastpq.UnsupportedError, match="legacy calendar"):
            file.min_max("t")
        assert file.read(filters=since).num_rows == 1       # the largest value of the other row group can be used
        with pytest.raises(fastpq.UnsupportedError, match="legacy calendar"):
            file.read(filters=[("t", "<", dt.datetime(1890, 1, 1, tzinfo=dt.UTC))])
    with fastpq.ParquetFile(raw, legacy_calendar="keep") as file:
        assert file.min_max("t")[0] == OLD.replace(tzinfo=dt.UTC)


def test_local_timestamps_are_in_one_calendar() -> None:
    raw = legacy_file({"t": np.array([OLD], "datetime64[us]")})
    assert fastpq.read_table(raw)["t"].to_pylist() == [OLD]


def test_wrong_option() -> None:
    with pytest.raises(ValueError, match='legacy_calendar must be "rebase" or "keep"'):
        fastpq.ParquetFile(legacy_file({"a": [1]}), legacy_calendar="julian")  # type: ignore[arg-type]
