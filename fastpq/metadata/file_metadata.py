"""FileMetaData and RowGroupMetaData: the footer of a file, decoded on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.common.display import View, to_html, to_text
from fastpq.encryption.decryptor import FileDecryptor
from fastpq.errors import FormatError, ParquetError, UnsupportedError
from fastpq.format.plain_chunk import ChunkEntries
from fastpq.format.slots import untracked
from fastpq.format.stored_footer import CHECKPOINT_KEY
from fastpq.format.struct import WireKind
from fastpq.metadata.chunk_order import ChunkOrder, may_be_of
from fastpq.metadata.column_chunk import ColumnChunkMetaData
from fastpq.metadata.contents import facts_of, row_group_grid
from fastpq.schema.parquet_schema import ColumnDescriptor, ParquetSchema

Int64s: TypeAlias = NDArray[np.int64]

MAX_INT64 = (1 << 63) - 1

# Field ids of the lists decoded on first use.
_SCHEMA, _ROW_GROUPS, _KEY_VALUES, _COLUMN_ORDERS = 2, 4, 5, 7      # of FileMetaData
_COLUMNS, _NUM_ROWS, _ORDINAL = 1, 3, 7                             # of RowGroup
_LISTED = {_SCHEMA: 0, _ROW_GROUPS: _COLUMNS, _KEY_VALUES: fmt.SPAN, _COLUMN_ORDERS: 0}
_NOTED: dict[int, int] = {_NUM_ROWS: WireKind.I64, _ORDINAL: WireKind.I16}

# The files of a dataset share a schema. Most parsed schemas kept for further files, and most serialized bytes of each.
MOST_SCHEMAS_KEPT = 16
LONGEST_SCHEMA_KEPT = 1 << 14        # a parsed column of 6 serialized bytes takes 0.4 kB of memory

# Most decoded row groups of a file, and most decoded column chunks of a file, kept for further use.
MOST_KEPT = 4096

# Most row groups shown by a FileMetaData: as text, and in a notebook.
TEXT_ROW_GROUPS, HTML_ROW_GROUPS = 5, 20


class ColumnOrders(NamedTuple):
    """The orders of the bounds of a file's columns (parquet.thrift, ``ColumnOrder``), decoded on demand, and the writer.

    Attributes:
        created_by: name and version of the writer; None if not stored.
        footer: the serialized footer.
        offsets: offset of the order of each leaf column in the footer; empty if not stored.
    """

    created_by: str | None
    footer: memoryview
    offsets: list[int]

    def column_order(self, index: int) -> fmt.ColumnOrder | None:
        """The order of the bounds of a leaf column; None if not stored.

        Args:
            index: number of the leaf column.
        """
        return fmt.decode(fmt.ColumnOrder, self.footer, self.offsets[index])[0] if index < len(self.offsets) else None


class RowGroupMetaData:
    """One row group (parquet.thrift, ``RowGroup``); its column chunks are decoded on first use.

    Args:
        footer: the serialized footer.
        row_groups: list of row groups in the footer.
        index: index of the row group.
        decryptor: decryptor of the file.
        kept: column chunks of the file decoded already, by row group and column.
        columns: columns of the schema; none for a broken schema, and chunks are in the order of the columns.
        orders: orders of the columns' bounds.

    Attributes:
        index: index of the row group.
        num_columns: number of column chunks.
        num_rows: number of rows.
        ordinal: the stored ordinal of the row group, a part of AADs; the index if none is stored.
    """

    __slots__ = (
        "_columns", "_decryptor", "_footer", "_kept", "_list", "_metadata", "_order", "_orders", "_stored_offsets", "index",
        "num_columns", "num_rows", "ordinal",
    )

    def __init__(
        self,
        footer: memoryview,
        row_groups: fmt.StructList,
        index: int,
        decryptor: FileDecryptor,
        kept: dict[tuple[int, int], ColumnChunkMetaData],
        columns: Sequence[ColumnDescriptor],
        orders: ColumnOrders,
    ) -> None:
        self._footer = footer
        self._decryptor = decryptor
        self._kept = kept
        self._columns = columns
        self._orders = orders
        self._order: ChunkOrder | None = None       # of chunks in another order than the columns
        self.index = index
        self._metadata: fmt.RowGroup | None = None
        self._list = row_groups
        self._stored_offsets: Int64s | None = None      # where the list of row groups does not have the chunks' offsets
        count = row_groups.inner_count(index)
        rows, ordinal = row_groups.number(index, _NUM_ROWS), row_groups.number(index, _ORDINAL)
        if count is None or rows is None:
            offset = int(row_groups.offsets[index])
            stored, listed = fmt.decode_listed(fmt.RowGroup, footer, offset, {_COLUMNS: 0})
            self._stored_offsets = listed[_COLUMNS].offsets
            self._metadata, rows, ordinal, count = stored, stored.num_rows, stored.ordinal, len(self._stored_offsets)
        self.num_columns: int = count
        self.num_rows: int = rows
        self.ordinal: int = index if ordinal is None else ordinal

    @property
    def metadata(self) -> fmt.RowGroup:
        """The struct as stored, without the column chunks."""
        if self._metadata is None:
            found = self._list.inner(self.index)
            assert found is not None
            self._metadata = fmt.decode_listed(fmt.RowGroup, self._footer, found[1], {_COLUMNS: 0}, _COLUMNS)[0]
        return self._metadata

    @property
    def _offsets(self) -> Int64s:
        """Offset of each column chunk in the footer."""
        if self._stored_offsets is not None:
            return self._stored_offsets
        found = self._list.inner(self.index)
        assert found is not None
        return found[0]

    @property
    def total_byte_size(self) -> int:
        """Bytes of all pages, uncompressed."""
        return self.metadata.total_byte_size

    @property
    def total_compressed_size(self) -> int | None:
        """Bytes of all pages, as stored; None if not stored."""
        return self.metadata.total_compressed_size

    @property
    def file_offset(self) -> int | None:
        """Offset of the first page in the file; None if not stored."""
        return self.metadata.file_offset

    @property
    def sorting_columns(self) -> list[fmt.SortingColumn]:
        """Columns by which the rows are sorted."""
        return self._by_path().by_column(self.metadata.sorting_columns or ())

    def column(self, index: int) -> ColumnChunkMetaData:
        """The chunk of a leaf column, found by its path where the chunks have another order than the columns.

        Args:
            index: number of the leaf column.

        Raises:
            FormatError: the row group has no chunk of the column, or the chunk's entry is broken.
        """
        known = self._kept.get((self.index, index))
        if known is not None:
            return known
        if 0 <= index < self.num_columns:
            place = self._list.inner_place(self.index, index) if self._stored_offsets is None else None
            chunk = fmt.decode(fmt.ColumnChunk, self._footer, int(self._offsets[index]) if place is None else place)[0]
            if index < len(self._columns) and not may_be_of(chunk, self._columns[index]):
                chunk = self._by_path().chunk(index)
        else:
            chunk = self._by_path().chunk(index)
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        column = self._columns[index] if index < len(self._columns) else None
        found = untracked(
            ColumnChunkMetaData(chunk, self.ordinal, index, self._decryptor, column, self.num_rows, self._orders)
        )
        self._kept[self.index, index] = found
        return found

    def _by_path(self) -> ChunkOrder:
        if self._order is None:
            self._order = ChunkOrder(self._footer, self._offsets, self.index, self._columns)
        return self._order

    def __repr__(self) -> str:
        return f"<RowGroupMetaData {self.index}: {self.num_rows} rows, {self.num_columns} columns>"


def _parsed(stored: bytes, count: int) -> ParquetSchema:
    """The schema of count serialized elements, one behind the other."""

    def elements() -> Iterator[fmt.SchemaElement]:
        offset = 0
        for _ in range(count):
            element, length = fmt.decode(fmt.SchemaElement, stored, offset)
            yield element
            offset += length

    return ParquetSchema.from_elements(elements(), count)


_kept = lru_cache(maxsize=MOST_SCHEMAS_KEPT)(_parsed)


class FileMetaData:
    """The footer of a file (parquet.thrift, ``FileMetaData``).

    Footers with equal contents are equal. A pickle has the serialized footer; one opened with keys is an UnsupportedError.

    Args:
        footer: serialized FileMetaData; trailing bytes are ignored.
        decryptor: decrypts column metadata.

    Attributes:
        decryptor: as given.
        metadata: the struct as stored, without schema, row groups, key-value metadata and column orders.
        num_row_groups: number of row groups.
        num_schema_elements: number of groups and leaves in the schema, the root included.
        key_value_bytes: serialized bytes of the key-value metadata.
        version: version of the format, as stored.
        num_rows: number of rows.
        created_by: name and version of the writer; None if not stored.
        orders: orders of the columns' bounds.
        encryption_algorithm: encryption algorithm and AAD prefix; None for a plaintext file.
        footer_signing_key_metadata: key metadata of a signed plaintext footer.

    Raises:
        FormatError: the bytes are no FileMetaData.
    """

    def __init__(self, footer: memoryview, decryptor: FileDecryptor) -> None:
        self._footer = footer
        self._kept_groups: dict[int, RowGroupMetaData] = {}
        self._kept_chunks: dict[tuple[int, int], ColumnChunkMetaData] = {}
        self.decryptor = decryptor
        self.metadata, listed = fmt.decode_listed(fmt.FileMetaData, footer, 0, _LISTED, 0, _NOTED)
        self._schema_elements = listed[_SCHEMA]
        self._key_values: tuple[int, int] = listed.get(_KEY_VALUES, (0, 0))     # first byte, byte behind
        self._row_groups = listed[_ROW_GROUPS]
        self._chunk_entries = ChunkEntries(footer, self._row_groups)
        orders = listed.get(_COLUMN_ORDERS)
        self.num_row_groups = len(self._row_groups.offsets)
        self.num_schema_elements = len(self._schema_elements.offsets)
        self.key_value_bytes = self._key_values[1] - self._key_values[0]
        self.version: int = self.metadata.version
        self.num_rows: int = self.metadata.num_rows
        self.created_by: str | None = self.metadata.created_by
        self.orders = ColumnOrders(self.created_by, footer, [] if orders is None else orders.offsets)
        self.encryption_algorithm: fmt.EncryptionAlgorithm | None = self.metadata.encryption_algorithm
        self.footer_signing_key_metadata: bytes | None = self.metadata.footer_signing_key_metadata

    @cached_property
    def key_values(self) -> list[fmt.KeyValue]:
        """The entries of the key-value metadata as stored, decoded on first use."""
        return fmt.decode_list(fmt.KeyValue, self._footer, self._key_values[0]) if self._key_values[1] else []

    @property
    def key_value_metadata(self) -> dict[str, str | None]:
        """Key-value metadata without the mark of a checkpoint; the last value of a duplicate key."""
        return {entry.key: entry.value for entry in self.key_values if entry.key != CHECKPOINT_KEY}

    def key_value(self, key: str) -> str | None:
        """The value of a key in the key-value metadata, the last one of a duplicate key; None for no value.

        Args:
            key: the key.
        """
        return self.key_value_metadata.get(key) if self._may_have(key) else None

    @property
    def is_checkpoint(self) -> bool:
        """Whether this is a checkpoint: the footer of an unfinished file."""
        return self._may_have(CHECKPOINT_KEY) and any(entry.key == CHECKPOINT_KEY for entry in self.key_values)

    def _may_have(self, key: str) -> bool:
        """Whether the bytes of a key occur in the key-value metadata; without a decoded entry."""
        return self.key_value_bytes > 0 and key.encode() in bytes(self._footer[slice(*self._key_values)])

    @cached_property
    def row_counts(self) -> list[int]:
        """Number of rows of each row group, as stored."""
        return self._noted(_NUM_ROWS, attrgetter("num_rows"))

    @cached_property
    def row_group_ordinals(self) -> list[int]:
        """Ordinal of each row group, a part of AADs; its index where none is stored."""
        return self._noted(_ORDINAL, attrgetter("ordinal"))

    def _noted(self, field: int, number_of: Callable[[RowGroupMetaData], int]) -> list[int]:
        """A number of each row group: of a noted field, or where none is noted, of the row group."""
        numbers: list[int] = self._row_groups.noted(field).tolist()
        for index, number in enumerate(numbers):
            if number == fmt.MISSING:
                numbers[index] = number_of(self.row_group(index))
        return numbers

    @cached_property
    def first_rows(self) -> Int64s:
        """Number of the first row of each row group, then of the file's rows; shape (row groups + 1,), int64, read-only.

        Raises:
            FormatError: a row group with a negative number of rows, or too many rows in all.
        """
        counts = self.row_counts
        for index, count in enumerate(counts):
            if count < 0:
                raise FormatError(f"a row group of {count} rows", row_group=index)
        if sum(counts) > MAX_INT64:
            raise FormatError(f"{sum(counts)} rows in the row groups of a file")
        first = np.cumsum([0, *counts], dtype=np.int64)
        first.flags.writeable = False
        return first

    def column_order(self, index: int) -> fmt.ColumnOrder | None:
        """The order of the bounds of a leaf column; None if not stored.

        Args:
            index: number of the leaf column.
        """
        return self.orders.column_order(index)

    @property
    def column_orders(self) -> list[fmt.ColumnOrder]:
        """The order of each leaf column's bounds; empty if not stored."""
        return [order for order in map(self.column_order, range(len(self.orders.offsets))) if order is not None]

    @property
    def schema_elements(self) -> list[fmt.SchemaElement]:
        """The schema tree, flattened depth first."""
        return [self._schema_element(offset) for offset in self._schema_elements.offsets.tolist()]

    @cached_property
    def schema(self) -> ParquetSchema:
        """The schema."""
        offsets = self._schema_elements.offsets.tolist()
        if not offsets:
            return ParquetSchema.from_elements(iter(()), 0)
        _, last = fmt.decode(fmt.SchemaElement, self._footer, offsets[-1])
        stored = bytes(self._footer[offsets[0] : offsets[-1] + last])
        return (_parsed if len(stored) > LONGEST_SCHEMA_KEPT else _kept)(stored, len(offsets))

    def _schema_element(self, offset: int) -> fmt.SchemaElement:
        return fmt.decode(fmt.SchemaElement, self._footer, offset)[0]

    @property
    def num_columns(self) -> int:
        """Number of leaf columns."""
        return len(self.schema.columns)

    def row_group(self, index: int) -> RowGroupMetaData:
        """A row group by its index.

        Args:
            index: from 0 to ``num_row_groups - 1``.

        Raises:
            IndexError: there are fewer row groups.
        """
        known = self._kept_groups.get(index)
        if known is not None:
            return known
        if not 0 <= index < self.num_row_groups:
            raise IndexError(f"row group {index} of {self.num_row_groups}")
        if len(self._kept_groups) >= MOST_KEPT:
            self._kept_groups.clear()
        try:
            columns = self.schema.columns
        except ParquetError:
            columns = ()
        found = RowGroupMetaData(self._footer, self._row_groups, index, self.decryptor, self._kept_chunks, columns, self.orders)
        self._kept_groups[index] = untracked(found)
        return found

    @property
    def row_groups(self) -> Iterator[RowGroupMetaData]:
        """All row groups, in their order."""
        return map(self.row_group, range(self.num_row_groups))

    def decoded(self) -> fmt.FileMetaData:
        """All structs of the footer, made anew."""
        return fmt.decode(fmt.FileMetaData, self._footer)[0]

    def extended(self, row_groups: list[fmt.RowGroup]) -> FileMetaData:
        """The footer of the same file with more row groups at the end.

        Args:
            row_groups: entries of the new row groups.
        """
        whole = self.decoded()
        whole.row_groups = [*whole.row_groups, *row_groups]
        whole.num_rows += sum(group.num_rows for group in row_groups)
        return FileMetaData(memoryview(fmt.encode(whole)), self.decryptor)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FileMetaData):
            return NotImplemented
        if self._footer == other._footer:
            return True
        return bool(self.decoded() == other.decoded())

    def __hash__(self) -> int:
        schema = tuple((element.name, element.type) for element in self.schema_elements)
        return hash((self.num_rows, self.num_row_groups, schema, self.created_by))

    def __reduce__(self) -> tuple[Any, ...]:
        if type(self.decryptor) is not FileDecryptor:
            raise UnsupportedError(
                "the FileMetaData of a file opened with keys cannot be pickled, since a pickle has neither keys nor values that "
                "they opened: pass the path, and call read_metadata(path, decryption_properties=...) in the other process"
            )
        return _unpickled, (bytes(self._footer),)

    def __repr__(self) -> str:
        return to_text(self._view(TEXT_ROW_GROUPS))

    def _repr_html_(self) -> str:
        return to_html(self._view(HTML_ROW_GROUPS))

    def _view(self, most: int) -> View:
        """Contents of the footer, and the first row groups."""
        if not hasattr(self, "_row_groups"):        # in the traceback of an __init__ that failed
            return View("FileMetaData", ["not read"])
        return View("FileMetaData", facts_of(self), row_group_grid(self, most))


def _unpickled(footer: bytes) -> FileMetaData:
    return FileMetaData(memoryview(footer), FileDecryptor())


def are_described_alike(one: FileMetaData, other: FileMetaData) -> bool:
    """Whether footers have the same schema, key-value metadata and writer; False for some long schemas."""
    alike = one.created_by == other.created_by and one.schema is other.schema
    return alike and one._footer[slice(*one._key_values)] == other._footer[slice(*other._key_values)]
