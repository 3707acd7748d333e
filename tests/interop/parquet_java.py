"""parquet-java as a peer of the tests: the programs in java/, compiled against the jars that PySpark brings."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent / "java"


def jars() -> Path | None:
    """The folder of PySpark's jars, without importing PySpark."""
    spec = importlib.util.find_spec("pyspark")
    return Path(spec.submodule_search_locations[0]) / "jars" if spec and spec.submodule_search_locations else None


def reason_to_skip() -> str | None:
    if shutil.which("javac") is None:
        return "parquet-java needs a JDK (Debian: apt-get install openjdk-17-jdk-headless)"
    if jars() is None:
        return "parquet-java's jars come with PySpark: pip install 'fastpq[spark]'"
    return None


@cache
def _class_path(folder: str, program: str) -> str:
    path = f"{folder}:{jars()}/*"
    command = ["javac", "-cp", path, "-d", folder, str(SOURCES / f"{program}.java")]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return path


def run_program(folder: Path, program: str, *arguments: str) -> str:
    """Run a program of java/; returns what it prints. Classes are compiled once into folder."""
    if reason := reason_to_skip():
        pytest.skip(reason)
    command = ["java", "-cp", _class_path(str(folder), program), program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def run(folder: Path, command: str, file: Path, footer_key: bytes | None, column_keys: Mapping[str, bytes], *more: str) -> str:
    """Run ExplicitKeys; returns what it prints."""
    columns = ",".join(f"{name}={key.hex()}" for name, key in column_keys.items()) or "-"
    return run_program(
        folder, "ExplicitKeys", command, str(file), footer_key.hex() if footer_key else "-", columns, *more
    )
