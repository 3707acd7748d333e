"""IndexedFile: an open file with its statistics, page indexes and bloom filters, and the rows and units wanted of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from fastpq.arrays.nodes import duration_field
from fastpq.arrays.table import Column
from fastpq.common.display import View, of_bytes, to_html, to_text
from fastpq.common.lazy import LazyModule
from fastpq.errors import ParquetError, UnsupportedError
from fastpq.format.stored_footer import ARROW_KEY
from fastpq.metadata.column_chunk import ColumnChunkMetaData
from fastpq.metadata.contents import facts_of
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.options import OnError
from fastpq.read import rows
from fastpq.read.file_reader import FileReader, Wanted, in_fitting_units
from fastpq.read.plan import choose_row_groups
from fastpq.schema.parquet_schema import ColumnDescriptor, ColumnKey, ParquetSchema, column_grid

if TYPE_CHECKING:
    from fastpq.arrow.hints import ArrowFields
    from fastpq.encryption.cipher import ModuleCipher
    from fastpq.filters.answers import ReadColumn
    from fastpq.filters.predicate import Predicate
    from fastpq.index import bloom_filter, page_index
    from fastpq.index.ranges import Int64s, RowRanges
    from fastpq.io.source import Source
    from fastpq.read.file_reader import OpenFile
    from fastpq.read.int96 import Place
    from fastpq.recovery.losses import Loss, RecoveryReport
    from fastpq.recovery.reading import RecoveringReader
    from fastpq.schema.types import TimeUnitName
else:       # types of annotations, found by typing.get_type_hints
    bloom_filter = LazyModule("fastpq.index.bloom_filter")
    page_index = LazyModule("fastpq.index.page_index")

RowRangesLike: TypeAlias = Iterable[tuple[int, int]]

# Columns shown by a file as text and as HTML.
TEXT_COLUMNS, HTML_COLUMNS = 8, 20


class IndexedFile:
    """The base class of ParquetFile, open until ``close``: metadata, statistics, page indexes, bloom filters and units."""

    if TYPE_CHECKING:       # set by ParquetFile
        _source: Source
        _metadata: FileMetaData
        _file: OpenFile
        _arrow: StoredFields
        _arrow_schema: bool
        _closed: bool
        _size: int
        _on_error: OnError
        _found: RecoveryReport | None
        _losses: list[Loss]

    @property
    def metadata(self) -> FileMetaData:
        """The footer: row groups and column chunks are decoded on first use."""
        return self._metadata

    @property
    def schema(self) -> ParquetSchema:
        """The schema tree and its leaves."""
        return self._metadata.schema

    @property
    def num_row_groups(self) -> int:
        """Number of row groups."""
        return self._metadata.num_row_groups

    def min_max(self, column: ColumnKey) -> tuple[Any, Any]:
        """The smallest and the largest value of a column; row groups without exact statistics are read.

        Args:
            column: name, dotted path or number of a flat column.

        Returns:
            Python objects, as in ``Column.to_pylist``; (None, None) for a column without values. NaNs take no part.

        Raises:
            SchemaError: an unknown column, or a column without an order.
            UnsupportedError: a nested column.
        """
        found = self._extremes(column)
        low, high = (None, None) if found is None else found.to_pylist()
        return low, high

    def _extremes(self, column: ColumnKey) -> Column | None:
        """The smallest and the largest value of a column, as a column; None for a column without values."""
        from fastpq.filters import answers

        with self._errors():
            chosen = self._flat(column)
            wanted = Wanted([chosen], [(group, None) for group in range(self.num_row_groups)])

            def answer(file: OpenFile, reader: FileReader | RecoveringReader) -> Column | None:
                type_ = file.types([chosen]).get(chosen.index, chosen.type)
                return answers.smallest_and_largest(self._metadata, chosen, type_, _column_read_by(reader, chosen))

            found, unit = in_fitting_units(self._file, wanted, self._reader_for, answer), self._unit_of(chosen)
            return found if found is None or unit is None else found.with_arrow(duration_field(unit))

    def null_count(self, column: ColumnKey) -> int:
        """The number of nulls of a column; row groups without a null count in their statistics are read.

        Args:
            column: name, dotted path or number of a flat column.

        Raises:
            SchemaError: an unknown column.
            UnsupportedError: a nested column.
        """
        from fastpq.filters import answers

        with self._errors():
            chosen = self._flat(column)
            wanted = Wanted([chosen], [(group, None) for group in range(self.num_row_groups)])
            return in_fitting_units(
                self._file,
                wanted,
                self._reader_for,
                lambda _, reader: answers.null_count(self._metadata, chosen, _column_read_by(reader, chosen)),
            )

    def offset_index(self, row_group: int, column: ColumnKey) -> page_index.OffsetIndex | None:
        """Places of the pages of a column chunk, checked against the file; None without an OffsetIndex (PageIndex.md).

        Args:
            row_group: index of the row group.
            column: name, dotted path or number of the column.

        Raises:
            SchemaError: a row group or column outside the file.
            FormatError: the index contradicts itself or the file.
            KeyAccessError, TagVerificationError: the index is encrypted and cannot be opened.
        """
        return self._indexes(row_group, column, column_index=False).offset_index

    def column_index(self, row_group: int, column: ColumnKey) -> page_index.ColumnIndex | None:
        """Bounds and counts of the pages of a column chunk, checked; None without a ColumnIndex (PageIndex.md).

        Args:
            row_group: index of the row group.
            column: name, dotted path or number of the column.

        Raises:
            SchemaError, FormatError, KeyAccessError, TagVerificationError: as ``offset_index``.
        """
        return self._indexes(row_group, column, column_index=True).column_index

    def bloom_filter(self, row_group: int, column: ColumnKey) -> bloom_filter.SplitBlockBloomFilter | None:
        """The bloom filter of a column chunk; None for a chunk without one (BloomFilter.md).

        Args:
            row_group: index of the row group.
            column: name, dotted path or number of the column.

        Raises:
            SchemaError, FormatError, KeyAccessError, TagVerificationError: as ``offset_index``.
            UnsupportedError: an algorithm, hash or compression outside BloomFilter.md.
        """
        from fastpq.filters.evidence import claims_of
        from fastpq.index.bloom_format import FilterRequest, read_bloom_filters

        with self._errors():
            chosen, chunk, cipher = self._chunk(row_group, column)
            claims = claims_of(self._metadata, chosen, chunk, self._rows_of(row_group))
            (found,) = read_bloom_filters(self._source, [FilterRequest(chunk, cipher, claims)])
            if isinstance(found, ParquetError):
                raise found
            return found

    def __repr__(self) -> str:
        return to_text(self._view(TEXT_COLUMNS))

    def _repr_html_(self) -> str:
        return to_html(self._view(HTML_COLUMNS))

    def _view(self, most_columns: int) -> View:
        """Name, size, contents of the footer, and the first columns."""
        if not hasattr(self, "_size"):      # in the traceback of a failed __init__
            return View("ParquetFile", ["not open"])
        facts = [self._source.name, of_bytes(self._size), *facts_of(self._metadata), *(["closed"] if self._closed else [])]
        try:
            grid = column_grid(self.schema, most_columns) if len(self.schema) else None
        except ParquetError:
            grid = None     # the facts report the broken schema
        return View("ParquetFile", facts, grid)

    def _indexes(self, row_group: int, column: ColumnKey, column_index: bool) -> page_index.ChunkIndexes:
        from fastpq.index.page_index import IndexRequest, read_page_indexes
        from fastpq.stats.trust import trust_in

        with self._errors():
            chosen, chunk, cipher = self._chunk(row_group, column)
            trust = trust_in(self._metadata, chosen)
            request = IndexRequest(chosen, chunk, self._rows_of(row_group), cipher, column_index, trust)
            (found,) = read_page_indexes(self._source, [request])
            if isinstance(found, ParquetError):
                raise found
            return found

    def _chunk(self, row_group: int, column: ColumnKey) -> tuple[ColumnDescriptor, ColumnChunkMetaData, ModuleCipher]:
        (index,) = self._groups([row_group])
        chosen = self.schema.column(column)
        chunk = self._metadata.row_group(index).column(chosen.index)
        return chosen, chunk, self._metadata.decryptor.chunk_cipher(chunk.chunk, chunk.row_group_ordinal, chosen.index)

    def _rows_of(self, row_group: int) -> int:
        return self._metadata.row_group(self._groups([row_group])[0]).num_rows

    def _wanted(
        self,
        columns: Iterable[ColumnKey] | None,
        row_groups: Iterable[int] | None,
        row_ranges: RowRangesLike | None,
        filters: Any,
    ) -> Wanted:
        first = None if row_groups is not None and row_ranges is None else self._first_rows()       # checks the footer
        schema = self._metadata.schema
        chosen = list(schema.columns) if columns is None else schema.select(columns)
        numbers = range(self._metadata.num_row_groups) if row_groups is None else self._groups(row_groups)
        groups: list[tuple[int, RowRanges | None]] = [(group, None) for group in numbers]
        if first is not None and row_ranges is not None:
            bounds = rows.check_ranges(row_ranges, int(first[-1]))
            groups = [*rows.rows_of_groups(bounds, first, [group for group, _ in groups])]
        predicate = None if filters is None else self._bound(filters, self._file)
        return Wanted(chosen, groups, predicate, filters is not None or row_ranges is not None)

    def _num_rows(self) -> int:
        with self._errors():
            return int(self._first_rows()[-1])

    def _first_rows(self) -> Int64s:
        """Number of the first row of each row group; checked against the footer, unless the file is read with on_error."""
        first = self._metadata.first_rows
        if self._found is None and first[-1] != self._metadata.num_rows:
            rows.check_row_count(self._metadata, int(first[-1]))
        return first

    def _bound(self, filters: Any, file: OpenFile) -> Predicate | None:
        if filters is None:
            return None
        from fastpq.filters.predicate import bind_filters

        return bind_filters(filters, self.schema, file.types(self.schema.columns), self._unit_of)

    def _unit_of(self, leaf: ColumnDescriptor) -> str | None:
        """Unit of the durations in a column of numbers; None for other columns, and where Arrow's types are left out."""
        return self._arrow.duration_unit(leaf) if self._arrow_schema else None

    def _first_units(self, wanted: Wanted, filters: Any) -> OpenFile:
        """The file in the units of INT96 columns tried first."""
        if filters is None or self._file.int96_unit != "auto":
            return self._file
        from fastpq.read.int96 import units_for_filter

        return units_for_filter(self._file, wanted, lambda file: self._bound(filters, file), self._reader_for)

    def _units_of_filters(self, wanted: Wanted, filters: Any) -> OpenFile:
        """The file in the units of INT96 columns under the filters of a ``read``; INT96 columns alone are read for this."""
        first = self._first_units(wanted, filters)
        if first.int96_unit != "auto" or not self.schema.has_int96:
            return first
        from fastpq.read.int96 import int96_leaves

        if not int96_leaves(wanted._replace(columns=())):
            return first
        alone = wanted._replace(columns=int96_leaves(wanted._replace(predicate=None)))

        def read(file: OpenFile, reader: FileReader | RecoveringReader) -> OpenFile:
            reader.read(self._bound_anew(alone, filters, file), None, None)
            return file

        return in_fitting_units(first, alone, self._reader_for, read)

    def _bound_anew(self, wanted: Wanted, filters: Any, file: OpenFile) -> Wanted:
        """A read with its filters bound to the units of a file."""
        return wanted if file is self._file else wanted._replace(predicate=self._bound(filters, file))

    def _reader_for(self, file: OpenFile) -> FileReader | RecoveringReader:
        """The reader of this file with other units."""
        if self._on_error == "raise":
            return FileReader(file)
        from fastpq.recovery.reading import RecoveringReader

        return RecoveringReader(file, self._on_error, self._losses.append)

    def _groups(self, row_groups: Iterable[int] | None) -> list[int]:
        return choose_row_groups(self._metadata.num_row_groups, row_groups)

    def _flat(self, key: ColumnKey) -> ColumnDescriptor:
        column = self.schema.column(key)
        if not column.is_flat:
            raise UnsupportedError("statistics of a nested column", column=column.name)
        return column

    def _in_units(self, units: Mapping[Place, TimeUnitName]) -> Self:
        """The file with INT96 columns in given units or coarser ones, by place."""
        from fastpq.read.int96 import leaves_by_place

        known = {leaf.index: units[place] for place, leaf in leaves_by_place(self.schema) if place in units} if units else {}
        return self._with(self._file._replace(int96_units=known))

    def _with(self, opened: OpenFile) -> Self:
        """The file, read in another way."""
        file = object.__new__(type(self))
        file.__dict__.update(self.__dict__)
        file._file = opened
        return file

    def _fitting_units(self, columns: Iterable[ColumnKey], filters: Any) -> dict[Place, TimeUnitName]:
        """The unit of each INT96 column of a read, by place."""
        from fastpq.read.int96 import coarser, fitted, leaves_by_place

        with self._errors():
            file = fitted(self._file, self._wanted(columns, None, None, filters), self._reader_for)
        found: dict[Place, TimeUnitName] = {}
        for place, leaf in leaves_by_place(self.schema):
            if leaf.index in file.int96_units:      # a place may be of several fields of one name
                unit = file.int96_units[leaf.index]
                found[place] = coarser(found.get(place, unit), unit)
        return found

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Add the path of the file to errors inside; refuse a closed file, and a file closed meanwhile by another thread."""
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


def _column_read_by(reader: FileReader | RecoveringReader, column: ColumnDescriptor) -> ReadColumn:
    def read(row_groups: Sequence[int]) -> Column:
        return reader.read(Wanted([column], [(group, None) for group in row_groups]), None, None).flat(column.name)

    return read


@dataclass
class StoredFields:
    """The Arrow fields of a file's columns, decoded on first use. The room of Arrow loads for a file with ARROW:schema alone.

    Attributes:
        metadata: the file's footer.
    """

    metadata: FileMetaData

    @cached_property
    def known(self) -> ArrowFields | None:
        """The fields; None for a file without the entry."""
        stored = self.metadata.key_value(ARROW_KEY)
        if stored is None:
            return None
        from fastpq.arrow.hints import ArrowFields

        return ArrowFields(stored, self.metadata.schema.root.children)

    def duration_unit(self, leaf: ColumnDescriptor) -> str | None:
        """Unit of the durations in a column of numbers; None for other columns."""
        return None if self.known is None else self.known.duration_unit(leaf)

    def is_dictionary(self, leaf: ColumnDescriptor) -> bool:
        """Whether the Arrow field of a flat column is a dictionary."""
        return self.known is not None and self.known.has_dictionary(leaf)
