"""Spark jobs with one task for each file: run on executors, with progress on the driver and a report of all files."""

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
from pyspark import SparkContext
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import types as st

from fastpq.common.progress import Progress
from fastpq.errors import ParquetError
from fastpq.spark.types import reader_schema

Task = TypeVar("Task")

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
_POLL_SECONDS = 0.5         # between two reports of progress
_CANCEL_SECONDS = 0.1       # between two attempts to cancel a job
_log = logging.getLogger("fastpq.spark")


class JobError(ParquetError):
    """A job over the files of a dataset failed for some files, and left the dataset unchanged.

    Attributes:
        report: DataFrame with a row for each file.
    """

    report: DataFrame | None = None


@dataclass(frozen=True)
class TaskOutcome:
    """Result of a task: status, rows and a message of the files the task worked on.

    Attributes:
        status: ``ok`` or ``skipped``.
        rows: number of rows; None if unknown.
        made: text from the task to the driver, not shown in the report: the path of a new file, or a description of a file.
    """

    status: str = OK
    rows: int | None = None
    made: str | None = None


@dataclass(frozen=True)
class Work(Generic[Task]):
    """The work of a job on each of its items, on executors.

    Attributes:
        description: shown with progress and in Spark's UI.
        name_of: path and bytes of an item, for the report.
        action: the work of one task. A ParquetError or OSError becomes the error of the report's row.
    """

    description: str
    name_of: Callable[[Task], tuple[str, int]]
    action: Callable[[Task], TaskOutcome]


def run_tasks(spark: SparkSession, items: Sequence[Task], work: Work[Task], progress: Progress | None) -> list[Row]:
    """Run one task for each item; returns rows of REPORT with the further column ``made`` of TaskOutcome.

    ``progress`` is called in a watcher thread during the tasks, and in the calling thread after the last task.
    """
    items = list(items)
    if not items:
        if progress is not None:
            progress(0, 0)
        return []

    def tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield pa.RecordBatch.from_pylist([_reported(items[number], work)], schema=reader_schema(_RESULT))

    planned = spark.range(0, len(items), 1, len(items)).mapInArrow(tasks, _RESULT)
    with _watched(spark, work.description, len(items), progress):
        return planned.collect()


def report_of(spark: SparkSession, rows: Sequence[Row]) -> DataFrame:
    """A DataFrame with the report of a finished job, from the rows of run_tasks."""
    names = REPORT.names
    return spark.createDataFrame([tuple(row[name] for name in names) for row in rows], REPORT)


def _reported(item: Task, work: Work[Task]) -> dict[str, Any]:
    started = time.perf_counter()
    path, size = work.name_of(item)
    outcome, error = TaskOutcome(ERROR), None
    try:
        outcome = work.action(item)
    except (ParquetError, OSError) as found:
        error = f"{type(found).__name__}: {found}"
    seconds = time.perf_counter() - started
    return {
        "path": path, "status": outcome.status, "rows": outcome.rows, "bytes": size, "seconds": seconds, "error": error,
        "made": outcome.made,
    }


@contextmanager
def _watched(spark: SparkSession, description: str, total: int, progress: Progress | None) -> Iterator[None]:
    """Report the number of finished tasks while the body runs; with Spark Connect, only at the end."""

    def tell(count: int) -> None:
        if progress is not None:
            progress(count, total)
        else:
            _log.info("%s: %d of %d files", description, count, total)

    context = getattr(spark, "_sc", None)
    if context is None:
        yield
        tell(total)
        return
    watcher = _Watcher(context, f"fastpq-{uuid.uuid4().hex}", total, tell)
    before = {name: context.getLocalProperty(name) for name in ("spark.jobGroup.id", "spark.job.description")}
    context.setJobGroup(watcher.group, f"fastpq: {description}")
    watcher.start()
    try:
        yield
    finally:
        watcher.stop()
        for name, value in before.items():
            context.setLocalProperty(name, value)
        if watcher.failure is not None:
            raise watcher.failure
    tell(total)


class _Watcher:
    """A thread reporting the number of finished tasks of a job group; an exception from ``tell`` cancels the group.

    Args:
        context: the SparkContext.
        group: id of the job group.
        total: number of tasks.
        tell: called with the number of finished tasks whenever the number grows.

    Attributes:
        failure: the exception from ``tell``, or None.
    """

    def __init__(self, context: SparkContext, group: str, total: int, tell: Callable[[int], object]) -> None:
        self.group = group
        self.failure: BaseException | None = None
        self._context = context
        self._total = total
        self._tell = tell
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="fastpq-progress", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; ``tell`` is not called afterwards."""
        self._is_done.set()
        self._thread.join()

    def _watch(self) -> None:
        last = -1
        while not self._is_done.wait(_POLL_SECONDS):
            count = self._completed()
            if count is None or count <= last:      # a stage run again counts from zero
                continue
            last = count
            try:
                self._tell(count)
            except BaseException as error:
                self.failure = error
                self._cancel()
                return

    def _completed(self) -> int | None:
        """The number of finished tasks; None if Spark's status tracker fails, and the job goes on."""
        try:
            tracker = self._context.statusTracker()
            infos = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self.group)]
            stages = [tracker.getStageInfo(stage) for info in infos if info is not None for stage in info.stageIds]
        except Exception:
            _log.warning("the progress of a job is unknown for now", exc_info=True)
            return None
        return min(self._total, sum(stage.numCompletedTasks for stage in stages if stage is not None))

    def _cancel(self) -> None:
        """Cancel the group until its job has ended: cancelling has no effect before Spark has submitted the job."""
        while True:
            try:
                self._context.cancelJobGroup(self.group)
            except Exception:
                _log.warning("a job was not cancelled yet", exc_info=True)
            if self._is_done.wait(_CANCEL_SECONDS):
                return
