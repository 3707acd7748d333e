"""The row groups of a new file: chunks are placed, entered into the footer with their indexes, and the footer ends the file.

A row group is its column chunks, then its bloom filters (BloomFilter.md). The column indexes of all row groups, then their offset
indexes stand before the footer (PageIndex.md). With checkpoint_every, footers also stand between row groups; the last one counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

from fastpq import format as fmt
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.encryptor import open_file_encryptor
from fastpq.encryption.modules import ModuleType
from fastpq.encryption.properties import FileEncryptionProperties
from fastpq.errors import LimitError
from fastpq.index.bloom_filter import SplitBlockBloomFilter
from fastpq.index.bloom_format import serialized_filter
from fastpq.io.sink import BytesLike, Sink
from fastpq.schema.parquet_schema import ParquetSchema

MOST_ROW_GROUPS = 32768     # RowGroup.ordinal is an i16
NO_PAGE = -1                # page ordinal in the AAD of modules without one


class PlacedChunk(NamedTuple):
    """A column chunk whose pages are in the new file.

    Attributes:
        entry: plain footer entry.
        metadata: the entry's metadata, with the offsets of the pages.
        cipher: cipher of the chunk in the new file.
        column_index, offset_index: stored modules of the page index; None for a chunk without one.
        bloom_filter: None for a chunk without one.
    """

    entry: fmt.ColumnChunk
    metadata: fmt.ColumnMetaData
    cipher: ModuleCipher
    column_index: BytesLike | None
    offset_index: BytesLike | None
    bloom_filter: SplitBlockBloomFilter | None

    @property
    def start(self) -> int:
        """File offset of the first page."""
        return self.metadata.dictionary_page_offset or self.metadata.data_page_offset

    @classmethod
    def sealed(
        cls,
        metadata: fmt.ColumnMetaData,
        cipher: ModuleCipher,
        column_index: fmt.ColumnIndex | None,
        offset_index: fmt.OffsetIndex | None,
        bloom_filter: SplitBlockBloomFilter | None,
    ) -> PlacedChunk:
        """A PlacedChunk of a page index with offsets in the new file; the encoded indexes of many chunks are fewer objects."""
        columns = None if column_index is None else _module(cipher, ModuleType.COLUMN_INDEX, column_index)
        offsets = None if offset_index is None else _module(cipher, ModuleType.OFFSET_INDEX, offset_index)
        return cls(fmt.ColumnChunk(file_offset=0, meta_data=metadata), metadata, cipher, columns, offsets, bloom_filter)


class RowGroups:
    """The row groups of a new file, from its magic to its footer; ``len`` is their number.

    Args:
        sink: the new file, still empty.
        schema: schema of the file.
        encryption_properties: keys of the file; None for plaintext.

    Raises:
        SchemaError: a key for a column path without a column.
        CryptoError: an encrypted column with an ordinal over 32767.
    """

    def __init__(self, sink: Sink, schema: ParquetSchema, encryption_properties: FileEncryptionProperties | None) -> None:
        self._sink = sink
        self._paths = schema.paths
        self._encryptor = open_file_encryptor(encryption_properties, self._paths)
        self._row_groups: list[fmt.RowGroup] = []
        # stored page indexes of all chunks since the last footer, whose first row group is next_indexed
        self._column_indexes: list[BytesLike | None] = []
        self._offset_indexes: list[BytesLike | None] = []
        self._next_indexed = 0
        sink.write(self._encryptor.magic)

    def __len__(self) -> int:
        return len(self._row_groups)

    def next_ordinal(self, more: int) -> int:
        """The ordinal of the next row group.

        Args:
            more: number of row groups to come.

        Raises:
            LimitError: too many row groups for one file.
        """
        ordinal = len(self._row_groups)
        if ordinal + more > MOST_ROW_GROUPS:
            raise LimitError(f"more than {MOST_ROW_GROUPS} row groups in a file: use larger ones")
        return ordinal

    def cipher(self, ordinal: int, column: int) -> ModuleCipher:
        """The cipher of one chunk, by the ordinal of its row group and the number of its column.

        Raises:
            CryptoError: an ordinal over 32767.
        """
        return self._encryptor.chunk_cipher(self._paths[column], ordinal, column)

    def add(self, row_group: fmt.RowGroup, chunks: Iterable[PlacedChunk]) -> None:
        """Append a row group: place the chunks, write their bloom filters, and keep their page indexes for the footer.

        Args:
            row_group: its footer entry with ``num_rows`` and ``sorting_columns``; all other fields are set here.
            chunks: its column chunks; pages may be written as the chunks are drawn.
        """
        placed = list(chunks)
        row_group.file_offset, row_group.ordinal = placed[0].start if placed else self._sink.written, len(self._row_groups)
        for chunk in placed:
            if chunk.bloom_filter is not None:
                self._place_filter(chunk.bloom_filter, chunk)
        described = [chunk.metadata for chunk in placed]
        row_group.total_byte_size = sum(metadata.total_uncompressed_size for metadata in described)
        row_group.total_compressed_size = sum(metadata.total_compressed_size for metadata in described)
        if row_group.sorting_columns:
            row_group.sorting_columns = self._encryptor.sorting_columns(row_group.sorting_columns)
        row_group.columns = [self._encryptor.column_chunk(chunk.entry, chunk.cipher) for chunk in placed]
        self._column_indexes += [chunk.column_index for chunk in placed]
        self._offset_indexes += [chunk.offset_index for chunk in placed]
        self._row_groups.append(row_group)

    def write_footer(self, footer: fmt.FileMetaData) -> None:
        """Write the page indexes since the last footer, and a footer of all row groups; both reach the destination.

        Args:
            footer: version, schema, key-value metadata, writer and column orders; all other fields are set here.

        Raises:
            LimitError: a footer over 2^31 - 1 bytes.
        """
        place = self._sink.written
        chunks = [chunk for row_group in self._row_groups[self._next_indexed :] for chunk in row_group.columns]
        for chunk, module in zip(chunks, self._column_indexes, strict=True):
            if module is not None:
                chunk.column_index_offset, chunk.column_index_length = place, len(module)
                place += len(module)
        for chunk, module in zip(chunks, self._offset_indexes, strict=True):
            if module is not None:
                chunk.offset_index_offset, chunk.offset_index_length = place, len(module)
                place += len(module)
        indexes = [module for module in chain(self._column_indexes, self._offset_indexes) if module is not None]
        self._column_indexes, self._offset_indexes, self._next_indexed = [], [], len(self._row_groups)
        footer.num_rows = sum(row_group.num_rows for row_group in self._row_groups)
        footer.row_groups = self._row_groups
        footer.encryption_algorithm = self._encryptor.encryption_algorithm
        footer.footer_signing_key_metadata = self._encryptor.footer_signing_key_metadata
        self._sink.write_together([*indexes, self._encryptor.frame_footer(fmt.encode(footer))])
        self._sink.flush()

    def _place_filter(self, bloom_filter: SplitBlockBloomFilter, chunk: PlacedChunk) -> None:
        """Write the bloom filter of a chunk, and its place to the chunk's metadata."""
        chunk.metadata.bloom_filter_offset = self._sink.written
        for module in serialized_filter(bloom_filter, chunk.cipher):
            self._sink.write(module)
        chunk.metadata.bloom_filter_length = self._sink.written - chunk.metadata.bloom_filter_offset


def _module(cipher: ModuleCipher, kind: ModuleType, index: fmt.ColumnIndex | fmt.OffsetIndex) -> BytesLike:
    sealed = cipher.seal(kind, NO_PAGE, fmt.encode(index))
    return sealed if isinstance(sealed, bytes) else memoryview(sealed)
