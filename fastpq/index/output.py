"""Writing indexes: bloom filters behind their row group, page indexes before the footer (PageIndex.md)."""

from __future__ import annotations

from fastpq import format as fmt
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.index.bloom_filter import SplitBlockBloomFilter
from fastpq.index.bloom_format import serialized_filter
from fastpq.io.sink import BytesLike, Sink

NO_PAGE = -1


def write_bloom_filter(
    sink: Sink, bloom_filter: SplitBlockBloomFilter, metadata: fmt.ColumnMetaData, cipher: ModuleCipher
) -> None:
    """Write a chunk's bloom filter, and enter its offset and length in the chunk's metadata."""
    metadata.bloom_filter_offset = sink.tell()
    for module in serialized_filter(bloom_filter, cipher):
        sink.write(module)
    metadata.bloom_filter_length = sink.tell() - metadata.bloom_filter_offset


class PageIndexes:
    """The page indexes of a file being written, sealed and kept until the footer follows."""

    def __init__(self) -> None:
        self._column_indexes: list[tuple[fmt.ColumnChunk, BytesLike]] = []
        self._offset_indexes: list[tuple[fmt.ColumnChunk, BytesLike]] = []

    def add(
        self,
        chunk: fmt.ColumnChunk,
        column_index: fmt.ColumnIndex | None,
        offset_index: fmt.OffsetIndex | None,
        cipher: ModuleCipher,
    ) -> None:
        """Seal and keep the indexes of a chunk.

        Args:
            chunk: the chunk's entry in the footer.
            column_index: None where the chunk has none.
            offset_index: offset index with offsets in the file; None where the chunk has none.
            cipher: cipher of the chunk.
        """
        if column_index is not None:
            sealed = cipher.seal(ModuleType.COLUMN_INDEX, NO_PAGE, fmt.encode(column_index))
            self._column_indexes.append((chunk, memoryview(sealed)))
        if offset_index is not None:
            sealed = cipher.seal(ModuleType.OFFSET_INDEX, NO_PAGE, fmt.encode(offset_index))
            self._offset_indexes.append((chunk, memoryview(sealed)))

    def write(self, sink: Sink) -> None:
        """Write all kept column indexes, then all offset indexes; enter offsets and lengths in the chunks' entries."""
        for chunk, sealed in self._column_indexes:
            chunk.column_index_offset, chunk.column_index_length = sink.tell(), len(sealed)
            sink.write(sealed)
        for chunk, sealed in self._offset_indexes:
            chunk.offset_index_offset, chunk.offset_index_length = sink.tell(), len(sealed)
            sink.write(sealed)
        self._column_indexes, self._offset_indexes = [], []
