"""Plans through the jar: limits, aggregates from footers, files and row groups left out, joins that prune, statistics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.filters.predicate import bind_filters
from fastpq.spark.jvm.selectivity import expected_share, is_worth_filtering
from tests.spark.conftest import CLIENT
from tests.spark.test_jvm_read import FORMAT, rows_of


@pytest.fixture(scope="module")
def parted(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Rows in folders of ``part`` and ``name``, with a folder of nulls; a file has two row groups."""
    path = tmp_path_factory.mktemp("plans") / "rows"
    for part in range(4):
        for name in ("a", "b", None):
            folder = path / f"part={part}" / f"name={name or '__HIVE_DEFAULT_PARTITION__'}"
            folder.mkdir(parents=True)
            start = 1000 * part + 100 * (ord(name) - 96 if name else 0)
            numbers = np.arange(start, start + 100)
            columns = {
                "id": numbers,
                "tiny": np.ma.masked_array((numbers % 50).astype(np.int8), numbers % 7 == 0),
                "flag": numbers % 2 == 0,
                "price": np.where(numbers % 10 == 0, np.nan, numbers / 2),
                "text": [None if number % 5 == 0 else f"row {number:05}" for number in numbers.tolist()],
                "day": numbers.astype("datetime64[D]"),
                "instant": (numbers * 1_000_003).astype("datetime64[us]"),
            }
            fastpq.write_table(columns, folder / "file.parquet", row_group_size=50)
    return str(path)


SPLIT = {"minPartitions": "24", "maxPartitionBytes": "1"}       # each row group is a task


def both(spark: Any, path: str, **options: str) -> tuple[Any, Any]:
    return spark.read.format(FORMAT).options(**options).load(path), spark.read.parquet(path)


