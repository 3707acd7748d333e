"""Executors that cannot run a driver's tasks: ``python -m tests.spark.bad_executors FOLDER``.

FOLDER holds one interpreter for each problem (see test_bad_executors.py). Tasks may fail four times, as on a cluster. Prints one
line of JSON for each problem and way of Spark to run Python: the error, the seconds and the count of failed tasks.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import fastpq.spark
from tests.narrowing import present
from tests.spark.jvms import RUN_LOCALLY

ROWS = 1000


def session() -> SparkSession:
    builder = SparkSession.builder.master("local[2,4]").config("spark.jars", fastpq.spark.jar_path())
    for name, value in (RUN_LOCALLY | {"spark.fastpq.lookupRows": "0", "spark.log.level": "OFF"}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def read(spark: SparkSession, folder: Path) -> Any:
    """Read with the jar, by tasks. Their rows are the answer."""
    rows = spark.read.format("fastpq").load(str(folder / "rows"))
    return list(rows.selectExpr("bit_xor(xxhash64(id))", "count(1)").collect()[0])


def lenient_read(spark: SparkSession, folder: Path) -> Any:
    """Read with the jar, and pass over corrupt files."""
    rows = spark.read.format("fastpq").option("ignoreCorruptFiles", "true").load(str(folder / "rows"))
    return list(rows.selectExpr("bit_xor(xxhash64(id))", "count(1)").collect()[0])


def write(spark: SparkSession, folder: Path) -> Any:
    """Write with the jar. The dataset must keep its files if the write fails."""
    spark.range(ROWS).write.format("fastpq").mode("overwrite").save(str(folder / "written"))


def verify(spark: SparkSession, folder: Path) -> Any:
    """A job, whose tasks are PySpark's own."""
    return [row.status for row in fastpq.spark.verify_dataset(spark, str(folder / "rows")).collect()]


def attempt(spark: SparkSession, work: Callable[[SparkSession, Path], Any], folder: Path) -> dict[str, Any]:
    group = f"attempt-{time.monotonic()}"
    spark.sparkContext.setJobGroup(group, work.__name__)
    started, answer, error = time.monotonic(), None, ""
    try:
        answer = work(spark, folder)
    except Exception as found:
        error = f"{type(found).__name__}: {found}"
    seconds = time.monotonic() - started
    return {"work": work.__name__, "answer": answer, "error": error, "seconds": seconds}


def main() -> None:
    folder = Path(sys.argv[1])
    spark = session()
    fastpq.spark.register(spark)
    spark.range(0, ROWS, 1, 2).write.format("fastpq").mode("append").save(str(folder / "rows"))
    healthy = str(spark.conf.get("spark.fastpq.python"))
    read(spark, folder)         # the first query of a JVM takes seconds
    for problem in ("healthy", *sys.argv[2:]):
        python = healthy if problem == "healthy" else str(folder / problem)
        spark.conf.set("spark.fastpq.python", python)
        present(spark.sparkContext).pythonExec = python
        for work in (read, lenient_read, write, verify) if problem in ("healthy", "unmapped") else (read, write, verify):
            print(json.dumps({"problem": problem, **attempt(spark, work, folder)}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
