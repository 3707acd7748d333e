"""Encryption and decryption properties for the Parquet files of an Iceberg table."""

from __future__ import annotations

from typing import NamedTuple

from fastpq.catalogs.iceberg.key_metadata import StandardKeyMetadata
from fastpq.encryption.audit import AuditLog
from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.encryption.tracebacks import hides_arguments
from fastpq.io.sink import BytesLike


class IcebergFileProperties(NamedTuple):
    """Properties for one Parquet file of an Iceberg table.

    Attributes:
        encryption: how the file is written.
        decryption: how the file is read.
    """

    encryption: FileEncryptionProperties
    decryption: FileDecryptionProperties


@hides_arguments
def file_properties(key_metadata: StandardKeyMetadata | BytesLike, *, audit: AuditLog | None = None) -> IcebergFileProperties:
    """Return the properties with which a data file or a delete file in Parquet is written and read.

    Iceberg encrypts footer and columns with one key, by AES_GCM_V1. The file does not store its AAD prefix: a reader with this
    prefix refuses any other file in its place, and a plaintext file too.

    Args:
        key_metadata: the file's key metadata, or their bytes, such as ``DataFile.key_metadata`` in PyIceberg.
        audit: log that records which keys files get, and which keys open files.

    Raises:
        FormatError, UnsupportedError, CryptoError: the bytes are not key metadata.
    """
    metadata = as_key_metadata(key_metadata)
    key, prefix = metadata.encryption_key, metadata.aad_prefix
    return IcebergFileProperties(
        FileEncryptionProperties(key, aad_prefix=prefix or None, store_aad_prefix=not prefix, audit=audit),
        FileDecryptionProperties(key, aad_prefix=prefix or None, audit=audit),
    )


@hides_arguments
def as_key_metadata(key_metadata: StandardKeyMetadata | BytesLike) -> StandardKeyMetadata:
    """Return key metadata as they are, or decode their bytes. Errors are those of ``StandardKeyMetadata.from_bytes``."""
    if isinstance(key_metadata, StandardKeyMetadata):
        return key_metadata
    if isinstance(key_metadata, bytes | bytearray | memoryview):
        return StandardKeyMetadata.from_bytes(key_metadata)
    raise TypeError(f"key metadata are bytes or StandardKeyMetadata, not {type(key_metadata).__name__}")
