"""Writes and reads with one version of PySpark: ``python version_driver.py FOLDER JAR``, where JAR may be empty."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import pyspark
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import fastpq.spark
from tests.spark.scans import metric, scans_of

COLUMNS = (
    "id", "cast(id as decimal(9, 2)) price", "string(id) text", "array(id, null) list", "timestamp_micros(id) moment",
    "id % 3 part",
)
CONDITION = "id > 500 and text like '9%'"


def start(jar: str) -> Any:
    """A session, with the jar if there is one."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.sql.shuffle.partitions", "2")
    if jar:
        builder = builder.config("spark.jars", jar)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def check(spark: Any, folder: str, jar: str) -> None:
    """Write a dataset, and read it by the data source, by ``read``, by Spark's own source and by a job."""
    fastpq.spark.register(spark)
    rows = spark.range(1000).selectExpr(*COLUMNS)
    expected = sorted(rows.where(CONDITION).collect())
    writer = rows.write.format("fastpq").mode("append")
    (writer.partitionBy("part") if jar else writer.option("partitionBy", "part")).save(folder)
    for found in (spark.read.format("fastpq"), spark.read.format("parquet")):
        assert sorted(found.load(folder).where(CONDITION).select(*rows.columns).collect()) == expected
    if jar:
        assert "fastpq" in spark.read.format("fastpq").load(folder)._jdf.queryExecution().executedPlan().toString()
        counts = spark.sql(f"select part, count(*), max(id) from fastpq.`{folder}` group by part order by part")
        assert "fastpq[rows, max id]" in counts._jdf.queryExecution().executedPlan().toString()
        assert counts.collect() == [(0, 334, 999), (1, 333, 997), (2, 333, 998)]
        few = spark.read.format("fastpq").load(folder).orderBy("id").limit(3)
        assert [row.id for row in few.collect()] == [0, 1, 2]
        [scan] = scans_of(few)
        assert metric(scan, "fastpq.rowGroups") > 0
        numbers = spark.read.format("fastpq").load(folder).selectExpr("_metadata.row_index r", "input_file_name() f").collect()
        assert len(set(numbers)) == 1000
        copy_by_stream(spark, folder)
    chosen = fastpq.spark.read(spark, folder, ["id", "price"], [("id", ">", 500), ("text", "starts with", "9")]).collect()
    assert sorted(tuple(row) for row in chosen) == [(row.id, row.price) for row in expected]
    assert {row.status for row in fastpq.spark.verify_dataset(spark, folder).collect()} == {"ok"}
    if pyspark.__version__ < "4.2" and not jar:
        require_no_streams(spark, folder)


def copy_by_stream(spark: Any, folder: str) -> None:
    """A file stream of Spark's own copies the rows."""
    stream = spark.readStream.format("fastpq").schema("id long, text string").load(folder).writeStream.format("fastpq")
    stream.option("checkpointLocation", f"{folder}-stream").trigger(availableNow=True).start(f"{folder}-copy").awaitTermination()
    assert spark.read.format("fastpq").load(f"{folder}-copy").selectExpr("sum(id)", "count(text)").first() == (499500, 1000)


def require_no_streams(spark: Any, folder: str) -> None:
    """A stream is refused with a sentence."""
    stream = spark.readStream.format("fastpq").schema("id long").load(folder).writeStream.format("noop")
    with pytest.raises(StreamingQueryException, match=r"PySpark 4\.2 or later"):
        stream.option("checkpointLocation", f"{folder}-stream").trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    session = start(sys.argv[2])
    check(session, *sys.argv[1:])
    session.stop()
    print(f"PySpark {pyspark.__version__}: passed")
