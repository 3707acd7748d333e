"""KmsClient, the interface for key service clients, and KmsConnectionConfig, the connection parameters."""

from __future__ import annotations

import base64
import contextlib
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Protocol, runtime_checkable

from fastpq.encryption.keys.material import encode_base64
from fastpq.encryption.tracebacks import KeyHolder, hides_arguments
from fastpq.errors import KeyAccessError, SchemaError
from fastpq.io.origin import read_small_file

DEFAULT_KMS_INSTANCE_ID = "DEFAULT"
DEFAULT_KMS_INSTANCE_URL = "DEFAULT"
DEFAULT_KEY_ACCESS_TOKEN = "DEFAULT"
LONGEST_ANSWER = 300    # characters of a service's own words in a message
SHORTEST_SECRET = 8     # characters. A shorter text is not treated as a secret
LARGEST_SECRET = 1 << 20    # in bytes


@runtime_checkable
class KmsClient(Protocol):
    """A client for a key management service (KMS). The service keeps master keys, and wraps other keys with them.

    Any object with the two methods is a client, even if it was written for pyarrow. It need not derive from this class. A client
    may also have ``unwrap_keys(wrapped_keys, master_key_identifier)``, which returns the keys of several texts in their order.
    Then several columns under one master key take one call. Several threads may call a client at the same time. An exception from
    a method reaches the reader or writer: a ParquetError as it is, any other as the cause of a KeyAccessError.
    """

    @abstractmethod
    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str | bytes:
        """Encrypt a key.

        Args:
            key_bytes: 16, 24 or 32 bytes. They are wiped after the call, unless somebody still holds a reference.
            master_key_identifier: the master key. Its newest version encrypts.

        Returns:
            Text, or UTF-8 bytes, that unwrap_key understands. It is stored unencrypted.
        """

    @abstractmethod
    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes | bytearray:
        """Decrypt a key that wrap_key encrypted. The arguments come from a file, which anybody may have altered.

        Args:
            wrapped_key: text that ``wrap_key`` returned.
            master_key_identifier: the master key that wrapped it.
        """


class HiddenText(str):
    """An access token's or an option's text. Its repr is a placeholder, because some tools show the variables in a traceback."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<hidden>"


class KmsConnectionConfig(KeyHolder):
    """How to reach a key service. The object does not show its token, and cannot be copied or pickled.

    Args:
        kms_instance_id: the service's name, if there are several. Empty means ``"DEFAULT"``, the client's own default.
        kms_instance_url: the service's URL. Empty means ``"DEFAULT"``, the client's own default. If name or URL is empty, a
            reader takes it from the file, provided that DecryptionConfiguration trusts the file. Otherwise a file that names
            another service than ``"DEFAULT"`` is refused.
        key_access_token: the caller's credential at the service.
        custom_kms_conf: the client's options: text by name.

    Instance, URL, token and options together identify a CryptoFactory's cached clients and keys. Configurations that differ in
    one of them share nothing. None means an argument's default, as in pyarrow.

    Raises:
        TypeError: an argument is not text.
    """

    __slots__ = ("_token", "custom_kms_conf", "kms_instance_id", "kms_instance_url")

    @hides_arguments
    def __init__(
        self,
        kms_instance_id: str | None = "",
        *,
        kms_instance_url: str | None = "",
        key_access_token: str | None = DEFAULT_KEY_ACCESS_TOKEN,
        custom_kms_conf: Mapping[str, str] | None = None,
    ) -> None:
        custom = dict(custom_kms_conf or {})
        identifier = "" if kms_instance_id is None else kms_instance_id
        url = "" if kms_instance_url is None else kms_instance_url
        token = DEFAULT_KEY_ACCESS_TOKEN if key_access_token is None else key_access_token
        if not all(isinstance(text, str) for text in (identifier, url, token, *custom, *custom.values())):
            raise TypeError("the arguments of KmsConnectionConfig must be text")
        self.kms_instance_id: str = identifier
        self.kms_instance_url: str = url
        self.custom_kms_conf: Mapping[str, str] = custom
        self._token = HiddenText(token)

    @property
    def key_access_token(self) -> str:
        """The current token. A client that lives long should read this property at each call."""
        return self._token

    @key_access_token.setter
    @hides_arguments
    def key_access_token(self, value: str) -> None:
        self.refresh_key_access_token(value)

    @hides_arguments
    def refresh_key_access_token(self, value: str) -> None:
        """Replace the token. A CryptoFactory makes a new client with the new token when it next calls the key service.

        Args:
            value: the new token.
        """
        if not isinstance(value, str):
            raise TypeError("the key access token must be text")
        self._token = HiddenText(value)

    def resolved(
        self, kms_instance_id: str = DEFAULT_KMS_INSTANCE_ID, kms_instance_url: str = DEFAULT_KMS_INSTANCE_URL
    ) -> KmsConnectionConfig:
        """Return a copy for one instance at one URL, with the present token and options. Later changes do not reach the copy.

        Args:
            kms_instance_id: the instance, if this configuration leaves it open.
            kms_instance_url: its URL, if this configuration leaves it open.
        """
        return KmsConnectionConfig(
            self.kms_instance_id or kms_instance_id,
            kms_instance_url=self.kms_instance_url or kms_instance_url,
            key_access_token=self._token,
            custom_kms_conf=self.custom_kms_conf,
        )

    def cache_name(self) -> tuple[object, ...]:
        """Return the connection's hashable cache key: instance, URL and all options. Caches add the token themselves."""
        options = sorted((name, HiddenText(value)) for name, value in self.custom_kms_conf.items())
        return (self.kms_instance_id, self.kms_instance_url, *options)

    def __repr__(self) -> str:
        return f"<KmsConnectionConfig of instance {self.kms_instance_id or DEFAULT_KMS_INSTANCE_ID!r}>"


