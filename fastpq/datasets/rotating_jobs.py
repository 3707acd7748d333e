"""RotatingJob and RevokingJob: they put all files in a folder under other keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fastpq.datasets.discovery import DataFile
from fastpq.datasets.folder_job import Folder, FolderJob, JobOptions, PlannedChange
from fastpq.datasets.job_journal import JobJournal, was_encrypting
from fastpq.datasets.keys_of_files import (
    DatasetDecryption,
    DatasetEncryption,
    check_dataset_keys,
    check_names,
    decryption_of,
    encryption_by_path,
)
from fastpq.encryption.dataset_properties import DatasetDecryptionProperties
from fastpq.encryption.keys.cache import TokenCache
from fastpq.encryption.keys.factory import DatasetService
from fastpq.encryption.keys.store import MaterialPath
from fastpq.encryption.keys.wrapping import KeyEncryptionKey
from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.errors import CryptoError, KeyAccessError, ParquetError, SchemaError
from fastpq.rewriting.renewed_keys import PresentKeys
from fastpq.rewriting.report import RewritingReport


class RotatingJob(FolderJob):
    verb = "rotate"

    def __init__(
        self,
        folder: Folder,
        options: JobOptions,
        decryption: DatasetDecryption,
        encryption: DatasetEncryption,
        new_data_keys: bool,
    ) -> None:
        super().__init__(folder, options)
        if decryption is None:
            raise TypeError("decryption_properties are missing")
        check_dataset_keys(decryption, "decryption_properties")
        check_dataset_keys(encryption, "encryption_properties")
        check_names(decryption, folder.files)
        check_names(encryption, folder.files)
        self._decryption, self._new_data_keys = decryption, new_data_keys
        self._keks: TokenCache[KeyEncryptionKey] = TokenCache()     # wrap the data keys of all files
        self._service = None if encryption is not None else trusting_service_of(decryption)
        self._keys_of = encryption_by_path(encryption, folder.partition_names, folder.place)

    def _plans(self, plaintext_files: list[DataFile], encrypted_files: list[DataFile]) -> Iterator[PlannedChange]:
        yield from _skipped(self._folder, plaintext_files, self._decryption, self._options)
        entries = self._entries() if encrypted_files else None
        self.is_resumed = entries is not None
        plans = list(self._plans_after(entries, encrypted_files))
        if entries is not None and not any(plan.change for plan in plans if self._journal.name_of(plan.file) in entries):
            # The job has ended: it had only to remove its journal, or somebody has put back the journal of an earlier rotation.
            # Files that came later are not in the journal.
            self.is_resumed = False
            plans = list(self._plans_after(None, encrypted_files))
        yield from plans

    def _plans_after(self, entries: dict[str, str] | None, encrypted_files: list[DataFile]) -> Iterator[PlannedChange]:
        """Yield what is to do with each encrypted file, after a job that had these entries in its journal."""
        targets = self._keys_of(self._journal.path) if entries is not None and self._service is None else None
        for file in encrypted_files:
            present = _present_keys(file, self._decryption, self._options)
            if self._service is not None and present.generation is not None and not self._new_data_keys:
                yield PlannedChange(file, "external keys are wrapped again", lambda file=file: self._wrap_again(file))  # type: ignore[misc]
                continue
            started = (entries or {}).get(self._journal.name_of(file))
            is_rotated = started is not None and started != present.file_unique.hex()
            # the interrupted job may have had other new keys
            if is_rotated and (targets is None or present.is_under(targets, self._journal.where)):
                yield PlannedChange(file, "was rotated before")
            else:
                yield PlannedChange(file, "new data keys", lambda file=file: self._rotate(file))   # type: ignore[misc]

    def _entries(self) -> dict[str, str] | None:
        """Return the journal of an interrupted job. One in plaintext, which anybody can write, is never believed."""
        keys = _without_prefix(self._decryption, self._journal)
        return None if keys is None else self._journal.read(keys)

    def _begin(self, plans: Sequence[PlannedChange]) -> None:
        if self._service is not None:
            self._service.forget_write_keys()
        if self.is_resumed:
            return
        files = [plan.file for plan in plans if plan.reason == "new data keys"]
        if not files:
            return
        identifiers = {
            self._journal.name_of(file): _present_keys(file, self._decryption, self._options).file_unique.hex() for file in files
        }
        self._journal.write(identifiers, self._seal(files[0]))

    def _seal(self, file: DataFile) -> FileEncryptionProperties | None:
        """Return keys for the journal, which ``decryption_properties`` open."""
        if self._service is None:
            return self._keys_of(self._journal.path)
        present = _present_keys(file, self._decryption, self._options)
        return present.renewed(self._journal.where, self._service.factory, self._service.connection)

    def _wrap_again(self, file: DataFile) -> None:
        assert self._service is not None
        present = _present_keys(file, self._decryption, self._options)
        self._service.rotate_file(
            MaterialPath(file.where), self._keks, double_wrapping=present.materials[()].kek_id is not None,
            generation=present.generation or "")

    def _rotate(self, file: DataFile) -> RewritingReport:
        present = _present_keys(file, self._decryption, self._options)
        if self._service is None:
            keys = self._keys_of(file.path)
            if keys is None:
                raise KeyAccessError("there are no new keys for the file")
        else:
            keys = present.renewed(file.where, self._service.factory, self._service.connection)
        return self._encrypt_again(file, keys, decryption_of(self._decryption, file), present.generation)


class RevokingJob(FolderJob):
    verb = "revoke"

    def __init__(
        self,
        folder: Folder,
        options: JobOptions,
        decryption: DatasetDecryptionProperties,
        columns: Sequence[str | tuple[str, ...]],
        master_key: str,
    ) -> None:
        super().__init__(folder, options)
        check_dataset_keys(decryption, "decryption_properties")
        check_names(decryption, folder.files)
        if isinstance(columns, str) or not columns:
            raise SchemaError("columns must be a list of column paths, and not empty")
        for column in columns:
            name = column if isinstance(column, str) else ".".join(column)
            if name in folder.partition_names:
                raise SchemaError("a partition column cannot be revoked: its values are in the paths, in plaintext", column=name)
        self._decryption, self._columns, self._master_key = decryption, columns, master_key
        self._service = trusting_service_of(decryption)
        if not self._service.configuration.trusts_master_key(master_key):
            raise SchemaError("the new master key is not among trusted_master_keys, so that nobody could open the new files")

    def _plans(self, plaintext_files: list[DataFile], encrypted_files: list[DataFile]) -> Iterator[PlannedChange]:
        yield from _skipped(self._folder, plaintext_files, self._decryption, self._options)
        missing_columns = {column if isinstance(column, str) else ".".join(column) for column in self._columns}
        for file in encrypted_files:
            present = _present_keys(file, self._decryption, self._options)
            if () not in present.materials:
                raise KeyAccessError("the file's keys are not wrapped by a key service", path=file.path)
            missing_columns -= {".".join(path[:size]) for path in present.paths for size in range(1, len(path) + 1)}
            paths = present.covered_paths(self._columns)
            if not paths:
                yield PlannedChange(file, "has none of the columns")
            elif all(present.master_key_of(path) == self._master_key for path in paths):
                yield PlannedChange(file, "its columns are under the new master key")
            else:
                yield PlannedChange(file, "new data keys and a new master key", lambda file=file: self._revoke(file))   # type: ignore[misc]
        if missing_columns:
            raise SchemaError(f"no file has the columns {', '.join(sorted(missing_columns))}")

    def _begin(self, plans: Sequence[PlannedChange]) -> None:
        self.is_resumed = any(plan.reason == "its columns are under the new master key" for plan in plans)
        self._service.forget_write_keys()

    def _revoke(self, file: DataFile) -> RewritingReport:
        present = _present_keys(file, self._decryption, self._options)
        new_master_keys = dict.fromkeys(present.covered_paths(self._columns), self._master_key)
        keys = present.renewed(file.where, self._service.factory, self._service.connection, new_master_keys)
        return self._encrypt_again(file, keys, decryption_of(self._decryption, file), present.generation)


def trusting_service_of(keys: DatasetDecryption) -> DatasetService:
    """Return the key service behind a dataset's keys.

    Raises:
        SchemaError: there is none, or it trusts all master keys that files name.
    """
    service = keys.service if isinstance(keys, DatasetDecryptionProperties) else None
    if not isinstance(service, DatasetService):
        raise SchemaError(
            "the keys come from no key service: make decryption_properties by CryptoFactory.dataset_decryption_properties, or "
            "give rotate_dataset encryption_properties")
    if service.configuration.trusted_master_keys is None:
        raise SchemaError(
            "files name their master keys themselves, and anybody can have written the names: list the right ones in "
            "DecryptionConfiguration(trusted_master_keys=...)")
    return service


def _skipped(
    folder: Folder, plaintext_files: Sequence[DataFile], keys: DatasetDecryption, options: JobOptions
) -> Iterator[PlannedChange]:
    """Yield plans that leave plaintext files as they are.

    Raises:
        CryptoError: they are not allowed.
    """
    for file in plaintext_files:
        if not options.allow_plaintext_files:
            if was_encrypting(folder.place, keys, plaintext_files):
                raise CryptoError(
                    "an interrupted encrypt_dataset has left the file in plaintext: call encrypt_dataset again before this "
                    "(allow_plaintext_files=True skips the file)", path=file.path)
            raise CryptoError(
                "the file is plaintext, and may have been put in the place of an encrypted one (allow_plaintext_files=True skips "
                "it)", path=file.path)
        yield PlannedChange(file, "plaintext")


def _without_prefix(keys: DatasetDecryption, journal: JobJournal) -> FileDecryptionProperties | None:
    if isinstance(keys, DatasetDecryptionProperties):
        return keys.without_prefix(journal.where)
    return keys if keys is None or isinstance(keys, FileDecryptionProperties) else keys(journal.path)


def _present_keys(file: DataFile, keys: DatasetDecryption, options: JobOptions) -> PresentKeys:
    try:
        return PresentKeys.of(file.where, decryption_of(keys, file), options.properties)
    except ParquetError as error:
        raise error.at(path=file.path) from None
