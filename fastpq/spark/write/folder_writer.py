"""The writer for local folders: tasks write files below a temporary folder, and the driver commits them with a journal."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql import types as st

from fastpq.spark.options import WriteOptions
from fastpq.spark.sent import SentToExecutors
from fastpq.spark.tables import journal
from fastpq.spark.tables.listing import list_files, local_path
from fastpq.spark.write.write_checks import check_overwrite, check_write
from fastpq.spark.write.write_task import WriteTask, Written, material_of, present_task, write_task


class CheckedWrite(SentToExecutors):
    """Base class for all writers. They write Arrow batches as dataset files, after a check of options and schema.

    Args:
        schema: the rows' Spark schema.
        options: write options.
        overwrite: whether to replace the present files.
    """

    def __init__(self, schema: st.StructType, options: WriteOptions, overwrite: bool) -> None:
        check_write(schema, options)
        self.schema, self.options, self.overwrite = schema, options, overwrite
        self.job = uuid.uuid4().hex


class Writer(CheckedWrite, ds.DataSourceArrowWriter):
    """Writes a DataFrame to a local folder."""

    def __init__(self, schema: st.StructType, options: WriteOptions, overwrite: bool) -> None:
        super().__init__(schema, options, overwrite)
        self.root = local_path(options.path)
        check_overwrite(options, overwrite, lambda: os.path.isdir(self.root) and bool(files_of(self.root)))
        journal.finish_commits(self.root, options.orphan_seconds)
        journal.make_job_folder(self.root, self.job)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> ds.WriterCommitMessage:
        return self.write_rows(iterator, *present_task())

    def write_rows(self, batches: Iterator[pa.RecordBatch], number: int, attempt: int) -> ds.WriterCommitMessage:
        """Write the rows for one task attempt. The numbers have the same meaning as in WriteTask."""
        return write_task(batches, WriteTask(self.schema, self.options, self.root, self.job, number, attempt))

    def commit(self, messages: Sequence[ds.WriterCommitMessage | None]) -> None:
        moves = moves_of(messages)
        with journal.one_overwrite(self.root) if self.overwrite else nullcontext():
            journal.commit(self.root, self.job, moves, self._replaced(moves))

    def abort(self, messages: Sequence[ds.WriterCommitMessage | None]) -> None:
        journal.abandon(self.root, self.job)

    def _replaced(self, moves: Mapping[str, str]) -> list[str]:
        if not self.overwrite:
            return []
        new_folders = {os.path.dirname(target) for target in moves.values()}
        return files_of(self.root, new_folders if self.options.dynamic_overwrite else None)


def files_of(root: str, folders: set[str] | None = None) -> list[str]:
    """Return paths of data files and their companions, relative to the dataset's folder.

    Args:
        root: the dataset's folder.
        folders: partition folders to look at. None takes all.
    """
    files = [os.path.relpath(file.path, root) for file in list_files([root])]
    if folders is not None:
        files = [file for file in files if os.path.dirname(file) in folders]
    return [name for file in files for name in (file, *companions_of(root, file))]


def moves_of(messages: Sequence[ds.WriterCommitMessage | None]) -> dict[str, str]:
    """Return the final paths of all tasks' files by temporary path."""
    moves: dict[str, str] = {}
    for message in messages:
        if isinstance(message, Written):
            moves.update(message.moves)
    return moves


def companions_of(root: str, path: str) -> list[str]:
    """Return the files that belong to a data file: key material and Hadoop's checksum. Like path, they are relative to root."""
    folder, name = os.path.split(path)
    names = (material_of(path), os.path.join(folder, f".{name}.crc"))
    return [name for name in names if os.path.exists(os.path.join(root, name))]
