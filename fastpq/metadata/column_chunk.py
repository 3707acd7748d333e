"""ColumnChunkMetaData: one column chunk in a footer."""

from __future__ import annotations

from typing import Any, NamedTuple

from fastpq import format as fmt
from fastpq.common.extensions import registered
from fastpq.encryption.decryptor import FileDecryptor, column_name
from fastpq.errors import FormatError
from fastpq.format.enums import CompressionCodec, Encoding, Type
from fastpq.metadata.legacy_calendar import LegacyCalendar
from fastpq.schema.parquet_schema import ColumnDescriptor


class ColumnOrders(NamedTuple):
    """The writer, and the order by which each column's bounds are compared (parquet.thrift, ``ColumnOrder``).

    The orders are decoded on demand.

    Attributes:
        created_by: the writer's name and version. None if not stored.
        footer: the serialized footer.
        offsets: for each leaf column, where its order begins in the footer. Empty if no orders are stored.
        calendar: the calendar of dates and timestamps in the bounds.
    """

    created_by: str | None
    footer: memoryview
    offsets: list[int]
    calendar: LegacyCalendar

    def column_order(self, index: int) -> fmt.ColumnOrder | None:
        """Return the order by which a leaf column's bounds are compared. None if it is not stored.

        Args:
            index: leaf column index.
        """
        return fmt.decode(fmt.ColumnOrder, self.footer, self.offsets[index])[0] if index < len(self.offsets) else None


class ChunkPlace(NamedTuple):
    """What a file must tell before a column chunk's statistics can be interpreted.

    Attributes:
        column: the chunk's column.
        num_rows: the row group's row count.
        orders: the writer, and how the columns' bounds are compared.
    """

    column: ColumnDescriptor
    num_rows: int
    orders: ColumnOrders


