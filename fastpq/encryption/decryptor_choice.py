"""Choice of a stored file's decryptor, by the caller's properties and the encryption algorithm in the file.

A plaintext file has a decryptor too, which uses the null cipher.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from fastpq import format as fmt
from fastpq.encryption.decryptor import FileDecryptor
from fastpq.errors import CryptoError, FormatError, KeyAccessError

if TYPE_CHECKING:
    from fastpq.encryption.keyed_decryptor import DuckDbFileDecryptor, KeyedFileDecryptor
    from fastpq.encryption.properties import FileDecryptionProperties

SIGNATURE_SIZE = 28     # total size of nonce and tag in bytes (Encryption.md, 5.5)
ALL_BUT_SIGNING = (1, 2, 3, 4, 5, 6, 7)     # ids of FileMetaData's fields before encryption_algorithm


def open_file_decryptor(
    properties: FileDecryptionProperties | None,
    *,
    algorithm: fmt.EncryptionAlgorithm | None,
    key_metadata: bytes | None,
    encrypted_footer: bool,
    name: str | None = None,
) -> FileDecryptor:
    """Return a stored file's decryptor for a reader's keys.

    Args:
        properties: the keys, if any.
        algorithm: from FileCryptoMetaData if the footer is encrypted, else from FileMetaData. None for a plaintext file.
        key_metadata: the footer key's key metadata, from the same struct.
        encrypted_footer: whether the file ends in ``PARE``.
        name: the file's path or URL, for audits.

    Raises:
        KeyAccessError: the footer is encrypted, and there are no properties.
        CryptoError: a policy in the properties refuses the file, or the file's and the reader's AAD prefixes do not fit together.
        UnsupportedError: fastpq does not know the algorithm, or the file is in DuckDB's dialect.
        TypeError: the properties have another class.
    """
    if properties is None:
        if encrypted_footer:
            raise KeyAccessError("the footer is encrypted: reading needs decryption_properties", module="FOOTER")
        return FileDecryptor()
    duckdb_class, keyed_class, properties_class = _keyed_classes()
    if not isinstance(properties, properties_class):
        raise TypeError(
            f"decryption_properties must be fastpq.FileDecryptionProperties, not {type(properties)}{_way_from(properties)}")
    if algorithm is None:
        if encrypted_footer:
            raise FormatError("an encrypted footer without an encryption algorithm")
        if not properties.allow_plaintext_files:
            raise CryptoError(
                "the file is not encrypted, although there are decryption_properties for it: it may have been replaced "
                "(allow_plaintext_files=True reads it anyway)"
            )
        return FileDecryptor()
    if encrypted_footer and properties.allow_duckdb_dialect and duckdb_class.is_own_algorithm(algorithm):
        return duckdb_class(properties, algorithm, key_metadata, encrypted_footer, name)
    return keyed_class(properties, algorithm, key_metadata, encrypted_footer, name)


@cache
def _keyed_classes() -> tuple[type[DuckDbFileDecryptor], type[KeyedFileDecryptor], type[FileDecryptionProperties]]:
    """Return the classes that files without properties do not need. They are imported at the first call."""
    from fastpq.encryption.keyed_decryptor import DuckDbFileDecryptor, KeyedFileDecryptor
    from fastpq.encryption.properties import FileDecryptionProperties

    return DuckDbFileDecryptor, KeyedFileDecryptor, FileDecryptionProperties


def _way_from(properties: object) -> str:
    """Return how keys of a dataset become keys of one file, for an error. Empty for other objects."""
    return ": call them with the file's path" if type(properties).__name__ == "DatasetDecryptionProperties" else ""


def open_encrypted_footer(
    properties: FileDecryptionProperties | None, footer: memoryview, name: str | None = None
) -> tuple[FileDecryptor, memoryview]:
    """Open an encrypted footer. Return the file's decryptor and the serialized FileMetaData.

    Args:
        properties: the keys, if any.
        footer: FileCryptoMetaData and the footer module.
        name: the file's path or URL, for audits.

    Raises:
        FormatError: there is no FileCryptoMetaData.
        TagVerificationError: the module was altered, or the key or the AAD prefix is wrong.
        KeyAccessError, CryptoError, UnsupportedError: as in open_file_decryptor.
    """
    crypto, size = fmt.decode(fmt.FileCryptoMetaData, footer)
    decryptor = open_file_decryptor(
        properties,
        algorithm=crypto.encryption_algorithm,
        key_metadata=crypto.key_metadata,
        encrypted_footer=True,
        name=name,
    )
    return decryptor, memoryview(decryptor.open_footer(footer[size:]))


def open_signed_footer(
    properties: FileDecryptionProperties | None, footer: memoryview, name: str | None = None
) -> tuple[FileDecryptor, int]:
    """Verify a plaintext footer, if it is signed. Return the file's decryptor, and the size of FileMetaData in bytes.

    Before verification, only the algorithm and the footer's key metadata are decoded.

    Args:
        properties: the keys, if any. Without properties nothing is verified.
        footer: the serialized FileMetaData, and all bytes after it up to the footer's end.

    Raises:
        FormatError: there is no FileMetaData, or the signature is cut off or followed by other bytes.
        TagVerificationError: the footer or the signature was altered, or the key or the AAD prefix is wrong.
        KeyAccessError: there is no key to verify the footer with.
        CryptoError, UnsupportedError: as in open_file_decryptor.
    """
    if properties is None:
        return FileDecryptor(), len(footer)
    signing, _, size = fmt.decode_partly(fmt.FileMetaData, footer, 0, ALL_BUT_SIGNING)
    decryptor = open_file_decryptor(
        properties,
        algorithm=signing.encryption_algorithm,
        key_metadata=signing.footer_signing_key_metadata,
        encrypted_footer=False,
        name=name,
    )
    if signing.encryption_algorithm is None:
        return decryptor, size
    signature_size = len(footer) - size
    if signature_size != SIGNATURE_SIZE and (signature_size or properties.verify_footer_signature):
        raise FormatError(f"{signature_size} bytes where the footer's signature has {SIGNATURE_SIZE}", offset=size)
    if properties.verify_footer_signature:
        decryptor.verify_footer(footer[:size], footer[size:])
    return decryptor, size
