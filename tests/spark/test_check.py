"""The check of driver and executors: what it prints, what it calls wrong, and its exit code. test_cluster_recipes.py runs it on a
cluster."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fastpq.errors import UnsupportedError
from fastpq.spark.check import probe
from fastpq.spark.check.__main__ import java_version, pair, reason_of, run_check
from fastpq.spark.check.executors import describe_executors
from fastpq.spark.check.problems import problems_of_driver, problems_of_executors
from fastpq.spark.example import file_kms

ROOT = Path(__file__).resolve().parents[2]
CLIENT = "fastpq.spark.example.file_kms:FileKms"
HEALTHY: dict[str, Any] = {
    "host": "h", "process": 1, "executor": "h 1", "python": "3.12.1", "executable": "/opt/python",
    "packages": {"fastpq": "0.1.0", "pyspark": "4.1.0", "pyarrow": "26.0.0", "numpy": "2.4.0"}, "jar": "abc",
    "memory": "anonymous memory", "free_shared_memory": 1 << 30, "temporary_folder": "/tmp", "free_temporary": 1 << 30,
    "key_service": None, "java": "17.0.1", "spark": "4.1.0", "loaded_jar": "abc",
}


def changed(**values: Any) -> dict[str, Any]:
    """HEALTHY with other values. A name of a package changes its version."""
    found = copy.deepcopy(HEALTHY)
    for name, value in values.items():
        (found["packages"] if name in found["packages"] else found)[name] = value
    return found


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"pyarrow": None}, "the driver has no pyarrow: install pyarrow where /opt/python finds it"),
        ({"pyarrow": "broken (ImportError: x)"}, "the driver cannot import pyarrow: broken (ImportError: x)"),
        ({"java": None}, "the driver has no Java"),
        ({"java": "11.0.2"}, "the driver has Java 11.0.2, and Spark 4 needs Java 17 or later"),
        ({"jar": None}, "this fastpq has no jar"),
        ({"loaded_jar": "def"}, "the jar in spark.jars is that of another version of fastpq"),
        ({"spark": "4.0.0"}, "the driver has PySpark 4.1.0, and its JVM has Spark 4.0.0"),
        ({"pyspark": "5.0.0", "spark": "5.0.0"}, "fastpq runs with PySpark 4.0 to 4.3, and the driver has 5.0.0"),
        ({"key_service": "'c' raised OSError"}, "the driver cannot use the key service: 'c' raised OSError"),
    ],
)
def test_problems_of_a_driver(values: dict[str, Any], words: str) -> None:
    [problem] = problems_of_driver(changed(**values))
    assert words in problem


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"fastpq": None}, "executor 1 on h has no fastpq"),
        ({"fastpq": "0.0.9"}, "executor 1 on h has fastpq 0.0.9, and the driver has fastpq 0.1.0"),
        ({"python": "3.11.9"}, "executor 1 on h has Python 3.11, and the driver has Python 3.12"),
        ({"memory": "files in /tmp", "free_temporary": 1 << 20}, "with the JVM in files in /tmp, where 1 MiB are free"),
    ],
)
def test_problems_of_an_executor(values: dict[str, Any], words: str) -> None:
    [problem] = problems_of_executors(HEALTHY, [changed(**values)], 1)
    assert words in problem


def test_no_problems() -> None:
    files = changed(memory="files in /tmp", python="3.12.9")
    assert not [*problems_of_driver(HEALTHY), *problems_of_executors(HEALTHY, [HEALTHY, files], 2)]


def test_executors_without_a_task() -> None:
    assert next(iter(problems_of_executors(HEALTHY, [HEALTHY], 3))).startswith("1 of 3 executors ran a task")


def test_the_key_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = {"client": CLIENT}
    monkeypatch.delenv(file_kms.VARIABLE, raising=False)
    assert probe.ask_key_service(service, None) == f"the client {CLIENT!r} raised KeyError"
    file_kms.create(tmp_path / "keys", ["kf"])
    monkeypatch.setenv(file_kms.VARIABLE, str(tmp_path / "keys"))
    assert probe.ask_key_service(service, None) == probe.ask_key_service(service, "kf") == "ok"
    assert probe.ask_key_service(service, "other") == f"the client {CLIENT!r} raised KeyError"
    for name in ("no_module:Client", ".no_module:Client"):
        assert "cannot be imported" in probe.ask_key_service({"client": name}, None)
    monkeypatch.setattr(file_kms.FileKms, "unwrap_key", lambda self, wrapped, name: bytes(16))
    assert "unwraps another key" in probe.ask_key_service(service, "kf")


def test_a_description_is_json() -> None:
    description = probe.describe(None, None)
    assert json.loads(json.dumps(description)) == description
    assert description["packages"]["fastpq"] == "0.1.0"
    assert probe.version_of("no_package_has_this_name") is None


def test_this_machine(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    code, printed = run_check([]), capsys.readouterr().out
    assert printed.startswith("this machine on ")
    assert f"({sys.executable})" in printed
    problems = "What is wrong:" in printed
    assert (code, problems) in ((0, False), (1, True))      # a machine without Java, or without the jar
    if java_version() is None:
        assert "- the driver has no Java" in printed


def test_without_java(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert run_check([]) == 1
    assert "- the driver has no Java" in capsys.readouterr().out


def test_help_needs_no_java(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": str(tmp_path), "JAVA_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "fastpq.spark.check", "--help"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "usage: python -m fastpq.spark.check" in done.stdout


@pytest.mark.parametrize("arguments", [["--option", "kms.client"], ["--option", "password=x"], ["--conf", "x"]])
def test_arguments_that_do_not_fit(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_check(arguments) == 2
    assert capsys.readouterr().err.startswith("check: ")


def test_pair() -> None:
    assert pair("a=b=c") == ("a", "b=c")


def test_reason_of_an_error() -> None:
    text = "Job aborted\n  File x\n\tat y\n/usr/bin/python3: No module named pyspark\nPYTHONPATH was:"
    assert reason_of(RuntimeError(text)) == "/usr/bin/python3: No module named pyspark"


def test_spark_connect() -> None:
    with pytest.raises(UnsupportedError, match="Spark Connect"):
        describe_executors(object())  # type: ignore[arg-type]
