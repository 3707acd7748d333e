"""Parquet Modular Encryption (Encryption.md)."""

from fastpq.encryption.evp import AesKey, aes_backend
from fastpq.encryption.properties import (
    ColumnEncryptionProperties,
    FileDecryptionProperties,
    FileEncryptionProperties,
)

__all__ = [
    "AesKey",
    "ColumnEncryptionProperties",
    "FileDecryptionProperties",
    "FileEncryptionProperties",
    "aes_backend",
]
