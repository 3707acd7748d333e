"""Writer of the data source: tasks write files below a temporary folder, the driver commits them with a journal."""

from __future__ import annotations

import datetime
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource as ds
from pyspark.sql import types as st

from fastpq.api.writer import ParquetWriter
from fastpq.arrow.importing import import_table
from fastpq.datasets.hive import format_partitions
from fastpq.encryption.encryptor import closed_columns
from fastpq.encryption.keys.store import PREFIX as MATERIAL_PREFIX
from fastpq.encryption.keys.store import SUFFIX as MATERIAL_SUFFIX
from fastpq.encryption.properties import FileEncryptionProperties
from fastpq.errors import SchemaError, UnsupportedError
from fastpq.rewriting.redaction import SPARK_ROW_METADATA, redacted_value
from fastpq.spark import journal
from fastpq.spark.listing import list_files, local_path
from fastpq.spark.options import WriteOptions
from fastpq.spark.types import reader_schema, stored_column, stored_schema
from fastpq.spark.worker import keep_modules

DEFAULT_ROW_GROUP_ROWS = 1 << 20    # most rows of a row group
_PARTITION_TYPES = (
    st.BooleanType, st.IntegralType, st.FractionalType, st.StringType, st.DateType, st.TimestampType, st.TimestampNTZType,
)


@dataclass
class Written(ds.WriterCommitMessage):
    """Commit message of a task: temporary and final paths of its files, relative to the dataset's folder."""

    job: str
    moves: dict[str, str]


class CheckedWrite:
    """A write that its options and its schema allow, of Arrow batches as files of a dataset; base of all writers.

    Args:
        schema: Spark schema of the rows.
        options: options of the write.
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
        """Write the rows of an attempt of a task; numbers as in WriteTask."""
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
        written = {os.path.dirname(target) for target in moves.values()}
        return files_of(self.root, written if self.options.dynamic_overwrite else None)


def check_overwrite(options: WriteOptions, overwrite: bool, has_files: Callable[[], bool]) -> None:
    """Refuse to overwrite a partitioned dataset unless the options say which partitions.

    Args:
        options: options of the write.
        overwrite: whether present files are replaced.
        has_files: tells whether there are any.

    Raises:
        SchemaError: the options do not say so.
    """
    if overwrite and options.partition_by and options.dynamic_overwrite is None and has_files():
        raise SchemaError(
            "overwriting a partitioned dataset: the option partitionOverwriteMode is static, to replace all partitions, or "
            "dynamic, to replace the partitions of the new rows (a Python source does not see the session's setting)"
        )


def files_of(root: str, folders: set[str] | None = None) -> list[str]:
    """Data files and their companions, relative to the dataset's folder; of the given partition folders only, unless None."""
    files = [os.path.relpath(file.path, root) for file in list_files([root])]
    if folders is not None:
        files = [file for file in files if os.path.dirname(file) in folders]
    return [name for file in files for name in (file, *companions_of(root, file))]


def moves_of(messages: Sequence[ds.WriterCommitMessage | None]) -> dict[str, str]:
    """Temporary and final paths of the files of all tasks."""
    moves: dict[str, str] = {}
    for message in messages:
        if isinstance(message, Written):
            moves.update(message.moves)
    return moves


def material_of(path: str) -> str:
    """The path of the key material file beside a file."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f"{MATERIAL_PREFIX}{name}{MATERIAL_SUFFIX}")


def companions_of(root: str, path: str) -> list[str]:
    """Files belonging to one data file: its key material and Hadoop's checksum of it; relative to root, as path is."""
    folder, name = os.path.split(path)
    names = (material_of(path), os.path.join(folder, f".{name}.crc"))
    return [name for name in names if os.path.exists(os.path.join(root, name))]


def check_write(schema: st.StructType, options: WriteOptions) -> None:
    """Refuse a write unfit for its schema or without its key service, before a task starts.

    Raises:
        SchemaError: partition columns or columns to encrypt that the rows have not, or no column besides partition columns.
        UnsupportedError: types not written by fastpq from Spark.
        KeyAccessError: a worker on the driver's machine cannot make the client of the key service.
    """
    check_schema(schema, options)
    _check_encrypted(schema, options)
    if options.service is not None:
        options.service.check()


