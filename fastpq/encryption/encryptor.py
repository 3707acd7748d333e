"""Encryptors for a new file: they seal its footer, its column metadata and its column chunks (Encryption.md, 5).

A plaintext file has an encryptor too, which uses the null cipher.
"""

from __future__ import annotations

import copy
import os
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any, Literal, Protocol, TypeVar

from fastpq import format as fmt
from fastpq.encryption.audit import FileAudit, KeyUse, is_same_file, name_of_key
from fastpq.encryption.cipher import ModuleCipher
from fastpq.encryption.gcm import GcmModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.encryption.properties import ColumnEncryptionProperties, FileEncryptionProperties
from fastpq.encryption.variants import CtrModuleCipher, DuckDbModuleCipher
from fastpq.errors import CryptoError, LimitError, SchemaError
from fastpq.format.stored_footer import ENCRYPTED_MAGIC, MAGIC
from fastpq.options import LARGEST_FOOTER

FILE_IDENTIFIER_SIZE = 8        # size of aad_file_unique in bytes
LARGEST_COLUMN_ORDINAL = 32767  # an AAD holds ordinals as signed 16-bit integers (Encryption.md, 4.4)
# the encoded ColumnCryptoMetaData for a column that the footer key encrypts
ENCODED_FOOTER_KEY = fmt.encode(fmt.ColumnCryptoMetaData(ENCRYPTION_WITH_FOOTER_KEY=fmt.EncryptionWithFooterKey()))
NO_PAGE = -1                    # page ordinal for modules that do not belong to a page
# An encrypted column's metadata fields that a plaintext footer shows. Readers without the key need them to skip the column.
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

Shown = Literal["all", "visible", "none"]


class EncodedEntry(Protocol):
    """A column chunk's entry that encodes itself (``fastpq.write.plain_entry.PlainEntry``)."""

    def protect(self, crypto_metadata: bytes, shown: Shown, cipher: ModuleCipher) -> None:
        """Enter the encoded crypto metadata, and encrypt the chunk's metadata unless all of them are shown."""


EntryT = TypeVar("EntryT", fmt.ColumnChunk, EncodedEntry)


class FileEncryptor:
    """Encryptor for a plaintext file, and base class for the others. It gives column chunks their ciphers and frames the footer.

    Attributes:
        magic: the file's first four bytes, which are also its last four bytes.
        encryption_algorithm: field for FileMetaData. Inside an encrypted footer it is an authenticated copy.
        footer_signing_key_metadata: field for FileMetaData. It helps readers find the key that signed the footer.
    """

    magic: bytes = MAGIC
    encryption_algorithm: fmt.EncryptionAlgorithm | None = None
    footer_signing_key_metadata: bytes | None = None

    def chunk_cipher(self, column_path: tuple[str, ...], row_group_ordinal: int, column_ordinal: int) -> ModuleCipher:
        """Return a column chunk's cipher. A plaintext column has the null cipher.

        Raises:
            CryptoError: an ordinal is over 32767.
        """
        return ModuleCipher()

    def column_chunk(self, column_path: tuple[str, ...], chunk: EntryT, cipher: ModuleCipher) -> EntryT:
        """Return a column chunk's entry in the footer, with crypto metadata, and with its own metadata encrypted if necessary.

        Args:
            column_path: path of the chunk's column.
            chunk: the entry with plain ``meta_data``. A ColumnChunk is not modified, an EncodedEntry is.
            cipher: the chunk's cipher.
        """
        return chunk

    def sorting_columns(self, columns: list[fmt.SortingColumn] | None) -> list[fmt.SortingColumn] | None:
        """Return a row group's sorting columns, as far as the footer may disclose the row order."""
        return columns

    def frame_footer(self, footer: bytes) -> bytes:
        """Return all bytes that follow the last row group in the file.

        Args:
            footer: the serialized FileMetaData.

        Raises:
            LimitError: the footer has more than 2^31 - 1 bytes.
        """
        return _framed(footer, self.magic)


