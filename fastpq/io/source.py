"""Source: bytes that can be read at any offset. This module has the sources for memory and local files."""

from __future__ import annotations

import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq.errors import FormatError, UnsupportedError
from fastpq.io.coalescing import Range, coalesce
from fastpq.io.origin import FileOrigin, Origin, StoredBytes, ends_early, total_within
from fastpq.options import DEFAULT_COALESCE_GAP, DEFAULT_COALESCE_SIZE

if TYPE_CHECKING:
    from fastpq.io.waiting import Pool

Bytes: TypeAlias = NDArray[np.uint8]
Stored: TypeAlias = Bytes | StoredBytes      # bytes in memory, or bytes that are read in pieces later


class IOCounts(NamedTuple):
    """How many reads a source made, and how many bytes they took."""
    requests: int
    bytes_read: int


class Neighbours(Protocol):
    """Opens files whose paths are relative to another file (fastpq.io.source_opening)."""

    def open(self, file_path: str) -> Source: ...
    @property
    def counts(self) -> IOCounts: ...
    def close(self) -> None: ...


class Source(ABC):
    """Bytes that several threads can read at any offset.

    Attributes:
        name: path, URL or the object's own name, for messages.
        size: size in bytes.
        requests: how many reads were made.
        bytes_read: how many bytes these reads returned.
        is_remote: whether requests take so long that reading ahead is worthwhile.
        walks_late: whether ``walk`` reads nothing, because the bytes are in memory, or are read while they are used.
        gives_views: whether arrays may be views. They then share memory with the bytes object or the mapped file.
        coalesce_gap, coalesce_size: defaults for the arguments of read_ranges.
        siblings: opens other files by their relative paths. None if the source has no path.
        footer: the serialized FileMetaData, if it is known without a read. Else None.
    """

    is_remote = False
    walks_late = False
    gives_views = False
    siblings: Neighbours | None = None
    footer: bytes | None = None

    def __init__(self, name: str, size: int) -> None:
        self.coalesce_gap = DEFAULT_COALESCE_GAP
        self.coalesce_size = DEFAULT_COALESCE_SIZE
        self.name = name
        self.size = size
        self.requests = 0
        self.bytes_read = 0
        self._counting = threading.Lock()

    @property
    def identity(self) -> tuple[int, ...] | None:
        """Numbers that are equal if the file is opened again and did not change. None if they are unknown."""
        return None

    @property
    def kept_bytes(self) -> int:
        """Bytes from the end of the file that are kept for later reads."""
        return 0

    def drop_tail(self) -> None:            # noqa: B027 - most sources keep nothing
        """Free the kept bytes. Later reads ask for them again."""

    def read(self, offset: int, length: int) -> Bytes:
        """Read one range.

        Returns:
            Shape (length,), uint8, read-only. Nobody else can change the bytes.

        Raises:
            FormatError: the range is not inside the source, or the source gave fewer bytes.
            OSError: the file or server reported an error.
        """
        self._check(offset, length)
        data = self._fetch(offset, length) if length else np.empty(0, np.uint8)
        if len(data) != length:
            raise ends_early(len(data), length, offset).at(path=self.name)
        self._count(1 if length else 0, length)
        data.flags.writeable = False
        return data

    def read_ranges(
        self, ranges: Iterable[Range], *, gap: int | None = None, limit: int | None = None
    ) -> list[Bytes]:
        """Read many ranges. Ranges that are close together take one request.

        Args:
            ranges: (offset, length) each, in any order.
            gap: ranges with at most this many bytes between them are read together. None for coalesce_gap.
            limit: largest request for several ranges, in bytes. None for coalesce_size.

        Returns:
            For each range, an array like the one from ``read``, in the same order as ``ranges``.

        Raises:
            FormatError, OSError: as in ``read``.
        """
        all_ranges = list(ranges)
        for offset, length in all_ranges:
            self._check(offset, length)
        parts = [self._known(offset, length) for offset, length in all_ranges]
        missing = [place for place, part in enumerate(parts) if part is None]
        merged_ranges, places = coalesce(
            [all_ranges[place] for place in missing],
            self.coalesce_gap if gap is None else gap,
            self.coalesce_size if limit is None else limit,
        )
        data = self._fetch_many(merged_ranges)
        for place, (request, start) in zip(missing, places, strict=True):
            parts[place] = data[request][start : start + all_ranges[place][1]]
        return [part for part in parts if part is not None]

    def walk(self, chunks: Sequence[Sequence[Range]], *, authentic: bool) -> list[Stored]:
        """Return bytes that will be used once, from front to back. Ranges that are close together are read with one request.

        Args:
            chunks: for each chunk, its consecutive ranges, (offset, length) each.
            authentic: whether the bytes are authenticated before their use. Nobody may then change them in between.

        Returns:
            Each chunk's bytes. They are either in memory and read-only, or are read in pieces later.

        Raises:
            FormatError, OSError: as in ``read``.
        """
        arrays = iter(self.read_ranges([part for chunk in chunks for part in chunk]))
        parts = [list(itertools.islice(arrays, len(chunk))) for chunk in chunks]
        return [_joined(part) for part in parts]

    def walk_run(self, ranges: list[Range], *, authentic: bool) -> tuple[Stored, bool]:
        """Return the bytes in consecutive ranges, which will be used once.

        Args:
            ranges: (offset, length) each.
            authentic: as in ``walk``.

        Returns:
            (bytes, whether these are all bytes in the source). All bytes are in memory and read-only. Otherwise they are the
            ranges' bytes one after another, as in ``walk``.

        Raises:
            FormatError, OSError: as in ``read``.
        """
        return self.walk([ranges], authentic=authentic)[0], False

    def beside(self, file_path: str) -> Source:
        """Return the source for another file. Its path is relative to this file.

        Raises:
            UnsupportedError: this source is a buffer or a file object, which has no path.
            FormatError: the path leads out of the directory, or there is no such file.
            OSError: the file cannot be opened.
        """
        if self.siblings is None:
            raise UnsupportedError(f"a column chunk is in {file_path!r}, beside a file that was not opened by its path")
        return self.siblings.open(file_path)

    @property
    def counts(self) -> IOCounts:
        """Requests and bytes so far, for this file and for the files beside it."""
        others = IOCounts(0, 0) if self.siblings is None else self.siblings.counts
        with self._counting:
            return IOCounts(self.requests + others.requests, self.bytes_read + others.bytes_read)

    def start_pool(self, threads: int) -> Pool:
        """Start a pool that reads ahead of decoding.

        Args:
            threads: how many reads it makes at the same time.
        """
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(threads, thread_name_prefix="fastpq-fetch")

    def close(self) -> None:
        """Close the files that this source opened. Arrays that were read before stay valid."""
        if self.siblings is not None:
            self.siblings.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, {self.size} bytes>"

    @abstractmethod
    def _fetch(self, offset: int, length: int) -> Bytes:
        """Return the bytes in a range that is inside the source. They are fewer if the source has become shorter."""

    def _fetch_many(self, ranges: list[Range]) -> list[Bytes]:
        return [self.read(offset, length) for offset, length in ranges]

    def _known(self, offset: int, length: int) -> Bytes | None:
        """Return a range's bytes if they are in memory. None if they need a request."""
        return None

    def _check(self, offset: int, length: int) -> None:
        if offset < 0 or length < 0 or offset > self.size or length > self.size - offset:
            raise self._outside(offset, length)

    def _outside(self, offset: int, length: int) -> FormatError:
        return FormatError(f"{length} bytes at offset {offset} are outside the file of {self.size} bytes", path=self.name)

    def _walked(self, ranges: list[Range]) -> None:
        """Check and count ranges."""
        total, outside = total_within(ranges, self.size)
        if outside is not None:
            raise self._outside(*outside)
        self._count(len(ranges), total)

    def _count(self, requests: int, size: int) -> None:
        with self._counting:
            self.requests += requests
            self.bytes_read += size


