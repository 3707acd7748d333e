"""Seed files taken apart into pages, indexes and footer, and put together again with right offsets, checksums and tags.

The tags are made here, by the package cryptography, with nonces from the mutation's random generator: the same mutation gives the
same bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Any, NamedTuple

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fastpq import format as fmt
from fastpq.codecs.catalogue import codec_for_read
from fastpq.encryption.modules import ModuleType, module_aad
from tests.corrupt.seeds import COLUMN_KEY, FOOTER_KEY, PREFIX, Seed
from tests.encryption.module_walk import open_file

NO_PAGE = -1
LARGEST_BODY = 1 << 20      # bytes of a page taken apart


class Page(NamedTuple):
    """A page: its PageHeader, serialized, and its stored body; both decrypted."""

    header: bytes
    body: bytes

    @property
    def parsed(self) -> fmt.PageHeader:
        return fmt.decode(fmt.PageHeader, self.header)[0]

    @property
    def is_dictionary(self) -> bool:
        return self.parsed.type == fmt.PageType.DICTIONARY_PAGE


class Chunk(NamedTuple):
    """A column chunk: its place, pages, and serialized indexes; the bloom filter is header and bitset."""

    group: int
    column: int
    codec: int
    pages: tuple[Page, ...]
    column_index: bytes | None
    offset_index: bytes | None
    bloom: tuple[bytes, bytes] | None


class Sealing:
    """Encryption of the modules of one file."""

    def __init__(self, crypto: fmt.FileCryptoMetaData | None, algorithm: fmt.EncryptionAlgorithm, mode: str) -> None:
        parameters = algorithm.AES_GCM_V1 or algorithm.AES_GCM_CTR_V1
        assert parameters is not None
        prefix = PREFIX if mode == "prefix" else parameters.aad_prefix or b""
        self.crypto = crypto
        self.aad = prefix + (parameters.aad_file_unique or b"")
        self.counts = algorithm.AES_GCM_CTR_V1 is not None
        self._gcm = {key: AESGCM(key) for key in (FOOTER_KEY, COLUMN_KEY)}

    def seal(self, key: bytes, module: ModuleType, plain: bytes, random: Random, *ordinals: int) -> bytes:
        """A module: length, nonce, ciphertext and tag (Encryption.md, 5.1)."""
        nonce = random.randbytes(12)
        if self.counts and module in (ModuleType.DATA_PAGE, ModuleType.DICTIONARY_PAGE):
            body = Cipher(algorithms.AES(key), modes.CTR(nonce + b"\0\0\0\1")).encryptor().update(plain)
        else:
            body = self._gcm[key].encrypt(nonce, plain, module_aad(self.aad, module, *ordinals))
        return (len(nonce) + len(body)).to_bytes(4, "little") + nonce + body

    def sign(self, footer: bytes, random: Random) -> bytes:
        """Nonce and tag of a plaintext footer (Encryption.md, 5.5)."""
        nonce = random.randbytes(12)
        return nonce + self._gcm[FOOTER_KEY].encrypt(nonce, footer, module_aad(self.aad, ModuleType.FOOTER))[-16:]


def key_of(entry: fmt.ColumnChunk) -> bytes | None:
    """The key of a column chunk; None for a plaintext chunk."""
    if entry.crypto_metadata is None:
        return None
    return COLUMN_KEY if entry.crypto_metadata.ENCRYPTION_WITH_COLUMN_KEY is not None else FOOTER_KEY


@dataclass(frozen=True)
class Anatomy:
    """A file in parts.

    Attributes:
        footer: the serialized FileMetaData, with the metadata of every chunk in the clear.
        chunks: all column chunks.
        sealing: encryption; None for a plaintext file.
    """

    footer: bytes
    chunks: tuple[Chunk, ...]
    sealing: Sealing | None

    @property
    def metadata(self) -> fmt.FileMetaData:
        """A new copy of the footer."""
        return fmt.decode(fmt.FileMetaData, self.footer)[0]

    def with_chunk(self, place: int, **parts: Any) -> Anatomy:
        """A copy with other parts of one chunk."""
        chunks = (*self.chunks[:place], self.chunks[place]._replace(**parts), *self.chunks[place + 1 :])
        return replace(self, chunks=chunks)

    @cached_property
    def laid(self) -> tuple[bytes, bytes]:
        """The file up to the footer, and the footer with the places in this file."""
        return self.lay(Random(0))

    def lay(self, random: Random) -> tuple[bytes, bytes]:
        """Put pages and indexes one after the other; returns the bytes, and the footer with their places."""
        metadata = self.metadata
        encrypted_footer = self.sealing is not None and self.sealing.crypto is not None
        out = bytearray(b"PARE" if encrypted_footer else b"PAR1")
        located = []
        for chunk in self.chunks:
            entry = metadata.row_groups[chunk.group].columns[chunk.column]
            start = len(out)
            located.append(self._lay_pages(chunk, entry, out, random))
            if chunk.column == 0:
                metadata.row_groups[chunk.group].file_offset = start
        for chunk, places in zip(self.chunks, located, strict=True):
            self._lay_indexes(chunk, metadata.row_groups[chunk.group].columns[chunk.column], places, out, random)
        return bytes(out), fmt.encode(metadata)

    def _sealed(self, entry: fmt.ColumnChunk, module: ModuleType, plain: bytes, random: Random, *ordinals: int) -> bytes:
        key = key_of(entry)
        return plain if self.sealing is None or key is None else self.sealing.seal(key, module, plain, random, *ordinals)

    def _lay_pages(self, chunk: Chunk, entry: fmt.ColumnChunk, out: bytearray, random: Random) -> list[tuple[int, int]]:
        """Append the pages; returns places and sizes of the data pages."""
        column = entry.meta_data
        assert column is not None
        start, places, uncompressed = len(out), list[tuple[int, int]](), 0
        for page in chunk.pages:
            header, body, at = page.parsed, page.body, len(out)
            kinds = (ModuleType.DATA_PAGE_HEADER, ModuleType.DATA_PAGE)
            ordinals: tuple[int, ...] = (chunk.group, chunk.column, len(places))
            if header.type == fmt.PageType.DICTIONARY_PAGE:
                kinds, ordinals = (ModuleType.DICTIONARY_PAGE_HEADER, ModuleType.DICTIONARY_PAGE), ordinals[:2]
            stored = page.header
            if self.sealing is not None and key_of(entry) is not None:
                body = self._sealed(entry, kinds[1], body, random, *ordinals)
                header.compressed_page_size = min(header.compressed_page_size + len(body) - len(page.body), (1 << 31) - 1)
                header.crc = None if header.crc is None else signed_crc(body)
                stored = self._sealed(entry, kinds[0], fmt.encode(header), random, *ordinals)
            out += stored
            out += body
            uncompressed += len(page.header) + header.uncompressed_page_size
            if header.type == fmt.PageType.DICTIONARY_PAGE:
                column.dictionary_page_offset = at
            else:
                places.append((at, len(out) - at))
        column.data_page_offset = places[0][0] if places else start
        column.total_compressed_size = len(out) - start
        column.total_uncompressed_size = min(uncompressed, (1 << 62)) if uncompressed > 0 else 0
        return places

    def _lay_indexes(
        self, chunk: Chunk, entry: fmt.ColumnChunk, places: Sequence[tuple[int, int]], out: bytearray, random: Random
    ) -> None:
        ordinals = (chunk.group, chunk.column)
        if chunk.column_index is not None:
            stored = self._sealed(entry, ModuleType.COLUMN_INDEX, chunk.column_index, random, *ordinals)
            entry.column_index_offset, entry.column_index_length = len(out), len(stored)
            out += stored
        if chunk.offset_index is not None:
            stored = self._sealed(entry, ModuleType.OFFSET_INDEX, placed(chunk.offset_index, places), random, *ordinals)
            entry.offset_index_offset, entry.offset_index_length = len(out), len(stored)
            out += stored
        if chunk.bloom is not None and entry.meta_data is not None:
            header, bits = chunk.bloom
            stored = self._sealed(entry, ModuleType.BLOOM_FILTER_HEADER, header, random, *ordinals)
            stored += self._sealed(entry, ModuleType.BLOOM_FILTER_BITSET, bits, random, *ordinals)
            entry.meta_data.bloom_filter_offset, entry.meta_data.bloom_filter_length = len(out), len(stored)
            out += stored

    def closed(self, body: bytes, metadata: fmt.FileMetaData, random: Random) -> bytes:
        """A whole file: the bytes up to the footer, then the footer, encrypted or signed."""
        sealing = self.sealing
        if sealing is None:
            footer = fmt.encode(metadata)
            return body + footer + len(footer).to_bytes(4, "little") + b"PAR1"
        for index, group in enumerate(metadata.row_groups):
            for column, entry in enumerate(group.columns):
                hide(sealing, entry, (index if group.ordinal is None else group.ordinal, column), random)
        footer = fmt.encode(metadata)
        if sealing.crypto is None:
            footer += sealing.sign(footer, random)
            return body + footer + len(footer).to_bytes(4, "little") + b"PAR1"
        footer = fmt.encode(sealing.crypto) + sealing.seal(FOOTER_KEY, ModuleType.FOOTER, footer, random)
        return body + footer + len(footer).to_bytes(4, "little") + b"PARE"


def hide(sealing: Sealing, entry: fmt.ColumnChunk, ordinals: tuple[int, int], random: Random) -> None:
    """Encrypt the metadata of a chunk with a column key; in a plaintext footer, bounds and sizes leave the clear ones."""
    column, key = entry.meta_data, key_of(entry)
    if column is None or key != COLUMN_KEY or not all(0 <= ordinal <= 32767 for ordinal in ordinals):
        return
    plain = fmt.encode(column)
    entry.encrypted_column_metadata = sealing.seal(key, ModuleType.COLUMN_METADATA, plain, random, *ordinals)
    if sealing.crypto is not None:
        entry.meta_data = None
        return
    bare = fmt.decode(fmt.ColumnMetaData, plain)[0]
    for name in ("statistics", "size_statistics", "geospatial_statistics", "encoding_stats"):
        setattr(bare, name, None)
    entry.meta_data = bare


def placed(offset_index: bytes, places: Sequence[tuple[int, int]]) -> bytes:
    """An OffsetIndex with the pages where they are now, as far as it has as many."""
    index = fmt.decode(fmt.OffsetIndex, offset_index)[0]
    for location, (offset, size) in zip(index.page_locations, places, strict=False):
        location.offset, location.compressed_page_size = offset, size
    return fmt.encode(index)


def compressed(header: fmt.PageHeader, page: Page, body: bytes, codec: int) -> Page:
    """A page with this header and this uncompressed body: compressed, with right sizes and a right checksum."""
    levels, values = split_levels(header, body)
    if header.data_page_header_v2 is None or header.data_page_header_v2.is_compressed is not False:
        values = bytes(codec_for_read(codec).compress(values))
    stored = levels + values
    header.uncompressed_page_size, header.compressed_page_size = len(body), len(stored)
    if header.crc is not None:
        header.crc = signed_crc(stored)
    return Page(fmt.encode(header), stored)


def uncompressed(page: Page, codec: int) -> bytes:
    """The uncompressed body of a page."""
    header = page.parsed
    levels, values = split_levels(header, page.body)
    if header.data_page_header_v2 is not None and header.data_page_header_v2.is_compressed is False:
        return page.body
    out = bytearray(header.uncompressed_page_size - len(levels))
    codec_for_read(codec).decompress_into(values, out)
    return levels + bytes(out)


def split_levels(header: fmt.PageHeader, body: bytes) -> tuple[bytes, bytes]:
    """Levels and values of a page V2; a page V1 has no levels outside of the compressed bytes."""
    v2 = header.data_page_header_v2
    size = 0 if v2 is None else v2.definition_levels_byte_length + v2.repetition_levels_byte_length
    return body[:size], body[size:]


def signed_crc(data: bytes) -> int:
    """The CRC-32 as Thrift's i32."""
    value = zlib.crc32(data)
    return value - (1 << 32) if value >= 1 << 31 else value


