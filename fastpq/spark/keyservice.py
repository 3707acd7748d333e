"""Key service access from Spark workers: options without secrets, and one client for each worker process.

Plans, options, event logs and pickles hold the names of master keys and of the client's class, but never a key or a token. Each
Python worker builds its own client, with credentials from its own environment or files.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import os
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field
from datetime import timedelta
from typing import Any

from fastpq.spark.core import (
    DEFAULT_ATTEMPTS,
    DEFAULT_TIMEOUT,
    AuditLog,
    CryptoFactory,
    DatasetDecryptionProperties,
    DecryptionConfiguration,
    EncryptionConfiguration,
    FileDecryptionProperties,
    FileEncryptionProperties,
    KeyAccessError,
    Keyring,
    KmsClient,
    KmsConnectionConfig,
    SchemaError,
    client_options,
    documented,
    option,
    read_secret,
)
from fastpq.spark.refusals import TOKEN_VARIABLE, looks_like_key, refuse_key

KEYRING_VARIABLE = "FASTPQ_KEYRING"
KEYRING = "keyring"     # the client's name in options
PASSPHRASE_VARIABLE = "FASTPQ_KEYRING_PASSPHRASE"
DEFAULT_CACHE_LIFETIME_SECONDS = 600.0

# by the names of client and audit function, and by the limits for calls. The caches inside distinguish connections
_factories: dict[tuple[object, ...], CryptoFactory] = {}
_guard = threading.Lock()
_calls = 0      # for wrapping and unwrapping keys
_task_name: str | None = None       # the task's name in the JVM's worker


@documented
@dataclass(frozen=True)
class ServiceOptions:
    """Options for a worker's access to the key service. They hold no secret, and can be pickled.

    ``configuration`` has the names and texts of the client's own options (``kms.conf.NAME``). ``allow_ctr`` allows reads of
    AES_GCM_CTR_V1, whose pages are not authenticated. It follows from the option ``parquet.encryption.algorithm``.
    """

    client: str = option(
        MISSING,
        'Client of the key service: ``"package.module:Class"`` of a KmsClient, or ``"keyring"`` for the keyring at '
        "``$FASTPQ_KEYRING``. Without it only plaintext files are read.",
        level="spark",
        spark="kms.client",
    )
    instance_id: str = option(
        "",
        "Instance of the key service. Without it the client takes its own default, and files that name an instance are refused.",
        level="spark",
        spark="kms.instance.id",
    )
    instance_url: str = option(
        "",
        "URL of the key service. Without it the client takes its own default, and files that name a URL other than ``DEFAULT`` "
        "are refused.",
        level="spark",
        spark="kms.instance.url",
    )
    configuration: tuple[tuple[str, str], ...] = ()
    token_file: str | None = option(
        None,
        "Path of a file with the access token, the same on each machine. Without it the token is that of the environment "
        "variable FASTPQ_KEY_ACCESS_TOKEN.",
        level="spark",
        spark="kms.token.file",
    )
    cache_lifetime_seconds: float = option(
        DEFAULT_CACHE_LIFETIME_SECONDS,
        "How long a worker keeps clients and key encryption keys.",
        unit="seconds",
        level="spark",
        spark="cache.lifetime.seconds",
    )
    timeout: float = option(
        DEFAULT_TIMEOUT,
        "Longest time for all calls of the key service for one file, with all their attempts.",
        unit="seconds",
        level="spark",
        spark="kms.timeout",
    )
    attempts: int = option(
        DEFAULT_ATTEMPTS,
        "Largest number of attempts if the key service does not answer, with growing pauses.",
        level="spark",
        spark="kms.attempts",
    )
    allow_plaintext_files: bool = option(
        False,
        "Read plaintext files too, although there is a key service. Such a file may stand in the place of an encrypted one.",
        level="spark",
    )
    allow_ctr: bool = False
    trusted_master_keys: tuple[str, ...] | None = option(
        None,
        "Names of the master keys that files may use, separated by commas. Without it files may use all.",
        level="spark",
        spark="kms.trusted.keys",
    )

    table_id: str | None = option(
        None,
        "Identifier of the table, the same for all its writers and readers. Each new file is bound to the table and to its own "
        "name, and files that are not, or were exchanged, are refused.",
        level="spark",
    )
    audit: str | None = option(
        None,
        'Function that gets a record of each use of a key, in each worker: ``"package.module:function"`` of a function of an '
        "``AuditRecord``.",
        level="spark",
        spark="kms.audit",
    )
    audit_is_mandatory: bool = option(
        False, "Refuse a key if the function of ``kms.audit`` fails.", level="spark", spark="kms.audit.mandatory"
    )
    audit_hash_key: str | None = option(
        None,
        "Where each worker finds the secret for the hash chain of its records, never the secret itself: ``env:VARIABLE`` for "
        'base64 in an environment variable, or ``"package.module:function"`` of a function that returns 16 bytes or more.',
        level="spark",
        spark="kms.audit.hash.key",
    )

    @property
    def cache_lifetime(self) -> timedelta:
        return timedelta(seconds=self.cache_lifetime_seconds)

    def check(self) -> None:
        """Refuse a client that this process cannot import, and a keyring or token that this process cannot read.

        Raises:
            KeyAccessError: the message names the option or the variable, and says what to do.
        """
        load_client(self.client)
        self._audit_log()
        connection = self.connection()
        if self.client == KEYRING and not os.access(path := connection.custom_kms_conf["path"], os.R_OK):
            raise KeyAccessError(
                f"the keyring {path} cannot be read by a Python worker of Spark: kms.conf.path, or {KEYRING_VARIABLE} in the "
                "environment of the executors, is a path on each machine"
            )

    def factory(self) -> CryptoFactory:
        """Return this process's CryptoFactory. It caches clients and keys for cache_lifetime_seconds."""
        chain = None if self.audit_hash_key is None else (self.audit_hash_key, os.getpid())     # a fork has a chain of its own
        name = (self.client, self.audit, self.audit_is_mandatory, self.timeout, self.attempts, chain)
        with _guard:
            if name not in _factories:
                client = _counting(load_client(self.client))
                _factories[name] = CryptoFactory(
                    client, timeout=self.timeout, attempts=self.attempts, audit=self._audit_log()
                )
            return _factories[name]

    def _audit_log(self) -> AuditLog | None:
        """Return a new audit log, or None without ``kms.audit``.

        Raises:
            SchemaError: there is a hash key, but no function for the records.
            KeyAccessError: the function or the hash key is not there on this machine, or the hash key is malformed.
        """
        if self.audit is None:
            if self.audit_hash_key is not None:
                raise SchemaError("the option kms.audit.hash.key needs kms.audit, the function that gets the records")
            return None
        write = _load(self.audit, "the audit function", "kms.audit")
        if self.audit_hash_key is None:
            return AuditLog(write, mandatory=self.audit_is_mandatory, task=_present_task)
        try:
            return AuditLog(
                write, mandatory=self.audit_is_mandatory, hash_key=_hash_key(self.audit_hash_key), task=_present_task)
        except (TypeError, ValueError) as error:
            raise KeyAccessError(f"the secret that kms.audit.hash.key names is malformed: {error}") from None

    def connection(self) -> KmsConnectionConfig:
        """Return the connection to the key service, with this machine's access token."""
        if self.client == KEYRING:
            return _keyring_connection(dict(self.configuration))
        return KmsConnectionConfig(
            self.instance_id,
            kms_instance_url=self.instance_url,
            key_access_token=_token(self.token_file),
            custom_kms_conf=dict(self.configuration),
        )

    def decryption(self, path: str | None, name: str | None = None) -> FileDecryptionProperties:
        """Return the decryption properties for one file.

        Args:
            path: the file's path, by which key material beside it is found. None if the file is not local.
            name: the file's path or URL, if ``path`` is None.
        """
        return self.factory().file_decryption_properties(
            self.connection(),
            DecryptionConfiguration(cache_lifetime=self.cache_lifetime, trusted_master_keys=self.trusted_master_keys),
            path,
            aad_prefix=self._aad_prefix(name or path),
            allow_plaintext_files=self.allow_plaintext_files,
            allowed_algorithms=("AES_GCM_V1", "AES_GCM_CTR_V1") if self.allow_ctr else ("AES_GCM_V1",),
        )

    def encryption(self, configuration: Encryption, path: str | None, name: str | None = None) -> FileEncryptionProperties:
        """Return the encryption properties for one new file, which gets its own data keys.

        Args:
            configuration: columns to encrypt and their master keys.
            path: path beside which key material is stored, if it is not in the file.
            name: a path or URL with the name that the file has after the commit. None if it is the name in ``path``.
        """
        return self.factory().file_encryption_properties(
            self.connection(), configuration.resolved(self.cache_lifetime), path, aad_prefix=self._aad_prefix(name or path)
        )

    def _aad_prefix(self, path: str | None) -> bytes | None:
        """Return the AAD prefix that binds a file to its table and its name. None without ``table_id``."""
        if self.table_id is None:
            return None
        if path is None:
            raise KeyAccessError("the option tableId needs the name of each file")
        binding = DatasetDecryptionProperties(FileDecryptionProperties(), table_id=self.table_id)
        return binding.aad_prefix(os.path.basename(path))


