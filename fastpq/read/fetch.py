"""The stored bytes of planned chunks: read together, and from remote sources ahead of those who decode them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from fastpq.io.source import Bytes, Source
from fastpq.options import ReaderProperties
from fastpq.read.plan import ChunkPlan

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# Parts that are read while an earlier one is decoded.
AHEAD = 2


def fetch_chunks(source: Source, chunks: Sequence[ChunkPlan]) -> dict[int, Bytes]:
    """The stored bytes of chunks by the chunks' ids, those close together in a file read with one request."""
    files: dict[str | None, list[ChunkPlan]] = {}
    for chunk in chunks:
        files.setdefault(chunk.metadata.file_path, []).append(chunk)
    found: dict[int, Bytes] = {}
    for file_path, of_file in files.items():
        found |= _fetch_chunks(source.beside(file_path), of_file)
    return found


def _fetch_chunks(source: Source, chunks: Sequence[ChunkPlan]) -> dict[int, Bytes]:
    read = iter(source.read_ranges([part for chunk in chunks for part in chunk.ranges]))
    parts = [list(itertools.islice(read, len(chunk.ranges))) for chunk in chunks]
    return {
        id(chunk): part[0] if len(part) == 1 else np.concatenate(part)
        for chunk, part in zip(chunks, parts, strict=True)
    }


class Fetching:
    """The stored bytes of chunks, each to be taken once; a context manager.

    A local file is read when its bytes are asked for, or at once where all are. A remote one is read in parts, in the order of
    the rows, each with as many requests at a time as the filesystem makes: AHEAD parts while an earlier one is decoded.

    Args:
        source: where from.
        chunks: of which chunks.
        properties: for prefetch and the size of parts.
        streaming: whether the chunks are asked for one after another; otherwise all are.
    """

    def __init__(self, source: Source, chunks: Sequence[ChunkPlan], properties: ReaderProperties, streaming: bool) -> None:
        self._source = source
        self._lock = threading.Lock()
        self._futures: list[Future[dict[int, Bytes]]] = []
        self._pool: ThreadPoolExecutor | None = None
        self._ready: dict[int, Bytes] = {}
        self._parts: list[list[ChunkPlan]] = []
        if source.is_remote and properties.prefetch:
            self._parts = list(_parts(chunks, 0 if streaming else properties.coalesce_size))
        if len(self._parts) > 1:
            from concurrent.futures import ThreadPoolExecutor

            self._part_of = {id(chunk): number for number, part in enumerate(self._parts) for chunk in part}
            self._pool = ThreadPoolExecutor(AHEAD, thread_name_prefix="fastpq-fetch")
        elif self._parts or not streaming:
            self._ready = fetch_chunks(source, chunks)

    def take(self, chunk: ChunkPlan) -> Bytes:
        """The stored bytes of a chunk, which are not kept here any longer."""
        ready = self._ready.pop(id(chunk), None)
        if ready is not None:
            return ready
        if self._pool is None:
            return fetch_chunks(self._source, [chunk])[id(chunk)]
        part = self._part_of[id(chunk)]
        with self._lock:
            for number in range(len(self._futures), min(part + AHEAD + 1, len(self._parts))):
                self._futures.append(self._pool.submit(fetch_chunks, self._source, self._parts[number]))
        return self._futures[part].result().pop(id(chunk))

    def look(self, chunk: ChunkPlan) -> Bytes:
        """The stored bytes of a chunk, which are still to be taken."""
        stored = self._ready[id(chunk)] = self.take(chunk)
        return stored

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


def _parts(chunks: Sequence[ChunkPlan], size: int) -> Iterator[list[ChunkPlan]]:
    """Chunks in the order of their rows, those of one row group together, and of the next ones up to size bytes."""
    total = 0
    part: list[ChunkPlan] = []
    for _, group in itertools.groupby(sorted(chunks, key=lambda chunk: chunk.row_offset), lambda chunk: chunk.row_offset):
        together = list(group)
        stored = sum(length for chunk in together for _, length in chunk.ranges)
        if part and total + stored > size:
            yield part
            part, total = [], 0
        part += together
        total += stored
    if part:
        yield part
