"""ParquetDataset and read_dataset: many files as one table, with partition columns from the paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from fastpq.api.file import DEFAULT_BATCH_SIZE, ParquetFile
from fastpq.arrays.table import AnyColumn, Table
from fastpq.common.progress import Meter, Progress
from fastpq.convert.nulls import null_column
from fastpq.convert.numpy_input import column_from_numpy
from fastpq.datasets.discovery import DataFile, find_files
from fastpq.datasets.hive import infer_partition_type, partition_value
from fastpq.datasets.unify import conform, schema_of, unify
from fastpq.encryption.properties import FileDecryptionProperties
from fastpq.errors import LimitError, SchemaError
from fastpq.filters.literals import domain_of
from fastpq.filters.predicate import And, Bounds, Condition, Or, Outcome, bind_filters
from fastpq.options import MemoryMap, OnError, ReaderProperties
from fastpq.read.int96 import coarser, units_of
from fastpq.read.opener import StringLayout
from fastpq.schema.nested_types import Field
from fastpq.schema.parquet_schema import Int96UnitName, ParquetSchema
from fastpq.schema.types import ColumnType, TimeUnitName, Type

Units: TypeAlias = dict[tuple[str, int], TimeUnitName]     # of INT96 columns, by name and number of the leaf
DatasetDecryption: TypeAlias = FileDecryptionProperties | Callable[[str], FileDecryptionProperties | None] | None


class ParquetDataset:
    """Many files as one table: the columns of the files, followed by the partition columns with values from the paths.

    The constructor reads the footers of all files; reads open the files again. A column missing in a file is null in its rows.
    Signed integers of different widths become the widest. A partition column replaces a column of the same name in the files.
    An INT96 column has one unit in all files, in which the values of every file fit; ``iter_batches`` decodes the INT96 columns
    of all files before the first Table, unless ``coerce_int96_timestamp_unit`` names a unit. With "auto", ``schema`` has
    nanoseconds.

    Args:
        where: a directory, a glob, a path, an fsspec URL of these, or a list of them.
        partitioning: ``"hive"`` (``name=value`` directories) or None.
        decryption_properties: keys, or a function from a file's path to its keys. For URLs the path has the form used by the
            filesystem; a CryptoFactory with external key material then also needs its argument ``filesystem``.
        memory_map: ``"keep"`` maps a local file, and columns may be views of the map: nobody may truncate or change the file as
            long as a column is in use. False and True read the file, and a change of the file later changes no column.
        threads: number of chunks decoded at the same time; None for one a core.
        strings: layout of variable-length values: ``"views"`` (no copy), ``"offsets"`` or ``"dictionary"`` (codes).
        coerce_int96_timestamp_unit: unit of INT96 timestamps in memory: ``"ms"``, ``"us"``, ``"ns"``, or ``"auto"`` for the
            finest unit in which the values read of a column fit.
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
        memory_map: MemoryMap = False,
        threads: int | None = None,
        strings: StringLayout = "views",
        coerce_int96_timestamp_unit: Int96UnitName = "auto",
        arrow_schema: bool = True,
        properties: ReaderProperties | None = None,
        on_error: OnError = "raise",
    ) -> None:
        if partitioning not in ("hive", None):
            raise ValueError(f'partitioning must be "hive" or None, not {partitioning!r}')
        self._decryption = decryption_properties
        self._strings = strings
        self._unit = coerce_int96_timestamp_unit
        self._properties = properties or ReaderProperties()
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
        unused = _UnusedKeys()
        self._own: list[dict[str, Field]] = []
        self._rows: list[int] = []
        for data_file in self._files:
            keys = self._keys_of(data_file)
            with self._open(data_file, keys) as file:
                unused.add(keys, file)
                self._own.append(self._fields_of(file))
                self._rows.append(file.count())
        unused.check()
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
        parts = self._bounded(self._parts(names, filters, progress, None))
        if units := units_of(parts):
            parts = self._bounded(self._parts(names, filters, progress, None, units))
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
        names = self._chosen(columns)
        units = self._units(names, filters) if self._unit == "auto" else {}
        return self._parts(names, filters, progress, batch_size, units)

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

    def _units(self, names: list[str], filters: Any) -> Units:
        """The unit of each INT96 column of a read of all files: the coarsest that one of the files needs."""
        found: Units = {}
        if not any(column.physical_type is Type.INT96 for column in self.schema.columns):
            return found
        for number, data_file in enumerate(self._files):
            rest = True if filters is None else self._residual(filters, number)
            if rest is not False:
                with self._open(data_file, self._keys_of(data_file)) as file:
                    paths = [(name,) for name in self._own_names(names, number)]
                    for place, unit in file._fitting_units(paths, None if rest is True else rest).items():
                        found[place] = coarser(found.get(place, unit), unit)
        return found

    def _own_names(self, names: list[str], number: int) -> list[str]:
        """The columns read from a file."""
        return [name for name in names if name in self._own[number] and name not in self._partitions]

    def _bounded(self, parts: Iterator[Table]) -> list[Table]:
        """The given Tables; LimitError where they take more than max_allocation together."""
        limit = self._properties.allocation_limit
        kept: list[Table] = []
        size = 0
        for part in parts:
            size += part.nbytes
            if size > limit:
                raise LimitError(f"the values of {len(kept) + 1} files take {size} bytes, over max_allocation ({limit})")
            kept.append(part)
        return kept

    def _parts(
        self,
        names: list[str],
        filters: Any,
        progress: Progress | None,
        batch_size: int | None,
        units: Units | None = None,
    ) -> Iterator[Table]:
        if filters is not None:
            bind_filters(filters, self.schema)      # refuses wrong filters before any file is read
        meter = Meter(progress, self.num_rows)
        for number, data_file in enumerate(self._files):
            rest = True if filters is None else self._residual(filters, number)
            if rest is False:
                meter.add(self._rows[number])
            else:
                with self._open(data_file, self._keys_of(data_file)) as file:
                    file._with_units(units or {})
                    # paths, since names may hold dots
                    paths, wanted = [(name,) for name in self._own_names(names, number)], None if rest is True else rest
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
        if column.is_nested or not column.type.is_variable:
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

    def _open(self, file: DataFile, keys: FileDecryptionProperties | None) -> ParquetFile:
        # a column missing in one file may be in another: _UnusedKeys looks at all of them
        keys = keys.with_missing_columns() if isinstance(keys, FileDecryptionProperties) else keys
        return self._open_file(file.where, decryption_properties=keys)

    def _keys_of(self, file: DataFile) -> FileDecryptionProperties | None:
        keys = self._decryption
        return keys if keys is None or isinstance(keys, FileDecryptionProperties) else keys(file.path)

    @staticmethod
    def _fields_of(file: ParquetFile) -> dict[str, Field]:
        columns = file.read(row_groups=[])
        for name in columns.names:
            columns[name]       # refuses two columns of one name
        return {name: Field(name, column.type, column.nullable) for name, column in columns.items()}


