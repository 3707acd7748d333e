"""write_dataset: rows as files in hive partitions."""

from __future__ import annotations

import os
import posixpath
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, Unpack, cast

import numpy as np

from fastpq.api.writer import ParquetWriter
from fastpq.api.writer_input import WriterInput, batches_of, no_index_of
from fastpq.api.writer_options import WriterOptions
from fastpq.arrays.layouts import DictionaryValues
from fastpq.arrays.numpy_output import fixed_values
from fastpq.arrays.table import Column, Table
from fastpq.common.progress import Meter, Progress
from fastpq.convert.dataframe_input import is_dataframe, table_from_dataframe
from fastpq.convert.numpy_input import table_from
from fastpq.convert.pandas_metadata import PANDAS_KEY, without_columns
from fastpq.convert.schemas import GivenSchema
from fastpq.datasets.appending import SchemaCheck, schema_without_partitions
from fastpq.datasets.hive import format_partitions
from fastpq.datasets.metadata_writing import has_metadata, settle_metadata
from fastpq.datasets.open_writers import MOST_OPEN, MOST_OPEN_REMOTE, OpenWriters
from fastpq.datasets.unify import given_fields
from fastpq.encryption.properties import FileEncryptionProperties
from fastpq.errors import SchemaError, UnsupportedError
from fastpq.io.location import Remote, RemotePath, locate, placed
from fastpq.io.new_file import make_directories
from fastpq.options import WriterProperties, spelled_out, with_options
from fastpq.schema.nested_types import DataType
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.variant.shredding_choice import Shredding

DatasetEncryption: TypeAlias = FileEncryptionProperties | Callable[[str], FileEncryptionProperties | None] | None


