"""Write to object stores from Spark. Tasks upload files under their final names, and the driver commits with a record.

Tasks do not complete their uploads, and their commit messages name them. The driver completes the uploads and stores the commit
record (fastpq.datasets.records). From then on, fastpq's readers see all new files and no removed ones.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql import types as st

from fastpq.spark.core import PendingSink, Remote, SchemaError, UnsupportedError, Upload, records, store_at
from fastpq.spark.keyservice import Encryption
from fastpq.spark.options import WriteOptions
from fastpq.spark.tables.listing import store_of
from fastpq.spark.write.folder_writer import CheckedWrite
from fastpq.spark.write.part_files import PartFile
from fastpq.spark.write.write_checks import check_overwrite
from fastpq.spark.write.write_task import WriteTask, present_task, write_task


@dataclass
class Uploaded(ds.WriterCommitMessage):
    """A task's commit message: its files' uploads, whose parts are all in the store."""

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
        """Write the rows for one task attempt. The numbers have the same meaning as in WriteTask."""
        return write_task(batches, StoreTask(self.schema, self.options, self.options.path, self.job, number, attempt))

    def commit(self, messages: Sequence[ds.WriterCommitMessage | None]) -> None:
        place, uploads = require_store(self.options.path), uploads_of(messages)
        records.commit_uploads(place, self.job, uploads, replaced(place, uploads, self.options, self.overwrite))

    def abort(self, messages: Sequence[ds.WriterCommitMessage | None]) -> None:
        give_up(require_store(self.options.path), self.job, messages)


class StoreTask(WriteTask):
    """One task attempt's files. They are uploaded to the store, but the uploads are not completed."""

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
    """Return a dataset's folder in an object store.

    Raises:
        UnsupportedError: the path is not in S3, Azure or Google's store.
        SchemaError: the path is a partition's folder. Readers of the whole dataset would not look for a record there.
    """
    place = store_of(path)
    if place is None:
        raise UnsupportedError("a folder in an object store is needed", path=path)
    if records.base_of(place.path) != place.path:
        raise SchemaError("the folder of a partition (name=value): write to the dataset's folder, with partitionBy", path=path)
    return place


def check_material(encryption: Encryption | None) -> None:
    """Refuse key material beside files. Readers that ignore the record would not see both appear at once.

    Raises:
        UnsupportedError: the encryption requests such key material.
    """
    if encryption is not None and not encryption.options.get("internal_key_material", True):
        raise UnsupportedError(
            "key material beside files in an object store, where the two do not appear at once: leave out "
            "parquet.encryption.key.material.store.internally=false"
        )


def data_files(place: Remote) -> dict[str, Mapping[str, Any]]:
    """Return a dataset's visible data files by path relative to its folder. Hidden files are left out."""
    files = records.snapshot(place.filesystem, place.path).visible(place.path)
    return {path: about for path, about in files.items() if is_data_file(path)}


def is_data_file(path: str) -> bool:
    """Whether no part of a relative path is hidden (``_x``, ``.x``). A partition (``_x=1``) is not hidden."""
    return not any(part.startswith(("_", ".")) and "=" not in part for part in path.split("/"))


def uploads_of(messages: Sequence[ds.WriterCommitMessage | None]) -> list[Upload]:
    """Return all tasks' uploads."""
    return [upload for message in messages if isinstance(message, Uploaded) for upload in message.uploads]


def replaced(
    place: Remote, uploads: Sequence[Upload], options: WriteOptions, overwrite: bool
) -> Callable[[Mapping[str, Any]], Iterable[str]]:
    """Return a function that chooses, from the present files, those that a write removes.

    Overwriting removes all files, or only those in the written partitions. Other writes remove none.
    """
    written_folders = {posixpath.dirname(records.relative(place.path, upload.path)) for upload in uploads}

    def choose(files: Mapping[str, Any]) -> Iterable[str]:
        for path in files:
            is_in_reach = not options.dynamic_overwrite or posixpath.dirname(path) in written_folders
            if overwrite and is_in_reach and is_data_file(path):
                yield path

    return choose


def give_up(place: Remote, job: str, messages: Sequence[ds.WriterCommitMessage | None]) -> None:
    """Abandon a job and abort its tasks' uploads."""
    records.abandon_job(place, job)
    for upload in uploads_of(messages):
        store_at(place.filesystem).abort(upload.path, upload.upload_id)
