"""Who encrypts what in a file: its decryptor or encryptor, from the caller's properties and what the file says.

A plaintext file goes the same road, with the null cipher (Encryption.md, 5).
"""

from __future__ import annotations

from collections.abc import Sequence

from fastpq import format as fmt
from fastpq.encryption.decryptor import FileDecryptor, KeyedFileDecryptor
from fastpq.encryption.encryptor import EncryptedFooterEncryptor, FileEncryptor
from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.errors import CryptoError, FormatError, KeyAccessError, SchemaError

__all__ = ["FileDecryptor", "FileEncryptor", "open_file_decryptor", "open_file_encryptor"]

LARGEST_COLUMN_ORDINAL = 32767


def open_file_decryptor(
    properties: FileDecryptionProperties | None,
    *,
    algorithm: fmt.EncryptionAlgorithm | None,
    key_metadata: bytes | None,
    encrypted_footer: bool,
) -> FileDecryptor:
    """The decryptor of a file.

    Args:
        properties: the keys, if any.
        algorithm: of FileCryptoMetaData for an encrypted footer, else of FileMetaData; None for a plaintext file.
        key_metadata: that of the footer key, from the same place.
        encrypted_footer: the file ends in ``PARE``.

    Raises:
        KeyAccessError: the footer is encrypted, and there are no properties.
        CryptoError: properties for a file that is not encrypted, or whose AAD prefix is not the one supplied.
        UnsupportedError: an algorithm that fastpq does not have.
    """
    if properties is None:
        if encrypted_footer:
            raise KeyAccessError("the footer is encrypted: reading needs decryption_properties", module="FOOTER")
        return FileDecryptor()
    if algorithm is None:
        if encrypted_footer:
            raise FormatError("an encrypted footer without an encryption algorithm")
        if not properties.allow_plaintext_files:
            raise CryptoError(
                "the file is not encrypted, though there are decryption_properties for it: it may have been replaced "
                "(allow_plaintext_files=True reads it all the same)"
            )
        return FileDecryptor()
    return KeyedFileDecryptor(properties, algorithm, key_metadata, encrypted_footer)


def open_file_encryptor(
    properties: FileEncryptionProperties | None, schema_paths: Sequence[tuple[str, ...]]
) -> FileEncryptor:
    """The encryptor of a new file.

    Args:
        properties: the keys; None for a plaintext file.
        schema_paths: the paths of all columns, in the order of the schema.

    Raises:
        SchemaError: a key for a column path that the schema does not have.
        CryptoError: an encrypted column whose ordinal is over 32767.
    """
    if properties is None:
        return FileEncryptor()
    unknown = properties.column_keys.unknown(schema_paths)
    if unknown:
        raise SchemaError(f"keys for columns that the schema does not have: {', '.join(sorted(unknown))}")
    for path in schema_paths[LARGEST_COLUMN_ORDINAL + 1 :]:
        if properties.column(path) is not None:
            limit = LARGEST_COLUMN_ORDINAL + 1
            raise CryptoError(f"only the first {limit} columns can be encrypted", column=".".join(path))
    return EncryptedFooterEncryptor(properties, schema_paths)
