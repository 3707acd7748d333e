"""ChunkFacts: what a footer says about column chunks, in arrays with a row for each row group and a column for each leaf."""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.encryption.keys.material import parse_key_metadata
from fastpq.errors import CryptoError, FormatError, ParquetError
from fastpq.metadata.column_chunk import ColumnChunkMetaData
from fastpq.metadata.file_metadata import FileMetaData, RowGroupMetaData, decryptor_of
from fastpq.picture.byte_owners import ByteKind, Claim
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.stats.usable_statistics import UsableStatistics, usable_statistics_of

Int64s: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

LONGEST_KEY_NAME = 40       # characters


class EncodingClass(IntEnum):
    """How the values in a column chunk are encoded. The pictures have a colour for each."""

    DICTIONARY = 0
    PLAIN = 1
    DELTA = 2
    BYTE_STREAM_SPLIT = 3
    OTHER = 4
    GIVEN_UP = 5
    UNREADABLE = 6


ENCODING_TEXTS = {
    EncodingClass.DICTIONARY: "dictionary",
    EncodingClass.PLAIN: "plain",
    EncodingClass.DELTA: "delta",
    EncodingClass.BYTE_STREAM_SPLIT: "byte stream split",
    EncodingClass.OTHER: "RLE or other",
    EncodingClass.GIVEN_UP: "dictionary given up",
    EncodingClass.UNREADABLE: "unreadable",
}

_DICTIONARY = {fmt.Encoding.PLAIN_DICTIONARY, fmt.Encoding.RLE_DICTIONARY}
_LEVELS = {fmt.Encoding.RLE, fmt.Encoding.BIT_PACKED}
_CLASSES: dict[int, EncodingClass] = {
    fmt.Encoding.PLAIN: EncodingClass.PLAIN,
    fmt.Encoding.DELTA_BINARY_PACKED: EncodingClass.DELTA,
    fmt.Encoding.DELTA_LENGTH_BYTE_ARRAY: EncodingClass.DELTA,
    fmt.Encoding.DELTA_BYTE_ARRAY: EncodingClass.DELTA,
    fmt.Encoding.BYTE_STREAM_SPLIT: EncodingClass.BYTE_STREAM_SPLIT,
}

# Place of a chunk that no key encrypts.
NO_KEY = -1
UNKNOWN_PAGES = -1


class ChunkFacts(NamedTuple):
    """The column chunks of a file. Each array has shape (row groups, columns).

    Attributes:
        stored_sizes, decoded_sizes: bytes in the file and after decompression, page headers included. If the sizes are sealed,
            they are estimates from the row group's size.
        values: number of values, nulls included.
        pages: number of data pages, or UNKNOWN_PAGES.
        encodings: an EncodingClass for each chunk.
        codecs: number of the compression codec.
        keys: place in ``key_names``, or NO_KEY.
        has_statistics, has_column_index, has_offset_index, has_bloom_filter: whether the chunk has usable bounds and indexes.
        is_readable: whether the chunk can be read: its entry is sound, and there is a key if it needs one.
        rows: shape (row groups,): row count of each row group.
        claims: the byte ranges of all chunks.
        metadata_copies: where a chunk's metadata may stand again behind its pages, as older writers do, with the length 0.
        unsized_filters: bloom filters whose length the footer does not tell, with the length 0.
        key_names: the keys, as far as the file names them.
        pages_by_encoding: number of data pages by encoding name, over all chunks.
        external_chunks: number of chunks in other files.
        has_sealed_chunks: whether a chunk's metadata cannot be read without a key.
    """

    stored_sizes: Int64s
    decoded_sizes: Int64s
    values: Int64s
    pages: Int64s
    encodings: Int64s
    codecs: Int64s
    keys: Int64s
    has_statistics: Flags
    has_column_index: Flags
    has_offset_index: Flags
    has_bloom_filter: Flags
    is_readable: Flags
    rows: Int64s
    claims: list[Claim]
    metadata_copies: list[Claim]
    unsized_filters: list[Claim]
    key_names: list[str]
    pages_by_encoding: Counter[str]
    external_chunks: int
    has_sealed_chunks: bool


