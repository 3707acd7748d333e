"""Encryptors of a new file: seal its footer, its column metadata and its column chunks (Encryption.md, 5).

A plaintext file has an encryptor too, with the null cipher.
"""

from __future__ import annotations

import copy
import os
import struct
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

from fastpq import format as fmt
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.gcm import GcmModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.encryption.properties import ColumnEncryptionProperties, FileEncryptionProperties
from fastpq.encryption.variants import CtrModuleCipher
from fastpq.errors import CryptoError, LimitError, SchemaError
from fastpq.format.stored_footer import ENCRYPTED_MAGIC, MAGIC

FILE_IDENTIFIER_SIZE = 8        # bytes of aad_file_unique
LARGEST_COLUMN_ORDINAL = 32767  # a signed 16-bit integer in AADs (Encryption.md, 4.4)
LARGEST_FOOTER = 0x7FFFFFFF     # bytes; other readers hold the length in a signed 32-bit integer
NO_PAGE = -1                    # page ordinal of modules outside of pages
# Metadata fields of an encrypted column in a plaintext footer, enough for readers without the key to pass over the column.
# Other writers also disclose bloom filters, size statistics and bounding boxes.
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
    """Encryptor of a plaintext file, and base class of the others: gives ciphers of column chunks, and frames the footer.

    Attributes:
        magic: the first and the last four bytes of the file.
        encryption_algorithm: field of the FileMetaData; inside an encrypted footer, an authentic copy.
        footer_signing_key_metadata: field of the FileMetaData: helps readers find the key of the signature.
    """

    magic: bytes = MAGIC
    encryption_algorithm: fmt.EncryptionAlgorithm | None = None
    footer_signing_key_metadata: bytes | None = None

    def chunk_cipher(self, column_path: tuple[str, ...], row_group_ordinal: int, column_ordinal: int) -> ModuleCipher:
        """The cipher of a column chunk: the null cipher for a plaintext column.

        Raises:
            CryptoError: an ordinal over 32767.
        """
        return ModuleCipher()

    def column_chunk(self, chunk: fmt.ColumnChunk, cipher: ModuleCipher) -> fmt.ColumnChunk:
        """The entry of a column chunk in the footer, with crypto metadata, and with its own metadata encrypted if necessary.

        Args:
            chunk: the entry with plain ``meta_data``; not modified.
            cipher: cipher of the chunk.
        """
        return chunk

    def sorting_columns(self, columns: list[fmt.SortingColumn] | None) -> list[fmt.SortingColumn] | None:
        """Sorting columns of a row group, as far as the footer may disclose the order of rows."""
        return columns

    def frame_footer(self, footer: bytes) -> bytes:
        """All bytes of the file behind the last row group.

        Args:
            footer: the serialized FileMetaData.

        Raises:
            LimitError: over 2^31 - 1 bytes.
        """
        return _framed(footer, self.magic)


class KeyedFileEncryptor(FileEncryptor):
    """Base class of the encryptors of an encrypted file; the two subclasses protect the footer."""

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
            self.encryption_algorithm = fmt.EncryptionAlgorithm(AES_GCM_CTR_V1=fmt.AesGcmCtrV1(**parameters))
        else:
            self._cipher_class = GcmModuleCipher
            self.encryption_algorithm = fmt.EncryptionAlgorithm(AES_GCM_V1=fmt.AesGcmV1(**parameters))

    def chunk_cipher(self, column_path: tuple[str, ...], row_group_ordinal: int, column_ordinal: int) -> ModuleCipher:
        column = self._columns[column_path]
        if column is None:
            return ModuleCipher()
        return self._cipher_class(
            column.key or self._properties.footer_key,
            self._file_aad,
            row_group_ordinal,
            column_ordinal,
            ".".join(column_path),
            levels_in_clear=self._properties.v2_layout == "parquet-java",
        )

    def column_chunk(self, chunk: fmt.ColumnChunk, cipher: ModuleCipher) -> fmt.ColumnChunk:
        metadata = chunk.meta_data
        if metadata is None:
            raise SchemaError("a column chunk without metadata cannot be written")
        path = tuple(metadata.path_in_schema)
        column = self._columns[path]
        if column is None:
            return chunk
        stored = copy.copy(chunk)
        stored.crypto_metadata = _crypto_metadata(column, path)
        stored.meta_data = self._visible_metadata(column, metadata)
        if stored.meta_data is not metadata:
            stored.encrypted_column_metadata = bytes(cipher.seal(ModuleType.COLUMN_METADATA, NO_PAGE, fmt.encode(metadata)))
            stored.unknown = ()     # unknown fields of a copied chunk might disclose values
        return stored

    def _visible_metadata(
        self, column: ColumnEncryptionProperties, metadata: fmt.ColumnMetaData
    ) -> fmt.ColumnMetaData | None:
        """Metadata of an encrypted column left in the clear; the caller encrypts all metadata unless nothing is left out."""
        raise NotImplementedError

    def _footer_cipher(self) -> GcmModuleCipher:
        return self._cipher_class(self._properties.footer_key, self._file_aad)


