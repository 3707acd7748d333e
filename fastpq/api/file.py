"""ParquetFile: reading one file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np

from fastpq import encryption
from fastpq.arrays.table import Table
from fastpq.common.display import View, of_bytes, to_html, to_text
from fastpq.common.lazy import LazyModule
from fastpq.common.parallel import resolve_threads
from fastpq.common.progress import Meter, Progress
from fastpq.errors import ParquetError, SchemaError, UnsupportedError
from fastpq.io.siblings import open_with_siblings
from fastpq.io.source import IOCounts
from fastpq.metadata.file_metadata import ARROW_KEY, ColumnChunkMetaData, FileMetaData, facts_of, read_finished
from fastpq.options import OnError, ReaderProperties
from fastpq.read import rows
from fastpq.read.plan import ReadPlan, choose_row_groups, plan_read
from fastpq.read.scan import Scan, StringLayout
from fastpq.schema.parquet_schema import ColumnDescriptor, ColumnKey, ParquetSchema, column_grid, int96_types
from fastpq.schema.types import ColumnType, TimeUnitName

if TYPE_CHECKING:
    from fastpq.arrow.hints import ArrowFields
    from fastpq.encryption.cipher import ModuleCipher
    from fastpq.filters.answers import ReadColumn
    from fastpq.filters.predicate import Predicate
    from fastpq.index import bloom_filter, page_index
    from fastpq.index.ranges import RowRanges
    from fastpq.read import explain as explaining
    from fastpq.read.selective import SelectiveScan
    from fastpq.recovery import losses
    from fastpq.recovery.losses import Loss
    from fastpq.recovery.reading import RecoveringScan
else:       # types of annotations, which typing.get_type_hints finds
    bloom_filter = LazyModule("fastpq.index.bloom_filter")
    explaining = LazyModule("fastpq.read.explain")
    losses = LazyModule("fastpq.recovery.losses")
    page_index = LazyModule("fastpq.index.page_index")

DEFAULT_BATCH_SIZE = 65_536
# Columns that are shown, in text and in a notebook.
TEXT_COLUMNS, HTML_COLUMNS = 8, 20

RowRangesLike: TypeAlias = Iterable[tuple[int, int]]

_DEFAULT_PROPERTIES = ReaderProperties()


class ParquetFile:
    """A Parquet file to read from; a context manager.

    Args:
        where: a path, a bytes-like object, a URL that fsspec knows, or a binary file object, which is read from its first byte,
            wherever it stands. Column chunks may be in files beside it, if it is a path or a URL.
        memory_map: map a local file instead of reading it. A mapped file must not be truncated by others while it is
            in use, and columns may keep it mapped.
        threads: how many chunks are decoded at the same time; None for one a core.
        strings: layout of variable-length values: ``"views"`` (no copy), ``"offsets"`` or ``"dictionary"`` (codes).
        coerce_int96_timestamp_unit: unit of INT96 timestamps in memory; values that it cannot hold are refused.
        arrow_schema: let columns be in Arrow again what the metadata's ARROW:schema says that they were (fastpq.arrow.hints).
        properties: bounds and checks.
        decryption_properties: keys, for encrypted files.
        on_error: what becomes of what cannot be read: ``"raise"``; ``"null"``, such values are null, in nested columns those of
            the whole row; ``"skip"``, rows with such values among the columns that are read are left out. With either, the
            last checkpoint stands in for a footer that is not there, and ``recovery`` tells what was lost.

    Raises:
        FormatError: not a Parquet file, a broken footer, or an unfinished file.
        KeyAccessError, TagVerificationError: the footer is encrypted and cannot be opened.
    """

    def __init__(
        self,
        where: Any,
        *,
        memory_map: bool = True,
        threads: int | None = None,
        strings: StringLayout = "views",
        coerce_int96_timestamp_unit: TimeUnitName = "ns",
        arrow_schema: bool = True,
        properties: ReaderProperties | None = None,
        decryption_properties: encryption.FileDecryptionProperties | None = None,
        on_error: OnError = "raise",
    ) -> None:
        if on_error not in ("raise", "null", "skip"):
            raise ValueError(f'on_error must be "raise", "null" or "skip", not {on_error!r}')
        if strings not in ("views", "offsets", "dictionary"):
            raise ValueError(f'strings must be "views", "offsets" or "dictionary", not {strings!r}')
        if coerce_int96_timestamp_unit not in ("ms", "us", "ns"):
            raise ValueError(f'coerce_int96_timestamp_unit must be "ms", "us" or "ns", not {coerce_int96_timestamp_unit!r}')
        self._closed = False
        self._threads = resolve_threads(threads)
        self._properties = properties or _DEFAULT_PROPERTIES
        self._strings: StringLayout = strings
        self._int96_unit: TimeUnitName = coerce_int96_timestamp_unit
        self._arrow_schema = arrow_schema
        self._source = open_with_siblings(where, memory_map, self._properties)
        self._on_error: OnError = on_error
        self._losses: list[Loss] = []
        try:
            self._found: losses.RecoveryReport | None = None
            if on_error == "raise":
                self._metadata = read_finished(self._source, self._properties, decryption_properties)
            else:
                from fastpq.recovery.footers import find_footer

                self._metadata, self._found = find_footer(self._source, self._properties, decryption_properties)
            self._size = self._source.size      # which a closed source forgets
        except ParquetError as error:
            self._source.close()
            error.at(path=self._source.name)
            raise
        except BaseException:
            self._source.close()
            raise

    @property
    def metadata(self) -> FileMetaData:
        """The footer: row groups and column chunks are decoded when they are touched."""
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
        """What reads so far could not read, where ``on_error`` lets them go on."""
        from fastpq.recovery.losses import RecoveryReport, merged_losses

        return replace(self._found or RecoveryReport("footer"), losses=merged_losses(self._losses))

    @property
    def io(self) -> IOCounts:
        """How many reads went to the file so far, the footer's included, and how many bytes they brought."""
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
            row_ranges: which rows of the file: ``(start, stop)`` each, ascending, counted from 0 through all row groups; of
                each column no pages are read but those that hold them, where an OffsetIndex tells which. With row_groups,
                those of the rows that stand in these row groups.
            filters: which of them: ``(column, op, value)``, lists of these, or And and Or of them, with the semantics of SQL
                (fastpq.filters.predicate). Row groups and pages without such rows are not read where statistics, bloom filters
                and page indexes tell; the columns of the filters are read before the others.
            out: arrays by the names of columns to read these into (fastpq.read.outputs tells which fit); the Table's
                columns are views of them. A numpy.ma.MaskedArray takes nulls; without a mask a null is a SchemaError.
                Not with filters, as the number of rows must be known. After an error the arrays hold anything.
            progress: called as ``progress(done, total)`` after each column chunk, in rows; the last call is
                ``(total, total)``. With filters the total are the rows of which statistics and indexes decide nothing, or all.

        Returns:
            A Table of the chosen columns: exactly the rows that are asked for, in the order of the file.

        Raises:
            SchemaError: a name, an index or a row that the file does not have (near names are listed), ranges that do not
                ascend, or filters or arrays that do not fit.
            FormatError, UnsupportedError, LimitError, CryptoError: see fastpq.errors.
        """
        with self._errors():
            if self._on_error != "raise":
                if out is not None:
                    raise SchemaError("out with on_error: the number of rows and nulls is not known before they are read")
                wanted = self._wanted(row_groups, row_ranges)
                found = self._recovering().read(self._select(columns), wanted, self._bound(filters), self._threads, progress)
                return self._restored(found)
            if filters is not None or row_ranges is not None:
                scan = self._selective(filters, columns)
                wanted_rows = scan.select(self._wanted(row_groups, row_ranges))
                return self._restored(scan.read(wanted_rows, self._threads, out, progress=progress))
            plan = self._plan(columns, row_groups)
            scan_all = self._scan(plan)
            outputs = None
            if out is not None:
                from fastpq.read.outputs import Outputs

                outputs = Outputs(out, plan, scan_all.types)
            meter = Meter(progress, plan.num_rows)
            table = scan_all.read(plan, self._threads, outputs, meter.span(plan.num_rows))
            meter.finish()
            return self._restored(table)

    def take(self, indices: Any, columns: Iterable[ColumnKey] | None = None) -> Table:
        """The rows of some numbers, as numpy.take has it: in the order given, a row as often as it is named.

        Args:
            indices: whole numbers, shape (n,); negative ones count from the end.
            columns: as for ``read``.

        Returns:
            A Table of n rows.

        Raises:
            SchemaError: a row that the file does not have.
            TypeError: indices that are no whole numbers.
        """
        with self._errors():
            first = rows.first_rows(self._metadata)
            wanted = rows.check_indices(indices, int(first[-1]))
            distinct, order = np.unique(wanted, return_inverse=True)
            groups = rows.rows_of_groups(rows.ranges_of(distinct), first, range(self.num_row_groups))
            if self._on_error != "raise":
                return self._restored(self._recovering().take(self._select(columns), groups, wanted, self._threads))
            scan = self._selective(None, columns)
            in_order = len(distinct) == len(wanted) and bool((wanted == distinct).all())
            return self._restored(scan.read(scan.select(groups), self._threads, order=None if in_order else order))

    def head(self, n: int, columns: Iterable[ColumnKey] | None = None) -> Table:
        """The first rows.

        Args:
            n: number of rows; a file with fewer gives all.
            columns: as for ``read``.

        Raises:
            ValueError: a negative number.
            ParquetError: as ``read``.
        """
        return self.read(columns, row_ranges=[(0, min(_count(n), self._num_rows()))])

    def tail(self, n: int, columns: Iterable[ColumnKey] | None = None) -> Table:
        """The last rows.

        Args:
            n: number of rows; a file with fewer gives all.
            columns: as for ``read``.

        Raises:
            ValueError: a negative number.
            ParquetError: as ``read``.
        """
        num_rows = self._num_rows()
        return self.read(columns, row_ranges=[(max(0, num_rows - _count(n)), num_rows)])

    def sample(self, n: int, columns: Iterable[ColumnKey] | None = None, *, seed: Any = None) -> Table:
        """n different rows at random, each as likely as any other, in the order of the file.

        Args:
            n: number of rows.
            columns: as for ``read``.
            seed: for numpy.random.default_rng; the same one gives the same rows.

        Raises:
            SchemaError: the file has fewer rows.
        """
        num_rows = self._num_rows()
        if _count(n) > num_rows:
            raise SchemaError(f"{n} different rows of a file that has {num_rows}", path=self._source.name)
        chosen = np.random.default_rng(seed).choice(num_rows, n, replace=False, shuffle=False)
        return self.take(np.sort(chosen), columns)

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

        With filters, the filtered columns of a row group are read first, some ten thousand rows at a time. Of files that are
        not mapped, the stored bytes of what is read of a row group are in memory as well, and of remote ones the next
        ones'.

        Args:
            batch_size: rows of a Table; the last may have fewer.
            columns: as for ``read``.
            row_groups: as for ``read``.
            row_ranges: as for ``read``.
            filters: as for ``read``.
            progress: called as ``progress(done, total)`` before each Table is handed over, in rows, as for ``read``.

        Raises:
            ParquetError: as ``read``.
            ValueError: the file is closed before the last Table.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        with self._errors():
            if self._on_error != "raise":
                from fastpq.recovery.reading import rebatched

                wanted, chosen = self._wanted(row_groups, row_ranges), self._select(columns)
                found = self._recovering().tables(chosen, wanted, self._bound(filters), self._threads, progress)
                batches = rebatched(found, batch_size)
            elif filters is not None or row_ranges is not None:
                scan = self._selective(filters, columns)
                batches = scan.batches(scan.select(self._wanted(row_groups, row_ranges)), batch_size, self._threads, progress)
            else:
                plan = self._plan(columns, row_groups)
                batches = _metered(self._scan(plan).batches(plan, batch_size, self._threads), Meter(progress, plan.num_rows))
            return self._while_open(map(self._restored, batches))

    def count(self, filters: Any = None) -> int:
        """How many rows there are that filters hold for; row groups that statistics or indexes decide are not read.

        Args:
            filters: as for ``read``; None counts all rows.

        Raises:
            ParquetError: as ``read``.
        """
        if filters is None:
            return self._metadata.num_rows
        if self._on_error != "raise":
            return self.read((), filters=filters).num_rows
        with self._errors():
            scan = self._selective(filters, ())
            return scan.count(scan.select(self._wanted(None, None)), self._threads)

    def explain(
        self,
        filters: Any,
        columns: Iterable[ColumnKey] | None = None,
        *,
        row_groups: Iterable[int] | None = None,
        row_ranges: RowRangesLike | None = None,
    ) -> explaining.Explanation:
        """Row groups, pages and bytes that ``read`` would touch, with the evidence; no data page is read for it.

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
            scan = self._selective(filters, columns)
            return explain(scan, scan.select(self._wanted(row_groups, row_ranges)))

    def min_max(self, column: ColumnKey) -> tuple[Any, Any]:
        """The smallest and the largest value of a column, from statistics where they are exact, else from its values.

        Args:
            column: name, dotted path or number of a column that is not nested.

        Returns:
            Python objects, as in ``Column.to_pylist``; (None, None) where there is no value. NaNs take no part.

        Raises:
            SchemaError: there is no such column, or it has no order.
        """
        from fastpq.filters import answers

        with self._errors():
            chosen = self._flat(column)
            type_ = self._types([chosen]).get(chosen.index, chosen.type)
            return answers.column_min_max(self._metadata, chosen, type_, self._reader_of(chosen))

    def null_count(self, column: ColumnKey) -> int:
        """How many values of a column are null, from statistics where they tell, else from its values.

        Args:
            column: name, dotted path or number of a column that is not nested.

        Raises:
            SchemaError: there is no such column.
        """
        from fastpq.filters import answers

        with self._errors():
            chosen = self._flat(column)
            return answers.null_count(self._metadata, chosen, self._reader_of(chosen))

    def offset_index(self, row_group: int, column: ColumnKey) -> page_index.OffsetIndex | None:
        """Where the pages of a column chunk are, checked against the file; None where it has no OffsetIndex (PageIndex.md).

        Args:
            row_group: index of the row group.
            column: name, dotted path or number of the column.

        Raises:
            SchemaError: there is no such row group or column.
            FormatError: the index contradicts itself or the file.
            KeyAccessError, TagVerificationError: it is encrypted and cannot be opened.
        """
        return self._indexes(row_group, column, column_index=False).offset_index

    def column_index(self, row_group: int, column: ColumnKey) -> page_index.ColumnIndex | None:
        """Bounds and counts of the pages of a column chunk, checked; None where it has no ColumnIndex (PageIndex.md).

        Args:
            row_group: index of the row group.
            column: name, dotted path or number of the column.

        Raises:
            SchemaError, FormatError, KeyAccessError, TagVerificationError: as ``offset_index``.
        """
        return self._indexes(row_group, column, column_index=True).column_index

    def bloom_filter(self, row_group: int, column: ColumnKey) -> bloom_filter.SplitBlockBloomFilter | None:
        """The bloom filter of a column chunk; None where it has none (BloomFilter.md).

        Args:
            row_group: index of the row group.
            column: name, dotted path or number of the column.

        Raises:
            SchemaError, FormatError, KeyAccessError, TagVerificationError: as ``offset_index``.
            UnsupportedError: another algorithm, hash or compression than the one that exists.
        """
        from fastpq.index.bloom_format import read_bloom_filters

        with self._errors():
            _, chunk, cipher = self._chunk(row_group, column)
            (found,) = read_bloom_filters(self._source, [(chunk, cipher)])
            if isinstance(found, ParquetError):
                raise found
            return found

    def _indexes(self, row_group: int, column: ColumnKey, column_index: bool) -> page_index.ChunkIndexes:
        from fastpq.index.page_index import IndexRequest, read_page_indexes

        with self._errors():
            chosen, chunk, cipher = self._chunk(row_group, column)
            num_rows = self._metadata.row_group(self._groups([row_group])[0]).num_rows
            (found,) = read_page_indexes(self._source, [IndexRequest(chosen, chunk, num_rows, cipher, column_index)])
            if isinstance(found, ParquetError):
                raise found
            return found

    def _chunk(self, row_group: int, column: ColumnKey) -> tuple[ColumnDescriptor, ColumnChunkMetaData, ModuleCipher]:
        (index,) = self._groups([row_group])
        chosen = self.schema.column(column)
        chunk = self._metadata.row_group(index).column(chosen.index)
        return chosen, chunk, self._metadata.decryptor.chunk_cipher(chunk.chunk, chunk.row_group_ordinal, chosen.index)

    def _wanted(
        self, row_groups: Iterable[int] | None, row_ranges: RowRangesLike | None
    ) -> list[tuple[int, RowRanges | None]]:
        groups = self._groups(row_groups)
        if row_ranges is None:
            return [(group, None) for group in groups]
        first = rows.first_rows(self._metadata)
        return [*rows.rows_of_groups(rows.check_ranges(row_ranges, int(first[-1])), first, groups)]

    def _num_rows(self) -> int:
        with self._errors():
            return int(rows.first_rows(self._metadata)[-1])

    def _groups(self, row_groups: Iterable[int] | None) -> list[int]:
        return choose_row_groups(self._metadata.num_row_groups, row_groups)

    def _flat(self, key: ColumnKey) -> ColumnDescriptor:
        column = self.schema.column(key)
        if not column.is_flat:
            raise UnsupportedError("statistics of a nested column", column=column.name)
        return column

    def _reader_of(self, column: ColumnDescriptor) -> ReadColumn:
        return lambda row_groups: self.read([column.index], row_groups=row_groups).flat(column.name)

    def _select(self, columns: Iterable[ColumnKey] | None) -> list[ColumnDescriptor]:
        return list(self.schema.columns) if columns is None else self.schema.select(columns)

    def _selective(self, filters: Any, columns: Iterable[ColumnKey] | None) -> SelectiveScan:
        from fastpq.read.selective import SelectiveScan

        chosen = self._select(columns)
        types = self._types(self.schema.columns)
        predicate = self._bound(filters)
        views = Scan(self._source, self._metadata.decryptor, self._properties, "views", types)
        finished = Scan(self._source, self._metadata.decryptor, self._properties, self._strings, types)
        return SelectiveScan(views, self._metadata, predicate, chosen, finished.laid_out)

    def _bound(self, filters: Any) -> Predicate | None:
        if filters is None:
            return None
        from fastpq.filters.predicate import bind_filters

        return bind_filters(filters, self.schema, self._types(self.schema.columns))

    def _recovering(self) -> RecoveringScan:
        from fastpq.recovery.reading import RecoveringScan

        types = self._types(self.schema.columns)
        scan = Scan(self._source, self._metadata.decryptor, self._properties, self._strings, types)
        return RecoveringScan(scan, self._metadata, self._on_error, self._losses.append)

    def _plan(self, columns: Iterable[ColumnKey] | None, row_groups: Iterable[int] | None) -> ReadPlan:
        return plan_read(self._metadata, self._select(columns), row_groups, self._source.size)

    def _scan(self, plan: ReadPlan) -> Scan:
        types = self._types(column for output in plan.columns for column, _ in output.leaves)
        return Scan(self._source, self._metadata.decryptor, self._properties, self._strings, types)

    def _types(self, columns: Iterable[ColumnDescriptor]) -> dict[int, ColumnType]:
        """The types in memory of columns where they differ from the schema's, by number."""
        return int96_types(columns, self._int96_unit)

    def _restored(self, table: Table) -> Table:
        """A table with the Arrow fields of its columns, where the file has an ARROW:schema."""
        return table if self._arrow is None else self._arrow.restored(table)

    @cached_property
    def _arrow(self) -> ArrowFields | None:
        stored = self._metadata.key_value_metadata.get(ARROW_KEY) if self._arrow_schema else None
        if stored is None:
            return None
        from fastpq.arrow.hints import ArrowFields

        return ArrowFields(stored, self.schema.root.children)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Errors say of which file they are; a closed file is refused."""
        if self._closed:
            raise ValueError(f"{self._source.name} is closed")
        try:
            yield
        except ParquetError as error:
            error.at(path=self._source.name)
            raise

    def _while_open(self, tables: Iterator[Table]) -> Iterator[Table]:
        """The same Tables; an error says of which file they are, and is raised when the file is closed meanwhile."""
        while True:
            with self._errors():
                table = next(tables, None)
            if table is None:
                return
            yield table

    def close(self) -> None:
        """Let go of the source; columns that were read stay valid."""
        self._closed = True
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Literal[False]:
        self.close()
        return False

    def __repr__(self) -> str:
        return to_text(self._view(TEXT_COLUMNS))

    def _repr_html_(self) -> str:
        return to_html(self._view(HTML_COLUMNS))

    def _view(self, most_columns: int) -> View:
        """Name, size, contents of the footer, and the first columns."""
        if not hasattr(self, "_size"):      # in the traceback of an __init__ that failed
            return View("ParquetFile", ["not open"])
        facts = [self._source.name, of_bytes(self._size), *facts_of(self._metadata), *(["closed"] if self._closed else [])]
        try:
            grid = column_grid(self.schema, most_columns) if len(self.schema) else None
        except ParquetError:
            grid = None     # the facts say so
        return View("ParquetFile", facts, grid)


def _metered(tables: Iterator[Table], meter: Meter) -> Iterator[Table]:
    """The same Tables; the rows of each are told of before it is handed over."""
    for table in tables:
        meter.add(table.num_rows)
        yield table
    meter.finish()


def _count(n: int) -> int:
    if n < 0:
        raise ValueError(f"the number of rows must not be negative, not {n}")
    return n
