"""Wrapping of data keys for new files, and unwrapping for reading.

Single wrapping: the key service wraps each data key. Double wrapping: key encryption keys (KEKs) wrap data keys, and the
service wraps the KEKs.
"""

from __future__ import annotations

import base64
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import NoReturn, TypeVar

from fastpq.encryption.evp import AesKey
from fastpq.encryption.keys.cache import TokenCache
from fastpq.encryption.keys.configuration import DecryptionConfiguration
from fastpq.encryption.keys.kms import (
    DEFAULT_KMS_INSTANCE_ID,
    DEFAULT_KMS_INSTANCE_URL,
    KmsClient,
    KmsClientFactory,
    KmsConnectionConfig,
)
from fastpq.encryption.keys.material import KeyMaterial, decode_base64, parse_key_material, parse_key_metadata, shown
from fastpq.encryption.keys.secret import lend_key, open_key, random_key, seal_key, take_key
from fastpq.encryption.keys.store import MaterialFile
from fastpq.errors import CryptoError, KeyAccessError, ParquetError

KEK_ID_SIZE = 16    # random bytes

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
    """The caches of a CryptoFactory, each by access token: clients, KEKs for writing, KEKs for reading."""

    def __init__(self) -> None:
        self.clients: TokenCache[KmsClient] = TokenCache()
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
        connection: how to connect, with a definite instance and URL.
        caches: caches of the CryptoFactory.
        lifetime: lifetime of new cache entries.
    """

    def __init__(
        self, factory: KmsClientFactory, connection: KmsConnectionConfig, caches: Caches, lifetime: timedelta
    ) -> None:
        self._factory = factory
        self._connection = connection
        self._lifetime = lifetime
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

    def cached(self, cache: TokenCache[T], name: tuple[object, ...], make: Callable[[], T]) -> T:
        """A cached value of this instance and its access token, made if missing."""
        token = self._connection.key_access_token
        return cache.get(token, (self.instance_id, self.instance_url, *name), self._lifetime, make)

    def _client(self) -> KmsClient:
        return self.cached(self.caches.clients, (), self._make_client)

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


class FileKeyUnwrapper:
    """The key retriever of one file: data keys from key metadata; any number of threads may call an unwrapper.

    Args:
        factory: makes clients of key services.
        connection: how to connect; the file may name an instance or URL left open here.
        configuration: lifetime of cache entries, and trust in the URL named by the file.
        caches: caches of the CryptoFactory.
        material_file: the material file, for external key material; None if the path of the file is unknown.
    """

    def __init__(
        self,
        factory: KmsClientFactory,
        connection: KmsConnectionConfig,
        configuration: DecryptionConfiguration,
        caches: Caches,
        material_file: MaterialFile | None,
    ) -> None:
        self._factory = factory
        self._connection = connection
        self._configuration = configuration
        self._caches = caches
        self._material_file = material_file
        self._entries: dict[str, str] | None = None
        self._service: KeyService | None = None
        self._settling = threading.Lock()

    def __call__(self, key_metadata: bytes) -> AesKey:
        """The data key for key metadata.

        Raises:
            KeyAccessError: the key service does not unwrap the key, or the material file is missing.
            FormatError, UnsupportedError, LimitError: metadata or material are malformed, or not PKMT1.
            TagVerificationError: the wrapped key was altered.
        """
        metadata = parse_key_metadata(key_metadata)
        return self.unwrap(metadata if isinstance(metadata, KeyMaterial) else self._external(metadata))

    def unwrap(self, material: KeyMaterial) -> AesKey:
        """The data key of key material."""
        service = self.service(material)
        if material.kek_id is None:
            return service.unwrap(material.wrapped_dek, material.master_key_id)
        wrapped_kek, kek_id, master_key_id = str(material.wrapped_kek), material.kek_id, material.master_key_id
        kek = service.cached(
            self._caches.read_keks,
            (master_key_id, kek_id, wrapped_kek),
            lambda: service.unwrap(wrapped_kek, master_key_id),
        )
        return open_key(kek, decode_base64(material.wrapped_dek, "wrappedDEK"), kek_id)

    def service(self, material: KeyMaterial) -> KeyService:
        """The key service of the file: as named by the caller, or else by the material of the footer key.

        Raises:
            KeyAccessError: the URL named by the material is not trusted.
        """
        with self._settling:
            if self._service is None:
                instance_id = self._connection.kms_instance_id or material.kms_instance_id or DEFAULT_KMS_INSTANCE_ID
                self._service = KeyService(
                    self._factory,
                    self._connection.resolved(instance_id, self._url(material.kms_instance_url)),
                    self._caches,
                    self._configuration.cache_lifetime,
                )
            return self._service

    def _url(self, named: str | None) -> str:
        """URL of the key service, given the URL named by the file."""
        if self._connection.kms_instance_url:
            return self._connection.kms_instance_url
        if named in (None, DEFAULT_KMS_INSTANCE_URL) or self._configuration.trust_kms_url_from_file:
            return named or DEFAULT_KMS_INSTANCE_URL
        raise KeyAccessError(
            f"the file says that its key service is at {shown(str(named))}, and anybody can have written that: "
            "give kms_instance_url, or trust_kms_url_from_file=True"
        )

    def _external(self, reference: str) -> KeyMaterial:
        if self._material_file is None:
            raise KeyAccessError(
                "the file's keys are in a key material file beside it: file_decryption_properties needs parquet_file_path"
            )
        with self._settling:
            if self._entries is None:
                self._entries = self._material_file.read()
        if reference not in self._entries:
            raise KeyAccessError("the key material file has no entry for a key of the file", path=self._material_file.path)
        return parse_key_material(self._entries[reference])

    def __reduce__(self) -> NoReturn:
        raise TypeError("a FileKeyUnwrapper has access to keys and cannot be copied or pickled")


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
