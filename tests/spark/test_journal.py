"""Commits that fail on the way and are aborted: what has begun to happen is finished later, and loses nothing."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as st

import fastpq
from fastpq.spark.options import WriteOptions
from fastpq.spark.streams.file_streams import StreamWriter
from fastpq.spark.tables import journal
from fastpq.spark.tables.listing import list_files
from fastpq.spark.write.folder_writer import Writer
from fastpq.spark.write.write_task import Written

SCHEMA = st.StructType([st.StructField("id", st.LongType())])
Failing = Callable[[str, int], None]


def ids(folder: Path) -> list[int]:
    """Rows of the dataset, as the Spark source lists its files."""
    return sorted(value for file in list_files([str(folder)]) for value in fastpq.read_table(file.path)["id"].to_pylist())


def staged(folder: Path, job: str, values: list[int]) -> Written:
    """A task's files, of one value each, and its message."""
    moves = {}
    (folder / journal.TEMPORARY / job).mkdir(parents=True, exist_ok=True)
    for value in values:
        place = f"{journal.TEMPORARY}/{job}/{value}.parquet"
        fastpq.write_table({"id": [value]}, folder / place)
        moves[place] = f"new-{value}.parquet"
    return Written(job, moves)


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Failing:
    """Lets the second call of a function of ``os`` for data files fail."""

    def fail(name: str, code: int) -> None:
        work, calls = getattr(os, name), 0

        def do(path: Any, *others: Any, **more: Any) -> None:
            nonlocal calls
            is_data = str(path).endswith(".parquet")
            calls += is_data
            if is_data and calls == 2:
                raise OSError(code, os.strerror(code), path)
            work(path, *others, **more)

        monkeypatch.setattr(os, name, do)

    return fail


@pytest.mark.parametrize(("step", "code"), [("replace", errno.EIO), ("unlink", errno.EACCES)])
def test_an_abort_after_the_commit_began(
    tmp_path: Path, failing: Failing, monkeypatch: pytest.MonkeyPatch, step: str, code: int
) -> None:
    for value in range(3):
        fastpq.write_table({"id": [value]}, tmp_path / f"old-{value}.parquet")
    writer = Writer(SCHEMA, WriteOptions(str(tmp_path)), True)
    messages = [staged(tmp_path, writer.job, [100, 101, 102])]
    failing(step, code)
    with pytest.raises(OSError, match=os.strerror(code)):
        writer.commit(messages)
    writer.abort(messages)      # as Spark does after an error in commit
    monkeypatch.undo()
    assert ids(tmp_path) == [100, 101, 102]
    journal.finish_commits(str(tmp_path), 3600)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"new-{value}.parquet" for value in (100, 101, 102)]


def test_an_abort_after_the_commit_of_a_batch_began(tmp_path: Path, failing: Failing, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = StreamWriter(SCHEMA, WriteOptions(str(tmp_path), stream_id="s"), False)
    messages = [staged(tmp_path, writer.job, [1, 2, 3])]
    failing("replace", errno.EIO)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        writer.commit(messages, 0)
    writer.abort(messages, 0)
    monkeypatch.undo()
    assert ids(tmp_path) == [1, 2, 3]
    again = StreamWriter(SCHEMA, WriteOptions(str(tmp_path), stream_id="s"), False)
    again.commit([staged(tmp_path, again.job, [1, 2, 3])], 0)
    assert sorted(path.name for path in tmp_path.rglob("*.parquet")) == ["new-1.parquet", "new-2.parquet", "new-3.parquet"]


@pytest.mark.parametrize("removed", [[], ["old.parquet"]])
def test_a_commit_removes_metadata_of_the_files_before(tmp_path: Path, removed: list[str]) -> None:
    fastpq.write_table({"id": [1]}, tmp_path / "old.parquet")
    fastpq.write_dataset_metadata(tmp_path)
    moves = staged(tmp_path, "job", [2, 3]).moves
    journal.commit(str(tmp_path), "job", moves, removed)
    assert not [path.name for path in tmp_path.iterdir() if path.name.endswith("_metadata")]
    assert ids(tmp_path) == ([2, 3] if removed else [1, 2, 3])


def test_names_are_on_disk_before_old_files_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fastpq.write_table({"id": [1]}, tmp_path / "old.parquet")
    (tmp_path / "k=1").mkdir()
    moves = {source: f"k=1/{target}" for source, target in staged(tmp_path, "job", [2]).moves.items()}
    done: list[str] = []
    unlink, sync = os.unlink, os.fsync

    def told_unlink(path: Any, **options: Any) -> None:
        done.append(f"unlink {os.path.basename(path)}")
        unlink(path, **options)

    def told_sync(descriptor: int) -> None:
        done.append(f"sync {os.path.basename(os.path.realpath(f'/proc/self/fd/{descriptor}'))}")
        sync(descriptor)

    monkeypatch.setattr(os, "unlink", told_unlink)
    monkeypatch.setattr(os, "fsync", told_sync)
    journal.commit(str(tmp_path), "job", moves, ["old.parquet"])
    assert done.index("sync k=1") < done.index("unlink old.parquet")


def test_an_abort_before_the_commit_removes_all(tmp_path: Path) -> None:
    writer = Writer(SCHEMA, WriteOptions(str(tmp_path)), False)
    writer.abort([staged(tmp_path, writer.job, [1])])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("scenario", "deaths"), [("append", 10), ("overwrite", 12), ("stream", 40)])
def test_a_driver_killed_before_every_change(tmp_path: Path, scenario: str, deaths: int) -> None:
    """The dataset is as before or as after, and a query that is run again writes each row once."""
    command = [sys.executable, "-m", "tests.spark.dying", scenario, str(tmp_path / "dying")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout)
    assert told["deaths"] >= deaths
    assert min(told["before"], told["after"]) >= 2


def test_jobs_of_sparks_committers_whose_driver_died(tmp_path: Path) -> None:
    old, new = tmp_path / "_temporary" / "1", tmp_path / "_temporary" / "2"
    staging = tmp_path / ".spark-staging-3"
    for folder in (old, new, staging):
        (folder / "part=1").mkdir(parents=True)
        (folder / "part=1" / "a.parquet").touch()
    for place in (old, *old.rglob("*")):
        os.utime(place, (1, 1))
    (tmp_path / "_SUCCESS").touch()
    assert journal.remove_spark_jobs(str(tmp_path), 3600) == ["_temporary/1"]
    assert new.exists()
    assert journal.remove_spark_jobs(str(tmp_path), 0) == ["_temporary/2", ".spark-staging-3"]
    assert [path.name for path in tmp_path.iterdir()] == ["_SUCCESS"]
    assert journal.remove_spark_jobs(str(tmp_path), 0) == []
