"""ParquetDataset: many files as one table, with partition columns from the paths."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias, Unpack

from fastpq.api.file import DEFAULT_BATCH_SIZE, ParquetFile
from fastpq.api.pickling import place_elsewhere, refuse_keys
from fastpq.api.reader_options import DEFAULTS, DatasetReaderOptions, reading, taken_place
from fastpq.arrays.table import AnyColumn, Table
from fastpq.common.extensions import export
from fastpq.common.progress import Meter, Progress, Span
from fastpq.datasets.common_metadata import CommonMetadata
from fastpq.datasets.dataset_answers import Member, Units
from fastpq.datasets.dataset_rows import DatasetRows, bytes_joined, in_batches, of_files
from fastpq.datasets.discovery import DataFile, list_dataset
from fastpq.datasets.hive import partition_value
from fastpq.datasets.known_footers import KnownFooters, known_footers
from fastpq.datasets.opened_files import DatasetDecryption, OpenedFiles, Taken
from fastpq.datasets.partition_filters import check_choice_of_files, filtered_columns, matching, may_match
from fastpq.datasets.unify import DatasetField, conform, field_of_column, given_fields, schema_of, types_of_partitions, united
from fastpq.errors import ParquetError, SchemaError
from fastpq.metadata.file_metadata import FileMetaData, are_described_alike
from fastpq.options import ReaderProperties
from fastpq.read.int96 import coarser, units_of
from fastpq.read.opener import StringLayout
from fastpq.read.rows import number_of_rows
from fastpq.schema.nested_types import Field
from fastpq.schema.parquet_schema import Int96UnitName, ParquetSchema

DatasetSchema: TypeAlias = Literal["union", "first"] | ParquetSchema | Mapping[str, Any] | Any
REPR_COLUMNS = 10       # names in a repr


@reading
class ParquetDataset(DatasetRows):
    """Many files as one table: the columns of the files, followed by the partition columns with values from the paths.

    The constructor reads the footers of all files, of remote ones many at a time, or of none with a schema and of one with
    ``schema="first"``. A column missing in a file is null in its rows. A partition column replaces a column of the same name in
    the files. An INT96 column has one unit in all files, in which the values of every file fit; ``iter_batches`` decodes the
    INT96 columns of all files before the first Table, unless ``coerce_int96_timestamp_unit`` names a unit. With "auto",
    ``schema`` has nanoseconds. A pickle has the paths and the schema, but no keys: datasets with keys are refused.

    Args:
        where: a directory, a glob, a path, an fsspec URL of these, or a list of them.
        schema: columns and types. ``"union"``: all columns of the files, each of a type for the values of all files (see
            ``fastpq.datasets.unify``); a column without such a type is refused when it is read.
            ``"first"``: the columns of the first file. Or a ParquetSchema, an Arrow schema, or a
            mapping of names to types as for ``write_table``. Values are converted where nothing is lost, other columns are left
            out. Partition columns come in any case; their types are inferred from all values unless the schema gives them.
        filters: conditions on partition columns, which leave out files, unopened. ``read`` and the other methods take conditions
            on all columns.
        partitioning: ``"hive"`` (``name=value`` directories) or None.
        decryption_properties: keys, or a function from a file's path to its keys, for remote files called in several threads. For
            URLs the path has the form used by the filesystem; a CryptoFactory with external key material then also needs its
            argument ``filesystem``.
        **options: any of the options of readers:

    Raises:
        FileNotFoundError: there is no file.
        SchemaError: files with incompatible columns or different partition columns, or filters on other columns.
        FormatError, CryptoError: an unreadable footer.
    """

    def __init__(
        self,
        where: Any,
        *,
        schema: DatasetSchema = "union",
        filters: Any = None,
        partitioning: str | None = "hive",
        decryption_properties: DatasetDecryption = None,
        **options: Unpack[DatasetReaderOptions],
    ) -> None:
        if partitioning not in ("hive", None):
            raise ValueError(f'partitioning must be "hive" or None, not {partitioning!r}')
        taken: dict[str, Any] = {**options}
        found, metadata, common = list_dataset(taken_place(where, taken))
        given = DEFAULTS | taken
        self._strings: StringLayout = given["strings"]
        self._unit: Int96UnitName = given["coerce_int96_timestamp_unit"]
        self._properties: ReaderProperties = given["properties"] or ReaderProperties()
        self._options = taken
        if not found:
            raise FileNotFoundError("a dataset of no files")
        listed = found
        found = found if partitioning else [replace(file, partitions={}) for file in found]
        fields = None if isinstance(schema, str) else given_fields(schema, "ns" if self._unit == "auto" else self._unit)
        self._partitions = types_of_partitions(found, fields or {})
        partitions = ParquetSchema.of(Field(name, type_) for name, type_ in self._partitions.items())
        values = [self._values_of(file) for file in found]
        if filters is not None:
            check_choice_of_files(filters, partitions)
        chosen = [filters is None or may_match(filters, partitions, each) for each in values]
        # a dataset without a file has the columns of the first one
        self._has_rows = any(chosen)
        kept = [number for number, is_kept in enumerate(chosen) if is_kept] or [0]
        self._files = [found[number] for number in kept]
        self._values = [values[number] for number in kept]
        self._own: list[dict[str, DatasetField] | None] = [None] * len(kept)    # columns of each file, known once it was open
        self._rows = [0] * len(kept)
        self._is_simple = decryption_properties is None and given["on_error"] == "raise"
        self._alike: tuple[FileMetaData, dict[str, DatasetField]] | None = None       # footer and columns of a file
        footers = known_footers(metadata, listed, taken) if self._is_simple and len(kept) > 1 else None
        # _metadata has the texts as well
        self._common = CommonMetadata(common.where if common and self._is_simple and footers is None else None, taken)
        self._opened = OpenedFiles(self._files, partial(ParquetFile, **taken), decryption_properties, footers)
        if footers is not None:
            self._know_all(footers)
        self._conflicts: dict[str, tuple[str, str]] = {}       # columns without a type for all files: reason and path
        self._fields = (self._columns_by(schema) if fields is None else fields) | {
            name: DatasetField(Field(name, type_)) for name, type_ in self._partitions.items()
        }
        for name in self._partitions.keys() & self._conflicts.keys():
            del self._conflicts[name]       # the columns of the files are not read
        self._schema: ParquetSchema = schema_of(self._fields.values())

    def __repr__(self) -> str:
        if not hasattr(self, "_schema"):        # in the traceback of a failed __init__
            return "<ParquetDataset>"
        more = ", ..." if len(self._schema.names) > REPR_COLUMNS else ""
        return f"<ParquetDataset of {len(self._files)} files: {', '.join(self._schema.names[:REPR_COLUMNS])}{more}>"

    def __getstate__(self) -> dict[str, Any]:
        """The files and what is known of them; another process opens the files when it reads them."""
        refuse_keys("ParquetDataset", self._opened.decryption)
        files = [replace(file, where=place_elsewhere(file.where), about=None) for file in self._files]
        kept = {name: value for name, value in self.__dict__.items() if name != "_opened"}
        return kept | {"_files": files, "_alike": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._opened = OpenedFiles(self._files, partial(ParquetFile, **self._options), None)

    def _know_all(self, footers: KnownFooters) -> None:
        """Note the columns and rows of all files, which have one schema."""
        with self._opened.opened(0, keep=True) as file:
            own = self._look(0, file)
        self._own = [own] * len(self._files)
        self._rows = [footers.rows[file.path] if self._has_rows else 0 for file in self._files]

    def _values_of(self, file: DataFile) -> dict[str, Any]:
        return {name: partition_value(text, self._partitions[name], name) for name, text in file.partitions.items()}

    def _columns_by(self, schema: DatasetSchema) -> dict[str, DatasetField]:
        """The columns by the rule of the caller."""
        if schema not in ("union", "first"):
            raise ValueError(f'schema must be "union", "first" or a schema, not {schema!r}')
        if schema == "first":
            with self._opened.opened(0, keep=True) as file:
                return dict(self._look(0, file))
        return united(zip(self.files, self._looks(), strict=True), self._conflicts)

    def _looks(self) -> list[dict[str, DatasetField]]:
        """The columns of each file; files not opened before are opened."""

        def look(number: int) -> dict[str, DatasetField]:
            known = self._own[number]
            if known is not None:
                return known
            with self._opened.opened(number, keep=True) as file:
                return self._look(number, file)

        found = list(self._opened.each(range(len(self._files)), look))
        self._opened.check_keys()
        return found

    def _look(self, number: int, file: ParquetFile) -> dict[str, DatasetField]:
        """The columns of an open file, noted with its rows."""
        known = self._own[number]
        if known is None:
            self._rows[number] = file.count() if self._has_rows else 0
            self._own[number] = known = self._columns_of(file)
        return known

    def _columns_of(self, file: ParquetFile) -> dict[str, DatasetField]:
        """The columns of an open file; of files whose footers describe the same columns, the first one is looked at."""
        alike = self._alike
        if alike is not None and are_described_alike(file.metadata, alike[0]):
            return alike[1]
        columns = file.read(row_groups=[])
        for name in columns.names:
            columns[name]       # refuses two columns of one name
        found = {name: field_of_column(name, column) for name, column in columns.items()}
        if self._options.get("on_error") == "null":
            found = {name: each.nullable() for name, each in found.items()}
        if self._is_simple:
            self._alike = file.metadata, found
        return found

    @property
    def schema(self) -> ParquetSchema:
        """The columns of the dataset; SchemaError for a column without a type for the values of all files."""
        self._refuse_conflicts(self._fields)
        return self._schema

    def _refuse_conflicts(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self._conflicts:
                reason, path = self._conflicts[name]
                raise SchemaError(reason, column=name, path=path)

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
        """Read all files into memory, of remote files many at a time.

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
        parts = list(self._whole(names, filters, progress))
        if units := units_of(parts):
            del parts       # not both in memory
            parts = list(self._whole(names, filters, progress, units))
        return of_files(parts or [self._nothing(names)], self._strings)

    def iter_batches(
        self,
        batch_size: int = DEFAULT_BATCH_SIZE,
        columns: Iterable[str] | None = None,
        *,
        filters: Any = None,
        progress: Progress | None = None,
    ) -> Iterator[Table]:
        """Read as Tables of batch_size rows, across files; memory is bounded as in ``ParquetFile.iter_batches``.

        Args:
            batch_size: rows of a Table; the last may have fewer.
            columns: as for ``read``.
            filters: as for ``read``.
            progress: as for ``read``.

        Raises:
            ParquetError: as ``read``.
        """
        batch_size = number_of_rows("batch_size", batch_size, 1)
        names = self._chosen(columns)
        self._check(filters)
        units = self._units_of_batches(names, filters)
        return in_batches(self._batches(batch_size, names, filters, progress, units), batch_size, self._strings)

    def __arrow_c_schema__(self) -> object:
        """Arrow PyCapsule interface: a struct of the columns' types."""
        return export("schema", self._nothing(self._chosen(None)))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow PyCapsule interface: the rows as a stream of batches (``iter_batches``), in bounded memory."""
        return export("batches", self.iter_batches(), lambda: self._nothing(self._chosen(None)), requested_schema)

    def _units_of_batches(self, names: list[str], filters: Any) -> Units:
        """The unit of each INT96 column of a read of all files: the coarsest that one of the files needs."""
        found: Units = {}
        if self._unit != "auto" or not self._schema.has_int96:
            return found

        def units(number: int) -> Units:
            with self._member(number, filters) as member:
                if member is None:
                    return {}
                paths = [(name,) for name in self._read_from(names, member.own)]
                return member.file._fitting_units(paths, member.pushed)

        for of_file in self._opened.each(range(len(self._files)), units):
            for place, unit in of_file.items():
                found[place] = coarser(found.get(place, unit), unit)
        return found

    def _read_from(self, names: Iterable[str], own: Mapping[str, DatasetField]) -> list[str]:
        """The columns read from a file with these columns."""
        return [name for name in names if name in own and name not in self._partitions]

    def _whole(self, names: list[str], filters: Any, progress: Progress | None, units: Units | None = None) -> Iterator[Table]:
        """The rows of each file that has some, in order; remote files are read ahead, all within max_allocation."""
        self._check(filters)
        meter, taken = Meter(progress, 0 if progress is None else self.num_rows), Taken(self._properties.allocation_limit)

        def read(number: int) -> list[Table]:
            with self._member(number, filters) as member:
                if member is None:
                    meter.add(self._rows[number])
                    return []
                tables = list(self._tables(member, names, None, units or {}, meter.span(self._rows[number])))
                taken.add(sum(map(bytes_joined, tables)))
                return tables

        for tables in self._opened.each(range(len(self._files)), read):
            yield from tables
        if None not in self._own:
            self._opened.check_keys()
        meter.finish()

    def _batches(
        self, batch_size: int, names: list[str], filters: Any, progress: Progress | None, units: Units
    ) -> Iterator[Table]:
        meter = Meter(progress, 0 if progress is None else self.num_rows)
        for number in range(len(self._files)):
            with self._member(number, filters) as member:
                if member is None:
                    meter.add(self._rows[number])
                else:
                    yield from self._tables(member, names, batch_size, units, meter.span(self._rows[number]))
        meter.finish()

    def _tables(
        self, member: Member, names: list[str], batch_size: int | None, units: Units, span: Span | None
    ) -> Iterator[Table]:
        """The matching rows of a file, whole or in batches, with all columns of the result."""
        file, told = member.file._in_units(units), None if span is None else span.reach
        wanted = list(dict.fromkeys([*names, *filtered_columns(member.filters)])) if member.is_converted else names
        paths = [(name,) for name in self._read_from(wanted, member.own)]       # paths, since names may hold dots
        tables = (
            [file.read(paths, filters=member.pushed, progress=told)]
            if batch_size is None
            else file.iter_batches(batch_size, paths, filters=member.pushed, progress=told)
        )
        for table in tables:
            whole = self._completed(table, wanted, member.number, units)
            yield matching(whole, member.filters, self._schema, self._unit_of).select(names) if member.is_converted else whole

    def _completed(self, table: Table, names: list[str], number: int, units: Units) -> Table:
        """Rows of a file with all columns of the result; nulls of INT96 columns that the file lacks are in given units."""
        columns: dict[str, AnyColumn] = {}
        for name in names:
            field = self._fields[name].in_units(units)
            if name in table and name not in self._partitions:
                own = self._own[number]
                assert own is not None, "noted when the file was opened"
                try:
                    columns[name] = conform(table[name], own[name], field)
                except ParquetError as error:
                    raise error.at(column=name, path=self._files[number].path) from None
            else:
                value = self._values[number].get(name)
                columns[name] = field.of_value(value, table.num_rows, self._strings)
        return Table(columns, num_rows=table.num_rows, metadata=self._common.added_to(table.metadata))

    def _nothing(self, names: list[str]) -> Table:
        """A table without rows, with the Arrow types of the first file."""
        with self._opened.opened(0) as file:
            own = self._look(0, file)
            return self._completed(file.read([(name,) for name in self._read_from(names, own)], row_groups=[]), names, 0, {})

    def _chosen(self, columns: Iterable[str] | None) -> list[str]:
        if isinstance(columns, str):
            raise SchemaError(f"columns is a list of names, not the one name {columns!r}")
        if columns is not None and not isinstance(columns, Iterable):
            raise SchemaError(f"columns is a list of names, not {columns!r}")
        names: list[Any] = self._names if columns is None else list(columns)
        for name in names:
            if not isinstance(name, str) or name not in self._fields:
                raise SchemaError(f"the dataset has no column {name!r}; it has {self._names}")
        self._refuse_conflicts(names)
        return list(dict.fromkeys(names))

    @property
    def _names(self) -> list[str]:
        return list(self._fields)
