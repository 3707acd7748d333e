"""Sink: a destination to which bytes are appended. Here are the sinks for local files and file objects."""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias

from fastpq.io.counts import checked_count
from fastpq.io.new_file import NewFile

BytesLike: TypeAlias = bytes | bytearray | memoryview

MOST_TOGETHER = 1 << 16         # small buffers are collected until they have this many bytes, and are then written
MOST_UNSTARTED = 8 << 20        # most bytes of a file that wait in memory before the system starts to write them to disk


@dataclass(frozen=True)
class Conditions:
    """What must be true for the target at the commit (RFC 9110, If-None-Match and If-Match).

    Attributes:
        if_none_match: ``"*"`` demands that there is no file.
        if_match: the ETag that the object at the target must have. In Google's store it is the generation.

    Raises:
        ValueError: if_none_match is another text, or both are set.
    """

    if_none_match: str | None = None
    if_match: str | None = None

    def __post_init__(self) -> None:
        if self.if_none_match not in (None, "*"):
            raise ValueError(f'if_none_match must be None, or "*" for no file at the target: {self.if_none_match!r} is neither')
        if self.if_none_match is not None and self.if_match is not None:
            raise ValueError("if_none_match demands no file at the target, and if_match demands one: pass one of them")

    def __bool__(self) -> bool:
        return self.if_none_match is not None or self.if_match is not None

    def refusal(self, path: str) -> OSError:
        """Return the error for conditions that do not hold."""
        if self.if_none_match is not None:
            return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        return OSError(errno.ESTALE, "the object was replaced: its ETag is not the one of if_match", path)


NO_CONDITIONS = Conditions()


class Sink(ABC):
    """A destination to which bytes are appended. They take effect at the commit.

    As a context manager it commits at the end, or aborts after an exception.

    Attributes:
        name: path, URL or the object's own name, for messages.
        is_open: whether the sink is neither committed nor aborted.
        size: how many bytes were written so far.
        folder: a local file's folder, or None for other destinations.
    """

    folder: str | None = None

    def __init__(self, name: str, file: Any) -> None:
        self.name = name
        self.is_open = True
        self._error_path: str | None = name     # the path to add to an operating system error that has none
        self._file = file
        self._small_buffers = bytearray()        # bytes from small buffers that are not written yet
        self.size = 0

    def write(self, buffer: BytesLike) -> None:
        """Append a contiguous buffer. Small buffers reach the destination together, at the latest at flush, persist or commit.

        Raises:
            OSError: the destination reported an error.
            SchemaError: a file object does not say how many bytes it wrote.
            ValueError: the sink was committed or aborted.
        """
        view = memoryview(buffer)
        self.write_together((view.cast("B") if view.nbytes else b"",))

    def write_together(self, buffers: Iterable[BytesLike]) -> None:
        """Append contiguous byte buffers. Errors are the same as in ``write``."""
        if not self.is_open:
            raise self._closed()
        for buffer in buffers:
            size = len(buffer)
            if size > MOST_TOGETHER:
                self.flush()
                self._put(memoryview(buffer))
            else:
                self._small_buffers += buffer
                if len(self._small_buffers) >= MOST_TOGETHER:
                    self.flush()
            self.size += size

    def flush(self) -> None:
        """Write the collected small buffers to the destination. Errors are the same as in ``write``."""
        if self._small_buffers:
            small_buffers, self._small_buffers = self._small_buffers, bytearray()
            self._put(memoryview(small_buffers))

    def _put(self, view: memoryview) -> None:
        try:
            self._write_all(view)
        except OSError as error:
            self._name_in(error)
            raise

    def _write_all(self, view: memoryview) -> None:
        position = 0
        while position < len(view):  # a raw file may write only a part at a time
            count = self._file.write(view[position:])
            if type(count) is not int or count != len(view) - position:
                count = checked_count(count, len(view) - position, "write", self.name)
            if not count:
                raise OSError(errno.EIO, "a file object wrote no byte", self.name)
            position += count

    def keep_order(self) -> None:           # noqa: B027 - most sinks need nothing
        """Make sure that later bytes cannot reach a disk without the bytes so far.

        Only a sink whose bytes take effect before the commit has to do something.

        Raises:
            OSError: the destination reported an error.
        """

    def persist(self) -> None:
        """Make the written bytes outlive this process, if the destination can do that. This is not a commit.

        Raises:
            OSError: the destination reported an error.
        """
        self.flush()
        try:
            self._persist()
        except OSError as error:
            self._name_in(error)
            raise

    def commit(self) -> None:
        """Make the written bytes take effect. Aborts if that fails.

        Raises:
            OSError: the destination reported an error. The old contents are still there.
            ValueError: the sink was committed or aborted.
        """
        if not self.is_open:
            raise self._closed()
        try:
            self.flush()
            self._finish()
        except BaseException as error:
            self._name_in(error)
            self.abort()
            raise
        self.is_open = False

    def abort(self) -> None:
        """Undo all writes. Does nothing after commit or abort."""
        if self.is_open:
            self.is_open = False
            self._discard()

    def _name_in(self, error: BaseException) -> None:
        """Add the path to an operating system error that has none, because write, fsync and close know only a descriptor."""
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            error.filename = self._error_path

    def _persist(self) -> None:
        if hasattr(self._file, "flush"):
            self._file.flush()

    @abstractmethod
    def _finish(self) -> None:
        """Make the written bytes take effect."""

    @abstractmethod
    def _discard(self) -> None:
        """Remove the written bytes, as far as the destination allows it."""

    def _closed(self) -> ValueError:
        return ValueError(f"{self.name} was committed or aborted")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort()
        elif self.is_open:
            self.commit()


class FileSink(Sink):
    """A local file, written as a NewFile that takes its place at the commit. It takes the same arguments as NewFile.
    """

    def __init__(
        self, path: str, *, mode: int | None = None, replaces: bool = True, follow_links: bool = True, durable: bool = True
    ) -> None:
        self._new = NewFile(path, mode=mode, replaces=replaces, follow_links=follow_links, durable=durable)
        super().__init__(path, self._new.file)
        self.folder = os.path.dirname(os.path.abspath(path))
        self._put_bytes = self._started_bytes = 0   # bytes that the file has, and that the system has started to write to disk

    def _write_all(self, view: memoryview) -> None:
        super()._write_all(view)
        self._put_bytes += len(view)
        if self._put_bytes - self._started_bytes >= MOST_UNSTARTED:
            self._new.start_writing(self._started_bytes, self._put_bytes)
            self._started_bytes = self._put_bytes

    def _persist(self) -> None:
        self._new.persist()

    def _finish(self) -> None:
        self._new.place()

    def _discard(self) -> None:
        self._new.discard()


class FileObjectSink(Sink):
    """A binary file object, which is written directly. After an abort, its owner has to remove the written bytes."""

    def __init__(self, file: Any, name: str | None = None, *, is_owned: bool = False) -> None:
        self._is_owned = is_owned
        own_name = getattr(file, "name", None)
        super().__init__(name or str(type(file).__name__ if own_name is None else own_name), file)
        self._error_path = name or (own_name if isinstance(own_name, str) else None)

    def _finish(self) -> None:
        if hasattr(self._file, "flush"):
            self._file.flush()
        self._discard()

    def _discard(self) -> None:
        if self._is_owned:
            self._file.close()
