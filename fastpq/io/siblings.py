"""Files beside a file: sources of the column chunks with a file_path (parquet.thrift, ``ColumnChunk``)."""

from __future__ import annotations

import os
import posixpath
import threading

from fastpq.errors import FormatError
from fastpq.io.location import Remote
from fastpq.io.source import IOCounts, Source, open_source
from fastpq.options import MemoryMap, ReaderProperties


class Siblings:
    """Opens files by their paths relative to a file, each file once.

    Args:
        base: the file: a local path, or a path on an fsspec filesystem.
        memory_map: as for open_source.
        properties: whether paths may lead out of the file's directory, and how ranges are coalesced.
    """

    def __init__(self, base: str | Remote, memory_map: MemoryMap, properties: ReaderProperties) -> None:
        self._base = base
        self._memory_map = memory_map
        self._properties = properties
        self._opening = threading.Lock()
        self._opened: dict[str, Source] = {}

    def open(self, file_path: str) -> Source:
        """The source of a file, by its relative path.

        Raises:
            FormatError: the path leads out of the directory, or there is no such file.
            OSError: the file cannot be opened.
        """
        with self._opening:
            if file_path not in self._opened:
                try:
                    source = self._open(file_path)
                except FileNotFoundError as error:
                    raise FormatError(f"a column chunk in {file_path!r}, which is not there") from error
                source.coalesce_gap, source.coalesce_size = self._properties.coalesce_gap, self._properties.coalesce_size
                self._opened[file_path] = source
            return self._opened[file_path]

    @property
    def counts(self) -> IOCounts:
        """Requests and bytes of all files together."""
        with self._opening:
            each = [source.counts for source in self._opened.values()]
        return IOCounts(sum(counts.requests for counts in each), sum(counts.bytes_read for counts in each))

    def close(self) -> None:
        """Close the files; arrays read from the files stay valid."""
        with self._opening:
            for source in self._opened.values():
                source.close()

    def _open(self, file_path: str) -> Source:
        inside = self._properties.allow_outside_files or _stays_inside(file_path)
        if isinstance(self._base, Remote):
            if not inside:
                raise _leads_out(file_path)
            remote = self._base.beside(file_path)
            from fastpq.io.remote_source import FsspecSource

            return FsspecSource(remote)
        directory = os.path.dirname(os.path.abspath(self._base))
        path = os.path.join(directory, file_path)
        # a symbolic link may lead out as well
        if not inside or not (self._properties.allow_outside_files or _is_below(path, directory)):
            raise _leads_out(file_path)
        return open_source(path, memory_map=self._memory_map)


def _stays_inside(file_path: str) -> bool:
    parts = file_path.replace("\\", "/").split("/")
    is_absolute = posixpath.isabs(file_path) or os.path.isabs(file_path) or "\\" in file_path[:1] or ":" in parts[0]
    return not is_absolute and ".." not in parts and "\0" not in file_path


def _is_below(path: str, directory: str) -> bool:
    return os.path.realpath(path).startswith(os.path.join(os.path.realpath(directory), ""))


def _leads_out(file_path: str) -> FormatError:
    return FormatError(
        f"a column chunk in {file_path!r}, which is not below the directory of this file (allow_outside_files=True reads it)"
    )
