"""open_source: the source for a path, a URL, a buffer or a file object. Also sources for the files beside a file."""

from __future__ import annotations

import io
import mmap
import os
import posixpath
import threading
from typing import Any, NamedTuple

import numpy as np

from fastpq.errors import FormatError, SchemaError
from fastpq.io.location import Remote, locate
from fastpq.io.origin import FileOrigin, MemoryOrigin
from fastpq.io.source import Bytes, BytesSource, IOCounts, OriginSource, Source, read_only
from fastpq.options import DEFAULT_MAX_ATTEMPTS, MemoryMap, ReaderProperties

_BUFFERS = (bytes, bytearray, memoryview)       # these are never places, whatever they contain


class KnownFile(NamedTuple):
    """A file whose footer is known from another file.

    Attributes:
        where: the file's place, a path or a RemotePath.
        footer: the file's serialized FileMetaData.
    """

    where: Any
    footer: bytes


def open_source(where: Any, *, memory_map: MemoryMap = False, properties: ReaderProperties | None = None) -> Source:
    """Open a source for reading.

    Args:
        where: a local path (str, PathLike or ``file://`` URL), a bytes-like object, a seekable binary file object, an
            fsspec URL (``scheme://``), an object with an fsspec filesystem ``fs`` and a ``path``, or a KnownFile.
        memory_map: ``"keep"`` maps a local file. Bytes that are not authenticated are then views of the map, or of a buffer. If
            the file is truncated meanwhile, the operating system ends this process (SIGBUS) when it touches a lost page. Writes
            into the file change the views. False and True copy the bytes. A file that shrinks then raises a FormatError.
        properties: how ranges are coalesced, and which files beside the file may be opened. None takes the defaults, and opens no
            files beside the file.

    Raises:
        UnsupportedError: fsspec, or its package for the URL's scheme, is not installed.
        RemoteError: the server refused, was out of reach, or did not finish its answer.
        OSError: the file cannot be opened.
        SchemaError: ``where`` is not a place from which bytes can be read.
        TypeError: memory_map has a wrong value.
    """
    if not isinstance(memory_map, bool) and memory_map != "keep":
        raise TypeError(f'memory_map must be True, False or "keep", not {memory_map!r}')
    where, footer = where if isinstance(where, KnownFile) else (where, None)
    place = None if isinstance(where, _BUFFERS) else locate(where)
    attempts = DEFAULT_MAX_ATTEMPTS if properties is None else properties.max_attempts
    if place is None:
        source = _open_object(where, memory_map)
    else:
        source = _open_place(place, memory_map, attempts, with_tail=footer is None)
    source.footer = footer
    if properties is not None:
        source.coalesce_gap, source.coalesce_size = properties.coalesce_gap, properties.coalesce_size
        if place is not None:
            source.siblings = Siblings(place, memory_map, properties)
    return source


def _open_place(place: str | Remote, memory_map: MemoryMap, attempts: int, *, with_tail: bool) -> Source:
    if isinstance(place, Remote):
        from fastpq.io.remote_source import FsspecSource

        return FsspecSource(place, attempts, with_tail=with_tail)
    return _open_local(place, memory_map)


def _open_local(path: str, memory_map: MemoryMap) -> Source:
    """Open a local file. ``"keep"`` maps the file, so that arrays may be views of the map.

    Raises:
        OSError: the file cannot be opened.
    """
    file = FileOrigin(path)
    return OriginSource(file, path, _mapped(file) if memory_map == "keep" else None)


def _mapped(file: FileOrigin) -> Bytes | None:
    """Map a file into memory, and return its bytes. None for an empty file, which cannot be mapped."""
    return np.frombuffer(mmap.mmap(file.fileno, file.size, access=mmap.ACCESS_READ), np.uint8) if file.size else None


