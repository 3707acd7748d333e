"""Log of a stream: the paths of all files read so far, kept beside the offsets, which therefore stay small.

The log is a folder of segments. A segment is a file with the paths of consecutive batches, and never changes. Each batch adds a
segment. The last segments are merged while an earlier segment has at most twice the paths of its successor: an offset names
about log2(files) segments. A segment replaced by a merged one stays for KEPT_BATCHES batches, because Spark may restart
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

from fastpq.errors import FormatError, SchemaError
from fastpq.io.sink import FileSink
from fastpq.spark.journal import STREAMS

Offset = Mapping[str, Any]
KEPT_BATCHES = 100          # as spark.sql.streaming.minBatchesToRetain
_SEGMENT = re.compile(r"(\d+)-(\d+)-[0-9a-f]{8}")      # batch, count of paths, random digits
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)


class SeenFiles:
    """The log of a stream's files.

    Args:
        root: folder that holds the log, in ``_fastpq_streams/<id>/``.
    """

    def __init__(self, root: str) -> None:
        self._root = os.path.join(root, STREAMS)
        self._known: dict[str, frozenset[str]] = {}     # paths by segment, of the last offsets
        self._examined: set[str] = set()

    @staticmethod
    def empty() -> dict[str, Any]:
        """The offset of a new stream, with an id of its own."""
        return {"log": uuid.uuid4().hex, "batch": 0, "segments": ""}

    def paths(self, offset: Offset) -> set[str]:
        """Paths of all files up to an offset.

        Raises:
            FormatError: a segment of the log is missing or damaged.
        """
        if "files" in offset:
            return _listed_paths(offset)
        return self._union(offset["log"], _segments(offset))

    def between(self, start: Offset, end: Offset) -> set[str]:
        """Paths of the files after one offset up to another; raises the errors of paths."""
        if "files" in start or "files" in end:
            return self.paths(end) - self.paths(start)
        ours, theirs = _segments(end), _segments(start)
        return self._union(end["log"], ours - theirs) - self._union(start["log"], theirs - ours)

    def added(self, offset: Offset, paths: Iterable[str]) -> dict[str, Any]:
        """The offset after a batch of more files, whose segment is written.

        Args:
            offset: the offset before the batch; an offset of earlier versions begins a log.
            paths: paths of the files, none of them before the offset.

        Raises:
            SchemaError: the folder of the log cannot be written to.
        """
        together, replaced = set(paths), []
        if "files" in offset:
            together |= _listed_paths(offset)
            offset = self.empty()
        segments, before = offset["segments"].split(), _segments(offset)
        while segments and _count(segments[-1]) <= 2 * len(together):
            replaced.append(segments.pop())
            together |= self._segment(offset["log"], replaced[-1])
        batch = offset["batch"] + 1
        segments.append(f"{batch}-{len(together)}-{uuid.uuid4().hex[:8]}")
        self._write(offset["log"], segments[-1], together, replaced)
        self._known = {name: paths for name, paths in self._known.items() if name in {*before, *segments}}
        return {"log": offset["log"], "batch": batch, "segments": " ".join(segments)}

    def forget(self, offset: Offset) -> None:
        """Remove the segments replaced KEPT_BATCHES batches before a committed offset."""
        if "files" in offset:
            return
        folder, named = os.path.join(self._root, offset["log"]), _segments(offset)
        if not os.path.isdir(folder):
            return
        names = [name for name in os.listdir(folder) if name not in self._examined and _SEGMENT.fullmatch(name)]
        for name in sorted(names, key=_batch):      # a replaced segment, which may be removed here, before its successor
            if _batch(name) > offset["batch"] - KEPT_BATCHES:
                break
            self._examined.add(name)
            for replaced in set(self._read(offset["log"], name)[0]) - named:
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(folder, replaced))

    def _union(self, log: str, segments: Iterable[str]) -> set[str]:
        return set().union(*(self._segment(log, name) for name in segments))

    def _segment(self, log: str, name: str) -> frozenset[str]:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = frozenset(self._read(log, name)[1])
        return known

    def _write(self, log: str, name: str, paths: set[str], replaced: list[str]) -> None:
        folder = os.path.join(self._root, log)
        try:
            os.makedirs(folder, exist_ok=True)
            with FileSink(os.path.join(folder, name)) as sink:
                sink.write(zlib.compress(json.dumps([replaced, sorted(paths)]).encode()))
        except OSError as error:
            if error.errno not in _NOT_WRITABLE:
                raise
            raise SchemaError(
                f"the log of the stream's files cannot be written to {self._root} ({error.strerror}): set the option "
                "checkpointLocation of readStream to a folder that the driver can write to",
            ) from None
        self._known[name] = frozenset(paths)

    def _read(self, log: str, name: str) -> tuple[list[str], list[str]]:
        """The names of the segments that a segment replaced, and the paths in it."""
        path = os.path.join(self._root, log, name)
        try:
            with open(path, "rb") as file:
                replaced, paths = json.loads(zlib.decompress(file.read()))
        except FileNotFoundError:
            raise FormatError(
                "a part of the log of the stream's files is missing: paths or checkpointLocation of readStream changed, or the "
                "file was removed", path=path,
            ) from None
        except (ValueError, zlib.error):
            raise FormatError("a part of the log of the stream's files is damaged", path=path) from None
        return replaced, paths


def _segments(offset: Offset) -> set[str]:
    return set(offset["segments"].split())


def _batch(segment: str) -> int:
    """The number of the batch that wrote a segment, by the segment's name."""
    return int(segment.split("-")[0])


def _count(segment: str) -> int:
    """The number of paths in a segment, by the segment's name."""
    return int(segment.split("-")[1])


def _listed_paths(offset: Offset) -> set[str]:
    """Paths of an offset of earlier versions, which held all paths itself."""
    text = zlib.decompress(base64.b64decode(offset["files"])).decode()
    return set(text.split("\n")) if text else set()
