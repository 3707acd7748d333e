"""Seals what is to be encrypted in a file: its footer, its column metadata and its column chunks (Encryption.md, 5)."""

from __future__ import annotations

import copy
import os
import struct
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from fastpq import format as fmt
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.gcm import GcmModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.encryption.properties import ColumnEncryptionProperties, FileEncryptionProperties
from fastpq.encryption.variants import CtrModuleCipher
from fastpq.errors import LimitError, SchemaError

MAGIC = b"PAR1"
MAGIC_ENCRYPTED_FOOTER = b"PARE"
FILE_IDENTIFIER_SIZE = 8
LARGEST_FOOTER = 0x7FFFFFFF
NO_PAGE = -1
# What a plaintext footer shows of an encrypted column: where its bytes are and how many, so that readers without its key can
# pass over it. Not what other writers leave behind as well: bloom filters, size statistics, bounding boxes.
VISIBLE_TO_ALL = (
    "type",
    "encodings",
    "path_in_schema",
    "codec",
    "num_values",
    "total_uncompressed_size",
    "total_compressed_size",
    "data_page_offset",
    "dictionary_page_offset",
)


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

    @property
    def footer_signing_key_metadata(self) -> bytes | None:
        """``footer_signing_key_metadata`` of the FileMetaData, for readers to find the key of the signature by."""
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

    def sorting_columns(self, columns: list[fmt.SortingColumn] | None) -> list[fmt.SortingColumn] | None:
        """What the footer may say of the order of a row group's rows."""
        return columns

    def frame_footer(self, footer: bytes) -> bytes:
        """Everything that follows the last row group.

        Args:
            footer: the serialized FileMetaData.

        Raises:
            LimitError: over 2^31 - 1 bytes.
        """
        return _framed(footer, self.magic)


class KeyedFileEncryptor(FileEncryptor):
    """Seals the modules of an encrypted file; how its footer is protected, the two kinds of it know."""

    def __init__(self, properties: FileEncryptionProperties, schema_paths: Sequence[tuple[str, ...]]) -> None:
        self._properties = properties
        self._columns = {path: properties.column(path) for path in schema_paths}
        prefix = properties.aad_prefix
        unique = os.urandom(FILE_IDENTIFIER_SIZE)
        self._file_aad = (prefix or b"") + unique
        parameters: dict[str, Any] = {
            "aad_prefix": prefix if properties.store_aad_prefix else None,
            "aad_file_unique": unique,
            "supply_aad_prefix": prefix is not None and not properties.store_aad_prefix,
        }
        if properties.algorithm == "AES_GCM_CTR_V1":
            self._cipher_class: type[GcmModuleCipher] = CtrModuleCipher
            self._algorithm = fmt.EncryptionAlgorithm(AES_GCM_CTR_V1=fmt.AesGcmCtrV1(**parameters))
        else:
            self._cipher_class = GcmModuleCipher
            self._algorithm = fmt.EncryptionAlgorithm(AES_GCM_V1=fmt.AesGcmV1(**parameters))

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
        stored.crypto_metadata = _crypto_metadata(column, path)
        stored.meta_data = self._visible_metadata(column, metadata)
        if stored.meta_data is not metadata:
            cipher = self._cipher(column, path, row_group_ordinal, column_ordinal)
            stored.encrypted_column_metadata = cipher.seal(ModuleType.COLUMN_METADATA, NO_PAGE, fmt.encode(metadata))
            stored.unknown = ()     # of a copied chunk: nobody knows what such fields tell
        return stored

    def _visible_metadata(
        self, column: ColumnEncryptionProperties, metadata: fmt.ColumnMetaData
    ) -> fmt.ColumnMetaData | None:
        """What the footer itself says of an encrypted column; if that is not all, all of it is encrypted beside it."""
        raise NotImplementedError

    def _cipher(
        self, column: ColumnEncryptionProperties, path: tuple[str, ...], row_group_ordinal: int, column_ordinal: int
    ) -> GcmModuleCipher:
        return self._cipher_class(
            column.key or self._properties.footer_key,
            self._file_aad,
            row_group_ordinal,
            column_ordinal,
            ".".join(path),
            levels_in_clear=self._properties.v2_layout == "parquet-java",
        )

    def _footer_cipher(self) -> GcmModuleCipher:
        return self._cipher_class(self._properties.footer_key, self._file_aad)


class EncryptedFooterEncryptor(KeyedFileEncryptor):
    """Seals the modules of a file whose footer is encrypted (5.4)."""

    @property
    def magic(self) -> bytes:
        return MAGIC_ENCRYPTED_FOOTER

    def frame_footer(self, footer: bytes) -> bytes:
        crypto = fmt.FileCryptoMetaData(
            encryption_algorithm=self._algorithm, key_metadata=self._properties.footer_key_metadata
        )
        return _framed(fmt.encode(crypto) + self._footer_cipher().seal(ModuleType.FOOTER, NO_PAGE, footer), self.magic)

    def _visible_metadata(
        self, column: ColumnEncryptionProperties, metadata: fmt.ColumnMetaData
    ) -> fmt.ColumnMetaData | None:
        return metadata if column.key is None else None


class PlaintextFooterEncryptor(KeyedFileEncryptor):
    """Seals the modules of a file whose footer is plaintext, and signed (5.5)."""

    @property
    def footer_signing_key_metadata(self) -> bytes | None:
        return self._properties.footer_key_metadata

    def sorting_columns(self, columns: list[fmt.SortingColumn] | None) -> list[fmt.SortingColumn] | None:
        """Those before the first encrypted column, whose order of values is not for everybody."""
        encrypted = list(self._columns.values())
        return list(takewhile(lambda entry: encrypted[entry.column_idx] is None, columns or [])) or None

    def frame_footer(self, footer: bytes) -> bytes:
        return _framed(footer + self._footer_cipher().sign(footer), self.magic)

    def _visible_metadata(
        self, column: ColumnEncryptionProperties, metadata: fmt.ColumnMetaData
    ) -> fmt.ColumnMetaData | None:
        return fmt.ColumnMetaData(**{name: getattr(metadata, name) for name in VISIBLE_TO_ALL})


def _crypto_metadata(column: ColumnEncryptionProperties, path: tuple[str, ...]) -> fmt.ColumnCryptoMetaData:
    if column.key is None:
        return fmt.ColumnCryptoMetaData(ENCRYPTION_WITH_FOOTER_KEY=fmt.EncryptionWithFooterKey())
    return fmt.ColumnCryptoMetaData(
        ENCRYPTION_WITH_COLUMN_KEY=fmt.EncryptionWithColumnKey(
            path_in_schema=list(path), key_metadata=column.key_metadata
        )
    )


def _framed(footer: bytes, magic: bytes) -> bytes:
    if len(footer) > LARGEST_FOOTER:
        raise LimitError(f"a footer of {len(footer)} bytes: no footer can be larger than {LARGEST_FOOTER}")
    return footer + struct.pack("<I", len(footer)) + magic
