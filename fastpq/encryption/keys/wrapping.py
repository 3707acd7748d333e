"""Access to a key service with its caches, and wrapping of data keys for new files; unwrapping has the other direction.

Single wrapping: the key service wraps each data key. Double wrapping: key encryption keys (KEKs) wrap data keys, and the
service wraps the KEKs.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import timedelta
from typing import NoReturn, TypeVar

from fastpq.encryption.evp import AesKey
from fastpq.encryption.keys.cache import TokenCache
from fastpq.encryption.keys.kms import KmsClient, KmsClientFactory, KmsConnectionConfig
from fastpq.encryption.keys.material import KeyMaterial, shown
from fastpq.encryption.keys.secret import lend_key, random_key, seal_key, take_key
from fastpq.errors import CryptoError, KeyAccessError, ParquetError

KEK_ID_SIZE = 16    # random bytes
MOST_CLIENTS = 256  # of a factory's cache

T = TypeVar("T")


@dataclass(frozen=True)
class KeyEncryptionKey:
    """A KEK, plain and wrapped.

    Attributes:
        key: the KEK itself.
        identifier: random bytes, the KEK's name in key material, and the AAD of every key wrapped by the KEK.
        wrapped: the KEK as wrapped by the key service.
    """

    key: AesKey
    identifier: bytes
    wrapped: str

    def __reduce__(self) -> NoReturn:
        raise TypeError("a KeyEncryptionKey holds a key and cannot be copied or pickled")


class Caches:
    """The caches of a CryptoFactory, each by the whole connection: clients, KEKs for writing, KEKs for reading."""

    def __init__(self) -> None:
        self.clients: TokenCache[KmsClient] = TokenCache(most=MOST_CLIENTS)
        self.write_keks: TokenCache[KeyEncryptionKey] = TokenCache()
        self.read_keks: TokenCache[AesKey] = TokenCache()

    def remove(self, token: str) -> None:
        for cache in (self.clients, self.write_keks, self.read_keks):
            cache.remove(token)

    def clear(self) -> None:
        for cache in (self.clients, self.write_keks, self.read_keks):
            cache.clear()


class KeyService:
    """One instance of a key service, used through the client of a factory.

    Args:
        factory: makes the client, if none is cached.
        connection: how to connect, with a definite instance and URL; a copy of its own (KmsConnectionConfig.resolved), whose
            token does not change.
        caches: caches of the CryptoFactory.
        lifetime: lifetime of new cache entries.
    """

    def __init__(
        self, factory: KmsClientFactory, connection: KmsConnectionConfig, caches: Caches, lifetime: timedelta
    ) -> None:
        self._factory = factory
        self._connection = connection
        self._lifetime = lifetime
        self._token, self._name = connection.key_access_token, connection.cache_name()
        self.caches = caches
        self.instance_id = connection.kms_instance_id
        self.instance_url = connection.kms_instance_url

    def wrap(self, key: AesKey, master_key_id: str) -> str:
        """The text of a key wrapped by the service.

        Raises:
            KeyAccessError: the client failed.
            CryptoError: the client returned something else than text.
        """
        client = self._client()
        wrapped = _asked("wrap", master_key_id, lambda: lend_key(key, lambda secret: client.wrap_key(secret, master_key_id)))
        return _text_of(wrapped, client)

    def unwrap(self, wrapped: str, master_key_id: str) -> AesKey:
        """The key of a text returned by wrap.

        Raises:
            KeyAccessError: the client failed.
            CryptoError: the client returned something else than a key.
        """
        client = self._client()
        return _asked("unwrap", master_key_id, lambda: take_key(lambda: client.unwrap_key(wrapped, master_key_id)))

    def cached(self, cache: TokenCache[T], name: Hashable, make: Callable[[], T]) -> T:
        """A cached value of this connection, made if missing."""
        return cache.get(self._token, (self._name, name), self._lifetime, make)

    def _client(self) -> KmsClient:
        return self.cached(self.caches.clients, "client", self._make_client)

    def _make_client(self) -> KmsClient:
        try:
            client = self._factory(self._connection)
        except ParquetError:
            raise
        except Exception as error:
            raise KeyAccessError(f"the client of the key service cannot be made: {type(error).__name__}") from error
        if not isinstance(client, KmsClient):
            raise TypeError(f"the KMS client factory made a {type(client).__name__}, without wrap_key and unwrap_key")
        return client


class FileKeyWrapper:
    """Makes the key material of one file's data keys.

    Args:
        service: the key service.
        double_wrapping: wrap data keys with KEKs.
        kek_bits: length of new KEKs.
        keks: cache of KEKs, shared with other files; a rotation has its own.
    """

    def __init__(
        self, service: KeyService, *, double_wrapping: bool, kek_bits: int, keks: TokenCache[KeyEncryptionKey]
    ) -> None:
        self._service = service
        self._double_wrapping = double_wrapping
        self._kek_bits = kek_bits
        self._keks = keks

    def material(self, key: AesKey, master_key_id: str, is_footer_key: bool) -> KeyMaterial:
        """The material of a data key.

        Raises:
            KeyAccessError, CryptoError: as KeyService.wrap does.
        """
        if not self._double_wrapping:
            return self._filled(is_footer_key, master_key_id, self._service.wrap(key, master_key_id))
        name = (master_key_id, self._kek_bits)
        kek = self._service.cached(self._keks, name, lambda: self._make_kek(master_key_id))
        wrapped = base64.b64encode(seal_key(kek.key, key, kek.identifier)).decode()
        return self._filled(is_footer_key, master_key_id, wrapped, kek.identifier, kek.wrapped)

    def _make_kek(self, master_key_id: str) -> KeyEncryptionKey:
        key = random_key(self._kek_bits)
        return KeyEncryptionKey(key, secrets.token_bytes(KEK_ID_SIZE), self._service.wrap(key, master_key_id))

    def _filled(
        self, is_footer_key: bool, master_key_id: str, dek: str, kek_id: bytes | None = None, kek: str | None = None
    ) -> KeyMaterial:
        service = self._service
        return KeyMaterial(is_footer_key, service.instance_id, service.instance_url, master_key_id, dek, kek_id, kek)


def _text_of(wrapped: object, client: KmsClient) -> str:
    try:
        text = wrapped.decode() if isinstance(wrapped, bytes) else wrapped
        storable = isinstance(text, str) and len(text.encode()) > 0
    except UnicodeError:
        storable = False
    if not storable:
        raise CryptoError(f"{type(client).__name__}.wrap_key returned no text")
    return str(text)


def _asked(what: str, master_key_id: str, ask: Callable[[], T]) -> T:
    """Call a client; any exception but a ParquetError becomes a KeyAccessError, without the exception's own text."""
    try:
        return ask()
    except ParquetError:
        raise
    except Exception as error:
        raise KeyAccessError(
            f"the key service did not {what} a key with the master key {shown(master_key_id)}: {type(error).__name__}"
        ) from error
