"""One small session for the tests of Spark."""

from __future__ import annotations

import sys
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastpq.spark.jvm.jar import JAR, build
from tests.interop.parquet_java import class_path
from tests.io.object_stores import Store

ROOT = Path(__file__).resolve().parents[2]
CLIENT = "tests.spark.kms:client"
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"      # sessions of minutes: C2 and G1 take more time than they save
KEYS_VARIABLE = "FASTPQ_TEST_MASTER_KEYS"


def store_environment(url: str) -> dict[str, str]:
    """Variables by which s3fs finds an S3 server."""
    return Store("s3", url).environment()


def jvm_classes(folder: Path) -> None:
    """Unpack the classes of fastpq's jar, without the file that makes them the source of the short name ``fastpq``.

    The tests of the Python source have that name; the tests of the jar give the name of the class.
    """
    if build():
        with zipfile.ZipFile(JAR) as jar:
            jar.extractall(folder, [name for name in jar.namelist() if name.endswith(".class")])


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory, moto_url: str, azure_url: str, google_url: str) -> Iterator[Any]:
    """local[2], with the key service of the tests in Java and in Python, and with the tests' object stores."""
    from pyspark.sql import SparkSession

    from tests.encryption.keys.peers import MASTER_KEYS, key_list

    scratch, classes = tmp_path_factory.mktemp("spark"), tmp_path_factory.mktemp("classes")
    class_path(classes)
    jvm_classes(classes)
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": QUICK_JVM,
        "spark.driver.extraClassPath": str(classes),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": scratch.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.timeType.enabled": "true",
        "spark.sql.geospatial.enabled": "true",
        "spark.fastpq.lookupRows": "0",         # scans of the small files of tests are tasks
        "spark.hadoop.parquet.crypto.factory.class": "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory",
        "spark.hadoop.parquet.encryption.kms.client.class": "ManagedKeys$Kms",
        "spark.hadoop.test.wrap": key_list(MASTER_KEYS),
        "spark.hadoop.test.unwrap": key_list(MASTER_KEYS),
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYSPARK_PYTHON", sys.executable)
        environment.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        environment.setenv("PYTHONPATH", str(ROOT))
        environment.setenv(KEYS_VARIABLE, key_list(MASTER_KEYS))
        for store in (Store("s3", moto_url), Store("azure", azure_url), Store("google", google_url)):
            for name, value in store.environment().items():
                environment.setenv(name, value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            session = builder.getOrCreate()
        yield session
        session.stop()


@pytest.fixture(scope="package")
def source(spark: Any) -> Any:
    """The session with fastpq registered."""
    import fastpq.spark

    fastpq.spark.register(spark)
    return spark
