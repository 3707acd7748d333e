"""Keys in a key service (KMS): clients, the CryptoFactory, and key material as parquet-java and Arrow have it."""

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
