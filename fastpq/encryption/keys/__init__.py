"""Keys from a key service (KMS): clients of services, CryptoFactory, and key material in the format of parquet-java and Arrow.

A file's data keys are wrapped by master keys of the service (``kms``, and one module for each kind of client), directly or
through key encryption keys (``wrapping``, ``unwrapping``). Wrapped keys are stored in the file or beside (``material``,
``store``).
"""

from fastpq.encryption.keys.aws import AwsKmsClient
from fastpq.encryption.keys.configuration import DecryptionConfiguration, EncryptionConfiguration
from fastpq.encryption.keys.factory import CryptoFactory
from fastpq.encryption.keys.keyring import Keyring
from fastpq.encryption.keys.kms import KmsClient, KmsConnectionConfig
from fastpq.encryption.keys.pkcs11 import Pkcs11KmsClient
from fastpq.encryption.keys.vault import VaultKmsClient

__all__ = [
    "AwsKmsClient",
    "CryptoFactory",
    "DecryptionConfiguration",
    "EncryptionConfiguration",
    "Keyring",
    "KmsClient",
    "KmsConnectionConfig",
    "Pkcs11KmsClient",
    "VaultKmsClient",
]