class _CountedClient(KmsClient):
    """A key service client whose calls are counted."""

    def __init__(self, client: KmsClient) -> None:
        self.wrapped_client = client
        self.is_local = getattr(client, "is_local", False)

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str | bytes:
        _count_call()
        return self.wrapped_client.wrap_key(key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes | bytearray:
        _count_call()
        return self.wrapped_client.unwrap_key(wrapped_key, master_key_identifier)


def _counting(make_client: Callable[[KmsConnectionConfig], KmsClient]) -> Callable[[KmsConnectionConfig], KmsClient]:
    def make(connection: KmsConnectionConfig) -> Any:
        client: Any = make_client(connection)
        return _CountedClient(client) if isinstance(client, KmsClient) else client      # CryptoFactory refuses another object

    return make


def _count_call() -> None:
    global _calls
    with _guard:
        _calls += 1


def calls_to_services() -> int:
    """Return how often this process has asked key services to wrap or unwrap a key."""
    return _calls


@dataclass(frozen=True)
class Encryption:
    """Names of the columns to encrypt and of their master keys. The terms are those in EncryptionConfiguration.

    Attributes:
        footer_key: identifier of the footer's master key.
        column_keys: master key identifiers, each with its column paths.
        options: all other EncryptionConfiguration fields.
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


def parse_timeout(text: str) -> float:
    """Return the seconds in the text of the option ``kms.timeout``.

    Raises:
        SchemaError: it is not a positive number.
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise SchemaError("the option kms.timeout is a positive number of seconds")
    return seconds


def parse_key_place(text: str) -> str:
    """Return the text of the option ``kms.audit.hash.key``.

    Raises:
        SchemaError: it is not a place, and may be the secret itself. The message does not show it.
    """
    if looks_like_key(text) or not re.fullmatch(r"env:\w+|(?!base64:|hex:)[\w.]*[A-Za-z_][\w.]*:[A-Za-z_]\w*", text):
        raise SchemaError(
            "the option kms.audit.hash.key is env:VARIABLE, or package.module:function of a function that returns the secret. "
            "The secret itself must not be in options, which Spark writes into plans and logs")
    return text


def _hash_key(place: str) -> Any:
    """Return the secret for the hash chain of an audit log from its place. No exception leaves while a variable holds it.

    Raises:
        KeyAccessError: there is none, or its function failed. The message does not show the function's own text.
        ValueError: it is not base64.
    """
    kind, _, variable = place.partition(":")
    if kind != "env":
        make_key = _load(place, "the function for the secret", "kms.audit.hash.key")
        try:
            key = make_key()
        except Exception as error:
            failure = f"failed: {type(error).__name__}"
        else:
            if key is not None:     # with None a log would have no chain
                return key
            failure = "returned None"
        raise KeyAccessError(f"the function {place} (option kms.audit.hash.key) {failure}")
    if variable not in os.environ:
        raise KeyAccessError(
            f"the environment variable {variable} (option kms.audit.hash.key) is not set for a Python worker on this machine")
    with contextlib.suppress(ValueError):       # whose context would show the secret
        return base64.b64decode(os.environ[variable], validate=True)
    raise ValueError(f"the environment variable {variable} is not base64")


def load_client(name: str) -> Callable[[KmsConnectionConfig], KmsClient]:
    """Import the client class or function named ``package.module:Name`` (or ``package.module.Name``).

    Raises:
        KeyAccessError: the import fails on this machine, or the object is not callable.
    """
    if name == KEYRING:
        return keyring
    client: Callable[[KmsConnectionConfig], KmsClient] = _load(name, "the KMS client", "kms.client")
    return client


def _load(name: str, role: str, option_name: str) -> Callable[..., Any]:
    """Import a class or function named ``package.module:Name`` (or ``package.module.Name``).

    Args:
        name: the name.
        role: what it is, for errors.
        option_name: the option that names it, for errors.

    Raises:
        KeyAccessError: the import fails on this machine, or the object is not callable.
    """
    module, _, attribute = name.partition(":") if ":" in name else name.rpartition(".")
    try:
        member = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, TypeError, ValueError) as error:    # TypeError: the name begins with a dot
        raise KeyAccessError(
            f"{role} {name!r} (option {option_name}) cannot be imported on this machine: {type(error).__name__}. Python "
            "workers of Spark import it anew: install its module on each machine, or give it to spark-submit --py-files; what a "
            "script or a notebook defines itself is in no module"
        ) from error
    if not callable(member):
        raise KeyAccessError(f"{role} {name!r} (option {option_name}) cannot be called")
    function: Callable[..., Any] = member
    return function