def _check_encrypted(schema: st.StructType, options: WriteOptions) -> None:
    """Refuse keys of columns that the files will not have."""
    if options.encryption is None:
        return
    names = [part.name for part in schema.fields]
    for path in (path for _, paths in options.encryption.column_keys for path in paths):
        owner = next((name for name in names if path == name or path.startswith(f"{name}.")), None)
        if owner is None:
            raise SchemaError(f"parquet.encryption.column.keys names {path!r}; the columns are {', '.join(names)}")
        if owner in options.partition_by:
            raise SchemaError(
                f"parquet.encryption.column.keys names {path!r}, a column of partitionBy: its values are in the names of "
                "folders, which nothing encrypts. Leave the column out of partitionBy, or out of the keys"
            )


def check_schema(schema: st.StructType, options: WriteOptions) -> None:
    """Refuse schemas unfit for writing; raises the SchemaError and the UnsupportedError of check_write."""
    names = [part.name for part in schema.fields]
    if unknown := [name for name in options.partition_by if name not in names]:
        raise SchemaError(f"partitionBy names columns that the rows have not: {', '.join(unknown)}")
    if names and len(options.partition_by) == len(names):
        raise SchemaError("partitionBy names all columns: files need one of their own")
    for name in options.partition_by:
        if not isinstance(schema[name].dataType, _PARTITION_TYPES):
            raise UnsupportedError(f"folders for values of {schema[name].dataType.simpleString()}", column=name)
    for part in schema.fields:
        if (found := _unwritable(part.dataType)) is not None:
            raise UnsupportedError(f"writing {found.simpleString()} from Spark{_mend(found)}", column=part.name)


def _unwritable(type_: st.DataType, is_column: bool = True) -> st.DataType | None:
    """The first part of a type not written by fastpq; None if the whole type can be written."""
    if isinstance(type_, st.GeometryType | st.GeographyType):
        is_mixed = type_.srid in (st.GeometryType.MIXED_SRID, st.GeographyType.MIXED_SRID)      # a file has one CRS for all
        return type_ if is_mixed or not is_column else None
    if isinstance(type_, st.CalendarIntervalType | st.YearMonthIntervalType):
        return type_
    inner: list[st.DataType] = []
    if isinstance(type_, st.StructType):
        inner = [part.dataType for part in type_.fields]
    elif isinstance(type_, st.ArrayType):
        inner = [type_.elementType]
    elif isinstance(type_, st.MapType):
        inner = [type_.keyType, type_.valueType]
    if not isinstance(type_, st.StructType) and any(isinstance(part, st.NullType) for part in inner):
        return type_        # PySpark has no Arrow type for it
    return next((found for part in inner if (found := _unwritable(part, False)) is not None), None)


def _mend(type_: st.DataType) -> str:
    """How to write values of an unwritable type all the same."""
    match type_:
        case st.ArrayType() | st.MapType():
            wanted = type_.simpleString().replace("void", "string")
            return f": void has no values; cast the column to a type with values, for example cast(... as {wanted})"
        case st.YearMonthIntervalType():
            return ": PySpark has no Arrow type for it; write a number of months, for example extract(year from x) * 12 + ..."
    return ""


def present_task() -> tuple[int, int]:
    """Number of PySpark's task and of its attempt."""
    context = TaskContext.get()
    return (context.partitionId(), context.taskAttemptId()) if context is not None else (0, 0)


def write_task(batches: Iterator[pa.RecordBatch], task: WriteTask) -> ds.WriterCommitMessage:
    """Write the rows of one attempt of a task; a failed attempt leaves files only in its own temporary folder."""
    try:
        for batch in batches:
            task.add(pa.Table.from_batches([batch]))
        written = task.finish()
    except BaseException:
        task.abort()
        raise
    keep_modules()
    return written


