"""OpenWriters: writes a stream of rows to files in many partitions at the same time, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self

from fastpq.api.writer import ParquetWriter
from fastpq.arrays.table import Table

# Largest number of open files. Before another file is opened, the file that has waited longest for rows is closed.
MOST_OPEN = 128
MOST_OPEN_REMOTE = 16       # the same in a store, where each file keeps parts of its upload in memory
# Bytes of rows that may wait for whole row groups, in all open files. When there are more, the largest row group is written.
MOST_WAITING = 256 << 20


class _Writer(NamedTuple):
    path: str
    file: ParquetWriter


class FileLimits(NamedTuple):
    """Limits of each new file. None is no limit.

    Attributes:
        rows: largest number of rows.
        bytes: a file ends with the last row group that fits this many bytes, as stored. Every file has one row group at least.
    """

    rows: int | None = None
    bytes: int | None = None


class OpenWriters:
    """Partition writers that stay open while rows arrive.

    It is a context manager. When the context ends, it closes the open files. After an error it discards them instead.

    Args:
        open_file: opens a new file in a partition folder, and returns ``(path, writer)``.
        limits: largest number of rows and of bytes in a file.
        most_open: largest number of files that are written at the same time.

    Attributes:
        finished_paths: paths of the complete files.
    """

    def __init__(
        self, open_file: Callable[[str], tuple[str, ParquetWriter]], limits: FileLimits, most_open: int = MOST_OPEN
    ) -> None:
        self._open_file = open_file
        self._most_open = most_open
        self._limits = limits
        self._writers: dict[str, _Writer] = {}      # by folder, and the last one got rows most recently
        self._rows: dict[str, int] = {}             # row count of each folder's open file
        self.finished_paths: list[str] = []

    @property
    def is_open(self) -> bool:
        """Whether a file is open."""
        return bool(self._writers)

    def add(self, folder: str, rows: Table) -> None:
        """Write rows to one partition. If there are no rows, a file without rows is written."""
        parts = [rows]
        while parts:
            rows = parts.pop()
            if folder in self._writers and self._is_full(folder):
                self._close(folder)
            writer = self._writers.pop(folder, None)
            if writer is None:
                self._make_room()
                writer = _Writer(*self._open_file(folder))
                self._rows[folder] = 0
            self._writers[folder] = writer
            count = self._fitting_rows(folder, rows, writer.file)
            writer.file.write_batch(rows.slice(0, count))
            self._rows[folder] += count
            if count < rows.num_rows:
                parts.append(rows.slice(count))
            if self._is_full(folder):
                parts += reversed(writer.file._taken_rows())        # they begin the next file, before the other rows
                self._close(folder)
            elif self._rows[folder] == self._limits.rows:
                self._close(folder)
            self._bound_memory()

    def _is_full(self, folder: str) -> bool:
        """Return whether one more row group would make the open file larger than its limit in bytes."""
        return self._limits.bytes is not None and self._writers[folder].file._next_end > self._limits.bytes

    def _fitting_rows(self, folder: str, rows: Table, writer: ParquetWriter) -> int:
        """Return how many of the rows the open file may get at once: up to its limit, and one row group where bytes count."""
        count = rows.num_rows
        if self._limits.rows is not None:
            count = min(count, self._limits.rows - self._rows[folder])
        return count if self._limits.bytes is None else min(count, writer._missing_rows(rows))

    def _make_room(self) -> None:
        if len(self._writers) >= self._most_open:
            self._close(next(iter(self._writers)))

    def _bound_memory(self) -> None:
        waiting = {folder: writer.file._waiting_bytes for folder, writer in self._writers.items()}
        if sum(waiting.values()) > MOST_WAITING:
            self._writers[max(waiting, key=waiting.__getitem__)].file._flush()

    def _close(self, folder: str) -> None:
        writer = self._writers[folder]
        writer.file.close()
        del self._writers[folder]
        self.finished_paths.append(writer.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                for folder in list(self._writers):
                    self._close(folder)
        finally:
            for writer in self._writers.values():       # none is left after a success
                writer.file.abort()
