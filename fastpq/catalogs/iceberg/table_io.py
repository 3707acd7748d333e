"""PyIceberg tables whose manifests and manifest lists are encrypted: a FileIO that opens them with a key service."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Mapping
from typing import Any

from fastpq.catalogs.iceberg.gcm_streams import GcmStreamReader
from fastpq.catalogs.iceberg.key_chain import TableKeys
from fastpq.catalogs.iceberg.key_metadata import StandardKeyMetadata
from fastpq.common.lazy import package
from fastpq.encryption.audit import AuditLog
from fastpq.encryption.keys.kms import KmsClient
from fastpq.encryption.service_calls import DEFAULT_ATTEMPTS, DEFAULT_TIMEOUT
from fastpq.encryption.tracebacks import KeyHolder, hides_arguments
from fastpq.errors import FormatError, KeyAccessError, ParquetError


def open_encrypted_table(
    table: Any,
    kms_client: KmsClient,
    *,
    master_key_id: str | None = None,
    require_length: bool = True,
    timeout: float | None = DEFAULT_TIMEOUT,
    attempts: int = DEFAULT_ATTEMPTS,
    audit: AuditLog | None = None,
) -> Any:
    """Return a PyIceberg table whose encrypted manifests can be read. ``read_scan`` then reads its scans.

    The table's metadata (metadata.json) are not encrypted, and nothing authenticates them: whoever can replace them, and may use
    the master key, can show another table. The catalog must protect them.

    Args:
        table: a Table that a PyIceberg catalog or ``StaticTable.from_metadata`` has loaded.
        kms_client: client of the key service. It is asked when a scan is planned, once for each KEK.
        master_key_id: the master key that the table must have. None trusts the table's metadata.
        require_length: whether manifests and manifest lists must have their length in the key metadata.
        timeout: longest time in seconds for a call to the key service, with all its attempts. None for no limit.
        attempts: largest number of attempts for a call.
        audit: log that records each use of a KEK, with the manifest list for which it is used.

    Returns:
        A copy of the table. It cannot be pickled. Its manifests are decrypted in memory.

    Raises:
        SchemaError: the table is not encrypted.
        KeyAccessError: the table has another master key.
        FormatError: the table's metadata are malformed.
        UnsupportedError: PyIceberg is not installed.
    """
    package("pyiceberg", "an encrypted Iceberg table")
    metadata = _table_metadata(table)
    limits = {"timeout": timeout, "attempts": attempts}
    keys = TableKeys.from_metadata(kms_client, metadata, master_key_id=master_key_id, audit=audit, **limits)
    snapshots = metadata.get("snapshots") or []
    try:
        key_ids = {snapshot["manifest-list"]: snapshot.get("key-id") for snapshot in snapshots}
    except (KeyError, TypeError):
        raise FormatError("a snapshot in the table's metadata has no manifest list") from None
    readable_table = copy.copy(table)
    readable_table.io = EncryptedTableIO(table.io, keys, key_ids, require_length=require_length)
    return readable_table


def _table_metadata(table: Any) -> Mapping[str, Any]:
    """Return the parsed metadata.json, in which PyIceberg does not look for keys."""
    from pyiceberg.serializers import Compressor

    location = table.metadata_location
    with table.io.new_input(location).open() as file, Compressor.get_compressor(location).stream_decompressor(file) as stream:
        data = stream.read()
    try:
        metadata = json.loads(data)
    except (ValueError, RecursionError):
        raise FormatError("the table's metadata are not JSON", path=location) from None
    if not isinstance(metadata, dict):
        raise FormatError("the table's metadata are not a JSON object", path=location)
    return metadata


class EncryptedTableIO(KeyHolder):
    """A PyIceberg FileIO that decrypts a table's manifests and manifest lists. Other files are passed on as they are.

    Args:
        inner: the table's own FileIO.
        keys: the table's keys.
        key_ids: the ``key-id`` of each manifest list by location, or None for one without.
        require_length: whether the streams must have their length in the key metadata.

    Attributes:
        inner: the table's own FileIO.
        properties: its properties.
    """

    def __init__(self, inner: Any, keys: TableKeys, key_ids: Mapping[str, str | None], *, require_length: bool = True) -> None:
        self.inner = inner
        self.properties = inner.properties
        self._keys, self._key_ids, self._require_length = keys, key_ids, require_length
        self._manifest_keys: dict[str, StandardKeyMetadata] = {}

    def new_input(self, location: str) -> Any:
        """Return a PyIceberg InputFile. One for a manifest or a manifest list gives the plaintext.

        Args:
            location: the file's location.

        Raises:
            KeyAccessError: the snapshot of a manifest list has no key, or the key cannot be had.
        """
        file = self.inner.new_input(location)
        if location in self._key_ids:
            return DecryptedInput(file, self._manifest_list)
        if location in self._manifest_keys:
            return DecryptedInput(file, self._manifest)
        return file

    def new_output(self, location: str) -> Any:
        """Return an OutputFile of the table's own FileIO.

        Args:
            location: the file's location.
        """
        return self.inner.new_output(location)

    def delete(self, location: Any) -> None:
        """Delete a file.

        Args:
            location: the file's location, or an input or output file.
        """
        self.inner.delete(location)

    @hides_arguments
    def _manifest_list(self, file: Any) -> bytes:
        """Return a manifest list's plaintext, and keep the key metadata that it has for manifests."""
        key_id = self._key_ids[file.location]
        if key_id is None:
            raise KeyAccessError("the table is encrypted, but the snapshot has no key for its manifest list", path=file.location)
        plain_list = self._decrypt(file, self._keys.open_key_metadata(key_id, file=file.location))
        self._manifest_keys.update(_keys_of_manifests(plain_list, file.location))
        return plain_list

    @hides_arguments
    def _manifest(self, file: Any) -> bytes:
        return self._decrypt(file, self._manifest_keys[file.location])

    def _decrypt(self, file: Any, key_metadata: StandardKeyMetadata) -> bytes:
        try:
            with file.open() as stored_file:
                with GcmStreamReader(stored_file, key_metadata, require_length=self._require_length) as stream:
                    return stream.read()
        except ParquetError as error:
            error.context.pop("path", None)
            error.at(path=file.location)
            raise


