"""FsspecSource: files on fsspec filesystems."""

from __future__ import annotations

import errno
import itertools
import os
from typing import Any

import numpy as np

from fastpq.errors import RemoteError, UnsupportedError
from fastpq.io.coalescing import Range
from fastpq.io.location import Remote, is_of_arrow
from fastpq.io.origin import ends_early
from fastpq.io.retrying import ShortAnswerError, attempts_of, passes, pause, persistent, raise_told, status_of
from fastpq.io.source import Bytes, Source, private, read_only
from fastpq.options import DEFAULT_MAX_ATTEMPTS, DEFAULT_TAIL_READ

# Protocols of servers that give the last n bytes of a file (RFC 9110, 14.1.2); Azure's servers do not.
GIVES_ENDS = frozenset({"http", "https", "s3", "s3a", "gs", "gcs"})
MAGICS = (b"PAR1", b"PARE")     # at the end of every file
OUTSIDE = 416                   # status for a range behind the end of a file (RFC 9110, 15.5.17)
MOST_KEPT = 256 << 20           # bytes of a file from a server without ranges
# For HTTP: ranges are of the bytes of the file, not of a compressed form.
UNENCODED = {"headers": {"Accept-Encoding": "identity"}}


class FsspecSource(Source):
    """A file on an fsspec filesystem; asynchronous filesystems fetch many ranges at the same time.

    The end of the file is kept in memory, with the footer and often the indexes. A file whose size is known from a list is asked
    for its end alone. From servers known to give the last bytes without their offset (GIVES_ENDS), the end of another file is
    fetched together with the size. A server that sends the whole file for a range is asked once: the file is kept.

    Args:
        place: filesystem, path and name, and the size if listed.
        attempts: most requests for the same bytes.
        with_tail: whether to ask for the end of a file of a listed size.
    """

    is_remote = True

    def __init__(self, place: Remote, attempts: int = DEFAULT_MAX_ATTEMPTS, *, with_tail: bool = True) -> None:
        self._tail = np.empty(0, np.uint8)
        self._place = place
        self._attempts = attempts
        self._options: dict[str, Any] = UNENCODED if _protocols(place) & {"http", "https"} else {}
        if is_of_arrow(place.filesystem):
            self._options = {"seekable": True}      # the wrapper takes a stream, and then seeks, for the first bytes of a file
        size, tail = place.listed_size, self._listed_tail() if with_tail else b""
        if size is None or (with_tail and not tail.endswith(MAGICS)):       # not listed, or another file by now
            size, tail = self._size_and_tail()
        if size is None:
            raise UnsupportedError(
                f"reading {place.name}: its server does not tell its size; download the file, or read its bytes"
            )
        super().__init__(place.name, int(size))
        if len(tail):
            self._count(1, len(tail))
            self._check_kept(len(tail))
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
        data = self._answers([(offset, length)])[0]
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
        came = iter(self._answers(wanted))
        self._count(len(wanted), sum(length for _, length in wanted))
        return [next(came) if length else private(b"") for _, length in ranges]

    def _answers(self, ranges: list[Range]) -> list[Bytes]:
        """The bytes of ranges, all at the same time; ranges without a whole answer are asked for again."""
        found: dict[Range, Bytes] = {}
        for attempt in itertools.count(1):
            errors = []
            missing = [part for part in dict.fromkeys(ranges) if part not in found]
            for part, answer in zip(missing, self._ask(missing), strict=True):
                checked = self._checked(part, answer)
                if isinstance(checked, Exception):
                    errors.append(checked)
                else:
                    found[part] = checked
            if not errors:
                break
            for error in errors:
                if not passes(error) or attempt >= attempts_of(self._place, self._attempts):
                    raise_told(self._place, error, attempt)
            pause(errors[0], attempt)
        return [found[part] for part in ranges]

    def _ask(self, ranges: list[Range]) -> list[Any]:
        """An answer or an error for each range."""
        starts, ends = [offset for offset, _ in ranges], [offset + length for offset, length in ranges]
        filesystem, path = self._place.filesystem, self._place.path
        if len(ranges) > 1:
            answers: list[Any] = filesystem.cat_ranges([path] * len(ranges), starts, ends, on_error="return", **self._options)
            return answers
        try:
            return [filesystem.cat_file(path, start=starts[0], end=ends[0], **self._options)]
        except Exception as error:
            return [error]

    def _checked(self, part: Range, answer: Any) -> Bytes | Exception:
        """The bytes of a range, or the error of its answer."""
        if isinstance(answer, Exception):
            return answer
        offset, length = part
        data = private(answer)
        if len(data) == self.size > length:         # a server without ranges
            self._check_kept(len(data))
            self._tail = data
            data = data[offset : offset + length]
        if len(data) == length:
            return data
        wrong = ends_early(len(data), length, offset).at(path=self.name)
        return ShortAnswerError(wrong) if len(data) < length else wrong

    def _check_kept(self, received: int) -> None:
        if received > max(MOST_KEPT, DEFAULT_TAIL_READ):
            raise UnsupportedError(
                f"reading {self.name}: its server sends the whole file of {received} bytes for each range; download the file"
            )

    def _listed_tail(self) -> bytes:
        """The last DEFAULT_TAIL_READ bytes of a file of a listed size; no bytes for a file of unknown size."""
        place = self._place
        if not place.listed_size:
            return b""
        start = max(0, place.listed_size - DEFAULT_TAIL_READ)

        def ask() -> bytes:
            return bytes(place.filesystem.cat_file(place.path, start=start, end=place.listed_size, **self._options))

        try:
            tail = persistent(place, ask, self._attempts)
        except RemoteError as error:
            if error.__cause__ is None or status_of(error.__cause__) != OUTSIDE:
                raise
            return b""
        return tail if len(tail) == place.listed_size - start else b""

    def _size_and_tail(self) -> tuple[int | None, bytes]:
        """The size of a file, and its last DEFAULT_TAIL_READ bytes, or no bytes if these would take another round trip."""
        filesystem, path = self._place.filesystem, self._place.path
        if not filesystem.async_impl or filesystem.asynchronous or not _protocols(self._place) & GIVES_ENDS:
            return self._size(), b""

        from concurrent.futures import ThreadPoolExecutor

        pool = ThreadPoolExecutor(1, thread_name_prefix="fastpq-tail")
        try:
            asked = pool.submit(filesystem.cat_file, path, start=-DEFAULT_TAIL_READ, **self._options)
            size = self._size()
            # Some servers refuse the end: a later read then asks for its range.
            return size, b"" if asked.exception() is not None else asked.result()
        finally:
            pool.shutdown(wait=False)       # after an error the other call may need this very thread: it is not waited for

    def _size(self) -> int | None:
        place = self._place
        about = persistent(place, lambda: place.filesystem.info(place.path), self._attempts)
        if about["type"] == "directory":
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), place.name)
        size: int | None = about["size"]
        return size


def _protocols(place: Remote) -> set[str]:
    protocol = place.filesystem.protocol
    return {protocol} if isinstance(protocol, str) else set(protocol)
