"""Streams: a source that reads the files arriving in a folder, and a sink that writes each batch exactly once.

The source's offset names the files that were read so far. Their paths are in a log (``stream_log``). A query that restarts from
its checkpoint therefore reads each file once, whatever order the files arrive in. The sink commits with a journal that has the
batch number.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql import types as st

from fastpq.spark.core import Remote, SchemaError
from fastpq.spark.options import ReadOptions, WriteOptions
from fastpq.spark.scan.dataset_footers import Footers
from fastpq.spark.scan.file_scan import ScanPartition
from fastpq.spark.scan.reader import plan_scan
from fastpq.spark.streams.stream_log import StreamLog
from fastpq.spark.tables import journal
from fastpq.spark.tables.listing import ListedFile, folder_of_stream, is_there, list_files, local_path, located
from fastpq.spark.versions import (
    DataSourceStreamArrowWriter,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
    require_streams,
)
from fastpq.spark.write.folder_writer import CheckedWrite, files_of, moves_of
from fastpq.spark.write.write_task import WriteTask, Written, present_task, write_task

LISTINGS = 10       # attempts to list folders from which files are being removed


class StreamReader(ds.DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads each file that arrives in a dataset once. With Trigger.AvailableNow, reads only the files present at the start.

    Args:
        schema: the batches' Spark schema.
        options: read options.

    Raises:
        UnsupportedError: the log would be outside local and mounted filesystems.
        SchemaError: a stream reads remote files, but has no folder for its log.
    """

    def __init__(self, schema: st.StructType, options: ReadOptions) -> None:
        require_streams()
        self.schema, self.options = schema, options
        place, locations = options.stream_log, [located(path) for path in options.paths]
        if place is None and any(isinstance(location, Remote) for location in locations):
            raise SchemaError(
                "a stream of remote files keeps the log of its files in a local or mounted folder: give the option "
                "checkpointLocation to readStream too"
            )
        self.log = StreamLog(folder_of_stream(local_path(options.paths[0])) if place is None else local_path(place))
        self._available: frozenset[str] | None = None       # paths to read with Trigger.AvailableNow. None means all

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names, here and below
        return self.log.empty()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        limit = self.options.max_files_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxFiles(limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._available = frozenset(file.path for file in self._listed())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        old_paths = self.log.paths(start)
        new = [file for file in self._listed() if file.path not in old_paths]
        if self._available is not None:
            new = [file for file in new if file.path in self._available]
        if isinstance(limit, ReadMaxFiles):
            new = sorted(new, key=lambda file: file.last_change)[: limit.max_files]
        return self.log.added(start, [file.path for file in new]) if new else start

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[ds.InputPartition]:
        batch_paths = self.log.between(start, end)
        files = [file for file in self._listed() if file.path in batch_paths]
        if len(files) < len(batch_paths) and not self.options.ignore_missing_files:
            path = min(batch_paths - {file.path for file in files})
            raise FileNotFoundError(f"{path} is in the stream's offsets and is gone; set ignoreMissingFiles to pass over it")
        return list(plan_scan(files, self.schema, self.options, Footers(self.options.service)))

    def commit(self, end: dict[str, Any]) -> None:
        self.log.forget(end)

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        return partition.batches() if isinstance(partition, ScanPartition) else iter(())

    def _listed(self) -> list[ListedFile]:
        """Return the files that are in their final places. A file in an unfinished commit is listed later, under its final name.

        Raises:
            FileNotFoundError: in each attempt, a file disappeared while the folders were listed.
        """
        for _ in range(LISTINGS):
            paths = [path for path in self.options.paths if is_there(path)]     # a folder may appear only with its first file
            try:
                files = list_files(paths, self.options.base_path) if paths else []
                break
            except FileNotFoundError:
                continue
        else:
            raise FileNotFoundError("files go away while the folders of the stream are listed")
        return [file for file in files if f"{os.sep}{journal.TEMPORARY}{os.sep}" not in file.path]


class CheckedStream(CheckedWrite):
    """A checked write of a stream's batches. Each batch is written once despite retries. Base class for stream writers.

    Args:
        schema: the rows' Spark schema.
        options: write options. The stream_id distinguishes streams that write to the same folder.
        overwrite: each batch replaces all files in the folder (output mode complete).

    Raises:
        SchemaError: there is no stream_id.
    """

    def __init__(self, schema: st.StructType, options: WriteOptions, overwrite: bool) -> None:
        require_streams()
        super().__init__(schema, options, overwrite)
        if not options.stream_id:
            raise SchemaError("a stream needs the option checkpointLocation, or streamId, by which its batches are told apart")
        self.stream = hashlib.sha256(options.stream_id.encode()).hexdigest()[:16]      # names the stream in batch records


class StreamWriter(CheckedStream, DataSourceStreamArrowWriter):
    """Writes a stream to a local folder. Each commit's journal has the batch number."""

    def __init__(self, schema: st.StructType, options: WriteOptions, overwrite: bool) -> None:
        super().__init__(schema, options, overwrite)
        self.root = local_path(options.path)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> ds.WriterCommitMessage:
        journal.make_job_folder(self.root, self.job)     # Spark runs no driver code before a batch
        return write_task(iterator, WriteTask(self.schema, self.options, self.root, self.job, *present_task()))

    def commit(self, messages: Sequence[ds.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        os.makedirs(self.root, exist_ok=True)
        journal.recover(self.root)
        if batchId > journal.last_batch(self.root, self.stream):
            with journal.one_overwrite(self.root) if self.overwrite else nullcontext():
                old_files = files_of(self.root) if self.overwrite else []
                journal.commit(self.root, self._commit_job(batchId), moves_of(messages), old_files, (self.stream, batchId))
        self.abort(messages, batchId)       # removes what the tasks left: all their files, if the batch was committed before
        journal.finish_commits(self.root, self.options.orphan_seconds)

    def abort(self, messages: Sequence[ds.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        if journal.has_begun(self.root, self._commit_job(batchId)):     # this commit still moves files from the jobs below
            return
        for job in {message.job for message in messages if isinstance(message, Written)}:
            journal.abandon(self.root, job)

    def _commit_job(self, batch: int) -> str:
        return f"stream-{self.stream}-{batch}"
