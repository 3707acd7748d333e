"""Metrics of the scan in Spark's UI, and what joins tell the scan while the query runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql.functions import col

import fastpq
from tests.spark.conftest import CLIENT
from tests.spark.scans import metric, plan_of, scans_of
from tests.spark.test_jvm_read import FORMAT


@pytest.fixture(scope="module")
def parts(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Ten folders of ``part``, whose files have ten row groups of 1,000 rows, and the small table ``small`` beside them."""
    path = tmp_path_factory.mktemp("metrics")
    for part in range(10):
        (path / "rows" / f"part={part}").mkdir(parents=True)
        numbers = np.arange(10_000) + part * 10_000
        columns = {"id": numbers, "text": [f"text {number}" for number in numbers.tolist()]}
        fastpq.write_table(columns, path / "rows" / f"part={part}" / "file.parquet", row_group_size=1000)
    spark.range(10).selectExpr("cast(id as int) key", "concat('part ', id) label").write.parquet(str(path / "small"))
    return str(path)


def shown_metrics(spark: Any) -> dict[str, str]:
    """The metrics of the last query's scan by their text, as the UI shows them (SQLAppStatusStore)."""
    spark._jsc.sc().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    executions = store.executionsList()
    execution = executions.apply(executions.size() - 1).executionId()
    values, nodes = store.executionMetrics(execution), store.planGraph(execution).allNodes()
    shown = {}
    for node in (nodes.apply(number) for number in range(nodes.size())):
        if node.name().startswith("Scan fastpq"):
            metrics = node.metrics()
            for one in (metrics.apply(number) for number in range(metrics.size())):
                value = values.get(one.accumulatorId())
                if value.isDefined():
                    shown[one.name()] = value.get()
    return shown


def test_the_ui_shows_what_was_read(spark: Any, parts: str) -> None:
    frame = spark.read.format(FORMAT).load(f"{parts}/rows")
    frame.where("id = 23456").selectExpr("text").collect()
    shown = shown_metrics(spark)
    assert shown["row groups read"] == "1"
    assert shown["row groups skipped"] == "99"
    assert (shown["parts of files read"], shown["parts of files skipped"]) == ("1", "9")
    assert shown["pages of filtered columns read"] == "1"
    assert "KiB" in shown["bytes read by workers"]
    assert shown["calls of the key service"] == "0"
    assert "time of workers to read and decode" in shown
    assert shown["number of output rows"] == "1"


def test_key_service_calls(spark: Any, tmp_path: Path) -> None:
    keys = {"parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "kc1:id"}
    keys["parquet.encryption.double.wrapping"] = "false"       # otherwise a worker may have the keys from another test
    path = str(tmp_path / "rows")
    spark.range(100).coalesce(1).write.options(**keys).parquet(path)
    query = spark.read.format(FORMAT).option("kms.client", CLIENT).load(path).selectExpr("id + 1")
    assert len(query.collect()) == 100
    [scan] = scans_of(query)
    assert metric(scan, "fastpq.keyServiceCalls") > 0


@pytest.mark.parametrize("is_adaptive", ["true", "false"])
def test_joins_prune_folders_as_for_spark(spark: Any, parts: str, is_adaptive: str) -> None:
    """Dynamic partition pruning: the scan reads the folders that the small table names, and no bytes of the others."""
    spark.conf.set("spark.sql.adaptive.enabled", is_adaptive)
    try:
        small = spark.read.parquet(f"{parts}/small").where("label in ('part 3', 'part 7')")
        frames = [
            spark.read.format(name).load(f"{parts}/rows").join(small, on=[small.key == col("part")]).selectExpr("id", "text")
            for name in ("parquet", FORMAT)
        ]
        plans = [plan_of(frame) for frame in frames]
        assert all("dynamicpruning" in plan for plan in plans)
        native, ours = (sorted(frame.collect()) for frame in frames)
        assert ours == native
        assert len(ours) == 20_000
        counts = [metric(scan, "numFiles") for frame in frames for scan in scans_of(frame) if metric(scan, "numOutputRows") > 10]
        assert counts == [2, 2]
        [scan] = [scan for scan in scans_of(frames[1]) if scan.metrics().contains("fastpq.bytesRead")]
        sizes = [path.stat().st_size for number in (3, 7) for path in Path(parts, "rows", f"part={number}").iterdir()]
        assert metric(scan, "fastpq.bytesRead") < 2 * sum(sizes)        # an end of 64 KiB is read first, with the footer
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")


def test_aggregates_of_pruned_folders(spark: Any, parts: str) -> None:
    """The folders that a join chooses are pruned below count and max, too."""
    statement = """select r.part, n, m from (select part, count(*) n, max(id) m from {} group by part) r
                   join parquet.`{}/small` s on r.part = s.key where s.label = 'part 4'"""
    spark.read.format(FORMAT).load(f"{parts}/rows").createOrReplaceTempView("metrics_rows")
    frame = spark.sql(statement.format("metrics_rows", parts))
    assert frame.collect() == [(4, 10_000, 49_999)]
    [scan] = [scan for scan in scans_of(frame) if scan.metrics().contains("fastpq.bytesRead")]
    assert metric(scan, "numFiles") == 1
    assert metric(scan, "numOutputRows") == 1


@pytest.mark.parametrize("is_adaptive", ["true", "false"])
def test_equal_scans_run_once(spark: Any, parts: str, is_adaptive: str) -> None:
    """Metrics do not keep Spark from reusing the result of an equal scan."""
    spark.conf.set("spark.sql.adaptive.enabled", is_adaptive)
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        reused = []
        for name in ("parquet", FORMAT):
            frame = spark.read.format(name).load(f"{parts}/rows").groupBy("id").count()
            joined = frame.alias("a").join(frame.alias("b"), "id")
            assert joined.count() == 100_000
            joined.collect()
            reused.append(plan_of(joined).count("ReusedExchange"))
        assert reused[0] == reused[1] > 0
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_runtime_filters(spark: Any, parts: str) -> None:
    """A bloom filter of a join's small side stands above the scan, as above Spark's own."""
    settings = {
        "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "0",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        plans, rows = [], []
        for name in ("parquet", FORMAT):
            large = spark.read.format(name).load(f"{parts}/rows")
            small = spark.read.format(name).load(f"{parts}/rows").where("text = 'text 31415'").selectExpr("id", "text as other")
            joined = large.join(small, "id")
            rows.append(joined.collect())
            plans.append(plan_of(joined).count("might_contain"))
        assert rows[0] == rows[1]
        assert plans[0] == plans[1] > 0
    finally:
        for name in settings:
            spark.conf.unset(name)
