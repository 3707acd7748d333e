"""A driver of two streams of one source, to be killed: ``python -m tests.spark.stream_driver FOLDER TABLE``.

Reads the files of FOLDER/in, one a batch, into FOLDER/out and, by a second query, into TABLE, until all are read.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import fastpq.spark
from tests.spark.jvms import RUN_LOCALLY, quick_jvm

SETTINGS = {
    **RUN_LOCALLY,
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": quick_jvm(),
}


def main() -> int:
    folder, table = Path(sys.argv[1]), sys.argv[2]
    builder = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    queries = []
    for name, target in (("folder", str(folder / "out")), ("store", table)):
        # Queries of one registration share a map of variables. Spark adds variables as a query begins: a task of the other query
        # that is written meanwhile fails (java.io.OptionalDataException).
        fastpq.spark.register(spark)
        reading = spark.readStream.format("fastpq").schema("id long").option("maxFilesPerTrigger", 1)
        writing = reading.load(str(folder / "in")).writeStream.format("fastpq")
        checkpoint = str(folder / "checkpoints" / name)
        queries.append(writing.option("checkpointLocation", checkpoint).trigger(availableNow=True).start(target))
    for query in queries:
        query.awaitTermination()
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