def name_task(name: str) -> None:
    """Set the name that audit records have for the present task. The JVM's worker has no TaskContext, and gets the name.

    Args:
        name: the name in the form that ``_present_task`` returns, or empty between tasks.
    """
    global _task_name
    _task_name = name or None


def _present_task() -> str | None:
    """Return the stage, the partition and the attempt of the present task of Spark, or None outside of a task."""
    if _task_name is not None:
        return _task_name
    from pyspark import TaskContext

    task = TaskContext.get()
    if task is None:
        return None
    return f"stage {task.stageId()}, partition {task.partitionId()}, attempt {task.taskAttemptId()}"


def keyring(config: KmsConnectionConfig) -> Keyring:
    """Make the client ``keyring``: the option ``path`` names its file, and the access token is its passphrase."""
    return Keyring(config.custom_kms_conf["path"], config.key_access_token)


def _keyring_connection(configuration: Mapping[str, str]) -> KmsConnectionConfig:
    """Return the connection to the keyring that ``kms.conf.path`` or $FASTPQ_KEYRING names.

    The passphrase is $FASTPQ_KEYRING_PASSPHRASE, or the first line in the file that ``kms.conf.passphraseFile`` names. Path and
    passphrase are read for each connection, because together they identify the cached clients and keys.
    """
    spellings = {name.lower(): name for name in ("path", "passphraseFile")}      # DataFrameWriter turns names into lower case
    settings = {spellings.get(name.lower(), name): value for name, value in configuration.items()}
    custom = client_options(KmsConnectionConfig(custom_kms_conf=settings), *spellings.values())
    path = custom.get("path") or os.environ.get(KEYRING_VARIABLE)
    if not path:
        raise KeyAccessError(
            f"where is the keyring? Give the option kms.conf.path, or set {KEYRING_VARIABLE} in the environment of the "
            f"executors: before the session starts, or by spark.executorEnv.{KEYRING_VARIABLE}"
        )
    file = custom.get("passphraseFile")
    passphrase = read_secret(file) if file else os.environ.get(PASSPHRASE_VARIABLE)
    if passphrase is None:
        raise KeyAccessError(
            f"the keyring's passphrase is not in {PASSPHRASE_VARIABLE}, nor kms.conf.passphraseFile given. Set the variable "
            "before the session starts, in the environment of the executors"
        )
    return KmsConnectionConfig(key_access_token=passphrase, custom_kms_conf={"path": path})


def _token(file: str | None) -> str | None:
    return os.environ.get(TOKEN_VARIABLE) if file is None else read_secret(file)
