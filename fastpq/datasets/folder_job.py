"""FolderJob: the common part of jobs that change the encryption of all files in a folder."""

from __future__ import annotations

import errno
import os
import posixpath
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fastpq.api.functions import read_metadata
from fastpq.common.progress import Meter, Progress
from fastpq.datasets.discovery import DataFile, find_files
from fastpq.datasets.job_journal import JobJournal
from fastpq.datasets.job_lock import cleaning_up, only_job
from fastpq.datasets.key_change_report import FileKeyChange, KeyChangeReport
from fastpq.datasets.metadata_writing import remove_metadata, settle_metadata
from fastpq.encryption.keys.store import MaterialPath
from fastpq.encryption.properties import FileDecryptionProperties, FileEncryptionProperties
from fastpq.errors import CryptoError, KeyAccessError, ParquetError, SchemaError
from fastpq.io.location import Remote, RemotePath, locate, placed
from fastpq.options import ReaderProperties
from fastpq.rewriting.files import encrypt_file
from fastpq.rewriting.renewed_keys import is_external, settle_material
from fastpq.rewriting.report import RewritingReport


@dataclass(frozen=True, slots=True)
class JobOptions:
    """Options that all jobs share. The functions of this module describe them."""

    dry_run: bool = False
    allow_plaintext_files: bool = False
    keep_metadata: Collection[str] = ()
    properties: ReaderProperties | None = None
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class Folder:
    """A dataset's folder and its data files.

    Attributes:
        place: the folder, a local path or a place on a filesystem.
        files: its data files, by path.
    """

    place: str | Remote
    files: list[DataFile]

    @classmethod
    def of(cls, where: Any, filesystem: Any, storage_options: Mapping[str, Any] | None, timeout: float | None) -> Folder:
        """List a folder.

        Raises:
            SchemaError: ``where`` is no folder.
            FileNotFoundError: it does not exist, or has no data file.
        """
        place = locate(placed(where, filesystem, storage_options, timeout))
        if isinstance(place, str) and not os.path.exists(place):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), place)
        if place is None or (isinstance(place, str) and not os.path.isdir(place)):
            what = f"{place} is a file" if isinstance(place, str) else f"there is only a {type(where).__name__}"
            raise SchemaError(f"the path of a folder is needed, and {what}")
        folder = place if isinstance(place, str) else RemotePath(place.filesystem, place.path, None, place.name)
        files = find_files(folder)
        if isinstance(place, Remote) and [file.path for file in files] == [place.path]:
            raise SchemaError(f"the path of a folder is needed, and {place.name} is a file")
        return cls(place, files)

    @property
    def root(self) -> str | RemotePath:
        """The folder in the form that functions of datasets take."""
        place = self.place
        return place if isinstance(place, str) else RemotePath(place.filesystem, place.path, None, place.name)

    @property
    def partition_names(self) -> list[str]:
        return list(dict.fromkeys(name for file in self.files for name in file.partitions))

    def remove_metadata(self) -> None:
        """Remove ``_metadata`` and ``_common_metadata`` from the folder, and from all folders of its files below it."""
        top = self.place if isinstance(self.place, str) else self.place.path.rstrip("/")
        folders = {top}
        for file in self.files:
            parent = posixpath.dirname(file.path) if isinstance(file.where, RemotePath) else os.path.dirname(file.path)
            while len(parent) > len(top) and parent not in folders:
                folders.add(parent)
                parent = os.path.dirname(parent)
        for folder in folders:
            remove_metadata(folder if isinstance(self.place, str) else RemotePath(self.place.filesystem, folder))


# Readers that have opened an old file may ask for its external keys for this many seconds after its replacement.
GRACE_SECONDS = 1.0
_WITHOUT_LOCK = "the job has stopped, because somebody removed its lock: another job may be changing the files"