@spelled_out
def write_dataset(
    data: Any,
    root: Any,
    *,
    partition_by: Sequence[str] = (),
    encryption_properties: DatasetEncryption = None,
    progress: Progress | None = None,
    schema: Mapping[str, Any] | ParquetSchema | Any = None,
    properties: WriterProperties | None = None,
    threads: int | None = None,
    shred: Mapping[str, Shredding] | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    max_rows_per_file: int | None = None,
    index: bool | None = None,
    check_schema: bool = True,
    write_metadata_file: bool | None = None,
    **options: Unpack[WriterOptions],
) -> list[str]:
    """Write rows as files below a directory, by the values of partition columns; files that are there stay (append).

    Every file appears as a whole, under a unique name. After a failure the files written before remain, and
    so do directories of partitions without a file. Rows for a directory with files have the columns of the files: names and
    types are compared with one of the files, unless its footer is encrypted.

    Args:
        data: a table in any form accepted by ``write_table``. Streams and iterators are written in bounded memory: rows wait for
            whole row groups up to 256 MiB in all, and at most 128 files are open, 16 in a store, where each keeps parts of its
            upload besides. A partition whose file was closed for another one gets a further file: rows of many partitions
            are best sorted by them.
        root: a directory, made if missing; or an fsspec URL.
        partition_by: names of the partition columns, outermost first: numbers, dates, timestamps without a time zone, text, or
            booleans; booleans are read back as text.
        encryption_properties: keys of every file, or a function from a file's path to its keys, as for ParquetDataset;
            external key material needs the function. Values of partition columns are in the paths, in plaintext.
        progress: called as ``progress(done, total)``, in rows; the last call is ``(total, total)``. An exception from the
            call removes the unfinished file.
        schema: column types by name, as for ``write_table``; it may have the partition columns, whose types stand nowhere in the
            files. A stream without tables becomes an empty file of the schema, but with partitions no file.
        properties: writer properties; options override them.
        threads: number of columns encoded at the same time; None for one a core.
        shred: shredding of variant columns by name, as for ParquetWriter.
        filesystem: filesystem of the path, of fsspec or of pyarrow.fs; None finds one by the URL.
        storage_options: options of the fsspec filesystem of a URL, as for pandas and Polars.
        timeout: most seconds without a byte from a server, for URLs of S3.
        max_rows_per_file: most rows of a file; None for one file a partition.
        index: whether the index of a pandas DataFrame is kept, as for ``write_table``.
        check_schema: whether to refuse columns other than those of the files that are there. With False readers unite them.
        write_metadata_file: whether to write ``_metadata`` and ``_common_metadata`` after the files, as
            ``write_dataset_metadata``. None writes both anew where one is there, or removes both where the files, encrypted or of
            different schemas, have no place in ``_metadata``. False removes both.
        **options: any of the fields of WriterProperties:

    Returns:
        Paths of the data files written.

    Raises:
        SchemaError: missing partition columns, values unfit for directory names, no column beside the partition columns, or
            columns other than those of the dataset; nothing is written then.
        FormatError: the file to compare with is no Parquet file.
        UnsupportedError: ``write_metadata_file`` with encryption.
    """
    if isinstance(partition_by, str):
        raise SchemaError(f"partition_by is a list of names, not the one name {partition_by!r}")
    root = placed(root, filesystem, storage_options, timeout)
    if write_metadata_file and encryption_properties is not None:
        raise UnsupportedError("write_metadata_file would put statistics of encrypted files into a file in plaintext")
    if max_rows_per_file is not None and (isinstance(max_rows_per_file, bool) or not isinstance(max_rows_per_file, int)):
        raise TypeError(f"max_rows_per_file is a whole number, not {max_rows_per_file!r}")
    if max_rows_per_file is not None and max_rows_per_file < 1:
        raise ValueError(f"max_rows_per_file must be at least 1, not {max_rows_per_file}")
    given = with_options(properties, options)
    if write_metadata_file or (write_metadata_file is None and isinstance(locate(root), str) and has_metadata(root)):
        given = replace(given, durable=True)        # _metadata names the files, and is durable
    schema = schema_without_partitions(schema, partition_by)
    check = SchemaCheck(root, partition_by, schema) if check_schema else None
    files = _NewFiles(root, _keys_by_path(encryption_properties, partition_by), given, threads, shred, check)
    batches = None if isinstance(data, Mapping) else batches_of(data)
    if batches is not None:
        described = WriterInput(schema, given, None, cast(FileEncryptionProperties | None, encryption_properties), index)
        written = _write_stream(described, batches, files, partition_by, max_rows_per_file, schema, Meter(progress))
    else:
        maps = None if schema is None else GivenSchema(schema).maps
        table, files.metadata = _table(data, partition_by, encryption_properties is None, index, maps)
        written = _write_table(table, files, partition_by, max_rows_per_file, schema, progress)
    settle_metadata(root, write_metadata_file)
    return written


def _write_table(
    table: Table,
    files: _NewFiles,
    partition_by: Sequence[str],
    max_rows: int | None,
    schema: Any,
    progress: Progress | None,
) -> list[str]:
    """Write the rows of each partition; returns the paths of the files."""
    rest, written, meter = _without(table, partition_by), [], Meter(progress, table.num_rows)
    files.check(rest)
    groups = _groups(table, partition_by)
    folders = [format_partitions(values) for values, _ in groups]       # refuses bad values before any file is written
    files.make_folders(folders)
    for (_, rows), folder in zip(groups, folders, strict=True):
        whole = rest if rows is None else rest._of((column.take(rows) for column in rest.columns), len(rows))
        step = max_rows or max(whole.num_rows, 1)
        for start in range(0, max(whole.num_rows, 1), step):
            part = whole if step >= whole.num_rows else whole.slice(start, min(start + step, whole.num_rows))
            span = meter.span(part.num_rows)
            path, writer = files.open(folder, schema, None if span is None else span.reach)
            writer._write_whole(part)
            written.append(path)
    meter.finish()
    return written