class ColumnChunkMetaData:
    """One column chunk (parquet.thrift, ``ColumnChunk`` and ``ColumnMetaData``).

    Encrypted metadata are decrypted on first use with the column's key. Without the key, using them raises KeyAccessError.

    Args:
        chunk: the chunk's entry in the footer.
        row_group_ordinal: the row group's ordinal in AADs.
        column_ordinal: leaf column index.
        decryptor: the file's decryptor.
        column: the chunk's column. None for a chunk that belongs to no file.
        num_rows: the row group's row count.
        orders: how the columns' bounds are compared. None for a chunk that belongs to no file.
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
        """The stored struct, decrypted if necessary."""
        if self._metadata is None:
            self._metadata = self._decryptor.column_metadata(self.chunk, self.row_group_ordinal, self.column_ordinal)
        return self._metadata

    @property
    def file_path(self) -> str | None:
        """Path to the file that holds the chunk. None if the footer's file holds it."""
        return self.chunk.file_path

    @property
    def file_offset(self) -> int | None:
        """The stored ``file_offset``, in bytes. Most writers store 0, because the field is deprecated. See ``byte_range``."""
        return self.chunk.file_offset

    @property
    def is_encrypted(self) -> bool:
        """Whether the chunk is encrypted."""
        return self.chunk.crypto_metadata is not None or self._decryptor.seals_every_chunk

    @property
    def physical_type(self) -> int:
        """Physical type, a number from ``Type``."""
        return self.metadata.type

    @property
    def encodings(self) -> list[int]:
        """Encodings used for levels and values, as numbers from ``Encoding``."""
        return self.metadata.encodings

    @property
    def encoding_stats(self) -> list[fmt.PageEncodingStats]:
        """Page counts by page type and encoding. Empty if not stored."""
        return self.metadata.encoding_stats or []

    @property
    def path_in_schema(self) -> tuple[str, ...]:
        """The column's path: the names of the groups around the leaf, then the leaf's name."""
        stored_path = self.metadata.path_in_schema
        if stored_path is None:
            return () if self._column is None else self._column.path
        return tuple(stored_path)

    @property
    def codec(self) -> int:
        """Compression codec, a number from ``CompressionCodec``."""
        return self.metadata.codec

    @property
    def compression(self) -> str:
        """Name of the codec, as pyarrow spells it: ``"SNAPPY"``, ``"UNCOMPRESSED"``, ``"LZ4"`` for both kinds of LZ4."""
        try:
            return CompressionCodec(self.metadata.codec).name.removesuffix("_RAW")
        except ValueError:
            return "UNKNOWN"

    @property
    def is_stats_set(self) -> bool:
        """Whether the chunk has statistics."""
        return self.metadata.statistics is not None

    @property
    def has_dictionary_page(self) -> bool:
        """Whether the chunk has a dictionary page."""
        return self.dictionary_page_offset is not None

    @property
    def has_index_page(self) -> bool:
        """Whether the metadata name an index page. No known writer writes such pages: page indexes are in the ColumnIndex."""
        return self.metadata.index_page_offset is not None

    @property
    def index_page_offset(self) -> int | None:
        """Offset in the file at which the index page begins, in bytes. None without an index page."""
        return self.metadata.index_page_offset

    @property
    def has_column_index(self) -> bool:
        """Whether the file has a ColumnIndex for the chunk."""
        return self.chunk.column_index_offset is not None and self.chunk.column_index_length is not None

    @property
    def has_offset_index(self) -> bool:
        """Whether the file has an OffsetIndex for the chunk."""
        return self.chunk.offset_index_offset is not None and self.chunk.offset_index_length is not None

    @property
    def bloom_filter_offset(self) -> int | None:
        """Offset in the file at which the chunk's bloom filter begins, in bytes. None without a bloom filter."""
        return self.metadata.bloom_filter_offset

    @property
    def bloom_filter_length(self) -> int | None:
        """Size of the chunk's bloom filter in bytes, as stored. None without a bloom filter, or if it is not stored."""
        return self.metadata.bloom_filter_length

    @property
    def num_values(self) -> int:
        """Value count, including nulls."""
        return self.metadata.num_values

    @property
    def total_uncompressed_size(self) -> int:
        """Size of all pages with their headers, in bytes, uncompressed."""
        return self.metadata.total_uncompressed_size

    @property
    def total_compressed_size(self) -> int:
        """Size of all pages with their headers, in bytes, as stored."""
        return self.metadata.total_compressed_size

    @property
    def data_page_offset(self) -> int:
        """Offset in the file at which the first data page begins, in bytes."""
        return self.metadata.data_page_offset

    @property
    def dictionary_page_offset(self) -> int | None:
        """Offset in the file at which the dictionary page begins, in bytes. None if the chunk has no dictionary page.

        A stored 0 counts as None, because some writers store 0 if there is no dictionary page.
        """
        return self.metadata.dictionary_page_offset or None

    @property
    def statistics(self) -> Any:
        """The chunk's decoded bounds and counts, a ColumnStatistics. None if not stored.

        Raises:
            KeyAccessError: the metadata are encrypted, and their key is missing.
        """
        metadata = self.metadata
        if metadata.statistics is None or self._column is None or self._orders is None:
            return None
        statistics_of = registered("statistics_of")
        assert statistics_of is not None, "fastpq registers the class of fastpq.filters"
        return statistics_of(metadata, ChunkPlace(self._column, self._num_rows, self._orders))

    @property
    def geospatial_statistics(self) -> fmt.GeospatialStatistics | None:
        """The chunk's bounding box and geometry types. None if not stored."""
        return self.metadata.geospatial_statistics

    @property
    def is_geo_stats_set(self) -> bool:
        """Whether the chunk has geospatial statistics."""
        return self.metadata.geospatial_statistics is not None

    @property
    def key_value_metadata(self) -> dict[str, str | None]:
        """The chunk's own key-value metadata. If a key occurs twice, the last value counts."""
        return {entry.key: entry.value for entry in self.metadata.key_value_metadata or ()}

    def equals(self, other: ColumnChunkMetaData) -> bool:
        """Return whether another chunk has the same facts: all that ``to_dict`` returns.

        Args:
            other: the other chunk.

        Raises:
            TypeError: ``other`` is not a ColumnChunkMetaData.
        """
        if not isinstance(other, ColumnChunkMetaData):
            raise TypeError(f"a ColumnChunkMetaData is not compared with a {type(other).__name__}")
        return self.to_dict() == other.to_dict()

    @property
    def byte_range(self) -> tuple[int, int]:
        """Where the chunk's pages are in the file: (offset, length), in bytes.

        Raises:
            FormatError: the offset or the length is negative.
        """
        metadata = self._metadata or self.metadata
        start, length, dictionary = metadata.data_page_offset, metadata.total_compressed_size, metadata.dictionary_page_offset
        if dictionary is not None and 0 < dictionary < start:
            start = dictionary
        if start < 0 or length < 0:
            raise FormatError(f"the column chunk has {length} bytes at offset {start}")
        return start, length

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as a dict, with the keys and values of pyarrow's ``to_dict``."""
        statistics = self.statistics
        return {
            "file_offset": self.chunk.file_offset,
            "file_path": self.file_path or "",
            "physical_type": Type(self.physical_type).name,
            "num_values": self.num_values,
            "path_in_schema": ".".join(self.path_in_schema),
            "is_stats_set": self.is_stats_set,
            "statistics": None if statistics is None else statistics.to_dict(),
            "geo_statistics": None if self.geospatial_statistics is None else _geospatial_dict(self.geospatial_statistics),
            "compression": self.compression,
            "encodings": tuple(map(_encoding_name, self.encodings)),
            "has_dictionary_page": self.has_dictionary_page,
            "dictionary_page_offset": self.dictionary_page_offset,
            "data_page_offset": self.data_page_offset,
            "total_compressed_size": self.total_compressed_size,
            "total_uncompressed_size": self.total_uncompressed_size,
            "bloom_filter_offset": self.bloom_filter_offset,
            "bloom_filter_length": self.bloom_filter_length,
        }

    def __repr__(self) -> str:
        metadata = self._metadata or self.chunk.meta_data       # a repr must not ask a key service
        values = "encrypted" if metadata is None else f"{metadata.num_values} values"
        return f"<ColumnChunkMetaData {column_name(self.chunk)}: {values}>"


def _geospatial_dict(statistics: fmt.GeospatialStatistics) -> dict[str, Any]:
    names = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax", "mmin", "mmax")
    box = {name: getattr(statistics.bbox, name, None) for name in names}
    return {"geospatial_types": statistics.geospatial_types, **box}


def _encoding_name(number: int) -> str:
    """Return an encoding's name, or a text with the number of one that the specification does not have."""
    return {each.value: each.name for each in Encoding}.get(number, f"unknown {number}")
