"""Byte range requests for one remote file. Every answer is checked.

fsspec's ``cat_file`` returns only bytes. It hides which range the server sent, and from which file version. fastpq therefore
sends its own requests to HTTP servers, S3, Google's store and Azure, through the session or client that fsspec's filesystem has
(store_ranges), and to the stores of the package obstore (obstore_requests). It reads other filesystems with ``cat_file``, and
asks them for the file version after each round of requests.
"""

from __future__ import annotations

import asyncio
import importlib
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from fastpq.errors import RemoteError, UnsupportedError
from fastpq.io.file_version import FileVersion
from fastpq.io.location import Remote, is_of_arrow, protocols
from fastpq.io.origin import ends_early
from fastpq.io.retrying import ShortAnswerError
from fastpq.io.waiting import WAITER, call_filesystem, loop_of, refuse_without_loop

MOST_KEPT = 256 << 20           # bytes in the largest file that is accepted whole from a server without ranges
REQUESTS_AT_ONCE = 1280         # for one file, if the filesystem has no batch_size. fsspec has the same bound
UNENCODED = "identity"          # Accept-Encoding: ranges must count the file's own bytes, not compressed bytes
MOST_DIGITS = 19                # of a size in a header: 2^63 has as many
_CONTENT_RANGE = re.compile(r"bytes +(?:(\d{1,19})-(\d{1,19})|\*)/(\d{1,19}|\*)", re.IGNORECASE | re.ASCII)

# For the module that defines a filesystem's `_cat_file`: the module and class whose requests replace it.
_OWN_REQUESTS = {
    "fsspec.implementations.http": ("fastpq.io.store_ranges", "HttpRanges"),
    "s3fs.core": ("fastpq.io.store_ranges", "S3Ranges"),
    "gcsfs.core": ("fastpq.io.store_ranges", "GoogleRanges"),
    "gcsfs.extended_gcsfs": ("fastpq.io.store_ranges", "GoogleRanges"),
    "adlfs.spec": ("fastpq.io.store_ranges", "AzureRanges"),
    "obstore.fsspec": ("fastpq.io.obstore_requests", "ObstoreRanges"),
}
# Filesystems that keep a copy of the file. Their information is about the original, which may be gone or changed meanwhile.
_COPYING = frozenset({"cached", "blockcache", "filecache", "simplecache"})


class RangeRequest(NamedTuple):
    """A byte range to request.

    Attributes:
        start: where the range begins in the file. None requests the file's last bytes.
        length: how many bytes to request.
        size: file size in bytes. None if unknown.
    """

    start: int | None
    length: int
    size: int | None = None

    @property
    def header(self) -> str:
        """The Range header's value (RFC 9110, 14.2)."""
        return f"bytes=-{self.length}" if self.start is None else f"bytes={self.start}-{self.start + self.length - 1}"

    def __str__(self) -> str:
        text = f"the last {self.length} bytes" if self.start is None else f"bytes {self.start}-{self.start + self.length - 1}"
        return text if self.size is None else f"{text} of {self.size}"


class Answer(NamedTuple):
    """The answer to a request.

    Attributes:
        data: the bytes.
        start: where the bytes begin in the file.
        size: file size in bytes. None if the server does not tell.
        version: the file version.
    """

    data: Any
    start: int
    size: int | None
    version: FileVersion


class ConditionFailedError(Exception):
    """The server refused a request (status 412), because the file does not have the version that the request demands."""


class AnswerHead(NamedTuple):
    """An answer's status and headers.

    Attributes:
        status: HTTP status, 200 or 206.
        headers: header values by name. Names are in lower case.
    """

    status: int
    headers: Mapping[str, str]

    @property
    def content_length(self) -> int | None:
        """Size of the body in bytes. None if the server does not tell."""
        text = self.headers.get("content-length", "")
        return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None

    def place(self, request: RangeRequest) -> tuple[int, int, int | None]:
        """Compare the answered range with the requested one.

        Returns:
            (where the range begins in the file, its length, the file size or None).

        Raises:
            RemoteError: the server answered with another range, or did not tell which range it sent.
        """
        if self.status != 206:
            raise RemoteError(f"the server answered with status {self.status} to a request for {request}")
        if self.headers.get("content-type", "").lower().startswith("multipart/byteranges"):
            raise RemoteError(f"the server answered with several ranges (multipart/byteranges) to a request for {request}")
        text = self.headers.get("content-range", "")
        match = _CONTENT_RANGE.fullmatch(text.strip())
        if match is None or match[1] is None:
            raise RemoteError(f"the server answered with status 206 and Content-Range {text!r} to a request for {request}")
        first, last, size = int(match[1]), int(match[2]), None if match[3] == "*" else int(match[3])
        length = last - first + 1
        end = size if request.start is None else None
        is_right = (
            (first == request.start and length == request.length)
            if request.start is not None
            else 0 < length == min(request.length, last + 1) and end in (None, last + 1)
        )
        if not is_right or (request.size is not None and size not in (None, request.size)):
            raise RemoteError(f"the server answered with {text!r} to a request for {request}")
        content_length = self.content_length
        if content_length is not None and content_length != length:
            answer = f"{text!r} and a Content-Length of {content_length}"
            raise RemoteError(f"the server answered with {answer} to a request for {request}")
        return first, length, last + 1 if request.start is None else size


