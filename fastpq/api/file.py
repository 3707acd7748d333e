"""ParquetFile: reading one file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

import numpy as np

from fastpq.api.indexed_file import IndexedFile, RowRangesLike, StoredFields
from fastpq.api.reader_options import DEFAULTS, PLACING, ReaderOptions, reading, taken_place, unknown
from fastpq.arrays.table import Column, Table
from fastpq.common.extensions import export
from fastpq.common.lazy import LazyModule
from fastpq.common.parallel import resolve_threads
from fastpq.common.progress import Progress
from fastpq.errors import ParquetError, SchemaError
from fastpq.format.stored_footer import ARROW_KEY
from fastpq.io.source import IOCounts, open_source
from fastpq.metadata.footer import read_finished
from fastpq.metadata.key_values import KeyValues
from fastpq.options import ReaderProperties
from fastpq.read import rows
from fastpq.read.file_reader import FileReader, OpenFile, Wanted, in_fitting_units
from fastpq.schema.parquet_schema import ColumnDescriptor, ColumnKey
from fastpq.stats.quirks import for_writer, mistakes_of

if TYPE_CHECKING:
    import pandas

    from fastpq.read import explain as explaining
    from fastpq.recovery import losses
    from fastpq.recovery.losses import Loss
    from fastpq.recovery.reading import RecoveringReader
else:       # types of annotations, found by typing.get_type_hints
    explaining = LazyModule("fastpq.read.explain")
    losses = LazyModule("fastpq.recovery.losses")
    pandas = LazyModule("pandas")

DEFAULT_BATCH_SIZE = 65_536

_DEFAULT_PROPERTIES = ReaderProperties()


@reading
class ParquetFile(IndexedFile):
    """A Parquet file to read from; a context manager.

    A pickle of a file has its place and options, by which another process opens the file again. Files over streams or buffers,
    and files with keys, are refused with an UnsupportedError.

    Args:
        where: a path, a bytes-like object, a URL known to fsspec, or a binary file object. A file object is read from its first
            byte, regardless of its position. Column chunks may be in files beside a path or a URL.
        **options: any of the options of readers:

    Raises:
        FormatError: not a Parquet file, a broken footer, or an unfinished file.
        KeyAccessError, TagVerificationError: the footer is encrypted and cannot be opened.
    """

    def __init__(
        self,
        where: Any,
        **options: Unpack[ReaderOptions],
    ) -> None:
        given: dict[str, Any] = {**DEFAULTS, **options}
        if len(given) > len(DEFAULTS):
            raise unknown(given)
        if not options.keys().isdisjoint(PLACING):
            where = taken_place(where, given)
        on_error, strings, unit = given["on_error"], given["strings"], given["coerce_int96_timestamp_unit"]
        if given["properties"] is not None and not isinstance(given["properties"], ReaderProperties):
            raise TypeError(f"properties is a ReaderProperties, not {type(given['properties']).__name__}")
        if on_error not in ("raise", "null", "skip"):
            raise ValueError(f'on_error must be "raise", "null" or "skip", not {on_error!r}')
        if strings not in ("views", "offsets", "dictionary"):
            raise ValueError(f'strings must be "views", "offsets" or "dictionary", not {strings!r}')
        if unit not in ("auto", "ms", "us", "ns"):
            raise ValueError(f'coerce_int96_timestamp_unit must be "auto", "ms", "us" or "ns", not {unit!r}')
        threads, keys = resolve_threads(given["threads"]), given["decryption_properties"]
        self._closed, self._on_error = False, on_error
        self._where, self._options = where, options
        self._orders: dict[int, Column | None] = {}      # entries of ordered dictionaries, by number of the column
        properties = given["properties"] or _DEFAULT_PROPERTIES
        self._source = open_source(where, memory_map=given["memory_map"], properties=properties)
        self._losses: list[Loss] = []
        try:
            self._found: losses.RecoveryReport | None = None
            if on_error == "raise":
                self._metadata = read_finished(self._source, properties, keys)
            else:
                from fastpq.recovery.footers import find_footer

                self._metadata, self._found = find_footer(self._source, properties, keys)
            self._size = self._source.size      # a closed source has no size
        except ParquetError as error:
            self._source.close()
            error.at(path=self._source.name)
            raise
        except BaseException:
            self._source.close()
            raise
        self._arrow_schema = given["arrow_schema"] and self._metadata.key_value_bytes > 0
        if self._metadata.created_by is None or mistakes_of(self._metadata.created_by):
            properties = for_writer(properties, self._metadata)
        self._arrow = StoredFields(self._metadata)
        coded = self._arrow.is_dictionary if self._arrow_schema else None
        self._file = OpenFile(self._source, self._metadata, properties, strings, unit, threads, becomes_dictionary=coded)

    def __reduce__(self) -> tuple[Any, ...]:
        """Place and options, by which another process opens the file again; UnsupportedError for streams, buffers and keys."""
        from fastpq.api.pickling import place_elsewhere, refuse_keys, reopened

        if self._closed:
            raise ValueError(f"{self._source.name} is closed")
        refuse_keys("ParquetFile", self._options.get("decryption_properties"))
        # a place on a filesystem has the options of places already
        options = {name: value for name, value in self._options.items() if name not in PLACING}
        return reopened, (type(self), place_elsewhere(self._where), options)

    def close(self) -> None:
        """Close the source; columns already read stay valid."""
        self._closed = True
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Literal[False]:
        self.close()
        return False

    @property
    def recovery(self) -> losses.RecoveryReport:
        """Losses of all reads so far, with ``on_error`` ``"null"`` or ``"skip"``, and the footer used."""
        from fastpq.recovery.losses import RecoveryReport, merged_losses

        return replace(self._found or RecoveryReport("footer"), losses=merged_losses(self._losses))

    @property
    def io(self) -> IOCounts:
        """Number of reads from the file so far, the footer's included, and number of bytes read."""
        return self._source.counts

    def read(
        self,
        columns: Iterable[ColumnKey] | None = None,
        *,
        row_groups: Iterable[int] | None = None,
        row_ranges: RowRangesLike | None = None,
        filters: Any = None,
        out: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> Table:
        """Read columns into memory.

        Args:
            columns: names (dotted paths for leaves of groups) or numbers, in the order of the result; None for all.
            row_groups: indices, in the order of the result; None for all.
            row_ranges: rows of the file as ``(start, stop)`` each, ascending, counted from 0 through all row groups; None for
                all. With row_groups, rows in other row groups are left out. In columns with an OffsetIndex, only pages with
                chosen rows are read.
            filters: conditions on rows: ``(column, op, value)``, lists of conditions, or And and Or, with the semantics of SQL
                (fastpq.filters.predicate); or an expression of pyarrow.compute or Polars (fastpq.filters.expressions). Row groups
                and pages ruled out by statistics, bloom filters, page indexes and dictionary pages are not read. The columns of
                the filters are read before the other columns.
            out: arrays to read columns into, by name (fastpq.read.outputs lists the requirements); the Table's columns are
                views of the arrays. A numpy.ma.MaskedArray takes nulls; a null without a mask is a SchemaError. Not allowed with
                filters, since the number of rows must be known. After an error the contents of the arrays are undefined.
            progress: called as ``progress(done, total)`` after each column chunk, in rows; the last call is
                ``(total, total)``. With filters, total is the number of rows not ruled out by statistics and indexes.

        Returns:
            A Table of the chosen columns with exactly the chosen rows, in the order of the file.

        Raises:
            SchemaError: a name, an index or a row outside the file (near names are listed), ranges out of order, or unfit
                filters or arrays.
            FormatError, UnsupportedError, LimitError, CryptoError: see fastpq.errors.
        """
        if out is not None and not isinstance(out, Mapping):
            raise SchemaError(f'out is a mapping of names to arrays, for example {{"price": array}}, not a {type(out).__name__}')
        with self._errors():
            reader = self._reader_for(self._file)
            wanted = self._wanted(columns, row_groups, row_ranges, filters)
            if self._metadata.schema.has_int96:
                table = self._read_in_units(wanted, filters, out, progress)
            else:
                table = reader.read(wanted, out, progress)
            return self._restored(table, wanted.columns) if self._arrow_schema else table

    def to_pandas(
        self,
        columns: Iterable[ColumnKey] | None = None,
        *,
        row_groups: Iterable[int] | None = None,
        filters: Any = None,
        dtype_backend: Literal["numpy_nullable", "pyarrow"] | None = None,
        progress: Progress | None = None,
    ) -> pandas.DataFrame:
        """The rows as a pandas DataFrame, as ``read_pandas`` gives them.

        Args:
            columns: as for ``read_pandas``.
            row_groups: as for ``read``.
            filters: as for ``read_pandas``.
            dtype_backend: as for ``read_pandas``.
            progress: as for ``read``.

        Raises:
            UnsupportedError: pandas is not installed.
            ParquetError: as ``read``.
        """
        from fastpq.api.labelled_columns import frame_of_file

        return frame_of_file(self, columns, row_groups, filters, dtype_backend, progress)

    def _read_in_units(
        self, wanted: Wanted, filters: Any, out: Mapping[str, Any] | None, progress: Progress | None
    ) -> Table:
        """As ``read``, of a file with INT96 timestamps, whose values may choose the units."""
        file = self._first_units(wanted, filters)
        if out is not None:
            from fastpq.read.int96 import with_units_of

            file = with_units_of(file, out, wanted.columns)

        def read(file: OpenFile, reader: FileReader | RecoveringReader) -> Table:
            return reader.read(self._bound_anew(wanted, filters, file), out, progress)

        return in_fitting_units(file, wanted, self._reader_for, read)

    def take(self, indices: Any, columns: Iterable[ColumnKey] | None = None) -> Table:
        """Read rows by their numbers, in any order and with repetitions, as numpy.take.

        Args:
            indices: whole numbers, shape (n,); negative ones count from the end.
            columns: as for ``read``.

        Returns:
            A Table of n rows, in the order of the indices; without those lost by ``on_error="skip"``.

        Raises:
            SchemaError: a row outside the file.
            TypeError: indices other than whole numbers.
        """
        with self._errors():
            first = self._first_rows()
            chosen = rows.check_indices(indices, int(first[-1]))
            groups = rows.rows_of_groups(rows.ranges_of(np.unique(chosen)), first, range(self.num_row_groups))
            wanted = Wanted(self._metadata.schema.select(columns), groups, is_selective=True)
            taken = in_fitting_units(self._file, wanted, self._reader_for, lambda _, reader: reader.take(wanted, chosen))
            return self._restored(taken, wanted.columns)

    def head(self, n: int, columns: Iterable[ColumnKey] | None = None) -> Table:
        """The first rows.

        Args:
            n: number of rows; a file with fewer gives all. Rows lost by ``on_error="skip"`` count.
            columns: as for ``read``.

        Raises:
            ValueError: a negative number.
            ParquetError: as ``read``.
        """
        return self.read(columns, row_ranges=[(0, min(rows.number_of_rows("n", n), self._num_rows()))])

    def tail(self, n: int, columns: Iterable[ColumnKey] | None = None) -> Table:
        """The last rows.

        Args:
            n: number of rows; a file with fewer gives all. Rows lost by ``on_error="skip"`` count.
            columns: as for ``read``.

        Raises:
            ValueError: a negative number.
            ParquetError: as ``read``.
        """
        num_rows = self._num_rows()
        return self.read(columns, row_ranges=[(max(0, num_rows - rows.number_of_rows("n", n)), num_rows)])

    def sample(self, n: int, columns: Iterable[ColumnKey] | None = None, *, seed: Any = None) -> Table:
        """n different rows chosen at random with equal chances, in the order of the file.

        Args:
            n: number of rows.
            columns: as for ``read``.
            seed: seed of numpy.random.default_rng; equal seeds give equal rows.

        Raises:
            SchemaError: the file has fewer rows.
        """
        with self._errors():
            chosen = rows.sampled_rows(n, self._num_rows(), seed)
        return self.take(chosen, columns)

    def iter_batches(
        self,
        batch_size: int = DEFAULT_BATCH_SIZE,
        columns: Iterable[ColumnKey] | None = None,
        *,
        row_groups: Iterable[int] | None = None,
        row_ranges: RowRangesLike | None = None,
        filters: Any = None,
        progress: Progress | None = None,
    ) -> Iterator[Table]:
        """Read as Tables of batch_size rows; memory is bounded by a batch and a page of each column.

        With filters, the filtered columns of a row group are read first, some ten thousand rows at a time. The stored bytes to
        read of a row group are in memory as well if the file is a file object or a remote file; of a remote file, also the stored
        bytes of the next row groups.

        Args:
            batch_size: rows of a Table; the last may have fewer.
            columns: as for ``read``.
            row_groups: as for ``read``.
            row_ranges: as for ``read``.
            filters: as for ``read``.
            progress: called as ``progress(done, total)`` before each Table is returned, in rows, as for ``read``.

        Raises:
            ParquetError: as ``read``.
            ValueError: the file is closed before the last Table.
        """
        batch_size = rows.number_of_rows("batch_size", batch_size, 1)
        with self._errors():
            wanted = self._wanted(columns, row_groups, row_ranges, filters)
            file = self._file
            if file.int96_unit == "auto":
                from fastpq.read.int96 import fitted

                file = fitted(file, wanted, self._reader_for)
            wanted = self._bound_anew(wanted, filters, file)
            tables = self._reader_for(file).batches(wanted, batch_size, progress)
            return self._while_open(self._restored(table, wanted.columns) for table in tables)

    @property
    def num_rows(self) -> int:
        """Number of rows, without rows that ``on_error="skip"`` leaves out at the time of a read."""
        return self.count()

    def __arrow_c_schema__(self) -> object:
        """Arrow PyCapsule interface: a struct of the columns' types."""
        return export("schema", self.read(row_groups=[]))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow PyCapsule interface: the rows as a stream of batches (``iter_batches``), in bounded memory."""
        return export("batches", self.iter_batches(), lambda: self.read(row_groups=[]), requested_schema)

    def count(self, filters: Any = None) -> int:
        """Number of rows matching filters; row groups decided by statistics or indexes are not read.

        Args:
            filters: as for ``read``; None counts all rows.

        Raises:
            ParquetError: as ``read``.
        """
        with self._errors():
            if filters is None:
                return self._num_rows()
            wanted = self._wanted((), None, None, filters)

            def count(file: OpenFile, reader: FileReader | RecoveringReader) -> int:
                return reader.count(self._bound_anew(wanted, filters, file))

            return in_fitting_units(self._first_units(wanted, filters), wanted, self._reader_for, count)

    def explain(
        self,
        filters: Any,
        columns: Iterable[ColumnKey] | None = None,
        *,
        row_groups: Iterable[int] | None = None,
        row_ranges: RowRangesLike | None = None,
    ) -> explaining.Explanation:
        """Row groups, pages and bytes of a ``read`` with filters, with the evidence for each.

        No data page is read, but for filters on INT96 columns without a chosen unit: the values of INT96 columns choose the unit
        of the filters, as in ``read``.

        Args:
            filters: as for ``read``.
            columns: as for ``read``.
            row_groups: as for ``read``.
            row_ranges: as for ``read``.

        Raises:
            ParquetError: as ``read``.
        """
        from fastpq.read.explain import explain

        with self._errors():
            wanted = self._wanted(columns, row_groups, row_ranges, filters)
            file = self._units_of_filters(wanted, filters)
            scan = self._reader_for(file).selective(self._bound_anew(wanted, filters, file))
            return explain(scan, scan.select(wanted.groups))

    def _restored(self, table: Table, leaves: Iterable[ColumnDescriptor]) -> Table:
        """The table of some leaves with the file's metadata, and the Arrow fields of its columns if there is an ARROW:schema."""
        if not self._arrow_schema:
            return table
        table = table.with_metadata(self._texts)
        fields = self._arrow.known
        if fields is None:
            return table
        nodes = dict.fromkeys(leaf.top for leaf in leaves)
        table = fields.restored(table, nodes)
        from fastpq.arrow.hints import has_dictionary
        if not any(map(has_dictionary, table.columns)):
            return table
        from fastpq.read.ordered import with_orders
        return with_orders(table, nodes, self._file, self._orders)

    def _by_codes(self, wanted: Callable[[ColumnDescriptor], bool]) -> Self:
        """The file, read by the stored codes of more flat columns where all values are in dictionaries, in any layout of strings.

        Args:
            wanted: returns whether a column is one of these.
        """
        before = self._file.becomes_dictionary
        return self._with(self._file._replace(becomes_dictionary=lambda leaf: wanted(leaf) or bool(before and before(leaf))))

    @cached_property
    def _texts(self) -> KeyValues:
        metadata = self._metadata
        return KeyValues(lambda: metadata.key_value_metadata, ARROW_KEY)

    def _while_open(self, tables: Iterator[Table]) -> Iterator[Table]:
        """The given Tables, with the path of the file in errors; a file closed meanwhile is an error."""
        while True:
            with self._errors():
                table = next(tables, None)
            if table is None:
                return
            yield table