def _write_stream(
    described: WriterInput,
    batches: Iterator[Any],
    files: _NewFiles,
    partition_by: Sequence[str],
    max_rows: int | None,
    schema: Any,
    meter: Meter,
) -> list[str]:
    """Write batches as they arrive, with the columns and types of the first one; returns the paths of the files."""

    def open_file(folder: str) -> tuple[str, ParquetWriter]:
        files.metadata = _of_parts(described.described, partition_by)
        return files.open(folder, schema if isinstance(schema, ParquetSchema) and not partition_by else None)

    tables = (table for batch in batches for table in described.tables(batch))
    with OpenWriters(open_file, max_rows, MOST_OPEN_REMOTE if files.is_remote else MOST_OPEN) as writers:
        for table in (table for tables in (tables, _late(described.rest)) for table in tables):
            rest = _without(table, partition_by)
            files.check(rest)
            meter.expect(table.num_rows)
            for values, rows in _groups(table, partition_by):
                whole = rest if rows is None else rest._of((column.take(rows) for column in rest.columns), len(rows))
                if whole.num_rows or not (writers.written or writers.is_open):
                    writers.add(format_partitions(values), whole)
            meter.add(table.num_rows)
        if schema is not None and not (partition_by or writers.written or writers.is_open):
            for table in _nothing(schema, described):
                files.check(table)
                writers.add("", table)
    meter.finish()
    return writers.written


def _nothing(schema: Any, described: WriterInput) -> list[Table]:
    """A table without rows, of a schema."""
    if not isinstance(schema, ParquetSchema):
        return described.nothing()
    return [Table((name, field.of_nulls(0)) for name, field in given_fields(schema).items())]


def _late(tables: Callable[[], Iterable[Table]]) -> Iterator[Table]:
    """Tables asked for when the first one is drawn."""
    yield from tables()


def _without(table: Table, partition_by: Sequence[str]) -> Table:
    kept = [name for name in table.names if name not in partition_by]
    if partition_by and not kept:
        raise SchemaError("a file needs a column beside those of its partition")
    return table.select(kept)


class _NewFiles:
    """Opens new files below a directory, under unique names.

    Args:
        root: directory.
        keys_of: keys of a file by its path.
        properties: how to write.
        threads: number of columns encoded at the same time.
        shred: shredding of variant columns.
        schema_check: compares the first rows with the dataset; None compares nothing.

    Attributes:
        is_remote: whether files are uploaded.
        metadata: metadata of the tables, for the key-value metadata of each file, behind entries of the properties.
    """

    def __init__(
        self,
        root: Any,
        keys_of: Callable[[str], FileEncryptionProperties | None],
        properties: WriterProperties,
        threads: int | None,
        shred: Mapping[str, Shredding] | None,
        schema_check: SchemaCheck | None,
    ) -> None:
        self._schema_check = schema_check
        self._root, self._keys_of, self._properties = root, keys_of, properties
        self._threads, self._shred = threads, shred
        self._count = 0
        self.is_remote = isinstance(locate(root), Remote)
        self.metadata: Mapping[str, str] = {}

    def check(self, rows: Table) -> None:
        """Refuse rows, without partition columns, of other columns than the dataset has.

        Raises:
            SchemaError: such a column.
        """
        if self._schema_check is not None:
            self._schema_check.check(rows)

    def make_folders(self, folders: Iterable[str]) -> None:
        """Make the directories of partitions together, where files are local: a sync of each parent costs more than a file."""
        located = locate(self._root)
        if isinstance(located, str):
            made = (_local_directory(located, folder) for folder in folders)
            make_directories(*made, durable=self._properties.durable)

    def open(self, folder: str, schema: Any = None, progress: Progress | None = None) -> tuple[str, ParquetWriter]:
        """Path and writer of a new file.

        Args:
            folder: directory of the partition below the root.
            schema: as for ParquetWriter.
            progress: as for ParquetWriter.
        """
        name = f"part-{self._count}-{secrets.token_hex(16)}.parquet"
        where, path = _target(self._root, folder, name, self._properties.durable)
        self._count += 1
        writer = ParquetWriter(
            where,
            schema,
            properties=self._properties,
            threads=self._threads,
            encryption_properties=self._keys_of(path),
            shred=self._shred,
            progress=progress,
        )
        writer._describe(self.metadata)
        return path, writer


