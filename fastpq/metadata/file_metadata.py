"""FileMetaData and RowGroupMetaData: a file's footer and its row groups. They are decoded on first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.common.display import Grid, Heading, View, counted, more, of_bytes, to_html, to_text
from fastpq.encryption.decryptor import FileDecryptor
from fastpq.errors import FormatError, ParquetError, SchemaError, UnsupportedError
from fastpq.format.plain_chunk import ChunkEntries
from fastpq.format.slots import untracked
from fastpq.format.stored_footer import CHECKPOINT_KEY, MAGIC
from fastpq.format.struct import WireKind
from fastpq.metadata.chunk_order import ChunkOrder, Matching, may_be_of
from fastpq.metadata.column_chunk import ColumnChunkMetaData, ColumnOrders
from fastpq.metadata.legacy_calendar import LegacyCalendar
from fastpq.options import MOST_ENCRYPTED_ROW_GROUPS
from fastpq.schema.parquet_schema import ColumnDescriptor, ParquetSchema
from fastpq.schema.tree_building import StoredElements

Int64s: TypeAlias = NDArray[np.int64]

MAX_INT64 = (1 << 63) - 1

# Field ids. The lists are decoded on first use.
_SCHEMA, _ROW_GROUPS, _KEY_VALUES, _COLUMN_ORDERS = 2, 4, 5, 7      # lists in FileMetaData
_COLUMNS, _NUM_ROWS, _ORDINAL = 1, 3, 7                             # a list and two numbers in RowGroup
_LISTED = {_SCHEMA: 0, _ROW_GROUPS: _COLUMNS, _KEY_VALUES: fmt.SPAN, _COLUMN_ORDERS: 0}
_NOTED: dict[int, int] = {_NUM_ROWS: WireKind.I64, _ORDINAL: WireKind.I16}

# The files in a dataset usually share a schema. At most this many parsed schemas are kept for further files.
MOST_SCHEMAS_KEPT = 16
# Of schemas with more serialized bytes than this, fewer are kept. A parsed column takes 0.4 kB in memory, and may have only 6
# serialized bytes.
LONGEST_SCHEMA = 1 << 14
MOST_LONG_SCHEMAS_KEPT = 2
# Longer schemas are not kept.
LONGEST_SCHEMA_KEPT = 1 << 18

# A file keeps at most this many decoded row groups, and as many decoded column chunks, for further use.
MOST_KEPT = 4096

# Largest number of row groups that a FileMetaData shows: as text, and in a notebook.
TEXT_ROW_GROUPS, HTML_ROW_GROUPS = 5, 20


class RowGroupMetaData:
    """One row group (parquet.thrift, ``RowGroup``). Its column chunks are decoded on first use.

    Args:
        footer: the serialized footer.
        row_groups: the footer's row group list.
        index: row group index.
        decryptor: the file's decryptor.
        kept_chunks: the file's column chunks that were decoded before, by row group and column. The row group adds to them.
        columns: the schema's leaf columns. If the schema is broken, they are empty, and the chunks count as being in schema
            order.
        orders: how the columns' bounds are compared.
        chunk_order: what decides if the chunks' paths and positions disagree.

    Attributes:
        index: row group index.
        num_columns: column chunk count.
        num_rows: row count.
        ordinal: the stored ordinal, which AADs contain. The index if no ordinal is stored.
    """

    __slots__ = (
        "_chunk_order", "_columns", "_decryptor", "_footer", "_kept_chunks", "_list", "_metadata", "_order", "_orders",
        "_stored_offsets", "index", "num_columns", "num_rows", "ordinal",
    )

    def __init__(
        self,
        footer: memoryview,
        row_groups: fmt.StructList,
        index: int,
        decryptor: FileDecryptor,
        kept_chunks: dict[tuple[int, int], ColumnChunkMetaData],
        columns: Sequence[ColumnDescriptor],
        orders: ColumnOrders,
        chunk_order: Matching,
    ) -> None:
        self._footer = footer
        self._decryptor = decryptor
        self._kept_chunks = kept_chunks
        self._columns = columns
        self._orders = orders
        self._chunk_order = chunk_order
        self._order: ChunkOrder | None = None       # made on first use, if the chunks are not in schema order
        self.index = index
        self._metadata: fmt.RowGroup | None = None
        self._list = row_groups
        self._stored_offsets: Int64s | None = None      # the chunks' offsets, if the row group list does not have them
        count = row_groups.inner_count(index)
        rows, ordinal = row_groups.number(index, _NUM_ROWS), row_groups.number(index, _ORDINAL)
        if count is None or rows is None:
            offset = int(row_groups.offsets[index])
            row_group, lists = fmt.decode_listed(fmt.RowGroup, footer, offset, {_COLUMNS: 0})
            self._stored_offsets = lists[_COLUMNS].offsets
            self._metadata, rows, ordinal, count = row_group, row_group.num_rows, row_group.ordinal, len(self._stored_offsets)
        self.num_columns: int = count
        self.num_rows: int = rows
        self.ordinal: int = index if ordinal is None else ordinal

    @property
    def metadata(self) -> fmt.RowGroup:
        """The stored struct, without the column chunks."""
        if self._metadata is None:
            chunk_list = self._list.inner(self.index)
            assert chunk_list is not None
            self._metadata = fmt.decode_listed(fmt.RowGroup, self._footer, chunk_list[1], {_COLUMNS: 0}, _COLUMNS)[0]
        return self._metadata

    @property
    def _offsets(self) -> Int64s:
        """Where each column chunk's entry begins in the footer."""
        if self._stored_offsets is not None:
            return self._stored_offsets
        chunk_list = self._list.inner(self.index)
        assert chunk_list is not None
        return chunk_list[0]

    @property
    def total_byte_size(self) -> int:
        """Size of all pages in bytes, uncompressed."""
        return self.metadata.total_byte_size

    @property
    def total_compressed_size(self) -> int | None:
        """Size of all pages in bytes, as stored. None if the number is not stored."""
        return self.metadata.total_compressed_size

    @property
    def file_offset(self) -> int | None:
        """Offset in the file at which the first page begins, in bytes. None if it is not stored."""
        return self.metadata.file_offset

    @property
    def sorting_columns(self) -> list[fmt.SortingColumn]:
        """Columns by which the rows are sorted."""
        return self._by_path().by_column(self.metadata.sorting_columns or ())

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as a dict, with the keys and values of pyarrow's ``to_dict``."""
        return {
            "num_columns": self.num_columns,
            "num_rows": self.num_rows,
            "total_byte_size": self.total_byte_size,
            "columns": [self.column(index).to_dict() for index in range(self.num_columns)],
            "sorting_columns": [
                {"column_index": each.column_idx, "descending": each.descending, "nulls_first": each.nulls_first}
                for each in self.sorting_columns
            ],
        }

    def equals(self, other: RowGroupMetaData) -> bool:
        """Return whether another row group has the same facts: all that ``to_dict`` returns.

        Args:
            other: the other row group.

        Raises:
            TypeError: ``other`` is not a RowGroupMetaData.
        """
        if not isinstance(other, RowGroupMetaData):
            raise TypeError(f"a RowGroupMetaData is not compared with a {type(other).__name__}")
        return self.to_dict() == other.to_dict()

    def column(self, index: int) -> ColumnChunkMetaData:
        """Return a leaf column's chunk. If its position and its path disagree, the option ``chunk_order`` decides.

        Args:
            index: leaf column index.

        Raises:
            FormatError: the row group has no chunk for the column, the chunk's entry is broken, or no option decides.
        """
        kept_chunk = self._kept_chunks.get((self.index, index))
        if kept_chunk is not None:
            return kept_chunk
        if 0 <= index < self.num_columns:
            place = self._list.inner_place(self.index, index) if self._stored_offsets is None else None
            chunk = fmt.decode(fmt.ColumnChunk, self._footer, int(self._offsets[index]) if place is None else place)[0]
            if index < len(self._columns) and not may_be_of(chunk, self._columns[index]):
                chunk = self._by_path().chunk(index)
        else:
            chunk = self._by_path().chunk(index)
        if len(self._kept_chunks) >= MOST_KEPT:
            self._kept_chunks.clear()
        column = self._columns[index] if index < len(self._columns) else None
        new_chunk = untracked(
            ColumnChunkMetaData(chunk, self.ordinal, index, self._decryptor, column, self.num_rows, self._orders)
        )
        self._kept_chunks[self.index, index] = new_chunk
        return new_chunk

    def _by_path(self) -> ChunkOrder:
        if self._order is None:
            self._order = ChunkOrder(self._footer, self._offsets, self.index, self._columns, self._chunk_order)
        return self._order

    def __repr__(self) -> str:
        return f"<RowGroupMetaData {self.index}: {self.num_rows} rows, {self.num_columns} columns>"


