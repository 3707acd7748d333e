"""OpenWriters: files of a stream of rows, of many partitions at the same time, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import NamedTuple, Self

from fastpq.api.writer import ParquetWriter
from fastpq.arrays.table import Table

# Most files written at the same time; the file of the partition without rows for the longest time is closed for another one.
MOST_OPEN = 128
MOST_OPEN_REMOTE = 16       # each keeps parts of its upload in memory
# Bytes of rows of all open files that wait for a whole row group; the largest group is written when there are more.
MOST_WAITING = 256 << 20


class _Writer(NamedTuple):
    path: str
    file: ParquetWriter


class OpenWriters:
    """Files of partitions, each open while rows arrive; a context manager that closes or aborts the open files.

    Args:
        open_file: opens a new file of a partition's folder, as ``(path, writer)``.
        max_rows: most rows of a file; None without bound.
        most_open: most files written at the same time.

    Attributes:
        written: paths of the complete files.
    """

    def __init__(
        self, open_file: Callable[[str], tuple[str, ParquetWriter]], max_rows: int | None, most_open: int = MOST_OPEN
    ) -> None:
        self._open_file = open_file
        self._most_open = most_open
        self._max_rows = max_rows
        self._writers: dict[str, _Writer] = {}      # by folder, the one with the latest rows at the end
        self._rows: dict[str, int] = {}             # rows of the open file of each folder
        self.written: list[str] = []

    @property
    def is_open(self) -> bool:
        """Whether a file is open."""
        return bool(self._writers)

    def add(self, folder: str, rows: Table) -> None:
        """Write rows of one partition, at least an empty file."""
        start = 0
        while True:
            writer = self._writers.pop(folder, None)
            if writer is None:
                self._make_room()
                writer = _Writer(*self._open_file(folder))
                self._rows[folder] = 0
            self._writers[folder] = writer
            room = rows.num_rows - start if self._max_rows is None else self._max_rows - self._rows[folder]
            part = rows.slice(start, min(start + room, rows.num_rows))
            writer.file.write_batch(part)
            start += part.num_rows
            self._rows[folder] += part.num_rows
            if self._rows[folder] == self._max_rows:
                self._close(folder)
            self._bound_memory()
            if start >= rows.num_rows:
                return

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
        self.written.append(writer.path)

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
            for writer in self._writers.values():       # none after a success
                writer.file.abort()
