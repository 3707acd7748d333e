"""KeySource: keys from a keyring, a key service, a file descriptor or the environment.

Keys never come from arguments, because ``ps`` shows these to everybody on the machine.
"""

from __future__ import annotations

import base64
import os
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from string import hexdigits
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from fastpq.cli.failures import KEYS, POLICY_OPTIONS, USAGE, CommandFailure
from fastpq.encryption.tracebacks import hides_arguments

if TYPE_CHECKING:
    from fastpq.encryption.dataset_properties import DatasetDecryptionProperties
    from fastpq.encryption.keys.factory import CryptoFactory
    from fastpq.encryption.keys.keyring import Keyring
    from fastpq.encryption.keys.kms import KmsConnectionConfig
    from fastpq.encryption.properties import FileDecryptionProperties
    from fastpq.encryption.service_calls import ServiceCalls

KEYS_VARIABLE = "FASTPQ_KEYS"
PASSPHRASE_VARIABLE = "FASTPQ_PASSPHRASE"
NEW_PASSPHRASE_VARIABLE = "FASTPQ_NEW_PASSPHRASE"
SPARK_PASSPHRASE_VARIABLE = "FASTPQ_KEYRING_PASSPHRASE"  # as fastpq/spark/keyservice.py has it
LARGEST_SECRET = 1 << 20  # in bytes
KEY_SIZES = (16, 24, 32)  # in bytes

# The client's class for each word of --kms.
CLIENTS = {
    "aws": "AwsKmsClient",
    "azure": "AzureKmsClient",
    "google": "GoogleKmsClient",
    "pkcs11": "Pkcs11KmsClient",
    "vault": "VaultKmsClient",
}

# What each word of --allow permits, as arguments of FileDecryptionProperties.
POLICIES: Mapping[str, Mapping[str, Any]] = {
    **{word: {option: True} for word, option in POLICY_OPTIONS.items()},
    "ctr": {"allowed_algorithms": ("AES_GCM_V1", "AES_GCM_CTR_V1")},
    "unsigned-footers": {"verify_footer_signature": False},
}

# Environment variables that keys come from. Help and the documentation show the table.
VARIABLES = {
    "FASTPQ_KEYRING": "a keyring file, as --keyring",
    PASSPHRASE_VARIABLE: "the passphrase of the keyring",
    SPARK_PASSPHRASE_VARIABLE: "the same, under its name for Spark, if FASTPQ_PASSPHRASE is not set",
    "FASTPQ_KMS": "a key service, as --kms",
    "FASTPQ_KMS_URL": "the URL of the key service",
    "FASTPQ_KMS_INSTANCE": "the instance of the key service",
    "FASTPQ_KMS_TOKEN": "the access token for the key service",
    "FASTPQ_KMS_OPTIONS": "options for the client of the key service, as a JSON object",
    "FASTPQ_KMS_TIMEOUT": "longest time for the calls of the key service, as --kms-timeout",
    "FASTPQ_KMS_ATTEMPTS": "largest number of attempts for a call, as --kms-attempts",
    KEYS_VARIABLE: 'explicit keys as JSON: {"footer_key": KEY, "column_keys": {NAME: KEY}}. A KEY is base64, or hex: and digits',
}


# Options of verbs that use master keys and open no encrypted file.
PASSPHRASE_OPTIONS = ("passphrase_fd",)
SERVICE_OPTIONS = ("keyring", *PASSPHRASE_OPTIONS, "kms", "kms_timeout", "kms_attempts")


def key_options(names: Collection[str] | None = None) -> list[click.Parameter]:
    """Return the options that say where keys come from.

    Args:
        names: the parameters of the options. None returns all options.
    """
    options: list[click.Parameter] = [
        click.Option(["--keyring"], metavar="FILE", envvar="FASTPQ_KEYRING", help="Keys from a keyring file."),
        click.Option(
            ["--passphrase-fd"],
            type=int,
            metavar="N",
            help=f"Read the passphrase from a file descriptor [or {PASSPHRASE_VARIABLE}].",
        ),
        click.Option(
            ["--kms"],
            metavar="NAME",
            envvar="FASTPQ_KMS",
            help=f"Keys from a key service: {', '.join(CLIENTS)}, or module:Class. FASTPQ_KMS_URL and others set it up.",
        ),
        click.Option(
            ["--kms-timeout"],
            type=click.FloatRange(min=0, min_open=True, max=threading.TIMEOUT_MAX),
            metavar="SECONDS",
            envvar="FASTPQ_KMS_TIMEOUT",
            help="Longest time for all calls of the key service for one file, with all their attempts [default: 10].",
        ),
        click.Option(
            ["--kms-attempts"],
            type=click.IntRange(min=1),
            metavar="N",
            envvar="FASTPQ_KMS_ATTEMPTS",
            help="Largest number of attempts if the key service does not answer [default: 3].",
        ),
        click.Option(
            ["--keys-fd"], type=int, metavar="N", help=f"Read explicit keys as JSON from a file descriptor [or {KEYS_VARIABLE}]."
        ),
        click.Option(["--aad-prefix"], metavar="TEXT", help="The file's AAD prefix, if the file does not store it."),
        click.Option(
            ["--table-id"], metavar="ID", help="Refuse files that are not bound to this table and to their own names."
        ),
        click.Option(
            ["--table-root"], metavar="FOLDER", help="Folder of the table, if its files are bound to their paths below it."
        ),
        click.Option(
            ["--allow"],
            multiple=True,
            type=click.Choice(list(POLICIES)),
            metavar="POLICY",
            help=f"Relax a policy of decryption: {', '.join(POLICIES)}.",
        ),
    ]
    return [option for option in options if names is None or option.name in names]


