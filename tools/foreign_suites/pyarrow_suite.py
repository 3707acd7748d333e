"""Plugin of pytest: pyarrow.parquet reads and writes with fastpq."""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import fastpq
from tools.foreign_suites import pyarrow_keys
from tools.foreign_suites.pyarrow_footers import Column, MetaData, Schema, storage
from tools.foreign_suites.pyarrow_writing import (
    ParquetWriter,
    filesystem_of,
    refuse,
    write_metadata,
    write_table,
    write_to_dataset,
)

READ_NAMES = {"memory_map", "coerce_int96_timestamp_unit", "filters", "decryption_properties"}


def read_options(options: Mapping[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in options.items() if name in READ_NAMES and value is not None}
    if options.get("use_threads") is False:
        own["threads"] = 1
    if options.get("page_checksum_verification") is False:
        own["properties"] = fastpq.ReaderProperties(verify_checksums=False)
    if options.get("filesystem") is not None:
        own["filesystem"] = filesystem_of(options["filesystem"])
    known = {*READ_NAMES, "filesystem", "arrow_extensions_enabled"}
    refuse({name: value for name, value in options.items() if name not in known})
    return own


def arrow(table: fastpq.Table, read_dictionary: Iterable[str] | None = None, options: Mapping[str, Any] = {}) -> pa.Table:
    whole = table.to_arrow()
    if (plain := storage(whole.schema, options)) != whole.schema:
        whole = whole.cast(plain)
    for name in read_dictionary or ():      # and partition columns, which are dictionaries in pyarrow
        if name in whole.column_names and not pa.types.is_dictionary(whole[name].type):
            whole = whole.set_column(whole.column_names.index(name), name, whole[name].dictionary_encode())
    return whole


def with_index(columns: Any, metadata: Any, is_wanted: bool) -> Any:
    if columns is None or not is_wanted or not metadata or b"pandas" not in metadata:
        return columns
    names = pq.core._get_pandas_index_columns(metadata)
    return [*columns, *(name for name in names if isinstance(name, str) and name not in columns)]


def read_table(source: Any, *, columns: Any = None, use_pandas_metadata: bool = False, read_dictionary: Any = None,
               schema: Any = None, partitioning: Any = "hive", ignore_prefixes: Any = None, **options: Any) -> pa.Table:
    return ParquetDataset(
        source, schema=schema, partitioning=partitioning, read_dictionary=read_dictionary, ignore_prefixes=ignore_prefixes,
        **options,
    ).read(columns=columns, use_pandas_metadata=use_pandas_metadata)


class ParquetDataset:
    def __init__(self, path_or_paths: Any, filesystem: Any = None, schema: Any = None, *, filters: Any = None,
                 read_dictionary: Any = None, partitioning: Any = "hive", **options: Any) -> None:
        refuse({"ignore_prefixes": options.pop("ignore_prefixes", None)})
        if schema is not None and not isinstance(schema, pa.Schema):
            raise ValueError("schema must be a pyarrow schema")
        self._options = read_options({**options, "filesystem": filesystem})
        if isinstance(path_or_paths, str) and path_or_paths.startswith("fsspec+"):
            path_or_paths = path_or_paths.removeprefix("fsspec+")
        self._read, self._form = {} if filters is None else {"filters": filters}, options
        self._where, self._dictionary = getattr(path_or_paths, "__fspath__", lambda: path_or_paths)(), read_dictionary
        is_many = isinstance(self._where, list) or schema is not None or partitioning != "hive" or (
            isinstance(self._where, str) and (filesystem is not None or os.path.isdir(self._where)))
        if is_many:
            more = {"schema": schema} if schema is not None else {"schema": "first"}
            self._source: Any = fastpq.ParquetDataset(self._where, partitioning=partitioning, **more, **self._options)
        else:
            self._source = fastpq.ParquetFile(self._where, **self._options)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(self._source)

    @property
    def files(self) -> list[str]:
        return self._source.files if isinstance(self._source, fastpq.ParquetDataset) else [self._where]

    @property
    def fragments(self) -> list[Any]:
        return [types.SimpleNamespace(path=path) for path in self.files]

    def equals(self, other: Any) -> bool:
        return bool(self.schema == other.schema and self.files == other.files)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ParquetDataset) and self.equals(other)

    def read(self, columns: Any = None, use_threads: bool = True, use_pandas_metadata: bool = False) -> pa.Table:
        wanted = with_index(columns, self.schema.metadata, use_pandas_metadata)
        known = None if wanted is None else [name for name in wanted if name.partition(".")[0] in self.schema.names]
        partitions = getattr(self._source, "partition_names", [])
        return arrow(self._source.read(known, **self._read), [*partitions, *(self._dictionary or ())], self._form)

    def read_pandas(self, **options: Any) -> pa.Table:
        return self.read(use_pandas_metadata=True, **options)


