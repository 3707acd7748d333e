"""Access to a key service with its caches, wrapping of data keys for new files, and unwrapping of stored files' data keys.

Single wrapping: the key service wraps each data key. Double wrapping: key encryption keys (KEKs) wrap data keys, and the
service wraps the KEKs. For a stored file, the caller names the key service, or else a file that the caller trusts names it.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, TypeVar

from fastpq.encryption.audit import KeyUse
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
from fastpq.encryption.keys.material import (
    KeyMaterial,
    abbreviate,
    decode_base64,
    encode_base64,
    parse_key_material,
    parse_key_metadata,
)
from fastpq.encryption.keys.secret import lend_key, open_key, random_key, seal_key, take_key
from fastpq.encryption.keys.store import MaterialFile
from fastpq.encryption.service_calls import CallTime, ServiceCalls, call_all
from fastpq.encryption.tracebacks import KeyHolder, hides_arguments
from fastpq.errors import CryptoError, FormatError, KeyAccessError, ParquetError, UnsupportedError

KEK_ID_SIZE = 16    # number of random bytes in a KEK identifier
MOST_IN_BATCH = 100 # largest number of keys in one call of a service
MOST_CLIENTS = 256  # largest number of clients in a factory's cache

T = TypeVar("T")


@dataclass(frozen=True)
class KeyEncryptionKey(KeyHolder):
    """A KEK, plain and wrapped.

    Attributes:
        key: the KEK itself.
        identifier: random bytes that name the KEK in key material. They are also the AAD of every key that the KEK wraps.
        wrapped_key: the KEK, wrapped by the key service.
    """

    key: AesKey
    identifier: bytes
    wrapped_key: str


class Caches:
    """A CryptoFactory's caches: clients, KEKs for writing and KEKs for reading. Each is keyed by the whole connection."""

    def __init__(self, calls: ServiceCalls | None = None) -> None:
        self.calls = ServiceCalls() if calls is None else calls
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
    """One key service instance, which is called through a factory's client.

    Args:
        factory: makes the client if none is cached.
        connection: how to connect, with instance and URL set. It is a copy (KmsConnectionConfig.resolved) whose token does not
            change.
        caches: the CryptoFactory's caches.
        lifetime: how long new cache entries live.
        call_time: the time for all calls. None gives each call a time of its own.
    """

    def __init__(
        self,
        factory: KmsClientFactory,
        connection: KmsConnectionConfig,
        caches: Caches,
        lifetime: timedelta,
        call_time: CallTime | None = None,
    ) -> None:
        self._factory = factory
        self._connection = connection
        self._lifetime, self._call_time = lifetime, call_time
        self._token, self._name = connection.key_access_token, connection.cache_name()
        self.caches = caches
        self.instance_id = connection.kms_instance_id
        self.instance_url = connection.kms_instance_url
        self.client_name: str | None = None     # class of the client that was called, for audits

    @hides_arguments
    def wrap(self, key: AesKey, master_key_id: str) -> str:
        """Wrap a key with one of the service's master keys, and return the wrapped key as text.

        Raises:
            KeyAccessError: the client failed.
            CryptoError: the client returned something that is not text.
        """
        client = self._client()
        wrapped_key = self._call(
            client, "wrap", master_key_id, lambda: lend_key(key, lambda secret: client.wrap_key(secret, master_key_id))
        )
        return _check_text(wrapped_key, client)

    def unwrap(self, wrapped_key: str, master_key_id: str) -> AesKey:
        """Return the key in a text that wrap returned.

        Raises:
            KeyAccessError: the client failed.
            CryptoError: the client returned something that is not a key.
        """
        client = self._client()
        return self._call(
            client, "unwrap", master_key_id, lambda: take_key(lambda: client.unwrap_key(wrapped_key, master_key_id))
        )

    @property
    def has_batches(self) -> bool:
        """Whether the client unwraps several keys by one call."""
        return hasattr(self._client(), "unwrap_keys")

    @hides_arguments
    def unwrap_batch(self, wrapped_keys: Sequence[str], master_key_id: str) -> list[AesKey]:
        """Return the keys in several texts that wrap returned, by one call. Errors are as in ``unwrap``."""
        client: Any = self._client()

        def unwrap_all() -> list[AesKey]:
            secrets = list(reversed(client.unwrap_keys(wrapped_keys, master_key_id)))
            if len(secrets) != len(wrapped_keys):
                raise CryptoError(f"{type(client).__name__}.unwrap_keys did not return one key for each wrapped key")
            return [take_key(secrets.pop) for _ in wrapped_keys]

        return self._call(client, "unwrap", master_key_id, unwrap_all)

    def _call(self, client: KmsClient, operation: str, master_key_id: str, call: Callable[[], T]) -> T:
        """Call a client within the limits. A client in this process, such as a keyring, needs none."""
        if getattr(client, "is_local", None) is True:
            return _call_client(operation, master_key_id, call)
        return self.caches.calls.call(
            (self._token, self._name),
            lambda: _call_client(operation, master_key_id, call),
            f"{operation} a key with the master key {abbreviate(master_key_id)}",
            self._call_time,
        )

    def cached(self, cache: TokenCache[T], name: Hashable, make: Callable[[], T]) -> T:
        """Return a cached value that belongs to this connection. It is made if it is missing."""
        return cache.get(self._token, (self._name, name), self._lifetime, make)

    def _client(self) -> KmsClient:
        client = self.cached(self.caches.clients, "client", self._make_client)
        self.client_name = type(getattr(client, "wrapped_client", client)).__name__
        return client

    def _make_client(self) -> KmsClient:
        client = self.caches.calls.call((self._token, self._name), self._call_factory, call_time=self._call_time)
        if not isinstance(client, KmsClient):
            raise TypeError(f"the KMS client factory made a {type(client).__name__}, which has no wrap_key or no unwrap_key")
        return client


    def _call_factory(self) -> KmsClient:
        try:
            return self._factory(self._connection)
        except ParquetError:
            raise
        except Exception as error:
            raise KeyAccessError(f"the client of the key service cannot be made: {type(error).__name__}") from error


