"""IndexedFile: statistics, page indexes and bloom filters of an open file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fastpq.arrays.table import Column
from fastpq.common.lazy import LazyModule
from fastpq.errors import ParquetError, UnsupportedError
from fastpq.metadata.file_metadata import ColumnChunkMetaData, FileMetaData
from fastpq.read.file_reader import Wanted
from fastpq.read.plan import choose_row_groups
from fastpq.schema.parquet_schema import ColumnDescriptor, ColumnKey, ParquetSchema

if TYPE_CHECKING:
    from fastpq.encryption.cipher import ModuleCipher
    from fastpq.filters.answers import ReadColumn
    from fastpq.index import bloom_filter, page_index
    from fastpq.io.source import Source
    from fastpq.read.file_reader import FileReader, OpenFile
    from fastpq.recovery.reading import RecoveringReader
else:       # types of annotations, found by typing.get_type_hints
    bloom_filter = LazyModule("fastpq.index.bloom_filter")
    page_index = LazyModule("fastpq.index.page_index")


class IndexedFile:
    """The part of ParquetFile that answers from the footer and from indexes."""

    if TYPE_CHECKING:       # set by ParquetFile
        _source: Source
        _metadata: FileMetaData
        _file: OpenFile
        _reader: FileReader | RecoveringReader
        _closed: bool

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
            type_ = self._file.types([chosen]).get(chosen.index, chosen.type)
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

    def _groups(self, row_groups: Iterable[int] | None) -> list[int]:
        return choose_row_groups(self._metadata.num_row_groups, row_groups)

    def _flat(self, key: ColumnKey) -> ColumnDescriptor:
        column = self.schema.column(key)
        if not column.is_flat:
            raise UnsupportedError("statistics of a nested column", column=column.name)
        return column

    def _reader_of(self, column: ColumnDescriptor) -> ReadColumn:
        def read(row_groups: Sequence[int]) -> Column:
            wanted = Wanted([column], [(group, None) for group in row_groups])
            return self._reader.read(wanted, None, None).flat(column.name)

        return read

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
