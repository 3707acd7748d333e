"""Parquet Modular Encryption (Encryption.md): keys, ciphers for modules, encryptors and decryptors for files.

The module ``properties`` holds the caller's keys and policies, and ``keys`` gets keys from a key service (KMS). ``encryptor``
makes a new file's encryptor, and ``decryptor_choice`` makes a stored file's decryptor. Both make a ModuleCipher for each column
chunk (``cipher``, ``gcm``, ``variants``). The ModuleCipher uses the AADs from ``modules`` and AES from ``evp`` and ``backend``.
"""

from typing import TYPE_CHECKING

from fastpq.common.lazy import lazy_names

if TYPE_CHECKING:
    from fastpq.encryption.audit import AuditLog, AuditRecord
    from fastpq.encryption.dataset_properties import DatasetDecryptionProperties, DatasetEncryptionProperties
    from fastpq.encryption.evp import AesKey, aes_backend
    from fastpq.encryption.keys import (
        AwsKmsClient,
        AzureKmsClient,
        CryptoFactory,
        DecryptionConfiguration,
        EncryptionConfiguration,
        GoogleKmsClient,
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
    "AuditLog",
    "AuditRecord",
    "AwsKmsClient",
    "AzureKmsClient",
    "ColumnEncryptionProperties",
    "CryptoFactory",
    "DatasetDecryptionProperties",
    "DatasetEncryptionProperties",
    "DecryptionConfiguration",
    "EncryptionConfiguration",
    "FileDecryptionProperties",
    "FileEncryptionProperties",
    "GoogleKmsClient",
    "Keyring",
    "KmsClient",
    "KmsConnectionConfig",
    "Pkcs11KmsClient",
    "VaultKmsClient",
    "aes_backend",
]

# The names that each module defines. The module is imported when one of them is first used.
_NAMES_OF = {
    "fastpq.encryption.audit": ("AuditLog", "AuditRecord"),
    "fastpq.encryption.dataset_properties": ("DatasetDecryptionProperties", "DatasetEncryptionProperties"),
    "fastpq.encryption.evp": ("AesKey", "aes_backend"),
    "fastpq.encryption.keys": (
        "AwsKmsClient", "AzureKmsClient", "CryptoFactory", "DecryptionConfiguration", "EncryptionConfiguration",
        "GoogleKmsClient", "Keyring", "KmsClient", "KmsConnectionConfig", "Pkcs11KmsClient", "VaultKmsClient",
    ),
    "fastpq.encryption.properties": ("ColumnEncryptionProperties", "FileDecryptionProperties", "FileEncryptionProperties"),
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _NAMES_OF)
