"""EncryptingJob and DecryptingJob: they encrypt and decrypt all files in a folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fastpq.api.functions import read_metadata
from fastpq.datasets.discovery import DataFile
from fastpq.datasets.folder_job import Folder, FolderJob, JobOptions, PlannedChange, remove_checksum
from fastpq.datasets.job_journal import version_as_text, was_encrypting
from fastpq.datasets.keys_of_files import (
    DatasetDecryption,
    DatasetEncryption,
    check_dataset_keys,
    check_names,
    decryption_of,
    encryption_by_path,
)
from fastpq.encryption.dataset_properties import DatasetDecryptionProperties, DatasetEncryptionProperties
from fastpq.encryption.keys.store import MaterialFile, MaterialPath
from fastpq.encryption.properties import FileDecryptionProperties
from fastpq.errors import CryptoError, KeyAccessError, SchemaError
from fastpq.rewriting.files import decrypt_file
from fastpq.rewriting.report import RewritingReport

_SIDE_BY_SIDE = (
    "plaintext and encrypted files stand side by side, and no interrupted job explains it: a file may have been put in the place "
    "of another one (allow_plaintext_files=True goes on)"
)
_ALL_PLAINTEXT = (
    "all files are plaintext: they were never encrypted, or an earlier call has decrypted them, or somebody has replaced them "
    "(allow_plaintext_files=True reports them as unchanged)"
)
_HALF_ENCRYPTED = (
    "an interrupted encrypt_dataset has left plaintext and encrypted files: call it again to encrypt the rest "
    "(allow_plaintext_files=True decrypts the others instead)"
)


class EncryptingJob(FolderJob):
    verb, hides = "encrypt", True

    def __init__(
        self, folder: Folder, options: JobOptions, encryption: DatasetEncryption, decryption: DatasetDecryption
    ) -> None:
        super().__init__(folder, options)
        if encryption is None:
            raise TypeError("encryption_properties are missing")
        check_dataset_keys(encryption, "encryption_properties")
        check_dataset_keys(decryption, "decryption_properties")
        check_names(encryption, folder.files)
        self._encryption, self._decryption = encryption, decryption
        self._keys_of = encryption_by_path(encryption, folder.partition_names, folder.place)

    def _plans(self, plaintext_files: list[DataFile], encrypted_files: list[DataFile]) -> Iterator[PlannedChange]:
        if plaintext_files and encrypted_files and not self._options.allow_plaintext_files:
            self._resume(plaintext_files)
        for file in encrypted_files:
            yield PlannedChange(file, "was encrypted before")
        for file in plaintext_files:
            yield PlannedChange(file, "plaintext becomes encrypted", lambda file=file: self._encrypt(file))     # type: ignore[misc]

    def _resume(self, plaintext_files: Sequence[DataFile]) -> None:
        """Refuse plaintext files that an interrupted job has not listed, or that were changed since.

        Raises:
            CryptoError: there is such a file.
        """
        entries = self._journal.read(self._journal_keys())
        if entries is None or not any(self._journal.name_of(file) in entries for file in plaintext_files):     # or it has ended
            raise CryptoError(_SIDE_BY_SIDE, path=plaintext_files[0].path)
        for file in plaintext_files:
            if not self._journal.has_unchanged(file, entries):
                raise CryptoError(
                    "the plaintext file is new, or was changed, since an interrupted job began: it may have been put in the "
                    "place of an encrypted one (allow_plaintext_files=True encrypts it)", path=file.path)
        self.is_resumed = True

    def _journal_keys(self) -> FileDecryptionProperties:
        """Return keys that open the journal of an interrupted job."""
        where, keys = self._journal.where, self._decryption
        if keys is None and isinstance(self._encryption, DatasetEncryptionProperties):
            keys = self._encryption._reader
        if isinstance(keys, DatasetDecryptionProperties):
            return keys.without_prefix(where)
        if isinstance(keys, FileDecryptionProperties):
            return keys
        opening_keys = None if keys is None else keys(self._journal.path)
        if opening_keys is not None:
            return opening_keys
        own_keys = self._keys_of(self._journal.path)
        return FileDecryptionProperties() if own_keys is None else FileDecryptionProperties(own_keys.footer_key)

    def _begin(self, plans: Sequence[PlannedChange]) -> None:
        sample = self._keys_of(self._journal.path)
        if sample is None:
            raise SchemaError("there are no keys for the files", path=self._journal.path)
        files = [plan.file for plan in plans if plan.change is not None]
        for file in files:
            paths = read_metadata(file.where, properties=self._options.properties).schema.paths
            if unknown_paths := sample.column_keys.unknown_paths(paths):
                raise SchemaError(f"keys for columns that the file does not have: {', '.join(unknown_paths)}", path=file.path)
            if unknown_paths := sample.plaintext_columns.unknown_paths(paths):
                raise SchemaError(f"plaintext_columns that the file does not have: {', '.join(unknown_paths)}", path=file.path)
            try:
                sample.check_listed(paths)
            except SchemaError as error:
                raise error.at(path=file.path) from None
        self._journal.write({self._journal.name_of(file): version_as_text(file) or "" for file in files}, sample)
        self._folder.remove_metadata()

    def _encrypt(self, file: DataFile) -> RewritingReport:
        keys = self._keys_of(file.path)
        if keys is None:        # a function of the caller
            raise KeyAccessError("there are no keys for the file")
        return self._encrypt_again(file, keys, None, None)


class DecryptingJob(FolderJob):
    verb = "decrypt"

    def __init__(self, folder: Folder, options: JobOptions, decryption: DatasetDecryption) -> None:
        super().__init__(folder, options)
        if decryption is None:
            raise TypeError("decryption_properties are missing")
        check_dataset_keys(decryption, "decryption_properties")
        check_names(decryption, folder.files)
        self._decryption = decryption
        self._entries: dict[str, str] = {}      # the files of an interrupted job

    def _plans(self, plaintext_files: list[DataFile], encrypted_files: list[DataFile]) -> Iterator[PlannedChange]:
        self._entries = self._journal.read(None) or {}
        self.is_resumed = any(self._is_listed(file) for file in plaintext_files)
        for file in plaintext_files:
            if not self._is_listed(file) and not self._options.allow_plaintext_files:
                if not encrypted_files:
                    raise CryptoError(_ALL_PLAINTEXT, path=file.path)
                is_explained = was_encrypting(self._folder.place, self._decryption, plaintext_files)
                raise CryptoError(_HALF_ENCRYPTED if is_explained else _SIDE_BY_SIDE, path=file.path)
        for file in plaintext_files:
            yield PlannedChange(file, "was plaintext before")
        for file in encrypted_files:
            # wrong keys and exchanged files are refused before the journal is written, which lets plaintext files pass
            read_metadata(file.where, decryption_properties=self._keys_for(file), properties=self._options.properties)
            yield PlannedChange(file, "encrypted becomes plaintext", lambda file=file: self._decrypt(file))     # type: ignore[misc]

    def _begin(self, plans: Sequence[PlannedChange]) -> None:
        encrypted_files = {self._journal.name_of(plan.file): "" for plan in plans if plan.change is not None}
        self._journal.write(self._entries | encrypted_files, None)

    def _end(self, plans: Sequence[PlannedChange]) -> None:
        # a killed job may have decrypted a file, and left its keys
        for plan in plans:
            if plan.change is None and self._is_listed(plan.file):
                MaterialFile(MaterialPath(plan.file.where)).remove()

    def _is_listed(self, file: DataFile) -> bool:
        return self._journal.name_of(file) in self._entries

    def _keys_for(self, file: DataFile) -> FileDecryptionProperties:
        keys = decryption_of(self._decryption, file)
        if keys is None:
            raise KeyAccessError("there are no keys for the file", path=file.path)
        return keys

    def _decrypt(self, file: DataFile) -> RewritingReport:
        keys = self._keys_for(file)
        remove_checksum(file)
        report = decrypt_file(file.where, file.where, keys, properties=self._options.properties)
        MaterialFile(MaterialPath(file.where)).remove()
        return report
