"""The documentation's examples of Spark run as they stand, but for the name of a client that nobody has."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from fastpq.spark import session
from fastpq.spark.jvm.jar import JAR, build
from fastpq.spark.sent import VersionError
from fastpq.version import VERSION
from tests.encryption.keys.peers import MASTER_KEYS, key_list
from tests.interop.parquet_java import class_path
from tests.requirements import java_jars, needs_tpchgen
from tests.spark.conftest import KEYS_VARIABLE
from tests.spark.jvms import QUICK
from tests.spark.page_driver import run_page
from tests.test_docs import ROOT, name_of, with_blocks

WITH_JAR, WITHOUT_JAR = '.partitionBy("l_shipmode")', '.option("partitionBy", "l_shipmode")'
TIMEOUT = 600       # seconds
REGISTER = """
import sys
from pyspark.sql import SparkSession
import fastpq.spark

builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
fastpq.spark.register(builder.config("spark.jars", sys.argv[1]).getOrCreate())
"""


def python(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run this interpreter with a Spark of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "JDK_JAVA_OPTIONS": QUICK}
    environment[KEYS_VARIABLE] = key_list(MASTER_KEYS)
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False)


def test_spark_examples_with_the_jar(tmp_path: Path) -> None:
    needs_tpchgen()
    java_jars()
    assert build()
    class_path(tmp_path, "ManagedKeys.java")
    with zipfile.ZipFile(tmp_path / "keys.jar", "w") as jar:
        for path in tmp_path.glob("*.class"):
            jar.write(path, path.name)
    pages = with_blocks("python", "spark")
    done = python("-m", "tests.spark.page_driver", tmp_path, tmp_path / "keys.jar", *pages)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    assert [line for line in done.stdout.splitlines() if line.endswith(": passed")] == [f"{page}: passed" for page in pages]


@pytest.mark.parametrize("page", with_blocks("python", "spark"), ids=name_of)
def test_spark_examples_without_the_jar(page: Path, source: Any, tmp_path: Path) -> None:
    """They run with the change that each page names."""
    needs_tpchgen()
    text = page.read_text()
    assert f"Without the jar, write `{WITHOUT_JAR}` instead of `{WITH_JAR}`." in text
    assert run_page(page, source, tmp_path, WITH_JAR, WITHOUT_JAR) == 1


@pytest.mark.slow
def test_a_jar_of_another_version(tmp_path: Path) -> None:
    java_jars()
    assert build()
    stale = tmp_path / "fastpq-spark.jar"
    with zipfile.ZipFile(JAR) as ours, zipfile.ZipFile(stale, "w") as jar:
        for name in ours.namelist():
            jar.writestr(name, ours.read(name).replace(f"Version: {VERSION}".encode(), b"Version: 0.0.9"))
    done = python("-c", REGISTER, stale)
    assert done.returncode
    assert f"is of another version: file:{stale} is from fastpq 0.0.9, and Python runs fastpq {VERSION}" in done.stderr


def test_a_jar_from_before_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = MagicMock()
    earlier.getName.return_value = "io.fastpq.spark.FastpqProvider"
    earlier.getPackage.return_value.getImplementationVersion.return_value = None
    monkeypatch.setattr(session, "_class_of_format", lambda spark: earlier)
    monkeypatch.setattr(session, "_activate", lambda spark: None)
    spark = MagicMock()
    with pytest.raises(VersionError, match=r"of another version: .* is from an earlier fastpq, and Python runs"):
        session.register(spark)
    spark.dataSource.register.assert_not_called()
