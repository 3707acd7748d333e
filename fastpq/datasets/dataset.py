"""ParquetDataset: many files that are read as one table, with partition columns from the paths."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack

import numpy as np

from fastpq.api.file import DEFAULT_BATCH_SIZE, ParquetFile
from fastpq.api.pickling import place_elsewhere, refuse_keys
from fastpq.api.reader_options import DEFAULTS, OpeningOptions, taken_place
from fastpq.arrays.nodes import DURATION_UNITS
from fastpq.arrays.table import AnyColumn, Column, Table
from fastpq.common.extensions import export
from fastpq.common.lazy import LazyModule
from fastpq.common.progress import Meter, Progress, Span
from fastpq.datasets.columns_by_id import ids_of_schema
from fastpq.datasets.common_fields import with_common_fields, with_common_orders
from fastpq.datasets.common_metadata import CommonMetadata
from fastpq.datasets.discovery import list_dataset
from fastpq.datasets.filtered_files import BatchUnits, FilteredFile
from fastpq.datasets.hive import Partitioning, names_of_directories, values_of_partitions
from fastpq.datasets.joined_files import (
    end_of_tables,
    extremes_of_columns,
    extremes_of_partitions,
    in_batches,
    joined_bytes,
    joined_files,
)
from fastpq.datasets.keys_of_files import DatasetDecryption
from fastpq.datasets.known_footers import KnownFooters, known_footers
from fastpq.datasets.opened_files import AllocationCounter, DatasetMetadata, OpenedFiles
from fastpq.datasets.partition_filters import (
    check_choice_of_files,
    files_that_may_match,
    filtered_columns,
    filtered_paths,
    matching,
    rest_for,
)
from fastpq.datasets.requested_columns import CachedKeys, RequestedColumn, keys_of, pruned, requested_columns
from fastpq.datasets.stacked_files import StackedFiles
from fastpq.datasets.unify import DatasetField, conform, given_fields, schema_of, types_of_partitions, united
from fastpq.errors import ParquetError, SchemaError, UnsupportedError
from fastpq.filters.predicate import bind_filters, leaves, with_shared_lists
from fastpq.options import ReaderProperties, takes_options
from fastpq.read import rows
from fastpq.read.int96 import in_common_units
from fastpq.read.missing_keys import readable_in_all
from fastpq.read.opener import DecimalLayout, StringLayout
from fastpq.read.wide_decimals import with_wide_decimals
from fastpq.schema.nested_types import Field
from fastpq.schema.parquet_schema import ColumnDescriptor, ColumnKey, Int96UnitName, ParquetSchema
from fastpq.schema.types import ColumnType, TimeUnitName

if TYPE_CHECKING:
    import pandas

    from fastpq.api import keywords
    from fastpq.datasets import dataset_explanation
    from fastpq.index.ranges import Int64s
    from fastpq.picture import file_picture
    from fastpq.read.filtered.explain import Explanation
else:       # typing.get_type_hints looks up annotation types here
    dataset_explanation = LazyModule("fastpq.datasets.dataset_explanation")
    file_picture = LazyModule("fastpq.picture.file_picture")
    keywords = LazyModule("fastpq.api.keywords")
    pandas = LazyModule("pandas")

DatasetSchema: TypeAlias = Literal["union", "first"] | ParquetSchema | Mapping[str, Any] | Any
REPR_COLUMNS = 10       # number of names in a repr
LEAST_BATCH = 4096      # smallest batch, in rows, that is read for a head or a tail with filters


@takes_options(OpeningOptions, "dataset")
class ParquetDataset:
    """Many files as one table. It has the files' columns, then the partition columns, whose values are in the paths.

    The constructor reads the footers of all files, many at a time if they are remote. With ``schema="first"`` it reads one
    footer, and with a given schema none. A column that a file lacks is null in its rows. A partition column replaces a column
    that has the same name in the files. An INT96 column has one unit, which fits the values in all files that are read. To find
    it, ``iter_batches`` decodes the INT96 columns of all files before the first Table, unless ``coerce_int96_timestamp_unit``
    names a unit. With "auto", ``schema`` has nanoseconds. A pickle has the paths and the schema, but no keys, so a dataset with
    keys cannot be pickled.

    Args:
        where: a directory, a glob, a path, an fsspec URL for one of these, or a list of these.
        schema: columns and types. ``"union"``: the columns of all files, each with a type that holds the values in all files (see
            ``fastpq.datasets.unify``). A column for which there is no such type is refused when it is read. ``"first"``: the
            first file's columns. Otherwise a ParquetSchema, an Arrow schema, or a mapping of names to types as for
            ``write_table``. Then values are converted where nothing is lost, and other columns are left out. A column that has a
            field id in the schema is the file's column with this id, whatever its name is. Partition columns are always included.
            Their types are inferred from all values, unless the schema has them.
        filters: conditions on partition columns. Files that cannot match are left out and not opened. ``read`` and the other
            methods take conditions on all columns.
        partitioning: ``"hive"`` (``name=value`` directories), a list of partition column names for directories that are named by
            values alone (outermost first), or None.
        decryption_properties: keys, a DatasetDecryptionProperties, or a function that returns the keys for a file's path. For
            remote files the function is called in several threads, and the path has the form that the filesystem uses.
        metadata: footers that the caller has, as FileMetaData by path, with the paths that ``files`` has. Or a function that
            returns a path's footer, or None. Other footers are read. Each footer is used and checked as by ParquetFile. A pickle
            does not hold them.
        **options: any of the options of readers:

    Raises:
        FileNotFoundError: there is no file.
        SchemaError: the files have incompatible columns or different partition columns, or filters are on other columns.
        FormatError, CryptoError: a footer is not readable.
    """

    def __init__(
        self,
        where: Any,
        *,
        schema: DatasetSchema = "union",
        filters: Any = None,
        partitioning: Partitioning = "hive",
        decryption_properties: DatasetDecryption = None,
        metadata: DatasetMetadata = None,
        **options: Unpack[keywords.DatasetReaderOptions],
    ) -> None:
        if not (metadata is None or callable(metadata) or isinstance(metadata, Mapping)):
            raise TypeError(f"metadata of a dataset must map paths to FileMetaData, not be a {type(metadata).__name__}")
        directory_names = names_of_directories(partitioning)
        reader_options: dict[str, Any] = {**options}
        files, whole_metadata, common = list_dataset(taken_place(where, reader_options), directory_names=directory_names)
        all_options = DEFAULTS | reader_options
        self._strings: StringLayout = all_options["strings"]
        self._decimals: DecimalLayout = all_options["decimals"]
        self._int96_unit: Int96UnitName = all_options["coerce_int96_timestamp_unit"]
        self._properties: ReaderProperties = all_options["properties"] or ReaderProperties()
        self._options = reader_options
        if not files:
            raise FileNotFoundError("the dataset has no files")
        listed_files = files
        files = files if partitioning is not None else [replace(file, partitions={}) for file in files]
        self._names_by_id = ids_of_schema(schema)
        fields = None if isinstance(schema, str) else given_fields(schema, self._int96_unit)
        self._partitions = types_of_partitions(files, fields or {})
        partitions = ParquetSchema.of(Field(name, type_) for name, type_ in self._partitions.items())
        values = values_of_partitions((file.partitions for file in files), self._partitions)
        if filters is not None:
            check_choice_of_files(filters, partitions)
        matches = [True] * len(files) if filters is None else files_that_may_match(filters, partitions, values)
        # if no file matches, the dataset has the first file's columns
        self._has_rows = any(matches)
        numbers = [number for number, is_match in enumerate(matches) if is_match] or [0]
        self._files = [files[number] for number in numbers]
        self._cached_keys: CachedKeys | None = None       # for the file that was read last
        self._values = [values[number] for number in numbers]
        is_simple = decryption_properties is None and metadata is None and all_options["on_error"] == "raise"
        footers = known_footers(whole_metadata, listed_files, reader_options) if is_simple and len(numbers) > 1 else None
        # _metadata also has the key-value metadata that _common_metadata has, even if it has no row groups
        common = common or whole_metadata
        self._common = CommonMetadata(common.where if common and is_simple and footers is None else None, reader_options)
        self._open_files = self._opener(decryption_properties, footers, metadata)
        if footers is not None:
            self._open_files.note_all(footers)
        self._conflicts: dict[str, tuple[str, str]] = {}       # reason and path for each column that no type fits in all files
        self._fields = (self._fields_by(schema) if fields is None else fields) | {
            name: DatasetField(Field(name, type_)) for name, type_ in self._partitions.items()
        }
        for name in self._partitions.keys() & self._conflicts.keys():
            del self._conflicts[name]       # the files' own columns are not read
        self._schema: ParquetSchema = schema_of(self._fields.values())

    def __repr__(self) -> str:
        if not hasattr(self, "_schema"):        # __init__ has failed, and a traceback shows the object
            return "<ParquetDataset>"
        more = ", ..." if len(self._schema.names) > REPR_COLUMNS else ""
        return f"<ParquetDataset of {len(self._files)} files: {', '.join(self._schema.names[:REPR_COLUMNS])}{more}>"

    def __getstate__(self) -> dict[str, Any]:
        """Return the files and what is known about them. Another process opens the files when it reads them."""
        refuse_keys("ParquetDataset", self._open_files.decryption)
        files = [replace(file, where=place_elsewhere(file.where), about=None) for file in self._files]
        open_files = self._open_files.columns, self._open_files.rows
        return self.__dict__ | {"_files": files, "_open_files": open_files, "_cached_keys": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({"_cached_keys": None, "_decimals": "stored"} | state)      # older pickles lack it
        self._open_files = self._opener(None)
        self._open_files.columns, self._open_files.rows = state["_open_files"]

    def _opener(
        self, decryption: DatasetDecryption, footers: KnownFooters | None = None, metadata: DatasetMetadata = None
    ) -> OpenedFiles:
        open_file, on_error = partial(ParquetFile, **self._options), self._options.get("on_error", "raise")
        return OpenedFiles(
            self._files, open_file, decryption, footers, names_by_id=self._names_by_id, metadata=metadata,
            has_rows=self._has_rows, on_error=on_error, on_missing_key=self._options.get("on_missing_key", "raise"))

    # ---- files' columns

    def _fields_by(self, schema: DatasetSchema) -> dict[str, DatasetField]:
        """Return the columns by the caller's rule, which is "union" or "first"."""
        if schema not in ("union", "first"):
            raise ValueError(f'schema must be "union", "first" or a schema, not {schema!r}')
        if schema == "first":
            with self._open_files.with_columns(0, keep=True) as (_, own):
                return dict(own)
        return united(zip(self.files, self._open_files.columns_of_all(), strict=True), self._conflicts)

    @property
    def schema(self) -> ParquetSchema:
        """The dataset's columns.

        Raises:
            SchemaError: for a column there is no type that holds its values in all files.
        """
        self._refuse_conflicts(self._fields)
        return self._schema

    def _refuse_conflicts(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self._conflicts:
                reason, path = self._conflicts[name]
                raise SchemaError(reason, column=name, path=path)

    @property
    def files(self) -> list[str]:
        """File paths in reading order."""
        return [file.path for file in self._files]

    @property
    def partition_names(self) -> list[str]:
        """Partition column names, outermost first."""
        return list(self._partitions)

    # ---- all rows

    def read(
        self, columns: Iterable[str] | None = None, *, filters: Any = None, progress: Progress | None = None
    ) -> Table:
        """Read all files into memory. Remote files are read many at a time.

        Args:
            columns: column names, and dotted paths to values inside columns, in result order, or None for all.
            filters: as for ``ParquetFile.read``, on any columns, also partition columns. Files in other partitions are not
                opened.
            progress: called as ``progress(done, total)``, in rows of all files. Skipped files count too. The last call is
                ``(total, total)``.

        Raises:
            SchemaError: unknown columns or invalid filters.
            FormatError, UnsupportedError, LimitError, CryptoError: see fastpq.errors.
        """
        result_columns = self._requested(columns)
        parts = list(self._whole(result_columns, filters, progress)) or [self._nothing(result_columns)]
        return joined_files(with_common_orders(parts, self._strings), self._strings)

    def iter_batches(
        self,
        batch_size: int = DEFAULT_BATCH_SIZE,
        columns: Iterable[str] | None = None,
        *,
        filters: Any = None,
        progress: Progress | None = None,
    ) -> Iterator[Table]:
        """Yield the rows in all files as Tables with batch_size rows. A Table may have rows from several files.

        Memory is bounded as in ``ParquetFile.iter_batches``. A column has the same Arrow type in all Tables: the type
        from the first file that has the column. An ordered dictionary keeps its order if all files agree on it: for this, the
        dictionary pages of such columns are read in all files before the first Table.

        Args:
            batch_size: rows in a Table. The last Table may have fewer rows.
            columns: as for ``read``.
            filters: as for ``read``.
            progress: as for ``read``.

        Raises:
            ParquetError: as ``read``.
        """
        batch_size = rows.number_of_rows("batch_size", batch_size, 1)
        result_columns = self._requested(columns)
        filters = self._checked(filters)
        units = self._units_of_batches(result_columns, filters)
        tables = self._batches(batch_size, result_columns, filters, progress, units)
        tables = with_common_fields(tables, self._open_files, is_one_file=len(self._files) == 1)
        return in_batches(tables, batch_size, self._strings)

    def to_pandas(
        self,
        columns: Iterable[Any] | None = None,
        *,
        filters: Any = None,
        dtype_backend: Literal["numpy_nullable", "pyarrow"] | None = None,
        types_mapper: Callable[[Any], Any] | None = None,
        ignore_metadata: bool = False,
        progress: Progress | None = None,
    ) -> pandas.DataFrame:
        """Return the rows as a pandas DataFrame. The first file's metadata give the index, the labels and the dtypes.

        Args:
            columns: as for ``read``, and the index is always included. If the DataFrame's labels are not text, use these labels
                here and in filters.
            filters: as for ``read``.
            dtype_backend, types_mapper, ignore_metadata: as for ``read_pandas``.
            progress: as for ``read``.

        Raises:
            UnsupportedError: pandas is not installed.
            ParquetError: as ``read``.
        """
        from fastpq.api.labelled_columns import frame_by
        from fastpq.convert.pandas_metadata import PandasMetadata, pandas_metadata

        with self._open_files.opened(0, keep=True) as file:
            texts = self._common.added_to(file._stored_fields.texts)
        description = PandasMetadata() if ignore_metadata else pandas_metadata(texts.get)
        read = partial(self.read, progress=progress)
        return frame_by(description, read, list(self._fields), columns, filters, dtype_backend, types_mapper)

    def __arrow_c_schema__(self) -> object:
        """Arrow PyCapsule interface: return a struct of the columns' types."""
        return export("schema", self._nothing(self._requested(None)))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow PyCapsule interface: return the rows as a stream of batches (``iter_batches``), in bounded memory."""
        dataset = copy.copy(self)
        if requested_schema is None:        # Arrow takes decimals of 16 bytes without a copy
            dataset._decimals = "decimal128"
        return export("batches", dataset.iter_batches(), lambda: dataset._nothing(dataset._requested(None)), requested_schema)

    # ---- some rows

    def head(self, n: int, columns: Iterable[str] | None = None, *, filters: Any = None) -> Table:
        """Read the first rows. Files after these rows are not read.

        Args:
            n: number of rows. If the dataset has fewer, all are returned.
            columns: as for ``read``.
            filters: as for ``read``. The first rows that match are returned.

        Raises:
            ValueError: a negative number.
            ParquetError: as ``read``.
        """
        return self._end(rows.number_of_rows("n", n), self._requested(columns), filters, is_head=True)

    def tail(self, n: int, columns: Iterable[str] | None = None, *, filters: Any = None) -> Table:
        """Read the last rows. Files before these rows are not read.

        Args:
            n: number of rows. If the dataset has fewer, all are returned.
            columns: as for ``read``.
            filters: as for ``read``. The last rows that match are returned.

        Raises:
            ValueError: a negative number.
            ParquetError: as ``read``.
        """
        return self._end(rows.number_of_rows("n", n), self._requested(columns), filters, is_head=False)

    def take(self, indices: Any, columns: Iterable[str] | None = None) -> Table:
        """Read rows by their numbers, in any order and with repetitions, as numpy.take. Files without such a row are not read.

        Args:
            indices: row numbers, shape (n,), that count through all files in reading order. Negative ones count from the end.
            columns: as for ``read``.

        Returns:
            A Table of n rows, in the order of the indices.

        Raises:
            SchemaError: a row is outside the dataset.
            TypeError: the indices are not whole numbers.
            ParquetError: as ``read``.
        """
        result_columns, num_rows = self._requested(columns), self.num_rows
        numbers = rows.check_indices(indices, num_rows, "dataset")
        parts, read_numbers = self._rows_of_files(np.unique(numbers), result_columns)
        table = joined_files(parts or [self._nothing(result_columns)], self._strings)
        if np.array_equal(read_numbers, numbers):
            return table
        places = np.searchsorted(read_numbers, numbers[np.isin(numbers, read_numbers)])
        return table._of((column.take(places) for column in table.columns), len(places))

    def sample(self, n: int, columns: Iterable[str] | None = None, *, seed: Any = None) -> Table:
        """Read n different rows in file order. They are chosen at random, with equal chances.

        Args:
            n: number of rows.
            columns: as for ``read``.
            seed: seed for numpy.random.default_rng. With equal seeds, the same files give the same rows.

        Raises:
            SchemaError: the dataset has fewer rows.
            ParquetError: as ``read``.
        """
        return self.take(rows.sampled_rows(n, self.num_rows, seed, "dataset"), columns)

    # ---- answers from footers, if footers have them

    @property
    def num_rows(self) -> int:
        """Number of rows in all files. Files that were not opened before are opened."""
        self._open_files.columns_of_all()
        return sum(self._open_files.rows)

    def count(self, filters: Any = None) -> int:
        """Count the rows that match filters.

        Args:
            filters: as for ``read``. None counts all rows.

        Raises:
            ParquetError: as ``read``.
        """
        if filters is None:
            return self.num_rows
        filters = self._checked(filters)

        def count(number: int) -> int:
            with self._filtered_file(number, filters) as member:
                if member is None:
                    return 0
                if member.is_converted:
                    return sum(table.num_rows for table in self._tables(member, {}, DEFAULT_BATCH_SIZE, None, None))
                return member.file.count(member.filters)

        return sum(self._open_files.each(count))

    def explain(self, filters: Any, columns: Iterable[str] | None = None) -> dataset_explanation.DatasetExplanation:
        """Return which files, row groups, pages and bytes a ``read`` with filters takes, and why the others are left out.

        Files that partition values and missing columns rule out are not opened. No data page is read.

        Args:
            filters: as for ``read``.
            columns: as for ``read``.

        Raises:
            ParquetError: as ``read``.
        """
        from fastpq.datasets.dataset_explanation import DatasetExplanation

        result_columns = self._requested(columns)
        filters = self._checked(filters)

        def explain(number: int) -> Explanation | None:
            with self._filtered_file(number, filters) as member:
                if member is None:
                    return None
                read_columns = self._with_filtered(result_columns, member)
                return member.file.explain(member.pushed_filters, self._keys(member.file, member.own, read_columns))

        explanations = list(self._open_files.each(explain))
        by_path = {file.path: explanation for file, explanation in zip(self._files, explanations, strict=True)}
        files = {path: explanation for path, explanation in by_path.items() if explanation is not None}
        return DatasetExplanation(files, [path for path, explanation in by_path.items() if explanation is None])

    def layout(self, filters: Any = None, columns: Iterable[str] | None = None) -> file_picture.FilePicture:
        """Return a picture of the files: who owns each byte, what takes time, and what a filter reads. A notebook shows it.

        The picture has files in the place of row groups. All files are opened. No data page is read.

        Args:
            filters: as for ``read``. What they leave out is dim in the picture.
            columns: columns of the read that the filters belong to, as for ``read``.

        Raises:
            ParquetError: as ``read``.
        """
        from fastpq.datasets.dataset_layout import picture_of_dataset

        return picture_of_dataset(self, filters, columns)

    def min_max(self, column: str) -> tuple[Any, Any]:
        """Return a column's smallest and largest value in all files. Row groups without exact statistics are read.

        For a partition column the paths give the answer. Only files with the smallest and the largest value are opened, to see
        whether they have rows.

        Args:
            column: name of a flat column or a partition column.

        Returns:
            Python objects, as in ``Column.to_pylist``, or (None, None) for a column without values. NaNs are left out.

        Raises:
            SchemaError: the column is unknown, has no order, or has no type that fits all files.
            UnsupportedError: the column is nested.
        """
        name, field = self._flat(column)
        if name in self._partitions:
            return extremes_of_partitions([values[name] for values in self._values], self._open_files.rows_in)

        def extremes(number: int) -> Column | None:
            if not self._has_rows:
                return None
            with self._open_files.with_columns(number) as (file, own):
                values = file._extremes(file.schema.select([(name,)])[0].index) if name in own else None
                file_extremes = None if values is None else conform(values, own[name], field)
                assert file_extremes is None or isinstance(file_extremes, Column)
                return file_extremes

        columns = [values for values in self._open_files.each(extremes) if values is not None]
        return extremes_of_columns(columns, name)

    def readable_columns(self) -> list[str]:
        """Return the columns that can be read in all files with the reader's keys. They fit ``columns`` of ``read``.

        All files are opened. A file without a column does not count. Partition columns are always readable.

        Raises:
            KeyAccessError: the key service did not say whether the reader may have a key.
            ParquetError: as ``read``.
        """

        return readable_in_all(self._fields, self._open_files.readable_columns(self._partitions))

    def null_count(self, column: str) -> int:
        """Count a column's nulls in all files. Row groups without a null count in their statistics are read.

        In a file without the column, all rows are null. For a partition column, all rows in files without a value are null.

        Args:
            column: name of a flat column or a partition column.

        Raises:
            SchemaError: the column is unknown, or has no type that fits all files.
            UnsupportedError: the column is nested.
        """
        name, _ = self._flat(column)

        def nulls(number: int) -> int:
            if not self._has_rows or self._values[number].get(name) is not None:
                return 0
            with self._open_files.with_columns(number) as (file, own):
                if name in self._partitions or name not in own:
                    return self._open_files.rows[number]
                return file.null_count(file.schema.select([(name,)])[0].index)

        return sum(self._open_files.each(nulls))

    # ---- what is read from each file

    def _requested(self, columns: Iterable[Any] | None) -> dict[str, RequestedColumn]:
        """Return the requested columns by name, in result order. None requests all."""
        if isinstance(columns, str) or not (columns is None or isinstance(columns, Iterable)):
            self._schema.select(columns)        # raises the same error as for a file
        result_columns = requested_columns(self._fields if columns is None else columns, self._fields, self._schema)
        self._refuse_conflicts(result_columns)
        return result_columns

    def _flat(self, column: str) -> tuple[str, DatasetField]:
        """Return a flat column's name and field."""
        ((name, result_column),) = self._requested([column]).items()
        if not isinstance(result_column.field.field.type, ColumnType):
            raise UnsupportedError("statistics of a nested column", column=name)
        return name, result_column.field

    def _keys(
        self, file: ParquetFile, own: Mapping[str, DatasetField], result_columns: Mapping[str, RequestedColumn]
    ) -> list[ColumnKey] | None:
        """Return the keys by which the requested columns are read from a file. Columns that it lacks have no key.

        Files with equal schemas share the keys. None stands for all columns of the file in their order.
        """
        cached_keys = self._cached_keys
        if cached_keys is not None and cached_keys.is_for(file.schema, own, result_columns):
            return cached_keys.keys
        from_file = [column for name, column in result_columns.items() if name in own and name not in self._partitions]
        keys = keys_of(from_file, file.schema)
        self._cached_keys = CachedKeys(file.schema, own, result_columns, keys)
        return keys

    def _with_filtered(
        self, result_columns: Mapping[str, RequestedColumn], member: FilteredFile
    ) -> Mapping[str, RequestedColumn]:
        """Return the columns to read from a file. Filters that need converted values also need their whole columns."""
        if not member.is_converted:
            return result_columns
        return {**result_columns, **{name: RequestedColumn(self._fields[name]) for name in filtered_columns(member.filters)}}

    def _checked(self, filters: Any) -> Any:
        """Return filters that can be bound for each file. Wrong filters are refused before any file is read."""
        if filters is None:
            return None
        filters = with_shared_lists(filters)
        predicate = bind_filters(filters, self._schema, unit_of=self._unit_of)
        self._refuse_conflicts(leaf.column.path[0] for leaf in leaves(predicate))
        return filters

    def _unit_of(self, leaf: ColumnDescriptor) -> str | None:
        """Return a column's duration unit, or None for other columns and for struct fields."""
        field = self._fields.get(leaf.path[0]) if len(leaf.path) == 1 else None
        return None if field is None or field.duration is None else DURATION_UNITS[field.duration.format]

    @contextmanager
    def _filtered_file(self, number: int, filters: Any) -> Iterator[FilteredFile | None]:
        """Provide an open file with the filters that must be evaluated on its rows.

        Provide None if partition values and missing columns rule out all rows of the file.
        """
        noted_columns, values = self._open_files.columns[number], self._values[number]
        columns = self._fields if noted_columns is None else noted_columns
        rest = None if filters is None else rest_for(filters, self._schema, values, columns, self._unit_of)
        if rest is False or not self._has_rows:
            yield None
            return
        with self._open_files.with_columns(number) as (file, own):
            if noted_columns is None and filters is not None:
                rest = rest_for(filters, self._schema, values, own, self._unit_of)
            paths = filtered_paths(rest)
            is_converted = any(not own[path[0]].is_stored_as(self._fields[path[0]]) for path in paths)
            file._refuse_locked([path[:1] for path in paths] if is_converted else paths)      # whole columns are converted
            yield None if rest is False else FilteredFile(number, file, own, None if rest is True else rest, is_converted)

    def _units_of_batches(self, result_columns: Mapping[str, RequestedColumn], filters: Any) -> BatchUnits | None:
        """Return the INT96 units for batches from all files.

        Return None if the dataset has no INT96 columns, or if the option ``coerce_int96_timestamp_unit`` gives the unit.
        """
        if self._int96_unit != "auto" or not self._schema.has_int96:
            return None

        def look(number: int) -> tuple[Mapping[int, TimeUnitName], Table] | None:
            with self._filtered_file(number, filters) as member:
                if member is None:
                    return None
                file, keys = member.file, self._keys(member.file, member.own, result_columns)
                with file._errors():
                    request = file._request(keys, None, None, member.pushed_filters)
                    reader, _ = file._reader().with_units(request, [*request.columns, *request.filtered_columns])
                nothing = file._with(reader.file).read(keys, row_groups=[])
                return reader.file.int96_units, self._completed(nothing, result_columns, number)

        looks = enumerate(self._open_files.each(look))
        units = {number: each for number, each in looks if each is not None}
        tables = in_common_units([table for _, table in units.values()]) if units else [self._nothing(result_columns)]
        return BatchUnits({number: of_file for number, (of_file, _) in units.items()}, tables[0])

    # ---- tables of files

    def _whole(self, result_columns: Mapping[str, RequestedColumn], filters: Any, progress: Progress | None) -> Iterator[Table]:
        """Yield the matching rows of each file, in order. Remote files are read ahead. All rows must fit max_allocation."""
        filters = self._checked(filters)
        meter = Meter(progress, 0 if progress is None else self.num_rows)
        counter = AllocationCounter(self._properties.allocation_limit)

        def read(number: int) -> list[Table]:
            with self._filtered_file(number, filters) as member:
                if member is None:
                    meter.add(self._open_files.rows[number])
                    return []
                tables = list(self._tables(member, result_columns, None, None, meter.span(self._open_files.rows[number])))
                counter.add(sum(map(joined_bytes, tables)))
                return tables

        def rest_of(values: Mapping[str, Any], own: Mapping[str, DatasetField]) -> Any:
            is_whole = self._has_rows and not self._names_by_id
            return is_whole and (filters is None or rest_for(filters, self._schema, values, own, self._unit_of))

        stacks = StackedFiles(
            self._open_files, self._files, result_columns, self._keys, self._values, self._partitions, self._strings,
            self._common)
        for tables in stacks.tables(read, rest_of, counter, meter):
            yield from map(self._widened, tables)
        if None not in self._open_files.columns:
            self._open_files.check_keys()
        meter.finish()

    def _batches(
        self,
        batch_size: int,
        result_columns: Mapping[str, RequestedColumn],
        filters: Any,
        progress: Progress | None,
        units: BatchUnits | None,
    ) -> Iterator[Table]:
        meter = Meter(progress, 0 if progress is None else self.num_rows)
        for number in range(len(self._files)):
            with self._filtered_file(number, filters) as member:
                if member is None:
                    meter.add(self._open_files.rows[number])
                else:
                    yield from self._tables(member, result_columns, batch_size, units, meter.span(self._open_files.rows[number]))
        meter.finish()

    def _tables(
        self,
        member: FilteredFile,
        result_columns: Mapping[str, RequestedColumn],
        batch_size: int | None,
        units: BatchUnits | None,
        span: Span | None,
    ) -> Iterator[Table]:
        """Yield a file's matching rows, as one Table or in batches, with all result columns."""
        file = member.file if units is None else units.applied_to(member)
        # filters on converted values compare decimals as they are stored
        file = file._with_decimals("stored" if member.is_converted else self._decimals)
        progress = None if span is None else span.reach
        read_columns = self._with_filtered(result_columns, member)
        keys = self._keys(member.file, member.own, read_columns)
        tables = (
            [file.read(keys, filters=member.pushed_filters, progress=progress)]
            if batch_size is None
            else file.iter_batches(batch_size, keys, filters=member.pushed_filters, progress=progress)
        )
        for table in tables:
            whole = self._completed(table, read_columns, member.number)
            if member.is_converted:
                rows_ = matching(whole, member.filters, self._schema, self._unit_of)
                columns = {name: pruned(rows_[name], column.field.field.type) for name, column in result_columns.items()}
                whole = Table(columns, num_rows=rows_.num_rows, metadata=rows_.metadata)
            yield self._widened(whole if units is None else in_common_units([units.empty_table, whole])[1])

    def _completed(self, table: Table, result_columns: Mapping[str, RequestedColumn], number: int) -> Table:
        """Return a file's rows with all result columns."""
        columns: list[tuple[str, AnyColumn]] = []
        own, partition_values = self._open_files.columns[number], self._values[number]
        for name, column in result_columns.items():
            if name in table and name not in self._partitions:
                assert own is not None, "noted when the file was opened"
                values = table[name]
                if not column.is_held_by(values, own[name]):
                    try:
                        values = column.conformed(values, own[name])
                    except ParquetError as error:
                        raise error.at(column=name, path=self._files[number].path) from None
            else:
                values = column.field.of_value(partition_values.get(name), table.num_rows, self._strings)
            columns.append((name, values))
        whole = Table._made(columns, table.num_rows)
        whole.metadata = self._common.added_to(table.metadata)
        return whole

    def _nothing(self, result_columns: Mapping[str, RequestedColumn]) -> Table:
        """Return a table without rows that has the first file's Arrow types."""
        with self._open_files.with_columns(0) as (file, own):
            table = file.read(self._keys(file, own, result_columns), row_groups=[])
            return self._widened(self._completed(table, result_columns, 0))

    def _widened(self, table: Table) -> Table:
        """Return a table with 16 bytes for each decimal if this was requested. Columns that files lack have the stored width."""
        return table._of(map(with_wide_decimals, table.columns)) if self._decimals == "decimal128" else table

    def _end(self, n: int, result_columns: Mapping[str, RequestedColumn], filters: Any, is_head: bool) -> Table:
        """Return the first or the last n rows that match."""
        filters = self._checked(filters)
        parts: list[Table] = []
        missing = n
        numbers, counter = range(len(self._files)), AllocationCounter(self._properties.allocation_limit)
        for number in numbers if is_head else reversed(numbers):
            if not missing or not self._has_rows:
                break
            with self._filtered_file(number, filters) as member:
                tables = [] if member is None else self._end_of_file(member, missing, result_columns, is_head)
            counter.add(sum(map(joined_bytes, tables)))
            missing -= sum(table.num_rows for table in tables)
            parts = [*parts, *tables] if is_head else [*tables, *parts]
        return joined_files(parts or [self._nothing(result_columns)], self._strings)

    def _end_of_file(
        self, member: FilteredFile, n: int, result_columns: Mapping[str, RequestedColumn], is_head: bool
    ) -> list[Table]:
        if member.filters is None and self._options.get("on_error") != "skip":      # "skip" may leave out rows at either end
            keys = self._keys(member.file, member.own, result_columns)
            table = member.file.head(n, keys) if is_head else member.file.tail(n, keys)
            return [self._widened(self._completed(table, result_columns, member.number))]
        batch_size = min(max(n, LEAST_BATCH), DEFAULT_BATCH_SIZE)
        return end_of_tables(self._tables(member, result_columns, batch_size, None, None), n, is_head)

    def _rows_of_files(self, numbers: Int64s, result_columns: Mapping[str, RequestedColumn]) -> tuple[list[Table], Int64s]:
        """Return a table for each file that has one of the rows, and the numbers of the rows that were read.

        The given numbers must be ascending and different. Rows that damage has lost are left out of the result.
        """
        rows_of_files = self._open_files.rows
        ends = np.cumsum(rows_of_files, dtype=np.int64)
        places = [0, *np.searchsorted(numbers, ends).tolist()]
        counter = AllocationCounter(self._properties.allocation_limit)

        def read(number: int) -> tuple[Table, Int64s]:
            start = ends[number] - rows_of_files[number]
            own_rows = numbers[places[number] : places[number + 1]] - start
            with self._open_files.with_columns(number) as (file, own):
                keys = self._keys(file, own, result_columns)
                before = len(file._losses)
                table = self._widened(self._completed(file.take(own_rows, keys), result_columns, number))
                if table.num_rows < len(own_rows):      # on_error="skip"
                    for loss in file._losses[before:]:
                        own_rows = own_rows[(own_rows < loss.start) | (own_rows >= loss.stop)]
            counter.add(joined_bytes(table))
            return table, own_rows + start

        files = [number for number in range(len(self._files)) if places[number] < places[number + 1]]
        parts = list(self._open_files.each(read, files))
        return [table for table, _ in parts], np.concatenate([numbers[:0], *(rows_ for _, rows_ in parts)])
