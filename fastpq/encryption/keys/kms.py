"""KmsClient, the interface of key services, and KmsConnectionConfig, the parameters of a connection."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import NoReturn, Protocol, runtime_checkable

from fastpq.errors import SchemaError

DEFAULT_KMS_INSTANCE_ID = "DEFAULT"
DEFAULT_KMS_INSTANCE_URL = "DEFAULT"
DEFAULT_KEY_ACCESS_TOKEN = "DEFAULT"


@runtime_checkable
class KmsClient(Protocol):
    """Client of a key management service (KMS): the service keeps master keys, and wraps other keys with master keys.

    Any object with the two methods is a client, also clients written for pyarrow; deriving from this class is optional. Several
    threads may call a client at the same time. An exception raised by a method reaches the reader or writer: a ParquetError
    as raised, any other as the cause of a KeyAccessError.
    """

    @abstractmethod
    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str | bytes:
        """Encrypt a key.

        Args:
            key_bytes: 16, 24 or 32 bytes; wiped after the call, unless somebody still holds a reference.
            master_key_identifier: the master key; its newest version encrypts.

        Returns:
            Text, or bytes of text in UTF-8, that unwrap_key understands; stored in the clear.
        """

    @abstractmethod
    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes | bytearray:
        """Decrypt a key encrypted by wrap_key; the arguments come from a file, and anybody may have altered the file.

        Args:
            wrapped_key: text returned by ``wrap_key``.
            master_key_identifier: the master key of the wrapping.
        """


class _Hidden(str):
    """Text of an access token or an option, with a placeholder as repr: some tools show the variables of a traceback."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<hidden>"


class KmsConnectionConfig:
    """How to reach a key service; shows no token, and cannot be copied or pickled.

    Args:
        kms_instance_id: name of the service, if there are several; empty for ``"DEFAULT"``, the client's own default.
        kms_instance_url: URL of the service; empty for ``"DEFAULT"``, the client's own default. Where name or URL are empty, a
            reader takes them from the file if DecryptionConfiguration trusts the file; files that name others are refused else.
        key_access_token: credential of the caller at the service.
        custom_kms_conf: options of the client, text by name.

    Instance, URL, token and options together name the cached clients and keys of a CryptoFactory: configurations that differ in
    one of them share nothing. None stands for the default of an argument, as in pyarrow.

    Raises:
        TypeError: an argument is not text.
    """

    __slots__ = ("_token", "custom_kms_conf", "kms_instance_id", "kms_instance_url")

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
            raise TypeError("a KmsConnectionConfig holds text only")
        self.kms_instance_id: str = identifier
        self.kms_instance_url: str = url
        self.custom_kms_conf: Mapping[str, str] = custom
        self._token = _Hidden(token)

    @property
    def key_access_token(self) -> str:
        """The current token: long-lived clients should read this property at each call."""
        return self._token

    def refresh_key_access_token(self, value: str) -> None:
        """Replace the token; a CryptoFactory uses the new token from its next call of the key service on, with a new client.

        Args:
            value: the new token.
        """
        if not isinstance(value, str):
            raise TypeError("a key access token is text")
        self._token = _Hidden(value)

    def resolved(self, kms_instance_id: str, kms_instance_url: str) -> KmsConnectionConfig:
        """A copy for one instance at one URL, with the present token and options; later changes leave the copy as it is.

        Args:
            kms_instance_id: the instance.
            kms_instance_url: its URL.
        """
        return KmsConnectionConfig(
            kms_instance_id,
            kms_instance_url=kms_instance_url,
            key_access_token=self._token,
            custom_kms_conf=self.custom_kms_conf,
        )

    def cache_name(self) -> tuple[object, ...]:
        """Hashable key of a connection in caches: instance, URL and all options. The caches have the token beside."""
        options = sorted((name, _Hidden(value)) for name, value in self.custom_kms_conf.items())
        return (self.kms_instance_id, self.kms_instance_url, *options)

    def __repr__(self) -> str:
        return f"<KmsConnectionConfig of instance {self.kms_instance_id or DEFAULT_KMS_INSTANCE_ID!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a KmsConnectionConfig holds an access token and cannot be copied or pickled")


KmsClientFactory = Callable[[KmsConnectionConfig], KmsClient]


def client_options(config: KmsConnectionConfig, *known: str) -> Mapping[str, str]:
    """The custom_kms_conf of a client, if all options are known to the client.

    Raises:
        SchemaError: an unknown option, or an option without a value.
    """
    for name, value in config.custom_kms_conf.items():
        if name not in known or not value:
            raise SchemaError(f"custom_kms_conf[{name!r}] is {'empty' if name in known else 'none of ' + ', '.join(known)}")
    return config.custom_kms_conf
