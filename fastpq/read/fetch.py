"""Fetching: the stored bytes of planned chunks, read together, and from remote files ahead of decoding."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fastpq.io.source import Source, Stored
from fastpq.options import ReaderProperties
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.costs import AT_ONCE, PARTS_AHEAD

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor


def fetch_chunks(source: Source, chunks: Sequence[ChunkPlan]) -> list[Stored]:
    """The stored bytes of each chunk; chunks close together in a file are read with one request."""
    files: dict[str | None, list[int]] = {}
    for slot, chunk in enumerate(chunks):
        files.setdefault(chunk.file_path, []).append(slot)
    found: dict[int, Stored] = {}
    for file_path, slots in files.items():
        file = source if file_path is None else source.beside(file_path)
        authentic = any(chunks[slot].is_encrypted for slot in slots)
        found |= zip(slots, file.walk([chunks[slot].ranges for slot in slots], authentic=authentic), strict=True)
    return [found[slot] for slot in range(len(chunks))]


@contextmanager
def fetching(
    source: Source, chunks: Sequence[ChunkPlan], properties: ReaderProperties, streaming: bool
) -> Iterator[Fetching]:
    """The Fetching of chunks; threads that read ahead end with the context. Arguments as for Fetching."""
    found = Fetching(source, chunks, properties, streaming)
    try:
        yield found
    finally:
        if found.pool is not None:
            found.pool.shutdown(cancel_futures=True)


class Fetching:
    """The stored bytes of chunks, each taken by its slot, its place among the chunks.

    A chunk of a local file is read in pieces while decoded. A chunk of a file object is read when taken, or at once where all
    chunks are wanted. A remote file is read in parts, in the order of the rows, each part with as many requests at a time as the
    filesystem makes, and PARTS_AHEAD parts ahead.

    Args:
        source: the file.
        chunks: plans of the chunks.
        properties: ``prefetch`` allows reading ahead; ``coalesce_size`` is the size of a part.
        streaming: whether the chunks are taken one after another; otherwise all are wanted at once.

    Attributes:
        pool: threads that read ahead; None without reading ahead.
    """

    def __init__(self, source: Source, chunks: Sequence[ChunkPlan], properties: ReaderProperties, streaming: bool) -> None:
        self._source = source
        self._chunks = chunks
        self._streaming = streaming
        self._lock = threading.Lock()
        self._futures: list[Future[dict[int, Stored]]] = []
        self.pool: ThreadPoolExecutor | None = None
        self._ready: dict[int, Stored] = {}
        self._is_found = bytearray(len(chunks))     # by ``_late``
        self._parts: list[list[int]] = []
        if source.is_remote and properties.prefetch:
            self._parts = list(_parts(chunks, 0 if streaming else properties.coalesce_size))
        if len(self._parts) > 1:
            from concurrent.futures import ThreadPoolExecutor

            self._part_of = {slot: number for number, part in enumerate(self._parts) for slot in part}
            self.pool = ThreadPoolExecutor(PARTS_AHEAD, thread_name_prefix="fastpq-fetch")
        elif self._parts or not (streaming or source.walks_late):
            self._ready = dict(enumerate(fetch_chunks(source, chunks)))

    def take(self, slot: int, *, alone: bool = False) -> Stored:
        """The stored bytes of a chunk; no reference to the bytes is kept here, and a second call fetches the bytes again.

        Args:
            slot: place of the chunk.
            alone: whether the next chunks are not taken by this method.
        """
        ready = self._ready.pop(slot, None)
        if ready is not None:
            return ready
        if self.pool is None:
            return self._late(slot, alone)
        part = self._part_of[slot]
        with self._lock:
            for number in range(len(self._futures), min(part + PARTS_AHEAD + 1, len(self._parts))):
                self._futures.append(self.pool.submit(self._fetch, self._parts[number]))
        fetched = self._futures[part].result().pop(slot, None)
        return self._fetch([slot])[slot] if fetched is None else fetched        # taken before

    def _late(self, slot: int, alone: bool) -> Stored:
        """The stored bytes of a chunk; those of the next chunks are found together with it where nothing is read for them."""
        if alone or self._streaming or not self._source.walks_late:
            return self._fetch([slot])[slot]
        chunks, behind = self._chunks, slot + 1
        with self._lock:
            if slot in self._ready:
                return self._ready.pop(slot)
            if self._is_found[slot]:            # and taken before
                return self._fetch([slot])[slot]
            while behind < min(slot + AT_ONCE, len(chunks)) and not self._is_found[behind]:
                column = chunks[behind].column
                if column is not chunks[slot].column and behind + 1 < len(chunks) and chunks[behind + 1].column is column:
                    break           # the chunks of the column may be taken as a run
                behind += 1
            self._ready.update(self._fetch(range(slot, behind)))
            self._is_found[slot:behind] = b"\1" * (behind - slot)
            return self._ready.pop(slot)

    def look(self, slot: int) -> Stored:
        """The stored bytes of a chunk; ``take`` may still be called for the slot."""
        stored = self._ready[slot] = self.take(slot, alone=True)
        return stored

    def _fetch(self, slots: Sequence[int]) -> dict[int, Stored]:
        return dict(zip(slots, fetch_chunks(self._source, [self._chunks[slot] for slot in slots]), strict=True))


def _parts(chunks: Sequence[ChunkPlan], size: int) -> Iterator[list[int]]:
    """Slots of the chunks, in parts to be fetched together.

    A part has the chunks of one row group, and of the next row groups up to size bytes; parts are in the order of the rows.
    """
    total = 0
    part: list[int] = []

    def row(slot: int) -> int:
        return chunks[slot].row_offset

    for _, group in itertools.groupby(sorted(range(len(chunks)), key=row), row):
        together = list(group)
        stored = sum(length for slot in together for _, length in chunks[slot].ranges)
        if part and total + stored > size:
            yield part
            part, total = [], 0
        part += together
        total += stored
    if part:
        yield part
