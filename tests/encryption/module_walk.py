"""Files taken apart and put together module by module, without fastpq's reader and writer."""

from __future__ import annotations

import copy
from dataclasses import dataclass

from fastpq import format as fmt
from fastpq.encryption import FileDecryptionProperties, FileEncryptionProperties
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.decryptor import FileDecryptor
from fastpq.encryption.decryptor_choice import open_file_decryptor, open_signed_footer
from fastpq.encryption.encryptor import open_file_encryptor
from fastpq.encryption.modules import ModuleType

NO_PAGE = -1
LENGTH_SIZE = 4
INDEXES = {
    ModuleType.COLUMN_INDEX: (fmt.ColumnIndex, "column_index_offset", "column_index_length"),
    ModuleType.OFFSET_INDEX: (fmt.OffsetIndex, "offset_index_offset", "offset_index_length"),
}


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file whose footer is open."""

    data: bytes
    decryptor: FileDecryptor
    metadata: fmt.FileMetaData

    def walk(self) -> int:
        """Open every page header, every page, index and bloom filter; returns how many modules of encrypted chunks were
        opened, their metadata among them."""
        return sum(
            self.walk_chunk(chunk, index if group.ordinal is None else group.ordinal, column)
            for index, group in enumerate(self.metadata.row_groups)
            for column, chunk in enumerate(group.columns)
        )

    def walk_chunk(self, chunk: fmt.ColumnChunk, row_group: int, column: int) -> int:
        """Open the modules of one chunk."""
        metadata = self.decryptor.column_metadata(chunk, row_group, column)
        cipher = self.decryptor.chunk_cipher(chunk, row_group, column)
        if cipher.overhead == 0:
            return 0
        opened = chunk.encrypted_column_metadata is not None
        return opened + self._walk_pages(metadata, cipher) + self._walk_indexes(chunk, metadata, cipher)

    def _walk_pages(self, metadata: fmt.ColumnMetaData, cipher: ModuleCipher) -> int:
        position = metadata.dictionary_page_offset or metadata.data_page_offset
        end = position + metadata.total_compressed_size
        dictionary = bool(metadata.dictionary_page_offset)
        opened = page = 0
        while position < end:
            kind = ModuleType.DICTIONARY_PAGE_HEADER if dictionary else ModuleType.DATA_PAGE_HEADER
            plain, size = cipher.open_first(kind, page, self.data[position:end])
            header, _ = fmt.decode(fmt.PageHeader, plain)
            position += size
            kind = ModuleType.DICTIONARY_PAGE if dictionary else ModuleType.DATA_PAGE
            size = header.compressed_page_size + cipher.uncounted
            body = self.data[position : position + size]
            cipher.open(kind, page, body[clear_size(header, body) :])
            position += size
            opened += 2
            page += not dictionary
            dictionary = False
        assert position == end
        return opened

    def _walk_indexes(self, chunk: fmt.ColumnChunk, metadata: fmt.ColumnMetaData, cipher: ModuleCipher) -> int:
        opened = 0
        for module, (struct, offset, length) in INDEXES.items():
            if (start := getattr(chunk, offset)) is not None:
                plain = cipher.open(module, NO_PAGE, self.data[start : start + getattr(chunk, length)])
                fmt.decode(struct, plain)
                opened += 1
        if metadata.bloom_filter_offset is not None:
            start, size = metadata.bloom_filter_offset, metadata.bloom_filter_length
            assert size is not None
            plain, bitset = cipher.open_first(ModuleType.BLOOM_FILTER_HEADER, NO_PAGE, self.data[start : start + size])
            header, _ = fmt.decode(fmt.BloomFilterHeader, plain)
            bits = cipher.open(ModuleType.BLOOM_FILTER_BITSET, NO_PAGE, self.data[start + bitset : start + size])
            assert len(bits) == header.numBytes
            opened += 2
        return opened


def clear_size(header: fmt.PageHeader, body: bytes) -> int:
    """Bytes of levels that parquet-java leaves in the clear before the module of a data page V2."""
    if header.data_page_header_v2 is None or int.from_bytes(body[:LENGTH_SIZE], "little") == len(body) - LENGTH_SIZE:
        return 0
    levels = header.data_page_header_v2
    return levels.repetition_levels_byte_length + levels.definition_levels_byte_length


def open_file(data: bytes, properties: FileDecryptionProperties | None) -> OpenFile:
    """Open the footer of a file."""
    size = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - size : -8]
    if data[-4:] == b"PARE":
        crypto, end = fmt.decode(fmt.FileCryptoMetaData, footer)
        decryptor = open_file_decryptor(
            properties, algorithm=crypto.encryption_algorithm, key_metadata=crypto.key_metadata, encrypted_footer=True
        )
        metadata, _ = fmt.decode(fmt.FileMetaData, decryptor.open_footer(footer[end:]))
        decryptor.confirm_algorithm(metadata.encryption_algorithm)
        return OpenFile(data, decryptor, metadata)
    decryptor, size = open_signed_footer(properties, memoryview(footer))
    return OpenFile(data, decryptor, fmt.decode(fmt.FileMetaData, footer[:size])[0])


def encrypt_file(data: bytes, properties: FileEncryptionProperties | None) -> bytes:
    """The encrypted form of a plaintext file of V1 pages: the same pages in the same order."""
    metadata = open_file(data, None).metadata
    columns = [_metadata(chunk) for chunk in metadata.row_groups[0].columns]
    encryptor = open_file_encryptor(properties, [tuple(column.path_in_schema or ()) for column in columns])
    out = bytearray(encryptor.magic)
    for ordinal, group in enumerate(metadata.row_groups):
        group.ordinal = ordinal
        group.file_offset = len(out)
        for index, chunk in enumerate(group.columns):
            column = _metadata(chunk)
            path = tuple(column.path_in_schema or ())
            cipher = encryptor.chunk_cipher(path, ordinal, index)
            entry = fmt.ColumnChunk(file_offset=0, meta_data=_encrypt_chunk(data, column, cipher, out))
            before = copy.deepcopy(entry)
            group.columns[index] = encryptor.column_chunk(path, entry, cipher)
            assert entry == before
        group.total_compressed_size = len(out) - group.file_offset
    metadata.encryption_algorithm = encryptor.encryption_algorithm
    metadata.footer_signing_key_metadata = encryptor.footer_signing_key_metadata
    return bytes(out) + encryptor.frame_footer(fmt.encode(metadata))


def _encrypt_chunk(data: bytes, column: fmt.ColumnMetaData, cipher: ModuleCipher, out: bytearray) -> fmt.ColumnMetaData:
    """Seal the pages of one chunk behind out; returns the metadata for their new place."""
    moved = copy.copy(column)
    start = len(out)
    position = column.dictionary_page_offset or column.data_page_offset
    end = position + column.total_compressed_size
    page = 0
    while position < end:
        header, size = fmt.decode(fmt.PageHeader, data, position)
        position += size
        dictionary = header.type == fmt.PageType.DICTIONARY_PAGE
        kinds = (ModuleType.DICTIONARY_PAGE_HEADER, ModuleType.DICTIONARY_PAGE)
        if not dictionary:
            kinds = (ModuleType.DATA_PAGE_HEADER, ModuleType.DATA_PAGE)
        if dictionary:
            moved.dictionary_page_offset = len(out)
        elif page == 0:
            moved.data_page_offset = len(out)
        body = bytes(cipher.seal(kinds[1], page, data[position : position + header.compressed_page_size]))
        position += header.compressed_page_size
        header.compressed_page_size = len(body)
        header.crc = None
        out += bytes(cipher.seal(kinds[0], page, fmt.encode(header))) + body
        page += not dictionary
    moved.total_compressed_size = len(out) - start
    return moved


def _metadata(chunk: fmt.ColumnChunk) -> fmt.ColumnMetaData:
    assert chunk.meta_data is not None
    return chunk.meta_data
