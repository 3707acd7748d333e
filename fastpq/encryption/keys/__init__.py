"""Keys from a key service (KMS): service clients, CryptoFactory, and key material in parquet-java's and Arrow's format.

The service's master keys wrap a file's data keys, directly or through key encryption keys (``wrapping``). The
module ``kms`` defines the client interface, and each client class has its own module. Wrapped keys are stored in the file or in a
second file next to it (``material``, ``store``).
"""

from fastpq.encryption.keys.aws import AwsKmsClient
from fastpq.encryption.keys.azure_vault import AzureKmsClient
from fastpq.encryption.keys.configuration import DecryptionConfiguration, EncryptionConfiguration
from fastpq.encryption.keys.factory import CryptoFactory
from fastpq.encryption.keys.google_kms import GoogleKmsClient
from fastpq.encryption.keys.keyring import Keyring
from fastpq.encryption.keys.kms import KmsClient, KmsConnectionConfig, client_options, read_secret
from fastpq.encryption.keys.pkcs11 import Pkcs11KmsClient
from fastpq.encryption.keys.store import material_name
from fastpq.encryption.keys.vault import VaultKmsClient
from fastpq.encryption.service_calls import DEFAULT_ATTEMPTS, DEFAULT_TIMEOUT

__all__ = [
    "DEFAULT_ATTEMPTS",
    "DEFAULT_TIMEOUT",
    "AwsKmsClient",
    "AzureKmsClient",
    "CryptoFactory",
    "DecryptionConfiguration",
    "EncryptionConfiguration",
    "GoogleKmsClient",
    "Keyring",
    "KmsClient",
    "KmsConnectionConfig",
    "Pkcs11KmsClient",
    "VaultKmsClient",
    "client_options",
    "material_name",
    "read_secret",
]