def _table(
    data: Any, partition_by: Sequence[str], with_categories: bool, index: bool | None, maps: Mapping[str, DataType] | None
) -> tuple[Table, Mapping[str, str]]:
    """The data as a Table, and the description of a DataFrame for the key-value metadata."""
    described: Mapping[str, str] = {}
    if is_dataframe(data):
        data, text = table_from_dataframe(data, with_categories=with_categories, index=index, maps=maps)
        described = _of_parts({PANDAS_KEY: text}, partition_by)
    elif index is not None:
        raise no_index_of(data)
    return table_from(data, maps=maps), described


def _of_parts(described: Mapping[str, str], partition_by: Sequence[str]) -> Mapping[str, str]:
    """Metadata of a table as those of its files, without the columns of the partitions."""
    return {key: without_columns(text, partition_by) if key == PANDAS_KEY else text for key, text in described.items()}


def _keys_by_path(keys: DatasetEncryption, partition_by: Sequence[str]) -> Callable[[str], FileEncryptionProperties | None]:
    """The keys of a file by its path; keys of partition columns are refused."""
    if keys is None or isinstance(keys, FileEncryptionProperties):
        same = keys
        _check_partitions_are_open(same, partition_by)
        return lambda path: same

    def checked(path: str) -> FileEncryptionProperties | None:
        found = keys(path)
        _check_partitions_are_open(found, partition_by)
        return found

    return checked


def _check_partitions_are_open(keys: FileEncryptionProperties | None, names: Sequence[str]) -> None:
    for name in names:
        if keys is not None and keys.column_keys.find((name,)) is not None:
            raise SchemaError("a partition column stands in the paths, in plaintext, though it has a key", column=name)


def _groups(table: Table, names: Sequence[str]) -> list[tuple[Mapping[str, Any], Any]]:
    """Combinations of values of the named columns, each with its row numbers in order; None for all rows."""
    if not names:
        return [({}, None)]
    codes = np.zeros(table.num_rows, np.int64)
    for name in names:
        own = _codes(table.flat(name))
        # renumbered at every step to keep the products small
        codes = np.unique(codes * (int(own.max(initial=0)) + 1) + own, return_inverse=True)[1]
    firsts = np.unique(codes, return_index=True)[1]
    order = np.argsort(codes, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(codes))[:-1]) if len(codes) else []
    singles = {name: _singles(table.flat(name).take(firsts)) for name in names}
    return [({name: singles[name][group] for name in names}, chosen) for group, chosen in enumerate(rows)]


def _singles(column: Column) -> list[Any]:
    """Values as Python objects; of a FLOAT column NumPy's, whose text is shorter."""
    if column.type.dtype != np.float32:
        return column.to_pylist()
    return [value if valid else None for value, valid in zip(fixed_values(column), column.validity_mask(), strict=True)]


def _codes(column: Column) -> Any:
    """A number for each value, equal for equal values; 0 for null."""
    if column.type.is_variable:
        values = column.as_dictionary().values
        assert isinstance(values, DictionaryValues)
        codes = values.codes.astype(np.int64) + 1
    else:
        codes = np.unique(fixed_values(column), return_inverse=True)[1] + 1
    return np.where(column.validity_mask(), codes, 0)


def _target(root: Any, folder: str, name: str, durable: bool) -> tuple[str | RemotePath, str]:
    located = locate(root)
    if isinstance(located, Remote):
        directory = posixpath.join(located.path, folder) if folder else located.path
        located.filesystem.makedirs(directory, exist_ok=True)
        path = posixpath.join(directory, name)
        return RemotePath(located.filesystem, path), path
    if located is None:
        raise SchemaError(f"a dataset is written to a directory or a URL, not to a {type(root).__name__}")
    directory = _local_directory(located, folder)
    make_directories(directory, durable=durable)
    path = os.path.join(directory, name)
    return path, path


def _local_directory(root: str, folder: str) -> str:
    return os.path.join(root, *folder.split("/")) if folder else root
