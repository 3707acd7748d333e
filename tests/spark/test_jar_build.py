"""A build of the package has the jar for Spark, or it ends with an error, or FASTPQ_NO_JAR=1 leaves the jar out."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fastpq.spark.jvm.jar import RELEASE, spark_jars
from tests.requirements import java_jars

ROOT = Path(__file__).resolve().parents[2]
PACKED_JAR = "lib/fastpq/spark/fastpq-spark.jar"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with the Python and Java files of the package, without compiled files."""
    kinds = shutil.ignore_patterns("*.so", "*.c", "*.pyx", "*.pxd", "*.h", "*.jar", "__pycache__")
    shutil.copytree(ROOT / "fastpq", tmp_path / "fastpq", ignore=kinds)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def build(tree: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "setup.py", "-q", "build_py", "--build-lib", "lib"]
    environment = {name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "FASTPQ_NO_JAR", "PYTHONPATH")}
    return subprocess.run(command, cwd=tree, env=environment | variables, capture_output=True, text=True, check=False)


def test_a_build_without_a_compiler_ends(tree: Path) -> None:
    done = build(tree, PATH="")
    assert done.returncode
    assert "Missing: javac (a JDK of version 17 or later)" in done.stderr
    assert "set FASTPQ_NO_JAR=1" in done.stderr


def test_a_build_may_leave_the_jar_out(tree: Path) -> None:
    (tree / "fastpq/spark/fastpq-spark.jar").write_bytes(b"of an earlier build")
    done = build(tree, FASTPQ_NO_JAR="1", PATH="")
    assert done.returncode == 0, done.stderr
    assert (tree / "lib/fastpq/spark/session.py").exists()
    assert not (tree / PACKED_JAR).exists()


@pytest.mark.slow
def test_a_build_packs_the_jar(tree: Path) -> None:
    java_jars()
    done = build(tree)
    assert done.returncode == 0, done.stderr
    assert (tree / PACKED_JAR).exists()


@pytest.mark.slow
def test_the_classes_compile_without_warnings(tmp_path: Path) -> None:
    """All of javac's warnings are on, but for those about paths of jars. Those about sun.misc.Unsafe cannot be turned off."""
    java_jars()
    command = ["javac", "-Xlint:all,-path,-processing", "-proc:none", "--release", RELEASE, "-cp", f"{spark_jars()}/*"]
    sources = sorted((ROOT / "fastpq/spark/jvm/java").glob("*.java"))
    done = subprocess.run([*command, "-d", tmp_path, *sources], capture_output=True, text=True, check=True)
    warnings = [line for line in done.stderr.splitlines() if ": warning: " in line]
    assert not [line for line in warnings if "Unsafe is internal proprietary API" not in line]


def test_no_class_is_long() -> None:
    for source in (ROOT / "fastpq/spark/jvm/java").glob("*.java"):
        assert len(source.read_text().splitlines()) <= 400, source.name
