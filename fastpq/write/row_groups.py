"""The row groups in a new file: they enter the chunks and their indexes into the footer, and the footer ends the file.

A row group consists of its column chunks and then its bloom filters (BloomFilter.md). The column indexes of all row groups, and
then their offset indexes, stand before the footer (PageIndex.md). With checkpoint_every, there are also footers between row
groups. The last footer counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

from fastpq import format as fmt
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.encryptor import open_file_encryptor
from fastpq.encryption.modules import ModuleType
from fastpq.encryption.properties import FileEncryptionProperties
from fastpq.errors import LimitError
from fastpq.index.bloom_filter import SplitBlockBloomFilter
from fastpq.index.bloom_format import serialized_filter
from fastpq.io.sink import Sink
from fastpq.options import LARGEST_KEY_VALUES, MOST_COLUMNS, MOST_ENCRYPTED_ROW_GROUPS, MOST_ROW_GROUPS
from fastpq.schema.parquet_schema import ParquetSchema

NO_PAGE = -1                # page ordinal in the AAD for a module that belongs to no page


class PlacedChunk(NamedTuple):
    """A column chunk whose pages are in the new file.

    Attributes:
        entry: plaintext footer entry: a ColumnChunk, or a PlainEntry, which encodes itself.
        metadata: the entry's ColumnMetaData, with the page offsets. A PlainEntry is its own metadata.
        cipher: chunk cipher in the new file.
        column_index, offset_index: the encoded page index, not encrypted yet, or None.
        bloom_filter: the bloom filter, or None.
    """

    entry: Any
    metadata: Any
    cipher: ModuleCipher
    column_index: bytes | None
    offset_index: bytes | None
    bloom_filter: SplitBlockBloomFilter | None

    @property
    def start(self) -> int:
        """File offset of the first page."""
        first: int = self.metadata.dictionary_page_offset or self.metadata.data_page_offset
        return first

    @classmethod
    def of_structs(
        cls,
        metadata: fmt.ColumnMetaData,
        cipher: ModuleCipher,
        column_index: fmt.ColumnIndex | None,
        offset_index: fmt.OffsetIndex | None,
        bloom_filter: SplitBlockBloomFilter | None,
    ) -> PlacedChunk:
        """Return a PlacedChunk whose indexes are encoded, because encoded indexes for many chunks are fewer objects.

        Args:
            metadata: metadata for the footer.
            cipher: chunk cipher.
            column_index, offset_index: page index with offsets in the new file, or None.
            bloom_filter: the bloom filter, or None.
        """
        columns = None if column_index is None else fmt.encode(column_index)
        offsets = None if offset_index is None else fmt.encode(offset_index)
        return cls(fmt.ColumnChunk(file_offset=0, meta_data=metadata), metadata, cipher, columns, offsets, bloom_filter)


class EarlierRowGroups(NamedTuple):
    """Row groups in a file that gets more of them.

    Attributes:
        row_groups: their footer entries, as they are stored. Encrypted metadata stay encrypted.
        file_unique: the file's ``aad_file_unique``, or None for a plaintext file.
    """

    row_groups: list[fmt.RowGroup]
    file_unique: bytes | None


class RowGroups:
    """The row groups in a new file, from its magic to its footer. ``len`` returns their number, earlier ones included.

    Args:
        sink: the new file, still empty unless there are earlier row groups.
        schema: file schema.
        encryption_properties: file keys, or None for plaintext.
        earlier: row groups that the sink has already, with its magic. None for a new file.

    Attributes:
        is_plaintext: whether nothing in the file is encrypted or signed.

    Raises:
        SchemaError: a key for a column path that is not in the schema.
        CryptoError: an encrypted column with an ordinal over 32767.
        LimitError: too many columns for one file.
    """

    def __init__(
        self,
        sink: Sink,
        schema: ParquetSchema,
        encryption_properties: FileEncryptionProperties | None,
        earlier: EarlierRowGroups | None = None,
    ) -> None:
        if len(schema.elements) - 1 > MOST_COLUMNS:
            raise LimitError(f"a file cannot have more than {MOST_COLUMNS:,} columns and groups of columns")
        self._sink = sink
        self._paths = schema.paths
        self.is_plaintext = encryption_properties is None
        self._most_row_groups = MOST_ROW_GROUPS if encryption_properties is None else MOST_ENCRYPTED_ROW_GROUPS
        unique = None if earlier is None else earlier.file_unique
        self._encryptor = open_file_encryptor(encryption_properties, self._paths, unique, sink.name)
        self._row_groups: list[fmt.RowGroup] = [] if earlier is None else list(earlier.row_groups)
        # stored page indexes for all chunks since the last footer, and the first row group among them
        self._column_indexes: list[Any] = []
        self._offset_indexes: list[Any] = []
        self._next_indexed = len(self._row_groups)
        if earlier is None:
            sink.write(self._encryptor.magic)

    def __len__(self) -> int:
        return len(self._row_groups)

    def next_ordinal(self, more: int) -> int:
        """Return the next row group's ordinal.

        Args:
            more: how many row groups follow.

        Raises:
            LimitError: too many row groups for one file.
        """
        ordinal = len(self._row_groups)
        if ordinal + more > self._most_row_groups:
            kind = "a file" if self._most_row_groups == MOST_ROW_GROUPS else "an encrypted file"
            raise LimitError(f"{kind} cannot have more than {self._most_row_groups:,} row groups: use larger row groups")
        return ordinal

    def cipher(self, ordinal: int, column: int) -> ModuleCipher:
        """Return the cipher for one chunk, by its row group's ordinal and its column number.

        Raises:
            CryptoError: an ordinal over 32767.
        """
        return self._encryptor.chunk_cipher(self._paths[column], ordinal, column)

    def add(self, row_group: fmt.RowGroup, chunks: Iterable[PlacedChunk], *, with_page_indexes: bool = True) -> None:
        """Append a row group: place the chunks, write their bloom filters, and keep their page indexes for the footer.

        Args:
            row_group: its footer entry with ``num_rows`` and ``sorting_columns``. All other fields are set here.
            chunks: its column chunks. The iterator may write the pages.
            with_page_indexes: whether the file gets the chunks' page indexes.
        """
        placed_chunks = list(chunks)
        start = placed_chunks[0].start if placed_chunks else self._sink.size
        row_group.file_offset = start
        # The field is an INT16. Only AADs need it.
        row_group.ordinal = len(self._row_groups) if len(self._row_groups) < MOST_ENCRYPTED_ROW_GROUPS else None
        for chunk in placed_chunks:
            if chunk.bloom_filter is not None:
                self._place_filter(chunk.bloom_filter, chunk)
        all_metadata = [chunk.metadata for chunk in placed_chunks]
        row_group.total_byte_size = sum(metadata.total_uncompressed_size for metadata in all_metadata)
        row_group.total_compressed_size = sum(metadata.total_compressed_size for metadata in all_metadata)
        if row_group.sorting_columns:
            row_group.sorting_columns = self._encryptor.sorting_columns(row_group.sorting_columns)
        row_group.columns = [
            self._encryptor.column_chunk(path, chunk.entry, chunk.cipher)
            for path, chunk in zip(self._paths, placed_chunks, strict=True)
        ]
        self._row_groups.append(row_group)
        if not with_page_indexes:
            no_indexes = [None] * len(placed_chunks)
            self._column_indexes += no_indexes
            self._offset_indexes += no_indexes
            return
        self._column_indexes += [
            None if chunk.column_index is None else chunk.cipher.seal(ModuleType.COLUMN_INDEX, NO_PAGE, chunk.column_index)
            for chunk in placed_chunks
        ]
        self._offset_indexes += [
            None if chunk.offset_index is None else chunk.cipher.seal(ModuleType.OFFSET_INDEX, NO_PAGE, chunk.offset_index)
            for chunk in placed_chunks
        ]

    def write_footer(self, footer: fmt.FileMetaData) -> None:
        """Write the page indexes since the last footer, and a footer for all row groups, and flush both to the destination.

        Args:
            footer: version, schema, key-value metadata, writer and column orders. All other fields are set here.

        Raises:
            LimitError: a footer with more than 2^31 - 1 bytes, or too much key-value metadata.
        """
        key_values = sum(len(fmt.encode(entry)) for entry in footer.key_value_metadata or ())
        if key_values > LARGEST_KEY_VALUES:
            raise LimitError(f"a file cannot have {key_values:,} bytes of key-value metadata: {LARGEST_KEY_VALUES:,} are allowed")
        place = self._sink.size
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
        self._sink.keep_order()
        self._sink.write_together([*indexes, self._encryptor.frame_footer(fmt.encode(footer))])
        self._sink.flush()

    def _place_filter(self, bloom_filter: SplitBlockBloomFilter, chunk: PlacedChunk) -> None:
        """Write a chunk's bloom filter, and enter its place into the chunk's metadata."""
        chunk.metadata.bloom_filter_offset = self._sink.size
        for module in serialized_filter(bloom_filter, chunk.cipher):
            self._sink.write(module)
        chunk.metadata.bloom_filter_length = self._sink.size - chunk.metadata.bloom_filter_offset