def plan_of(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


EXACT = (
    "count(*)", "count(1)", "count(id)", "count(tiny)", "count(price)", "min(id)", "max(id)", "min(tiny)", "max(tiny)",
    "min(flag)", "max(text)", "min(text)", "min(day)", "max(instant)", "count(part)", "max(part)", "count(name)", "min(name)",
)


@pytest.mark.parametrize("condition", ["true", "part > 1", "part = 9", "name is null", "name = 'b' and part < 3"])
def test_aggregates_from_footers(spark: Any, parted: str, condition: str) -> None:
    found, expected = (frame.where(condition).selectExpr(*EXACT) for frame in both(spark, parted))
    assert "LocalTableScan" in plan_of(found)
    assert "Aggregate" not in plan_of(found)
    assert found.collect() == expected.collect()


def test_groups_of_folders(spark: Any, parted: str) -> None:
    found, expected = (
        frame.groupBy("name", "part").agg({"id": "max", "tiny": "count", "*": "count"}) for frame in both(spark, parted)
    )
    assert "LocalTableScan" in plan_of(found)
    assert sorted(map(str, found.collect())) == sorted(map(str, expected.collect()))


@pytest.mark.parametrize(
    "aggregate",
    ["min(price)", "max(price)", "sum(id)", "avg(id)", "count(distinct tiny)", "max(id + 1)", "count(*) filter (where flag)"],
)
def test_aggregates_that_footers_do_not_tell(spark: Any, parted: str, aggregate: str) -> None:
    found, expected = (frame.selectExpr(aggregate) for frame in both(spark, parted))
    assert "LocalTableScan" not in plan_of(found)
    assert str(found.collect()) == str(expected.collect())


def test_aggregates_behind_a_filter(spark: Any, parted: str) -> None:
    for condition in ("id > 1050", "tiny is not null and part = 1"):
        found, expected = (frame.where(condition).selectExpr(*EXACT) for frame in both(spark, parted))
        assert "LocalTableScan" not in plan_of(found)
        assert found.collect() == expected.collect()


def test_bounds_that_are_not_exact(spark: Any, tmp_path: Path) -> None:
    """Long text has bounds cut short, whose maximum is no value; and a file has no statistics."""
    fastpq.write_table({"text": ["x" * 5000 + "a", "x" * 5000 + "b"], "id": [1, 2]}, tmp_path / "long.parquet")
    found, expected = (frame.selectExpr("max(text)", "min(text)", "count(text)") for frame in both(spark, str(tmp_path)))
    assert "LocalTableScan" not in plan_of(found)
    assert found.collect() == expected.collect()
    fastpq.write_table({"text": ["y", None], "id": [3, 4]}, tmp_path / "none.parquet", write_statistics=False)
    for aggregates, is_told in ((["count(*)"], True), (["count(*)", "max(id)"], False), (["count(text)"], False)):
        found, expected = (frame.selectExpr(*aggregates) for frame in both(spark, str(tmp_path)))
        assert ("LocalTableScan" in plan_of(found)) is is_told
        assert found.collect() == expected.collect()


def test_aggregates_of_encrypted_columns(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "secret")
    keys = {"parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "kc1:id"}
    spark.range(1000).selectExpr("id", "id % 9 as rest").coalesce(1).write.options(**keys).parquet(path)
    frames = both(spark, path, **{"kms.client": CLIENT})
    found, expected = (frame.selectExpr("count(*)", "max(id)", "min(rest)") for frame in frames)
    assert "LocalTableScan" in plan_of(found)
    assert found.collect() == expected.collect()


def test_limits(spark: Any, parted: str) -> None:
    found = spark.read.format(FORMAT).option("minPartitions", "12").option("maxPartitionBytes", "1").load(parted)
    assert found.rdd.getNumPartitions() == 24
    few = found.limit(120)
    assert tasks_of(few) == 4       # of two files, with two row groups each
    for number in (0, 1, 49, 50, 51, 120, 1200, 5000):
        rows = found.limit(number).collect()
        assert len(rows) == min(number, 1200)
        assert len({row.id for row in rows}) == len(rows)
    assert found.where("id % 2 = 0").limit(100).count() == 100
    assert found.where("part = 3").limit(301).count() == 300
    assert len(found.offset(1190).limit(20).collect()) == 10


def tasks_of(frame: Any) -> int:
    """The tasks of the only scan of a plan."""
    scans = [leaf for leaf in leaves_of(frame) if "BatchScan" in leaf.nodeName()]
    assert len(scans) == 1
    return int(scans[0].inputRDD().getNumPartitions())


def leaves_of(frame: Any) -> list[Any]:
    plan = frame._jdf.queryExecution().executedPlan()
    plan = plan.inputPlan() if hasattr(plan, "inputPlan") and "AdaptiveSparkPlan" in plan.nodeName() else plan
    leaves = plan.collectLeaves()
    return [leaves.apply(number) for number in range(leaves.size())]


@pytest.mark.parametrize(
    ("condition", "tasks"),
    [("id = 1105", 1), ("id between 1149 and 1150", 2), ("part = 2", 6), ("part = 2 and id < 2050", 1), ("id < 0", 0),
     ("name = 'a' and text = 'row 03120'", 1), ("id in (7, 3299)", 2), ("day = date'1970-01-08'", 1)],
)
def test_files_and_row_groups_left_out(spark: Any, parted: str, condition: str, tasks: int) -> None:
    found, expected = (frame.where(condition) for frame in both(spark, parted, **SPLIT))
    assert tasks_of(found) == tasks
    assert str(rows_of(found)) == str(rows_of(expected))        # a NaN equals no other


def test_text_of_folders_that_looks_like_numbers(spark: Any, tmp_path: Path) -> None:
    """The types of a given schema count, also for a column that only a condition names."""
    for number in ("00501", "501"):
        (tmp_path / f"zip={number}").mkdir()
        fastpq.write_table({"id": [int(number)]}, tmp_path / f"zip={number}" / "file.parquet")
    for reader in (spark.read.format(FORMAT), spark.read.format("parquet")):
        found = reader.schema("id bigint, zip string").load(str(tmp_path))
        assert [row.id for row in found.where("zip = '00501'").select("id").collect()] == [501]


def test_a_join_prunes_folders(spark: Any, parted: str, tmp_path: Path) -> None:
    spark.range(4).selectExpr("cast(id as int) as key", "concat('part ', id) as label").write.parquet(str(tmp_path / "small"))
    text = """select f.id, s.label from {found} f join parquet.`{small}` s on f.part = s.key
              where s.label in ('part 1', 'part 3') and f.name = 'a'"""
    found, expected = both(spark, parted, **SPLIT)
    found.createOrReplaceTempView("jvm_found")
    expected.createOrReplaceTempView("jvm_expected")
    frames = [spark.sql(text.format(found=view, small=tmp_path / "small")) for view in ("jvm_found", "jvm_expected")]
    assert "dynamicpruning" in plan_of(frames[0]).lower()
    rows = [rows_of(frame) for frame in frames]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 200
    scan = next(leaf for leaf in final_leaves_of(frames[0]) if leaf.nodeName().startswith("BatchScan fastpq"))
    assert scan.inputRDD().getNumPartitions() == 4      # of 8 that the condition on name leaves


def final_leaves_of(frame: Any) -> list[Any]:
    """The leaves of an executed plan, those of its adaptive stages too."""
    found, waiting = [], [frame._jdf.queryExecution().executedPlan()]
    while waiting:
        plan = waiting.pop()
        name = plan.nodeName()
        if "AdaptiveSparkPlan" in name:
            waiting.append(plan.executedPlan())
        elif "QueryStage" in name:
            waiting.append(plan.plan())
        elif plan.children().isEmpty():
            found.append(plan)
        else:
            children = plan.children()
            waiting += [children.apply(number) for number in range(children.size())]
    return found


def test_statistics_for_the_planner(spark: Any, parted: str) -> None:
    spark.conf.set("spark.sql.cbo.enabled", "true")
    try:
        found = spark.read.format(FORMAT).load(parted)
        assert estimated_rows(found.where("part = 1")) == 300
        days = "day between date'1970-01-02' and date'1971-01-01'"
        for condition in ("id < 1000", "id = 7", days, "tiny in (1, 2)", "text > 'a'"):
            frame = found.where(condition)
            assert estimated_rows(frame) <= 1200
            assert frame.count() == spark.read.parquet(parted).where(condition).count()
        assert estimated_rows(found.where("id < 1000")) <= 300
        narrow = spark.read.format(FORMAT).option("planningFooters", "0").load(parted)
        assert narrow.where("id < 1000").count() == 300
    finally:
        spark.conf.unset("spark.sql.cbo.enabled")


def estimated_rows(frame: Any) -> int:
    return int(frame._jdf.queryExecution().optimizedPlan().stats().rowCount().get())


@pytest.mark.parametrize(
    ("filters", "share"),
    [
        ([("id", "<", 250)], 0.25), ([("id", ">=", 900)], 0.1), ([("id", ">", 5000)], 0), ([("id", "==", 3)], 0.001),
        ([("id", "not in", [3])], 0.999), ([("nulls", "is null")], 0.5), ([("nulls", "is not null"), ("id", "<", 500)], 0.25),
        ([[("id", "<", 500)], [("id", ">", 100)]], 1), ([("text", "==", "a")], 0.25), ([("x", "<=", 499.5)], 0.5),
        ([("same", "<", 7)], 1), ([("same", ">", 7)], 0),
    ],
)
def test_estimated_shares(tmp_path: Path, filters: Any, share: float) -> None:
    numbers = np.arange(1000)
    nulls = np.ma.masked_array(numbers, numbers % 2 == 0)
    columns = {"id": numbers, "nulls": nulls, "text": list(map(str, numbers)), "x": numbers * 1.0, "same": np.full(1000, 7)}
    fastpq.write_table(columns, tmp_path / "file.parquet")
    metadata = fastpq.read_metadata(tmp_path / "file.parquet")
    assert expected_share(metadata, bind_filters(filters, metadata.schema), 0) == pytest.approx(share, abs=0.002)


def test_filters_are_left_to_spark_where_that_saves_time(spark: Any, tmp_path: Path) -> None:
    """Few rows of many columns are worth it, most rows or few columns are not; rows are those of Spark's own source."""
    path = str(tmp_path / "rows")
    columns = [f"id % {number + 2} as c{number}" for number in range(9)]
    spark.range(0, 5000, 1, 1).selectExpr("hash(id) as mixed", "timestamp_micros(id) as time", *columns).write.parquet(path)
    (file,) = (tmp_path / "rows").glob("*.parquet")
    metadata = fastpq.read_metadata(file)
    everything = list(range(11))
    assert is_worth_filtering(metadata, [("mixed", "==", 7)], (0,), everything)
    assert not is_worth_filtering(metadata, [("mixed", "==", 7)], (0,), [0, 2])
    assert not is_worth_filtering(metadata, [("mixed", ">", 7)], (0,), everything)
    time = "time < timestamp'1970-01-01 00:00:00.0001'"
    for condition in ("mixed > 0", "mixed between 0 and 1000000", "c1 = 2 and c2 > 1", time):
        for chosen in (["*"], ["mixed", "c1"]):
            found, expected = (frame.where(condition).selectExpr(*chosen) for frame in both(spark, path))
            assert sorted(found.collect()) == sorted(expected.collect())


def test_estimated_sizes(spark: Any, parted: str) -> None:
    def size(condition: str) -> int:
        frame = spark.read.format(FORMAT).load(parted).where(condition)
        return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))

    assert 0.4 < size("id % 2 = 0 and tiny < 25") / size("true") < 0.6
    assert size("text > 'a' and text > 'b' and text > 'c'") / size("true") == pytest.approx(1 / 8, abs=0.01)