class ExplicitKeys(NamedTuple):
    """Keys from JSON.

    Attributes:
        footer_key: the footer's key, or None.
        column_keys: keys by column path.
    """

    footer_key: bytes | None
    column_keys: dict[str, bytes]

    def __repr__(self) -> str:
        return "<ExplicitKeys>"


class KeySource:
    """Where the keys of one run come from. It is asked when the first encrypted file needs a key.

    Args:
        keyring: path of a keyring, or None.
        passphrase_fd: file descriptor with the passphrase, or None.
        kms: name of a key service, or None.
        kms_timeout: longest time for all calls of the key service for one file in seconds, or None.
        kms_attempts: largest number of attempts for a call, or None.
        keys_fd: file descriptor with explicit keys, or None.
        aad_prefix: text of the AAD prefix, or None.
        table_id: identifier of the table that files are bound to, or None.
        table_root: the table's folder, if files are bound to their paths below it, or None.
        allow: words of ``POLICIES``.
    """

    def __init__(
        self,
        keyring: str | None = None,
        passphrase_fd: int | None = None,
        kms: str | None = None,
        kms_timeout: float | None = None,
        kms_attempts: int | None = None,
        keys_fd: int | None = None,
        aad_prefix: str | None = None,
        table_id: str | None = None,
        table_root: str | None = None,
        allow: tuple[str, ...] = (),
    ) -> None:
        self.keyring_path, self._passphrase_fd = keyring, passphrase_fd
        self.kms_name, self._keys_fd = kms, keys_fd
        self.aad_prefix = None if aad_prefix is None else aad_prefix.encode()
        limits = {"timeout": kms_timeout, "attempts": kms_attempts}
        self._limits: dict[str, Any] = {name: limit for name, limit in limits.items() if limit is not None}
        self._table_id, self._table_root = table_id, table_root
        if table_root is not None and table_id is None:
            raise CommandFailure("--table-root needs --table-id", USAGE)
        if table_id is not None and aad_prefix is not None:
            raise CommandFailure("--table-id makes the AAD prefix: it cannot stand with --aad-prefix", USAGE)
        self._policies: dict[str, Any] = {}
        for word in allow:
            self._policies |= POLICIES[word]
        self._factory: CryptoFactory | None = None
        self._keyring: Keyring | None = None
        self._explicit: ExplicitKeys | None = None

    @classmethod
    def of_options(cls, values: dict[str, Any]) -> KeySource:
        """Take the options of ``key_options`` out of parsed values."""
        names = (
            "keyring", "passphrase_fd", "kms", "kms_timeout", "kms_attempts", "keys_fd", "aad_prefix", "table_id", "table_root",
            "allow",
        )
        return cls(**{name: values.pop(name) for name in names if name in values})

    @property
    def has_service(self) -> bool:
        """Whether keys are wrapped by a keyring or a key service."""
        return self.keyring_path is not None or self.kms_name is not None

    @property
    def is_per_file(self) -> bool:
        """Whether each file has keys of its own, which its path leads to."""
        return self.has_service or self._table_id is not None

    @property
    def allows_plaintext_files(self) -> bool:
        """Whether plaintext files are read although there are keys."""
        return bool(self._policies.get("allow_plaintext_files"))

    @property
    def is_empty(self) -> bool:
        """Whether the user names no keys at all."""
        return not self.has_service and self._keys_fd is None and KEYS_VARIABLE not in os.environ

    def decryption_of(self, path: Any) -> FileDecryptionProperties | None:
        """Return the properties for reading a file, or None without keys.

        Args:
            path: the file's path or URL, by which external key material is found, or None.
        """
        if self.is_empty:
            return None
        from fastpq.encryption.properties import FileDecryptionProperties

        explicit = self.explicit_keys()
        options = {"aad_prefix": self._prefix_of(path), **self._policies}
        if not self.has_service:
            return FileDecryptionProperties(explicit.footer_key, explicit.column_keys, **options)
        return self.factory().file_decryption_properties(
            self.connection(),
            None,
            path if isinstance(path, str) else None,
            footer_key=explicit.footer_key,
            column_keys=explicit.column_keys,
            **options,
        )

    def _prefix_of(self, path: Any) -> bytes | None:
        if self._table_id is None:
            return self.aad_prefix
        from fastpq.encryption.dataset_properties import bound_prefix

        if not isinstance(path, str):
            raise CommandFailure("--table-id needs the path of each file", USAGE)
        return bound_prefix(path, self._table_id, self._table_root)

    def dataset_decryption(self, trusted_keys: Collection[str] | None = None) -> DatasetDecryptionProperties:
        """Return the properties for reading all files of a folder.

        Args:
            trusted_keys: master keys that files may name. None trusts all.
        """
        from fastpq.encryption.dataset_properties import DatasetDecryptionProperties
        from fastpq.encryption.properties import FileDecryptionProperties

        if self.is_empty:
            raise CommandFailure("no keys are named", KEYS, "--keyring FILE, --kms NAME, --keys-fd N or FASTPQ_KEYS")
        if self.aad_prefix is not None:
            raise CommandFailure("a folder has no AAD prefix of its own", USAGE, "--table-id ID")
        if self.has_service:
            from fastpq.encryption.keys.configuration import DecryptionConfiguration

            configuration = DecryptionConfiguration(trusted_master_keys=trusted_keys)
            return self.factory().dataset_decryption_properties(
                self.connection(), configuration, table_id=self._table_id, root=self._table_root, **self._policies)
        explicit = self.explicit_keys()
        keys = FileDecryptionProperties(explicit.footer_key, explicit.column_keys, **self._policies)
        return DatasetDecryptionProperties(keys, table_id=self._table_id, root=self._table_root)

    def factory(self) -> CryptoFactory:
        """Return the CryptoFactory over the user's key service."""
        if self._factory is None:
            from fastpq.encryption.keys.factory import CryptoFactory

            if not self.has_service:
                raise CommandFailure("no key service is named", KEYS, "--keyring FILE or --kms NAME")
            self._factory = CryptoFactory(self.client_maker(), **self._limits)
        return self._factory

    def service_calls(self) -> ServiceCalls:
        """Return the user's limits for calls of the key service."""
        from fastpq.encryption.service_calls import ServiceCalls

        return ServiceCalls(**self._limits)

    def client_maker(self) -> Callable[[KmsConnectionConfig], Any]:
        """Return the function that makes the client of the user's key service."""
        if self.keyring_path is not None:
            keyring = self.open_keyring()
            return lambda _: keyring
        return _client_class(self.kms_name or "")

    def open_keyring(self) -> Keyring:
        """Return the keyring that the user names."""
        if self._keyring is None:
            from fastpq.encryption.keys.keyring import Keyring

            if self.keyring_path is None:
                raise CommandFailure("no keyring is named", KEYS, "--keyring FILE")
            self._keyring = Keyring(self.keyring_path, self.passphrase())
        return self._keyring

    def connection(self) -> KmsConnectionConfig:
        """Return how to reach the key service, from the environment."""
        from fastpq.encryption.keys.kms import KmsConnectionConfig

        options = os.environ.get("FASTPQ_KMS_OPTIONS")
        return KmsConnectionConfig(
            os.environ.get("FASTPQ_KMS_INSTANCE"),
            kms_instance_url=os.environ.get("FASTPQ_KMS_URL"),
            key_access_token=os.environ.get("FASTPQ_KMS_TOKEN"),
            custom_kms_conf=None if options is None else _json_object(options, "FASTPQ_KMS_OPTIONS"),
        )

    def passphrase(self, *, is_new: bool = False) -> str:
        """Return the passphrase from the file descriptor, the environment, or a person at the terminal.

        Args:
            is_new: whether a person has to type it twice.
        """
        variables = (PASSPHRASE_VARIABLE, SPARK_PASSPHRASE_VARIABLE)
        return _secret("passphrase", self._passphrase_fd, variables, is_new=is_new)

    def explicit_keys(self) -> ExplicitKeys:
        """Return the keys from ``--keys-fd``, or else from the environment."""
        if self._explicit is None:
            if self._keys_fd is not None:
                self._explicit = parse_keys(read_descriptor(self._keys_fd, "--keys-fd"), "--keys-fd")
            else:
                self._explicit = parse_keys(os.environ.get(KEYS_VARIABLE, "{}"), KEYS_VARIABLE)
        return self._explicit