class BytesSource(Source):
    """Bytes that nobody can change. Reading them means slicing."""

    walks_late = gives_views = True

    def __init__(self, data: memoryview, name: str) -> None:
        self._data: Bytes | None = np.frombuffer(data, np.uint8) if data.nbytes else np.empty(0, np.uint8)
        super().__init__(name, len(self._data))

    def _fetch(self, offset: int, length: int) -> Bytes:
        if self._data is None:
            raise _closed(self.name)
        return self._data[offset : offset + length]

    def read_ranges(
        self, ranges: Iterable[Range], *, gap: int | None = None, limit: int | None = None
    ) -> list[Bytes]:
        """Return a slice for each range. Merging ranges would gain nothing."""
        return [self.read(offset, length) for offset, length in ranges]

    def walk(self, chunks: Sequence[Sequence[Range]], *, authentic: bool) -> list[Stored]:
        return [self.read(*chunk[0]) if len(chunk) == 1 else _joined(self.read_ranges(chunk)) for chunk in chunks]

    def walk_run(self, ranges: list[Range], *, authentic: bool) -> tuple[Stored, bool]:
        if self._data is None:
            raise _closed(self.name)
        self._walked(ranges)
        return self._data, True

    def close(self) -> None:
        self._data = None


class OriginSource(Source):
    """A local file, or the caller's memory. Others may change these bytes, so they are copied before their use.

    Args:
        origin: the file or the memory.
        name: the file's path, or the object's name.
        views: all bytes in place. ``walk`` returns views of them if the bytes are not authenticated. None copies these bytes too.
    """

    walks_late = True

    def __init__(self, origin: Origin, name: str, views: Bytes | None = None) -> None:
        self._origin: Origin | None = origin
        self._views = views
        self.gives_views = views is not None
        super().__init__(name, origin.size)

    @property
    def identity(self) -> tuple[int, ...] | None:
        return self._origin.identity if isinstance(self._origin, FileOrigin) else None

    def walk(self, chunks: Sequence[Sequence[Range]], *, authentic: bool) -> list[Stored]:
        if self._origin is None:
            raise _closed(self.name)
        self._walked([part for chunk in chunks for part in chunk])
        if self._views is None or authentic:
            return [StoredBytes(self._origin, chunk) for chunk in chunks]
        return [_joined([self._views[offset : offset + length] for offset, length in chunk]) for chunk in chunks]

    def walk_run(self, ranges: list[Range], *, authentic: bool) -> tuple[Stored, bool]:
        if self._origin is None:
            raise _closed(self.name)
        self._walked(ranges)
        if self._views is None or authentic:
            return StoredBytes(self._origin, ranges), False
        return self._views, True

    def _fetch(self, offset: int, length: int) -> Bytes:
        if self._origin is None:
            raise _closed(self.name)
        data = np.empty(length, np.uint8)
        return data[: self._origin.read(offset, data)]

    def close(self) -> None:
        super().close()
        # A running read keeps its own reference. File and map are closed when the last reference is gone.
        self._origin = self._views = None


def read_only(data: Bytes) -> Bytes:
    """Make an array read-only, and return it."""
    if data.flags.writeable:
        data.flags.writeable = False
    return data


def _joined(parts: Sequence[Bytes]) -> Bytes:
    return parts[0] if len(parts) == 1 else read_only(np.concatenate([np.empty(0, np.uint8), *parts]))


def private(data: Any) -> Bytes:
    """Return bytes from a file object or a filesystem as an array. Memory that others could change is copied."""
    return np.frombuffer(data if type(data) is bytes else bytes(data), np.uint8)


def _closed(name: str) -> ValueError:
    return ValueError(f"{name} is closed")