class _Collector:
    """Collects the facts chunk by chunk."""

    def __init__(self, metadata: FileMetaData, columns: list[ColumnDescriptor]) -> None:
        self.columns, self.usable = columns, [_usable_statistics(metadata, column) for column in columns]
        self.decryptor = decryptor_of(metadata)
        self.has_key: dict[int, bool] = {}
        self.numbers: list[tuple[int, ...]] = []
        self.claims: list[Claim] = []
        self.metadata_copies: list[Claim] = []
        self.unsized_filters: list[Claim] = []
        self.key_names: dict[str, int] = {}
        self.pages_by_encoding: Counter[int] = Counter()
        self.external_chunks = 0
        self.has_sealed_chunks = False

    def add_group(self, group: RowGroupMetaData) -> None:
        """Add the chunks of one row group."""
        first, unreadable = len(self.numbers), []
        for index in range(len(self.columns)):
            is_sealed = False
            try:
                chunk: ColumnChunkMetaData | None = group.column(index)
                metadata: fmt.ColumnMetaData | None = chunk.metadata if chunk is not None else None
            except CryptoError:
                self.has_sealed_chunks = is_sealed = True
                chunk = group.column(index)
                metadata = chunk.chunk.meta_data       # without statistics, if the writer left it there
            except ParquetError:
                chunk = metadata = None
            if chunk is not None and chunk.is_encrypted and not self._has_key(chunk):
                self.has_sealed_chunks = is_sealed = True
            if metadata is None:
                unreadable.append(len(self.numbers))
            self._add(chunk, metadata, index, is_sealed)
        if unreadable:
            rest = max(0, (_stored_size(group) or 0) - sum(row[0] for row in self.numbers[first:])) // len(unreadable)
            for place in unreadable:
                self.numbers[place] = (rest, rest, *self.numbers[place][2:])

    def _add(self, chunk: ColumnChunkMetaData | None, metadata: fmt.ColumnMetaData | None, column: int, is_sealed: bool) -> None:
        number = len(self.numbers)
        entry = None if chunk is None else chunk.chunk
        key = NO_KEY if chunk is None or not chunk.is_encrypted else self._key(chunk.chunk, column)
        if entry is None:
            self.numbers.append((0, 0, 0, UNKNOWN_PAGES, EncodingClass.UNREADABLE, 0, key, 0, 0, 0, 0, 0))
            return
        if entry.file_path:
            self.external_chunks += 1
        else:
            self._claim_indexes(entry, number)
        has_indexes = entry.column_index_offset is not None, entry.offset_index_offset is not None
        if metadata is None:
            self.numbers.append((0, 0, 0, UNKNOWN_PAGES, EncodingClass.UNREADABLE, 0, key, 0, *has_indexes, 0, 0))
            return
        if not entry.file_path:
            self._claim_pages(metadata, number)
            if entry.file_offset and entry.file_offset > metadata.data_page_offset and key == NO_KEY:
                self.metadata_copies.append(Claim(entry.file_offset, 0, ByteKind.METADATA_COPY, number))
        page_encodings: set[int] = set()
        num_pages = 0
        for each in metadata.encoding_stats or ():
            if each.page_type in fmt.DATA_PAGE_TYPES:
                page_encodings.add(each.encoding)
                num_pages += each.count
                self.pages_by_encoding[each.encoding] += each.count
        usable, statistics = self.usable[column], metadata.statistics
        has_statistics = usable is not None and statistics is not None and None not in usable.bounds_of(statistics)
        self.numbers.append((
            max(0, metadata.total_compressed_size),
            max(0, metadata.total_uncompressed_size),
            max(0, metadata.num_values),
            num_pages if page_encodings else UNKNOWN_PAGES,
            _class_of(metadata, page_encodings),
            metadata.codec,
            key,
            has_statistics,
            *has_indexes,
            bool(metadata.bloom_filter_offset),
            not is_sealed,
        ))

    def _has_key(self, chunk: ColumnChunkMetaData) -> bool:
        """Return whether there is a key for a chunk. The first chunk of a column stands for all."""
        column = chunk.column_ordinal
        if column not in self.has_key:
            try:
                self.decryptor.chunk_cipher(chunk.chunk, chunk.row_group_ordinal, column)
                self.has_key[column] = True
            except CryptoError:
                self.has_key[column] = False
        return self.has_key[column]

    def _claim_indexes(self, entry: fmt.ColumnChunk, number: int) -> None:
        for kind, offset, length in (
            (ByteKind.OFFSET_INDEX, entry.offset_index_offset, entry.offset_index_length),
            (ByteKind.COLUMN_INDEX, entry.column_index_offset, entry.column_index_length),
        ):
            if offset is not None and length is not None:
                self.claims.append(Claim(offset, length, kind, number))

    def _claim_pages(self, metadata: fmt.ColumnMetaData, number: int) -> None:
        start, size, dictionary = metadata.data_page_offset, metadata.total_compressed_size, metadata.dictionary_page_offset
        if dictionary and 0 < dictionary < start:
            self.claims.append(Claim(dictionary, min(start - dictionary, size), ByteKind.DICTIONARY, number))
            size -= start - dictionary
        self.claims.append(Claim(start, size, ByteKind.DATA, number))
        offset, length = metadata.bloom_filter_offset, metadata.bloom_filter_length
        if offset and length is not None:
            self.claims.append(Claim(offset, length, ByteKind.BLOOM_FILTER, number))
        elif offset:
            self.unsized_filters.append(Claim(offset, 0, ByteKind.BLOOM_FILTER, number))

    def _key(self, entry: fmt.ColumnChunk, column: int) -> int:
        crypto = entry.crypto_metadata
        own = None if crypto is None else crypto.ENCRYPTION_WITH_COLUMN_KEY
        name = "the footer key" if own is None else key_name(own.key_metadata, self.columns[column].name)
        return self.key_names.setdefault(name, len(self.key_names))


