"""The recipes of docs/pages/spark-cluster.md run on a standalone cluster of two workers, with interpreters as users have them."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from fastpq.spark.example import file_kms
from fastpq.spark.jvm.jar import JAR, build
from tests.requirements import java_jars
from tests.spark.cluster import Cluster, cluster_with
from tests.spark.cluster_driver import SETTINGS

RECIPES = Path(__file__).parent / "recipes"
SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
TIMEOUT = 1200      # seconds: a last guard
APPLICATION, CHECK = RECIPES / "application.py", Path(__file__).resolve().parents[2] / "fastpq/spark/check/__main__.py"
CLIENT = ("--option", "kms.client=client:Client", "--option", "parquet.encryption.uniform.key=footer")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cluster")]


@pytest.fixture(scope="module")
def plain_cluster(tmp_path_factory: pytest.TempPathFactory, class_archive: None) -> Iterator[Cluster]:
    """A cluster whose workers start Python anew, as those of users do. Its machines know no variable of the key service."""
    java_jars()
    assert build()
    folder = tmp_path_factory.mktemp("plain")
    file_kms.create(folder / "keys", ("footer", "prices"))
    with cluster_with(sys.executable, folder, {}) as running:
        yield running


def submit(on: Cluster, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run spark-submit from a folder without modules, with the settings of a small application and with an event log."""
    events = on.folder / "events"
    events.mkdir(exist_ok=True)
    settings = {
        **SETTINGS, "spark.speculation": "false", "spark.eventLog.dir": events.as_uri(),
        f"spark.executorEnv.{file_kms.VARIABLE}": str(on.folder / "keys"),
    }
    conf = [text for name, value in settings.items() for text in ("--conf", f"{name}={value}")]
    command = [str(SUBMIT), "--master", on.master, "--driver-memory", "512m", *conf, *map(str, arguments)]
    environment = {**on.environment, file_kms.VARIABLE: str(on.folder / "keys"), **variables}
    return subprocess.run(
        command, cwd=on.folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )


def packed_environment(folder: Path) -> Path:
    """A packed virtual environment. Its packages are links to those that are installed here, so that it is small."""
    home = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    packages = next(home.glob("lib/python*/site-packages"))
    for entry in Path(pyspark.__file__).parents[1].iterdir():
        if not entry.name.startswith(("pyspark", "__")):        # the cluster has its own PySpark, and the path has fastpq
            (packages / entry.name).symlink_to(entry)
    with tarfile.open(folder / "environment.tar.gz", "w:gz") as archive:
        archive.add(home, ".")
    return folder / "environment.tar.gz"


@dataclass(frozen=True)
class Runs:
    """What the submitted applications printed."""

    py_files: subprocess.CompletedProcess[str]
    archives: subprocess.CompletedProcess[str]
    check: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def runs(plain_cluster: Cluster) -> Runs:
    """All recipes. Two at a time run on the cluster, and the third waits for cores."""
    folder = plain_cluster.folder
    archive, module = packed_environment(folder), RECIPES / "client.py"
    for name in ("py_files", "archives"):
        (folder / name).mkdir()
    with ThreadPoolExecutor() as pool:
        py_files = pool.submit(
            submit, plain_cluster, "--jars", JAR, "--py-files", module, APPLICATION, folder / "py_files"
        )
        archives = pool.submit(
            submit, plain_cluster, "--jars", JAR, "--py-files", module, "--archives", f"{archive}#environment", APPLICATION,
            folder / "archives", PYSPARK_PYTHON="./environment/bin/python", PYSPARK_DRIVER_PYTHON=sys.executable,
        )
        py_files.result()
        check = pool.submit(submit, plain_cluster, "--jars", JAR, "--py-files", module, CHECK, *CLIENT)
        return Runs(py_files.result(), archives.result(), check.result())


def test_a_client_of_the_users(runs: Runs) -> None:
    """``--py-files`` brings it to the Python workers of executors, and to the one that plans on the driver."""
    assert runs.py_files.returncode == 0, runs.py_files.stdout[-2000:] + runs.py_files.stderr[-6000:]
    assert f"the application has finished; an executor ran {sys.executable}" in runs.py_files.stdout
    assert "== Physical Plan ==" in runs.py_files.stdout


def test_a_packed_environment(runs: Runs) -> None:
    assert runs.archives.returncode == 0, runs.archives.stdout[-2000:] + runs.archives.stderr[-6000:]
    [line] = [line for line in runs.archives.stdout.splitlines() if line.startswith("the application has finished")]
    assert line.endswith("/environment/bin/python")
    assert sys.executable not in line


def test_check_on_all_executors(runs: Runs) -> None:
    assert runs.check.returncode == 0, runs.check.stdout + runs.check.stderr[-4000:]
    for title in ("the driver on ", "executor 1 on ", "executor 2 on "):
        assert title in runs.check.stdout
    lines = runs.check.stdout.splitlines()
    assert sum(line.split() == ["key", "service", "ok"] for line in lines) == 3
    assert lines[-1] == "Nothing is wrong."


def test_check_says_what_executors_lack(plain_cluster: Cluster) -> None:
    """Executors have neither packages nor the variable of the key service; the driver has both."""
    bare = plain_cluster.folder / "bare"
    bare.write_text(f'#!/bin/sh\nexport PYTHONPATH=$(printf %s "$PYTHONPATH" | tr : "\\n" | grep pyspark | paste -sd:)\n'
                    f'exec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    done = submit(
        plain_cluster, "--py-files", RECIPES / "client.py", CHECK, PYSPARK_PYTHON=str(bare), PYSPARK_DRIVER_PYTHON=sys.executable
    )
    assert done.returncode == 1, done.stdout + done.stderr[-4000:]
    assert "executor 1 on" in done.stdout
    for number in (1, 2):
        for package in ("fastpq", "pyarrow", "numpy"):
            assert f"- executor {number} on {os.uname().nodename} has no {package}: install {package} where" in done.stdout


def test_no_key_in_logs_plans_and_event_logs(plain_cluster: Cluster, runs: Runs) -> None:
    """Of two workers, with an event log, and keys by a client of the user's."""
    folder = plain_cluster.folder
    keys = [bytes.fromhex(line.split(":")[1]) for line in (folder / "keys").read_text().split()]
    forms = [form for key in keys for form in (key, key.hex().encode(), key.hex().upper().encode(), base64.b64encode(key))]
    printed = [text.encode() for run in (runs.py_files, runs.archives, runs.check) for text in (run.stdout, run.stderr)]
    places = [path for part in ("events", "work") for path in (folder / part).rglob("*") if path.is_file()]
    places += folder.glob("*.log")
    logs = [path.read_bytes() for path in places]
    assert sum(b"SparkListenerSQLExecutionStart" in log for log in logs) >= 2
    assert any(b"client:Client" in log for log in logs)       # options are there
    assert not [form for form in forms for text in (*logs, *printed) if form in text]
