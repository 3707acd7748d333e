"""Ways of committing to a dataset in an object store, by fastpq's code for Spark without a JVM: the rows before, the work of a
child, the rows after."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar
from unittest import mock

import fsspec
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql import datasource as ds
from pyspark.sql import types as st

import fastpq
import fastpq.spark
from fastpq.datasets import records
from fastpq.io import multipart
from fastpq.io.object_store import store_at
from fastpq.spark.jobs.compaction import write_together
from fastpq.spark.jobs.replacing import stage_of
from fastpq.spark.options import WriteOptions, write_options
from fastpq.spark.streams.store_streams import StoreStreamWriter
from fastpq.spark.tables.listing import list_files
from fastpq.spark.write.store_writer import StoreTask, StoreWriter, require_store, uploads_of
from fastpq.spark.write.write_task import write_task
from tests.io.object_stores import Store

FAILED = 3                  # exit code of a child
LEAST_PART = 5 << 20        # bytes of a part that S3 takes
SCHEMA = st.StructType([st.StructField("id", st.LongType()), st.StructField("part", st.LongType())])
Messages = list[ds.WriterCommitMessage | None]


def use_server(store: Store, url: str) -> None:
    """Let this process find another server of a store."""
    os.environ.update(store.environment(url))
    fsspec.get_filesystem_class(store.scheme).clear_instance_cache()


def rows(*ids: int) -> pa.RecordBatch:
    schema = pa.schema({"id": "int64", "part": "int64"})
    return pa.RecordBatch.from_pydict({"id": ids, "part": [number % 2 for number in ids]}, schema)


def tasks(schema: st.StructType, options: WriteOptions, job: str, batches: Sequence[pa.RecordBatch]) -> Messages:
    """The messages of a task for each batch, as the driver gets them."""
    found = (
        write_task(iter([batch]), StoreTask(schema, options, options.path, job, number, number))
        for number, batch in enumerate(batches)
    )
    return [pickle.loads(pickle.dumps(message)) for message in found]


def read(path: str) -> list[int]:
    """Rows of a dataset, by the listing of the Spark source and by that of datasets.

    Raises:
        AssertionError: the two list other files.
    """
    place = require_store(path)
    place.filesystem.invalidate_cache()
    listed = [file.path for file in list_files([path])]
    scheme = path.partition("://")[0]
    assert listed == sorted(f"{scheme}://{file}" for file in fastpq.ParquetDataset(path).files)
    return sorted(number for file in listed for number in fastpq.read_table(file)["id"].to_pylist())


class StoreWay(ABC):
    """A way of committing.

    Args:
        path: the dataset's URL.

    Attributes:
        before, after: ids of the rows before and after the work.
        again: ids of the rows after the work and ``repeat``.
    """

    before: ClassVar[list[int]] = [1, 2]
    after: ClassVar[list[int]]
    again: ClassVar[list[int]]

    def __init__(self, path: str) -> None:
        self.path = path

    def set_up(self) -> None:
        """Make the dataset."""
        self.write(False, rows(1), rows(2))

    @abstractmethod
    def work(self) -> None:
        """What is killed at each of its requests."""

    def repeat(self) -> None:
        """What follows a death."""
        self.work()

    def write(self, overwrite: bool, *batches: pa.RecordBatch, **options: str) -> None:
        writer = StoreWriter(SCHEMA, write_options({"path": self.path, **options}), overwrite)
        writer.commit(tasks(SCHEMA, writer.options, writer.job, batches))


class Append(StoreWay):
    after = [1, 2, 3, 4, 5]
    again = [1, 2, 3, 3, 4, 4, 5, 5]

    def work(self) -> None:
        self.write(False, rows(3, 4), rows(5))


class Overwrite(StoreWay):
    after = again = [3, 4, 5]

    def work(self) -> None:
        self.write(True, rows(3, 4), rows(5))


class OverwritePartitions(StoreWay):
    """The partition of odd ids is replaced."""

    after = again = [2, 3, 5]

    def set_up(self) -> None:
        self.write(False, rows(1), rows(2), partitionBy="part")

    def work(self) -> None:
        self.write(True, rows(3), rows(5), partitionBy="part", partitionOverwriteMode="dynamic")


class AppendLarge(StoreWay):
    """A file of three parts and one of one part."""

    new: ClassVar[list[int]] = list(range(10, 1_500_010))
    after = [1, 2, *new]
    again = sorted([1, 2, *new, *new])

    def work(self) -> None:
        multipart.PART_BYTES = LEAST_PART
        options = {"compression": "none", "useDictionary": "false", "rowGroupSize": "500000"}
        self.write(False, pa.concat_batches([rows(*self.new)]), **options)


class Stream(StoreWay):
    """The second batch of a stream; a driver started again commits it again."""

    after = again = [1, 2, 3, 4, 5]

    def set_up(self) -> None:
        self.commit_batch(0, rows(1), rows(2))

    def work(self) -> None:
        self.commit_batch(1, rows(3, 4), rows(5))

    def commit_batch(self, number: int, *batches: pa.RecordBatch) -> None:
        writer = StoreStreamWriter(SCHEMA, write_options({"path": self.path, "checkpointLocation": "here"}), False)
        writer.commit(tasks(SCHEMA, writer.options, writer.job, batches), number)


class Task(StoreWay):
    """An attempt of a task in a worker, which changes nothing; a death is followed by another attempt and the commit."""

    after = before = [1, 2]
    again = [1, 2, 3, 4, 5]

    def work(self) -> None:
        tasks(SCHEMA, write_options({"path": self.path, "partitionBy": "part"}), "job", [rows(3, 4, 5)])

    def repeat(self) -> None:
        self.write(False, rows(3, 4, 5))


class Compact(StoreWay):
    """A job that merges two files: as compact_dataset, whose tasks are done here one after the other."""

    after = again = before = [1, 2]

    def work(self) -> None:
        stage = stage_of(self.path, "compact", None)
        files = [file.path for file in list_files([self.path])]
        replacements = stage.replacements([files] if len(files) > 1 else [])

        def merge(sources: list[str], target: Any, place: str, name: str) -> int:
            return write_together(sources, target, None, None, {})

        made = [stage.make(one, merge) for one in replacements]
        rows = [Row(path=stage.path_of(one.sources[0]), made=done.message) for one, done in zip(replacements, made, strict=True)]
        stage.commit(replacements, rows)
        assert len(list_files([self.path])) == 1


class Clean(StoreWay):
    """What a dead driver left is cleaned up: uploads of a task, objects of a commit without a record, removed files."""

    after = again = before = [3]

    def set_up(self) -> None:
        with mock.patch.object(records, "finish", return_value=[]):      # a driver that dies behind its record
            self.write(False, rows(1), rows(2))
            self.write(True, rows(3))
        writer = StoreWriter(SCHEMA, write_options({"path": self.path}), False)
        messages = tasks(SCHEMA, writer.options, writer.job, [rows(7), rows(8)])
        died = mock.Mock(side_effect=KeyboardInterrupt)
        with mock.patch.object(records, "_put_record", died), suppress(KeyboardInterrupt):
            writer.commit(messages[:1])
        died.assert_called_once()

    def work(self) -> None:
        fastpq.spark.clean(self.path)


class Torn(Append):
    """Faulty, to see that the trials notice: objects are completed before the list that hides them until the record."""

    def write(self, overwrite: bool, *batches: pa.RecordBatch, **options: str) -> None:
        writer = StoreWriter(SCHEMA, write_options({"path": self.path, **options}), overwrite)
        messages = tasks(SCHEMA, writer.options, writer.job, batches)
        for upload in uploads_of(messages):
            store_at(require_store(self.path).filesystem).complete(upload)
        writer.commit(messages)


WAYS: dict[str, type[StoreWay]] = {
    way.__name__: way for way in (Append, Overwrite, OverwritePartitions, AppendLarge, Task, Stream, Compact, Clean)
}
FAULTY: dict[str, type[StoreWay]] = {"Torn": Torn}


def serve(store: Store, bucket: str) -> None:
    """Fork a child for each line of standard input: name of a way, URL of the dataset, URL of the server for the child.

    Prints the child's process id, and when the child has ended its status. All modules are loaded before.
    """
    use_server(store, store.url)
    warm = Append(f"{store.scheme}://{bucket}/{uuid.uuid4().hex}")
    warm.set_up()
    for line in sys.stdin:
        name, path, server = line.split()
        child = os.fork()
        if not child:
            work_of_child(store, name, path, server)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def work_of_child(store: Store, name: str, path: str, url: str) -> None:
    """Do the work of a way, and end this process."""
    try:
        use_server(store, url)
        {**WAYS, **FAULTY}[name](path).work()
    except BaseException:
        traceback.print_exc()
        os._exit(FAILED)
    os._exit(0)


if __name__ == "__main__":
    serve(Store(*sys.argv[1:3]), sys.argv[3])
