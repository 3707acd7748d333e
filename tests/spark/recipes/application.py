"""An application as users submit it: ``spark-submit ... application.py FOLDER``. It writes and reads with a client of its own."""

import sys
from typing import Any

from pyspark.sql import SparkSession

import fastpq.spark

SERVICE: dict[str, Any] = {"kms.client": "client:Client"}
KEYS: dict[str, Any] = {"parquet.encryption.footer.key": "footer", "parquet.encryption.column.keys": "prices:id", **SERVICE}


def main() -> None:
    folder = f"{sys.argv[1]}/rows"
    spark = SparkSession.builder.getOrCreate()
    fastpq.spark.register(spark)
    spark.range(0, 1000, 1, 4).write.format("fastpq").mode("append").options(**KEYS).save(folder)
    rows = spark.read.format("fastpq").options(**SERVICE).load(folder).where("id >= 10")
    assert [row[0] for row in rows.selectExpr("sum(id)").collect()] == [sum(range(10, 1000))]
    rows.explain(True)
    report = fastpq.spark.rotate_keys(spark, folder, **KEYS)
    assert {row.status for row in report.collect()} == {"ok"}
    assert spark.read.format("fastpq").options(**SERVICE).load(folder).count() == 1000
    python = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).collect()
    print(f"the application has finished; an executor ran {python[0]}")
    spark.stop()


if __name__ == "__main__":
    main()
