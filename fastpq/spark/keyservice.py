"""Access to a key service from Spark workers: options without secrets, and one client for each worker process.

Plans, options, event logs and pickles carry names of master keys and of the client's class, never a key or a token. Each Python
worker builds its own client, with credentials from its own environment or files.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from fastpq.encryption.keys import (
    CryptoFactory,
    DecryptionConfiguration,
    EncryptionConfiguration,
    Keyring,
    KmsClient,
    KmsConnectionConfig,
)
from fastpq.encryption.keys.kms import DEFAULT_KEY_ACCESS_TOKEN, client_options
from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.errors import KeyAccessError
from fastpq.spark.refusals import TOKEN_VARIABLE, refuse_key

KEYRING_VARIABLE = "FASTPQ_KEYRING"
KEYRING = "keyring"     # name of the client
PASSPHRASE_VARIABLE = "FASTPQ_KEYRING_PASSPHRASE"
DEFAULT_CACHE_LIFETIME_SECONDS = 600.0

_factories: dict[str, CryptoFactory] = {}       # by the name of the client, whose caches go by the whole connection
_guard = threading.Lock()


@dataclass(frozen=True)
class ServiceOptions:
    """Options of a worker's access to the key service; holds no secret, and can be pickled.

    Attributes:
        client: ``package.module:Name`` of a callable to make a KmsClient from a KmsConnectionConfig, or ``keyring``.
        instance_id, instance_url: as in KmsConnectionConfig.
        configuration: names and texts of the client's own options.
        token_file: path, on each machine, of a file with the access token; None takes the environment variable.
        cache_lifetime_seconds: seconds for which a worker keeps clients and key encryption keys.
        allow_plaintext_files: read plaintext files too; a plaintext file may have been put in the place of an encrypted one.
        allow_ctr: read AES_GCM_CTR_V1 too, although its pages are not authenticated.
        trusted_master_keys: identifiers of the master keys that files may be under; None for all.
    """

    client: str
    instance_id: str = ""
    instance_url: str = ""
    configuration: tuple[tuple[str, str], ...] = ()
    token_file: str | None = None
    cache_lifetime_seconds: float = DEFAULT_CACHE_LIFETIME_SECONDS
    allow_plaintext_files: bool = False
    allow_ctr: bool = False
    trusted_master_keys: tuple[str, ...] | None = None

    @property
    def cache_lifetime(self) -> timedelta:
        return timedelta(seconds=self.cache_lifetime_seconds)

    def check(self) -> None:
        """Refuse a client that this process cannot import, and a keyring or token that this process cannot read.

        Raises:
            KeyAccessError: names the option or the variable, and the mend.
        """
        load_client(self.client)
        connection = self.connection()
        if self.client == KEYRING and not os.access(path := connection.custom_kms_conf["path"], os.R_OK):
            raise KeyAccessError(
                f"the keyring {path} cannot be read by a Python worker of Spark: kms.conf.path, or {KEYRING_VARIABLE} in the "
                "environment of the executors, is a path on each machine"
            )

    def factory(self) -> CryptoFactory:
        """The CryptoFactory of this process; it caches clients and keys for cache_lifetime_seconds."""
        with _guard:
            if self.client not in _factories:
                _factories[self.client] = CryptoFactory(load_client(self.client))
            return _factories[self.client]

    def connection(self) -> KmsConnectionConfig:
        """The connection to the key service, with the access token of this machine."""
        if self.client == KEYRING:
            return _keyring_connection(dict(self.configuration))
        return KmsConnectionConfig(
            self.instance_id,
            kms_instance_url=self.instance_url,
            key_access_token=_token(self.token_file),
            custom_kms_conf=dict(self.configuration),
        )

    def decryption(self, path: str) -> FileDecryptionProperties:
        """Decryption properties of one file."""
        return self.factory().file_decryption_properties(
            self.connection(),
            DecryptionConfiguration(cache_lifetime=self.cache_lifetime, trusted_master_keys=self.trusted_master_keys),
            path,
            allow_plaintext_files=self.allow_plaintext_files,
            allowed_algorithms=("AES_GCM_V1", "AES_GCM_CTR_V1") if self.allow_ctr else ("AES_GCM_V1",),
        )

    def encryption(self, configuration: Encryption, path: str) -> FileEncryptionProperties:
        """Encryption properties of one new file, with data keys of its own."""
        return self.factory().file_encryption_properties(
            self.connection(), configuration.resolved(self.cache_lifetime), path
        )


@dataclass(frozen=True)
class Encryption:
    """Columns to encrypt and their master keys, by name; terms are those of EncryptionConfiguration.

    Attributes:
        footer_key: identifier of the footer's master key.
        column_keys: identifiers of master keys with the paths of their columns.
        options: the other fields of EncryptionConfiguration.
    """

    footer_key: str
    column_keys: tuple[tuple[str, tuple[str, ...]], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for identifier in (self.footer_key, *(name for name, _ in self.column_keys)):
            refuse_key(identifier)

    def resolved(self, cache_lifetime: timedelta) -> EncryptionConfiguration:
        return EncryptionConfiguration(
            self.footer_key, column_keys=dict(self.column_keys), cache_lifetime=cache_lifetime, **self.options
        )


def load_client(name: str) -> Callable[[KmsConnectionConfig], KmsClient]:
    """Import the client class or function named ``package.module:Name`` (or ``package.module.Name``).

    Raises:
        KeyAccessError: the import fails on this machine, or the object is not callable.
    """
    if name == KEYRING:
        return keyring
    module, _, attribute = name.partition(":") if ":" in name else name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise KeyAccessError(
            f"the KMS client {name!r} (option kms.client) cannot be imported on this machine: {type(error).__name__}. Python "
            "workers of Spark import it anew: install its module on each machine, or give it to spark-submit --py-files; what a "
            "script or a notebook defines itself is in no module"
        ) from error
    if not callable(found):
        raise KeyAccessError(f"the KMS client {name!r} cannot be called with a KmsConnectionConfig")
    client: Callable[[KmsConnectionConfig], KmsClient] = found
    return client


def keyring(config: KmsConnectionConfig) -> Keyring:
    """The Keyring client ``keyring``: the file at the option ``path``, with the access token for passphrase."""
    return Keyring(config.custom_kms_conf["path"], config.key_access_token)


def _keyring_connection(configuration: Mapping[str, str]) -> KmsConnectionConfig:
    """The connection to the keyring at the option ``kms.conf.path`` or $FASTPQ_KEYRING.

    The passphrase is $FASTPQ_KEYRING_PASSPHRASE, or the first line of the file at ``kms.conf.passphraseFile``. Path and
    passphrase are read at each connection: both name the cached clients and keys.
    """
    known = {name.lower(): name for name in ("path", "passphraseFile")}      # DataFrameWriter makes names lower case
    named = {known.get(name.lower(), name): value for name, value in configuration.items()}
    custom = client_options(KmsConnectionConfig(custom_kms_conf=named), *known.values())
    path = custom.get("path") or os.environ.get(KEYRING_VARIABLE)
    if not path:
        raise KeyAccessError(
            f"where is the keyring? Give the option kms.conf.path, or set {KEYRING_VARIABLE} in the environment of the "
            f"executors: before the session starts, or by spark.executorEnv.{KEYRING_VARIABLE}"
        )
    file = custom.get("passphraseFile")
    passphrase = _first_line(file) if file else os.environ.get(PASSPHRASE_VARIABLE)
    if passphrase is None:
        raise KeyAccessError(
            f"the keyring's passphrase is not in {PASSPHRASE_VARIABLE}, nor kms.conf.passphraseFile given. Set the variable "
            "before the session starts, in the environment of the executors"
        )
    return KmsConnectionConfig(key_access_token=passphrase, custom_kms_conf={"path": path})


def _token(file: str | None) -> str:
    if file is not None:
        return _first_line(file)
    return os.environ.get(TOKEN_VARIABLE, DEFAULT_KEY_ACCESS_TOKEN)


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.readline().rstrip("\n")
    except OSError as error:
        raise KeyAccessError(f"a secret cannot be read from {path}: {error.strerror}") from error
