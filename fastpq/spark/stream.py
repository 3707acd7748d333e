"""Streams: new files as a source, and a sink that takes each batch once.

The offset of a source is the list of the files that were read, so a query that restarts from its checkpoint reads each file once,
whenever and in whatever order files came. The sink's commit is a journal with the number of its batch.
"""

from __future__ import annotations

import base64
import hashlib
import os
import uuid
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql import types as st
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles

from fastpq.errors import SchemaError
from fastpq.spark import journal
from fastpq.spark.batches import ScanPartition
from fastpq.spark.footers import Footers
from fastpq.spark.listing import ListedFile, list_files, local_path
from fastpq.spark.options import ReadOptions, WriteOptions
from fastpq.spark.reader import plan_scan
from fastpq.spark.writer import Written, check_schema, files_of, moves_of, write_task


class StreamReader(ds.DataSourceStreamReader):
    """Reads the files that come into a dataset, each once.

    Args:
        schema: of the batches.
        options: of the read.

    Raises:
        UnsupportedError: a folder that is not on a (mounted) filesystem.
    """

    def __init__(self, schema: st.StructType, options: ReadOptions) -> None:
        for path in options.paths:
            local_path(path)
        self.schema, self.options = schema, options

    def initialOffset(self) -> dict[str, str]:  # noqa: N802 - Spark's names, here and below
        return _offset([])

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        limit = self.options.max_files_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxFiles(limit)

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802
        seen = set(_files(start))
        new = [file for file in self._listed() if file.path not in seen]
        if isinstance(limit, ReadMaxFiles):
            new.sort(key=lambda file: os.path.getmtime(file.path))
            new = new[: limit.max_files]
        return _offset([*seen, *(file.path for file in new)])

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> list[ds.InputPartition]:
        wanted = set(_files(end)) - set(_files(start))
        files = [file for file in self._listed() if file.path in wanted]
        if len(files) < len(wanted) and not self.options.ignore_missing_files:
            gone = min(wanted - {file.path for file in files})
            raise FileNotFoundError(f"{gone} is in the stream's offsets and is gone; set ignoreMissingFiles to pass over it")
        return list(plan_scan(files, self.schema, self.options, Footers(self.options.service)))

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        return partition.batches() if isinstance(partition, ScanPartition) else iter(())

    def _listed(self) -> list[ListedFile]:
        """The files that are in their places: one that is being committed has its last name only then."""
        try:
            files = list_files(self.options.paths, self.options.base_path)
        except FileNotFoundError:       # of a folder to which nothing has come yet
            return []
        return [file for file in files if f"{os.sep}{journal.TEMPORARY}{os.sep}" not in file.path]


class StreamWriter(ds.DataSourceStreamArrowWriter):
    """Writes the batches of a stream, each once however often it is tried.

    Args:
        schema: of the rows.
        options: of the write; stream_id tells this stream from others into the same folder.
        overwrite: each batch replaces what there is (output mode complete).

    Raises:
        SchemaError: no stream_id.
    """

    def __init__(self, schema: st.StructType, options: WriteOptions, overwrite: bool) -> None:
        check_schema(schema, options)
        if not options.stream_id:
            raise SchemaError("a stream needs the option checkpointLocation, or streamId, by which its batches are told apart")
        self.schema, self.options, self.overwrite = schema, options, overwrite
        self.root = local_path(options.path)
        self.job = uuid.uuid4().hex
        self.stream = hashlib.sha256(options.stream_id.encode()).hexdigest()[:16]

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        os.makedirs(journal.job_folder(self.root, self.job), exist_ok=True)     # no driver's code runs before a batch
        return write_task(iterator, self.schema, self.options, self.root, self.job)

    def commit(self, messages: Sequence[ds.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        os.makedirs(self.root, exist_ok=True)
        journal.recover(self.root)
        if batchId > journal.last_batch(self.root, self.stream):
            removed = files_of(self.root) if self.overwrite else []
            journal.commit(self.root, f"stream-{self.stream}-{batchId}", moves_of(messages), removed, (self.stream, batchId))
        self.abort(messages, batchId)       # what is left of the tasks: of a batch that was committed before, all
        journal.finish_commits(self.root, self.options.orphan_seconds)

    def abort(self, messages: Sequence[ds.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        for job in {message.job for message in messages if isinstance(message, Written)}:
            journal.abandon(self.root, job)


def _offset(paths: list[str]) -> dict[str, str]:
    """Paths as one text: Spark's offsets hold no lists."""
    return {"files": base64.b64encode(zlib.compress("\n".join(sorted(paths)).encode())).decode()}


def _files(offset: dict[str, Any]) -> list[str]:
    text = zlib.decompress(base64.b64decode(offset["files"])).decode()
    return text.split("\n") if text else []