class FileRanges(ABC):
    """Range requests for one file.

    Args:
        place: the file's filesystem, path and name.

    Attributes:
        gives_ends: whether the last bytes can be requested without their offset (RFC 9110, 14.1.2). Azure does not support this.
        waiter: waits for coroutines. None blocks the thread.
    """

    gives_ends: ClassVar[bool] = True

    def __init__(self, place: Remote) -> None:
        self.filesystem = place.filesystem
        self.path = place.path
        self.waiter = WAITER.get()

    @abstractmethod
    def fetch(self, requests: Sequence[RangeRequest], version: FileVersion | None) -> list[Answer | Exception]:
        """Request ranges, all at the same time.

        Args:
            requests: the ranges.
            version: the file version in earlier answers. None before the first answer.

        Returns:
            An answer or an error for each range.
        """

    def is_usable(self) -> bool:
        """Return whether this kind of request works for the file's place."""
        return True

    def information(self) -> Any:
        """Return the filesystem's information about the file."""
        return self._call("info", self.path)

    def information_version(self, about: Mapping[str, Any]) -> FileVersion | None:
        """Return the file version from the filesystem's information. None if later answers cannot be compared with it."""
        return None

    def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        return call_filesystem(self.waiter, self.filesystem, method, *arguments, **options)


def _keeps_copies(filesystem: Any) -> bool:
    """Return whether a filesystem, or one that it wraps, reads from local copies of remote files."""
    while hasattr(filesystem, "protocol"):      # an Arrow filesystem, which fsspec may wrap, has none
        if _COPYING & protocols(filesystem):
            return True
        filesystem = getattr(filesystem, "fs", None)
    return False


class FilesystemRanges(FileRanges):
    """Requests with ``cat_file``, for any fsspec filesystem. It returns only bytes."""

    gives_ends = False

    def __init__(self, place: Remote) -> None:
        super().__init__(place)
        # Without this option, fsspec's wrapper for Arrow filesystems opens a stream for a file's first bytes, and then seeks.
        self._options: dict[str, Any] = {"seekable": True} if is_of_arrow(place.filesystem) else {}
        self._has_copy = _keeps_copies(place.filesystem)

    def fetch(self, requests: Sequence[RangeRequest], version: FileVersion | None) -> list[Answer | Exception]:
        now = FileVersion()
        answers = self._bytes(requests)
        if version is not None and version.is_known:
            try:
                now = FileVersion.from_information(self.information())
            except Exception as error:
                return [error for _ in requests]
        return [
            answer if isinstance(answer, Exception) else self._answer(request, answer, now)
            for request, answer in zip(requests, answers, strict=True)
        ]

    def information_version(self, about: Mapping[str, Any]) -> FileVersion | None:
        return None if self._has_copy else FileVersion.from_information(about)

    def _bytes(self, requests: Sequence[RangeRequest]) -> list[Any]:
        starts = [request.start for request in requests]
        ends = [(request.start or 0) + request.length for request in requests]
        if len(requests) > 1:
            paths = [self.path] * len(requests)
            answers: list[Any] = self._call("cat_ranges", paths, starts, ends, on_error="return", **self._options)
            return answers
        try:
            return [self._call("cat_file", self.path, start=starts[0], end=ends[0], **self._options)]
        except Exception as error:
            return [error]

    def _answer(self, request: RangeRequest, data: Any, version: FileVersion) -> Answer | Exception:
        size, start = request.size, request.start or 0
        if size is not None and len(data) == size > request.length:     # a server without ranges sent the whole file
            check_whole(size)
            return Answer(data, 0, size, version)
        if len(data) == request.length:
            return Answer(data, start, size, version)
        wrong = ends_early(len(data), request.length, start)
        return ShortAnswerError(wrong) if len(data) < request.length else wrong