def _open_object(where: Any, memory_map: MemoryMap) -> Source:
    """Return the source for a buffer or a file object."""
    name = type(where).__name__
    try:
        view = memoryview(where)
    except (TypeError, ValueError):
        if hasattr(where, "read") and hasattr(where, "seek") and not isinstance(where, io.TextIOBase):
            from fastpq.io.file_object import FileObjectSource

            return FileObjectSource(where)
        raise SchemaError(f"cannot read from a {name}: give a path, a URL, a buffer or a binary file object") from None
    if not view.contiguous:
        raise SchemaError("a buffer to read from must be contiguous")
    view = view.cast("B") if view.nbytes else memoryview(b"")
    if type(view.obj) is bytes:
        return BytesSource(view, name)
    data = np.frombuffer(view, np.uint8)
    return OriginSource(MemoryOrigin(data), name, read_only(data) if memory_map == "keep" else None)


class Siblings:
    """Opens files whose paths are relative to a base file. Each open file is kept for later reads.

    Args:
        base: the base file, as a local path or a path on an fsspec filesystem.
        memory_map: as in open_source.
        properties: whether paths may lead out of the file's directory, and how ranges are coalesced.
    """

    def __init__(self, base: str | Remote, memory_map: MemoryMap, properties: ReaderProperties) -> None:
        self._base = base
        self._memory_map = memory_map
        self._properties = properties
        self._opening = threading.Lock()
        self._open_sources: dict[str, Source] = {}

    def open(self, file_path: str) -> Source:
        """Return the source for a file, by its relative path.

        Raises:
            FormatError: the path leads out of the directory, or there is no such file.
            OSError: the file cannot be opened.
        """
        with self._opening:
            known_source = self._open_sources.get(file_path)
        if known_source is not None:
            return known_source
        try:
            source = self._open(file_path)      # without the lock, since another read may go on in this thread (fastpq.aio)
        except FileNotFoundError as error:
            raise FormatError(f"a column chunk is in {file_path!r}, which does not exist") from error
        source.coalesce_gap, source.coalesce_size = self._properties.coalesce_gap, self._properties.coalesce_size
        with self._opening:
            first_source = self._open_sources.setdefault(file_path, source)
        if first_source is not source:
            source.close()
        return first_source

    @property
    def counts(self) -> IOCounts:
        """Requests and bytes for all files together."""
        with self._opening:
            each = [source.counts for source in self._open_sources.values()]
        return IOCounts(sum(counts.requests for counts in each), sum(counts.bytes_read for counts in each))

    def close(self) -> None:
        """Close the files. Arrays that were read from them stay valid."""
        with self._opening:
            for source in self._open_sources.values():
                source.close()

    def _open(self, file_path: str) -> Source:
        is_inside = self._properties.allow_outside_files or _stays_inside(file_path)
        if isinstance(self._base, Remote):
            if not is_inside:
                raise _leads_out(file_path)
            remote = self._base.beside(file_path)
            from fastpq.io.remote_source import FsspecSource

            return FsspecSource(remote)
        directory = os.path.dirname(os.path.abspath(self._base))
        path = os.path.join(directory, file_path)
        # A symbolic link may lead out too.
        if not is_inside or not (self._properties.allow_outside_files or _is_below(path, directory)):
            raise _leads_out(file_path)
        return _open_local(path, self._memory_map)


def _stays_inside(file_path: str) -> bool:
    parts = file_path.replace("\\", "/").split("/")
    is_absolute = posixpath.isabs(file_path) or os.path.isabs(file_path) or "\\" in file_path[:1] or ":" in parts[0]
    return not is_absolute and ".." not in parts and "\0" not in file_path


def _is_below(path: str, directory: str) -> bool:
    return os.path.realpath(path).startswith(os.path.join(os.path.realpath(directory), ""))


def _leads_out(file_path: str) -> FormatError:
    return FormatError(
        f"a column chunk is in {file_path!r}, which is not below the directory of this file (allow_outside_files=True reads it)"
    )