class WriteTask:
    """Open files of one attempt of a task, by partition folder, and the paths of all its files.

    Args:
        schema: Spark schema of the rows.
        options: options of the write.
        root: the dataset's folder.
        job: the job's name.
        number: number of the task.
        attempt: number of the attempt, unique in the application.
    """

    def __init__(self, schema: st.StructType, options: WriteOptions, root: str, job: str, number: int, attempt: int) -> None:
        self.options, self.root, self.job = options, root, job
        self.number, self.attempt = number, attempt
        self.folder = os.path.join(journal.TEMPORARY, job, f"task-{number}-{attempt}")
        rest = [part for part in schema.fields if part.name not in options.partition_by]
        self.arrow = stored_schema(reader_schema(st.StructType(rest)))
        self.leaves = [column.path for column in import_table(self.arrow.empty_table()).schema.columns]
        self.row_metadata = st.StructType(rest).json()
        self.open: dict[str, PartFile] = {}
        self.moves: dict[str, str] = {}
        self.count = 0

    def add(self, table: pa.Table) -> None:
        """Write rows to the files of their partitions."""
        for folder, rows in self._parted(table):
            if folder not in self.open:
                if len(self.open) >= self.options.max_open_files:
                    largest = max(self.open, key=lambda name: self.open[name].nbytes)
                    self.open.pop(largest).close()
                self.open[folder] = self.begin(folder, self._name())
            self.open[folder].add(_stored(rows, self.arrow))

    def finish(self) -> ds.WriterCommitMessage:
        """Close all files; returns the task's commit message."""
        if not self.count and self.number == 0 and not self.options.partition_by:
            self.open[""] = self.begin("", self._name())        # an empty dataset has a schema too
            self.open[""].add(self.arrow.empty_table())
        while self.open:
            self.open.popitem()[1].close()
        return self.message()

    def message(self) -> ds.WriterCommitMessage:
        """The commit message of the closed files."""
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
            folder: folder of the partition, relative to the dataset.
            name: name of the file.
        """
        place, target = os.path.join(self.folder, folder, name), os.path.join(folder, name)
        path = os.path.join(self.root, place)
        journal.make_folders(self.root, self.job, os.path.dirname(place))
        opened = self.opened(path, path)
        self.moves[place] = target
        if os.path.exists(os.path.join(self.root, material := material_of(place))):
            self.moves[material] = material_of(target)
        return opened

    def opened(self, where: Any, path: str) -> PartFile:
        """A file to be written.

        Args:
            where: target of a ParquetWriter.
            path: path for the keys of the file.
        """
        keys = None
        if self.options.encryption is not None and self.options.service is not None:
            keys = self.options.service.encryption(self.options.encryption, path)
        properties = dict(self.options.properties)
        metadata = {SPARK_ROW_METADATA: self._row_metadata(keys), **properties.pop("key_value_metadata", {})}
        writer = ParquetWriter(where, threads=1, encryption_properties=keys, key_value_metadata=metadata, **properties)
        return PartFile(writer, properties)

    def _row_metadata(self, keys: FileEncryptionProperties | None) -> str:
        """Spark's schema; without labels and bounds of values of the columns whose keys readers of the footer may lack."""
        closed = frozenset() if keys is None else closed_columns(keys, self.leaves)
        text, _ = redacted_value(SPARK_ROW_METADATA, self.row_metadata, closed)
        assert text is not None     # the schema is Spark's own
        return text


class PartFile:
    """A file written row group by row group; rows wait in memory until a row group is full."""

    def __init__(self, writer: ParquetWriter, properties: Mapping[str, Any]) -> None:
        self.writer = writer
        self.most_bytes = int(properties["row_group_bytes"])
        self.most_rows = int(properties.get("row_group_size", DEFAULT_ROW_GROUP_ROWS))
        self.waiting: list[pa.Table] = []
        self.rows = self.nbytes = 0

    def add(self, table: pa.Table) -> None:
        self.waiting.append(table)
        self.rows += table.num_rows
        self.nbytes += table.nbytes
        if self.rows >= self.most_rows or self.nbytes >= self.most_bytes:
            self._flush()

    def close(self) -> None:
        if self.waiting:
            self._flush()
        self.writer.close()

    def _flush(self) -> None:
        table = pa.concat_tables(self.waiting)
        self.waiting, self.rows, self.nbytes = [], 0, 0
        self.writer.write_table(table)


def _in_path(value: Any, type_: pa.DataType) -> Any:
    """A partition value for a folder's name: empty text means null, as in Spark; timestamps in the session's time zone."""
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None)
    if pa.types.is_float32(type_) and value is not None:
        return np.float32(value)
    return None if value == "" else value


def _stored(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = []
    for part, column in zip(schema, table.columns, strict=True):
        try:
            columns.append(stored_column(column, part.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise SchemaError(f"values do not fit {part.type}: {error}", column=part.name) from None
    return pa.table(columns, schema=schema)
