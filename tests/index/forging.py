"""Files with altered statistics, page indexes and bloom filters over unaltered pages."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from fastpq import format as fmt
from tests.narrowing import present


@dataclass
class Chunk:
    """The claims about one column chunk, to be altered in place; None for absent parts.

    Attributes:
        entry: its entry in the footer.
        offset_index, column_index: its page index.
        bloom_header, bitset: its bloom filter.
        row_group: the row group.
        bloom_length: added to the stored length of the bloom filter.
    """

    entry: fmt.ColumnChunk
    offset_index: fmt.OffsetIndex
    column_index: fmt.ColumnIndex | None
    bloom_header: fmt.BloomFilterHeader | None
    bitset: bytearray
    row_group: fmt.RowGroup
    bloom_length: int = 0
    bloom_offset: int | None = None

    @property
    def metadata(self) -> fmt.ColumnMetaData:
        return present(self.entry.meta_data)

    @property
    def statistics(self) -> fmt.Statistics:
        return present(self.metadata.statistics)

    @property
    def pages(self) -> fmt.ColumnIndex:
        return present(self.column_index)


@dataclass
class Forgery:
    """A file of one row group, opened to be altered.

    Args:
        data: the file.

    Attributes:
        metadata: the footer.
        chunks: the column chunks.
    """

    data: bytes
    metadata: fmt.FileMetaData = field(init=False)
    chunks: list[Chunk] = field(init=False)

    def __post_init__(self) -> None:
        (footer_size,) = struct.unpack("<I", self.data[-8:-4])
        self._end = len(self.data) - 8 - footer_size
        self.metadata, _ = fmt.decode(fmt.FileMetaData, self.data, self._end)
        (group,) = self.metadata.row_groups
        self.chunks = [self._chunk(entry, group) for entry in group.columns]

    def _chunk(self, entry: fmt.ColumnChunk, group: fmt.RowGroup) -> Chunk:
        offsets = fmt.decode(fmt.OffsetIndex, self.data, present(entry.offset_index_offset))[0]
        bounds = None
        if entry.column_index_offset is not None:
            bounds = fmt.decode(fmt.ColumnIndex, self.data, entry.column_index_offset)[0]
        place = present(entry.meta_data).bloom_filter_offset
        if place is None:
            return Chunk(entry, offsets, bounds, None, bytearray(), group)
        header, size = fmt.decode(fmt.BloomFilterHeader, self.data, place)
        return Chunk(entry, offsets, bounds, header, bytearray(self.data[place + size : place + size + header.numBytes]), group)

    def written(self) -> bytes:
        """The altered file: pages in their old places, all other parts anew."""
        body = bytearray(self.data[: self._end])
        for chunk in self.chunks:
            if chunk.bloom_header is not None:
                chunk.metadata.bloom_filter_offset = len(body)
                stored = fmt.encode(chunk.bloom_header) + bytes(chunk.bitset)
                chunk.metadata.bloom_filter_length = len(stored) + chunk.bloom_length
                body += stored
                if chunk.bloom_offset is not None:
                    chunk.metadata.bloom_filter_offset = chunk.bloom_offset
            chunk.entry.offset_index_offset = len(body)
            body += (stored := fmt.encode(chunk.offset_index))
            chunk.entry.offset_index_length = len(stored)
            if chunk.column_index is not None:
                chunk.entry.column_index_offset = len(body)
                body += (stored := fmt.encode(chunk.column_index))
                chunk.entry.column_index_length = len(stored)
        footer = fmt.encode(self.metadata)
        return bytes(body) + footer + struct.pack("<I", len(footer)) + b"PAR1"