class FileKeyWrapper:
    """Makes the key material of one file's data keys.

    Args:
        service: the key service.
        double_wrapping: wrap data keys with KEKs.
        kek_bits: length of new KEKs in bits.
        keks: KEK cache, which other files share. A rotation has its own cache.
    """

    def __init__(
        self, service: KeyService, *, double_wrapping: bool, kek_bits: int, keks: TokenCache[KeyEncryptionKey]
    ) -> None:
        self._service = service
        self._double_wrapping = double_wrapping
        self._kek_bits = kek_bits
        self._keks = keks

    def material(self, key: AesKey, master_key_id: str, is_footer_key: bool) -> tuple[KeyMaterial, KeyUse]:
        """Wrap a data key. Return its key material, and whether the service was asked or a KEK was in the cache.

        Raises:
            KeyAccessError, CryptoError: as in KeyService.wrap.
        """
        if not self._double_wrapping:
            material = self._make_material(is_footer_key, master_key_id, self._service.wrap(key, master_key_id))
            return material, KeyUse("wrap", master_key_id, self._service.client_name)
        name = (master_key_id, self._kek_bits)
        made_keks: list[str] = []
        kek = self._service.cached(self._keks, name, lambda: self._make_kek(master_key_id, made_keks))
        wrapped_dek = encode_base64(seal_key(kek.key, key, kek.identifier))
        material = self._make_material(is_footer_key, master_key_id, wrapped_dek, kek.identifier, kek.wrapped_key)
        if made_keks:
            return material, KeyUse("wrap", master_key_id, self._service.client_name)
        return material, KeyUse("cached", master_key_id)

    def _make_kek(self, master_key_id: str, made_keks: list[str]) -> KeyEncryptionKey:
        made_keks.append(master_key_id)
        key = random_key(self._kek_bits)
        return KeyEncryptionKey(key, secrets.token_bytes(KEK_ID_SIZE), self._service.wrap(key, master_key_id))

    def _make_material(
        self, is_footer_key: bool, master_key_id: str, dek: str, kek_id: bytes | None = None, kek: str | None = None
    ) -> KeyMaterial:
        service = self._service
        return KeyMaterial(is_footer_key, service.instance_id, service.instance_url, master_key_id, dek, kek_id, kek)


