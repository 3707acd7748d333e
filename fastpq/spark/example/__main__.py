"""Write rows to an encrypted, partitioned dataset, read it, change its keys, and read it with Spark's own reader.

``python -m fastpq.spark.example [FOLDER]`` runs the pipeline in an empty folder, by default the current one. Each step that does
not give the expected rows ends the program. The Java client of the key service is compiled by ``javac`` (a JDK of version 17);
without it the last step, Spark's own reader, is left out and the program says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from fastpq.spark.example import file_kms

ROWS = 100_000
CLIENT = "fastpq.spark.example.file_kms:FileKms"
SERVICE: dict[str, Any] = {"kms.client": CLIENT}
KEYS: dict[str, Any] = {
    "parquet.encryption.footer.key": "footer", "parquet.encryption.column.keys": "prices:l_extendedprice,l_discount"
}
NEW_KEYS: dict[str, Any] = {**KEYS, "parquet.encryption.column.keys": "prices-2:l_extendedprice,l_discount"}
COLUMNS, REVENUE = ["l_extendedprice", "l_discount"], "sum(l_extendedprice * l_discount)"
FILTERS = [("l_shipmode", "in", ["AIR", "RAIL"]), ("l_discount", ">=", 5)]
FILTERS_IN_SQL = "l_shipmode in ('AIR', 'RAIL') and l_discount >= 5"


def run_example(folder: Path) -> None:
    """Run the pipeline in a folder.

    Args:
        folder: an empty folder for the dataset, the master keys and the Java client.
    """
    if any(folder.iterdir()):
        raise SystemExit(f"{folder} is not empty")
    has_java_client = compile_client(folder)
    spark = start(folder)
    try:
        run(spark, folder, has_java_client)
    finally:
        spark.stop()


def compile_client(folder: Path) -> bool:
    """Compile the Java client of the key service into a folder; False, and a notice, without javac."""
    import pyspark

    compiler = shutil.which("javac")
    if compiler is None:
        print("without javac (Debian: openjdk-17-jdk-headless), Spark's own reader has no client of the key service: not run")
        return False
    jars = Path(pyspark.__file__).parent / "jars"
    source = Path(file_kms.__file__).with_name("FileKms.java")
    subprocess.run([compiler, "-cp", f"{jars}/*", "-d", folder, source], check=True)
    return True


def start(folder: Path) -> Any:
    """A session; the variables of the key service and of the workers' interpreter are set before it starts."""
    file_kms.create(folder / "master-keys", ("footer", "prices", "prices-2"))
    os.environ[file_kms.VARIABLE] = str(folder / "master-keys")     # for workers and for the Java client
    os.environ["PYSPARK_PYTHON"] = sys.executable                   # else workers run the first python3 of PATH
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("fastpq")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraClassPath": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.hadoop.parquet.crypto.factory.class": "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory",
        "spark.hadoop.parquet.encryption.kms.client.class": "FileKms",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def run(spark: Any, folder: Path, has_java_client: bool) -> None:
    """The pipeline.

    Args:
        spark: the session.
        folder: the folder of the dataset.
        has_java_client: whether Spark's own reader has a client of the key service.
    """
    import fastpq.spark

    fastpq.spark.register(spark)
    items = str(folder / "items")
    rows = spark.range(ROWS).selectExpr(
        "id as l_orderkey", "id % 1000 as l_extendedprice", "id % 11 as l_discount",
        "element_at(array('AIR', 'RAIL', 'SHIP'), cast(id % 3 + 1 as int)) as l_shipmode",
    )
    truth = rows.where(FILTERS_IN_SQL).selectExpr(REVENUE).first()[0]
    rows.write.format("fastpq").mode("append").options(**KEYS, **SERVICE, partitionBy="l_shipmode").save(items)
    require("fastpq reads the dataset", revenue(spark, items), truth)
    report = fastpq.spark.rotate_keys(spark, items, **NEW_KEYS, **SERVICE).collect()
    require("rotate_keys puts every file under the new keys", {row.status for row in report}, {"ok"})
    require("fastpq reads the dataset under the new keys", revenue(spark, items), truth)
    if has_java_client:
        native = spark.read.parquet(items).where(FILTERS_IN_SQL).selectExpr(REVENUE).first()[0]
        require("Spark's own reader reads the dataset", native, truth)


def revenue(spark: Any, items: str) -> int:
    """The aggregate over the chosen rows, by fastpq."""
    import fastpq.spark

    found = fastpq.spark.read(spark, items, COLUMNS, FILTERS, **SERVICE).selectExpr(REVENUE).first()
    assert found is not None
    return int(found[0])


def require(step: str, found: object, expected: object) -> None:
    """End the program unless a step gave what it should; else say the step."""
    if found != expected:
        raise SystemExit(f"{step}: {found}, and not {expected}")
    print(f"{step}: {found}")


if __name__ == "__main__":
    run_example(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve())
