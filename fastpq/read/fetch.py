"""Fetches the stored bytes of planned chunks. Chunks are read together, and remote files are read ahead of decoding."""

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
    from fastpq.io.waiting import Pool, Promise


def fetch_chunks(source: Source, chunks: Sequence[ChunkPlan]) -> list[Stored]:
    """Return each chunk's stored bytes, in memory or to be read later. One request to a server gets chunks that lie together."""
    files: dict[str | None, list[int]] = {}
    for slot, chunk in enumerate(chunks):
        files.setdefault(chunk.file_path, []).append(slot)
    stored_chunks: dict[int, Stored] = {}
    for file_path, slots in files.items():
        file = source if file_path is None else source.beside(file_path)
        authentic = any(chunks[slot].is_encrypted for slot in slots)
        stored_chunks |= zip(slots, file.walk([chunks[slot].ranges for slot in slots], authentic=authentic), strict=True)
    return [stored_chunks[slot] for slot in range(len(chunks))]


@contextmanager
def fetching(
    source: Source, chunks: Sequence[ChunkPlan], properties: ReaderProperties, streaming: bool
) -> Iterator[Fetching]:
    """Provide a Fetching. Its threads end with the context. The arguments are those of Fetching."""
    buffers = Fetching(source, chunks, properties, streaming)
    try:
        yield buffers
    finally:
        if buffers.pool is not None:
            buffers.pool.shutdown(cancel_futures=True)


class Fetching:
    """Source of the stored bytes of several chunks. A chunk is named by its slot: its position in ``chunks``.

    A chunk in a local file is read in pieces while it is decoded. A chunk in a file object is read when it is taken, or together
    with all others if the read needs all of them at once. A remote file is read in parts, in row order. Each part takes as many
    requests at a time as the filesystem makes. Up to PARTS_AHEAD parts are read ahead.

    Args:
        source: the file.
        chunks: the chunk plans.
        properties: ``prefetch`` allows reading ahead, and ``coalesce_size`` is the part size.
        streaming: True if the chunks are taken one after another, False if all are needed at once.

    Attributes:
        pool: reads ahead, or None if nothing is read ahead.
    """

    def __init__(self, source: Source, chunks: Sequence[ChunkPlan], properties: ReaderProperties, streaming: bool) -> None:
        self._source = source
        self._chunks = chunks
        self._streaming = streaming
        self._lock = threading.Lock()
        self._futures: list[Promise] = []
        self.pool: Pool | None = None
        self._ready: dict[int, Stored] = {}
        self._is_located = bytearray(len(chunks))       # whether ``_late`` has located the chunk, by slot
        self._parts: list[list[int]] = []
        if source.is_remote and properties.prefetch:
            self._parts = list(_parts(chunks, 0 if streaming else properties.coalesce_size))
        if len(self._parts) > 1:
            self._part_of = {slot: number for number, part in enumerate(self._parts) for slot in part}
            self.pool = source.start_pool(PARTS_AHEAD)
        elif self._parts or not (streaming or source.walks_late):
            self._ready = dict(enumerate(fetch_chunks(source, chunks)))

    def take(self, slot: int, *, alone: bool = False) -> Stored:
        """Return a chunk's stored bytes. They are not kept, so a second call fetches them again.

        Args:
            slot: place of the chunk.
            alone: whether the next chunks will not be taken by this method.
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
        stored_bytes: Stored | None = self._futures[part].result().pop(slot, None)
        return self._fetch([slot])[slot] if stored_bytes is None else stored_bytes        # taken before

    def _late(self, slot: int, alone: bool) -> Stored:
        """Return a chunk's stored bytes, which are located but not read yet if that is possible.

        Then the next chunks are located at the same time, because one call for many chunks costs less.
        """
        if alone or self._streaming or not self._source.walks_late:
            return self._fetch([slot])[slot]
        chunks, behind = self._chunks, slot + 1
        with self._lock:
            if slot in self._ready:
                return self._ready.pop(slot)
            if self._is_located[slot]:            # and taken before
                return self._fetch([slot])[slot]
            while behind < min(slot + AT_ONCE, len(chunks)) and not self._is_located[behind]:
                column = chunks[behind].column
                if column is not chunks[slot].column and behind + 1 < len(chunks) and chunks[behind + 1].column is column:
                    break           # this column's chunks may be taken as a run
                behind += 1
            self._ready.update(self._fetch(range(slot, behind)))
            self._is_located[slot:behind] = b"\1" * (behind - slot)
            return self._ready.pop(slot)

    def look(self, slot: int) -> Stored:
        """Return a chunk's stored bytes, and keep them for a later ``take``."""
        stored_bytes = self._ready[slot] = self.take(slot, alone=True)
        return stored_bytes

    def _fetch(self, slots: Sequence[int]) -> dict[int, Stored]:
        return dict(zip(slots, fetch_chunks(self._source, [self._chunks[slot] for slot in slots]), strict=True))


def _parts(chunks: Sequence[ChunkPlan], size: int) -> Iterator[list[int]]:
    """Yield the chunks' slots in parts that are fetched together, in row order.

    A part has the chunks of one or more row groups. It has at most ``size`` bytes, unless it is one row group.
    """
    total = 0
    part: list[int] = []

    def row(slot: int) -> int:
        return chunks[slot].row_offset

    for _, group in itertools.groupby(sorted(range(len(chunks)), key=row), row):
        group_slots = list(group)
        group_size = sum(length for slot in group_slots for _, length in chunks[slot].ranges)
        if part and total + group_size > size:
            yield part
            part, total = [], 0
        part += group_slots
        total += group_size
    if part:
        yield part
