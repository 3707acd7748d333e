"""Jobs of one task a file: started on the driver, with its progress, and ended with a report."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import types as st

from fastpq.errors import ParquetError
from fastpq.progress import Progress
from fastpq.spark.types import arrow_schema

Item = TypeVar("Item")

REPORT = st.StructType(
    [
        st.StructField("path", st.StringType()),
        st.StructField("status", st.StringType()),
        st.StructField("rows", st.LongType()),
        st.StructField("bytes", st.LongType()),
        st.StructField("seconds", st.DoubleType()),
        st.StructField("error", st.StringType()),
    ]
)
OK, SKIPPED, ERROR = "ok", "skipped", "error"
_RESULT = st.StructType([*REPORT.fields, st.StructField("made", st.StringType())])
_POLL_SECONDS = 0.5
_log = logging.getLogger("fastpq.spark")


class JobError(ParquetError):
    """A job over the files of a dataset changed nothing, because some of them failed.

    Attributes:
        report: the report of all files, a DataFrame.
    """

    report: DataFrame | None = None


@dataclass(frozen=True)
class Outcome:
    """What became of a task's files.

    Attributes:
        status: ``ok`` or ``skipped``.
        rows: how many there are.
        made: what the task tells the driver beside, as text.
    """

    status: str = OK
    rows: int | None = None
    made: str | None = None


@dataclass(frozen=True)
class Work(Generic[Item]):
    """What a job does with each of its items, in executors.

    Attributes:
        description: for the progress and Spark's pages.
        name_of: what the report calls an item, and its bytes.
        action: done in a task of its own; a ParquetError or OSError that it raises is in the report.
    """

    description: str
    name_of: Callable[[Item], tuple[str, int]]
    action: Callable[[Item], Outcome]


def run(spark: SparkSession, items: Sequence[Item], work: Work[Item], progress: Progress | None) -> list[Row]:
    """Do a task for each item; returns their rows: those of REPORT, and what each task made."""
    items = list(items)
    if not items:
        return []

    def tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield pa.RecordBatch.from_pylist([_reported(items[number], work)], schema=arrow_schema(_RESULT))

    planned = spark.range(0, len(items), 1, len(items)).mapInArrow(tasks, _RESULT)
    with _watched(spark, work.description, len(items), progress):
        return planned.collect()


def report_of(spark: SparkSession, rows: Sequence[Row]) -> DataFrame:
    """The report of a job that is done."""
    names = REPORT.names
    return spark.createDataFrame([tuple(row[name] for name in names) for row in rows], REPORT)


def _reported(item: Item, work: Work[Item]) -> dict[str, Any]:
    started = time.perf_counter()
    path, size = work.name_of(item)
    outcome, error = Outcome(ERROR), None
    try:
        outcome = work.action(item)
    except (ParquetError, OSError) as found:
        error = f"{type(found).__name__}: {found}"
    seconds = time.perf_counter() - started
    return {
        "path": path, "status": outcome.status, "rows": outcome.rows, "bytes": size, "seconds": seconds, "error": error,
        "made": outcome.made,
    }  # fmt: skip


@contextmanager
def _watched(spark: SparkSession, description: str, total: int, progress: Progress | None) -> Iterator[None]:
    """Tell how many tasks are done while they run; Spark Connect does not say."""
    context = getattr(spark, "_sc", None)
    tell = progress if progress is not None else lambda done, total: _log.info("%s: %d of %d files", description, done, total)
    if context is None:
        yield
        tell(total, total)
        return
    group, done = f"fastpq-{uuid.uuid4().hex}", threading.Event()
    tracker = context.statusTracker()

    failures: list[BaseException] = []

    def poll() -> None:
        try:
            tell_while_running()
        except BaseException as error:
            failures.append(error)
            context.cancelJobGroup(group)

    def tell_while_running() -> None:
        last = -1
        while not done.wait(_POLL_SECONDS):
            stages = [tracker.getStageInfo(stage) for job in tracker.getJobIdsForGroup(group)
                      for stage in getattr(tracker.getJobInfo(job), "stageIds", ())]  # fmt: skip
            count = min(total, sum(stage.numCompletedTasks for stage in stages if stage is not None))
            if count > last:        # a stage that runs again has fewer
                tell(count, total)
                last = count

    watcher = threading.Thread(target=poll, name="fastpq-progress", daemon=True)
    before = {name: context.getLocalProperty(name) for name in ("spark.jobGroup.id", "spark.job.description")}
    context.setJobGroup(group, f"fastpq: {description}")
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        for name, value in before.items():
            context.setLocalProperty(name, value)
        if failures:
            raise failures[0]
    tell(total, total)
