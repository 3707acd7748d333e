"""A stream's log: the paths of all files that were read so far. Offsets stay small because the log is kept beside them.

The log is a folder with segments. A segment is a file that holds the paths for consecutive batches and never changes. Each batch
adds a segment. It is merged with the segment before while that one has at most twice as many paths. An offset therefore names
about log2(files) segments. A segment that a merged one has replaced stays for KEPT_BATCHES batches, because Spark may restart
from an earlier offset.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import re
import uuid
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from fastpq.spark.core import FileSink, FormatError, SchemaError
from fastpq.spark.tables.journal import STREAMS

Offset = Mapping[str, Any]
KEPT_BATCHES = 100          # as spark.sql.streaming.minBatchesToRetain
_SEGMENT = re.compile(r"(\d+)-(\d+)-[0-9a-f]{8}")      # batch, path count, random digits
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)


class StreamLog:
    """The log that a stream keeps about its files.

    Args:
        root: folder that holds the log, in ``_fastpq_streams/<id>/``.
    """

    def __init__(self, root: str) -> None:
        self._root = os.path.join(root, STREAMS)
        self._paths: dict[str, frozenset[str]] = {}     # paths in each segment of the last offsets
        self._checked_segments: set[str] = set()

    @staticmethod
    def empty() -> dict[str, Any]:
        """Return a new stream's offset, which has its own log id."""
        return {"log": uuid.uuid4().hex, "batch": 0, "segments": ""}

    def paths(self, offset: Offset) -> set[str]:
        """Return the paths of all files up to an offset.

        Raises:
            FormatError: a segment of the log is missing or damaged.
        """
        if "files" in offset:
            return _listed_paths(offset)
        return self._union(offset["log"], _segments(offset))

    def between(self, start: Offset, end: Offset) -> set[str]:
        """Return the file paths after one offset up to another. Raises the same errors as ``paths``."""
        if "files" in start or "files" in end:
            return self.paths(end) - self.paths(start)
        ours, theirs = _segments(end), _segments(start)
        return self._union(end["log"], ours - theirs) - self._union(start["log"], theirs - ours)

    def added(self, offset: Offset, paths: Iterable[str]) -> dict[str, Any]:
        """Write a segment for a batch with more files. Return the offset after the batch.

        Args:
            offset: the offset before the batch. An offset from an earlier fastpq version begins a new log.
            paths: paths of the new files. None of them is in the log before the offset.

        Raises:
            SchemaError: fastpq cannot write to the log's folder.
        """
        together, old_segments = set(paths), []
        if "files" in offset:
            together |= _listed_paths(offset)
            offset = self.empty()
        segments, before = offset["segments"].split(), _segments(offset)
        while segments and _count(segments[-1]) <= 2 * len(together):
            old_segments.append(segments.pop())
            together |= self._segment(offset["log"], old_segments[-1])
        batch = offset["batch"] + 1
        segments.append(f"{batch}-{len(together)}-{uuid.uuid4().hex[:8]}")
        self._write(offset["log"], segments[-1], together, old_segments)
        self._paths = {name: paths for name, paths in self._paths.items() if name in {*before, *segments}}
        return {"log": offset["log"], "batch": batch, "segments": " ".join(segments)}

    def forget(self, offset: Offset) -> None:
        """Remove the segments that were replaced at least KEPT_BATCHES batches before a committed offset."""
        if "files" in offset:
            return
        folder, current_segments = os.path.join(self._root, offset["log"]), _segments(offset)
        if not os.path.isdir(folder):
            return
        names = [name for name in os.listdir(folder) if name not in self._checked_segments and _SEGMENT.fullmatch(name)]
        for name in sorted(names, key=_batch):      # in batch order, so that a replaced segment comes before its successor
            if _batch(name) > offset["batch"] - KEPT_BATCHES:
                break
            self._checked_segments.add(name)
            for old_segment in set(self._read(offset["log"], name)[0]) - current_segments:
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(folder, old_segment))

    def _union(self, log: str, segments: Iterable[str]) -> set[str]:
        return set().union(*(self._segment(log, name) for name in segments))

    def _segment(self, log: str, name: str) -> frozenset[str]:
        paths = self._paths.get(name)
        if paths is None:
            paths = self._paths[name] = frozenset(self._read(log, name)[1])
        return paths

    def _write(self, log: str, name: str, paths: set[str], old_segments: list[str]) -> None:
        folder = os.path.join(self._root, log)
        try:
            os.makedirs(folder, exist_ok=True)
            with FileSink(os.path.join(folder, name)) as sink:
                sink.write(zlib.compress(json.dumps([old_segments, sorted(paths)]).encode()))
        except OSError as error:
            if error.errno not in _NOT_WRITABLE:
                raise
            raise SchemaError(
                f"the log of the stream's files cannot be written to {self._root} ({error.strerror}): set the option "
                "checkpointLocation of readStream to a folder that the driver can write to",
            ) from None
        self._paths[name] = frozenset(paths)

    def _read(self, log: str, name: str) -> tuple[list[str], list[str]]:
        """Return the names of the segments that a segment replaced, and its paths."""
        path = os.path.join(self._root, log, name)
        try:
            with open(path, "rb") as file:
                old_segments, paths = json.loads(zlib.decompress(file.read()))
        except FileNotFoundError:
            raise FormatError(
                "a part of the log of the stream's files is missing: paths or checkpointLocation of readStream changed, or the "
                "file was removed", path=path,
            ) from None
        except (ValueError, zlib.error):
            raise FormatError("a part of the log of the stream's files is damaged", path=path) from None
        return old_segments, paths


def _segments(offset: Offset) -> set[str]:
    return set(offset["segments"].split())


def _batch(segment: str) -> int:
    """Return the number of the batch that wrote a segment, taken from the segment's name."""
    return int(segment.split("-")[0])


def _count(segment: str) -> int:
    """Return the path count of a segment, taken from its name."""
    return int(segment.split("-")[1])


def _listed_paths(offset: Offset) -> set[str]:
    """Return the paths in an offset from an earlier fastpq version, which held all paths itself."""
    text = zlib.decompress(base64.b64decode(offset["files"])).decode()
    return set(text.split("\n")) if text else set()
