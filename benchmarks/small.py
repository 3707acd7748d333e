"""Small work beside pyarrow's: ``python -m benchmarks.small``.

Files of many columns, datasets of many partitions, and tiny files cost time for each file, column and page, hardly for values.
Printed is the processor time of this process, the median of rounds in turns, and the ratio to pyarrow's. What each library writes
is read by the other one, and compared, before any time counts. Files are in memory by default: on a disk, times depend
on the files that were removed before.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastpq
from benchmarks.equality import require_equal

COLUMNS, PARTITIONS, TINY_FILES = 5000, 500, 200
DURABLE = "write, durable=True:"        # files are put on disk, pyarrow's are not


class SmallJob(NamedTuple):
    """A job of both libraries.

    Attributes:
        name: for the report.
        ours, theirs: the work.
        check: compares the results of both; called once, after both have run.
    """

    name: str
    ours: Callable[[], object]
    theirs: Callable[[], object]
    check: Callable[[], None]


def wide_jobs(folder: Path) -> list[SmallJob]:
    """A file of many columns."""
    arrays = {f"c{number}": np.arange(100) + number for number in range(COLUMNS)}
    ours, theirs = folder / "wide.parquet", folder / "wide_pyarrow.parquet"

    def check() -> None:
        truth = pa.table(arrays)
        require_equal(pq.read_table(ours), truth)
        require_equal(pa.table(fastpq.read_table(theirs)), truth)

    return [
        SmallJob(
            f"write {COLUMNS} columns",
            lambda: fastpq.write_table(arrays, ours),
            lambda: pq.write_table(pa.table(arrays), theirs),
            check,
        ),
        SmallJob(f"read {COLUMNS} columns", lambda: fastpq.read_table(theirs), lambda: pq.read_table(theirs), check),
    ]


def partition_jobs(folder: Path) -> list[SmallJob]:
    """A dataset with a file in each of many partitions."""
    numbers = np.arange(100 * PARTITIONS)
    arrays = {"part": numbers % PARTITIONS, "value": numbers * 0.5}
    table = pa.table(arrays)
    ours, synced, theirs = folder / "dataset", folder / "dataset_durable", folder / "dataset_pyarrow"

    def again(path: Path, write: Callable[[Path], Any]) -> Callable[[], object]:
        def work() -> None:
            shutil.rmtree(path, ignore_errors=True)
            write(path)

        return work

    def check() -> None:
        truth = table.sort_by([("part", "ascending"), ("value", "ascending")])
        for found in (*(pq.read_table(path) for path in (ours, synced) if path.exists()), pa.table(fastpq.read_table(theirs))):
            part = pa.array(found["part"].to_pylist(), pa.int64())
            plain = pa.table({"part": part, "value": found["value"]})
            require_equal(plain.sort_by([("part", "ascending"), ("value", "ascending")]), truth)

    write_theirs = again(theirs, lambda path: pq.write_to_dataset(table, path, partition_cols=["part"]))
    return [
        SmallJob(
            f"write {PARTITIONS} partitions",
            again(ours, lambda path: fastpq.write_dataset(arrays, path, partition_by=["part"])),
            write_theirs,
            check,
        ),
        SmallJob(
            f"{DURABLE} {PARTITIONS} partitions",
            again(synced, lambda path: fastpq.write_dataset(arrays, path, partition_by=["part"], durable=True)),
            write_theirs,
            check,
        ),
        SmallJob(f"read {PARTITIONS} partitions", lambda: fastpq.read_table(theirs), lambda: pq.read_table(theirs), check),
    ]


def tiny_jobs(folder: Path) -> list[SmallJob]:
    """Files of ten rows, one after the other, under new names: where a file replaces another one, ext4 puts it on disk."""
    arrays, names = {"a": np.arange(10), "b": np.arange(10) / 2}, itertools.count()
    ours, theirs = folder / "tiny.parquet", folder / "tiny_pyarrow.parquet"

    def repeated(work: Callable[[], object]) -> Callable[[], object]:
        def works() -> None:
            for _ in range(TINY_FILES):
                work()

        return works

    def new() -> Path:
        return folder / f"tiny-{next(names)}.parquet"

    def check() -> None:
        fastpq.write_table(arrays, ours)
        truth = pa.table(arrays)
        require_equal(pq.read_table(ours), truth)
        require_equal(pa.table(fastpq.read_table(theirs)), truth)

    pq.write_table(pa.table(arrays), theirs)
    write_theirs = repeated(lambda: pq.write_table(pa.table(arrays), new()))
    return [
        SmallJob(f"write {TINY_FILES} tiny files", repeated(lambda: fastpq.write_table(arrays, new())), write_theirs, check),
        SmallJob(
            f"{DURABLE} {TINY_FILES} tiny files",
            repeated(lambda: fastpq.write_table(arrays, new(), durable=True)),
            write_theirs,
            check,
        ),
        SmallJob(
            f"read {TINY_FILES} tiny files",
            repeated(lambda: fastpq.read_table(theirs)),
            repeated(lambda: pq.read_table(theirs)),
            check,
        ),
    ]


def seconds(work: Callable[[], object]) -> float:
    """Processor seconds of this process for some work."""
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="turns of each job (default: %(default)s)")
    parser.add_argument("--folder", default="/dev/shm", help="folder for the files (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        folder = Path(scratch)
        print(f"{'job':36} {'fastpq':>9} {'pyarrow':>9} {'ratio':>6}")
        for job in [*wide_jobs(folder), *partition_jobs(folder), *tiny_jobs(folder)]:
            job.ours()
            job.theirs()
            job.check()
            pairs = [(seconds(job.ours), seconds(job.theirs)) for _ in range(options.rounds)]
            ours, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
            print(f"{job.name:36} {ours:8.3f}s {theirs:8.3f}s {ours / theirs:6.2f}", flush=True)


if __name__ == "__main__":
    main()
