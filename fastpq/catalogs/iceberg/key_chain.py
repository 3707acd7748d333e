"""The chain of keys in an Iceberg table's metadata: master key, key encryption keys (KEKs), key metadata of manifest lists.

The table's property ``encryption.key-id`` names the master key in a key service. The list ``encryption-keys`` in the metadata has
two kinds of entries. A KEK is wrapped by the key service, and its property ``KEY_TIMESTAMP`` says when it was made. The key
metadata of a manifest list are encrypted by AES-GCM under a KEK, with the text of the KEK's timestamp as AAD. A snapshot's
``key-id`` names the entry of its manifest list.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Self, TypeVar

from fastpq.catalogs.iceberg.key_metadata import LARGEST_METADATA, StandardKeyMetadata
from fastpq.encryption.audit import Access, AuditLog, KeyUse, Operation, check_audit
from fastpq.encryption.evp import AesKey
from fastpq.encryption.keys.kms import KmsClient, KmsConnectionConfig
from fastpq.encryption.keys.material import abbreviate, decode_base64, encode_base64
from fastpq.encryption.keys.secret import random_key
from fastpq.encryption.keys.wrapping import Caches, KeyService
from fastpq.encryption.sealing import open_bytes, seal_bytes
from fastpq.encryption.service_calls import DEFAULT_ATTEMPTS, DEFAULT_TIMEOUT, ServiceCalls
from fastpq.encryption.tracebacks import KeyHolder, hides_arguments
from fastpq.errors import CryptoError, FormatError, KeyAccessError, ParquetError, SchemaError, TagVerificationError

T = TypeVar("T")

KEY_ID_PROPERTY = "encryption.key-id"
DATA_KEY_LENGTH_PROPERTY = "encryption.data-key-length"
TIMESTAMP_PROPERTY = "KEY_TIMESTAMP"        # of a KEK, in milliseconds since 1970 as decimal text
DEFAULT_DATA_KEY_LENGTH = 16                # in bytes
KEK_LIFETIME = timedelta(days=730)          # how long a KEK encrypts further keys (NIST SP 800-57)
ID_SIZE = 16                                # random bytes in the id of a new entry


@dataclass(frozen=True)
class EncryptedKey:
    """An entry of ``encryption-keys`` in a table's metadata. Its key is encrypted, so that the entry is not secret.

    Attributes:
        key_id: the entry's name.
        encrypted_key_metadata: the encrypted KEK, or a manifest list's encrypted key metadata.
        encrypted_by_id: the master key's or the KEK's name.
        properties: texts by name. A KEK has ``KEY_TIMESTAMP``.
    """

    key_id: str
    encrypted_key_metadata: bytes
    encrypted_by_id: str
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        """Decode an entry from the table's metadata.

        Args:
            entry: the parsed JSON object.

        Raises:
            FormatError: a member is missing, or has another type.
        """
        texts = [entry.get(name) for name in ("key-id", "encrypted-key-metadata", "encrypted-by-id")]
        properties = entry.get("properties") or {}
        if not all(isinstance(text, str) for text in texts) or not isinstance(properties, Mapping):
            raise FormatError("an entry of encryption-keys needs key-id, encrypted-key-metadata and encrypted-by-id as texts")
        if not all(isinstance(text, str) for text in (*properties, *properties.values())):
            raise FormatError("the properties in an entry of encryption-keys must be texts")
        key_id, text, encrypted_by_id = map(str, texts)
        return cls(key_id, decode_base64(text, "encrypted-key-metadata"), encrypted_by_id, dict(properties))

    def to_json(self) -> dict[str, Any]:
        """Return the entry as a JSON object for the table's metadata."""
        entry: dict[str, Any] = {
            "key-id": self.key_id,
            "encrypted-key-metadata": encode_base64(self.encrypted_key_metadata),
            "encrypted-by-id": self.encrypted_by_id,
        }
        if self.properties:
            entry["properties"] = dict(self.properties)
        return entry


