"""ParquetFile: read one file, its metadata, page indexes and bloom filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, Unpack

import numpy as np

from fastpq.api.reader_options import DEFAULTS, PLACING, OpeningOptions, check_choices, taken_place, unknown
from fastpq.arrays.nodes import duration_field
from fastpq.arrays.table import Column, Table
from fastpq.common.display import View, of_bytes, to_html, to_text
from fastpq.common.extensions import export
from fastpq.common.lazy import LazyModule
from fastpq.common.parallel import resolve_threads
from fastpq.common.progress import Progress
from fastpq.errors import ParquetError, SchemaError, UnsupportedError
from fastpq.io.source import IOCounts
from fastpq.io.source_opening import open_source
from fastpq.metadata.column_chunk import ColumnChunkMetaData
from fastpq.metadata.file_metadata import FileMetaData, decryptor_of, facts_of
from fastpq.metadata.footer import footer_of_caller, read_finished
from fastpq.options import ReaderProperties, takes_options
from fastpq.read import rows
from fastpq.read.file_reader import FileReader, StoredFields
from fastpq.read.open_file import OpenFile, ReadRequest
from fastpq.read.opener import DecimalLayout
from fastpq.read.plan import choose_row_groups
from fastpq.schema.parquet_schema import ColumnDescriptor, ColumnKey, Int96UnitName, ParquetSchema, column_grid
from fastpq.stats.writer_bugs import bugs_of, for_writer

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from fastpq.api import keywords
    from fastpq.encryption.cipher import ModuleCipher
    from fastpq.filters.answers import ReadColumn
    from fastpq.filters.predicate import Predicate
    from fastpq.index import bloom_filter, page_index
    from fastpq.index.ranges import Int64s, RowRanges
    from fastpq.picture import file_picture
    from fastpq.read.filtered import explain as explaining
    from fastpq.recovery import losses
    from fastpq.recovery.losses import Loss
    from fastpq.recovery.reading import RecoveringReader
    from fastpq.schema.types import ColumnType
else:       # types of annotations, found by typing.get_type_hints
    bloom_filter = LazyModule("fastpq.index.bloom_filter")
    explaining = LazyModule("fastpq.read.filtered.explain")
    keywords = LazyModule("fastpq.api.keywords")
    losses = LazyModule("fastpq.recovery.losses")
    file_picture = LazyModule("fastpq.picture.file_picture")
    page_index = LazyModule("fastpq.index.page_index")
    pandas = LazyModule("pandas")
    pyarrow = LazyModule("pyarrow")

RowRangesLike: TypeAlias = Iterable[tuple[int, int]]

# How many columns a file shows as text and as HTML.
TEXT_COLUMNS, HTML_COLUMNS = 8, 20
DEFAULT_BATCH_SIZE = 65_536

_DEFAULT_PROPERTIES = ReaderProperties()


@takes_options(OpeningOptions)
class ParquetFile:
    """A Parquet file that is open for reading. It is a context manager.

    A pickle of a file holds the place and the options with which another process opens the file again. A file over a stream or a
    buffer, and a file with keys, cannot be pickled (UnsupportedError).

    Args:
        where: a path, a bytes-like object, a URL that fsspec knows, or a binary file object. A file object is read from its first
            byte, whatever its position is. Column chunks may be in files beside a path or a URL.
        **options: any of the options of readers:

    Raises:
        FormatError: not a Parquet file, a broken footer, or an unfinished file.
        KeyAccessError, TagVerificationError: the footer is encrypted and cannot be opened.
    """

    def __init__(
        self,
        where: Any,
        **options: Unpack[keywords.ReaderOptions],
    ) -> None:
        settings: dict[str, Any] = {**DEFAULTS, **options}
        if len(settings) > len(DEFAULTS):
            raise unknown(settings)
        if not options.keys().isdisjoint(PLACING):
            where = taken_place(where, settings)
        on_error, strings, unit = settings["on_error"], settings["strings"], settings["coerce_int96_timestamp_unit"]
        if settings["properties"] is not None and not isinstance(settings["properties"], ReaderProperties):
            raise TypeError(f"properties must be a ReaderProperties, not a {type(settings['properties']).__name__}")
        check_choices(settings)
        threads, keys = resolve_threads(settings["threads"]), settings["decryption_properties"]
        if keys is not None and settings["metadata"] is not None:
            raise ValueError("metadata keeps the keys with which it was read: pass either metadata or decryption_properties")
        self._closed, self._on_error = False, on_error
        self._has_nulls_for_keys = settings["on_missing_key"] == "null"
        self._where, self._options = where, options
        properties = settings["properties"] or _DEFAULT_PROPERTIES
        self._source = open_source(where, memory_map=settings["memory_map"], properties=properties)
        self._losses: list[Loss] = []
        try:
            self._recovery_report: losses.RecoveryReport | None = None
            if settings["metadata"] is not None:
                self._metadata = footer_of_caller(settings["metadata"], self._source, check=settings["check_metadata"])
            elif on_error == "raise":
                self._metadata = read_finished(self._source, properties, keys)
            else:
                from fastpq.recovery.footers import find_footer

                self._metadata, self._recovery_report = find_footer(self._source, properties, keys)
            self._size = self._source.size      # a closed source has no size
        except ParquetError as error:
            self._source.close()
            error.at(path=self._source.name)
            raise
        except BaseException:
            self._source.close()
            raise
        self._metadata.calendar.is_kept = settings["legacy_calendar"] == "keep"
        if self._metadata.created_by is None or bugs_of(self._metadata.created_by):
            properties = for_writer(properties, self._metadata)
        has_texts = settings["arrow_schema"] and self._metadata.key_value_bytes > 0
        self._stored_fields = StoredFields(self._metadata, settings["arrow_schema"], has_texts)
        is_dictionary = self._stored_fields.is_dictionary if has_texts else None
        self._file = OpenFile(self._source, self._metadata, properties, strings, unit, threads, becomes_dictionary=is_dictionary,
            invalid_utf8=settings["invalid_utf8"], decimals=settings["decimals"])

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the place and options with which another process opens the file again.

        Raises:
            UnsupportedError: the file is a stream or a buffer, or it was opened with keys.
        """
        from fastpq.api.pickling import place_elsewhere, refuse_keys, reopened

        if self._closed:
            raise ValueError(f"{self._source.name} is closed")
        refuse_keys("ParquetFile", self._options.get("decryption_properties"))
        # the place already contains the options for places
        options = {name: value for name, value in self._options.items() if name not in PLACING}
        return reopened, (type(self), place_elsewhere(self._where), options)

    def close(self) -> None:
        """Close the source. Columns that were read stay valid."""
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
    def closed(self) -> bool:
        """Whether the file is closed."""
        return self._closed

    @property
    def schema_arrow(self) -> pyarrow.Schema:
        """The columns' types as a pyarrow.Schema.

        Raises:
            UnsupportedError: pyarrow is not installed.
        """
        return self.read(row_groups=[]).to_arrow().schema

    def scan_contents(self, columns: Iterable[ColumnKey] | None = None, batch_size: int = DEFAULT_BATCH_SIZE) -> int:
        """Read columns batch by batch, and return how many rows were read.

        Args:
            columns: as for ``read``.
            batch_size: as for ``iter_batches``.

        Raises:
            ParquetError: as for ``read``.
        """
        return sum(batch.num_rows for batch in self.iter_batches(batch_size, columns))

    @property
    def metadata(self) -> FileMetaData:
        """The footer. Row groups and column chunks are decoded on first use."""
        return self._metadata

    @property
    def schema(self) -> ParquetSchema:
        """The schema tree and its leaves."""
        return self._metadata.schema

    @property
    def num_row_groups(self) -> int:
        """Number of row groups."""
        return self._metadata.num_row_groups

    @property
    def recovery(self) -> losses.RecoveryReport:
        """The losses of all reads so far and the footer that was used, with ``on_error`` ``"null"`` or ``"skip"``."""
        from fastpq.recovery.losses import RecoveryReport, merged_losses

        return replace(self._recovery_report or RecoveryReport("footer"), losses=merged_losses(self._losses))

    @property
    def io(self) -> IOCounts:
        """How many reads from the file there were so far, including those of the footer, and how many bytes were read."""
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
            columns: names (dotted paths for leaves of groups) or numbers, in result order. None reads all columns.
            row_groups: row group numbers, in result order. None reads all row groups.
            row_ranges: file rows as pairs ``(start, stop)``, in ascending order, counted from 0 through all row groups. None
                reads all rows. With row_groups, rows in other row groups are left out. For a column with an OffsetIndex, only
                pages with requested rows are read.
            filters: conditions on rows: ``(column, op, value)``, lists of conditions, or And and Or, with SQL semantics
                (fastpq.filters.predicate), or an expression of pyarrow.compute or Polars (fastpq.filters.expressions). If
                statistics, bloom filters, page indexes or dictionary pages exclude a row group or a page, it is not read. The
                columns in the filters are read before the other columns.
            out: arrays into which columns are read, by name (fastpq.read.outputs lists the requirements). The Table's columns are
                views of the arrays. A numpy.ma.MaskedArray takes nulls, and a null without a mask is a SchemaError. Filters are
                not allowed, because the number of rows must be known. After an error the arrays may hold anything.
            progress: called as ``progress(done, total)`` after each column chunk, in rows. The last call is ``(total, total)``.
                With filters, total counts the rows that statistics and indexes do not exclude.

        Returns:
            A Table with exactly the requested columns and rows, in file order.

        Raises:
            SchemaError: a name, a number or a row that is not in the file (the error lists similar names), ranges that are not in
                order, or filters or arrays that do not fit.
            FormatError, UnsupportedError, LimitError, CryptoError: see fastpq.errors.
        """
        if out is not None and not isinstance(out, Mapping):
            raise SchemaError(f'out must map names to arrays, for example {{"price": array}}, but it is a {type(out).__name__}')
        with self._errors():
            reader = self._reader()
            request = self._request(columns, row_groups, row_ranges, filters)
            if out is not None and request.locked_columns:
                from fastpq.read.missing_keys import refuse_arrays

                refuse_arrays(request, out)
            table = reader.read(request, out, progress)
            return self._completed(table, request)

    def to_pandas(
        self,
        columns: Iterable[ColumnKey] | None = None,
        *,
        row_groups: Iterable[int] | None = None,
        filters: Any = None,
        dtype_backend: Literal["numpy_nullable", "pyarrow"] | None = None,
        types_mapper: Callable[[Any], Any] | None = None,
        ignore_metadata: bool = False,
        progress: Progress | None = None,
    ) -> pandas.DataFrame:
        """Read the rows as a pandas DataFrame, as ``read_pandas`` does.

        Args:
            columns: as for ``read_pandas``.
            row_groups: as for ``read``.
            filters: as for ``read_pandas``.
            dtype_backend, types_mapper, ignore_metadata: as for ``read_pandas``.
            progress: as for ``read``.

        Raises:
            UnsupportedError: pandas is not installed.
            ParquetError: as for ``read``.
        """
        from fastpq.api.labelled_columns import frame_by
        from fastpq.convert.pandas_metadata import PandasMetadata, pandas_metadata
        from fastpq.convert.series import becomes_objects

        description = PandasMetadata() if ignore_metadata else pandas_metadata(self._metadata.key_value)
        file = self
        if dtype_backend is None:
            file = self._by_codes(lambda leaf: becomes_objects(leaf.type, description.columns.get(leaf.name, {})))
        elif dtype_backend == "pyarrow":
            file = self._with_decimals("decimal128")
        read = partial(file.read, row_groups=row_groups, progress=progress)
        return frame_by(description, read, self.schema.names, columns, filters, dtype_backend, types_mapper)

    def take(self, indices: Any, columns: Iterable[ColumnKey] | None = None) -> Table:
        """Read rows by their numbers, in any order and with repetitions, like numpy.take.

        Args:
            indices: whole numbers, shape (n,). Negative numbers count from the end.
            columns: as for ``read``.

        Returns:
            A Table with n rows, in index order. Rows that ``on_error="skip"`` loses are missing.

        Raises:
            SchemaError: a row that is not in the file.
            TypeError: indices that are not whole numbers.
        """
        with self._errors():
            first = self._first_rows()
            row_numbers = rows.check_indices(indices, int(first[-1]))
            groups = rows.rows_of_groups(rows.ranges_of(np.unique(row_numbers)), first, range(self.num_row_groups))
            request = self._unlocked(ReadRequest(self._metadata.schema.select(columns), list(groups), is_selective=True))
            return self._completed(self._reader().take(request, row_numbers), request)

    def head(self, n: int, columns: Iterable[ColumnKey] | None = None) -> Table:
        """Read the first rows.

        Args:
            n: how many rows. A file with fewer gives all. Rows that ``on_error="skip"`` loses count.
            columns: as for ``read``.

        Raises:
            ValueError: a negative number.
            ParquetError: as ``read``.
        """
        return self.read(columns, row_ranges=[(0, min(rows.number_of_rows("n", n), self._num_rows()))])

    def tail(self, n: int, columns: Iterable[ColumnKey] | None = None) -> Table:
        """Read the last rows.

        Args:
            n: how many rows. A file with fewer gives all. Rows that ``on_error="skip"`` loses count.
            columns: as for ``read``.

        Raises:
            ValueError: a negative number.
            ParquetError: as ``read``.
        """
        num_rows = self._num_rows()
        return self.read(columns, row_ranges=[(max(0, num_rows - rows.number_of_rows("n", n)), num_rows)])

    def sample(self, n: int, columns: Iterable[ColumnKey] | None = None, *, seed: Any = None) -> Table:
        """Read n different random rows, each with the same chance, in file order.

        Args:
            n: how many rows.
            columns: as for ``read``.
            seed: seed for numpy.random.default_rng. Equal seeds give equal rows.

        Raises:
            SchemaError: the file has fewer rows.
        """
        with self._errors():
            row_numbers = rows.sampled_rows(n, self._num_rows(), seed)
        return self.take(row_numbers, columns)

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
        """Read Tables with batch_size rows each. Memory is bounded by one batch and one page for each column.

        With filters, the columns in the filters are read first, about ten thousand rows at a time. For a file object or a remote
        file, the stored bytes that a row group needs are also in memory, and for a remote file those of the next row groups.

        Args:
            batch_size: rows in a Table. The last Table may have fewer.
            columns: as for ``read``.
            row_groups: as for ``read``.
            row_ranges: as for ``read``.
            filters: as for ``read``.
            progress: called as ``progress(done, total)`` before each Table is returned, in rows, as for ``read``.

        Raises:
            ParquetError: as for ``read``.
            ValueError: the file is closed before the last Table.
        """
        batch_size = rows.number_of_rows("batch_size", batch_size, 1)
        with self._errors():
            request = self._request(columns, row_groups, row_ranges, filters)
            tables = self._reader().batches(request, batch_size, progress)
            return self._while_open(self._completed(table, request) for table in tables)

    @property
    def num_rows(self) -> int:
        """Number of rows. Rows that ``on_error="skip"`` leaves out at the time of a read count too."""
        return self.count()

    def __arrow_c_schema__(self) -> object:
        """Return the column types as an Arrow struct (PyCapsule interface)."""
        return export("schema", self.read(row_groups=[]))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as an Arrow stream of batches (PyCapsule interface, ``iter_batches``), in bounded memory."""
        file = self if requested_schema is not None else self._with_decimals("decimal128")
        return export("batches", file.iter_batches(), lambda: file.read(row_groups=[]), requested_schema)

    def count(self, filters: Any = None) -> int:
        """Count the rows that match filters. Row groups that statistics or indexes decide are not read.

        Args:
            filters: as for ``read``. None counts all rows.

        Raises:
            ParquetError: as for ``read``.
        """
        with self._errors():
            if filters is None:
                return self._num_rows()
            return self._reader().count(self._request((), None, None, filters))

    def explain(
        self,
        filters: Any,
        columns: Iterable[ColumnKey] | None = None,
        *,
        row_groups: Iterable[int] | None = None,
        row_ranges: RowRangesLike | None = None,
    ) -> explaining.Explanation:
        """Return the row groups, pages and bytes that a ``read`` with filters would read, and the evidence for each.

        No data page is read, except for INT96 columns in the filters if the caller does not choose their unit: their values then
        choose it, as in ``read``.

        Args:
            filters: as for ``read``.
            columns: as for ``read``.
            row_groups: as for ``read``.
            row_ranges: as for ``read``.

        Raises:
            ParquetError: as for ``read``.
        """
        from fastpq.read.filtered.explain import explain

        with self._errors():
            request = self._request(columns, row_groups, row_ranges, filters)
            scan = self._reader().selective(request)
            return explain(scan, scan.select(request.groups))

    def layout(
        self, filters: Any = None, columns: Iterable[ColumnKey] | None = None, *, measure: bool = False
    ) -> file_picture.FilePicture:
        """Return a picture of the file: who owns each byte, what takes time, and what a filter reads. A notebook shows it.

        The footer and some indexes are read. Data pages are read only with ``measure``.

        Args:
            filters: as for ``read``. What they leave out is dim in the picture.
            columns: columns of the read that the filters belong to, as for ``read``.
            measure: whether to decode chunks and take the time. Otherwise the times are estimates.

        Raises:
            ParquetError: as for ``explain``.
        """
        from fastpq.picture.file_picture import picture_of

        with self._errors():
            if filters is None:
                return picture_of(self._file, is_measured=measure)
            request = self._request(columns, None, None, filters)
            return picture_of(self._file, request, self._reader().selective(request), is_measured=measure)

    def min_max(self, column: ColumnKey) -> tuple[Any, Any]:
        """Return the smallest and the largest value in a column. Row groups without exact statistics are read.

        Args:
            column: name, dotted path or number. The column must be flat.

        Returns:
            Python objects, as in ``Column.to_pylist``, or (None, None) for a column without values. NaNs are ignored.

        Raises:
            SchemaError: an unknown column, or a column without an order.
            UnsupportedError: a nested column.
        """
        bounds = self._extremes(column)
        low, high = (None, None) if bounds is None else bounds.to_pylist()
        return low, high

    def null_count(self, column: ColumnKey) -> int:
        """Count the nulls in a column. Row groups whose statistics have no null count are read.

        Args:
            column: name, dotted path or number. The column must be flat.

        Raises:
            SchemaError: an unknown column.
            UnsupportedError: a nested column.
        """
        from fastpq.filters import answers

        with self._errors():
            leaf = self._flat(column)
            self._refuse_locked([leaf.path])
            return answers.null_count(self._metadata, leaf, _column_read_by(self._reader(), leaf))

    def offset_index(self, row_group: int, column: ColumnKey) -> page_index.OffsetIndex | None:
        """Return where the pages in a column chunk are, checked against the file, or None without an OffsetIndex (PageIndex.md).

        Args:
            row_group: row group index.
            column: name, dotted path or number.

        Raises:
            SchemaError: a row group or column outside the file.
            FormatError: the index contradicts itself or the file.
            KeyAccessError, TagVerificationError: the index is encrypted and cannot be opened.
        """
        return self._indexes(row_group, column, column_index=False).offset_index

    def column_index(self, row_group: int, column: ColumnKey) -> page_index.ColumnIndex | None:
        """Return checked bounds and counts for the pages in a column chunk, or None without a ColumnIndex (PageIndex.md).

        Args:
            row_group: row group index.
            column: name, dotted path or number.

        Raises:
            SchemaError, FormatError, KeyAccessError, TagVerificationError: as for ``offset_index``.
        """
        return self._indexes(row_group, column, column_index=True).column_index

    def bloom_filter(self, row_group: int, column: ColumnKey) -> bloom_filter.SplitBlockBloomFilter | None:
        """Return the bloom filter for a column chunk, or None (BloomFilter.md).

        Args:
            row_group: row group index.
            column: name, dotted path or number.

        Raises:
            SchemaError, FormatError, KeyAccessError, TagVerificationError: as for ``offset_index``.
            UnsupportedError: an algorithm, hash or compression outside BloomFilter.md.
        """
        from fastpq.filters.evidence import claims_of
        from fastpq.index.bloom_format import FilterRequest, read_bloom_filters

        with self._errors():
            leaf, chunk, cipher = self._chunk(row_group, column)
            claims = claims_of(self._metadata, leaf, chunk, self._rows_of(row_group))
            (answer,) = read_bloom_filters(self._source, [FilterRequest(chunk, cipher, claims)])
            if isinstance(answer, ParquetError):
                raise answer
            return answer

    def __repr__(self) -> str:
        return to_text(self._view(TEXT_COLUMNS))

    def _repr_html_(self) -> str:
        return to_html(self._view(HTML_COLUMNS))

    def _view(self, most_columns: int) -> View:
        """Return the name, the size, facts from the footer, and the first columns."""
        if not hasattr(self, "_size"):      # in the traceback of a failed __init__
            return View("ParquetFile", ["not open"])
        facts = [self._source.name, of_bytes(self._size), *facts_of(self._metadata), *(["closed"] if self._closed else [])]
        try:
            grid = column_grid(self.schema, most_columns) if len(self.schema) else None
        except ParquetError:
            grid = None     # the facts report the broken schema
        return View("ParquetFile", facts, grid)

    def readable_columns(self) -> list[str]:
        """Return the columns that can be read with the reader's keys, in schema order. They fit ``columns`` of ``read``.

        A struct or list with keys of its own for some of its values is listed by the dotted paths of the others.

        Raises:
            KeyAccessError: the key service did not say whether the reader may have a key.
            CryptoError, FormatError: a key, or its key metadata, is broken.
        """
        from fastpq.read.missing_keys import readable_names

        with self._errors():
            return readable_names(self._metadata)

    def _unlocked(self, request: ReadRequest) -> ReadRequest:
        """Return a request whose columns can all be read. Columns without a key are set apart if the caller accepts nulls."""
        if not self._has_nulls_for_keys:
            return request
        from fastpq.read.missing_keys import without_locked

        return without_locked(request, self._metadata)

    def _refuse_locked(self, paths: Iterable[tuple[str, ...]]) -> None:
        """Refuse answers from columns whose keys are missing, although the caller accepts nulls in columns without a key.

        Args:
            paths: paths of leaves, or of groups, all of whose leaves must be readable.
        """
        if self._has_nulls_for_keys:
            from fastpq.read.missing_keys import refuse_filters_on

            with self._errors():
                refuse_filters_on(self._metadata, set(paths))

    def _completed(self, table: Table, request: ReadRequest) -> Table:
        """Return a table with nulls for columns without a key, and with all that its file stores beside the values."""
        if not request.locked_columns:
            return self._stored_fields.restored(table, request.columns, self._file)
        from fastpq.read.missing_keys import with_nulls, with_report

        empty = self._reader().read(ReadRequest(request.locked_columns, []), None, None)
        for leaf in request.locked_columns:
            self._stored_fields.orders.setdefault(leaf.index, None)
        table = self._stored_fields.restored(with_nulls(table, request, empty), request.all_columns, self._file)
        return with_report(table, [top.element.name for top in dict.fromkeys(leaf.top for leaf in request.locked_columns)])

    def _extremes(self, column: ColumnKey) -> Column | None:
        """Return the smallest and the largest value as a column, or None for a column without values."""
        from fastpq.filters import answers

        with self._errors():
            leaf = self._flat(column)
            type_ = self._file.types([leaf]).get(leaf.index, leaf.type)
            bounds = answers.smallest_and_largest(self._metadata, leaf, type_, _column_read_by(self._reader(), leaf))
            if bounds is not None and self._file.invalid_utf8 == "replace":
                from fastpq.arrays.valid_text import repaired_leaf

                bounds = repaired_leaf(bounds)
            unit = self._unit_of(leaf)
            return bounds if bounds is None or unit is None else bounds.with_arrow(duration_field(unit))

    def _indexes(self, row_group: int, column: ColumnKey, column_index: bool) -> page_index.ChunkIndexes:
        from fastpq.index.page_index import IndexRequest, read_page_indexes
        from fastpq.stats.usable_statistics import usable_statistics_of

        with self._errors():
            leaf, chunk, cipher = self._chunk(row_group, column)
            usable = usable_statistics_of(self._metadata, leaf)
            request = IndexRequest(leaf, chunk, self._rows_of(row_group), cipher, column_index, usable)
            (answer,) = read_page_indexes(self._source, [request])
            if isinstance(answer, ParquetError):
                raise answer
            return answer

    def _chunk(self, row_group: int, column: ColumnKey) -> tuple[ColumnDescriptor, ColumnChunkMetaData, ModuleCipher]:
        (index,) = self._groups([row_group])
        leaf = self.schema.column(column)
        chunk = self._metadata.row_group(index).column(leaf.index)
        return leaf, chunk, decryptor_of(self._metadata).chunk_cipher(chunk.chunk, chunk.row_group_ordinal, leaf.index)

    def _rows_of(self, row_group: int) -> int:
        return self._metadata.row_group(self._groups([row_group])[0]).num_rows

    def _request(
        self,
        columns: Iterable[ColumnKey] | None,
        row_groups: Iterable[int] | None,
        row_ranges: RowRangesLike | None,
        filters: Any,
    ) -> ReadRequest:
        first = None if row_groups is not None and row_ranges is None else self._first_rows()       # checks the footer
        schema = self._metadata.schema
        leaves = list(schema.columns) if columns is None else schema.select(columns)
        numbers = range(self._metadata.num_row_groups) if row_groups is None else self._groups(row_groups)
        groups: list[tuple[int, RowRanges | None]] = [(group, None) for group in numbers]
        if first is not None and row_ranges is not None:
            bounds = rows.check_ranges(row_ranges, int(first[-1]))
            groups = [*rows.rows_of_groups(bounds, first, [group for group, _ in groups])]
        request = ReadRequest(leaves, groups, is_selective=filters is not None or row_ranges is not None)
        if filters is None:
            return self._unlocked(request)
        from fastpq.filters.predicate import bind_filters

        def bind(types: Mapping[int, ColumnType]) -> Predicate:
            return bind_filters(filters, schema, types, self._unit_of)

        return self._unlocked(request._replace(predicate=bind(self._file.types(schema.columns)), bind=bind))

    def _num_rows(self) -> int:
        with self._errors():
            return int(self._first_rows()[-1])

    def _first_rows(self) -> Int64s:
        """Return each row group's first row number, checked against the footer unless the file is read with on_error."""
        first = self._metadata.first_rows
        if self._recovery_report is None and first[-1] != self._metadata.num_rows:
            rows.check_row_count(self._metadata, int(first[-1]))
        return first

    def _unit_of(self, leaf: ColumnDescriptor) -> str | None:
        """Return the unit of durations in a number column, or None for other columns, and if Arrow's types are left out."""
        return self._stored_fields.duration_unit(leaf)

    def _reader(self) -> FileReader | RecoveringReader:
        """Return a reader for the file, or for a damaged file if on_error is set."""
        if self._on_error == "raise":
            return FileReader(self._file)
        from fastpq.recovery.reading import RecoveringReader

        return RecoveringReader(self._file, self._on_error, self._losses.append)

    def _groups(self, row_groups: Iterable[int] | None) -> list[int]:
        return choose_row_groups(self._metadata.num_row_groups, row_groups)

    def _flat(self, key: ColumnKey) -> ColumnDescriptor:
        column = self.schema.column(key)
        if not column.is_flat:
            raise UnsupportedError("statistics of a nested column", column=column.name)
        return column

    def _with(self, open_file: OpenFile) -> Self:
        """Return a copy that reads the file in another way."""
        file = object.__new__(type(self))
        file.__dict__.update(self.__dict__)
        file._file = open_file
        return file

    @property
    def _int96_unit(self) -> Int96UnitName:
        """The unit that the caller chose for INT96 timestamps."""
        return self._file.int96_unit

    def _with_stored_int96(self) -> Self:
        """Return a copy that reads INT96 timestamps as their 12 stored bytes."""
        return self._with(self._file._replace(int96_unit="stored"))

    def _with_names(self, metadata: FileMetaData) -> Self:
        """Return a copy that reads the file by a footer with other names of columns."""
        names = [node.element.name for node in self.schema.root.children]
        fields = replace(self._stored_fields, metadata=metadata, stored_names=names)
        becomes_dictionary = fields.is_dictionary if fields.has_texts else None
        file = self._with(self._file._replace(metadata=metadata, becomes_dictionary=becomes_dictionary))
        file._metadata, file._stored_fields = metadata, fields
        metadata.calendar.is_kept = self._metadata.calendar.is_kept
        return file

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Add the file path to errors inside. Refuse a file that is closed, also if another thread closes it in the meantime."""
        if self._closed:
            raise ValueError(f"{self._source.name} is closed")
        try:
            yield
        except Exception as error:
            if self._closed:
                raise ValueError(f"{self._source.name} was closed while it was read") from error
            if isinstance(error, ParquetError):
                error.at(path=self._source.name)
            raise

    def _with_decimals(self, decimals: DecimalLayout) -> Self:
        """Return a copy that reads decimals with another width. The stream of Arrow data takes 16 bytes without a copy."""
        return self if self._file.decimals == decimals else self._with(self._file._replace(decimals=decimals))

    def _by_codes(self, is_read_by_codes: Callable[[ColumnDescriptor], bool]) -> Self:
        """Return a copy that reads more flat columns as stored codes, if all their values are in dictionaries.

        Args:
            is_read_by_codes: returns whether a column is one of these. The string layout does not matter.
        """
        before = self._file.becomes_dictionary

        def becomes_dictionary(leaf: ColumnDescriptor) -> bool:
            return is_read_by_codes(leaf) or bool(before and before(leaf))

        return self._with(self._file._replace(becomes_dictionary=becomes_dictionary))

    def _while_open(self, tables: Iterator[Table]) -> Iterator[Table]:
        """Yield Tables. Errors get the file path, and a file that is closed in the meantime is an error."""
        while True:
            with self._errors():
                table = next(tables, None)
            if table is None:
                return
            yield table


def _column_read_by(reader: FileReader | RecoveringReader, column: ColumnDescriptor) -> ReadColumn:
    def read(row_groups: Sequence[int]) -> Column:
        return reader.read(ReadRequest([column], [(group, None) for group in row_groups]), None, None).flat(column.name)

    return read
