"""Sources of bytes: local files, buffers, file objects, and fsspec filesystems."""

from __future__ import annotations

import io
import itertools
import mmap
import threading
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq.errors import FormatError, SchemaError, UnsupportedError
from fastpq.io.coalescing import Range, coalesce
from fastpq.io.counts import checked_count
from fastpq.io.location import Remote, locate
from fastpq.io.origin import FileOrigin, MemoryOrigin, Origin, StoredBytes, ends_early, total_within
from fastpq.options import DEFAULT_COALESCE_GAP, DEFAULT_COALESCE_SIZE, DEFAULT_MAX_ATTEMPTS, MemoryMap, ReaderProperties

Bytes: TypeAlias = NDArray[np.uint8]
Stored: TypeAlias = Bytes | StoredBytes      # in memory, or to be read in pieces
_BUFFERS = (bytes, bytearray, memoryview)     # no place, whatever their contents


class IOCounts(NamedTuple):
    """Number of reads from the origin of the bytes, and number of bytes read."""

    requests: int
    bytes_read: int


class KnownFile(NamedTuple):
    """A file whose footer is known from another file.

    Attributes:
        where: its place, a path or a RemotePath.
        footer: its serialized FileMetaData.
    """

    where: Any
    footer: bytes


class Neighbours(Protocol):
    """Opens files by their paths relative to a file (fastpq.io.siblings)."""

    def open(self, file_path: str) -> Source: ...
    @property
    def counts(self) -> IOCounts: ...
    def close(self) -> None: ...


class Source:
    """Bytes readable at any offset, from several threads at once.

    Attributes:
        name: path, URL or the object's own name, for messages.
        size: bytes in all.
        requests: number of reads from the origin of the bytes.
        bytes_read: number of bytes read from the origin.
        is_remote: whether requests take long enough to make reading ahead worthwhile.
        walks_late: whether ``walk`` reads nothing: the bytes of a chunk are read while used, or are in memory.
        gives_views: whether arrays may be views of memory that exists anyway, of bytes or of a mapped file.
        coalesce_gap, coalesce_size: default gap and limit of read_ranges.
        siblings: opens other files by their relative paths; None if the source has no path.
        footer: the serialized FileMetaData, if known without a read; else None.
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

    def read(self, offset: int, length: int) -> Bytes:
        """Read one range.

        Returns:
            Shape (length,), uint8, read-only; nobody else can change the bytes.

        Raises:
            FormatError: the range is not inside the source, or the source gave fewer bytes.
            OSError: as reported by the origin of the bytes.
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
        """Read many ranges, with one request for ranges close together.

        Args:
            ranges: (offset, length) each, in any order.
            gap: most bytes between two ranges in one request; None for coalesce_gap.
            limit: most bytes of a request for several ranges; None for coalesce_size.

        Returns:
            An array for each range, in the order asked, as read returns it.

        Raises:
            FormatError, OSError: as read does.
        """
        asked = list(ranges)
        for offset, length in asked:
            self._check(offset, length)
        found = [self._known(offset, length) for offset, length in asked]
        missing = [place for place, known in enumerate(found) if known is None]
        merged, places = coalesce(
            [asked[place] for place in missing],
            self.coalesce_gap if gap is None else gap,
            self.coalesce_size if limit is None else limit,
        )
        data = self._fetch_many(merged)
        for place, (request, start) in zip(missing, places, strict=True):
            found[place] = data[request][start : start + asked[place][1]]
        return [part for part in found if part is not None]

    def walk(self, chunks: Sequence[Sequence[Range]], *, authentic: bool) -> list[Stored]:
        """Bytes to be used once, from front to back; ranges close together are read with one request.

        Args:
            chunks: (offset, length) of ranges to be used one behind the other, for each chunk.
            authentic: whether bytes are authenticated before their use, and nobody may change the bytes meanwhile.

        Returns:
            The bytes of each chunk: in memory, read-only, or to be read in pieces.

        Raises:
            FormatError, OSError: as ``read``.
        """
        read = iter(self.read_ranges([part for chunk in chunks for part in chunk]))
        parts = [list(itertools.islice(read, len(chunk))) for chunk in chunks]
        return [_joined(part) for part in parts]

    def walk_run(self, ranges: list[Range], *, authentic: bool) -> tuple[Stored, bool]:
        """Bytes of ranges to be used once, one range after the other; of a source that walks late.

        Args:
            ranges: (offset, length) each.
            authentic: as for ``walk``.

        Returns:
            All bytes of the source, in memory, read-only, and True; or the bytes of the ranges, one range behind the other, to be
            read in pieces, and False.

        Raises:
            FormatError, OSError: as ``read``.
        """
        raise NotImplementedError

    def beside(self, file_path: str) -> Source:
        """The source of another file, by its path relative to this file.

        Raises:
            UnsupportedError: this source is a buffer or a file object, and has no path.
            FormatError: the path leads out of the directory, or to no file.
            OSError: the file cannot be opened.
        """
        if self.siblings is None:
            raise UnsupportedError(f"a column chunk in {file_path!r}, beside something that is not opened by its path")
        return self.siblings.open(file_path)

    @property
    def counts(self) -> IOCounts:
        """Requests and bytes so far, of this file and of files opened beside."""
        others = IOCounts(0, 0) if self.siblings is None else self.siblings.counts
        with self._counting:
            return IOCounts(self.requests + others.requests, self.bytes_read + others.bytes_read)

    def close(self) -> None:
        """Close the files opened here; arrays read before stay valid."""
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

    def _fetch(self, offset: int, length: int) -> Bytes:
        """The bytes of a checked range; fewer if the source ends before its stated size."""
        raise NotImplementedError

    def _fetch_many(self, ranges: list[Range]) -> list[Bytes]:
        return [self.read(offset, length) for offset, length in ranges]

    def _known(self, offset: int, length: int) -> Bytes | None:
        """The bytes of a range in memory; None if a request is needed."""
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
    """Bytes that nobody can change: reading is slicing."""

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
        """A slice for each range; merging ranges would gain nothing."""
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
    """A local file, or memory of the caller: bytes that others may change are copied before their use.

    Args:
        origin: file or memory.
        name: path, or name of the object.
        views: all bytes in place, for ``walk`` of bytes without authentication; None to copy these too.
    """

    walks_late = True

    def __init__(self, origin: Origin, name: str, views: Bytes | None = None) -> None:
        self._origin: Origin | None = origin
        self._views = views
        self.gives_views = views is not None
        super().__init__(name, origin.size)

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
        # A read under way holds the origin; the garbage collector closes file and map after their last use.
        self._origin = self._views = None