class EncryptedFooterEncryptor(KeyedFileEncryptor):
    """Seals the modules of a file whose footer is encrypted (5.4)."""

    magic = ENCRYPTED_MAGIC

    def frame_footer(self, footer: bytes) -> bytes:
        crypto = fmt.FileCryptoMetaData(
            encryption_algorithm=self.encryption_algorithm, key_metadata=self._properties.footer_key_metadata
        )
        return _framed(fmt.encode(crypto) + self._footer_cipher().seal(ModuleType.FOOTER, NO_PAGE, footer), self.magic)

    def _visible_metadata(
        self, column: ColumnEncryptionProperties, metadata: fmt.ColumnMetaData
    ) -> fmt.ColumnMetaData | None:
        return metadata if column.key is None else None


class PlaintextFooterEncryptor(KeyedFileEncryptor):
    """Seals the modules of a file whose footer is plaintext, and signed (5.5)."""

    def __init__(self, properties: FileEncryptionProperties, schema_paths: Sequence[tuple[str, ...]]) -> None:
        super().__init__(properties, schema_paths)
        self.footer_signing_key_metadata = properties.footer_key_metadata

    def sorting_columns(self, columns: list[fmt.SortingColumn] | None) -> list[fmt.SortingColumn] | None:
        """The sorting columns before the first encrypted or unknown column: the order of an encrypted column discloses values."""
        clear = {index for index, column in enumerate(self._columns.values()) if column is None}
        return list(takewhile(lambda entry: entry.column_idx in clear, columns or [])) or None

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


def closed_columns(
    properties: FileEncryptionProperties, schema_paths: Iterable[tuple[str, ...]]
) -> frozenset[str]:
    """Top-level columns of a new file with leaves closed to some readers of its footer.

    A leaf is closed under a key of its own, and under any key where the footer is plaintext.

    Args:
        properties: the keys.
        schema_paths: paths of all leaves.
    """
    _check_encryption(properties)
    treatments = ((path, properties.column(path)) for path in schema_paths)
    return frozenset(
        path[0] for path, column in treatments if column is not None and (properties.plaintext_footer or column.key is not None)
    )


def open_file_encryptor(
    properties: FileEncryptionProperties | None, schema_paths: Sequence[tuple[str, ...]]
) -> FileEncryptor:
    """The encryptor of a new file.

    Args:
        properties: the keys; None for a plaintext file.
        schema_paths: paths of all columns, in the order of the schema.

    Raises:
        SchemaError: a key for a column path outside the schema.
        CryptoError: an encrypted column with an ordinal over 32767.
        TypeError: properties of another class.
    """
    if properties is None:
        return FileEncryptor()
    _check_encryption(properties)
    unknown = properties.column_keys.unknown(schema_paths)
    if unknown:
        raise SchemaError(f"keys for columns that the schema does not have: {', '.join(sorted(unknown))}")
    for path in schema_paths[LARGEST_COLUMN_ORDINAL + 1 :]:
        if properties.column(path) is not None:
            limit = LARGEST_COLUMN_ORDINAL + 1
            raise CryptoError(f"only the first {limit} columns can be encrypted", column=".".join(path))
    kind = PlaintextFooterEncryptor if properties.plaintext_footer else EncryptedFooterEncryptor
    return kind(properties, schema_paths)


def _check_encryption(properties: object) -> None:
    if not isinstance(properties, FileEncryptionProperties):
        raise TypeError(f"encryption_properties are fastpq.FileEncryptionProperties, not {type(properties)}")
