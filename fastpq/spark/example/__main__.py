"""Write rows to an encrypted, partitioned dataset, read it, change its keys, and read it with Spark's own reader.

``python -m fastpq.spark.example [FOLDER]`` runs the pipeline in an empty folder, by default the current one. The program ends if
a step does not give the expected rows. ``javac`` (from JDK 17) compiles the key service's Java client. Without ``javac``, the
program skips the last step, which uses Spark's own reader, and says so.
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
    """Compile the key service's Java client into a folder.

    Without javac, print a notice and return False.
    """
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
    """Start a Spark session.

    The environment variables for the key service and for the workers' interpreter are set first.
    """
    file_kms.create(folder / "master-keys", ("footer", "prices", "prices-2"))
    os.environ[file_kms.VARIABLE] = str(folder / "master-keys")     # used by the workers and by the Java client
    os.environ["PYSPARK_PYTHON"] = sys.executable                   # otherwise the workers run the first python3 on PATH
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
    """Run the steps.

    Args:
        spark: the session.
        folder: the dataset's folder.
        has_java_client: whether Spark's own reader can use the key service.
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
    """Return the revenue over the filtered rows, which fastpq reads."""
    import fastpq.spark

    first_row = fastpq.spark.read(spark, items, COLUMNS, FILTERS, **SERVICE).selectExpr(REVENUE).first()
    assert first_row is not None
    return int(first_row[0])


def require(step: str, result: object, expected_result: object) -> None:
    """Print a step and its result, or end the program if the result is not the expected one."""
    if result != expected_result:
        raise SystemExit(f"{step}: {result}, and not {expected_result}")
    print(f"{step}: {result}")


if __name__ == "__main__":
    run_example(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve())
