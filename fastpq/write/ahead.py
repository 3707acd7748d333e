"""Column chunks encoded by several threads ahead of the file, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Condition
from typing import TypeAlias

from fastpq.io.sink import Sink
from fastpq.write.chunks import ChunkToWrite, encode_chunk
from fastpq.write.encoded_chunk import EncodedChunk

MOST_CHUNKS = 8             # begun and not written, for each thread
MOST_WAITING = 11 << 20      # bytes of pages that wait for the pages before them, for each thread
LEAST_WAITING = 1 << 20     # bytes of pages of the file's next chunk that may always wait, for the file

_Pieces: TypeAlias = list[bytes | memoryview]


def write_ahead(wanted: Iterable[ChunkToWrite], sink: Sink, threads: int) -> Generator[EncodedChunk, None, None]:
    """Encode chunks by several threads, and yield them in their order.

    The calling thread writes the pages of the file's next chunk while they are encoded; pages of other chunks wait.

    Args:
        wanted: the chunks, in the order of the file.
        sink: the new file. The caller may write to the file between chunks.
        threads: number of chunks encoded at the same time.

    Raises:
        SchemaError, LimitError: as ``encode_chunk``.
        OSError, ValueError: as ``Sink.write``.
    """
    room = _Room(threads * MOST_WAITING)
    begun: deque[tuple[_Waiting, Future[EncodedChunk]]] = deque()

    def written() -> EncodedChunk:
        waiting, future = begun.popleft()
        room.begin_writing(waiting)
        for pieces in iter(waiting.pieces.get, None):
            sink.write_together(pieces)
            room.leave(waiting, pieces)
        return future.result()

    with ThreadPoolExecutor(threads, thread_name_prefix="fastpq") as pool:
        try:
            for chunk in wanted:
                waiting = _Waiting()
                begun.append((waiting, pool.submit(_encode, chunk, waiting, room)))
                if len(begun) > threads * MOST_CHUNKS:
                    yield written()
            while begun:
                yield written()
        finally:
            room.close()
            pool.shutdown(cancel_futures=True)


class _Waiting:
    """Pages of one chunk that wait to be written.

    Attributes:
        pieces: lists of pieces, in order; None behind the last one, or after an error.
        size: bytes of the pieces.
    """

    def __init__(self) -> None:
        self.pieces: SimpleQueue[_Pieces | None] = SimpleQueue()
        self.size = 0


class _ClosedError(Exception):
    """No more pages are written: the thread's chunk needs none."""


class _Room:
    """The memory for waiting pages of all chunks.

    Args:
        most: bytes of pages, from which on a thread with more pages waits. The file's next chunk does not wait for others.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._used = 0
        self._first: _Waiting | None = None
        self._is_closed = False
        self._changed = Condition()

    def enter(self, waiting: _Waiting, pieces: _Pieces) -> None:
        """Let pages of a chunk wait, as soon as there is room."""
        size = _own_bytes(pieces)
        with self._changed:
            while not (self._used < self._most or self._is_closed or self._is_due(waiting)):
                self._changed.wait()
            if self._is_closed:
                raise _ClosedError
            self._used += size
            waiting.size += size
        waiting.pieces.put(pieces)

    def leave(self, waiting: _Waiting, pieces: _Pieces) -> None:
        """Pages of a chunk are written."""
        size = _own_bytes(pieces)
        with self._changed:
            self._used -= size
            waiting.size -= size
            self._changed.notify_all()

    def begin_writing(self, waiting: _Waiting) -> None:
        """A chunk is the next one of the file."""
        with self._changed:
            self._first = waiting
            self._changed.notify_all()

    def close(self) -> None:
        """End all threads that wait."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _is_due(self, waiting: _Waiting) -> bool:
        return waiting is self._first and waiting.size < LEAST_WAITING


def _own_bytes(pieces: _Pieces) -> int:
    """Bytes of pieces in memory of their own; views of a column's memory are read-only."""
    return sum(len(piece) for piece in pieces if isinstance(piece, bytes) or not piece.readonly)


def _encode(chunk: ChunkToWrite, waiting: _Waiting, room: _Room) -> EncodedChunk:
    try:
        encoded = encode_chunk(chunk, lambda pieces: room.enter(waiting, pieces))
        room.enter(waiting, encoded.writer.pieces.take())
        return encoded
    finally:
        waiting.pieces.put(None)