class AsyncRanges(FileRanges):
    """Requests in coroutines, all at the same time. Each request demands the file version of earlier answers."""

    _conditional = True         # False for a server that refuses a condition although the version is right

    def fetch(self, requests: Sequence[RangeRequest], version: FileVersion | None) -> list[Answer | Exception]:
        answers: list[Answer | Exception] = self.run(self._fetch_all, requests, version)
        return answers

    def run(self, function: Callable[..., Coroutine[Any, Any, Any]], *arguments: Any) -> Any:
        """Run a coroutine function, wait for its end, and return its result."""
        if self.waiter is not None:
            return self.waiter.wait(function, *arguments, loop=loop_of(self.filesystem))
        from fsspec.asyn import sync

        return sync(self.filesystem.loop, function, *arguments)

    async def _fetch_all(self, requests: Sequence[RangeRequest], version: FileVersion | None) -> list[Answer | Exception]:
        slots = asyncio.Semaphore(self.filesystem.batch_size or REQUESTS_AT_ONCE)
        whole = WholeFile()

        async def fetch(request: RangeRequest) -> Answer | Exception:
            async with slots:
                try:
                    return await self._fetch(request, version, whole)
                except Exception as error:
                    return error

        return await asyncio.gather(*map(fetch, requests))

    async def _fetch(self, request: RangeRequest, version: FileVersion | None, whole: WholeFile) -> Answer:
        condition = None if version is None or not self._conditional else self.condition(version)
        try:
            return await self.send(request, version, condition, whole)
        except ConditionFailedError:
            # Behind a redirect, two servers may have two names for one version. The answer's own headers decide.
            answer = await self.send(request, version, None, whole)
            self._conditional = False
            return answer

    def condition(self, version: FileVersion) -> str | None:
        """Return the text with which a request demands a file version. None if there is no text that the server understands."""
        return version.strong_etag

    @abstractmethod
    async def send(
        self, request: RangeRequest, version: FileVersion | None, condition: str | None, whole: WholeFile
    ) -> Answer:
        """Send one request.

        Args:
            request: the range.
            version: the file version in earlier answers.
            condition: the version that the request demands.
            whole: takes the whole file, if the server sends it.

        Raises:
            ConditionFailedError: the server refused the condition.
            RemoteError: the answer has another range or file version than requested, or cannot be used.
        """


class WholeFile:
    """The whole file. A server without ranges sends it as the answer to each request, but it is read only once."""

    def __init__(self) -> None:
        self._answer: Answer | None = None
        self._taking = asyncio.Lock()

    async def take(
        self, request: RangeRequest, head: AnswerHead, version: FileVersion | None, body: AsyncIterator[bytes]
    ) -> Answer:
        """Return the whole file from the first answer with status 200. Later answers are not read.

        Raises:
            UnsupportedError: the file has more than MOST_KEPT bytes.
            RemoteError: this is not the file that was opened.
        """
        async with self._taking:
            if self._answer is None:
                check_whole(head.content_length or 0)
                data = await read_body(body, MOST_KEPT if request.size is None else min(MOST_KEPT, request.size))
                check_whole(len(data))
                if request.size not in (None, len(data)):
                    raise RemoteError(f"the server answered with status 200 and another file to a request for {request}")
                now = FileVersion.from_headers(head.headers, len(data))
                if version is not None:
                    version.check_unchanged(now)
                self._answer = Answer(data, 0, len(data), now)
            return self._answer


async def take_answer(
    request: RangeRequest, head: AnswerHead, version: FileVersion | None, body: AsyncIterator[bytes], whole: WholeFile
) -> Answer:
    """Check an answer's head, and then read its body.

    No more bytes are accepted than were requested. If the server sends the whole file, at most MOST_KEPT bytes are accepted.

    Args:
        request: the requested range.
        head: status and headers.
        version: the file version in earlier answers.
        body: yields the body's bytes, piece by piece.
        whole: takes the whole file, if the server sends it.

    Raises:
        RemoteError: the answer has another range or file version than requested.
        UnsupportedError: the server sends the whole file, and the file is too large for that.
        ShortAnswerError: the body ended early.
    """
    if head.status == 200:
        return await whole.take(request, head, version, body)
    if version is not None:
        version.check_unchanged(FileVersion.from_headers(head.headers, None))
    start, length, size = head.place(request)
    data = await read_body(body, length)
    if len(data) > length:
        raise RemoteError(f"the server sent more bytes than its Content-Range says to a request for {request}")
    if len(data) < length:
        raise ShortAnswerError(ends_early(len(data), length, start))
    return Answer(data, start, size, FileVersion.from_headers(head.headers, size))


async def read_body(body: AsyncIterator[bytes], most: int) -> bytes:
    """Read a body, and return its bytes. Stop as soon as there are more than ``most`` bytes, and return these."""
    parts: list[bytes] = []
    count = 0
    async for part in body:
        parts.append(part)
        count += len(part)
        if count > most:
            break
    return parts[0] if len(parts) == 1 else b"".join(parts)


def check_whole(size: int) -> None:
    """Refuse a file that is too large to be accepted whole.

    Raises:
        UnsupportedError: the file has more than MOST_KEPT bytes.
    """
    if size > MOST_KEPT:
        raise UnsupportedError(
            f"the server sends the whole file of {size} bytes or more for each range, and {MOST_KEPT} bytes are the most that is "
            "taken; download the file"
        )


def range_requests_of(place: Remote) -> FileRanges:
    """Return the requests for a file. Known filesystems have requests with checked headers, others use ``cat_file``."""
    filesystem = place.filesystem
    if WAITER.get() is None:
        refuse_without_loop(filesystem)
    if filesystem.async_impl and "_cat_file" not in vars(filesystem):
        own = _OWN_REQUESTS.get(type(filesystem)._cat_file.__module__)
        if own is not None:
            ranges: FileRanges = getattr(importlib.import_module(own[0]), own[1])(place)
            if ranges.is_usable():
                return ranges
    return FilesystemRanges(place)
