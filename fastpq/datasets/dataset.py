"""ParquetDataset, read_dataset and write_dataset: many files as one table, with partition columns from or into paths."""

from __future__ import annotations

import os
import posixpath
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, Unpack

import numpy as np

from fastpq.api.file import DEFAULT_BATCH_SIZE, ParquetFile
from fastpq.api.writer_options import WriterOptions
from fastpq.api.writing import write_table
from fastpq.arrays.layouts import DictionaryValues
from fastpq.arrays.nested_columns import take
from fastpq.arrays.numpy_output import fixed_values
from fastpq.arrays.table import AnyColumn, Column, Table
from fastpq.common.progress import Meter, Progress
from fastpq.convert.dataframes import PANDAS_KEY, is_dataframe, table_from_dataframe, without_columns
from fastpq.convert.nulls import null_column
from fastpq.convert.numpy_input import column_from_numpy, table_from
from fastpq.datasets.discovery import DataFile, RemotePath, find_files
from fastpq.datasets.hive import format_partitions, infer_partition_type, partition_value
from fastpq.datasets.unify import conform, schema_of, unify
from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.errors import SchemaError
from fastpq.filters.literals import domain_of
from fastpq.filters.predicate import And, Bounds, Condition, Or, Outcome, bind_filters
from fastpq.io.location import Remote, locate
from fastpq.options import OnError, ReaderProperties, WriterProperties, spelled_out
from fastpq.read.opener import StringLayout
from fastpq.schema.nested_types import Field
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.types import ColumnType, TimeUnitName
from fastpq.variant.shredding_choice import Shredding

DatasetDecryption: TypeAlias = FileDecryptionProperties | Callable[[str], FileDecryptionProperties | None] | None
DatasetEncryption: TypeAlias = FileEncryptionProperties | Callable[[str], FileEncryptionProperties | None] | None