def take_apart(seed: Seed) -> Anatomy:
    """The parts of a seed."""
    opened = open_file(seed.data, seed.keys)
    metadata, chunks = opened.metadata, list[Chunk]()
    for index, group in enumerate(metadata.row_groups):
        ordinal = index if group.ordinal is None else group.ordinal
        for column, entry in enumerate(group.columns):
            entry.meta_data = opened.decryptor.column_metadata(entry, ordinal, column)
            entry.encrypted_column_metadata = None
            cipher = opened.decryptor.chunk_cipher(entry, ordinal, column)
            chunks.append(chunk_of(seed.data, entry, entry.meta_data, cipher, (index, column)))
    algorithm = metadata.encryption_algorithm
    crypto = None
    if seed.data[-4:] == b"PARE":
        size = int.from_bytes(seed.data[-8:-4], "little")
        crypto = fmt.decode(fmt.FileCryptoMetaData, seed.data[-8 - size : -8])[0]
        algorithm = crypto.encryption_algorithm
    sealing = None if algorithm is None else Sealing(crypto, algorithm, seed.mode or "")
    return Anatomy(fmt.encode(metadata), tuple(chunks), sealing)


def chunk_of(data: bytes, entry: fmt.ColumnChunk, column: fmt.ColumnMetaData, cipher: Any, place: tuple[int, int]) -> Chunk:
    """A chunk, decrypted."""
    clear = cipher.overhead == 0
    position = column.dictionary_page_offset or column.data_page_offset
    end = position + column.total_compressed_size
    pages = list[Page]()
    ordinal, dictionary = 0, bool(column.dictionary_page_offset)
    while position < end:
        kinds = (ModuleType.DICTIONARY_PAGE_HEADER, ModuleType.DICTIONARY_PAGE)
        if not dictionary:
            kinds = (ModuleType.DATA_PAGE_HEADER, ModuleType.DATA_PAGE)
        if clear:
            header, size = fmt.decode(fmt.PageHeader, data, position)
            plain = data[position : position + (size if size <= end else size - position)]
        else:
            plain, size = cipher.open_first(kinds[0], ordinal, data[position:end])
            header = fmt.decode(fmt.PageHeader, plain)[0]
        position += size
        body = data[position : position + header.compressed_page_size + (0 if clear else cipher.uncounted)]
        position += len(body)
        if not clear:
            body = cipher.open(kinds[1], ordinal, body)
            header.compressed_page_size = len(body)
            plain = fmt.encode(header)
        pages.append(Page(plain, body))
        ordinal += not dictionary
        dictionary = False
    indexes = list[bytes | None]()
    for module, name in ((ModuleType.COLUMN_INDEX, "column_index"), (ModuleType.OFFSET_INDEX, "offset_index")):
        start, length = getattr(entry, f"{name}_offset"), getattr(entry, f"{name}_length")
        stored = None if start is None else data[start : start + length]
        indexes.append(stored if stored is None or clear else cipher.open(module, NO_PAGE, stored))
    return Chunk(place[0], place[1], column.codec, tuple(pages), indexes[0], indexes[1], bloom_of(data, column, cipher))


def bloom_of(data: bytes, column: fmt.ColumnMetaData, cipher: Any) -> tuple[bytes, bytes] | None:
    """Header and bits of a bloom filter, decrypted."""
    start, size = column.bloom_filter_offset, column.bloom_filter_length
    if start is None or size is None:
        return None
    stored = data[start : start + size]
    if cipher.overhead == 0:
        header, end = fmt.decode(fmt.BloomFilterHeader, stored)
        return stored[:end], stored[end : end + header.numBytes]
    plain, end = cipher.open_first(ModuleType.BLOOM_FILTER_HEADER, NO_PAGE, stored)
    return plain, cipher.open(ModuleType.BLOOM_FILTER_BITSET, NO_PAGE, stored[end:])
