"""A standalone Spark cluster of real processes on loopback: one master, and two workers with a core for each of two drivers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

from tests.spark.conftest import KEYS_VARIABLE
from tests.spark.daemon import KEY_SERVICE, preloaded_python
from tests.spark.jvms import QUICK, quick_jvm

ROOT = Path(__file__).resolve().parents[2]
WORKERS = 2         # and executors of a driver, one on each
DRIVERS = 2         # at the same time
SECONDS_TO_START = 600      # a last guard; it takes some ten


@dataclass(frozen=True)
class Cluster:
    """A running cluster.

    Attributes:
        master: its URL.
        folder: logs of master and workers, and below ``work`` those of executors.
        environment: of driver programs, and of executors.
    """

    master: str
    folder: Path
    environment: Mapping[str, str]

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start tests.spark.cluster_driver, which leads its own process group."""
        command = [sys.executable, "-m", "tests.spark.cluster_driver", self.master, *map(str, arguments)]
        return subprocess.Popen(
            command, env=dict(self.environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )


@contextmanager
def cluster(folder: Path, variables: Mapping[str, str]) -> Iterator[Cluster]:
    """Start a cluster, whose processes have more variables in their environment, and stop it."""
    with preloaded_python(folder, "s3fs", KEY_SERVICE) as python, cluster_with(python, folder, variables) as running:
        yield running


@contextmanager
def cluster_with(python: str, folder: Path, variables: Mapping[str, str]) -> Iterator[Cluster]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": python,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": quick_jvm(),
        "SPARK_LAUNCHER_OPTS": QUICK,
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "PYTHONWARNINGS": "ignore",
        **variables,
    }
    environment.pop(KEYS_VARIABLE, None)
    log = folder / "master.log"
    options: tuple[str, ...] = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    running = [_daemon("master.Master", environment, log, *options)]
    try:
        [master] = _wait_for(log, r"Starting Spark master at (spark://\S+)", 1, running)
        for number in range(WORKERS):
            host = f"127.0.0.{number + 1}"      # hosts of their own: no speculative attempt goes to the host of the first one
            options = ("--host", host, "--webui-port", "0", "-c", str(DRIVERS), "-m", f"{DRIVERS}g", master)
            of_host = {**environment, "SPARK_LOCAL_IP": host}
            running.append(_daemon("worker.Worker", of_host, folder / f"worker-{number}.log", *options))
        _wait_for(log, "Registering worker", WORKERS, running)
        yield Cluster(master, folder, environment)
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()


def _daemon(name: str, environment: Mapping[str, str], log: Path, *arguments: str) -> subprocess.Popen[bytes]:
    spark_class = Path(pyspark.__file__).parent / "bin" / "spark-class"
    with log.open("wb") as out:
        command = [str(spark_class), f"org.apache.spark.deploy.{name}", *arguments]
        return subprocess.Popen(command, env=dict(environment), stdout=out, stderr=subprocess.STDOUT)


def _wait_for(log: Path, pattern: str, count: int, running: list[subprocess.Popen[bytes]]) -> list[str]:
    """The matches of a pattern in a log, as soon as there are count."""
    deadline = time.monotonic() + SECONDS_TO_START
    while len(found := re.findall(pattern, log.read_text())) < count:
        if time.monotonic() > deadline or any(process.poll() is not None for process in running):
            raise RuntimeError(f"the cluster did not start: {log.read_text()[-2000:]}")
        time.sleep(0.2)
    return found