class FileObjectSource(Source):
    """A seekable binary file object, closed only if owned; one read at a time, because the object has one position."""

    def __init__(self, file: Any, name: str | None = None, *, owned: bool = False) -> None:
        self._file = file
        self._owned = owned
        self._reading = threading.Lock()
        if not getattr(file, "seekable", lambda: True)():
            raise UnsupportedError("reading from a file object that cannot seek")
        file.seek(0, io.SEEK_END)
        name = name or str(getattr(file, "name", type(file).__name__))
        super().__init__(name, checked_count(file.tell(), None, "tell", name))

    def _fetch(self, offset: int, length: int) -> Bytes:
        with self._reading:
            self._file.seek(offset)
            if hasattr(self._file, "readinto"):
                return self._read_into(length)
            return self._read_pieces(length)

    def _read_into(self, length: int) -> Bytes:
        data = np.zeros(length, np.uint8)   # an object may fill less than it says; the rest is no memory of this process
        view = data.data
        filled = 0
        while filled < length:
            count = checked_count(self._file.readinto(view[filled:]), length - filled, "readinto", self.name)
            if not count:
                break
            filled += count
        return data[:filled]

    def _read_pieces(self, length: int) -> Bytes:
        pieces: list[bytes] = []
        missing = length
        while missing > 0:
            piece = self._file.read(missing)
            if piece is None:
                checked_count(None, missing, "read", self.name)
            if not isinstance(piece, bytes | bytearray | memoryview):
                raise SchemaError(f"a file object returned a {type(piece).__name__} from read", path=self.name)
            if not checked_count(memoryview(piece).nbytes, missing, "read", self.name):
                break
            pieces.append(bytes(piece))
            missing -= len(pieces[-1])
        return np.frombuffer(pieces[0] if len(pieces) == 1 else b"".join(pieces), np.uint8)

    def close(self) -> None:
        super().close()
        if self._owned:
            with self._reading:
                self._file.close()


