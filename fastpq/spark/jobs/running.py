"""Run Spark jobs that have one task for each file. The driver shows progress and gets a report about all files."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import types as st

from fastpq.spark.core import ParquetError
from fastpq.spark.sent import SentToExecutors
from fastpq.spark.tables.listing import ListedFile, list_files
from fastpq.spark.tables.spark_types import reader_schema
from fastpq.spark.versions import map_in_arrow

Task = TypeVar("Task")
Progress: TypeAlias = Callable[[int, int], object]      # called as progress(done, total), in files

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
_POLL_SECONDS = 0.5         # between two progress reports
_CANCEL_SECONDS = 0.1       # between two attempts to cancel a job
_log = logging.getLogger("fastpq.spark")


class JobError(ParquetError):
    """A job over a dataset's files failed for some files, and left the dataset unchanged.

    Attributes:
        report: DataFrame that has a row for each file.
    """

    report: DataFrame | None = None


@dataclass(frozen=True)
class TaskOutcome:
    """A task's result: status and row count for its files, and a message to the driver.

    Attributes:
        status: ``ok`` or ``skipped``.
        rows: row count. None if unknown.
        message: text for the driver that the report does not show, such as a new file's path or a file's description.
    """

    status: str = OK
    rows: int | None = None
    message: str | None = None


@dataclass(frozen=True)
class Work(SentToExecutors, Generic[Task]):
    """What executors do in a job, for each item.

    Attributes:
        description: text that is shown with progress and in Spark's UI.
        name_of: returns an item's path and bytes, for the report.
        action: does one task's work. A ParquetError or OSError becomes the error in the report's row.
    """

    description: str
    name_of: Callable[[Task], tuple[str, int]]
    action: Callable[[Task], TaskOutcome]


def run_tasks(spark: SparkSession, items: Sequence[Task], work: Work[Task], progress: Progress | None) -> list[Row]:
    """Run one task for each item. Return REPORT rows. An extra column, ``made``, has the message of TaskOutcome.

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

    results = map_in_arrow(spark.range(0, len(items), 1, len(items)), tasks, _RESULT)
    with _watched(spark, work.description, len(items), progress):
        return results.collect()


def report_of(spark: SparkSession, rows: Sequence[Row]) -> DataFrame:
    """Return a finished job's report as a DataFrame, made from the rows that run_tasks returned."""
    names = REPORT.names
    return spark.createDataFrame([tuple(row[name] for name in names) for row in rows], REPORT)


def report_on_files(
    spark: SparkSession, path: str, description: str, action: Callable[[str], TaskOutcome], progress: Progress | None
) -> DataFrame:
    """Run one task for each file of a dataset, and return the report.

    Args:
        spark, description, progress: as for ``run_tasks`` and ``Work``.
        path: a file, a folder or a glob.
        action: does the work for one path.
    """
    work: Work[ListedFile] = Work(description, lambda file: (file.path, file.size), lambda file: action(file.path))
    return report_of(spark, run_tasks(spark, list_files([path]), work, progress))


def _reported(item: Task, work: Work[Task]) -> dict[str, Any]:
    start = time.perf_counter()
    path, size = work.name_of(item)
    outcome, error = TaskOutcome(ERROR), None
    try:
        outcome = work.action(item)
    except (ParquetError, OSError) as problem:
        error = f"{type(problem).__name__}: {problem}"
    seconds = time.perf_counter() - start
    return {
        "path": path, "status": outcome.status, "rows": outcome.rows, "bytes": size, "seconds": seconds, "error": error,
        "made": outcome.message,
    }


@contextmanager
def _watched(spark: SparkSession, description: str, total: int, progress: Progress | None) -> Iterator[None]:
    """Report the number of finished tasks while the body runs. With Spark Connect, only the end is reported."""

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
    """A thread that reports how many tasks in a job group are finished. An exception from ``tell`` cancels the group.

    Args:
        context: the SparkContext.
        group: job group id.
        total: task count.
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
        """End the thread. ``tell`` is not called afterwards."""
        self._is_done.set()
        self._thread.join()

    def _watch(self) -> None:
        last = -1
        while not self._is_done.wait(_POLL_SECONDS):
            count = self._completed()
            if count is None or count <= last:      # a stage that runs again counts from zero
                continue
            last = count
            try:
                self._tell(count)
            except BaseException as error:
                self.failure = error
                self._cancel()
                return

    def _completed(self) -> int | None:
        """Return the number of finished tasks. None if Spark's status tracker fails, because the job goes on anyway."""
        try:
            tracker = self._context.statusTracker()
            infos = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self.group)]
            stages = [tracker.getStageInfo(stage) for info in infos if info is not None for stage in info.stageIds]
        except Exception:
            _log.warning("the progress of a job is unknown for now", exc_info=True)
            return None
        return min(self._total, sum(stage.numCompletedTasks for stage in stages if stage is not None))

    def _cancel(self) -> None:
        """Cancel the group repeatedly until its job has ended, since this has no effect before Spark has submitted the job."""
        while True:
            try:
                self._context.cancelJobGroup(self.group)
            except Exception:
                _log.warning("a job was not cancelled yet", exc_info=True)
            if self._is_done.wait(_CANCEL_SECONDS):
                return
