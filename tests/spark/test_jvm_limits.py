"""Limits and the first rows in an order: the same rows as Spark's own source, from a few row groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from tests.spark.scans import metric, plan_of, scans_of
from tests.spark.test_jvm_read import FORMAT

ROWS, GROUP_ROWS, FILES = 4000, 500, 3


@pytest.fixture(scope="module")
def views(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The views ``limited_native`` and ``limited_fastpq`` of the same files, with folders of ``part``."""
    path = tmp_path_factory.mktemp("limits")
    random = np.random.default_rng(3)
    for number in range(FILES):
        folder = path / f"part={number}"
        folder.mkdir()
        shuffled = random.permutation(ROWS) + number
        columns = {
            "id": np.arange(ROWS) + number * ROWS,
            "shuffled": np.ma.masked_array(shuffled, shuffled % 10 == 0),
            "unsigned": (shuffled * 1_000_000).astype(np.uint32),
            "day": (shuffled - 2000).astype("datetime64[D]"),
            "instant": ((shuffled - 2000) * 10**9).astype("datetime64[us]"),
            "text": [f"text {value:06}" for value in np.arange(ROWS).tolist()],
            "price": np.where(shuffled % 7 == 0, np.nan, shuffled / 3),
            "same": np.ones(ROWS, np.int32),
            "nulls": np.ma.masked_array(np.zeros(ROWS, np.int16), True),
        }
        fastpq.write_table(columns, folder / "file.parquet", row_group_size=GROUP_ROWS)
    spark.read.parquet(str(path)).createOrReplaceTempView("limited_native")
    spark.read.format(FORMAT).load(str(path)).createOrReplaceTempView("limited_fastpq")
    yield
    spark.catalog.dropTempView("limited_native")
    spark.catalog.dropTempView("limited_fastpq")


def both(spark: Any, statement: str) -> tuple[Any, Any]:
    native, ours = (spark.sql(statement.replace(" T", f" {view}")) for view in ("limited_native", "limited_fastpq"))
    return native, ours


@pytest.mark.parametrize("column", ["id", "shuffled", "unsigned", "day", "instant", "text", "price", "same", "nulls", "part"])
@pytest.mark.parametrize("order", ["asc", "desc", "asc nulls last", "desc nulls first"])
def test_first_rows(spark: Any, views: None, column: str, order: str) -> None:
    for rows in (1, 30, 1300):
        native, ours = both(spark, f"select {column}, id + 1 as more from T order by {column} {order}, more limit {rows}")
        assert str(ours.collect()) == str(native.collect())        # a NaN equals no other


@pytest.mark.parametrize("statement", [
    "select id from T order by id limit 5 offset 7",
    "select text from (select id as renamed, text from T) order by renamed desc limit 3",
    "select id from T where part > 0 order by id limit 4",
    "select id from T where part = (select max(part) from T) order by id desc limit 4",
    "select id from T where id % 2 = 1 order by id desc limit 4",
    "select * from (select id, day from T order by day, id limit 10) order by id",
    "select -id as negative from T order by negative limit 3",
    "select max(id) from (select id from T order by id limit 20)",
    "select a.id from (select id from T order by id desc limit 5) a join T b on a.id = b.id order by a.id",
    "select id from T where id in (select id from T order by id desc limit 3) order by id",
    "select id, rank() over (order by id desc) as place from T order by place limit 4",
    "select distinct same from T order by same limit 2",
    "(select id from T order by id limit 2) union all (select id from T order by id desc limit 2) order by id",
])
def test_queries_with_first_rows(spark: Any, views: None, statement: str) -> None:
    native, ours = both(spark, statement)
    assert ours.collect() == native.collect()


def test_row_groups_without_first_rows_are_skipped(spark: Any, views: None) -> None:
    frame = spark.sql("select * from limited_fastpq order by id desc limit 5")
    assert "Format: fastpq[first 5 by id desc]" in plan_of(frame)
    assert [row.id for row in frame.collect()] == [FILES * ROWS - 1 - number for number in range(5)]
    [scan] = scans_of(frame)
    assert metric(scan, "fastpq.rowGroups") == FILES
    assert metric(scan, "fastpq.skippedRowGroups") == FILES * (ROWS // GROUP_ROWS - 1)
    assert metric(scan, "numOutputRows") == FILES * 5


def test_values_choose_first_rows(spark: Any, views: None) -> None:
    """All row groups have such values, and each part hands over few rows."""
    frame = spark.sql("select * from limited_fastpq order by unsigned limit 5")
    frame.collect()
    [scan] = scans_of(frame)
    assert metric(scan, "fastpq.rowGroups") > FILES
    assert metric(scan, "numOutputRows") == FILES * 5


def test_a_limit_reads_one_file_and_one_row_group(spark: Any, views: None) -> None:
    frame = spark.sql("select * from limited_fastpq limit 20")
    assert "Format: fastpq[limit 20]" in plan_of(frame)
    assert len(frame.collect()) == 20
    [scan] = scans_of(frame)
    assert metric(scan, "numOutputRows") == 20
    assert (metric(scan, "fastpq.parts"), metric(scan, "fastpq.rowGroups")) == (1, 1)


@pytest.mark.parametrize("rows", [0, 1, 499, 500, 501, 4000, 4001, 12000, 20000])
def test_limits(spark: Any, views: None, rows: int) -> None:
    for statement in (
        "select * from T limit {}", "select id, part from T where part > 0 limit {}", "select 1 from T limit {}",
        "select * from (select id, shuffled * 2 from T limit {}) where id >= 0", "select text from T where id % 2 = 0 limit {}",
    ):
        native, ours = both(spark, statement.format(rows))
        assert ours.count() == native.count()
        assert len(ours.collect()) == native.count()


def test_a_limit_of_all_rows_gives_each_once(spark: Any, views: None) -> None:
    rows = spark.sql("select id from limited_fastpq limit 20000").collect()
    assert sorted(row.id for row in rows) == list(range(FILES * ROWS))


def test_row_numbers(spark: Any, tmp_path: Path) -> None:
    fastpq.write_table({"id": np.arange(100)}, tmp_path / "file.parquet", row_group_size=10)
    frame = spark.read.format(FORMAT).load(str(tmp_path))
    rows = frame.selectExpr("id", "_metadata.row_index as row").orderBy("id", ascending=False).limit(3).collect()
    assert rows == [(99, 99), (98, 98), (97, 97)]
    assert frame.selectExpr("id", "_metadata.row_index as row").limit(25).where("id != row").count() == 0