class TableKeys(KeyHolder):
    """Keys of an Iceberg table: opens the key metadata of manifest lists, and encrypts those of new ones.

    The table's metadata are not authenticated. Take the master key's name from the catalog or from a place that you trust, not
    from the metadata alone: keys under any other master key are refused.

    Args:
        kms_client: client of the key service. A KEK is unwrapped once.
        master_key_id: the name of the table's master key.
        encryption_keys: the entries that the table's metadata have.
        trusted_master_keys: further master keys' names, for KEKs from a time when the table had another one.
        timeout: longest time in seconds for a call to the key service, with all its attempts. None for no limit.
        attempts: largest number of attempts for a call.
        audit: log that records each use of a KEK, with the file for which it is used.

    Attributes:
        encryption_keys: all entries, with those that were added, by key id. They belong into the table's metadata.
        master_key_id: the name of the table's master key.

    Raises:
        FormatError: two entries have one id.
        TypeError: the client does not have wrap_key and unwrap_key.
        ValueError: the master key has no name.
    """

    def __init__(
        self,
        kms_client: KmsClient,
        master_key_id: str,
        encryption_keys: Iterable[EncryptedKey] = (),
        *,
        trusted_master_keys: Iterable[str] = (),
        timeout: float | None = DEFAULT_TIMEOUT,
        attempts: int = DEFAULT_ATTEMPTS,
        audit: AuditLog | None = None,
    ) -> None:
        check_audit(audit)
        if not isinstance(kms_client, KmsClient):
            raise TypeError(f"kms_client must have wrap_key and unwrap_key: a {type(kms_client).__name__} has not")
        if not master_key_id:
            raise ValueError("master_key_id must be the name of a master key")
        self.master_key_id = master_key_id
        self.encryption_keys: dict[str, EncryptedKey] = {}
        for entry in encryption_keys:
            if entry.key_id in self.encryption_keys:
                raise FormatError(f"two entries of encryption-keys have the id {abbreviate(entry.key_id)}")
            self.encryption_keys[entry.key_id] = entry
        self._trusted_master_keys = frozenset([master_key_id, *trusted_master_keys])
        self._keks: dict[str, AesKey] = {}
        self._audit = audit
        caches = Caches(ServiceCalls(timeout, attempts))
        self._service = KeyService(lambda _: kms_client, KmsConnectionConfig().resolved(), caches, KEK_LIFETIME)

    @classmethod
    def from_metadata(
        cls, kms_client: KmsClient, metadata: Mapping[str, Any], *, master_key_id: str | None = None, **options: Any
    ) -> Self:
        """Return the keys of a table whose metadata (metadata.json) are at hand.

        Args:
            kms_client: client of the key service.
            metadata: the parsed metadata.
            master_key_id: the master key that the table must have. None trusts the metadata, which whoever writes to the
                storage can forge, unless the catalog itself keeps them.
            **options: further arguments of the class.

        Raises:
            SchemaError: the table is not encrypted.
            KeyAccessError: the table has another master key.
            FormatError: the metadata are malformed.
        """
        properties, entries = metadata.get("properties") or {}, metadata.get("encryption-keys") or []
        if not isinstance(properties, Mapping) or not isinstance(entries, list):
            raise FormatError("the table's metadata have malformed properties or encryption-keys")
        named_id = properties.get(KEY_ID_PROPERTY)
        if not isinstance(named_id, str) or not named_id:
            raise SchemaError(f"the table has no property {KEY_ID_PROPERTY}, so that it is not encrypted")
        if master_key_id not in (None, named_id):
            raise KeyAccessError(f"the table's metadata name the master key {abbreviate(named_id)}, which is not the expected")
        return cls(kms_client, named_id, map(EncryptedKey.from_json, entries), **options)

    @hides_arguments
    def open_key_metadata(self, key_id: str, *, file: str | None = None) -> StandardKeyMetadata:
        """Return a manifest list's key metadata.

        Args:
            key_id: the snapshot's ``key-id``.
            file: location of the manifest list, for the audit log.

        Raises:
            KeyAccessError: there is no such entry, the key service refused, or the KEK's master key is not trusted.
            TagVerificationError: the entry or the KEK's timestamp was altered.
            FormatError, CryptoError: the entries are malformed.
        """
        entry = self._entry(key_id, "a manifest list")
        kek_entry = self._entry(entry.encrypted_by_id, "a key encryption key")
        kek = self._kek(kek_entry, "read", file)
        if len(entry.encrypted_key_metadata) > LARGEST_METADATA:
            raise FormatError(f"encrypted key metadata have at most {LARGEST_METADATA} bytes")
        try:
            plain_metadata = open_bytes(kek, entry.encrypted_key_metadata, self._timestamp(kek_entry).encode())
        except TagVerificationError:
            raise TagVerificationError(
                f"the key metadata {abbreviate(key_id)} are not authentic: the entry or the timestamp of its key was altered"
            ) from None
        try:
            return StandardKeyMetadata.from_bytes(plain_metadata)
        finally:
            plain_metadata[:] = bytes(len(plain_metadata))

    @hides_arguments
    def add_key_metadata(self, key_metadata: StandardKeyMetadata, *, file: str | None = None) -> str:
        """Encrypt a new manifest list's key metadata, and add the entry.

        The newest KEK encrypts them, if it is not older than 730 days. Otherwise a new KEK is made, which the key service wraps.

        Args:
            key_metadata: the key metadata with the written file's length, as ``GcmStreamWriter.key_metadata`` has them.
            file: location of the manifest list, for the audit log.

        Returns:
            The new entry's id, which is the snapshot's ``key-id``.

        Raises:
            ValueError: the key metadata have no length.
            KeyAccessError: the key service refused.
        """
        if key_metadata.file_length is None:
            raise ValueError("key metadata of a manifest list need the length of the file")
        kek_entry = self._newest_kek()
        if kek_entry is None:
            kek_entry = self._recorded("wrap", "write", self.master_key_id, file, self._make_kek)
            kek = self._keks[kek_entry.key_id]
        else:
            kek = self._kek(kek_entry, "write", file)
        plain_metadata = key_metadata._serialized()
        try:
            encrypted_metadata = seal_bytes(kek, plain_metadata, self._timestamp(kek_entry).encode())
        finally:
            plain_metadata[:] = bytes(len(plain_metadata))
        return self._add(encrypted_metadata, kek_entry.key_id, {})

    def to_json(self) -> list[dict[str, Any]]:
        """Return all entries as JSON objects, for ``encryption-keys`` of the table's metadata."""
        return [entry.to_json() for entry in self.encryption_keys.values()]

    def _entry(self, key_id: str, what: str) -> EncryptedKey:
        entry = self.encryption_keys.get(key_id)
        if entry is None:
            raise KeyAccessError(f"the table's metadata have no entry {abbreviate(key_id)} with the key of {what}")
        return entry

    def _kek(self, entry: EncryptedKey, access: Access, file: str | None) -> AesKey:
        """Return a KEK, and record its use for a file."""
        operation: Operation = "cached" if entry.key_id in self._keks else "unwrap"
        return self._recorded(operation, access, entry.encrypted_by_id, file, lambda: self._unwrapped(entry))

    def _recorded(
        self, operation: Operation, access: Access, master_key_id: str, file: str | None, use: Callable[[], T]
    ) -> T:
        """Use a key, and record whether this was possible. A mandatory log that fails refuses the key."""
        try:
            result = use()
        except ParquetError as error:
            if self._audit is not None:
                self._audit.record(KeyUse(operation, master_key_id, self._service.client_name), access, file, None, error)
            raise
        if self._audit is not None:
            client_name = None if operation == "cached" else self._service.client_name
            self._audit.record(KeyUse(operation, master_key_id, client_name), access, file, None)
        return result

    def _unwrapped(self, entry: EncryptedKey) -> AesKey:
        if entry.encrypted_by_id not in self._trusted_master_keys:
            raise KeyAccessError(
                f"the key {abbreviate(entry.key_id)} is under {abbreviate(entry.encrypted_by_id)}, which is not the table's "
                "master key: whoever may use that key can have written the entry"
            )
        kek = self._keks.get(entry.key_id)
        if kek is None:
            kek = self._service.unwrap(text_of_wrapped_key(entry.encrypted_key_metadata), entry.encrypted_by_id)
            self._keks[entry.key_id] = kek
        return kek

    def _timestamp(self, entry: EncryptedKey) -> str:
        timestamp = entry.properties.get(TIMESTAMP_PROPERTY, "")
        if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 20):
            raise FormatError(f"the key {abbreviate(entry.key_id)} has no {TIMESTAMP_PROPERTY} in milliseconds")
        return timestamp

    def _newest_kek(self) -> EncryptedKey | None:
        """Return the newest KEK under the table's master key that is young enough for further keys, or None."""
        now = time.time_ns() // 1_000_000
        young_keks = [
            entry
            for entry in self.encryption_keys.values()
            if entry.encrypted_by_id == self.master_key_id
            and 0 <= now - int(self._timestamp(entry)) < KEK_LIFETIME // timedelta(milliseconds=1)
        ]
        return max(young_keks, key=lambda entry: int(self._timestamp(entry)), default=None)

    def _make_kek(self) -> EncryptedKey:
        kek = random_key(DEFAULT_DATA_KEY_LENGTH * 8)
        wrapped_key = bytes_of_wrapped_key(self._service.wrap(kek, self.master_key_id))
        timestamp = str(time.time_ns() // 1_000_000)
        key_id = self._add(wrapped_key, self.master_key_id, {TIMESTAMP_PROPERTY: timestamp})
        self._keks[key_id] = kek
        return self.encryption_keys[key_id]

    def _add(self, encrypted_metadata: bytes, encrypted_by_id: str, properties: Mapping[str, str]) -> str:
        key_id = encode_base64(secrets.token_bytes(ID_SIZE))
        self.encryption_keys[key_id] = EncryptedKey(key_id, encrypted_metadata, encrypted_by_id, properties)
        return key_id

    def __repr__(self) -> str:
        return f"<TableKeys with {len(getattr(self, 'encryption_keys', ()))} entries>"


def data_key_bits(properties: Mapping[str, str]) -> int:
    """Return how many bits new data keys have, by the table's properties.

    Raises:
        SchemaError: the property has another value than 16, 24 or 32.
    """
    length = properties.get(DATA_KEY_LENGTH_PROPERTY, str(DEFAULT_DATA_KEY_LENGTH))
    if length not in ("16", "24", "32"):
        raise SchemaError(f"{DATA_KEY_LENGTH_PROPERTY} must be 16, 24 or 32, not {abbreviate(str(length))}")
    return int(length) * 8


def text_of_wrapped_key(wrapped_key: bytes) -> str:
    """Return a wrapped key from the table's metadata as the text that a KmsClient takes.

    Printable ASCII is text of the client itself, such as Vault's ``vault:v1:...``. Other bytes become base64.
    """
    if wrapped_key and all(0x20 < byte < 0x7F for byte in wrapped_key):
        return wrapped_key.decode()
    return encode_base64(wrapped_key)


def bytes_of_wrapped_key(text: str) -> bytes:
    """Return a KmsClient's text as the bytes that the table's metadata store. ``text_of_wrapped_key`` gives the text back.

    Raises:
        CryptoError: the text cannot be stored, because it has spaces or characters outside of ASCII.
    """
    try:
        raw_key = decode_base64(text, "a wrapped key")
    except ParquetError:        # not base64, such as Vault's text
        raw_key = b""
    for candidate in (raw_key, text.encode()):
        if candidate and text_of_wrapped_key(candidate) == text:
            return candidate
    raise CryptoError("the key service's text for a wrapped key is neither base64 nor printable ASCII, and cannot be stored")