class KeyedFileEncryptor(FileEncryptor, ABC):
    """Base class for encryptors that have keys. Its two subclasses protect the footer."""

    def __init__(
        self, properties: FileEncryptionProperties, schema_paths: Sequence[tuple[str, ...]], file_unique: bytes | None = None
    ) -> None:
        self._properties = properties
        self._columns = properties.columns(schema_paths)
        self._levels_in_clear = properties.v2_layout == "parquet-java"
        self._crypto_metadata: dict[tuple[str, ...], fmt.ColumnCryptoMetaData] = {}     # the same in all row groups
        prefix = properties.aad_prefix
        unique = os.urandom(FILE_IDENTIFIER_SIZE) if file_unique is None else file_unique
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
            self._levels_in_clear,
        )

    def column_chunk(self, column_path: tuple[str, ...], chunk: EntryT, cipher: ModuleCipher) -> EntryT:
        column = self._columns[column_path]
        if column is None:
            return chunk
        shown = self._shown_metadata(column)
        if not isinstance(chunk, fmt.ColumnChunk):
            chunk.protect(_encoded_crypto_metadata(column, column_path), shown, cipher)
            return chunk
        metadata = chunk.meta_data
        if metadata is None:
            raise SchemaError("a column chunk without metadata cannot be written")
        encrypted_chunk = copy.copy(chunk)
        if column_path not in self._crypto_metadata:
            self._crypto_metadata[column_path] = _crypto_metadata(column, column_path)
        encrypted_chunk.crypto_metadata = self._crypto_metadata[column_path]
        if shown != "all":
            is_visible = shown == "visible"
            visible_fields = {name: getattr(metadata, name) for name in VISIBLE_TO_ALL} if is_visible else {}
            encrypted_chunk.meta_data = fmt.ColumnMetaData(**visible_fields) if is_visible else None
            module = cipher.seal(ModuleType.COLUMN_METADATA, NO_PAGE, fmt.encode(metadata))
            encrypted_chunk.encrypted_column_metadata = bytes(module)
            encrypted_chunk.unknown_fields = ()    # unknown fields of a copied chunk might disclose values
        return encrypted_chunk

    @abstractmethod
    def _shown_metadata(self, column: ColumnEncryptionProperties) -> Shown:
        """Return which part of a column's metadata stays in the footer. If some are missing, all are encrypted beside it."""

    def _footer_cipher(self) -> GcmModuleCipher:
        return self._cipher_class(self._properties.footer_key, self._file_aad)


class EncryptedFooterEncryptor(KeyedFileEncryptor):
    """Encryptor for a file whose footer is encrypted (5.4)."""

    magic = ENCRYPTED_MAGIC

    def frame_footer(self, footer: bytes) -> bytes:
        crypto = fmt.FileCryptoMetaData(
            encryption_algorithm=self.encryption_algorithm, key_metadata=self._properties.footer_key_metadata
        )
        return _framed(fmt.encode(crypto) + self._footer_cipher().seal(ModuleType.FOOTER, NO_PAGE, footer), self.magic)

    def _shown_metadata(self, column: ColumnEncryptionProperties) -> Shown:
        return "all" if column.key is None else "none"


class DuckDbFileEncryptor(EncryptedFooterEncryptor):
    """Encryptor for DuckDB's dialect: the footer key encrypts every column, there is no crypto metadata, and AADs are empty."""

    def __init__(
        self, properties: FileEncryptionProperties, schema_paths: Sequence[tuple[str, ...]], file_unique: bytes | None = None
    ) -> None:
        super().__init__(properties, schema_paths, b"")
        self._cipher_class = DuckDbModuleCipher
        self.encryption_algorithm = fmt.EncryptionAlgorithm(AES_GCM_V1=fmt.AesGcmV1())

    def column_chunk(self, column_path: tuple[str, ...], chunk: EntryT, cipher: ModuleCipher) -> EntryT:
        return chunk


class PlaintextFooterEncryptor(KeyedFileEncryptor):
    """Encryptor for a file whose footer is plaintext and signed (5.5)."""

    def __init__(
        self, properties: FileEncryptionProperties, schema_paths: Sequence[tuple[str, ...]], file_unique: bytes | None = None
    ) -> None:
        super().__init__(properties, schema_paths, file_unique)
        self.footer_signing_key_metadata = properties.footer_key_metadata

    def sorting_columns(self, columns: list[fmt.SortingColumn] | None) -> list[fmt.SortingColumn] | None:
        # only the columns in front of the first encrypted or unknown one: an encrypted column's order discloses values
        clear_columns = {index for index, column in enumerate(self._columns.values()) if column is None}
        return list(takewhile(lambda entry: entry.column_idx in clear_columns, columns or [])) or None

    def frame_footer(self, footer: bytes) -> bytes:
        return _framed(footer + self._footer_cipher().sign(footer), self.magic)

    def _shown_metadata(self, column: ColumnEncryptionProperties) -> Shown:
        return "visible"


def _crypto_metadata(column: ColumnEncryptionProperties, path: tuple[str, ...]) -> fmt.ColumnCryptoMetaData:
    if column.key is None:
        return fmt.ColumnCryptoMetaData(ENCRYPTION_WITH_FOOTER_KEY=fmt.EncryptionWithFooterKey())
    return fmt.ColumnCryptoMetaData(
        ENCRYPTION_WITH_COLUMN_KEY=fmt.EncryptionWithColumnKey(
            path_in_schema=list(path), key_metadata=column.key_metadata
        )
    )


