"""FsspecSource: a file on an fsspec filesystem."""

from __future__ import annotations

import errno
import itertools
import os
import threading

import numpy as np

from fastpq.errors import FormatError, RemoteError, UnsupportedError
from fastpq.io.coalescing import Range
from fastpq.io.file_version import FileVersion
from fastpq.io.location import Remote
from fastpq.io.range_requests import Answer, RangeRequest, range_requests_of
from fastpq.io.retrying import ShortAnswerError, attempts_of, is_temporary, pause, persistent, raise_named
from fastpq.io.source import Bytes, Source, private, read_only
from fastpq.io.waiting import WAITER, Pool
from fastpq.options import DEFAULT_MAX_ATTEMPTS, DEFAULT_TAIL_READ

MAGICS = (b"PAR1", b"PARE")     # at the end of every file


class FsspecSource(Source):
    """A file on an fsspec filesystem. Asynchronous filesystems fetch many ranges at the same time.

    The file's end is kept in memory. It has the footer, and often the indexes. Most servers can send the last bytes although the
    request does not know their offset. The first request asks for them, and the answer tells the file size too. Every answer must
    come from the same file version. If a server sends the whole file instead of a range, the file is kept, and no further request
    is made.

    Args:
        place: filesystem, path and name, and the file size if it was listed.
        attempts: how often the same bytes may be requested.
        with_tail: whether to ask for the file's end before the first read.
    """

    is_remote = True

    def __init__(self, place: Remote, attempts: int = DEFAULT_MAX_ATTEMPTS, *, with_tail: bool = True) -> None:
        self._tail = np.empty(0, np.uint8)
        self._place = place
        self._attempts = attempts
        self._waiter = WAITER.get()
        self._ranges = range_requests_of(place)
        self._version: FileVersion | None = None
        self._comparing = threading.Lock()
        self._refusal: RemoteError | None = None        # error for the request that asked for the file's end
        end = self._end() if with_tail else None
        size = end.size if end is not None else None if with_tail else place.listed_size
        super().__init__(place.name, self._size() if size is None else size)
        if end is not None:
            self._count(1, len(end.data))
            self._tail = read_only(private(end.data))

    @property
    def kept_bytes(self) -> int:
        """Bytes from the end of the file that are kept for later reads."""
        return len(self._tail)

    def drop_tail(self) -> None:
        """Forget the file's end."""
        self._tail = np.empty(0, np.uint8)

    def start_pool(self, threads: int) -> Pool:
        return super().start_pool(threads) if self._waiter is None else self._waiter.start_pool()

    def _fetch(self, offset: int, length: int) -> Bytes:
        data = self._answers([(offset, length)])[0]
        # Keep the footer and the indexes, which are read again, but not a whole file or a column chunk.
        if offset + length == self.size and len(data) == length <= DEFAULT_TAIL_READ:
            self._tail = data
        return data

    def read(self, offset: int, length: int) -> Bytes:
        kept_bytes = self._known(offset, length)
        return super().read(offset, length) if kept_bytes is None else kept_bytes

    def _known(self, offset: int, length: int) -> Bytes | None:
        tail = self._tail       # another thread may replace self._tail by a shorter array
        start = offset - (self.size - len(tail))
        return tail[start : start + length] if start >= 0 and 0 < length <= len(tail) - start else None

    def _fetch_many(self, ranges: list[Range]) -> list[Bytes]:
        nonempty = [(offset, length) for offset, length in ranges if length]
        if not nonempty:
            return [read_only(np.empty(0, np.uint8)) for _ in ranges]
        answers = iter(self._answers(nonempty))
        self._count(len(nonempty), sum(length for _, length in nonempty))
        return [next(answers) if length else private(b"") for _, length in ranges]

    def _answers(self, ranges: list[Range]) -> list[Bytes]:
        """Request ranges, all at the same time, and return their bytes. A range without a whole answer is requested again."""
        answers: dict[Range, Bytes] = {}
        for attempt in itertools.count(1):
            errors = []
            missing = [part for part in dict.fromkeys(ranges) if part not in answers]
            for part, answer in zip(missing, self._ask([RangeRequest(*part, self.size) for part in missing]), strict=True):
                if isinstance(answer, Exception):
                    errors.append(answer)
                else:
                    answers[part] = self._part(part, answer)
            if not errors:
                break
            for error in errors:
                if not is_temporary(error) or attempt >= attempts_of(self._place, self._attempts):
                    raise_named(self._place, error, attempt)
            pause(errors[0], attempt)
        return [answers[part] for part in ranges]

    def _ask(self, requests: list[RangeRequest]) -> list[Answer | Exception]:
        """Return an answer or an error for each range. An answer from another file version becomes an error."""
        answers = self._ranges.fetch(requests, self._version)
        return [answer if isinstance(answer, Exception) else self._compared(answer) for answer in answers]

    def _compared(self, answer: Answer) -> Answer | Exception:
        """Return the answer if it comes from the version that was opened. Otherwise return an error."""
        with self._comparing:
            version = self._version = self._version or answer.version
        try:
            version.check_unchanged(answer.version)
        except RemoteError as error:
            return error
        return answer

    def _part(self, part: Range, answer: Answer) -> Bytes:
        """Return a range's bytes. If the server sent the whole file, the file is kept."""
        offset, length = part
        data = private(answer.data)
        if len(data) > length:
            self._tail = read_only(data)
        start = offset - answer.start
        return data[start : start + length]

    def _end(self) -> Answer | None:
        """Request the last DEFAULT_TAIL_READ bytes of the file, and return the answer, which has the file size too.

        If the server does not know ranges, the answer is the whole file. Return None if the server refuses such a request, or if
        it needs the file size but the file was not listed.
        """
        place, listed_size = self._place, self._place.listed_size
        if self._ranges.gives_ends:
            request = RangeRequest(None, DEFAULT_TAIL_READ)
        elif listed_size:
            length = min(listed_size, DEFAULT_TAIL_READ)
            request = RangeRequest(listed_size - length, length, listed_size)
        else:
            return None

        def ask() -> Answer:
            answer = self._ask([request])[0]
            if isinstance(answer, ShortAnswerError) and request.size is not None:
                raise answer.final      # the file is shorter than listed, so another request would not help
            if isinstance(answer, Exception):
                raise answer
            return answer

        try:
            answer = persistent(place, ask, self._attempts)
        except FileNotFoundError:       # it may be a directory, which _size finds out
            return None
        except RemoteError as error:
            if error.__cause__ is not None and is_temporary(error.__cause__):
                raise
            self._refusal = error
            return None
        except FormatError:     # the file is shorter than listed
            return None
        except (OSError, ValueError):       # a client's own error: the object is empty, or the store knows no ranges from the end
            return None
        is_current = self._ranges.gives_ends or bytes(answer.data[-len(MAGICS[0]) :]) in MAGICS
        if not is_current:      # by now it is another file than the one that was listed
            self._version = None
        return answer if is_current and answer.size is not None else None

    def _size(self) -> int:
        """Return the file size from the filesystem's information about the file.

        Raises:
            RemoteError, UnsupportedError: the server does not tell the size.
            IsADirectoryError: the path names a directory.
        """
        place = self._place
        try:
            about = persistent(place, self._ranges.information, self._attempts)
        except RemoteError as error:
            raise self._refusal or error from error.__cause__
        if about["type"] == "directory":
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), place.name)
        if about["size"] is None:
            raise self._refusal or UnsupportedError(
                f"reading {place.name}: its server does not tell its size; download the file, or read its bytes"
            )
        self._version = self._ranges.information_version(about)
        return int(about["size"])
