"""OpenedFiles: opens a dataset's files, many at the same time, and remote files only once."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import TypeAlias, TypeVar

from fastpq.api.file import ParquetFile
from fastpq.arrays.table import Table
from fastpq.common.parallel import run_ordered
from fastpq.datasets.arrow_trees import ArrowTree
from fastpq.datasets.columns_by_id import with_names_by_id
from fastpq.datasets.discovery import DataFile
from fastpq.datasets.keys_of_files import DatasetDecryption, check_dataset_keys, check_names, decryption_of
from fastpq.datasets.known_footers import KnownFooters
from fastpq.datasets.unify import DatasetField, field_of_column
from fastpq.encryption.properties import FileDecryptionProperties
from fastpq.errors import LimitError, SchemaError
from fastpq.io.location import RemotePath
from fastpq.io.source import Source
from fastpq.io.waiting import WAITER
from fastpq.metadata.file_metadata import FileMetaData, are_described_alike
from fastpq.options import OnError, OnMissingKey

DatasetMetadata: TypeAlias = Mapping[str, FileMetaData] | Callable[[str], FileMetaData | None] | None
Result = TypeVar("Result")

# Number of remote files that are opened or read at the same time. They mostly wait and do not compute (benchmarks.datasets).
REMOTE_FILES = 16
# Bytes at the ends of remote files, with the footers, that are kept between opening a dataset and its first read.
KEPT_TAILS = 128 << 20
# Serialized bytes of local files' footers that a dataset keeps, so that no footer is read and decoded twice.
KEPT_FOOTERS = 128 << 20
# Time in seconds for which a remote file counts as unchanged after the dataset is opened.
KEPT_SECONDS = 60.0


class OpenedFiles:
    """Files in a dataset, which are opened when they are used.

    When a dataset is opened, its remote files stay open until their next use, if that follows soon. The first read then requests
    neither sizes nor footers. Later reads request them again, because the files may have been replaced. A local file is closed
    after each use, because a process can have only few files open. Its footer is kept, and used as long as the file's size, inode
    and times are the same. Footers that were opened with keys are not kept.

    Args:
        files: the files.
        open_file: opens one file. It is called as ``open_file(where, decryption_properties=..., metadata=...)``.
        decryption: keys, or a function that returns the keys for a file's path.
        names_by_id: column names by field id, from the caller's schema. None leaves the names that the files have.
        metadata: footers that the caller has, by path, or a function that returns a path's footer or None.
        footers: all files' footers, for a dataset without keys. None reads them from the files.
        has_rows: whether the files' rows belong to the dataset. If not, only their columns do.
        on_error: what a read does with damage, as for ParquetFile.
        on_missing_key: what a read does with columns whose keys are missing, as for ParquetFile.

    Attributes:
        decryption: as the argument.
        columns: each file's columns by name, or None until the file is opened.
        arrow_trees: each column's Arrow fields by name, from the first opened file that has the column.
        rows: each file's row count, or 0 until the file is opened.
    """

    def __init__(
        self,
        files: Sequence[DataFile],
        open_file: Callable[..., ParquetFile],
        decryption: DatasetDecryption,
        footers: KnownFooters | None = None,
        *,
        names_by_id: Mapping[int, str] | None = None,
        metadata: DatasetMetadata = None,
        has_rows: bool = True,
        on_error: OnError = "raise",
        on_missing_key: OnMissingKey = "raise",
    ) -> None:
        check_dataset_keys(decryption, "decryption_properties")
        check_names(decryption, files)
        self.columns: list[dict[str, DatasetField] | None] = [None] * len(files)
        self.arrow_trees: dict[str, ArrowTree] = {}
        self._tree_origins: dict[str, int] = {}     # the file that each tree comes from, by its number
        self.rows = [0] * len(files)
        self._has_rows, self._on_error = has_rows, on_error
        self._has_nulls = "null" in (on_error, on_missing_key)
        self._names_by_id = names_by_id
        self._alike: tuple[FileMetaData, dict[str, DatasetField]] | None = None       # one file's footer and columns
        self._footers = footers
        self._metadata = metadata.get if isinstance(metadata, Mapping) else metadata
        self._files = files
        self._open_file = open_file
        self.decryption = decryption
        self._kept_files: dict[int, tuple[ParquetFile, float]] = {}       # and when they were opened
        self._unused_keys = _UnusedKeys()
        self._kept_footers: dict[int, tuple[FileMetaData, tuple[int, ...]]] = {}     # footers of local files, and the identities
        self._footer_bytes = 0
        self._tails = 0
        self._lock = Lock()
        self._at_a_time = REMOTE_FILES if any(isinstance(file.where, RemotePath) for file in files) else 1

    def each(self, work: Callable[[int], Result], numbers: Iterable[int] | None = None) -> Iterator[Result]:
        """Yield ``work(number)`` for each file number, in order. For remote files, several threads or tasks call ``work``.

        Args:
            work: called with a file number.
            numbers: file numbers, or None for all files.
        """
        waiter = WAITER.get()
        start_pool = None if waiter is None else partial(waiter.start_pool, decodes=True)
        all_numbers = range(len(self._files)) if numbers is None else numbers
        return run_ordered(work, all_numbers, self._at_a_time, ahead=1, start_pool=start_pool)

    @contextmanager
    def with_columns(self, number: int, *, keep: bool = False) -> Iterator[tuple[ParquetFile, dict[str, DatasetField]]]:
        """Provide an open file and its columns. Keep the columns and the row count in ``columns`` and ``rows``.

        Args:
            number, keep: as for ``opened``.
        """
        with self.opened(number, keep=keep) as file:
            own = self.columns[number]
            if own is None:
                self.rows[number] = file.count() if self._has_rows else 0
                self.columns[number] = own = self._columns_of(file, number)
            yield file, own

    def columns_of_all(self) -> list[dict[str, DatasetField]]:
        """Return each file's columns. Files that were not opened before are opened."""

        def columns_of(number: int) -> dict[str, DatasetField]:
            if (own := self.columns[number]) is not None:
                return own
            with self.with_columns(number, keep=True) as (_, own):
                return own

        columns = list(self.each(columns_of))
        self.check_keys()
        return columns

    def readable_columns(self, partitions: Collection[str]) -> Iterator[tuple[set[str], list[str]]]:
        """Yield for each file the columns that it has, without partition columns, and the columns that its keys open."""

        def readable_columns_of(number: int) -> tuple[set[str], list[str]]:
            with self.with_columns(number) as (file, own):
                return own.keys() - set(partitions), file.readable_columns()

        return self.each(readable_columns_of)

    def note_all(self, footers: KnownFooters) -> None:
        """Fill ``columns`` and ``rows`` for all files from known footers. The files have the same schema."""
        with self.with_columns(0, keep=True) as (_, own):
            self.columns = [own] * len(self._files)
        self.rows = [footers.rows[file.path] if self._has_rows else 0 for file in self._files]

    def rows_in(self, number: int) -> int:
        """Return how many of a file's rows belong to the dataset."""
        if self._has_rows and self.columns[number] is None:
            with self.with_columns(number):
                pass
        return self.rows[number]

    def _columns_of(self, file: ParquetFile, number: int) -> dict[str, DatasetField]:
        """Return an open file's columns. If an earlier footer describes the same columns, both files share one dict.

        The columns' Arrow fields are noted.
        """
        alike = self._alike     # other threads replace it
        if alike is not None and are_described_alike(file.metadata, alike[0]):
            return alike[1]
        columns = file._with_decimals("stored").read(row_groups=[])
        for name in columns.names:
            columns[name]       # refuses two columns with the same name
        self._note_trees(columns, number)
        fields = {name: field_of_column(name, column) for name, column in columns.items()}
        if self._has_nulls:
            fields = {name: field.nullable() for name, field in fields.items()}
        if self.decryption is None and self._on_error == "raise":
            self._alike = file.metadata, fields
        return fields

    def _note_trees(self, columns: Table, number: int) -> None:
        with self._lock:
            for name, column in columns.items():
                if number < self._tree_origins.get(name, len(self._files)):
                    self._tree_origins[name], self.arrow_trees[name] = number, ArrowTree.of(column)

    @contextmanager
    def opened(self, number: int, *, keep: bool = False) -> Iterator[ParquetFile]:
        """Provide an open file.

        Args:
            number: number of the file in the dataset, in reading order.
            keep: whether a remote file stays open for the next use.
        """
        if (entry := self._pop_kept(number)) is not None:
            if keep:
                self._keep(number, *entry)
                yield entry[0]
            else:
                with entry[0]:
                    yield entry[0]
            return
        where, keys = self._files[number].where, decryption_of(self.decryption, self._files[number])
        # a column missing in one file may be in another
        own_keys = None if keys is None else keys.with_missing_columns()
        metadata = None if self._metadata is None else self._metadata(self._files[number].path)
        file = self._with_known_footer(self._files[number]) or self._with_kept_footer(number)
        if file is None:
            file = self._open_file(where, decryption_properties=own_keys, metadata=metadata)
            self._keep_footer(number, file)
        self._unused_keys.add(keys, file)
        if self._names_by_id:
            file = with_names_by_id(file, self._names_by_id)
        if keep and isinstance(where, RemotePath):
            self._keep(number, file, time.monotonic())
            yield file
        else:
            with file:
                yield file

    def _with_known_footer(self, listed_file: DataFile) -> ParquetFile | None:
        """Open a file without reading its footer. Return None if its footer is not known or if the file may have changed."""
        if self._footers is None:
            return None
        if not isinstance(listed_file.where, str):
            return self._open_file(self._footers.known_file(listed_file)) if self._footers.age() < KEPT_SECONDS else None
        file = self._open_file(self._footers.known_file(listed_file))
        if listed_file.version() == self._footers.version_of(listed_file):
            return file
        file.close()
        return None

    def _with_kept_footer(self, number: int) -> ParquetFile | None:
        """Open a local file with the footer that was read before. Return None if there is none, or if the file has changed."""
        entry = self._kept_footers.get(number)
        if entry is None:
            return None
        footer, identity = entry
        file = self._open_file(self._files[number].where, metadata=footer, check_metadata=False)
        if file._source.identity == identity:
            return file
        file.close()
        self._forget_footer(number)
        return None

    def _keep_footer(self, number: int, file: ParquetFile) -> None:
        """Keep the footer of a local file that was opened without keys, unless the footers would take too much memory.

        A footer is not kept if ``columns`` and ``rows`` were noted from another one, because the file has changed since then.
        """
        identity, size = file._source.identity, file.metadata.serialized_size
        if identity is None or self.decryption is not None or self._on_error != "raise" or not self._is_as_noted(number, file):
            return
        with self._lock:
            if number not in self._kept_footers and self._footer_bytes + size <= KEPT_FOOTERS:
                self._footer_bytes += size
                self._kept_footers[number] = file.metadata, identity

    def _is_as_noted(self, number: int, file: ParquetFile) -> bool:
        """Return whether an open file has the columns and the row count that were noted for it, if any were."""
        own = self.columns[number]
        if own is None:
            return True
        return (not self._has_rows or file.count() == self.rows[number]) and self._columns_of(file, number) == own

    def _forget_footer(self, number: int) -> None:
        with self._lock:
            entry = self._kept_footers.pop(number, None)
            self._footer_bytes -= 0 if entry is None else entry[0].serialized_size

    def kept_footer(self, number: int) -> FileMetaData | None:
        """Return the footer that is kept for a file, or None."""
        entry = self._kept_footers.get(number)
        return None if entry is None else entry[0]

    def is_unchanged(self, number: int, source: Source) -> bool:
        """Return whether a file that was opened again is the one whose footer is kept."""
        entry = self._kept_footers.get(number)
        return entry is not None and entry[1] == source.identity

    def close(self) -> None:
        """Close the remote files that were kept open for their next use. They are opened again if they are used again."""
        with self._lock:
            kept_files, self._kept_files = self._kept_files, {}
            self._tails = 0
        for file, _ in kept_files.values():
            file.close()

    def check_keys(self) -> None:
        """Refuse keys for columns that no file has. Call it after all files were opened.

        Raises:
            SchemaError: a key belongs to no column.
        """
        self._unused_keys.check()

    def _keep(self, number: int, file: ParquetFile, opened_at: float) -> None:
        with self._lock:
            self._kept_files[number] = file, opened_at
            self._tails += file._source.kept_bytes
            if self._tails > KEPT_TAILS:
                self._tails -= file._source.kept_bytes
                file._source.drop_tail()

    def _pop_kept(self, number: int) -> tuple[ParquetFile, float] | None:
        """Remove a file that was kept open, and return it with the time when it was opened.

        Return None if the file was not kept, or was opened too long ago.
        """
        with self._lock:
            entry = self._kept_files.pop(number, None)
            if entry is None:
                return None
            file, opened_at = entry
            self._tails -= file._source.kept_bytes
        if time.monotonic() - opened_at < KEPT_SECONDS:
            return entry
        file.close()
        return None


