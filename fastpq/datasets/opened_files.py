"""OpenedFiles: the files of a dataset, many opened at the same time, and remote files opened once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TypeAlias, TypeVar, cast

from fastpq.api.file import ParquetFile
from fastpq.common.parallel import run_ordered
from fastpq.datasets.discovery import DataFile
from fastpq.datasets.known_footers import KnownFooters
from fastpq.encryption.properties import FileDecryptionProperties
from fastpq.errors import LimitError, SchemaError
from fastpq.io.location import RemotePath
from fastpq.io.remote_source import FsspecSource

DatasetDecryption: TypeAlias = FileDecryptionProperties | Callable[[str], FileDecryptionProperties | None] | None
Result = TypeVar("Result")

# Remote files opened or read at the same time: their answers are waited for, not computed (benchmarks.datasets).
REMOTE_FILES = 16
# Bytes of the ends of remote files, with footers, kept between the opening of a dataset and the first read.
KEPT_TAILS = 128 << 20
# Seconds in which a remote file counts as unchanged between the opening of a dataset and the first read.
KEPT_SECONDS = 60.0


class OpenedFiles:
    """The files of a dataset.

    A remote file of which the columns were asked stays open until the next use, if that follows soon: the read after the opening
    of a dataset asks neither for sizes nor for footers. Later reads ask again, since the file may have been replaced. A local
    file is closed after each use, as the number of open files of a process is bounded.

    Args:
        files: the files.
        open_file: opens one, as ``open_file(where, decryption_properties=...)``.
        decryption: keys, or a function from a file's path to its keys.
        footers: the footers of all files, of a dataset without keys; None to read these.

    Attributes:
        decryption: as given.
    """

    def __init__(
        self,
        files: Sequence[DataFile],
        open_file: Callable[..., ParquetFile],
        decryption: DatasetDecryption,
        footers: KnownFooters | None = None,
    ) -> None:
        self._footers = footers
        self._files = files
        self._open_file = open_file
        self.decryption = decryption
        self._kept: dict[int, tuple[ParquetFile, float]] = {}       # with the time of the opening
        self._unused = _UnusedKeys()
        self._tails = 0
        self._lock = Lock()
        self._at_a_time = REMOTE_FILES if any(isinstance(file.where, RemotePath) for file in files) else 1

    def each(self, numbers: Iterable[int], work: Callable[[int], Result]) -> Iterator[Result]:
        """Yield the results of work on the numbers of files, in their order; work on remote files runs ahead in threads."""
        return run_ordered(work, numbers, self._at_a_time, ahead=1)

    @contextmanager
    def opened(self, number: int, *, keep: bool = False) -> Iterator[ParquetFile]:
        """A file, open inside.

        Args:
            number: place of the file in the dataset.
            keep: whether a remote file stays open for the next use.
        """
        if (kept := self._taken_back(number)) is not None:
            if keep:
                self._keep(number, *kept)
            yield kept[0]
            return
        where, keys = self._files[number].where, self._keys_of(self._files[number].path)
        # a column missing in one file may be in another
        own_keys = None if keys is None else keys.with_missing_columns()
        file = self._with_known_footer(self._files[number]) or self._open_file(where, decryption_properties=own_keys)
        self._unused.add(keys, file)
        if keep and isinstance(where, RemotePath):
            self._keep(number, file, time.monotonic())
            yield file
        else:
            with file:
                yield file

    def _with_known_footer(self, listed: DataFile) -> ParquetFile | None:
        """The file, opened without a read of its footer; None where the footer is not known, or the file may have changed."""
        if self._footers is None:
            return None
        if not isinstance(listed.where, str):
            return self._open_file(self._footers.known_file(listed)) if self._footers.age() < KEPT_SECONDS else None
        file = self._open_file(self._footers.known_file(listed))
        if listed.stamp() == self._footers.stamp(listed):
            return file
        file.close()
        return None

    def check_keys(self) -> None:
        """Refuse keys for columns that no file has, after all files were opened.

        Raises:
            SchemaError: there are such keys.
        """
        self._unused.check()

    def _keep(self, number: int, file: ParquetFile, opened: float) -> None:
        with self._lock:
            self._kept[number] = file, opened
            self._tails += _kept_bytes(file)
            if self._tails > KEPT_TAILS:
                self._tails -= _kept_bytes(file)
                cast(FsspecSource, file._source).drop_tail()

    def _taken_back(self, number: int) -> tuple[ParquetFile, float] | None:
        """A kept file, kept no longer, and the time of its opening; None without one, or if it was opened too long ago."""
        with self._lock:
            kept = self._kept.pop(number, None)
            if kept is None:
                return None
            file, opened = kept
            self._tails -= _kept_bytes(file)
        return kept if time.monotonic() - opened < KEPT_SECONDS else None

    def _keys_of(self, path: str) -> FileDecryptionProperties | None:
        keys = self.decryption
        return keys if keys is None or isinstance(keys, FileDecryptionProperties) else keys(path)


def _kept_bytes(file: ParquetFile) -> int:
    source = file._source
    return source.kept_bytes if isinstance(source, FsspecSource) else 0


class Taken:
    """Bytes of the values of a read, counted by several threads.

    Args:
        limit: most bytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._bytes, self._files = limit, 0, 0
        self._lock = Lock()

    def add(self, size: int) -> None:
        """Count the values of a file.

        Raises:
            LimitError: all values take more than the limit.
        """
        with self._lock:
            self._bytes += size
            self._files += 1
            if self._bytes > self._limit:
                found = f"the values of {self._files} files take {self._bytes} bytes"
                raise LimitError(f"{found}, over max_allocation ({self._limit})")


class _UnusedKeys:
    """Explicit keys for columns that no file of a dataset has."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._unused: set[str] = set()
        self._lock = Lock()

    def add(self, keys: FileDecryptionProperties | None, file: ParquetFile) -> None:
        """Take the keys of a file into account."""
        if keys is None or not len(keys.column_keys):
            return
        unused = set(keys.column_keys.unknown(column.path for column in file.schema.columns))
        with self._lock:
            self._used |= set(keys.column_keys.paths()) - unused
            self._unused |= set() if keys.allow_missing_columns else unused

    def check(self) -> None:
        """Refuse such keys."""
        missing = sorted(self._unused - self._used)
        if missing:
            raise SchemaError(
                f"keys for columns that no file of the dataset has: {', '.join(missing)} "
                "(allow_missing_columns=True reads them all the same)"
            )
