"""A local Spark session with one key service for fastpq and Spark's native source."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fastpq.spark.example import file_kms

ROOT = Path(__file__).resolve().parent.parent
JAVA_SOURCE = Path(file_kms.__file__).with_name("FileKms.java")
CLIENT = "fastpq.spark.example.file_kms:FileKms"
CRYPTO_FACTORY = "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory"
NEEDED = "Debian and Ubuntu: apt-get install openjdk-17-jdk-headless"


@contextmanager
def session(folder: Path, master_keys: Iterable[str], cores: int | None = None, memory: str = "2g") -> Iterator[Any]:
    """A session with fastpq registered, and a key service with new master keys.

    Args:
        folder: folder for the keys, the key service's Java class, and Spark's own files.
        master_keys: names of the master keys.
        cores: simultaneous tasks; None for one on each core.
        memory: memory of the JVM.

    Raises:
        SystemExit: Java or PySpark are missing; the message names the packages to install.
    """
    for command, what in (("java", "Spark needs Java 17"), ("javac", "the key service of Spark's native source is compiled")):
        if shutil.which(command) is None:
            raise SystemExit(f"{what}, and there is no {command} ({NEEDED})")
    try:
        import pyspark
        from pyspark.sql import SparkSession
    except ImportError:
        raise SystemExit("PySpark is missing: pip install pyspark pyarrow") from None
    import fastpq.spark
    from fastpq.spark.jvm.jar import JAR

    folder.mkdir(parents=True, exist_ok=True)
    jars = Path(pyspark.__file__).parent / "jars"
    subprocess.run(["javac", "-cp", f"{jars}/*", "-d", folder, JAVA_SOURCE], check=True)
    keys = folder / "master-keys"
    file_kms.create(keys, master_keys)
    os.environ |= {
        "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", file_kms.VARIABLE: str(keys),
    }
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": memory,
        "spark.driver.extraClassPath": str(folder),
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.hadoop.parquet.crypto.factory.class": CRYPTO_FACTORY,
        "spark.hadoop.parquet.encryption.kms.client.class": "FileKms",
    }
    if JAR.exists():
        settings["spark.jars"] = str(JAR)
    builder = SparkSession.builder.master(f"local[{cores or '*'}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spark = builder.getOrCreate()
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    fastpq.spark.register(spark)
    try:
        yield spark
    finally:
        spark.stop()
