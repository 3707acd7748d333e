"""Every supported PySpark reads and writes, through Python and with the jar; an older one is refused with a word."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from fastpq.spark.jvm.jar import JAR, build
from tests.requirements import java_jars
from tests.spark.jvms import QUICK

ROOT = Path(__file__).resolve().parents[2]
DRIVER = Path(__file__).with_name("version_driver.py")
TIMEOUT = 300       # seconds
NO_PANDAS = "raise ImportError('fastpq.spark must not need pandas')"


def run(*command: object, path: list[Path]) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "PYSPARK_DRIVER_PYTHON")}
    environment |= {"PYTHONPATH": os.pathsep.join(map(str, path)), "PYSPARK_PYTHON": sys.executable, "JDK_JAVA_OPTIONS": QUICK}
    return subprocess.run(
        list(map(str, command)), env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )


def package(folder: Path, name: str, text: str) -> Path:
    """A folder with a package of one module, before others on the path."""
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(text)
    return folder


@pytest.fixture
def pyspark_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Path]]:
    """Folders for PYTHONPATH, of which one has the newest PySpark of a minor version, unless it is installed here."""
    java_jars()
    version: str = request.param
    folders = [package(tmp_path / "without", "pandas", NO_PANDAS), ROOT]
    if pyspark.__version__.startswith(f"{version}."):
        yield folders
        return
    target = tmp_path / "pyspark"
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--target")
    done = run(*pip, target, f"pyspark=={version}.*", path=[])
    if done.returncode and os.environ.get("CI") != "true":
        pytest.skip(f"needs PySpark {version} from a package index: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    yield [target, *folders]
    subprocess.run(["rm", "-r", target], check=True)       # 400 MB


@pytest.mark.slow
@pytest.mark.xdist_group("pyspark_versions")       # one after the other: each takes 400 MB
@pytest.mark.parametrize("pyspark_path", ["4.0", "4.1", "4.2", "4.3"], indirect=True)
def test_reads_and_writes(pyspark_path: list[Path], tmp_path: Path, request: pytest.FixtureRequest) -> None:
    assert build()
    for jar in ("", JAR):
        done = run(sys.executable, DRIVER, tmp_path / f"rows{bool(jar)}", jar, path=pyspark_path)
        assert done.returncode == 0, done.stdout + done.stderr
        version = request.node.callspec.params["pyspark_path"]
        assert done.stdout.startswith(f"PySpark {version}."), done.stdout


def test_an_older_pyspark(tmp_path: Path) -> None:
    older = package(tmp_path, "pyspark", "__version__ = '3.5.9'")
    done = run(sys.executable, "-c", "import fastpq.spark", path=[older, ROOT])
    assert done.returncode
    [message] = [line for line in done.stderr.splitlines() if line.startswith("fastpq.errors.UnsupportedError")]
    assert "fastpq.spark needs PySpark 4.0 or later, and" in message
    assert "has PySpark 3.5.9" in message