def _parts(items: list[T]) -> Iterator[list[T]]:
    """Yield a list in parts with at most MOST_IN_BATCH items."""
    for start in range(0, len(items), MOST_IN_BATCH):
        yield items[start : start + MOST_IN_BATCH]


def _check_text(wrapped_key: object, client: KmsClient) -> str:
    """Return a wrapped key as text, if it can be stored."""
    try:
        text = wrapped_key.decode() if isinstance(wrapped_key, bytes) else wrapped_key
        is_storable = isinstance(text, str) and len(text.encode()) > 0
    except UnicodeError:
        is_storable = False
    if not is_storable:
        raise CryptoError(f"{type(client).__name__}.wrap_key did not return text")
    return str(text)


def _call_client(operation: str, master_key_id: str, call: Callable[[], T]) -> T:
    """Call a client. Any exception but a ParquetError becomes a KeyAccessError, which does not show the exception's own text.

    PermissionError and LookupError say that the key is denied. Other errors of the operating system say that the service is
    unavailable. All others say neither, because they may be mistakes in the client. A ParquetError stays as it is.
    """
    try:
        return call()
    except ParquetError:
        raise
    except Exception as error:
        refusal = KeyAccessError(
            f"the key service did not {operation} a key with the master key {abbreviate(master_key_id)}: {type(error).__name__}"
        )
        refusal.is_denied = isinstance(error, PermissionError | LookupError)
        refusal.is_unavailable = isinstance(error, OSError) and not refusal.is_denied
        raise refusal from error


@dataclass(frozen=True)
class ServiceAccess:
    """How a reader reaches files' key services, and which names in files it trusts.

    Attributes:
        factory: makes key service clients.
        connection: how to connect. A file may name an instance or URL that is left open here.
        configuration: how long cache entries live, and what is trusted.
        caches: the CryptoFactory's caches.
    """

    factory: KmsClientFactory
    connection: KmsConnectionConfig
    configuration: DecryptionConfiguration
    caches: Caches

    def service(self, footer: KeyMaterial | None, call_time: CallTime | None) -> KeyService:
        """Return a file's key service. The caller names it, or else the material for the file's footer key names it.

        Args:
            footer: the material for the footer key, or None.
            call_time: the time for all calls for the file, or None.

        Raises:
            KeyAccessError: the file names an instance or URL that is not trusted.
        """
        file_instance, file_url = (None, None) if footer is None else (footer.kms_instance_id, footer.kms_instance_url)
        own = self.connection
        url = own.kms_instance_url or self._check_name(file_url, DEFAULT_KMS_INSTANCE_URL, "URL", "kms_instance_url")
        instance = own.kms_instance_id or self._check_name(
            file_instance, DEFAULT_KMS_INSTANCE_ID, "instance", "kms_instance_id"
        )
        return KeyService(
            self.factory, own.resolved(instance, url), self.caches, self.configuration.cache_lifetime, call_time)

    def check_master_key(self, master_key_id: str) -> None:
        """Refuse a master key that the reader does not trust.

        Raises:
            KeyAccessError: trusted_master_keys does not contain the master key.
            TypeError: trusted_master_keys is a function that returned neither True nor False.
        """
        if not self.configuration.trusts_master_key(master_key_id):
            raise KeyAccessError(
                f"the file's key is under the master key {abbreviate(master_key_id)}, which trusted_master_keys does not "
                "contain: whoever may use that master key can have written the file"
            )

    def _check_name(self, name: str | None, default: str, what: str, option: str) -> str:
        """Return a name from a file if the reader trusts it. Refuse it otherwise."""
        if name in (None, default) or self.configuration.trust_kms_url_from_file:
            return name or default
        raise KeyAccessError(
            f"the file says that the {what} of its key service is {abbreviate(str(name))}, and anybody can have written that: "
            f"give {option}, or trust_kms_url_from_file=True"
        )


