"""JobJournal: the state of a folder when a job over its files began, so that an interrupted job can go on."""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Iterable, Mapping

from fastpq.api.functions import read_table, write_table
from fastpq.datasets.discovery import DataFile
from fastpq.encryption.dataset_properties import DatasetDecryptionProperties
from fastpq.encryption.keys.store import MaterialFile, MaterialPath
from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.errors import ParquetError
from fastpq.io.location import Remote, RemotePath

NAME = "_fastpq_job.parquet"        # readers of datasets skip names that begin with an underscore
COLUMN = "fastpq:job"               # its only column: a JSON object for each file
# The beginning of a journal's AAD prefix. No prefix of a table has a space, so a data file never passes for a journal.
PREFIX = "fastpq job|"


class JobJournal:
    """A small file in the dataset's folder, with one entry for each file that a job began with.

    It is written once, before the first data file is replaced, and removed at the end. With keys it is encrypted: whoever has no
    key cannot make the job trust other files.

    Args:
        root: the dataset's folder, a local path or a place on a filesystem.
        verb: what the job does. A journal of another job is never used.
    """

    def __init__(self, root: str | Remote, verb: str) -> None:
        self.where: str | RemotePath
        if isinstance(root, Remote):
            self.where = RemotePath(root.filesystem, f"{root.path.rstrip('/')}/{NAME}")
        else:
            self.where = posixpath.join(root, NAME)
        self._verb = verb

    @property
    def path(self) -> str:
        return self.where if isinstance(self.where, str) else self.where.path

    def write(self, entries: Mapping[str, str], keys: FileEncryptionProperties | None) -> None:
        """Write the journal.

        Args:
            entries: a text for each file, by ``name_of``.
            keys: keys of a data file for this path. None leaves the journal in plaintext.
        """
        if isinstance(self.where, str) and os.path.islink(self.where):
            os.unlink(self.where)       # whoever planted the link must not choose which file is overwritten
        rows = [json.dumps([self._verb, name, text]) for name, text in entries.items()]
        journal_keys = None
        if keys is not None:
            journal_keys = keys.with_columns({}, unlisted="footer_key", aad_prefix=self._prefix, store_aad_prefix=False)
            journal_keys.algorithm, journal_keys.plaintext_footer = "AES_GCM_V1", False
        write_table({COLUMN: rows}, self.where, encryption_properties=journal_keys, schema={COLUMN: "string"})

    def read(self, keys: FileDecryptionProperties | None) -> dict[str, str] | None:
        """Return the entries, by ``name_of``. None without a journal that these keys open and that belongs to this job.

        Args:
            keys: keys of a data file for this path. None accepts a plaintext journal.
        """
        try:
            reading_keys = None if keys is None else keys.for_journal(self._prefix)
            table = read_table(self.where, [COLUMN], decryption_properties=reading_keys)
            rows = [json.loads(row) for row in table[COLUMN].to_pylist()]
            entries = {name: text for verb, name, text in rows if verb == self._verb}
            return entries if len(entries) == len(rows) else None
        except (ParquetError, FileNotFoundError, ValueError, TypeError, KeyError, RecursionError):
            return None

    def remove(self) -> None:
        """Remove the journal, if it exists."""
        place = MaterialPath(self.where)
        place.remove()
        MaterialFile(place).remove()

    def name_of(self, file: DataFile) -> str:
        """Return the file's path below the folder. It stays the same if a second call spells the folder differently."""
        root = posixpath.dirname(self.path)
        return posixpath.relpath(file.path, root) if isinstance(file.where, RemotePath) else os.path.relpath(file.path, root)

    def has_unchanged(self, file: DataFile, entries: Mapping[str, str]) -> bool:
        """Return whether the entries of an ``encrypt`` job list a file with the version that it has now."""
        version = version_as_text(file)
        return version is not None and entries.get(self.name_of(file)) == version

    @property
    def _prefix(self) -> bytes:
        return f"{PREFIX}{self._verb}|".encode()


def was_encrypting(root: str | Remote, keys: object, plaintext_files: Iterable[DataFile]) -> bool:
    """Return whether an interrupted encrypt_dataset has left these plaintext files, as its encrypted list tells.

    Args:
        root: the dataset's folder.
        keys: keys of the caller for reading. A function of the caller is not asked, because it may not expect the list's path.
        plaintext_files: the files. Each has to be in the list, and unchanged since.
    """
    journal = JobJournal(root, "encrypt")
    if isinstance(keys, DatasetDecryptionProperties):
        keys = keys.without_prefix(journal.where)
    entries = journal.read(keys) if isinstance(keys, FileDecryptionProperties) else None
    return entries is not None and all(journal.has_unchanged(file, entries) for file in plaintext_files)


def version_as_text(file: DataFile) -> str | None:
    """Return a text that changes whenever a file is replaced or altered. None if its filesystem tells no times and no tags.

    For a local file it has the time of the last change of its status, which only the system's clock sets.
    """
    version = file.version()
    if version is None or not version.is_known:
        return None
    return repr((version.size, version.modified_ns, version.tag, version.renamed_ns))
