"""One small session for the tests of Spark."""

from __future__ import annotations

import os
import sys
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastpq.spark.jvm.jar import JAR, build
from tests import bytecode
from tests.interop.parquet_java import class_path
from tests.io.object_stores import Store
from tests.requirements import java_jars
from tests.spark.daemon import KEY_SERVICE, STORES, preloaded_python
from tests.spark.jvms import QUICK, RUN_LOCALLY, make_archive, quick_jvm

ROOT = Path(__file__).resolve().parents[2]
CLIENT = "tests.spark.kms:client"
KEYS_VARIABLE = "FASTPQ_TEST_MASTER_KEYS"
LARGE_HEAP = "-Xms1200m -Xmn700m"       # of spark.driver.memory; a small one is collected for ten seconds of a run


def store_environment(url: str) -> dict[str, str]:
    """Variables by which s3fs finds an S3 server."""
    return Store("s3", url).environment()


def jar_of_classes(folder: Path) -> Path:
    """A jar of the key service of the tests and of fastpq's classes, which are not the source of the short name ``fastpq``.

    The tests of the Python source have that name; the tests of the jar give the name of the class.
    """
    class_path(folder, "ManagedKeys.java")
    found = folder / "classes.jar"
    with zipfile.ZipFile(found, "w") as jar:
        for path in folder.glob("*.class"):
            jar.write(path, path.name)
        if build():
            with zipfile.ZipFile(JAR) as ours:
                for name in ours.namelist():
                    if name.endswith((".class", "SparkSessionExtensionsProvider")):
                        jar.writestr(name, ours.read(name))
    return found


@pytest.fixture(scope="package")
def class_archive(kept_bytecode: None) -> None:
    """The archive of Spark's classes is there, for quick_jvm(); not on CI, where making it takes as long as one run saves."""
    java_jars()
    if os.environ.get("CI") != "true":
        make_archive()


@pytest.fixture(scope="package", autouse=True)
def kept_bytecode() -> Iterator[None]:
    """Bytecode is kept by drivers and workers."""
    with pytest.MonkeyPatch.context() as environment:
        if not bytecode.IS_KEPT:
            environment.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
            environment.setenv("PYTHONPYCACHEPREFIX", str(bytecode.FOLDER))
        yield


@pytest.fixture(scope="package")
def spark(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, moto_url: str, azure_url: str, google_url: str,
    class_archive: None,
) -> Iterator[Any]:
    """local[2], with the key service of the tests in Java and in Python, and with the tests' object stores."""
    from pyspark.sql import SparkSession

    from tests.encryption.keys.peers import MASTER_KEYS, key_list

    # of all tests of the run, in whatever order: without the modules, each worker of a dataset in a store loads them
    uses_stores = any({"spark", "object_store"} <= set(getattr(item, "fixturenames", ())) for item in request.session.items)
    stores = STORES if uses_stores else ()
    scratch, classes = tmp_path_factory.mktemp("spark"), tmp_path_factory.mktemp("classes")
    settings = {
        **RUN_LOCALLY,
        "spark.driver.memory": "1200m",
        "spark.driver.extraJavaOptions": f"{quick_jvm()} {LARGE_HEAP}",
        "spark.jars": str(jar_of_classes(classes)),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": scratch.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.sql.timeType.enabled": "true",
        "spark.sql.geospatial.enabled": "true",
        "spark.hadoop.parquet.crypto.factory.class": "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory",
        "spark.hadoop.parquet.encryption.kms.client.class": "ManagedKeys$Kms",
        "spark.hadoop.test.wrap": key_list(MASTER_KEYS),
        "spark.hadoop.test.unwrap": key_list(MASTER_KEYS),
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as environment, preloaded_python(scratch, *stores, KEY_SERVICE) as python:
        environment.setenv("PYSPARK_PYTHON", python)
        environment.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
        environment.setenv("PYTHONPATH", str(ROOT))
        environment.setenv("SPARK_LAUNCHER_OPTS", QUICK)
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