class ParquetDataset:
    """Many files as one table: the columns of the files, followed by the partition columns with values from the paths.

    The constructor reads the footers of all files; reads open the files again. A column missing in a file is null in its rows.
    Signed integers of different widths become the widest. A partition column replaces a column of the same name in the files.

    Args:
        where: a directory, a glob, a path, an fsspec URL of these, or a list of them.
        partitioning: ``"hive"`` (``name=value`` directories) or None.
        decryption_properties: keys, or a function from a file's path to its keys. For URLs the path has the form used by the
            filesystem; a CryptoFactory with external key material then also needs its argument ``filesystem``.
        memory_map: map a local file instead of reading it; a mapped file must not be truncated by others while it is in use.
        threads: number of chunks decoded at the same time; None for one a core.
        strings: layout of variable-length values: ``"views"`` (no copy), ``"offsets"`` or ``"dictionary"`` (codes).
        coerce_int96_timestamp_unit: unit of INT96 timestamps in memory: ``"ms"``, ``"us"`` or ``"ns"``.
        arrow_schema: give columns the Arrow types named in the metadata's ARROW:schema.
        properties: bounds and checks.
        on_error: ``"raise"``; ``"null"`` for nulls in the place of unreadable values; ``"skip"`` to leave out rows with
            unreadable values.

    Raises:
        FileNotFoundError: there is no file.
        SchemaError: files with incompatible columns or different partition columns.
        FormatError, CryptoError: an unreadable footer.
    """

    def __init__(
        self,
        where: Any,
        *,
        partitioning: str | None = "hive",
        decryption_properties: DatasetDecryption = None,
        memory_map: bool = True,
        threads: int | None = None,
        strings: StringLayout = "views",
        coerce_int96_timestamp_unit: TimeUnitName = "ns",
        arrow_schema: bool = True,
        properties: ReaderProperties | None = None,
        on_error: OnError = "raise",
    ) -> None:
        if partitioning not in ("hive", None):
            raise ValueError(f'partitioning must be "hive" or None, not {partitioning!r}')
        self._decryption = decryption_properties
        self._strings = strings
        self._open_file = partial(
            ParquetFile,
            memory_map=memory_map,
            threads=threads,
            strings=strings,
            coerce_int96_timestamp_unit=coerce_int96_timestamp_unit,
            arrow_schema=arrow_schema,
            properties=properties,
            on_error=on_error,
        )
        found = find_files(where)
        if not found:
            raise FileNotFoundError("a dataset of no files")
        self._files = found if partitioning else [replace(file, partitions={}) for file in found]
        self._partitions = _partition_types(self._files)
        self._values = [
            {name: partition_value(text, self._partitions[name], name) for name, text in file.partitions.items()}
            for file in self._files
        ]
        self._own: list[dict[str, Field]] = []
        self._rows: list[int] = []
        for data_file in self._files:
            with self._open(data_file) as file:
                self._own.append(self._fields_of(file))
                self._rows.append(file.metadata.num_rows)
        self.num_rows = sum(self._rows)
        self._fields = unify(zip(self.files, self._own, strict=True))
        self._fields |= {name: Field(name, type_) for name, type_ in self._partitions.items()}
        self.schema: ParquetSchema = schema_of(self._fields)

    @property
    def files(self) -> list[str]:
        """Paths of the files in reading order."""
        return [file.path for file in self._files]

    @property
    def partition_names(self) -> list[str]:
        """Names of the partition columns, outermost first."""
        return list(self._partitions)

    def read(
        self, columns: Iterable[str] | None = None, *, filters: Any = None, progress: Progress | None = None
    ) -> Table:
        """Read all files into memory.

        Args:
            columns: names of whole columns, in the order of the result; None for all.
            filters: as for ``ParquetFile.read``, on columns of files and of partitions: files of other partitions are not opened.
            progress: called as ``progress(done, total)``, in rows of all files including skipped files; the last call is
                ``(total, total)``.

        Raises:
            SchemaError: unknown columns or invalid filters.
            FormatError, UnsupportedError, LimitError, CryptoError: see fastpq.errors.
        """
        names = self._chosen(columns)
        parts = [*self._parts(names, filters, progress, None)]
        if not parts:
            fields = [self._fields[name] for name in names]
            parts = [Table({field.name: conform(null_column(field.type, 0), field) for field in fields})]
        return Table.concat(parts)

    def iter_batches(
        self,
        batch_size: int = DEFAULT_BATCH_SIZE,
        columns: Iterable[str] | None = None,
        *,
        filters: Any = None,
        progress: Progress | None = None,
    ) -> Iterator[Table]:
        """Read as Tables of at most batch_size rows, file after file; memory is bounded as in ``ParquetFile.iter_batches``.

        Args:
            batch_size: most rows of a Table; a Table never spans two files.
            columns: as for ``read``.
            filters: as for ``read``.
            progress: as for ``read``.

        Raises:
            ParquetError: as ``read``.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        return self._parts(self._chosen(columns), filters, progress, batch_size)

    def count(self, filters: Any = None) -> int:
        """Number of rows matching filters.

        Args:
            filters: as for ``read``; None counts all rows.

        Raises:
            ParquetError: as ``read``.
        """
        if filters is None:
            return self.num_rows
        return sum(part.num_rows for part in self.iter_batches(columns=[], filters=filters))

    def _parts(self, names: list[str], filters: Any, progress: Progress | None, batch_size: int | None) -> Iterator[Table]:
        if filters is not None:
            bind_filters(filters, self.schema)      # refuses wrong filters before any file is read
        meter = Meter(progress, self.num_rows)
        for number, data_file in enumerate(self._files):
            rest = True if filters is None else self._residual(filters, number)
            if rest is False:
                meter.add(self._rows[number])
            else:
                with self._open(data_file) as file:
                    own = [name for name in names if name in self._own[number] and name not in self._partitions]
                    # paths, since names may hold dots
                    paths, wanted = [(name,) for name in own], None if rest is True else rest
                    span = meter.span(self._rows[number])
                    told = None if span is None else span.reach
                    tables = (
                        [file.read(paths, filters=wanted, progress=told)]
                        if batch_size is None
                        else file.iter_batches(batch_size, paths, filters=wanted, progress=told)
                    )
                    for table in tables:
                        yield self._completed(table, names, number)
        meter.finish()

    def _completed(self, table: Table, names: list[str], number: int) -> Table:
        """Rows of a file with all columns of the dataset."""
        columns: dict[str, AnyColumn] = {}
        for name in names:
            field = self._fields[name]
            if name in table:
                columns[name] = conform(table[name], field)
            else:
                value = self._values[number].get(name)
                columns[name] = self._laid_out(_constant(field, value, table.num_rows))
        return Table(columns, num_rows=table.num_rows)

    def _laid_out(self, column: AnyColumn) -> AnyColumn:
        if not isinstance(column, Column) or not column.type.is_variable:
            return column
        match self._strings:
            case "offsets":
                return column.as_offsets()
            case "dictionary":
                return column.as_dictionary()
        return column

    def _residual(self, filters: Any, number: int) -> Any:
        """Filters left for one file: True or False if its partition values and missing columns decide the result."""
        if isinstance(filters, And | Or):
            return _simplified(type(filters), [self._residual(child, number) for child in filters.children])
        if isinstance(filters, list):
            kind = Or if all(isinstance(child, list) for child in filters) else And
            return _simplified(kind, [self._residual(child, number) for child in filters])
        leaf = bind_filters(filters, self.schema)
        assert isinstance(leaf, Condition)
        name = leaf.column.path[0]
        if name in self._own[number] and name not in self._partitions:
            return (leaf.column.path, *filters[1:])
        value = self._values[number].get(name)
        if value is None:
            return leaf.outcome(Bounds(null_count=1, num_values=1)) is Outcome.ALL
        key = domain_of(leaf.column.type).equal(value)
        return leaf.outcome(Bounds(key, key, null_count=0, num_values=1)) is Outcome.ALL

    def _chosen(self, columns: Iterable[str] | None) -> list[str]:
        if isinstance(columns, str):
            raise SchemaError(f"columns is a list of names, not the one name {columns!r}")
        names = list(self._fields) if columns is None else list(dict.fromkeys(columns))
        for name in names:
            if name not in self._fields:
                raise SchemaError(f"the dataset has no column {name!r}; it has {list(self._fields)}")
        return names

    def _open(self, file: DataFile) -> ParquetFile:
        keys = self._decryption
        keys = keys if keys is None or isinstance(keys, FileDecryptionProperties) else keys(file.path)
        return self._open_file(file.where, decryption_properties=keys)

    @staticmethod
    def _fields_of(file: ParquetFile) -> dict[str, Field]:
        columns = file.read(row_groups=[])
        return {name: Field(name, column.type, column.nullable) for name, column in columns.items()}


def read_dataset(
    where: Any,
    columns: Iterable[str] | None = None,
    *,
    filters: Any = None,
    progress: Progress | None = None,
    partitioning: str | None = "hive",
    decryption_properties: DatasetDecryption = None,
    memory_map: bool = True,
    threads: int | None = None,
    strings: StringLayout = "views",
    coerce_int96_timestamp_unit: TimeUnitName = "ns",
    arrow_schema: bool = True,
    properties: ReaderProperties | None = None,
    on_error: OnError = "raise",
) -> Table:
    """Read a dataset into memory, by a ParquetDataset.

    Args:
        where: a directory, a glob, a path, an fsspec URL of these, or a list of them.
        columns: names of whole columns, in the order of the result; None for all.
        filters: as for ``ParquetFile.read``, on columns of files and of partitions: files of other partitions are not opened.
        progress: called as ``progress(done, total)``, in rows of all files; the last call is
            ``(total, total)``.
        partitioning: ``"hive"`` (``name=value`` directories) or None.
        decryption_properties: keys, or a function from a file's path to its keys, as for ParquetDataset.
        memory_map: map a local file instead of reading it; a mapped file must not be truncated by others while it is in use.
        threads: number of chunks decoded at the same time; None for one a core.
        strings: layout of variable-length values: ``"views"`` (no copy), ``"offsets"`` or ``"dictionary"`` (codes).
        coerce_int96_timestamp_unit: unit of INT96 timestamps in memory: ``"ms"``, ``"us"`` or ``"ns"``.
        arrow_schema: give columns the Arrow types named in the metadata's ARROW:schema.
        properties: bounds and checks.
        on_error: ``"raise"``; ``"null"`` for nulls in the place of unreadable values; ``"skip"`` to leave out rows with
            unreadable values.

    Returns:
        A Table of the columns of the files, then the partition columns.

    Raises:
        FileNotFoundError: there is no file.
        SchemaError: incompatible files, unknown columns or invalid filters.
        FormatError, UnsupportedError, LimitError, CryptoError: see fastpq.errors.
    """
    dataset = ParquetDataset(
        where,
        partitioning=partitioning,
        decryption_properties=decryption_properties,
        memory_map=memory_map,
        threads=threads,
        strings=strings,
        coerce_int96_timestamp_unit=coerce_int96_timestamp_unit,
        arrow_schema=arrow_schema,
        properties=properties,
        on_error=on_error,
    )
    return dataset.read(columns, filters=filters, progress=progress)


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
    **options: Unpack[WriterOptions],
) -> list[str]:
    """Write a table as files below a directory, one for each combination of partition values; present files stay (append).

    Every file appears as a whole, under a unique name. After a failure the files written before remain.

    Args:
        data: a table in any form accepted by ``write_table``.
        root: a directory, made if missing; or an fsspec URL.
        partition_by: names of the partition columns, outermost first: integers, dates, text, or booleans; booleans are
            read back as text.
        encryption_properties: keys of every file, or a function from a file's path to its keys, as for ParquetDataset;
            external key material needs the function. Values of partition columns are in the paths, in plaintext.
        progress: called as ``progress(done, total)``, in rows; the last call is ``(total, total)``. An exception from the
            call removes the unfinished file.
        schema: column types by name, as for ``write_table``.
        properties: writer properties; options override them.
        threads: number of columns encoded at the same time; None for one a core.
        shred: shredding of variant columns by name, as for ParquetWriter.
        **options: any of the fields of WriterProperties:

    Returns:
        Paths of the files written.

    Raises:
        SchemaError: missing partition columns, values unfit for directory names, or no column beside the partition columns.
    """
    if isinstance(partition_by, str):
        raise SchemaError(f"partition_by is a list of names, not the one name {partition_by!r}")
    if is_dataframe(data):
        data, described = table_from_dataframe(data, with_categories=encryption_properties is None)
        metadata = {PANDAS_KEY: without_columns(described, partition_by)} | dict(options.get("key_value_metadata", {}))
        options["key_value_metadata"] = metadata
    table = table_from(data)
    kept = [name for name in table.names if name not in partition_by]
    if partition_by and not kept:
        raise SchemaError("a file needs a column beside those of its partition")
    groups = _groups(table, partition_by)
    folders = [format_partitions(values) for values, _ in groups]       # refuses bad values before any file is written
    if isinstance(encryption_properties, FileEncryptionProperties):
        _check_partitions_are_open(encryption_properties, partition_by)
    rest, written, meter = table.select(kept), [], Meter(progress, table.num_rows)
    for number, ((_, rows), folder) in enumerate(zip(groups, folders, strict=True)):
        where, path = _target(root, folder, f"part-{number}-{secrets.token_hex(16)}.parquet")
        part = rest if rows is None else Table({name: take(column, rows) for name, column in rest.items()})
        keys = encryption_properties
        if keys is not None and not isinstance(keys, FileEncryptionProperties):
            keys = keys(path)
            _check_partitions_are_open(keys, partition_by)
        span = meter.span(part.num_rows)
        write_table(
            part,
            where,
            schema=schema,
            properties=properties,
            threads=threads,
            encryption_properties=keys,
            shred=shred,
            progress=None if span is None else span.reach,
            **options,
        )
        written.append(path)
    meter.finish()
    return written


def _check_partitions_are_open(keys: FileEncryptionProperties | None, names: Sequence[str]) -> None:
    for name in names:
        if keys is not None and keys.column_keys.find((name,)) is not None:
            raise SchemaError("a partition column stands in the paths, in plaintext, though it has a key", column=name)


def _partition_types(files: Sequence[DataFile]) -> dict[str, ColumnType]:
    first = files[0]
    for file in files:
        if list(file.partitions) != list(first.partitions):
            raise SchemaError(
                f"partitions {list(file.partitions)} here are {list(first.partitions)} in {first.path}", path=file.path
            )
    return {name: infer_partition_type(file.partitions[name] for file in files) for name in first.partitions}


def _constant(field: Field, value: Any, count: int) -> AnyColumn:
    if value is None:
        return null_column(field.type, count)
    assert isinstance(field.type, ColumnType)
    one = column_from_numpy(np.array([value], object), type=field.type, nullable=True, name=field.name)
    return take(one, np.zeros(count, np.int64))


def _simplified(kind: type[And | Or], children: list[Any]) -> Any:
    """Conditions joined by And or Or, simplified by conditions known to be true or false."""
    decisive = kind is Or
    if any(child is decisive for child in children):
        return decisive
    rest = [child for child in children if not isinstance(child, bool)]
    return kind(*rest) if rest else not decisive


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
    singles = {name: take(table.flat(name), firsts).to_pylist() for name in names}
    return [({name: singles[name][group] for name in names}, chosen) for group, chosen in enumerate(rows)]


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
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, name)
    return path, path
