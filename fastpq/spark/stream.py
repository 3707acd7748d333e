"""Streams: a source of the files arriving in a folder, and a sink writing each batch exactly once.

The offset of the source names the files read so far, whose paths are in a log (fastpq.spark.seen). A query restarted from its
checkpoint therefore reads each file once, in any order of arrival. The sink's commit is a journal with the number of the batch.
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
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

from fastpq.errors import SchemaError
from fastpq.io.location import Remote
from fastpq.spark import journal
from fastpq.spark.batches import ScanPartition
from fastpq.spark.footers import Footers
from fastpq.spark.listing import ListedFile, folder_of_stream, is_there, list_files, local_path, located
from fastpq.spark.options import ReadOptions, WriteOptions
from fastpq.spark.reader import plan_scan
from fastpq.spark.seen import SeenFiles
from fastpq.spark.writer import CheckedWrite, WriteTask, Written, files_of, moves_of, present_task, write_task

LISTINGS = 10       # attempts to list folders while files are removed from them


class StreamReader(ds.DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the files arriving in a dataset, each file once; with Trigger.AvailableNow those that are there at its start.

    Args:
        schema: Spark schema of the batches.
        options: options of the read.

    Raises:
        UnsupportedError: a log outside local and mounted filesystems.
        SchemaError: a stream of remote files without a folder for its log.
    """

    def __init__(self, schema: st.StructType, options: ReadOptions) -> None:
        self.schema, self.options = schema, options
        place, locations = options.stream_log, [located(path) for path in options.paths]
        if place is None and any(isinstance(location, Remote) for location in locations):
            raise SchemaError(
                "a stream of remote files keeps the log of its files in a local or mounted folder: give the option "
                "checkpointLocation to readStream too"
            )
        self.seen = SeenFiles(folder_of_stream(local_path(options.paths[0])) if place is None else local_path(place))
        self._available: frozenset[str] | None = None       # paths of a query with Trigger.AvailableNow; None for all to come

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names, here and below
        return self.seen.empty()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        limit = self.options.max_files_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxFiles(limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._available = frozenset(file.path for file in self._listed())

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        seen = self.seen.paths(start)
        new = [file for file in self._listed() if file.path not in seen]
        if self._available is not None:
            new = [file for file in new if file.path in self._available]
        if isinstance(limit, ReadMaxFiles):
            new = sorted(new, key=lambda file: file.last_change)[: limit.max_files]
        return self.seen.added(start, [file.path for file in new]) if new else start

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[ds.InputPartition]:
        wanted = self.seen.between(start, end)
        files = [file for file in self._listed() if file.path in wanted]
        if len(files) < len(wanted) and not self.options.ignore_missing_files:
            gone = min(wanted - {file.path for file in files})
            raise FileNotFoundError(f"{gone} is in the stream's offsets and is gone; set ignoreMissingFiles to pass over it")
        return list(plan_scan(files, self.schema, self.options, Footers(self.options.service)))

    def commit(self, end: dict[str, Any]) -> None:
        self.seen.forget(end)

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        return partition.batches() if isinstance(partition, ScanPartition) else iter(())

    def _listed(self) -> list[ListedFile]:
        """Files in their final places: a file of an unfinished commit gets its final name later, and is listed then.

        Raises:
            FileNotFoundError: again and again a file went away while the folders were listed.
        """
        for _ in range(LISTINGS):
            paths = [path for path in self.options.paths if is_there(path)]     # a folder may come with its first file
            try:
                files = list_files(paths, self.options.base_path) if paths else []
                break
            except FileNotFoundError:
                continue
        else:
            raise FileNotFoundError("files go away while the folders of the stream are listed")
        return [file for file in files if f"{os.sep}{journal.TEMPORARY}{os.sep}" not in file.path]


class CheckedStream(CheckedWrite):
    """A checked write of the batches of a stream, each batch once despite retries; base of the writers of streams.

    Args:
        schema: Spark schema of the rows.
        options: options of the write; stream_id distinguishes the streams writing to one folder.
        overwrite: each batch replaces all files of the folder (output mode complete).

    Raises:
        SchemaError: no stream_id.
    """

    def __init__(self, schema: st.StructType, options: WriteOptions, overwrite: bool) -> None:
        super().__init__(schema, options, overwrite)
        if not options.stream_id:
            raise SchemaError("a stream needs the option checkpointLocation, or streamId, by which its batches are told apart")
        self.stream = hashlib.sha256(options.stream_id.encode()).hexdigest()[:16]      # in records of its batches


class StreamWriter(CheckedStream, ds.DataSourceStreamArrowWriter):
    """Writes a stream to a local folder: the journal of a commit has the batch's number."""

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
                removed = files_of(self.root) if self.overwrite else []
                journal.commit(self.root, self._commit_job(batchId), moves_of(messages), removed, (self.stream, batchId))
        self.abort(messages, batchId)       # leftovers of the tasks; all their files, if the batch was committed before
        journal.finish_commits(self.root, self.options.orphan_seconds)

    def abort(self, messages: Sequence[ds.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        if journal.has_begun(self.root, self._commit_job(batchId)):     # it moves files of the jobs below
            return
        for job in {message.job for message in messages if isinstance(message, Written)}:
            journal.abandon(self.root, job)

    def _commit_job(self, batch: int) -> str:
        return f"stream-{self.stream}-{batch}"