def new_passphrase(descriptor: int | None) -> str:
    """Return a new passphrase from the file descriptor, the environment, or a person at the terminal, who types it twice."""
    return _secret("new passphrase", descriptor, (NEW_PASSPHRASE_VARIABLE,), is_new=True)


def _secret(what: str, descriptor: int | None, variables: Sequence[str], *, is_new: bool) -> str:
    option = f"--{what.replace(' ', '-')}-fd"
    if descriptor is not None:
        return read_descriptor(descriptor, option).removesuffix("\n")
    for variable in variables:
        if variable in os.environ:
            return os.environ[variable]
    if sys.stdin.isatty():
        return str(click.prompt(what.capitalize(), hide_input=True, confirmation_prompt=is_new, err=True))
    raise CommandFailure(f"the keyring needs its {what}", KEYS, f"{option} N, or {variables[0]} in the environment")


def _client_class(name: str) -> Callable[[KmsConnectionConfig], Any]:
    if name in CLIENTS:
        from fastpq.encryption import keys

        return getattr(keys, CLIENTS[name])  # type: ignore[no-any-return]
    module, colon, attribute = name.partition(":")
    if not colon:
        raise CommandFailure(
            f"{name!r} is not a key service", KEYS, f"--kms {', '.join(CLIENTS)}, or module:Class for your own client"
        )
    import importlib

    try:
        return getattr(importlib.import_module(module), attribute)  # type: ignore[no-any-return]
    except (ImportError, AttributeError) as error:
        raise CommandFailure(f"the client {name!r} of the key service cannot be imported: {error}", KEYS) from error


