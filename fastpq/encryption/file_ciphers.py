"""Decryptor of a file, chosen by the caller's properties and the encryption algorithm in the file.

Plaintext files have a decryptor too, with the null cipher (Encryption.md, 5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastpq import format as fmt
from fastpq.encryption.decryptor import FileDecryptor, column_name
from fastpq.errors import CryptoError, FormatError, KeyAccessError

if TYPE_CHECKING:
    from fastpq.encryption.properties import FileDecryptionProperties

__all__ = [
    "FileDecryptor",
    "column_name",
    "open_file_decryptor",
    "open_signed_footer",
]

SIGNATURE_SIZE = 28     # bytes of nonce and tag (Encryption.md, 5.5)
ALL_BUT_SIGNING = (1, 2, 3, 4, 5, 6, 7)     # ids of FileMetaData's fields before encryption_algorithm


def open_file_decryptor(
    properties: FileDecryptionProperties | None,
    *,
    algorithm: fmt.EncryptionAlgorithm | None,
    key_metadata: bytes | None,
    encrypted_footer: bool,
) -> FileDecryptor:
    """The decryptor of a stored file, for a reader's keys.

    Args:
        properties: the keys, if any.
        algorithm: from FileCryptoMetaData for an encrypted footer, else from FileMetaData; None for a plaintext file.
        key_metadata: key metadata of the footer key, from the same struct.
        encrypted_footer: whether the file ends in ``PARE``.

    Raises:
        KeyAccessError: the footer is encrypted, and there are no properties.
        CryptoError: a policy of the properties refuses the file, or its AAD prefix differs from the supplied one.
        UnsupportedError: an algorithm unknown to fastpq, or DuckDB's dialect.
        TypeError: properties of another class.
    """
    if properties is None:
        if encrypted_footer:
            raise KeyAccessError("the footer is encrypted: reading needs decryption_properties", module="FOOTER")
        return FileDecryptor()
    from fastpq.encryption.keyed_decryptor import DuckDbFileDecryptor, KeyedFileDecryptor
    from fastpq.encryption.properties import FileDecryptionProperties

    if not isinstance(properties, FileDecryptionProperties):
        raise TypeError(f"decryption_properties are FileDecryptionProperties, not {type(properties).__name__}")
    if algorithm is None:
        if encrypted_footer:
            raise FormatError("an encrypted footer without an encryption algorithm")
        if not properties.allow_plaintext_files:
            raise CryptoError(
                "the file is not encrypted, though there are decryption_properties for it: it may have been replaced "
                "(allow_plaintext_files=True reads it all the same)"
            )
        return FileDecryptor()
    if encrypted_footer and properties.allow_duckdb_dialect and DuckDbFileDecryptor.wrote(algorithm):
        return DuckDbFileDecryptor(properties, algorithm, key_metadata, encrypted_footer)
    return KeyedFileDecryptor(properties, algorithm, key_metadata, encrypted_footer)


def open_signed_footer(
    properties: FileDecryptionProperties | None, footer: memoryview
) -> tuple[FileDecryptor, int]:
    """The decryptor of a file with a plaintext footer, after verification of the footer's signature, if signed.

    Before verification, only the algorithm and the key metadata of the footer are decoded.

    Args:
        properties: the keys, if any.
        footer: the serialized FileMetaData and all bytes up to the footer's length.

    Returns:
        The decryptor, and the size of FileMetaData.

    Raises:
        FormatError: no FileMetaData; or a signature cut off, or followed by other bytes.
        TagVerificationError: footer or signature were altered, or key or AAD prefix are wrong.
        KeyAccessError: there is no key to verify the footer with.
        CryptoError, UnsupportedError: as for open_file_decryptor.
    """
    if properties is None:
        return FileDecryptor(), len(footer)
    names, _, size = fmt.decode_partly(fmt.FileMetaData, footer, 0, ALL_BUT_SIGNING)
    decryptor = open_file_decryptor(
        properties,
        algorithm=names.encryption_algorithm,
        key_metadata=names.footer_signing_key_metadata,
        encrypted_footer=False,
    )
    if names.encryption_algorithm is None:
        return decryptor, size
    signed = len(footer) - size
    if signed != SIGNATURE_SIZE and (signed or properties.verify_footer_signature):
        raise FormatError(f"{signed} bytes where the footer's signature of {SIGNATURE_SIZE} should be", offset=size)
    if properties.verify_footer_signature:
        decryptor.verify_footer(footer[:size], footer[size:])
    return decryptor, size
