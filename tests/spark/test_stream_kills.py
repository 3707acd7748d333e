"""Streams of a driver that is killed at a random moment, and runs again: each row once, in a folder and in an object store."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

import fastpq
from fastpq.spark.scan.file_scan import open_file
from fastpq.spark.tables.listing import list_files
from tests.io.object_stores import Store
from tests.spark.daemon import preloaded_python

ROOT = Path(__file__).resolve().parents[2]
FILES, ROWS = 4, 5
BEGUN = 1, 3                # batches that both queries have begun at the death: Spark does not restart from half of a first entry
LOG = "driver.log"
PATIENCE = 600              # seconds: a last guard against a hang


def rows_in(table: str) -> list[int]:
    """Read without Spark; none before the first batch."""
    rows: list[int] = []
    with suppress(FileNotFoundError):
        for found in list_files([table]):
            with open_file(found.path, None) as file:
                rows += file.read(["id"])["id"].to_pylist()
    return sorted(rows)


def begun(folder: Path) -> int:
    """Batches that both queries have begun, by their checkpoints."""
    return min(len(list((folder / "checkpoints" / name / "offsets").glob("[0-9]*"))) for name in ("folder", "store"))


def wait_for(batches: int, folder: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while begun(folder) < batches:
        assert process.poll() is None, (folder / LOG).read_text()[-4000:]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def run_driver(batches: int | None, folder: Path, table: str) -> None:
    """Kill the driver at some moment after so many batches have begun; None to let it come to its end."""
    command = [sys.executable, "-m", "tests.spark.stream_driver", str(folder), table]
    with (folder / LOG).open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        if batches is None:
            assert process.wait(PATIENCE) == 0, (folder / LOG).read_text()[-4000:]
        else:
            wait_for(batches, folder, process)
            time.sleep(random.uniform(0, 0.5))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.slow
@pytest.mark.usefixtures("class_archive")
def test_each_row_once(moto_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store("s3", moto_url)
    table = f"{store.scheme}://{store.new_bucket()}/set"
    (tmp_path / "in").mkdir()
    for number in range(FILES):
        fastpq.write_table({"id": range(number * ROWS, (number + 1) * ROWS)}, tmp_path / "in" / f"{number}.parquet")
    with preloaded_python(tmp_path, "s3fs") as python:
        for name, value in {**store.environment(), "PYSPARK_PYTHON": python, "PYTHONPATH": str(ROOT)}.items():
            monkeypatch.setenv(name, value)
        for batches in (random.randint(*BEGUN), None):
            run_driver(batches, tmp_path, table)
            for target in (str(tmp_path / "out"), table):
                rows = rows_in(target)
                assert len(rows) % ROWS == 0        # batches are whole
                assert len(set(rows)) == len(rows)
    for target in (str(tmp_path / "out"), table):
        assert rows_in(target) == list(range(FILES * ROWS))