class FolderJob(ABC):
    """A change of the encryption of a folder's files.

    Args:
        folder: the folder.
        options: options of the call.

    Attributes:
        verb: name of the job in its journal.
        hides: whether plaintext files become encrypted.
        is_resumed: whether the job goes on after an interruption.
    """

    verb: ClassVar[str]
    hides: ClassVar[bool] = False

    def __init__(self, folder: Folder, options: JobOptions) -> None:
        if isinstance(options.keep_metadata, str):
            raise TypeError(f"keep_metadata must be a list of names, not the name {options.keep_metadata!r}")
        self._folder, self._options = folder, options
        self._journal = JobJournal(folder.place, self.verb)
        self.is_resumed = False
        # files with new external keys, and the generations of their old keys, which still stand beside the new ones
        self._settlements: list[tuple[DataFile, FileEncryptionProperties, str | None]] = []

    def run(self) -> KeyChangeReport:
        """Change the files that are not done, and return the report.

        Raises:
            CryptoError: another job is changing the folder, a folder in it, or a folder that it is in.
            UnsupportedError: the folder's filesystem cannot keep two jobs apart.
        """
        if self._options.dry_run:
            return self._report(plan.planned() for plan in self._sorted_plans())
        with only_job(self._folder.place, self.verb) as is_locked:
            return self._run(is_locked)

    def _sorted_plans(self) -> list[PlannedChange]:
        states = [(file, _is_encrypted(file, self._options.properties)) for file in self._folder.files]
        plaintext_files = [file for file, is_encrypted in states if not is_encrypted]
        plans = self._plans(plaintext_files, [file for file, is_encrypted in states if is_encrypted])
        return sorted(plans, key=lambda plan: plan.file.path)

    def _run(self, is_locked: Callable[[], bool]) -> KeyChangeReport:
        plans = self._sorted_plans()
        num_changes = sum(plan.change is not None for plan in plans)
        meter = Meter(self._options.progress, num_changes)
        if num_changes:
            self._begin(plans)
        changes = []

        def settle() -> None:
            if is_locked():     # another job may be adding keys
                self._settle()

        with cleaning_up(settle, "external keys of replaced files may still stand beside the new ones"):
            for plan in plans:
                if plan.change is not None and not is_locked():
                    raise CryptoError(_WITHOUT_LOCK, path=plan.file.path)
                changes.append(plan.done())
                meter.add(plan.change is not None)
        if not is_locked():
            raise CryptoError(_WITHOUT_LOCK)
        self._end(plans)
        self._journal.remove()
        if num_changes and not self.hides:
            settle_metadata(self._folder.root, None)
        meter.finish()
        return self._report(changes)

    @abstractmethod
    def _plans(self, plaintext_files: list[DataFile], encrypted_files: list[DataFile]) -> Iterator[PlannedChange]:
        """Yield what is to do with each file. Nothing is changed yet.

        Raises:
            ParquetError: the job cannot be done.
        """

    @abstractmethod
    def _begin(self, plans: Sequence[PlannedChange]) -> None:
        """Prepare the folder for the first change."""

    def _encrypt_again(
        self,
        file: DataFile,
        keys: FileEncryptionProperties,
        old_keys: FileDecryptionProperties | None,
        old_generation: str | None,
    ) -> RewritingReport:
        """Encrypt a file in place. The replaced file's external keys are dropped at the end of the job."""
        remove_checksum(file)
        options = self._options
        report = encrypt_file(
            file.where, file.where, keys, decryption_properties=old_keys, properties=options.properties,
            keep_metadata=options.keep_metadata)
        if is_external(keys):
            self._settlements.append((file, keys, old_generation))
        return report

    def _settle(self) -> None:
        """Drop the external keys of all replaced files."""
        if any(old_generation is not None for _, _, old_generation in self._settlements):
            time.sleep(GRACE_SECONDS)
        for file, keys, old_generation in self._settlements:
            settle_material(file.where, keys, old_generation)

    def _end(self, plans: Sequence[PlannedChange]) -> None:     # noqa: B027
        """Clean up after the last change, before the journal is removed. Most jobs leave nothing."""

    def _report(self, changes: Iterable[FileKeyChange]) -> KeyChangeReport:
        return KeyChangeReport(tuple(changes), self.is_resumed)


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """What is to do with one file.

    Attributes:
        file: the file.
        reason: what is changed, or why nothing is.
        change: makes the change, or None.
    """

    file: DataFile
    reason: str
    change: Callable[[], RewritingReport | None] | None = None

    def planned(self) -> FileKeyChange:
        return FileKeyChange(self.file.path, "unchanged" if self.change is None else "planned", self.reason, self._size)

    def done(self) -> FileKeyChange:
        """Make the change."""
        size = self._size
        if self.change is None:
            return FileKeyChange(self.file.path, "unchanged", self.reason, size)
        try:
            report = self.change()
        except ParquetError as error:
            raise error.at(path=self.file.path) from None
        left_out = () if report is None else (*map(str, report.dropped_indexes), *map(str, report.dropped_metadata))
        return FileKeyChange(self.file.path, "changed", self.reason, size, left_out)

    @property
    def _size(self) -> int | None:
        version = self.file.version()
        return None if version is None else version.size


def _is_encrypted(file: DataFile, properties: ReaderProperties | None) -> bool:
    """Return whether a file is encrypted, told without keys."""
    try:
        return read_metadata(file.where, properties=properties).encryption_algorithm is not None
    except KeyAccessError:      # the footer is encrypted
        return True


def remove_checksum(file: DataFile) -> None:
    """Remove Hadoop's checksum file of a local file, which would not match the new bytes."""
    MaterialPath(file.where).sibling(".", ".crc").remove()
