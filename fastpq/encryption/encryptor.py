"""Seals what is to be encrypted in a file: its footer, its column metadata and its column chunks (Encryption.md, 5)."""

from __future__ import annotations

import copy
import os
import struct
from collections.abc import Sequence

from fastpq import format as fmt
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.gcm import GcmModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.encryption.properties import ColumnEncryptionProperties, FileEncryptionProperties
from fastpq.errors import LimitError, SchemaError

MAGIC = b"PAR1"
MAGIC_ENCRYPTED_FOOTER = b"PARE"
FILE_IDENTIFIER_SIZE = 8
LARGEST_FOOTER = 0x7FFFFFFF
NO_PAGE = -1


class FileEncryptor:
    """Seals the modules of a file; this one is that of a plaintext file."""

    @property
    def magic(self) -> bytes:
        """The first and the last four bytes of the file."""
        return MAGIC

    @property
    def encryption_algorithm(self) -> fmt.EncryptionAlgorithm | None:
        """``encryption_algorithm`` of the FileMetaData; inside an encrypted footer it is an authentic copy."""
        return None

    def chunk_cipher(self, column_path: tuple[str, ...], row_group_ordinal: int, column_ordinal: int) -> ModuleCipher:
        """The cipher of a column chunk: the null cipher, if it is not to be encrypted.

        Raises:
            CryptoError: an ordinal over 32767.
        """
        return ModuleCipher()

    def column_chunk(self, chunk: fmt.ColumnChunk, row_group_ordinal: int, column_ordinal: int) -> fmt.ColumnChunk:
        """A chunk's entry in the footer as it is stored: with crypto metadata, and its own metadata encrypted or not.

        Args:
            chunk: the entry with its plain ``meta_data``; it is left as it is.
        """
        return chunk

    def frame_footer(self, footer: bytes) -> bytes:
        """Everything that follows the last row group.

        Args:
            footer: the serialized FileMetaData.

        Raises:
            LimitError: over 2^31 - 1 bytes.
        """
        return _framed(footer, self.magic)


class EncryptedFooterEncryptor(FileEncryptor):
    """Seals the modules of a file whose footer is encrypted (5.4)."""

    def __init__(self, properties: FileEncryptionProperties, schema_paths: Sequence[tuple[str, ...]]) -> None:
        self._properties = properties
        self._columns = {path: properties.column(path) for path in schema_paths}
        prefix = properties.aad_prefix
        unique = os.urandom(FILE_IDENTIFIER_SIZE)
        self._file_aad = (prefix or b"") + unique
        self._algorithm = fmt.EncryptionAlgorithm(
            AES_GCM_V1=fmt.AesGcmV1(
                aad_prefix=prefix if properties.store_aad_prefix else None,
                aad_file_unique=unique,
                supply_aad_prefix=prefix is not None and not properties.store_aad_prefix,
            )
        )

    @property
    def magic(self) -> bytes:
        return MAGIC_ENCRYPTED_FOOTER

    @property
    def encryption_algorithm(self) -> fmt.EncryptionAlgorithm | None:
        return self._algorithm

    def chunk_cipher(self, column_path: tuple[str, ...], row_group_ordinal: int, column_ordinal: int) -> ModuleCipher:
        column = self._columns[column_path]
        if column is None:
            return ModuleCipher()
        return self._cipher(column, column_path, row_group_ordinal, column_ordinal)

    def column_chunk(self, chunk: fmt.ColumnChunk, row_group_ordinal: int, column_ordinal: int) -> fmt.ColumnChunk:
        metadata = chunk.meta_data
        if metadata is None:
            raise SchemaError("a column chunk without metadata cannot be written", column=column_ordinal)
        path = tuple(metadata.path_in_schema)
        column = self._columns[path]
        if column is None:
            return chunk
        stored = copy.copy(chunk)
        if column.key is None:
            stored.crypto_metadata = fmt.ColumnCryptoMetaData(ENCRYPTION_WITH_FOOTER_KEY=fmt.EncryptionWithFooterKey())
            return stored
        stored.crypto_metadata = fmt.ColumnCryptoMetaData(
            ENCRYPTION_WITH_COLUMN_KEY=fmt.EncryptionWithColumnKey(
                path_in_schema=list(path), key_metadata=column.key_metadata
            )
        )
        cipher = self._cipher(column, path, row_group_ordinal, column_ordinal)
        stored.encrypted_column_metadata = cipher.seal(ModuleType.COLUMN_METADATA, NO_PAGE, fmt.encode(metadata))
        stored.meta_data = None
        return stored

    def frame_footer(self, footer: bytes) -> bytes:
        crypto = fmt.FileCryptoMetaData(
            encryption_algorithm=self._algorithm, key_metadata=self._properties.footer_key_metadata
        )
        cipher = GcmModuleCipher(self._properties.footer_key, self._file_aad)
        return _framed(fmt.encode(crypto) + cipher.seal(ModuleType.FOOTER, NO_PAGE, footer), self.magic)

    def _cipher(
        self, column: ColumnEncryptionProperties, path: tuple[str, ...], row_group_ordinal: int, column_ordinal: int
    ) -> GcmModuleCipher:
        key = column.key or self._properties.footer_key
        return GcmModuleCipher(key, self._file_aad, row_group_ordinal, column_ordinal, ".".join(path))


def _framed(footer: bytes, magic: bytes) -> bytes:
    if len(footer) > LARGEST_FOOTER:
        raise LimitError(f"a footer of {len(footer)} bytes: no footer can be larger than {LARGEST_FOOTER}")
    return footer + struct.pack("<I", len(footer)) + magic
