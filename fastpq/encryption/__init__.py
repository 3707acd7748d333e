"""Parquet Modular Encryption (Encryption.md): keys, module ciphers, encryptors and decryptors of files.

The caller's keys and policies are in ``properties``; ``keys`` gets keys from a key service (KMS). ``encryptor`` makes the
encryptor of a new file, ``decryptor`` the decryptor of a stored file. Either makes a ModuleCipher for each column chunk
(``cipher``, ``gcm``, ``variants``), with the AAD of ``modules`` and the AES of ``evp`` and ``backend``.
"""

from typing import TYPE_CHECKING

from fastpq.common.lazy import lazy_names

if TYPE_CHECKING:
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

# Defining module of each public name, imported at the first use of the name.
_MODULE_OF = {
    "AesKey": "fastpq.encryption.evp",
    "AwsKmsClient": "fastpq.encryption.keys",
    "ColumnEncryptionProperties": "fastpq.encryption.properties",
    "CryptoFactory": "fastpq.encryption.keys",
    "DecryptionConfiguration": "fastpq.encryption.keys",
    "EncryptionConfiguration": "fastpq.encryption.keys",
    "FileDecryptionProperties": "fastpq.encryption.properties",
    "FileEncryptionProperties": "fastpq.encryption.properties",
    "Keyring": "fastpq.encryption.keys",
    "KmsClient": "fastpq.encryption.keys",
    "KmsConnectionConfig": "fastpq.encryption.keys",
    "Pkcs11KmsClient": "fastpq.encryption.keys",
    "VaultKmsClient": "fastpq.encryption.keys",
    "aes_backend": "fastpq.encryption.evp",
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