def _keys_of_manifests(plain_list: bytes, location: str) -> dict[str, StandardKeyMetadata]:
    """Return each manifest's key metadata in a manifest list, by location."""
    from pyiceberg.manifest import read_manifest_list

    keys = {}
    for manifest in read_manifest_list(DecryptedInput(_NoFile(location), lambda _: plain_list)):
        if manifest.key_metadata is None:
            raise KeyAccessError("the table is encrypted, but a manifest in this list has no key metadata", path=location)
        keys[manifest.manifest_path] = StandardKeyMetadata.from_bytes(manifest.key_metadata)
    return keys


class DecryptedInput:
    """A PyIceberg InputFile over an encrypted file. It is decrypted when it is opened.

    Args:
        file: the InputFile with the stored bytes.
        decrypt: function from this InputFile to the plaintext.

    Attributes:
        location: the file's location.
    """

    def __init__(self, file: Any, decrypt: Any) -> None:
        self._file, self._decrypt = file, decrypt
        self.location: str = file.location

    def __len__(self) -> int:
        return len(self._decrypt(self._file))

    def exists(self) -> bool:
        """Return whether the file exists."""
        return bool(self._file.exists())

    def open(self, seekable: bool = True) -> io.BytesIO:
        """Return the plaintext as a binary file.

        Args:
            seekable: without effect, since every file is in memory.
        """
        return io.BytesIO(self._decrypt(self._file))


class _NoFile:
    """Stands for the file of a manifest list that was decrypted already.

    Args:
        location: its location.
    """

    def __init__(self, location: str) -> None:
        self.location = location