def _encoded_crypto_metadata(column: ColumnEncryptionProperties, path: tuple[str, ...]) -> bytes:
    return ENCODED_FOOTER_KEY if column.key is None else fmt.encode(_crypto_metadata(column, path))


def _framed(footer: bytes, magic: bytes) -> bytes:
    if len(footer) > LARGEST_FOOTER:
        raise LimitError(f"a footer of {len(footer)} bytes: no footer can be larger than {LARGEST_FOOTER}")
    return footer + struct.pack("<I", len(footer)) + magic


def closed_columns(
    properties: FileEncryptionProperties, schema_paths: Iterable[tuple[str, ...]]
) -> frozenset[str]:
    """Return a new file's closed top-level columns: some readers can read the footer, but cannot open these columns.

    A leaf column is closed if it has its own key. If the footer is plaintext, a leaf under the footer key is closed too.

    Args:
        properties: the keys.
        schema_paths: all leaf columns' paths.

    Raises:
        SchemaError: there are columns without a key, and the properties refuse them.
    """
    _check_encryption(properties)
    schema_paths = list(schema_paths)
    properties.check_listed(schema_paths)
    treatments = ((path, properties.column(path)) for path in schema_paths)
    return frozenset(
        path[0] for path, column in treatments if column is not None and (properties.plaintext_footer or column.key is not None)
    )


def open_file_encryptor(
    properties: FileEncryptionProperties | None,
    schema_paths: Sequence[tuple[str, ...]],
    file_unique: bytes | None = None,
    name: str | None = None,
) -> FileEncryptor:
    """Return a new file's encryptor.

    Args:
        properties: the keys, or None for a plaintext file.
        schema_paths: all columns' paths, in schema order.
        file_unique: the identifier in all AADs (``aad_file_unique``). None makes a random one. A file that gets more row groups
            keeps its identifier, because AADs in its old row groups contain it.
        name: the new file's path or URL, for audits.

    Raises:
        KeyAccessError: an audit log is mandatory, and failed.
        SchemaError: a key has a column path that the schema does not have, or there are columns without a key and the properties
            refuse them.
        CryptoError: an encrypted column has an ordinal over 32767.
        TypeError: the properties have another class.
    """
    if properties is None:
        return FileEncryptor()
    _check_encryption(properties)
    unknown_paths = properties.column_keys.unknown_paths(schema_paths)
    if unknown_paths:
        raise SchemaError(f"keys for columns that the schema does not have: {', '.join(sorted(unknown_paths))}")
    unknown_paths = properties.plaintext_columns.unknown_paths(schema_paths)
    if unknown_paths:
        raise SchemaError(f"plaintext_columns that the schema does not have: {', '.join(sorted(unknown_paths))}")
    properties.check_listed(schema_paths)
    for path in schema_paths[LARGEST_COLUMN_ORDINAL + 1 :]:
        if properties.column(path) is not None:
            limit = LARGEST_COLUMN_ORDINAL + 1
            raise CryptoError(f"only the first {limit} columns can be encrypted", column=".".join(path))
    _audit_keys(properties, schema_paths, name)
    encryptor_class: type[KeyedFileEncryptor] = EncryptedFooterEncryptor
    if properties.plaintext_footer:
        encryptor_class = PlaintextFooterEncryptor
    elif properties.for_reader == "duckdb":
        encryptor_class = DuckDbFileEncryptor
    return encryptor_class(properties, schema_paths, file_unique)


def _audit_keys(properties: FileEncryptionProperties, schema_paths: Iterable[tuple[str, ...]], name: str | None) -> None:
    """Record which keys a new file gets. A CryptoFactory has recorded the keys that it wrapped, if it knew the file's path."""
    audit = FileAudit.of(properties.audit, "write", name)
    if audit is None:
        return
    is_recorded = is_same_file(properties.audited_file, name)
    footer_use = properties.footer_use or KeyUse("explicit", name_of_key(properties.footer_key_metadata))
    if not (is_recorded and properties.footer_use):
        audit.record(footer_use, None)
    for path in schema_paths:
        column = properties.column(path)
        if column is None or (is_recorded and column.use):
            continue
        own_use = column.use or KeyUse("explicit", name_of_key(column.key_metadata))
        audit.record(KeyUse("footer key", footer_use.key_id) if column.key is None else own_use, ".".join(path))


def _check_encryption(properties: object) -> None:
    if not isinstance(properties, FileEncryptionProperties):
        way = ": call them with the file's path" if type(properties).__name__ == "DatasetEncryptionProperties" else ""
        raise TypeError(f"encryption_properties must be fastpq.FileEncryptionProperties, not {type(properties)}{way}")