class ParquetFile:
    def __init__(self, source: Any, *, metadata: Any = None, read_dictionary: Any = None, common_metadata: Any = None,
                 **options: Any) -> None:
        self._file = fastpq.ParquetFile(source, metadata=None if metadata is None else metadata._own, check_metadata=False,
                                        **read_options(options))
        self._dictionary, self.common_metadata = read_dictionary, common_metadata
        self._source = source

    metadata = property(lambda self: MetaData(self._file.metadata))
    schema = property(lambda self: Schema(self._file.metadata))
    schema_arrow = property(lambda self: arrow(self._file.read(row_groups=[]), self._dictionary).schema)
    num_row_groups = property(lambda self: self._file.num_row_groups)
    closed = property(lambda self: self._file.closed)

    def _columns(self, columns: Any, use_pandas_metadata: bool) -> Any:
        names = self.schema_arrow.names
        wanted = with_index(columns, self.schema_arrow.metadata, use_pandas_metadata)
        return None if wanted is None else [name for name in wanted if name.partition(".")[0] in names]

    def read(self, columns: Any = None, use_threads: bool = True, use_pandas_metadata: bool = False, **more: Any) -> pa.Table:
        return arrow(self._file.read(self._columns(columns, use_pandas_metadata), **more), self._dictionary)

    def read_row_group(self, i: int, columns: Any = None, **options: Any) -> pa.Table:
        return self.read_row_groups([i], columns, **options)

    def read_row_groups(self, row_groups: Any, columns: Any = None, **options: Any) -> pa.Table:
        return self.read(columns, row_groups=row_groups, **options)

    def iter_batches(self, batch_size: int = 65536, row_groups: Any = None, columns: Any = None, use_threads: bool = True,
                     use_pandas_metadata: bool = False) -> Iterator[pa.RecordBatch]:
        tables = self._file.iter_batches(batch_size, self._columns(columns, use_pandas_metadata), row_groups=row_groups)
        return (batch for table in tables for batch in arrow(table, self._dictionary).combine_chunks().to_batches())

    def scan_contents(self, columns: Any = None, batch_size: int = 65536) -> int:
        return self._file.scan_contents(columns, batch_size)

    def close(self, force: bool = False) -> None:
        self._file.close()
        if force and hasattr(self._source, "close"):
            self._source.close()

    def __enter__(self) -> ParquetFile:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def read_metadata(where: Any, **options: Any) -> MetaData:
    return MetaData(fastpq.read_metadata(where, **read_options(options)))


def read_schema(where: Any, **options: Any) -> pa.Schema:
    return storage(fastpq.ParquetFile(where, **read_options(options)).schema_arrow, options)


def read_pandas(source: Any, columns: Any = None, **options: Any) -> pa.Table:
    return read_table(source, columns=columns, use_pandas_metadata=True, **options)


def as_pyarrow(function: Any) -> Any:
    """The function, with pyarrow's classes of errors."""

    @functools.wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        try:
            with pyarrow_keys.as_of_service():
                return function(*arguments, **options)
        except (fastpq.FormatError, fastpq.SchemaError, fastpq.UnsupportedError) as error:
            raise pa.ArrowInvalid(str(error)) from error
        except (fastpq.CryptoError, fastpq.LimitError) as error:
            raise OSError(str(error)) from error

    return called


for function in (read_table, read_pandas, read_metadata, read_schema, write_table, write_to_dataset, write_metadata, ParquetFile,
                 ParquetWriter, ParquetDataset):
    setattr(pq, function.__name__, function if isinstance(function, type) else as_pyarrow(function))
pq.ParquetSchema, pq.ColumnSchema = Schema, Column
for kind in (ParquetFile, ParquetWriter, ParquetDataset):
    for name in ("__init__", "read", "write_table"):
        if name in vars(kind):
            setattr(kind, name, as_pyarrow(vars(kind)[name]))
