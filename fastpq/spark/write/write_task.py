"""Executor side of a write: one task attempt writes its rows to a file in each partition folder."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource as ds
from pyspark.sql import types as st

from fastpq.spark.core import format_partitions, material_name
from fastpq.spark.options import WriteOptions
from fastpq.spark.tables import journal
from fastpq.spark.tables.spark_types import reader_schema, stored_schema
from fastpq.spark.worker_memory import keep_modules
from fastpq.spark.write.part_files import NewFiles, PartFile, stored_table


@dataclass
class Written(ds.WriterCommitMessage):
    """A task's commit message: its files' final paths by temporary path, relative to the dataset's folder."""

    job: str
    moves: dict[str, str]


def material_of(path: str) -> str:
    """Return the path of a file's key material file, which is beside it."""
    folder, name = os.path.split(path)
    return os.path.join(folder, material_name(name))


def present_task() -> tuple[int, int]:
    """Return the numbers of PySpark's present task and attempt."""
    context = TaskContext.get()
    return (context.partitionId(), context.taskAttemptId()) if context is not None else (0, 0)


def write_task(batches: Iterator[pa.RecordBatch], task: WriteTask) -> ds.WriterCommitMessage:
    """Write the rows for one task attempt. A failed attempt leaves files only in its own temporary folder."""
    try:
        for batch in batches:
            task.add(pa.Table.from_batches([batch]))
        message = task.finish()
    except BaseException:
        task.abort()
        raise
    keep_modules()
    return message


class WriteTask:
    """One task attempt: its open files by partition folder, and all its file paths.

    Args:
        schema: the rows' Spark schema.
        options: write options.
        root: the dataset's folder.
        job: the job's name.
        number: task number.
        attempt: attempt number, which is unique in the application.
    """

    def __init__(self, schema: st.StructType, options: WriteOptions, root: str, job: str, number: int, attempt: int) -> None:
        self.options, self.root, self.job = options, root, job
        self.number, self.attempt = number, attempt
        self.folder = os.path.join(journal.TEMPORARY, job, f"task-{number}-{attempt}")
        rest = st.StructType([part for part in schema.fields if part.name not in options.partition_by])
        self.files = NewFiles(rest, options, stored_schema(reader_schema(rest)))
        self.arrow = self.files.arrow
        self.open: dict[str, PartFile] = {}
        self.moves: dict[str, str] = {}
        self.count = 0

    def add(self, table: pa.Table) -> None:
        """Write rows to their partitions' files."""
        for folder, rows in self._parted(table):
            if folder not in self.open:
                if len(self.open) >= self.options.max_open_files:
                    largest = max(self.open, key=lambda name: self.open[name].nbytes)
                    self.open.pop(largest).close()
                self.open[folder] = self.begin(folder, self._name())
            self.open[folder].add(stored_table(rows, self.arrow))

    def finish(self) -> ds.WriterCommitMessage:
        """Close all files and return the task's commit message."""
        if not self.count and self.number == 0 and not self.options.partition_by:
            self.open[""] = self.begin("", self._name())        # an empty dataset has a schema too
            self.open[""].add(self.arrow.empty_table())
        while self.open:
            self.open.popitem()[1].close()
        return self.message()

    def message(self) -> ds.WriterCommitMessage:
        """Return the commit message for the closed files."""
        return Written(self.job, self.moves)

    def abort(self) -> None:
        """Give up the open files."""
        for file in self.open.values():
            file.writer.abort()

    def _name(self) -> str:
        self.count += 1
        return f"part-{self.number:05d}-{self.job}-{self.attempt}-{self.count - 1:03d}.parquet"

    def _parted(self, table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        names = list(self.options.partition_by)
        if not names:
            yield "", table
            return
        keys = table.select(names)
        rest = table.drop_columns(names)
        groups = keys.append_column("", pa.array(range(len(table)))).group_by(names).aggregate([("", "list")])
        for row in groups.to_pylist():
            values = {name: _in_path(row[name], keys.schema.field(name).type) for name in names}
            yield format_partitions(values).replace("/", os.sep), rest.take(pa.array(row["_list"], pa.int64()))

    def begin(self, folder: str, name: str) -> PartFile:
        """Open a file.

        Args:
            folder: partition folder, relative to the dataset's folder.
            name: file name.
        """
        place, target = os.path.join(self.folder, folder, name), os.path.join(folder, name)
        path = os.path.join(self.root, place)
        journal.make_folders(self.root, self.job, os.path.dirname(place))
        file = self.opened(path, path)
        self.moves[place] = target
        if os.path.exists(os.path.join(self.root, material := material_of(place))):
            self.moves[material] = material_of(target)
        return file

    def opened(self, where: Any, path: str) -> PartFile:
        """Return a file that is open for writing. The arguments are those of NewFiles.open."""
        return self.files.open(where, path)


def _in_path(value: Any, type_: pa.DataType) -> Any:
    """Return a partition value for a folder name. Empty text means null, as in Spark. Timestamps use the session's time zone."""
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None)
    if pa.types.is_float32(type_) and value is not None:
        return np.float32(value)
    return None if value == "" else value