def answer_text(text: object, *secrets: str | bytes) -> str:
    """Return a key service's own words as they stand at the end of a message, or nothing if they hold a secret.

    Args:
        text: the service's words.
        secrets: whatever the message must not show, in any of its usual spellings.
    """
    words = "".join(each if each.isprintable() else " " for each in str(text)).strip()
    raw = [secret.encode() if isinstance(secret, str) else bytes(secret) for secret in secrets if len(secret) >= SHORTEST_SECRET]
    for secret in secrets:
        with contextlib.suppress(ValueError):       # not base64
            raw.append(base64.b64decode(secret, validate=True))
    spellings = [spelling for secret in raw for spelling in (secret.decode("latin-1"), secret.hex(), encode_base64(secret))]
    has_secret = any(spelling and spelling.lower() in words.lower() for spelling in spellings)
    return f": {words[:LONGEST_ANSWER]}" if words and not has_secret else ""


@hides_arguments
def read_secret(path: str) -> str:
    """Return the first line in a file that holds a passphrase or an access token. Its repr does not show it.

    Args:
        path: the file. A pipe is refused, because nobody might ever write to it.

    Raises:
        KeyAccessError: the file cannot be read, or its content is not UTF-8.
    """
    try:
        content = read_small_file(path, LARGEST_SECRET)
    except OSError as error:
        raise KeyAccessError(f"a secret cannot be read from {path}: {error.strerror}") from error
    try:
        return HiddenText(content.decode().partition("\n")[0].removesuffix("\r"))
    except UnicodeDecodeError:
        pass        # no error is raised here, because its context would show the secret
    raise KeyAccessError(f"the secret in {path} is not text in UTF-8")


KmsClientFactory = Callable[[KmsConnectionConfig], KmsClient]


def client_options(config: KmsConnectionConfig, *names: str) -> Mapping[str, str]:
    """Return the custom_kms_conf for a client whose options have these names.

    Raises:
        SchemaError: an option is unknown, or has no value.
    """
    for name, value in config.custom_kms_conf.items():
        if name not in names:
            raise SchemaError(f"custom_kms_conf[{name!r}] is unknown: it can have {', '.join(names)}")
        if not value:
            raise SchemaError(f"custom_kms_conf[{name!r}] is empty")
    return config.custom_kms_conf
