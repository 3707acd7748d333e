"""write_dataset: one table as files in hive partitions."""

from __future__ import annotations

import os
import posixpath
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, Unpack

import numpy as np

from fastpq.api.writer_options import WriterOptions
from fastpq.api.writing import write_table
from fastpq.arrays.layouts import DictionaryValues
from fastpq.arrays.numpy_output import fixed_values
from fastpq.arrays.table import Column, Table
from fastpq.common.progress import Meter, Progress
from fastpq.convert.dataframe_input import is_dataframe, table_from_dataframe
from fastpq.convert.numpy_input import table_from
from fastpq.convert.pandas_metadata import PANDAS_KEY, without_columns
from fastpq.datasets.hive import format_partitions
from fastpq.encryption.properties import FileEncryptionProperties
from fastpq.errors import SchemaError
from fastpq.io.location import Remote, RemotePath, locate, placed
from fastpq.io.new_file import make_directories
from fastpq.options import WriterProperties, spelled_out
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.types import ColumnType
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
    schema: Mapping[str, ColumnType] | ParquetSchema | None = None,
    properties: WriterProperties | None = None,
    threads: int | None = None,
    shred: Mapping[str, Shredding] | None = None,
    filesystem: Any = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    **options: Unpack[WriterOptions],
) -> list[str]:
    """Write a table as files below a directory, one for each combination of partition values; present files stay (append).

    Every file appears as a whole, under a unique name. After a failure the files written before remain.

    Args:
        data: a table in any form accepted by ``write_table``.
        root: a directory, made if missing; or an fsspec URL.
        partition_by: names of the partition columns, outermost first: numbers, dates, timestamps without a time zone, text, or
            booleans; booleans are read back as text.
        encryption_properties: keys of every file, or a function from a file's path to its keys, as for ParquetDataset;
            external key material needs the function. Values of partition columns are in the paths, in plaintext.
        progress: called as ``progress(done, total)``, in rows; the last call is ``(total, total)``. An exception from the
            call removes the unfinished file.
        schema: column types by name, as for ``write_table``.
        properties: writer properties; options override them.
        threads: number of columns encoded at the same time; None for one a core.
        shred: shredding of variant columns by name, as for ParquetWriter.
        filesystem: filesystem of the path, of fsspec or of pyarrow.fs; None finds one by the URL.
        storage_options: options of the fsspec filesystem of a URL, as for pandas and Polars.
        timeout: most seconds without a byte from a server, for URLs of S3.
        **options: any of the fields of WriterProperties:

    Returns:
        Paths of the files written.

    Raises:
        SchemaError: missing partition columns, values unfit for directory names, or no column beside the partition columns.
    """
    if isinstance(partition_by, str):
        raise SchemaError(f"partition_by is a list of names, not the one name {partition_by!r}")
    root = placed(root, filesystem, storage_options, timeout)
    table = _table(data, partition_by, encryption_properties is None, options)
    kept = [name for name in table.names if name not in partition_by]
    if partition_by and not kept:
        raise SchemaError("a file needs a column beside those of its partition")
    groups = _groups(table, partition_by)
    folders = [format_partitions(values) for values, _ in groups]       # refuses bad values before any file is written
    keys_of = _keys_by_path(encryption_properties, partition_by)
    rest, written, meter = table.select(kept), [], Meter(progress, table.num_rows)
    for number, ((_, rows), folder) in enumerate(zip(groups, folders, strict=True)):
        where, path = _target(root, folder, f"part-{number}-{secrets.token_hex(16)}.parquet")
        part = rest if rows is None else rest._of((column.take(rows) for column in rest.columns), len(rows))
        span = meter.span(part.num_rows)
        write_table(
            part,
            where,
            schema=schema,
            properties=properties,
            threads=threads,
            encryption_properties=keys_of(path),
            shred=shred,
            progress=None if span is None else span.reach,
            **options,
        )
        written.append(path)
    meter.finish()
    return written


def _table(data: Any, partition_by: Sequence[str], with_categories: bool, options: WriterOptions) -> Table:
    """The data as a Table; the description of a DataFrame joins the key-value metadata in the options."""
    if is_dataframe(data):
        data, described = table_from_dataframe(data, with_categories=with_categories)
        metadata = {PANDAS_KEY: without_columns(described, partition_by)} | dict(options.get("key_value_metadata", {}))
        options["key_value_metadata"] = metadata
    return table_from(data)


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


def _target(root: Any, folder: str, name: str) -> tuple[str | RemotePath, str]:
    located = locate(root)
    if isinstance(located, Remote):
        directory = posixpath.join(located.path, folder) if folder else located.path
        located.filesystem.makedirs(directory, exist_ok=True)
        path = posixpath.join(directory, name)
        return RemotePath(located.filesystem, path), path
    if located is None:
        raise SchemaError(f"a dataset is written to a directory or a URL, not to a {type(root).__name__}")
    directory = os.path.join(located, *folder.split("/")) if folder else located
    make_directories(directory)
    path = os.path.join(directory, name)
    return path, path