def _parsed(data: bytes, count: int) -> ParquetSchema:
    """Parse a schema from ``count`` consecutive serialized elements."""
    return ParquetSchema.from_elements(StoredElements(data, count), count)


_parsed_or_kept = lru_cache(maxsize=MOST_SCHEMAS_KEPT)(_parsed)
_long_parsed_or_kept = lru_cache(maxsize=MOST_LONG_SCHEMAS_KEPT)(_parsed)


class FileEnd(NamedTuple):
    """A file's size and last bytes, by which a footer that was read from the file is recognised.

    Attributes:
        size: file size in bytes.
        tail: the last bytes: the footer's end (encrypted or signed, if it is), the footer length and the magic.
    """

    size: int
    tail: bytes


class FileMetaData:
    """A file's footer (parquet.thrift, ``FileMetaData``).

    Footers with equal contents are equal. A pickle holds the serialized footer. A footer that was opened with keys cannot be
    pickled (UnsupportedError).

    Args:
        footer: serialized FileMetaData. Bytes behind it are ignored.
        decryptor: decrypts column metadata.
        chunk_order: the option ``ReaderProperties.chunk_order``.
        file_end: end of the file from which the footer was read. None if it does not come from a file's end.

    Attributes:
        file_end: as the argument.
        metadata: the stored struct, without schema, row groups, key-value metadata and column orders.
        num_row_groups: row group count.
        num_schema_elements: how many groups and leaves the schema has, including the root.
        key_value_bytes: size of the serialized key-value metadata, in bytes.
        version: the stored format version.
        num_rows: row count.
        created_by: the writer's name and version. None if not stored.
        orders: how the columns' bounds are compared.
        calendar: the calendar of dates and timestamps.
        encryption_algorithm: encryption algorithm and AAD prefix. None for a plaintext file.
        footer_signing_key_metadata: key metadata for the signature of a plaintext footer. None if it is not signed.

    Raises:
        FormatError: the bytes are not a FileMetaData.
    """

    def __init__(
        self, footer: memoryview, decryptor: FileDecryptor, chunk_order: Matching = None, file_end: FileEnd | None = None
    ) -> None:
        self._footer = footer
        self.file_end = file_end
        self._chunk_order = chunk_order
        self._kept_groups: dict[int, RowGroupMetaData] = {}
        self._kept_chunks: dict[tuple[int, int], ColumnChunkMetaData] = {}
        self._decryptor = decryptor
        self.metadata, lists = fmt.decode_listed(fmt.FileMetaData, footer, 0, _LISTED, 0, _NOTED)
        self._schema_elements = lists[_SCHEMA]
        self._key_values: tuple[int, int] = lists.get(_KEY_VALUES, (0, 0))     # where they begin and end in the footer
        self._row_groups = lists[_ROW_GROUPS]
        self._chunk_entries = ChunkEntries(footer, self._row_groups)
        orders = lists.get(_COLUMN_ORDERS)
        self.num_row_groups = len(self._row_groups.offsets)
        self.num_schema_elements = len(self._schema_elements.offsets)
        self.key_value_bytes = self._key_values[1] - self._key_values[0]
        self.version: int = self.metadata.version
        self.num_rows: int = self.metadata.num_rows
        self.created_by: str | None = self.metadata.created_by
        self.calendar = LegacyCalendar(footer, self._key_values)
        self.orders = ColumnOrders(self.created_by, footer, [] if orders is None else orders.offsets, self.calendar)
        self.encryption_algorithm: fmt.EncryptionAlgorithm | None = self.metadata.encryption_algorithm
        self.footer_signing_key_metadata: bytes | None = self.metadata.footer_signing_key_metadata

    @cached_property
    def key_values(self) -> list[fmt.KeyValue]:
        """The stored entries of the key-value metadata, decoded on first use."""
        return fmt.decode_list(fmt.KeyValue, self._footer, self._key_values[0]) if self._key_values[1] else []

    @property
    def key_value_metadata(self) -> dict[str, str | None]:
        """Key-value metadata, without the key that marks a checkpoint. If a key occurs twice, the last value counts."""
        return {entry.key: entry.value for entry in self.key_values if entry.key != CHECKPOINT_KEY}

    def key_value(self, key: str) -> str | None:
        """Return a key's value in the key-value metadata. If the key occurs twice, the last value counts.

        Args:
            key: the key.

        Returns:
            The value. None if the key is missing or has no value.
        """
        return self.key_value_metadata.get(key) if self._may_have(key) else None

    @property
    def is_checkpoint(self) -> bool:
        """Whether this is a checkpoint, which is an unfinished file's footer."""
        return self._may_have(CHECKPOINT_KEY) and any(entry.key == CHECKPOINT_KEY for entry in self.key_values)

    def _may_have(self, key: str) -> bool:
        """Return whether a key's bytes occur in the key-value metadata. No entry is decoded."""
        return self.key_value_bytes > 0 and key.encode() in bytes(self._footer[slice(*self._key_values)])

    @cached_property
    def row_counts(self) -> list[int]:
        """Each row group's stored row count."""
        return self._numbers(_NUM_ROWS, attrgetter("num_rows"))

    @cached_property
    def row_group_ordinals(self) -> list[int]:
        """Each row group's ordinal, which AADs contain. The index if no ordinal is stored."""
        return self._numbers(_ORDINAL, attrgetter("ordinal"))

    def _numbers(self, field: int, number_of: Callable[[RowGroupMetaData], int]) -> list[int]:
        """Return one number for each row group.

        It comes from a field that was noted while the list was read. If it was not noted, the row group is decoded.

        Args:
            field: field id in RowGroup.
            number_of: returns the number from a decoded row group.
        """
        numbers: list[int] = self._row_groups.noted(field)
        for index, number in enumerate(numbers):
            if number == fmt.MISSING:
                numbers[index] = number_of(self.row_group(index))
        return numbers

    @cached_property
    def first_rows(self) -> Int64s:
        """Each row group's first row, counted from the start of the file. The last entry is the file's row count.

        Shape (row groups + 1,), int64, read-only.

        Raises:
            FormatError: a row count is negative, or the sum exceeds the largest INT64.
        """
        counts = self.row_counts
        for index, count in enumerate(counts):
            if count < 0:
                raise FormatError(f"the row group has {count} rows", row_group=index)
        if sum(counts) > MAX_INT64:
            raise FormatError(f"the row groups have {sum(counts)} rows together, more than an INT64 holds")
        first = np.array([0, *accumulate(counts)], np.int64)
        first.flags.writeable = False
        return first

    def column_order(self, index: int) -> fmt.ColumnOrder | None:
        """Return the order by which a leaf column's bounds are compared. None if it is not stored.

        Args:
            index: leaf column index.
        """
        return self.orders.column_order(index)

    @property
    def column_orders(self) -> list[fmt.ColumnOrder]:
        """The order by which each leaf column's bounds are compared. Empty if no orders are stored."""
        return [order for order in map(self.column_order, range(len(self.orders.offsets))) if order is not None]

    @property
    def schema_elements(self) -> list[fmt.SchemaElement]:
        """The schema tree, flattened depth first."""
        return [fmt.decode(fmt.SchemaElement, self._footer, offset)[0] for offset in self._schema_elements.offsets.tolist()]

    @cached_property
    def schema(self) -> ParquetSchema:
        """The schema."""
        offsets = self._schema_elements.offsets.tolist()
        if not offsets:
            return ParquetSchema.from_elements(iter(()), 0)
        _, last = fmt.decode(fmt.SchemaElement, self._footer, offsets[-1])
        data = bytes(self._footer[offsets[0] : offsets[-1] + last])
        if len(data) <= LONGEST_SCHEMA:
            return _parsed_or_kept(data, len(offsets))
        return (_long_parsed_or_kept if len(data) <= LONGEST_SCHEMA_KEPT else _parsed)(data, len(offsets))

    @property
    def num_columns(self) -> int:
        """Leaf column count."""
        return len(self.schema.columns)

    def row_group(self, index: int) -> RowGroupMetaData:
        """Return a row group.

        Args:
            index: row group index, from 0 to ``num_row_groups - 1``.

        Raises:
            IndexError: there are fewer row groups.
        """
        kept_group = self._kept_groups.get(index)
        if kept_group is not None:
            return kept_group
        if not 0 <= index < self.num_row_groups:
            raise IndexError(f"there is no row group {index}: the file has {self.num_row_groups}")
        if len(self._kept_groups) >= MOST_KEPT:
            self._kept_groups.clear()
        try:
            columns = self.schema.columns
        except ParquetError:
            columns = ()
        new_group = RowGroupMetaData(
            self._footer, self._row_groups, index, self._decryptor, self._kept_chunks, columns, self.orders,
            self._chunk_order,
        )
        self._kept_groups[index] = untracked(new_group)
        return new_group

    @property
    def row_groups(self) -> Iterator[RowGroupMetaData]:
        """All row groups, in order."""
        return map(self.row_group, range(self.num_row_groups))

    @property
    def format_version(self) -> str:
        """The format version as pyarrow spells it: ``"1.0"`` or ``"2.6"``."""
        return "2.6" if self.version == 2 else "1.0"     # pyarrow takes other numbers for 1 too

    @property
    def serialized_size(self) -> int:
        """Size of the serialized footer in bytes, without its length and the magic bytes."""
        return self._footer.nbytes

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as a dict, with the keys and values of pyarrow's ``to_dict``."""
        return {
            "created_by": self.created_by or "",
            "num_columns": self.num_columns,
            "num_rows": self.num_rows,
            "num_row_groups": self.num_row_groups,
            "row_groups": [group.to_dict() for group in self.row_groups],
            "format_version": self.format_version,
            "serialized_size": self.serialized_size,
        }

    def equals(self, other: FileMetaData) -> bool:
        """Return whether another footer has the same contents. The same as ``==``, but for other objects, which are refused.

        Args:
            other: the other footer.

        Raises:
            TypeError: ``other`` is not a FileMetaData.
        """
        if not isinstance(other, FileMetaData):
            raise TypeError(f"a FileMetaData is not compared with a {type(other).__name__}")
        return self == other

    def set_file_path(self, path: str) -> None:
        """Say that all column chunks are in another file, as a ``_metadata`` file does. This changes the object.

        A ParquetFile that is open with this footer would look for its chunks there: pass footers of ``read_metadata``.

        Args:
            path: path of the file, relative to the file that will hold this footer.
        """
        whole = decoded_footer(self)
        for group in whole.row_groups:
            for chunk in group.columns:
                chunk.file_path = path
        self._become(whole)

    def append_row_groups(self, other: FileMetaData) -> None:
        """Add the row groups of another footer, for a ``_metadata`` file. This changes the object.

        Args:
            other: a footer with the same schema.

        Raises:
            SchemaError: the schemas differ.
        """
        whole, more = decoded_footer(self), decoded_footer(other)
        if whole.schema != more.schema:
            raise SchemaError("the row groups of a file with another schema cannot be added")
        for number, group in enumerate(more.row_groups, len(whole.row_groups)):
            group.ordinal = number if number < MOST_ENCRYPTED_ROW_GROUPS else None
        whole.row_groups += more.row_groups
        whole.num_rows += more.num_rows
        self._become(whole)

    def write_metadata_file(self, where: Any) -> None:
        """Write the footer alone as a file, such as ``_metadata`` or ``_common_metadata``.

        Args:
            where: a path, a writable binary file object or an fsspec URL.

        Raises:
            UnsupportedError: the footer belongs to an encrypted file.
        """
        self._refuse_keys("written to a file of its own")
        from fastpq.io.sink_opening import open_sink

        with open_sink(where) as sink:
            sink.write(MAGIC + bytes(self._footer) + self._footer.nbytes.to_bytes(4, "little") + MAGIC)

    def _become(self, whole: fmt.FileMetaData) -> None:
        self._refuse_keys("changed")
        decryptor, chunk_order, is_kept = self._decryptor, self._chunk_order, self.calendar.is_kept
        self.__dict__.clear()
        FileMetaData.__init__(self, memoryview(fmt.encode(whole)), decryptor, chunk_order)
        self.calendar.is_kept = is_kept

    def _refuse_keys(self, what: str) -> None:
        if self.encryption_algorithm is not None or self.footer_signing_key_metadata is not None:
            raise UnsupportedError(f"the footer of an encrypted file cannot be {what}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FileMetaData):
            return NotImplemented
        if self._footer == other._footer:
            return True
        return bool(decoded_footer(self) == decoded_footer(other))

    def __hash__(self) -> int:
        schema = tuple((element.name, element.type) for element in self.schema_elements)
        return hash((self.num_rows, self.num_row_groups, schema, self.created_by))

    def __reduce__(self) -> tuple[Any, ...]:
        if type(self._decryptor) is not FileDecryptor:
            raise UnsupportedError(
                "the FileMetaData of a file opened with keys cannot be pickled, since a pickle has neither keys nor values that "
                "they opened: pass the path, and call read_metadata(path, decryption_properties=...) in the other process"
            )
        return _unpickled, (bytes(self._footer), self._chunk_order, self.file_end)

    def __repr__(self) -> str:
        return to_text(self._view(TEXT_ROW_GROUPS))

    def _repr_html_(self) -> str:
        return to_html(self._view(HTML_ROW_GROUPS))

    def _view(self, most: int) -> View:
        """Return what is shown: facts about the footer, and a table with the first ``most`` row groups."""
        if not hasattr(self, "_row_groups"):        # __init__ failed, and a traceback shows the object
            return View("FileMetaData", ["not read"])
        return View("FileMetaData", facts_of(self), _row_group_grid(self, most))


def _unpickled(footer: bytes, chunk_order: Matching = None, file_end: FileEnd | None = None) -> FileMetaData:
    return FileMetaData(memoryview(footer), FileDecryptor(), chunk_order, file_end)


def decoded_footer(metadata: FileMetaData) -> fmt.FileMetaData:
    """Decode all structs in a footer. Each call makes new structs, which the caller may change."""
    return fmt.decode(fmt.FileMetaData, metadata._footer)[0]


def extended_footer(metadata: FileMetaData, row_groups: list[fmt.RowGroup]) -> FileMetaData:
    """Return the footer for the same file with more row groups at its end.

    Args:
        metadata: the footer.
        row_groups: the new row groups' entries.
    """
    whole = decoded_footer(metadata)
    whole.row_groups = [*whole.row_groups, *row_groups]
    whole.num_rows += sum(group.num_rows for group in row_groups)
    return FileMetaData(memoryview(fmt.encode(whole)), metadata._decryptor, metadata._chunk_order)


def renamed_footer(metadata: FileMetaData, names: Mapping[str, str]) -> FileMetaData:
    """Return the footer for the same file with other names of columns.

    Args:
        metadata: the footer of a plaintext file.
        names: new names by stored name. The columns are at the top level.
    """
    whole = decoded_footer(metadata)
    for element, node in zip(whole.schema, metadata.schema.nodes(), strict=True):
        if node.parent is metadata.schema.root:
            element.name = names.get(element.name, element.name)
    for group in whole.row_groups:
        for chunk in group.columns:
            if chunk.meta_data is not None and chunk.meta_data.path_in_schema:
                first, *others = chunk.meta_data.path_in_schema
                chunk.meta_data.path_in_schema = [names.get(first, first), *others]
    return FileMetaData(memoryview(fmt.encode(whole)), metadata._decryptor, metadata._chunk_order, metadata.file_end)


def decryptor_of(metadata: FileMetaData) -> FileDecryptor:
    """Return the decryptor for the file that has this footer."""
    return metadata._decryptor


def are_described_alike(one: FileMetaData, other: FileMetaData) -> bool:
    """Return whether two footers have the same schema, key-value metadata and writer.

    May be False if the schemas are equal but too long to be kept, because schemas are compared by identity.
    """
    is_alike = one.created_by == other.created_by and one.schema is other.schema
    return is_alike and one._footer[slice(*one._key_values)] == other._footer[slice(*other._key_values)]


def _row_group_grid(metadata: FileMetaData, most: int) -> Grid | None:
    """Return a table with the row counts and sizes of the first ``most`` row groups. None if there are no row groups."""
    names = ["row group", "rows", "stored", "uncompressed", "offset"]
    rows = [_row_group_cells(metadata, index) for index in range(min(most, metadata.num_row_groups))]
    note = more(metadata.num_row_groups, len(rows), "row group")
    return Grid([Heading(name, is_number=True) for name in names], rows, note) if rows else None


def _row_group_cells(metadata: FileMetaData, index: int) -> list[str]:
    try:
        group = metadata.row_group(index)
        sizes, offset = [group.total_compressed_size, group.total_byte_size], group.file_offset
    except ParquetError:
        return [str(index), "broken", "", "", ""]
    stored_size, plain_size = ("unknown" if size is None else of_bytes(size) for size in sizes)
    return [str(index), f"{group.num_rows:,}", stored_size, plain_size, "" if offset is None else f"{offset:,}"]


def facts_of(metadata: FileMetaData) -> list[str]:
    """Return short texts about the rows, row groups, columns, writer and encryption."""
    algorithm = metadata.encryption_algorithm
    name = "AES_GCM_V1" if algorithm is not None and algorithm.AES_GCM_V1 is not None else "AES_GCM_CTR_V1"
    return [
        counted(metadata.num_rows, "row"),
        counted(metadata.num_row_groups, "row group"),
        _columns_fact(metadata),
        f"by {metadata.created_by}" if metadata.created_by else "by an unnamed writer",
        "plaintext" if algorithm is None else f"encrypted with {name}",
    ]


def _columns_fact(metadata: FileMetaData) -> str:
    try:
        return counted(metadata.num_columns, "column")
    except ParquetError:
        return "broken schema"