class AllocationCounter:
    """Counter for the bytes that a read's values take in memory. Several threads may use it.

    Args:
        limit: largest number of bytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._bytes, self._files = limit, 0, 0
        self._lock = Lock()

    def add(self, size: int, files: int = 1) -> None:
        """Count the bytes that the values of one file, or of several files, take.

        Raises:
            LimitError: the values of all files take more than the limit.
        """
        with self._lock:
            self._bytes += size
            self._files += files
            if self._bytes > self._limit:
                raise LimitError(
                    f"the values of {self._files} files take {self._bytes} bytes, over max_allocation ({self._limit})")


class _UnusedKeys:
    """Keys for columns that no file in the dataset has."""

    def __init__(self) -> None:
        self._used_paths: set[str] = set()
        self._unused_paths: set[str] = set()
        self._lock = Lock()

    def add(self, keys: FileDecryptionProperties | None, file: ParquetFile) -> None:
        """Record which keys belong to columns of a file.

        Args:
            keys: the keys for the file.
            file: the open file.
        """
        if keys is None or not len(keys.column_keys):
            return
        unused_paths = set(keys.column_keys.unknown_paths(column.path for column in file.schema.columns))
        with self._lock:
            self._used_paths |= set(keys.column_keys.paths()) - unused_paths
            self._unused_paths |= set() if keys.allow_missing_columns else unused_paths

    def check(self) -> None:
        """Refuse keys that no file used."""
        missing = sorted(self._unused_paths - self._used_paths)
        if missing:
            raise SchemaError(
                f"keys for columns that no file of the dataset has: {', '.join(missing)} "
                "(allow_missing_columns=True ignores them)"
            )