class KeyServiceRetriever(KeyHolder):
    """The key retriever in decryption properties. It serves any number of files, and each gets a FileKeyUnwrapper.

    Args:
        access: how to reach key services.
        material_file: the material file, for external key material. None if the file's path is unknown.
    """

    def __init__(self, access: ServiceAccess, material_file: MaterialFile | None) -> None:
        self._access = access
        self._material_file = material_file

    def retriever_of_file(self, footer_key_metadata: bytes | None) -> FileKeyUnwrapper:
        """Return the key retriever for one file.

        Args:
            footer_key_metadata: key metadata from the file's footer, or None if the file has none.
        """
        return FileKeyUnwrapper(self._access, self._material_file, footer_key_metadata)

    def __call__(self, key_metadata: bytes) -> AesKey:
        """Return the data key for an unknown file's key metadata. Errors are as in FileKeyUnwrapper."""
        return self.retriever_of_file(key_metadata)(key_metadata)


class FileKeyUnwrapper(KeyHolder):
    """The key retriever for one file. It takes key metadata and returns data keys. Any number of threads may call it.

    Args:
        access: how to reach key services.
        material_file: the material file, for external key material. None if the file's path is unknown.
        footer_key_metadata: key metadata from the file's footer, or None. It names the key service if the caller does not.
    """

    def __init__(
        self, access: ServiceAccess, material_file: MaterialFile | None, footer_key_metadata: bytes | None
    ) -> None:
        self._access = access
        self._material_file = material_file
        self._footer_key_metadata = footer_key_metadata
        self._call_time = access.caches.calls.time_of_file()
        self._entries: dict[str, str] | None = None
        self._reading = threading.Lock()
        self.uses: dict[bytes, KeyUse] = {}     # how each key was found, by key metadata

    def __call__(self, key_metadata: bytes) -> AesKey:
        """Return the data key for key metadata.

        Raises:
            KeyAccessError: the key service did not unwrap the key, the file has names that are not trusted, or the material file
                is missing.
            FormatError, UnsupportedError, LimitError: metadata or material is malformed, or not PKMT1.
            TagVerificationError: the wrapped key was altered.
        """
        self.uses[key_metadata] = KeyUse("unwrap")
        material = self._material(key_metadata)
        self.uses[key_metadata] = KeyUse("unwrap", material.master_key_id)
        calls: list[str | None] = []
        try:
            key = self.unwrap(material, calls)
        finally:
            if calls:
                self.uses[key_metadata] = KeyUse("unwrap", material.master_key_id, calls[0])
        if not calls:
            self.uses[key_metadata] = KeyUse("cached", material.master_key_id)
        return key

    def batched(self, key_metadata: Iterable[bytes]) -> dict[bytes, Future[AesKey | None]]:
        """Unwrap keys by few calls, if the client unwraps several keys by one call. Return their futures by key metadata.

        A batch that failed is left out, so that each of its keys is asked for by itself and has its own error. If the service
        did not answer, its keys have the error.

        Args:
            key_metadata: each key's key metadata. Keys that a KEK wraps, and those under a master key that has no other, are left
                out.
        """
        wrapped_keys: defaultdict[str, dict[bytes, str]] = defaultdict(dict)
        try:
            if not self.service().has_batches:
                return {}
            for one in key_metadata:
                material = self._material(one)
                if material.kek_id is None and self._access.configuration.trusts_master_key(material.master_key_id):
                    wrapped_keys[material.master_key_id][one] = material.wrapped_dek
        except ParquetError:
            return {}       # whoever asks for the key gets the error
        batches = [
            (master_key_id, batch)
            for master_key_id, members in wrapped_keys.items()
            if len(members) > 1
            for batch in _parts(list(members.items()))
        ]
        calls = call_all(lambda number: self._unwrap_batch(*batches[number]), range(len(batches)), is_far=True)
        futures: dict[bytes, Future[AesKey | None]] = {}
        for number, call in calls.items():
            failure = call.exception()
            if failure is not None and not (isinstance(failure, KeyAccessError) and failure.is_unavailable):
                continue
            for place, (one, _) in enumerate(batches[number][1]):
                futures[one] = Future()
                if failure is None:
                    futures[one].set_result(call.result()[place])
                else:
                    futures[one].set_exception(failure)
        return futures

    def _unwrap_batch(self, master_key_id: str, batch: Sequence[tuple[bytes, str]]) -> list[AesKey]:
        service = self.service()
        try:
            return service.unwrap_batch([wrapped_key for _, wrapped_key in batch], master_key_id)
        finally:
            self.uses |= dict.fromkeys((one for one, _ in batch), KeyUse("unwrap", master_key_id, service.client_name))

    def unwrap(self, material: KeyMaterial, calls: list[str | None] | None = None) -> AesKey:
        """Return the data key in key material. Errors are as in a call.

        Args:
            material: the key material.
            calls: gets the client's class if the key service is asked.
        """
        self._access.check_master_key(material.master_key_id)
        service, calls = self.service(), [] if calls is None else calls
        wrapped_kek, kek_id, master_key_id = str(material.wrapped_kek), material.kek_id, material.master_key_id

        def unwrap_by_service(wrapped_key: str) -> AesKey:
            try:
                return service.unwrap(wrapped_key, master_key_id)
            finally:
                calls.append(service.client_name)

        if kek_id is None:
            return unwrap_by_service(material.wrapped_dek)
        kek = service.cached(
            service.caches.read_keks,
            hashlib.sha256(repr((master_key_id, kek_id, wrapped_kek)).encode()).digest(),
            lambda: unwrap_by_service(wrapped_kek),
        )
        return open_key(kek, decode_base64(material.wrapped_dek, "wrappedDEK"), kek_id)

    def service(self) -> KeyService:
        """Return the file's key service. Errors are as in ServiceAccess.service."""
        return self._access.service(self._footer, self._call_time)

    def entries(self) -> dict[str, str]:
        """Return the material file's entries, by reference. The file is read once.

        Raises:
            KeyAccessError: there is no material file, or its path is unknown.
            FormatError, LimitError: the material file is malformed, or too large.
        """
        if self._material_file is None:
            raise KeyAccessError(
                "the file's keys are in a key material file next to it: file_decryption_properties needs parquet_file_path"
            )
        with self._reading:
            if self._entries is None:
                self._entries = self._material_file.read()
            return self._entries

    @cached_property
    def _footer(self) -> KeyMaterial | None:
        """The footer key's material. None if its key metadata has another format, because the footer key is explicit."""
        if self._footer_key_metadata is None:
            return None
        try:
            return self._material(self._footer_key_metadata)
        except (FormatError, UnsupportedError):
            return None

    def _material(self, key_metadata: bytes) -> KeyMaterial:
        """Return the material for key metadata, from the metadata itself or from the material file."""
        metadata = parse_key_metadata(key_metadata)
        if isinstance(metadata, KeyMaterial):
            return metadata
        entries = self.entries()
        material = entries.get(metadata)
        if material is None:
            path = None if self._material_file is None else self._material_file.path
            raise KeyAccessError("the key material file has no entry for a key of the file", path=path)
        return parse_key_material(material)
