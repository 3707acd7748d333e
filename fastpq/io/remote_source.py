"""FsspecSource: files on fsspec filesystems."""

from __future__ import annotations

import errno
import os
from typing import Any

import numpy as np

from fastpq.errors import UnsupportedError
from fastpq.io.coalescing import Range
from fastpq.io.location import Remote
from fastpq.io.origin import ends_early
from fastpq.io.source import Bytes, Source, private, read_only
from fastpq.options import DEFAULT_TAIL_READ

# Protocols of servers that give the last n bytes of a file (RFC 9110, 14.1.2); Azure's servers do not.
GIVES_ENDS = frozenset({"http", "https", "s3", "s3a", "gs", "gcs"})
MAGICS = (b"PAR1", b"PARE")     # at the end of every file


class FsspecSource(Source):
    """A file on an fsspec filesystem; asynchronous filesystems fetch many ranges at the same time.

    The end of the file is kept in memory, with the footer and often the indexes. A file whose size is known from a list is asked
    for its end alone. From servers known to give the last bytes without their offset (GIVES_ENDS), the end of another file is
    fetched together with the size.

    Args:
        place: filesystem, path and name, and the size if listed.
    """

    is_remote = True

    def __init__(self, place: Remote) -> None:
        self._tail = np.empty(0, np.uint8)
        self._filesystem = place.filesystem
        self._path = place.path
        size, tail = place.listed_size, _listed_tail(place)
        if not tail.endswith(MAGICS):       # not listed, or another file by now
            size, tail = _size_and_tail(place)
        if size is None:
            raise UnsupportedError(f"reading {place.name}: its filesystem does not tell its size")
        super().__init__(place.name, int(size))
        if len(tail):
            self._count(1, len(tail))
        if len(tail) in (min(self.size, DEFAULT_TAIL_READ), self.size):     # servers without ranges send the whole file
            self._tail = read_only(private(tail))

    @property
    def kept_bytes(self) -> int:
        """Bytes of the end of the file in memory."""
        return len(self._tail)

    def drop_tail(self) -> None:
        """Keep the end of the file in memory no longer."""
        self._tail = np.empty(0, np.uint8)

    def _fetch(self, offset: int, length: int) -> Bytes:
        data = private(self._filesystem.cat_file(self._path, start=offset, end=offset + length))
        # the end of a file that is read again: footer and indexes, not a whole file or a column chunk
        if offset + length == self.size and len(data) == length <= DEFAULT_TAIL_READ:
            self._tail = data
        return data

    def read(self, offset: int, length: int) -> Bytes:
        known = self._known(offset, length)
        return super().read(offset, length) if known is None else known

    def _known(self, offset: int, length: int) -> Bytes | None:
        tail = self._tail       # another thread may put a shorter one in its place
        start = offset - (self.size - len(tail))
        return tail[start : start + length] if start >= 0 and 0 < length <= len(tail) - start else None

    def _fetch_many(self, ranges: list[Range]) -> list[Bytes]:
        wanted = [(offset, length) for offset, length in ranges if length]
        if not wanted:
            return [read_only(np.empty(0, np.uint8)) for _ in ranges]
        starts = [offset for offset, _ in wanted]
        ends = [offset + length for offset, length in wanted]
        came = iter(self._filesystem.cat_ranges([self._path] * len(wanted), starts, ends, on_error="raise"))
        self._count(len(wanted), sum(length for _, length in wanted))
        data = [private(next(came) if length else b"") for _, length in ranges]
        for part, (offset, length) in zip(data, ranges, strict=True):
            if len(part) != length:
                raise ends_early(len(part), length, offset).at(path=self.name)
        return data


def _listed_tail(place: Remote) -> bytes:
    """The last DEFAULT_TAIL_READ bytes of a file of a listed size; no bytes for a file of unknown size."""
    if not place.listed_size:
        return b""
    start = max(0, place.listed_size - DEFAULT_TAIL_READ)
    return bytes(place.filesystem.cat_file(place.path, start=start, end=place.listed_size))


def _size_and_tail(place: Remote) -> tuple[int | None, bytes]:
    """The size of a file, and its last DEFAULT_TAIL_READ bytes, or no bytes if these would take another round trip."""
    filesystem, path = place.filesystem, place.path
    protocols = {filesystem.protocol} if isinstance(filesystem.protocol, str) else set(filesystem.protocol)
    if not filesystem.async_impl or filesystem.asynchronous or not protocols & GIVES_ENDS:
        return _size(place), b""

    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(1, thread_name_prefix="fastpq-tail")
    try:
        asked = pool.submit(filesystem.cat_file, path, start=-DEFAULT_TAIL_READ)
        size = _size(place)
        # Some servers refuse the end: a later read then asks for its range.
        return size, b"" if asked.exception() is not None else asked.result()
    finally:
        pool.shutdown(wait=False)       # after an error the other call may need this very thread: it is not waited for


def _size(place: Remote) -> int | None:
    about = place.filesystem.info(place.path)
    if about["type"] == "directory":
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), place.name)
    size: int | None = about["size"]
    return size