def read_descriptor(descriptor: int, option: str) -> str:
    """Return the text that a file descriptor gives."""
    try:
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(LARGEST_SECRET).decode()
    except (OSError, UnicodeDecodeError):
        pass        # no error is raised here, because its context would show the secret
    raise CommandFailure(f"{option} {descriptor} cannot be read", KEYS, f"for example: fastpq ... {option} 3 3<FILE")


def _json_object(text: str, where: str) -> dict[str, Any]:
    import json

    try:
        members = json.loads(text)
    except ValueError:
        members = None
    if not isinstance(members, dict):
        raise CommandFailure(f"{where} is not a JSON object", KEYS)
    return members


_EXAMPLE_OF_KEYS = 'for example {"footer_key": KEY, "column_keys": {"price": KEY}}'


@hides_arguments
def parse_keys(text: str, where: str) -> ExplicitKeys:
    """Return the keys in JSON text. Errors name the place, and show no key."""
    members = _json_object(text, where)
    surplus = next((name for name in members if name not in ("footer_key", "column_keys")), None)
    if surplus is not None:
        name = "a name that looks like a key" if _is_like_key(surplus) else repr(surplus)
        raise CommandFailure(f"{where} has another member than footer_key and column_keys: {name}", KEYS, _EXAMPLE_OF_KEYS)
    columns = members.get("column_keys", {})
    if not isinstance(columns, dict):
        raise CommandFailure(f"column_keys in {where} is not a JSON object", KEYS, _EXAMPLE_OF_KEYS)
    footer = members.get("footer_key")
    return ExplicitKeys(
        None if footer is None else _key(footer, where), {name: _key(key, where) for name, key in columns.items()}
    )


def _is_hexadecimal(text: str) -> bool:
    """Return whether a text has as many hexadecimal digits as a key. By chance, base64 is so about once in 10^15 keys."""
    return len(text) in [2 * size for size in KEY_SIZES] and all(digit in hexdigits for digit in text)


def _is_like_key(text: str) -> bool:
    """Return whether a text may be a key. Messages do not show it."""
    try:
        return text.startswith("hex:") or _is_hexadecimal(text) or len(base64.b64decode(text, validate=True)) in KEY_SIZES
    except ValueError:
        return False


def _key(text: Any, where: str) -> bytes:
    if isinstance(text, str) and _is_hexadecimal(text):
        raise CommandFailure(f"{where} has a key that looks like hexadecimal digits", KEYS, "write hex: before the digits")
    try:
        key = bytes.fromhex(text[4:]) if text.startswith("hex:") else base64.b64decode(text, validate=True)
    except (ValueError, AttributeError):
        key = b""
    if len(key) not in KEY_SIZES:
        raise CommandFailure(f"{where} has a key that is not 16, 24 or 32 bytes in base64, or in digits behind hex:", KEYS)
    return key
