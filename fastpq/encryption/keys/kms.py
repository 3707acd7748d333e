"""Key services as the key tools see them: two methods, and how to connect."""

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
    """A key management service (KMS): it keeps master keys, and wraps other keys with them.

    Deriving from it is welcome but not needed: any object with the two methods is one, those written for pyarrow among
    them. Several threads may call a client at the same time. What a method raises reaches whoever reads or writes, as
    the cause of a KeyAccessError if it is not a ParquetError itself.
    """

    @abstractmethod
    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str | bytes:
        """Encrypt a key.

        Args:
            key_bytes: 16, 24 or 32 bytes. They are wiped when nobody holds them after the call.
            master_key_identifier: of the master key to encrypt with, in its newest version.

        Returns:
            Text (bytes of it are UTF-8) that unwrap_key understands; it is stored in the clear.
        """

    @abstractmethod
    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes | bytearray:
        """Decrypt what wrap_key returned; the arguments come from a file that anybody may have altered.

        Args:
            wrapped_key: text that ``wrap_key`` returned.
            master_key_identifier: of the master key that it was wrapped with.
        """


class _Hidden(str):
    """A token, which tools that show the variables of a traceback do not show."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<access token>"


class _AccessToken:
    """A token that its owner may refresh while clients are in use."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = _Hidden(value)


class KmsConnectionConfig:
    """How to reach a key service; it shows no token, and cannot be copied or pickled.

    Args:
        kms_instance_id: which service, if there are several; empty to take the one that a file names, or ``"DEFAULT"``.
        kms_instance_url: where it is; empty for ``"DEFAULT"``, which stands for what the client itself knows.
        key_access_token: what the service knows the caller by. Caches are kept apart by it.
        custom_kms_conf: options of the client, text by name.

    Raises:
        TypeError: something that is not text.
    """

    __slots__ = ("_token", "custom_kms_conf", "kms_instance_id", "kms_instance_url")

    def __init__(
        self,
        kms_instance_id: str = "",
        *,
        kms_instance_url: str = "",
        key_access_token: str = DEFAULT_KEY_ACCESS_TOKEN,
        custom_kms_conf: Mapping[str, str] | None = None,
    ) -> None:
        custom = dict(custom_kms_conf or {})
        texts = (kms_instance_id, kms_instance_url, key_access_token, *custom, *custom.values())
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("a KmsConnectionConfig holds text only")
        self.kms_instance_id = kms_instance_id
        self.kms_instance_url = kms_instance_url
        self.custom_kms_conf: Mapping[str, str] = custom
        self._token = _AccessToken(key_access_token)

    @property
    def key_access_token(self) -> str:
        """The token as it is now: clients that live long should ask for it each time."""
        return self._token.value

    def refresh_key_access_token(self, value: str) -> None:
        """Replace the token, also for the clients that were made with this configuration.

        Args:
            value: the new token.
        """
        if not isinstance(value, str):
            raise TypeError("a key access token is text")
        self._token.value = _Hidden(value)

    def resolved(self, kms_instance_id: str, kms_instance_url: str) -> KmsConnectionConfig:
        """The same for one instance at one place; both share the token.

        Args:
            kms_instance_id: the instance.
            kms_instance_url: its place.
        """
        config = KmsConnectionConfig(
            kms_instance_id, kms_instance_url=kms_instance_url, custom_kms_conf=self.custom_kms_conf
        )
        config._token = self._token
        return config

    def __repr__(self) -> str:
        return f"<KmsConnectionConfig of instance {self.kms_instance_id or DEFAULT_KMS_INSTANCE_ID!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a KmsConnectionConfig holds an access token and cannot be copied or pickled")


KmsClientFactory = Callable[[KmsConnectionConfig], KmsClient]


def client_options(config: KmsConnectionConfig, *known: str) -> Mapping[str, str]:
    """The custom_kms_conf of a client that knows some options.

    Raises:
        SchemaError: there is another option, or one without a value.
    """
    for name, value in config.custom_kms_conf.items():
        if name not in known or not value:
            raise SchemaError(f"custom_kms_conf[{name!r}] is {'empty' if name in known else 'none of ' + ', '.join(known)}")
    return config.custom_kms_conf
