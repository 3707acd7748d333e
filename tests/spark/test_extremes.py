"""Extremes as Spark's native source reads and writes them: old times, 1,000 columns, empty and skewed partitions, thousands of
small files."""

from __future__ import annotations

import uuid
from functools import cache, reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

import fastpq
import fastpq.spark
from tests.spark.test_jvm_read import FORMAT

DATES = ("0001-01-03", "1000-02-28", "1500-03-01", "1582-10-04", "1582-10-15", "1899-12-31", "1900-01-01", "9999-12-31")
TIMES = ("00:00:00", "12:34:56.789012", "23:59:59.999999")
WAYS = ("fastpq", FORMAT)
FILES = 5000        # small ones


def texts(frame: Any) -> list[str]:
    """Rows in order, with dates and times as Spark prints them: Python has no times of other calendars."""
    columns = [f"cast({name} as string) as {name}" for name in frame.columns]
    return sorted(map(str, frame.selectExpr(*columns).collect()))


def old_times(spark: Any) -> Any:
    days = ", ".join(f"'{date}'" for date in DATES)
    moments = ", ".join(f"'{time}'" for time in TIMES)
    return spark.sql(
        f"""select cast(d as date) as day, cast(concat(d, ' ', t) as timestamp) as instant,
            cast(concat(d, ' ', t) as timestamp_ntz) as local, array(cast(d as date)) as days
            from (select explode(array({days})) as d) lateral view explode(array({moments})) as t"""
    )


class NativeTimes:
    """Datasets of old times by Spark's own source, each written, and read by that source, once for all tests."""

    def __init__(self, source: Any, folder: Path) -> None:
        self._source, self._folder = source, folder

    @cache  # noqa: B019 - lives as long as the module's tests
    def path(self, stored: str, mode: str, condition: str) -> str:
        """The folder of the times that meet a condition."""
        target = self._folder / uuid.uuid4().hex
        write_old_times(self._source, target, stored, mode, condition)
        return str(target)

    @cache  # noqa: B019
    def texts(self, path: str, name: str) -> list[str]:
        """The rows of a dataset, as Spark's own source reads them, and a name in each."""
        return texts(self._source.read.parquet(path).selectExpr("*", f"'{name}' as name"))


@pytest.fixture(scope="module")
def native_times(source: Any, tmp_path_factory: pytest.TempPathFactory) -> NativeTimes:
    return NativeTimes(source, tmp_path_factory.mktemp("times"))


@pytest.mark.parametrize("way", WAYS)
def test_old_times_of_native_files(source: Any, native_times: NativeTimes, way: str) -> None:
    """Values since 1900 are the same in both calendars; older ones of LEGACY files are refused."""
    frames, expected = [], []
    for stored in ("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS"):
        for mode, since in (("CORRECTED", "0001-01-01"), ("LEGACY", "1900-01-01")):
            path = native_times.path(stored, mode, f"day >= date'{since}'")
            name = f"{stored} {mode}"
            frames.append(source.read.format(way).load(path).selectExpr("*", f"'{name}' as name"))
            expected += native_times.texts(path, name)
    assert texts(reduce(DataFrame.unionAll, frames)) == sorted(expected)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stored", ["INT96", "TIMESTAMP_MICROS"])
def test_old_times_of_another_calendar(source: Any, native_times: NativeTimes, way: str, stored: str) -> None:
    path = native_times.path(stored, "LEGACY", "day < date'1600-01-01'")
    read = source.read.format(way).load(path)
    refused = [read.select(column) for column in ("day", "instant", "days")]
    refused.append(read.selectExpr("min(day) as day"))                              # not answered from statistics
    refused.append(read.where("day < date'0001-01-02'").select("day"))              # nor pruned by them
    for frame in refused:
        with pytest.raises(Exception, match=r"UnsupportedError: .*legacy calendar"):
            texts(frame)
    alone = read.select("local") if way == FORMAT else source.read.format(way).schema("local timestamp_ntz").load(path)
    assert len(texts(alone)) == 15          # local timestamps are in one calendar always


