"""Lookups through the jar: few rows that planning reads, without a task; the rows of Spark's own reader."""

from __future__ import annotations

import datetime
import itertools
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from tests.spark.conftest import CLIENT
from tests.spark.test_jvm_plans import plan_of
from tests.spark.test_jvm_read import FORMAT

ROWS = 3_000           # of a file
KEYS = {"parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "kc1:id,price"}
EPOCH = datetime.datetime(2024, 1, 1)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Rows of every type that lookups have, in two folders, by fastpq and by pyarrow."""
    folder = tmp_path_factory.mktemp("lookups") / "rows"
    for number, name in enumerate(("a", "b")):
        (folder / f"name={name}").mkdir(parents=True)
        table = rows_from(number * ROWS)
        fastpq.write_table(table, folder / f"name={name}" / "ours.parquet", data_page_rows=500, row_group_size=ROWS // 2)
        pq.write_table(
            rows_from((number + 2) * ROWS), folder / f"name={name}" / "theirs.parquet",
            write_page_index=True, data_page_size=4000, store_decimal_as_integer=True,
        )
    return str(folder)


def rows_from(start: int) -> pa.Table:
    ids = np.arange(start, start + ROWS)
    few = ids % 11 == 0
    doubles = np.select([ids % 13 == 0, ids % 17 == 0, ids % 19 == 0], [np.nan, -0.0, 0.0], ids / 7)
    moments = [EPOCH + datetime.timedelta(minutes=int(number)) for number in ids]
    return pa.table({
        "id": pa.array(ids),
        "tiny": pa.array(ids % 100, pa.int8(), mask=few),
        "small": pa.array(ids % 30_000, pa.int16()),
        "whole": pa.array(-ids, pa.int32(), mask=ids % 5 == 0),
        "flag": pa.array(ids % 2 == 0),
        "single": pa.array(doubles.astype("f4"), mask=few),
        "price": pa.array(doubles),
        "amount": pa.array([Decimal(int(number)).scaleb(-2) for number in ids], pa.decimal128(12, 2)),
        "huge": pa.array([Decimal(int(number) << 70).scaleb(-5) for number in ids], pa.decimal128(38, 5)),
        "text": pa.array([None if number % 3 == 0 else f"row {number:06}" for number in ids.tolist()]),
        "bytes": pa.array([number.to_bytes(4, "big") for number in ids.tolist()]),
        "day": pa.array((ids - 10_000).astype("i4"), pa.int32()).cast(pa.date32()),
        "instant": pa.array(moments, pa.timestamp("us", "UTC"), mask=few),
        "local": pa.array(moments, pa.timestamp("us")),
    })


def frames(spark: Any, path: str, **options: str) -> tuple[Any, Any]:
    return spark.read.format(FORMAT).option("lookupRows", "1000").options(**options).load(path), spark.read.parquet(path)


def is_lookup(frame: Any) -> bool:
    return "LocalTableScan" in plan_of(frame) and "FastpqScan" not in plan_of(frame) and "BatchScan" not in plan_of(frame)


def same(found: Any, expected: Any) -> bool:
    return sorted(map(str, found.collect())) == sorted(map(str, expected.collect()))


def conditions(seed: int) -> Iterator[str]:
    """Conditions on every column, most of which leave few rows, alone and joined."""
    choice = random.Random(seed)
    while True:
        row = choice.randrange(4 * ROWS + 50)
        moment = EPOCH + datetime.timedelta(minutes=row)
        value = choice.choice([row / 7, 0.0, -0.0])
        near = choice.choice([
            f"id = {row}", f"id <=> {row}", f"id in ({row}, {row + 3}, null)", f"id between {row} and {row + 20}",
            f"id > {4 * ROWS - 5}", f"text = 'row {row:06}'", f"text like 'row {row // 100:04}%'", f"amount = {row}.00 / 100",
            f"amount between {row / 100:.2f} and {row / 100 + 0.1:.2f}", f"whole = -{row}", f"bytes = x'{row:08x}'",
            f"day = date'1970-01-01' + {row - 10_000}", f"instant = timestamp'{moment}'", f"local = timestamp_ntz'{moment}'",
            f"huge = {Decimal(row << 70).scaleb(-5)}", f"price = double('{value}')", f"not (id < {row} or id > {row + 9})",
            f"id = {row} and price = double('nan')", f"small = {row % 30_000} and id >= {row}",
        ])
        other = choice.choice([
            "true", "flag", "not flag", "tiny is null", "tiny is not null", f"tiny > {row % 100}", "text is null", "name = 'a'",
            f"single >= float({row / 7})", "price > double('infinity')", "whole <> -5", "not (whole = -5)", "name in ('b', 'c')",
            "(flag or text is null)", "not (tiny in (1, 2, 3))", "price <> double('nan')", "instant is not null",
        ])
        yield f"{near} and {other}"


@pytest.fixture
def judging(spark: Any) -> Iterator[Any]:
    """The session with conditions on the native source judged by Spark alone: pushed into parquet-java, they lose NaNs."""
    spark.conf.set("spark.sql.parquet.filterPushdown", "false")
    yield spark
    spark.conf.unset("spark.sql.parquet.filterPushdown")


@pytest.mark.parametrize("seed", range(2))
def test_rows_are_those_of_spark(judging: Any, path: str, seed: int) -> None:
    found, expected = frames(judging, path)
    tried = list(itertools.islice(conditions(seed), 20))
    lookups = 0
    judged = expected.selectExpr("*", *(f"{condition} as c{number}" for number, condition in enumerate(tried))).collect()
    for number, condition in enumerate(tried):
        ours = found.where(condition)
        rows = ours.collect()
        wanted = [row[: len(found.columns)] for row in judged if row[f"c{number}"]]
        assert sorted(map(str, map(tuple, rows))) == sorted(map(str, wanted)), condition
        lookups += is_lookup(ours)
    assert lookups >= 15


def test_no_task_runs(spark: Any, path: str) -> None:
    found, expected = frames(spark, path)
    group = "a lookup"
    spark.sparkContext.setJobGroup(group, group)
    try:
        rows = found.where("id = 4321").select("id", "huge", "text", "name").collect()
        assert spark.sparkContext.statusTracker().getJobIdsForGroup(group) == []
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert rows == expected.where("id = 4321").select("id", "huge", "text", "name").collect()
    assert len(rows) == 1


@pytest.mark.parametrize("query", ["count(*)", "max(id), sum(amount), count(text)", "name, count(*), min(price) group by name"])
def test_aggregates_of_a_lookup(spark: Any, path: str, query: str) -> None:
    """Footers know nothing of conditions on values."""
    columns, _, groups = query.partition(" group by ")
    texts = []
    for name, frame in zip(("ours", "native"), frames(spark, path), strict=True):
        frame.createOrReplaceTempView(name)
        group = f"group by {groups}" if groups else ""
        texts.append(spark.sql(f"select {columns} from {name} where id between 2990 and 3010 {group}"))
    assert is_lookup(texts[0])
    assert same(*texts)


def test_a_limit_counts_the_rows_of_a_lookup(spark: Any, path: str) -> None:
    found, _ = frames(spark, path)
    for number in (1, 5, 50):
        assert len(found.where("id between 5990 and 6010").limit(number).collect()) == min(number, 21)
    last = range(4 * ROWS - 10, 4 * ROWS)
    assert sorted(row.id for row in found.where(f"id >= {last[0]}").limit(10).collect()) == list(last)


def test_a_join_with_a_lookup(spark: Any, path: str) -> None:
    for name, frame in zip(("ours", "native"), frames(spark, path), strict=True):
        frame.createOrReplaceTempView(name)
    query = "select a.id, b.text from {0} a join {0} b on a.id = b.id + 1 where b.id in (5, 3000, 11999)"
    assert same(spark.sql(query.format("ours")), spark.sql(query.format("native")))


@pytest.mark.parametrize(
    "condition",
    [
        "id < 2000",                        # many rows
        "id + 1 = 7",                       # nothing that fastpq judges
        "id = 7 and upper(text) = 'ROW'",
        "name = 'a'",                       # of folders alone
    ],
)
def test_conditions_without_a_lookup(spark: Any, path: str, condition: str) -> None:
    found, expected = (frame.where(condition).select("id", "text", "name") for frame in frames(spark, path))
    assert not is_lookup(found)
    assert same(found, expected)


def test_switched_off(spark: Any, path: str) -> None:
    found, expected = (frame.where("id = 5") for frame in frames(spark, path, lookupRows="0"))
    assert not is_lookup(found)
    assert same(found, expected)


def test_columns_that_tasks_read(spark: Any, tmp_path: Path) -> None:
    """Nested columns have no form in an answer: tasks apply the conditions, and Spark does not."""
    lists = pa.array([[number, None] if number % 2 else None for number in range(ROWS)])
    table = pa.table({"id": np.arange(ROWS), "part": np.arange(ROWS) % 7, "lists": lists})
    fastpq.write_table(table, tmp_path / "a.parquet", data_page_rows=100)
    found, expected = frames(spark, str(tmp_path))
    for condition in ("id = 77", "id between 500 and 900 and part = 3", "id = -1"):
        ours = found.where(condition)
        assert "BatchScan" in plan_of(ours)
        assert " Filter (" not in plan_of(ours)
        assert same(ours, expected.where(condition)), condition
        assert is_lookup(ours.select("id"))
        assert ours.limit(3).count() == expected.where(condition).limit(3).count()


def test_another_type_than_in_the_file(spark: Any, tmp_path: Path) -> None:
    """The schema of the dataset is that of its first file."""
    fastpq.write_table({"id": np.arange(10, dtype="i8")}, tmp_path / "a.parquet")
    fastpq.write_table({"id": np.arange(10, dtype="i4"), "more": np.arange(10)}, tmp_path / "b.parquet")
    found, expected = (frame.where("id = 3") for frame in frames(spark, str(tmp_path)))
    assert not is_lookup(found)
    assert same(found, expected)


def test_encrypted_columns(spark: Any, path: str, tmp_path: Path) -> None:
    target = str(tmp_path / "secret")
    spark.read.parquet(path).coalesce(1).write.options(**KEYS).parquet(target)
    found, expected = frames(spark, target, **{"kms.client": CLIENT})
    for condition in ("id = 4321", "id between 100 and 110 and price > 14.5", "text = 'row 000100'"):
        assert same(found.where(condition), expected.where(condition))
    assert is_lookup(found.where("id = 4321"))


def test_a_file_that_is_gone(spark: Any, tmp_path: Path) -> None:
    for name in ("a", "b"):
        fastpq.write_table({"id": np.arange(10)}, tmp_path / f"{name}.parquet")
    found, _ = frames(spark, str(tmp_path))
    passing, _ = frames(spark, str(tmp_path), ignoreMissingFiles="true")
    (tmp_path / "b.parquet").unlink()
    with pytest.raises(Exception, match=r"FileNotFoundError: .*b\.parquet vanished"):
        found.where("id = 3").collect()
    assert [row.id for row in passing.where("id = 3").collect()] == [3]