class _UnusedKeys:
    """Explicit keys for columns that no file of a dataset has."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._unused: set[str] = set()

    def add(self, keys: FileDecryptionProperties | None, file: ParquetFile) -> None:
        """Take the keys of a file into account."""
        if keys is None or not len(keys.column_keys):
            return
        unused = set(keys.column_keys.unknown(column.path for column in file.schema.columns))
        self._used |= set(keys.column_keys.paths()) - unused
        self._unused |= set() if keys.allow_missing_columns else unused

    def check(self) -> None:
        """Raises SchemaError if there are such keys."""
        missing = sorted(self._unused - self._used)
        if missing:
            raise SchemaError(
                f"keys for columns that no file of the dataset has: {', '.join(missing)} "
                "(allow_missing_columns=True reads them all the same)"
            )


def read_dataset(
    where: Any,
    columns: Iterable[str] | None = None,
    *,
    filters: Any = None,
    progress: Progress | None = None,
    partitioning: str | None = "hive",
    decryption_properties: DatasetDecryption = None,
    memory_map: MemoryMap = False,
    threads: int | None = None,
    strings: StringLayout = "views",
    coerce_int96_timestamp_unit: Int96UnitName = "auto",
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
        memory_map: ``"keep"`` maps a local file, and columns may be views of the map: nobody may truncate or change the file as
            long as a column is in use. False and True read the file, and a change of the file later changes no column.
        threads: number of chunks decoded at the same time; None for one a core.
        strings: layout of variable-length values: ``"views"`` (no copy), ``"offsets"`` or ``"dictionary"`` (codes).
        coerce_int96_timestamp_unit: unit of INT96 timestamps in memory: ``"ms"``, ``"us"``, ``"ns"``, or ``"auto"`` for the
            finest unit in which the values read of a column fit.
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
    return one.take(np.zeros(count, np.int64))


def _simplified(kind: type[And | Or], children: list[Any]) -> Any:
    """Conditions joined by And or Or, simplified by conditions known to be true or false."""
    decisive = kind is Or
    if any(child is decisive for child in children):
        return decisive
    rest = [child for child in children if not isinstance(child, bool)]
    return kind(*rest) if rest else not decisive
