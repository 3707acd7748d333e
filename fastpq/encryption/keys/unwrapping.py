"""Unwrapping of the data keys of stored files, by key services as the caller names them, or as a trusted file names them."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

from fastpq.encryption.evp import AesKey
from fastpq.encryption.keys.configuration import DecryptionConfiguration
from fastpq.encryption.keys.kms import (
    DEFAULT_KMS_INSTANCE_ID,
    DEFAULT_KMS_INSTANCE_URL,
    KmsClientFactory,
    KmsConnectionConfig,
)
from fastpq.encryption.keys.material import (
    FOOTER_REFERENCE,
    KeyMaterial,
    decode_base64,
    parse_key_material,
    parse_key_metadata,
    shown,
)
from fastpq.encryption.keys.secret import open_key
from fastpq.encryption.keys.store import MaterialFile
from fastpq.encryption.keys.wrapping import Caches, KeyService
from fastpq.errors import FormatError, KeyAccessError, UnsupportedError


@dataclass(frozen=True)
class ServiceAccess:
    """How a reader reaches the key services of files, and the trust in names from files.

    Attributes:
        factory: makes clients of key services.
        connection: how to connect; a file may name an instance or URL left open here.
        configuration: lifetime of cache entries, and trust.
        caches: caches of the CryptoFactory.
    """

    factory: KmsClientFactory
    connection: KmsConnectionConfig
    configuration: DecryptionConfiguration
    caches: Caches

    def service(self, footer: KeyMaterial | None) -> KeyService:
        """The key service of a file: as named by the caller, or else by the material of the file's footer key.

        Raises:
            KeyAccessError: the instance or the URL named by the file is not trusted.
        """
        named_id, named_url = (None, None) if footer is None else (footer.kms_instance_id, footer.kms_instance_url)
        own = self.connection
        url = own.kms_instance_url or self._trusted(named_url, DEFAULT_KMS_INSTANCE_URL, "URL", "kms_instance_url")
        instance = own.kms_instance_id or self._trusted(named_id, DEFAULT_KMS_INSTANCE_ID, "instance", "kms_instance_id")
        return KeyService(self.factory, own.resolved(instance, url), self.caches, self.configuration.cache_lifetime)

    def check_master_key(self, master_key_id: str) -> None:
        """Refuse master keys that a reader does not trust.

        Raises:
            KeyAccessError: the master key is none of the trusted ones.
            TypeError: the function for trusted_master_keys returned neither True nor False.
        """
        if not self.configuration.trusts_master_key(master_key_id):
            raise KeyAccessError(
                f"the file's key is under the master key {shown(master_key_id)}, none of trusted_master_keys: whoever may "
                "use that master key can have written the file"
            )

    def _trusted(self, named: str | None, default: str, what: str, option: str) -> str:
        """A name from a file, if trusted."""
        if named in (None, default) or self.configuration.trust_kms_url_from_file:
            return named or default
        raise KeyAccessError(
            f"the file says that the {what} of its key service is {shown(str(named))}, and anybody can have written that: "
            f"give {option}, or trust_kms_url_from_file=True"
        )


class KeyServiceRetriever:
    """The key retriever of decryption properties, for any number of files: each file has a FileKeyUnwrapper.

    Args:
        access: how to reach key services.
        material_file: the material file, for external key material; None if the path of the file is unknown.
    """

    def __init__(self, access: ServiceAccess, material_file: MaterialFile | None) -> None:
        self._access = access
        self._material_file = material_file

    def retriever_of_file(self, footer_key_metadata: bytes | None) -> FileKeyUnwrapper:
        """The key retriever of one file.

        Args:
            footer_key_metadata: key metadata of the file's footer; None if the file has none.
        """
        return FileKeyUnwrapper(self._access, self._material_file, footer_key_metadata)

    def __call__(self, key_metadata: bytes) -> AesKey:
        """The data key for key metadata of an unknown file; raises as FileKeyUnwrapper."""
        return self.retriever_of_file(key_metadata)(key_metadata)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a KeyServiceRetriever has access to keys and cannot be copied or pickled")


class FileKeyUnwrapper:
    """The key retriever of one file: data keys from key metadata; any number of threads may call an unwrapper.

    Args:
        access: how to reach key services.
        material_file: the material file, for external key material; None if the path of the file is unknown.
        footer_key_metadata: key metadata of the file's footer, to name the key service if the caller does not; or None.
    """

    def __init__(
        self, access: ServiceAccess, material_file: MaterialFile | None, footer_key_metadata: bytes | None
    ) -> None:
        self._access = access
        self._material_file = material_file
        self._footer_key_metadata = footer_key_metadata
        self._entries: dict[str, str] | None = None
        self._reading = threading.Lock()

    def __call__(self, key_metadata: bytes) -> AesKey:
        """The data key for key metadata.

        Raises:
            KeyAccessError: the key service does not unwrap the key, the file's names are not trusted, or the material file is
                missing.
            FormatError, UnsupportedError, LimitError: metadata or material are malformed, or not PKMT1.
            TagVerificationError: the wrapped key was altered.
        """
        return self.unwrap(self._material(key_metadata))

    def unwrap(self, material: KeyMaterial) -> AesKey:
        """The data key of key material; raises as a call."""
        self._access.check_master_key(material.master_key_id)
        service = self.service()
        if material.kek_id is None:
            return service.unwrap(material.wrapped_dek, material.master_key_id)
        wrapped_kek, kek_id, master_key_id = str(material.wrapped_kek), material.kek_id, material.master_key_id
        kek = service.cached(
            service.caches.read_keks,
            hashlib.sha256(repr((master_key_id, kek_id, wrapped_kek)).encode()).digest(),
            lambda: service.unwrap(wrapped_kek, master_key_id),
        )
        return open_key(kek, decode_base64(material.wrapped_dek, "wrappedDEK"), kek_id)

    def service(self) -> KeyService:
        """The key service of the file; raises as ServiceAccess.service."""
        return self._access.service(self._footer)

    def entries(self) -> dict[str, str]:
        """The entries of the material file by reference, read once.

        Raises:
            KeyAccessError: there is no material file, or its path is unknown.
            FormatError, LimitError: the material file is malformed, or too large.
        """
        if self._material_file is None:
            raise KeyAccessError(
                "the file's keys are in a key material file beside it: file_decryption_properties needs parquet_file_path"
            )
        with self._reading:
            if self._entries is None:
                self._entries = self._material_file.read()
            return self._entries

    @cached_property
    def _footer(self) -> KeyMaterial | None:
        """The material of the footer key; None if the footer has key metadata of another kind, of an explicit key."""
        if self._footer_key_metadata is None:
            return None
        try:
            return self._material(self._footer_key_metadata, FOOTER_REFERENCE)
        except (FormatError, UnsupportedError):
            return None

    def _material(self, key_metadata: bytes, reference: str | None = None) -> KeyMaterial:
        """The material for key metadata; from a material file the entry of a reference, or else the entry named."""
        metadata = parse_key_metadata(key_metadata)
        if isinstance(metadata, KeyMaterial):
            return metadata
        entries = self.entries()
        material = entries.get(reference or metadata)
        if material is None:
            path = None if self._material_file is None else self._material_file.path
            raise KeyAccessError("the key material file has no entry for a key of the file", path=path)
        return parse_key_material(material)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a FileKeyUnwrapper has access to keys and cannot be copied or pickled")