@pytest.mark.parametrize("stored", ["INT96", "TIMESTAMP_MICROS"])
def test_the_core_reads_old_dates_like_spark(source: Any, native_times: NativeTimes, stored: str) -> None:
    path = native_times.path(stored, "LEGACY", "day < date'1600-01-01'")
    expected = source.read.parquet(path).selectExpr("cast(day as string) as day", "cast(days as string) as days").collect()
    table = fastpq.read_table(path, ["day", "days"])
    days, lists = table["day"].to_pylist(), table["days"].to_pylist()
    assert sorted(map(str, days)) == sorted(row.day for row in expected)
    assert sorted(f"[{each}]" for (each,) in lists) == sorted(row.days for row in expected)
    with pytest.raises(fastpq.UnsupportedError, match="legacy calendar"):
        fastpq.read_table(path, ["instant"])


def write_old_times(source: Any, target: Path, stored: str, mode: str, condition: str) -> None:
    """Write old times by Spark's own source."""
    settings = {
        "spark.sql.parquet.outputTimestampType": stored,
        "spark.sql.parquet.datetimeRebaseModeInWrite": mode,
        "spark.sql.parquet.int96RebaseModeInWrite": mode,
    }
    try:
        for name, value in settings.items():
            source.conf.set(name, value)
        old_times(source).where(condition).write.parquet(str(target))
    finally:
        for name in settings:
            source.conf.unset(name)


@pytest.mark.parametrize("way", WAYS)
def test_old_times_that_we_wrote(source: Any, tmp_path: Path, way: str) -> None:
    frame = old_times(source)
    frame.write.format(way).mode("append").save(str(tmp_path / "ours"))
    assert texts(source.read.parquet(str(tmp_path / "ours"))) == texts(frame)


@pytest.fixture(scope="module")
def thousand_columns(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    """A dataset of 1,000 columns by Spark's own source, and its rows as texts."""
    path = str(tmp_path_factory.mktemp("wide") / "native")
    types = pa.int64(), pa.string(), pa.float64(), pa.decimal128(38, 2)
    columns = {}
    for number in range(1000):
        values = [None if (row + number) % 5 == 0 else row * number for row in range(7)]
        columns[f"column_{number:04}"] = pa.array(values).cast(types[number % 4])
    spark.createDataFrame(pa.table(columns)).coalesce(1).write.parquet(path)
    return path, sorted(map(str, spark.read.parquet(path).collect()))


@pytest.mark.parametrize("way", WAYS)
def test_a_thousand_columns(source: Any, thousand_columns: tuple[str, list[str]], tmp_path: Path, way: str) -> None:
    path, expected = thousand_columns
    assert len({text for text in expected if "column_0999=" in text}) == 7
    native = source.read.parquet(path)
    native.write.format(way).mode("append").save(str(tmp_path / "ours"))
    ours = source.read.parquet(str(tmp_path / "ours"))
    assert ours.columns == native.columns
    assert sorted(map(str, ours.collect())) == expected
    assert sorted(map(str, source.read.format(way).load(path).collect())) == expected


@pytest.mark.parametrize("way", WAYS)
def test_empty_and_skewed_partitions(source: Any, tmp_path: Path, way: str) -> None:
    """Of eight tasks one has nearly all rows, one has one, and six have none."""
    rows = source.range(20_000, numPartitions=1).selectExpr(
        "id", "if(id = 5, 1, 0) as key", "repeat('x', cast(id % 50 as int)) as t"
    )
    skewed = rows.repartition(8, "key")
    skewed.write.format(way).mode("append").save(str(tmp_path / "ours"))
    skewed.where("id < 0").write.format(way).mode("append").save(str(tmp_path / "empty"))
    sums = "count(*)", "sum(id)", "sum(hash(id, key, t))", "count(distinct key)"
    expected = rows.selectExpr(*sums).first()
    for reader in ("parquet", way):
        assert source.read.format(reader).load(str(tmp_path / "ours")).selectExpr(*sums).first() == expected
        empty = source.read.format(reader).load(str(tmp_path / "empty"))
        assert (empty.columns, empty.count()) == (rows.columns, 0)


def test_thousands_of_small_files(source: Any, tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    fastpq.write_table({"id": list(range(3))}, tmp_path / "first" / "x.parquet")
    (tmp_path / "files").mkdir()
    for number in range(FILES):
        (tmp_path / "files" / f"{number}.parquet").hardlink_to(tmp_path / "first" / "x.parquet")
    for way in WAYS:
        frame = source.read.format(way).load(str(tmp_path / "files"))
        assert frame.selectExpr("count(*)", "sum(id)").first() == (3 * FILES, 3 * FILES)
        assert frame.rdd.getNumPartitions() < FILES / 10
