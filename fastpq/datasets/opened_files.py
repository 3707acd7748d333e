"""OpenedFiles: the files of a dataset, many opened at the same time, and remote files opened once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TypeAlias, TypeVar

from fastpq.api.file import ParquetFile
from fastpq.common.parallel import run_ordered
from fastpq.datasets.discovery import DataFile, RemotePath
from fastpq.encryption.properties import FileDecryptionProperties
from fastpq.errors import SchemaError
from fastpq.io.remote_source import FsspecSource

DatasetDecryption: TypeAlias = FileDecryptionProperties | Callable[[str], FileDecryptionProperties | None] | None
Result = TypeVar("Result")

# Remote files opened or read at the same time: their answers are waited for, not computed (benchmarks.datasets).
REMOTE_FILES = 16
# Bytes of the ends of remote files, with footers, that a dataset keeps for later reads.
KEPT_TAILS = 128 << 20


class OpenedFiles:
    """The files of a dataset.

    A remote file stays open after its first use: a later read asks neither for its size nor for its footer. A local file is
    closed after each use, as the number of open files of a process is bounded.

    Args:
        files: the files.
        open_file: opens one, as ``open_file(where, decryption_properties=...)``.
        decryption: keys, or a function from a file's path to its keys.
    """

    def __init__(
        self, files: Sequence[DataFile], open_file: Callable[..., ParquetFile], decryption: DatasetDecryption
    ) -> None:
        self._files = files
        self._open_file = open_file
        self._decryption = decryption
        self._kept: dict[int, ParquetFile] = {}
        self._unused = _UnusedKeys()
        self._tails = 0
        self._lock = Lock()
        self._at_a_time = REMOTE_FILES if any(isinstance(file.where, RemotePath) for file in files) else 1

    def each(self, numbers: Iterable[int], work: Callable[[int], Result]) -> Iterator[Result]:
        """Yield the results of work on the numbers of files, in their order; work on remote files runs ahead in threads."""
        return run_ordered(work, numbers, self._at_a_time)

    @contextmanager
    def opened(self, number: int) -> Iterator[ParquetFile]:
        """A file, open inside.

        Args:
            number: place of the file in the dataset.
        """
        kept = self._kept.get(number)
        if kept is not None:
            yield kept
            return
        where, keys = self._files[number].where, self._keys_of(self._files[number].path)
        # a column missing in one file may be in another
        file = self._open_file(where, decryption_properties=None if keys is None else keys.with_missing_columns())
        self._unused.add(keys, file)
        if isinstance(where, RemotePath):
            self._keep(number, file)
            yield file
        else:
            with file:
                yield file

    def check_keys(self) -> None:
        """Refuse keys for columns that no file has, after all files were opened.

        Raises:
            SchemaError: there are such keys.
        """
        self._unused.check()

    def _keep(self, number: int, file: ParquetFile) -> None:
        source = file._source
        with self._lock:
            self._kept[number] = file
            if isinstance(source, FsspecSource):
                self._tails += source.kept_bytes
                if self._tails > KEPT_TAILS:
                    self._tails -= source.kept_bytes
                    source.drop_tail()

    def _keys_of(self, path: str) -> FileDecryptionProperties | None:
        keys = self._decryption
        return keys if keys is None or isinstance(keys, FileDecryptionProperties) else keys(path)


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
