"""ColumnChunkMetaData: one column chunk of a footer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ForwardRef, NamedTuple

from fastpq import format as fmt
from fastpq.common.extensions import registered
from fastpq.encryption.decryptor import FileDecryptor, column_name
from fastpq.errors import FormatError
from fastpq.schema.parquet_schema import ColumnDescriptor

if TYPE_CHECKING:
    from fastpq.metadata.file_metadata import ColumnOrders
else:       # types of annotations, for typing.get_type_hints
    ColumnOrders = ForwardRef("ColumnOrders", module="fastpq.metadata.file_metadata")


class ChunkPlace(NamedTuple):
    """The facts of a file by which the statistics of a column chunk are understood.

    Attributes:
        column: the chunk's column.
        num_rows: rows of the row group.
        orders: orders of columns, and the writer.
    """

    column: ColumnDescriptor
    num_rows: int
    orders: ColumnOrders


class ColumnChunkMetaData:
    """One column chunk (parquet.thrift, ``ColumnChunk`` and ``ColumnMetaData``).

    Encrypted metadata are decrypted on first use, with the column's key: KeyAccessError without the key.

    Args:
        chunk: the chunk's entry in the footer.
        row_group_ordinal: ordinal of the row group in AADs.
        column_ordinal: number of the leaf column.
        decryptor: decryptor of the file.
        column: the chunk's column; None for a chunk apart from a file.
        num_rows: rows of the row group.
        orders: orders of columns; None for a chunk apart from a file.
    """

    __slots__ = ("_column", "_decryptor", "_metadata", "_num_rows", "_orders", "chunk", "column_ordinal", "row_group_ordinal")

    def __init__(
        self,
        chunk: fmt.ColumnChunk,
        row_group_ordinal: int,
        column_ordinal: int,
        decryptor: FileDecryptor,
        column: ColumnDescriptor | None = None,
        num_rows: int = 0,
        orders: ColumnOrders | None = None,
    ) -> None:
        self.chunk = chunk
        self.row_group_ordinal = row_group_ordinal
        self.column_ordinal = column_ordinal
        self._decryptor = decryptor
        self._column, self._num_rows, self._orders = column, num_rows, orders
        self._metadata: fmt.ColumnMetaData | None = None

    @property
    def metadata(self) -> fmt.ColumnMetaData:
        """The struct as stored, decrypted if necessary."""
        if self._metadata is None:
            self._metadata = self._decryptor.column_metadata(self.chunk, self.row_group_ordinal, self.column_ordinal)
        return self._metadata

    @property
    def file_path(self) -> str | None:
        """Path of the chunk's file, if this is not the file of the footer."""
        return self.chunk.file_path

    @property
    def is_encrypted(self) -> bool:
        """Whether the chunk is encrypted."""
        return self.chunk.crypto_metadata is not None or self._decryptor.seals_every_chunk

    @property
    def physical_type(self) -> int:
        """Physical type, a number of ``Type``."""
        return self.metadata.type

    @property
    def encodings(self) -> list[int]:
        """Encodings of levels and values, numbers of ``Encoding``."""
        return self.metadata.encodings

    @property
    def encoding_stats(self) -> list[fmt.PageEncodingStats]:
        """Number of pages of each kind and encoding."""
        return self.metadata.encoding_stats or []

    @property
    def path_in_schema(self) -> tuple[str, ...]:
        """Names of the groups and of the leaf."""
        return tuple(self.metadata.path_in_schema)

    @property
    def codec(self) -> int:
        """Compression codec, a number of ``CompressionCodec``."""
        return self.metadata.codec

    @property
    def num_values(self) -> int:
        """Number of values, nulls included."""
        return self.metadata.num_values

    @property
    def total_uncompressed_size(self) -> int:
        """Bytes of all pages with their headers, uncompressed."""
        return self.metadata.total_uncompressed_size

    @property
    def total_compressed_size(self) -> int:
        """Bytes of all pages with their headers, as stored."""
        return self.metadata.total_compressed_size

    @property
    def data_page_offset(self) -> int:
        """Offset of the first data page in the file."""
        return self.metadata.data_page_offset

    @property
    def dictionary_page_offset(self) -> int | None:
        """Offset of the dictionary page; None if there is none. Some writers store 0 for none."""
        return self.metadata.dictionary_page_offset or None

    @property
    def statistics(self) -> Any:
        """Bounds and counts of the chunk, decoded (a ColumnStatistics); None if not stored.

        Raises:
            KeyAccessError: the metadata are encrypted, and there is no key.
        """
        stored = self.metadata
        if stored.statistics is None or self._column is None or self._orders is None:
            return None
        decoded = registered("statistics_of")
        assert decoded is not None, "fastpq registers the class of fastpq.filters"
        return decoded(stored, ChunkPlace(self._column, self._num_rows, self._orders))

    @property
    def geospatial_statistics(self) -> fmt.GeospatialStatistics | None:
        """Bounding box and geometry types of the chunk."""
        return self.metadata.geospatial_statistics

    @property
    def byte_range(self) -> tuple[int, int]:
        """Offset and length of the chunk's pages in the file.

        Raises:
            FormatError: offset or length are negative.
        """
        stored = self._metadata or self.metadata
        start, length, dictionary = stored.data_page_offset, stored.total_compressed_size, stored.dictionary_page_offset
        if dictionary is not None and 0 < dictionary < start:
            start = dictionary
        if start < 0 or length < 0:
            raise FormatError(f"a column chunk of {length} bytes at offset {start}")
        return start, length

    def __repr__(self) -> str:
        open_already = self._metadata or self.chunk.meta_data       # a repr asks no key service, and does not fail
        values = "encrypted" if open_already is None else f"{open_already.num_values} values"
        return f"<ColumnChunkMetaData {column_name(self.chunk)}: {values}>"
