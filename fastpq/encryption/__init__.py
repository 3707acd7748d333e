"""Parquet Modular Encryption (Encryption.md)."""

from fastpq.encryption.evp import AesKey, aes_backend
from fastpq.encryption.keys import (
    AwsKmsClient,
    CryptoFactory,
    DecryptionConfiguration,
    EncryptionConfiguration,
    Keyring,
    KmsClient,
    KmsConnectionConfig,
    Pkcs11KmsClient,
    VaultKmsClient,
)
from fastpq.encryption.properties import (
    ColumnEncryptionProperties,
    FileDecryptionProperties,
    FileEncryptionProperties,
)

__all__ = [
    "AesKey",
    "AwsKmsClient",
    "ColumnEncryptionProperties",
    "CryptoFactory",
    "DecryptionConfiguration",
    "EncryptionConfiguration",
    "FileDecryptionProperties",
    "FileEncryptionProperties",
    "Keyring",
    "KmsClient",
    "KmsConnectionConfig",
    "Pkcs11KmsClient",
    "VaultKmsClient",
    "aes_backend",
]
