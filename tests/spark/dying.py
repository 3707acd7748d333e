"""Commits and streams killed before each change of the file system: ``python -m tests.spark.dying SCENARIO FOLDER``.

A child process does the work and gets SIGKILL before its first change, another child before its second change, and so on, until
one survives. Prints how many children died, and after how many of the deaths the dataset was as before and as after.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.datasource import ReadMaxFiles

import fastpq
from fastpq.spark.options import ReadOptions, WriteOptions, write_options
from fastpq.spark.scan.file_scan import ScanPartition
from fastpq.spark.streams.file_streams import StreamReader, StreamWriter
from fastpq.spark.tables import journal
from fastpq.spark.write.folder_writer import Writer
from tests.spark.test_journal import SCHEMA, ids, staged

CHANGES = ("mkdir", "rename", "replace", "link", "unlink", "rmdir", "fsync")
BEFORE, NEW = [0, 1], [100, 101, 102]
STREAMED = list(range(3))


def is_killed(step: int | None, work: Callable[[], None]) -> bool:
    """Do some work in a child, which is killed before a change of a number.

    Args:
        step: number of the change; None for a child that lives.
        work: the work.

    Returns:
        Whether the child was killed.
    """
    child = os.fork()
    if not child:
        try:
            if step is not None:
                _die_at(step)
            work()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit(f"the child of step {step} failed")
    return os.WIFSIGNALED(status)


def _die_at(step: int) -> None:
    calls = itertools.count()

    def dying(change: Any) -> Any:
        def do(*arguments: Any, **more: Any) -> Any:
            if next(calls) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return change(*arguments, **more)

        return do

    for name in CHANGES:
        setattr(os, name, dying(getattr(os, name)))


def commits(folder: Path, overwrite: bool) -> list[bool]:
    """Kill the commit of a job at each change; for each death, whether the dataset was as after the commit."""
    after: list[bool] = []
    for step in itertools.count():
        root = folder / str(step)
        root.mkdir(parents=True)
        for value in BEFORE:
            fastpq.write_table({"id": [value]}, root / f"old-{value}.parquet")
        writer = Writer(SCHEMA, WriteOptions(str(root)), overwrite)
        killed = is_killed(step, partial(writer.commit, [staged(root, writer.job, NEW)]))
        found, expected = ids(root), NEW if overwrite else BEFORE + NEW
        assert found in ([expected] if not killed else [BEFORE, expected]), (step, found)
        after.append(found == expected)
        journal.finish_commits(str(root), 0.0)
        assert ids(root) == found, (step, found)
        names = {path.name for path in root.iterdir()} - {journal.LOCK}       # a dead process holds no lock
        assert len(names) == len(found), (step, names)
        if not killed:
            return after[:-1]
        shutil.rmtree(root)
    raise AssertionError


def query(root: Path) -> None:
    """A streaming query of two files a batch, from its checkpoint to the last file, in the order of Spark's steps."""
    reader = StreamReader(SCHEMA, ReadOptions((str(root / "in"),), batch_rows=10))
    offsets, done = root / "offsets", root / "commits"
    for folder in (offsets, done):
        folder.mkdir(exist_ok=True)
    for batch in range(len(list(done.glob("[0-9]*"))), len(STREAMED)):
        start = json.loads((offsets / str(batch - 1)).read_text()) if batch else reader.initialOffset()
        if not (offsets / str(batch)).exists():
            if (end := reader.latestOffset(start, ReadMaxFiles(2))) == start:
                return
            journal.replace_json(str(offsets / str(batch)), end)
        end = json.loads((offsets / str(batch)).read_text())
        writer = StreamWriter(SCHEMA, write_options({"path": str(root / "out"), "streamId": "s"}), False)
        parts = [part for part in reader.partitions(start, end) if isinstance(part, ScanPartition)]
        writer.commit([writer.write(rows for part in parts for rows in part.batches())], batch)
        journal.replace_json(str(done / str(batch)), {})
        reader.commit(end)


def _source(root: Path) -> Path:
    (root / "in").mkdir(parents=True)
    for value in STREAMED:
        fastpq.write_table({"id": [value]}, root / "in" / f"{value}.parquet")
    return root


def streams(folder: Path) -> list[bool]:
    """Kill a query at each change, and run it again; for each death, whether all rows were there before the second run."""
    after: list[bool] = []
    query(_source(folder / "imports"))      # of all modules, once and not in each child
    for step in itertools.count():
        root = _source(folder / str(step))
        killed = is_killed(step, partial(query, root))
        found = ids(root / "out") if (root / "out").exists() else []
        assert len(set(found)) == len(found), (step, found)
        assert not is_killed(None, partial(query, root))
        assert ids(root / "out") == STREAMED, (step, ids(root / "out"))
        after.append(found == STREAMED)
        if not killed:
            return after[:-1]
        shutil.rmtree(root)
    raise AssertionError


SCENARIOS: dict[str, Callable[[Path], list[bool]]] = {
    "append": partial(commits, overwrite=False), "overwrite": partial(commits, overwrite=True), "stream": streams
}


if __name__ == "__main__":
    deaths = SCENARIOS[sys.argv[1]](Path(sys.argv[2]))
    print(json.dumps({"deaths": len(deaths), "before": deaths.count(False), "after": deaths.count(True)}))
