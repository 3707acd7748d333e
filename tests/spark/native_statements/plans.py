"""Plans: what scans are told of columns, filters, buckets and statistics."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.spark.native_statements.scene import Place, Scene, last, refused, under

PARTS = ("PartitionFilters", "ReadSchema", "SelectedBucketsCount", "Bucketed")


def _files(spark: Any, folder: str) -> None:
    spark.range(0, 100, 1, 2).selectExpr(
        "id", "string(id) as text", "id % 5 as p", "named_struct('a', id, 'b', string(id)) as s"
    ).write.partitionBy("p").parquet(f"{folder}/facts")
    spark.range(0, 5, 1, 1).selectExpr("id as p", "concat('n', id) as name").write.parquet(f"{folder}/dimension")


def _plan(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


def _told(text: str) -> Callable[[Place], Any]:
    """Return what scans of a query are told: columns and filters on partitions, without numbers of expressions."""

    def action(at: Place) -> Any:
        plan = re.sub(r"#\d+L?", "", _plan(at.sql(text)))
        return sorted(set(re.findall(rf"(?:{'|'.join(PARTS)}): [^\n]*?(?=, [A-Z]\w+: |\n|$)", plan)))

    return action


def _exchanges(text: str) -> Callable[[Place], Any]:
    """Return the numbers of exchanges and sorts in a plan, and the rows."""

    def action(at: Place) -> Any:
        frame = at.sql(text)
        frame.collect()
        plan = _plan(frame).split("== Initial Plan ==")[0]
        return [plan.count("Exchange hashpartitioning"), plan.count("Sort ["), frame]

    return action


def _view(at: Place) -> None:
    for name in ("facts", "dimension"):
        at.load(name).createOrReplaceTempView(name)


def _pruned(at: Place) -> Any:
    """Whether dynamic pruning of partitions is in the plan, and the rows."""
    frame = at.sql("select facts.id, name from facts join dimension on facts.p = dimension.p where dimension.name = 'n3'")
    rows = frame.collect()
    return ["dynamicpruning" in _plan(frame), rows]


def _read_files(at: Place) -> Any:
    """Return the number of files that a scan has read."""
    with at.settings(spark_sql_adaptive_enabled="false"):
        frame = at.sql("select id from facts where p = 3")
        frame.collect()
    plan = frame._jdf.queryExecution().executedPlan()
    leaf = plan.collectLeaves().head()
    return [
        str(leaf.metrics().apply(name).value())
        for name in ("numFiles", "numPartitions", "numOutputRows")
        if leaf.metrics().contains(name)
    ]


PLANS = Scene(
    "plans",
    files=_files,
    before=_view,
    settings={
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": "false",
        "spark.sql.optimizer.dynamicPartitionPruning.fallbackFilterRatio": "10",
        "spark.sql.autoBroadcastJoinThreshold": "10MB",
    },
    statements={
        "columns": _told("select text from facts"),
        "no columns": _told("select 1 as one from facts"),
        "a field": _told("select s.a from facts"),
        "a filter on a partition": _told("select id from facts where p = 3"),
        "a filter on a column": _told("select id from facts where text > '3'"),
        "a filter on a field": _told("select id from facts where s.b = '3'"),
        "a limit": _told("select id from facts limit 3"),
        "dynamic pruning": _pruned,
        "files read": _read_files,
        "name of the scan": lambda at: "FileScan" in _plan(at.sql("select id from facts")),
        "explain": lambda at: len(at.sql("explain formatted select id from facts where p = 1").first()[0]) > 100,
        "statistics are known": lambda at: int(str(at.load("facts")._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())),
        "a small side is broadcast": lambda at: "Broadcast" in _plan(at.sql("select * from facts join dimension using (p)")),
        "cached rows are used": lambda at: last(
            at.sql("cache table facts"),
            "InMemoryTableScan" in _plan(at.sql("select id from facts where p = 1")),
        ),
        "cached rows are dropped": "uncache table facts; select count(*) from facts",
    },
)

BUCKETS = Scene(
    "buckets",
    settings={
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "3",
    },
    before="create table one (id long, text string) using {source} clustered by (id) sorted by (id) into 4 buckets; insert into one select id, string(id) from range(40); "
    "create table two (key long, word string) using {source} clustered by (key) into 4 buckets; insert into two select id, concat('w', id) from range(20, 60)",
    statements={
        "select": "select * from one",
        "show create table": lambda at: at.sql("show create table one").first()[0],
        "describe": lambda at: [
            tuple(row)
            for row in at.sql("describe extended one").collect()
            if row[0] in ("Num Buckets", "Bucket Columns", "Sort Columns")
        ],
        "names of files": lambda at: sorted({name.split("_")[-1].split(".")[0] for name in at.paths("warehouse/one", "part-*")}),
        "joined": _exchanges("select one.id, word from one join two on one.id = two.key"),
        "grouped": _exchanges("select id, count(*) from one group by id"),
        "one bucket": _told("select text from one where id = 7"),
        "one bucket's rows": "select text from one where id = 7",
        "some buckets": "select text from one where id in (1, 2, 39) or id is null",
        "not used": under(
            lambda at: _exchanges("select id, count(*) from one group by id")(at)[:2], spark_sql_sources_bucketing_enabled="false"
        ),
        "by a DataFrame": lambda at: last(
            at.write(at.rows("string(id) as text")).bucketBy(2, "text").sortBy("id").saveAsTable("three"),
            at.sql("select * from three where text = '5'"),
        ),
        "by a DataFrame, with partitions": lambda at: last(
            at.write(at.rows("string(id) as text", "id % 2 as p")).partitionBy("p").bucketBy(2, "text").saveAsTable("four"),
            at.sql("select count(*), max(text) from four where p = 1"),
        ),
        "by a DataFrame, appended otherwise": refused(
            lambda at: at.write(at.rows("string(id) as text"), "append").bucketBy(3, "text").saveAsTable("three")
        ),
        "by a DataFrame, no bucket": refused(lambda at: at.write(at.rows()).bucketBy(0, "id").saveAsTable("five")),
        "by a DataFrame, a missing column": refused(lambda at: at.write(at.rows()).bucketBy(2, "missing").saveAsTable("five")),
        "by a partition column": refused(
            lambda at: at.write(at.rows("id % 2 as p")).partitionBy("p").bucketBy(2, "p").saveAsTable("five")
        ),
        "like another": lambda at: last(at.sql("create table six like one"), at.sql("show create table six").first()[0]),
        "overwritten": "insert overwrite one select id, 'new' from range(5); select * from one where id = 3",
        "sizes": lambda at: at.spark.table("one").rdd.getNumPartitions(),
    },
)
SCENES = [PLANS, BUCKETS]