def read_only(data: Bytes) -> Bytes:
    """The same bytes, not to be written to."""
    if data.flags.writeable:
        data.flags.writeable = False
    return data


def _joined(parts: Sequence[Bytes]) -> Bytes:
    return parts[0] if len(parts) == 1 else read_only(np.concatenate([np.empty(0, np.uint8), *parts]))


def private(data: Any) -> Bytes:
    """Bytes of a file object or a filesystem as an array; memory that others may change is copied."""
    return np.frombuffer(data if type(data) is bytes else bytes(data), np.uint8)


def _closed(name: str) -> ValueError:
    """The error of a read from a closed source."""
    return ValueError(f"{name} is closed")


def open_source(where: Any, *, memory_map: MemoryMap = False, properties: ReaderProperties | None = None) -> Source:
    """Open a source for reading.

    Args:
        where: a local path (str, PathLike or ``file://`` URL), a bytes-like object, a seekable binary file object, an
            fsspec URL (``scheme://``), or an object with an fsspec filesystem ``fs`` and a ``path``; or a KnownFile.
        memory_map: ``"keep"`` maps a local file, and gives views of the map and of buffers for bytes without authentication. If
            the file is truncated while mapped, the operating system ends this process (SIGBUS) when a lost page is touched;
            writes into the file change the views. False and True copy the bytes: a file that shrinks is a FormatError.
        properties: how ranges are coalesced, and which files beside are in reach; None for defaults, and no file beside.

    Raises:
        UnsupportedError: fsspec, or its package for the URL's scheme, is not installed.
        RemoteError: the server refused, was out of reach, or did not finish its answer.
        OSError: the file cannot be opened.
        SchemaError: where is none of these.
        TypeError: another memory_map.
    """
    if not isinstance(memory_map, bool) and memory_map != "keep":
        raise TypeError(f'memory_map is True, False or "keep", not {memory_map!r}')
    where, footer = where if isinstance(where, KnownFile) else (where, None)
    place = None if isinstance(where, _BUFFERS) else locate(where)
    attempts = DEFAULT_MAX_ATTEMPTS if properties is None else properties.max_attempts
    source = _open_object(where, memory_map) if place is None else _open_place(place, memory_map, attempts, footer is not None)
    source.footer = footer
    if properties is not None:
        source.coalesce_gap, source.coalesce_size = properties.coalesce_gap, properties.coalesce_size
        if place is not None:
            from fastpq.io.siblings import Siblings

            source.siblings = Siblings(place, memory_map, properties)
    return source


def _open_place(place: str | Remote, memory_map: MemoryMap, attempts: int, is_known: bool) -> Source:
    if isinstance(place, Remote):
        from fastpq.io.remote_source import FsspecSource

        return FsspecSource(place, attempts, with_tail=not is_known)
    file = FileOrigin(place)
    return OriginSource(file, place, _mapped(file) if memory_map == "keep" else None)


def _open_object(where: Any, memory_map: MemoryMap) -> Source:
    """The source of a buffer or a file object."""
    name = type(where).__name__
    try:
        view = memoryview(where)
    except (TypeError, ValueError):
        if hasattr(where, "read") and hasattr(where, "seek") and not isinstance(where, io.TextIOBase):
            return FileObjectSource(where)
        raise SchemaError(f"cannot read from {name}: neither a path, a URL, a buffer nor a binary file object") from None
    if not view.contiguous:
        raise SchemaError("a buffer to read from must be contiguous")
    view = view.cast("B") if view.nbytes else memoryview(b"")
    if type(view.obj) is bytes:
        return BytesSource(view, name)
    data = np.frombuffer(view, np.uint8)
    return OriginSource(MemoryOrigin(data), name, read_only(data) if memory_map == "keep" else None)


def _mapped(file: FileOrigin) -> Bytes | None:
    """A map of a file; None for an empty file, which cannot be mapped."""
    return np.frombuffer(mmap.mmap(file.fileno, file.size, access=mmap.ACCESS_READ), np.uint8) if file.size else None
