"""Indexes of a file that is written: bloom filters behind their row group, page indexes before the footer (PageIndex.md)."""

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
    """Write a chunk's bloom filter, and note in its metadata where."""
    metadata.bloom_filter_offset = sink.tell()
    for module in serialized_filter(bloom_filter, cipher):
        sink.write(module)
    metadata.bloom_filter_length = sink.tell() - metadata.bloom_filter_offset


class PageIndexes:
    """The page indexes of a file, sealed, until a footer is written."""

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
        """Keep the indexes of a chunk.

        Args:
            chunk: its entry in the footer as it is stored.
            column_index, offset_index: None where the chunk has none; with offsets in the file.
            cipher: of the chunk.
        """
        if column_index is not None:
            sealed = cipher.seal(ModuleType.COLUMN_INDEX, NO_PAGE, fmt.encode(column_index))
            self._column_indexes.append((chunk, memoryview(sealed)))
        if offset_index is not None:
            sealed = cipher.seal(ModuleType.OFFSET_INDEX, NO_PAGE, fmt.encode(offset_index))
            self._offset_indexes.append((chunk, memoryview(sealed)))

    def write(self, sink: Sink) -> None:
        """Write all column indexes that are kept, then all offset indexes, and note in their chunks' entries where."""
        for chunk, sealed in self._column_indexes:
            chunk.column_index_offset, chunk.column_index_length = sink.tell(), len(sealed)
            sink.write(sealed)
        for chunk, sealed in self._offset_indexes:
            chunk.offset_index_offset, chunk.offset_index_length = sink.tell(), len(sealed)
            sink.write(sealed)
        self._column_indexes, self._offset_indexes = [], []
