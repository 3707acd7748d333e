"""A session with the jar as users have it, in a process of its own: the short name, SQL, tables, streams, writes, verified
bytecode."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.jvms import VERIFY, quick_jvm

SCRIPT = """
import logging
import sys
from pyspark.sql import SparkSession
import fastpq.spark

logging.basicConfig(stream=sys.stdout, format="%(message)s")
logging.getLogger("fastpq.spark").setLevel(logging.INFO)
folder, quick = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.jars", fastpq.spark.jar_path())
settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.warehouse.dir": folder + "/warehouse", "spark.log.level": "ERROR", "spark.sql.shuffle.partitions": "2",
            "spark.sql.geospatial.enabled": "true", "spark.driver.extraJavaOptions": quick}
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
path = folder + "/rows"
rows = spark.range(1000).selectExpr("id", "cast(id as string) as text", "id % 3 as part")
rows.write.parquet(path)
assert "FileScan fastpq" in spark.read.format("fastpq").load(path)._jdf.queryExecution().executedPlan().toString()
fastpq.spark.register(spark)
fastpq.spark.register(spark)
frame = spark.read.format("fastpq").load(path)
assert "FileScan fastpq" in frame._jdf.queryExecution().executedPlan().toString()
assert sorted(frame.collect()) == sorted(rows.collect())
found = spark.sql(f"select sum(id), max(text) from fastpq.`{path}` where part = 1").first()
assert found == rows.where("part = 1").selectExpr("sum(id)", "max(text)").first()
spark.sql(f"create table items using fastpq options (path '{path}')")
spark.sql(f"create table located using fastpq location '{path}'")
for table in ("items", "located"):
    assert spark.sql(f"select count(*), min(text) from {table} where id > 10").first() == (989, "100")
written = folder + "/written"
rows.write.format("fastpq").mode("append").partitionBy("part").save(written)
assert sorted(spark.read.parquet(written).select("id", "text", "part").collect()) == sorted(rows.collect())
spark.sql("create table defaults (a int default 5, b int) using fastpq")
spark.sql("insert into defaults (b) values (1)")
spark.sql("alter table defaults add column c string default 'new'")
assert spark.sql("select a, b, c from defaults where c = 'new'").collect() == [(5, 1, "new")]
any = spark.range(3).selectExpr("id", "parse_json(concat('{\\"x\\": ', id, '}')) any")
any.write.format("fastpq").save(folder + "/variants")
found = spark.read.format("fastpq").load(folder + "/variants").selectExpr("id", "variant_get(any, '$.x', 'int')")
assert sorted(found.collect()) == [(0, 0), (1, 1), (2, 2)]
spark.sql(f"create table folders (id bigint, part int) using fastpq partitioned by (part) location '{folder}/folders'")
spark.sql("insert into folders select id, id % 2 from range(10)")
spark.sql("insert overwrite folders select id, 1 from range(3)")
assert sorted(spark.read.parquet(folder + "/folders").collect()) == [(0, 1), (1, 1), (2, 1)]
stream = spark.readStream.format("fastpq").schema(rows.schema).load(path)
query = stream.writeStream.format("memory").queryName("streamed").start()
query.processAllAvailable()
query.stop()
assert spark.table("streamed").count() == 1000
spark.stop()
print("done")
"""


@pytest.mark.slow
@pytest.mark.usefixtures("class_archive")
def test_a_session_with_the_jar(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(root), "PYSPARK_PYTHON": sys.executable, "HOME": str(tmp_path)}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), f"{quick_jvm()} {VERIFY}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("the format fastpq reads in columns, by the jar") == 1
    assert done.stdout.rstrip().endswith("done")