def _stored_size(group: RowGroupMetaData) -> int | None:
    try:
        return group.total_compressed_size
    except FormatError:
        return None


def key_name(key_metadata: bytes | None, column: str) -> str:
    """Return how a picture names a column's own key: by its master key, by its key metadata, or by the column."""
    if key_metadata is None:
        return f"the key of column {column!r}"
    try:
        material = parse_key_metadata(key_metadata)
    except ParquetError:
        text = key_metadata[: LONGEST_KEY_NAME + 1].decode("utf-8", "replace")
        return f"the column key {text!r}"
    return f"the column key {material!r}" if isinstance(material, str) else f"column keys under {material.master_key_id!r}"


def _class_of(metadata: fmt.ColumnMetaData, page_encodings: set[int]) -> EncodingClass:
    encodings = page_encodings or set(metadata.encodings or ()) - _LEVELS or set(metadata.encodings or ())
    if encodings & _DICTIONARY:
        # Without page counts, PLAIN may be the encoding of the dictionary page.
        return EncodingClass.GIVEN_UP if page_encodings - _DICTIONARY else EncodingClass.DICTIONARY
    if metadata.dictionary_page_offset and page_encodings:
        return EncodingClass.GIVEN_UP
    if len(encodings) == 1:
        (encoding,) = encodings
        return _CLASSES.get(encoding, EncodingClass.OTHER)
    return max((_CLASSES.get(encoding, EncodingClass.OTHER) for encoding in encodings), default=EncodingClass.OTHER)


def chunk_facts(metadata: FileMetaData) -> ChunkFacts:
    """Return the facts about all column chunks in a file. A broken or sealed entry is marked as unreadable.

    Args:
        metadata: the file's footer.
    """
    columns = list(metadata.schema.columns)
    collector = _Collector(metadata, columns)
    rows = []
    for group in metadata.row_groups:
        collector.add_group(group)
        rows.append(max(0, group.num_rows))
    table = np.array(collector.numbers, np.int64).reshape(len(rows), len(columns), 12)
    numbers, flags = np.moveaxis(table[:, :, :7], 2, 0), np.moveaxis(table[:, :, 7:] != 0, 2, 0)
    names = Counter({_encoding_name(number): count for number, count in collector.pages_by_encoding.items()})
    stored_sizes, decoded_sizes, values, pages, encodings, codecs, keys = numbers
    has_statistics, has_column_index, has_offset_index, has_bloom_filter, is_readable = flags
    return ChunkFacts(
        stored_sizes, decoded_sizes, values, pages, encodings, codecs, keys,
        has_statistics, has_column_index, has_offset_index, has_bloom_filter, is_readable,
        np.array(rows, np.int64), collector.claims, collector.metadata_copies, collector.unsized_filters,
        list(collector.key_names), names, collector.external_chunks, collector.has_sealed_chunks)


def _usable_statistics(metadata: FileMetaData, column: ColumnDescriptor) -> UsableStatistics | None:
    try:
        return usable_statistics_of(metadata, column)
    except ParquetError:    # a type that is unknown here
        return None


def _encoding_name(number: int) -> str:
    try:
        return fmt.Encoding(number).name
    except ValueError:
        return f"unknown {number}"
