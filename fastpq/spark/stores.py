"""Writing to object stores from Spark: tasks upload files under final names and complete none, the driver commits by a record.

A commit message carries names of uploads. The driver completes the uploads and puts the record of the commit
(fastpq.datasets.records), from which on fastpq's readers see the new files, all of them, and no removed ones.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql import types as st

from fastpq.datasets import records
from fastpq.errors import SchemaError, UnsupportedError
from fastpq.io.location import Remote
from fastpq.io.multipart import PendingSink
from fastpq.io.object_store import Upload, store_at
from fastpq.spark.keyservice import Encryption
from fastpq.spark.listing import store_of
from fastpq.spark.options import WriteOptions
from fastpq.spark.stream import CheckedStream
from fastpq.spark.writer import CheckedWrite, PartFile, WriteTask, check_overwrite, present_task, write_task


@dataclass
class Uploaded(ds.WriterCommitMessage):
    """Commit message of a task: the uploads of its files, all parts of which are in the store."""

    uploads: tuple[Upload, ...]


class StoreWriter(CheckedWrite, ds.DataSourceArrowWriter):
    """Writes a DataFrame to an object store."""

    def __init__(self, schema: st.StructType, options: WriteOptions, overwrite: bool) -> None:
        super().__init__(schema, options, overwrite)
        check_material(options.encryption)
        place = require_store(options.path)
        check_overwrite(options, overwrite, lambda: bool(data_files(place)))
        records.clean_up(place, options.orphan_seconds)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> ds.WriterCommitMessage:
        return self.write_rows(iterator, *present_task())

    def write_rows(self, batches: Iterator[pa.RecordBatch], number: int, attempt: int) -> ds.WriterCommitMessage:
        """Write the rows of an attempt of a task; numbers as in WriteTask."""
        return write_task(batches, StoreTask(self.schema, self.options, self.options.path, self.job, number, attempt))

    def commit(self, messages: Sequence[ds.WriterCommitMessage | None]) -> None:
        place, uploads = require_store(self.options.path), uploads_of(messages)
        records.commit_uploads(place, self.job, uploads, replaced(place, uploads, self.options, self.overwrite))

    def abort(self, messages: Sequence[ds.WriterCommitMessage | None]) -> None:
        give_up(require_store(self.options.path), self.job, messages)


class StoreStreamWriter(CheckedStream, ds.DataSourceStreamArrowWriter):
    """Writes a stream to an object store: the record of a commit has the batch's number."""

    def __init__(self, schema: st.StructType, options: WriteOptions, overwrite: bool) -> None:
        super().__init__(schema, options, overwrite)
        check_material(options.encryption)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> ds.WriterCommitMessage:
        return write_task(iterator, StoreTask(self.schema, self.options, self.options.path, self.job, *present_task()))

    def commit(self, messages: Sequence[ds.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        place, uploads = require_store(self.options.path), uploads_of(messages)
        removed = replaced(place, uploads, self.options, self.overwrite)
        records.commit_uploads(place, self._job(batchId), uploads, removed, (self.stream, batchId))
        records.clean_up(place, self.options.orphan_seconds)

    def abort(self, messages: Sequence[ds.WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        give_up(require_store(self.options.path), self._job(batchId), messages)

    def _job(self, batch: int) -> str:
        return f"{self.stream}-{batch}-{self.job}"


class StoreTask(WriteTask):
    """Files of one attempt of a task, uploaded to the store and not completed."""

    def __init__(self, schema: st.StructType, options: WriteOptions, root: str, job: str, number: int, attempt: int) -> None:
        super().__init__(schema, options, root, job, number, attempt)
        self.place = require_store(root)
        self.sinks: list[PendingSink] = []

    def begin(self, folder: str, name: str) -> PartFile:
        path = posixpath.join(self.place.path, folder, name)
        sink = PendingSink(Remote(self.place.filesystem, path, path))
        self.sinks.append(sink)
        return self.opened(sink, path)

    def message(self) -> ds.WriterCommitMessage:
        return Uploaded(tuple(sink.upload for sink in self.sinks if sink.upload is not None))

    def abort(self) -> None:
        super().abort()
        for sink in self.sinks:
            sink.abort()
            if sink.upload is not None:
                store_at(self.place.filesystem).abort(sink.upload.path, sink.upload.upload_id)


def require_store(path: str) -> Remote:
    """The folder of a dataset in an object store.

    Raises:
        UnsupportedError: the path is none of S3, Azure or Google's store.
        SchemaError: the path is one of a partition, where readers of the whole dataset would look for no record.
    """
    found = store_of(path)
    if found is None:
        raise UnsupportedError("a folder in an object store is needed", path=path)
    if records.base_of(found.path) != found.path:
        raise SchemaError("the folder of a partition (name=value): write to the dataset's folder, with partitionBy", path=path)
    return found


def check_material(encryption: Encryption | None) -> None:
    """Refuse key material beside files: the two would not appear at once for readers without the record.

    Raises:
        UnsupportedError: the encryption asks for such key material.
    """
    if encryption is not None and not encryption.options.get("internal_key_material", True):
        raise UnsupportedError(
            "key material beside files in an object store, where the two do not appear at once: leave out "
            "parquet.encryption.key.material.store.internally=false"
        )


def data_files(place: Remote) -> dict[str, Mapping[str, Any]]:
    """Files of a dataset that count, by path relative to its folder; without hidden files."""
    files = records.snapshot(place.filesystem, place.path).visible(place.path)
    return {path: about for path, about in files.items() if is_data_file(path)}


def is_data_file(path: str) -> bool:
    """Whether a relative path has no hidden part (``_x``, ``.x``); partitions may begin so."""
    return not any(part.startswith(("_", ".")) and "=" not in part for part in path.split("/"))


def uploads_of(messages: Sequence[ds.WriterCommitMessage | None]) -> list[Upload]:
    """The uploads of all tasks."""
    return [upload for message in messages if isinstance(message, Uploaded) for upload in message.uploads]


def replaced(
    place: Remote, uploads: Sequence[Upload], options: WriteOptions, overwrite: bool
) -> Callable[[Mapping[str, Any]], Iterable[str]]:
    """A function from the present files to the files removed by a write: by overwriting all, or the written partitions."""
    written = {posixpath.dirname(records.relative(place.path, upload.path)) for upload in uploads}

    def choose(files: Mapping[str, Any]) -> Iterable[str]:
        for path in files:
            is_in_reach = not options.dynamic_overwrite or posixpath.dirname(path) in written
            if overwrite and is_in_reach and is_data_file(path):
                yield path

    return choose


def give_up(place: Remote, job: str, messages: Sequence[ds.WriterCommitMessage | None]) -> None:
    """Abandon a job and abort the uploads of its tasks."""
    records.abandon_job(place, job)
    for upload in uploads_of(messages):
        store_at(place.filesystem).abort(upload.path, upload.upload_id)
