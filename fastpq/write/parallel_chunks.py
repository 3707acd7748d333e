"""Several threads encode column chunks before the file reaches them, in bounded memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Condition
from typing import TypeAlias

from fastpq.io.sink import Sink
from fastpq.write.chunks import ChunkToWrite, EncodedChunk, encode_chunk

MOST_CHUNKS = 8             # chunks that are begun and not yet written, for each thread
MOST_WAITING = 11 << 20     # bytes in pages that wait for earlier pages, for each thread
LEAST_WAITING = 1 << 20     # bytes that may always wait in the pages of the file's next chunk

_Pieces: TypeAlias = list[bytes | memoryview]


def encode_parallel(chunks: Iterable[ChunkToWrite], sink: Sink, threads: int) -> Generator[EncodedChunk, None, None]:
    """Encode chunks on several threads, and yield them in their order.

    The calling thread writes the pages of the file's next chunk while they are encoded. Pages of other chunks wait.

    Args:
        chunks: the chunks, in file order.
        sink: the new file. The caller may write to the file between chunks.
        threads: how many chunks are encoded at the same time.

    Raises:
        SchemaError, LimitError: as for ``encode_chunk``.
        OSError, ValueError: as for ``Sink.write``.
    """
    memory = _PageMemory(threads * MOST_WAITING)
    running: deque[tuple[_WaitingPages, Future[EncodedChunk]]] = deque()

    def write_next() -> EncodedChunk:
        pages, future = running.popleft()
        memory.begin_writing(pages)
        for pieces in iter(pages.pieces.get, None):
            sink.write_together(pieces)
            memory.leave(pages, pieces)
        return future.result()

    with ThreadPoolExecutor(threads, thread_name_prefix="fastpq") as pool:
        try:
            for chunk in chunks:
                pages = _WaitingPages()
                running.append((pages, pool.submit(_encode, chunk, pages, memory)))
                if len(running) > threads * MOST_CHUNKS:
                    yield write_next()
            while running:
                yield write_next()
        finally:
            memory.close()
            pool.shutdown(cancel_futures=True)


class _WaitingPages:
    """One chunk's pages, which wait until the file reaches them.

    Attributes:
        pieces: lists of pieces, in order. None follows the last one, also after an error.
        size: bytes in the pieces.
    """

    def __init__(self) -> None:
        self.pieces: SimpleQueue[_Pieces | None] = SimpleQueue()
        self.size = 0


class _ClosedError(Exception):
    """The writing has ended, so nobody needs the pages that the thread encodes."""


class _PageMemory:
    """The memory for all chunks' waiting pages.

    Args:
        most: bytes in pages. A thread with more pages waits when this many bytes are in use, unless it encodes the file's next
            chunk.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._first: _WaitingPages | None = None
        self._is_closed = False
        self._condition = Condition()

    def enter(self, pages: _WaitingPages, pieces: _Pieces) -> None:
        """Add pieces to a chunk's waiting pages, as soon as there is room."""
        size = _own_bytes(pieces)
        with self._condition:
            while not (self._size < self._most or self._is_closed or self._is_due(pages)):
                self._condition.wait()
            if self._is_closed:
                raise _ClosedError
            self._size += size
            pages.size += size
        pages.pieces.put(pieces)

    def leave(self, pages: _WaitingPages, pieces: _Pieces) -> None:
        """Free the room that written pieces took."""
        size = _own_bytes(pieces)
        with self._condition:
            self._size -= size
            pages.size -= size
            self._condition.notify_all()

    def begin_writing(self, pages: _WaitingPages) -> None:
        """Note the file's next chunk, whose thread waits for no other chunk."""
        with self._condition:
            self._first = pages
            self._condition.notify_all()

    def close(self) -> None:
        """End all threads that wait."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()

    def _is_due(self, pages: _WaitingPages) -> bool:
        return pages is self._first and pages.size < LEAST_WAITING


def _own_bytes(pieces: _Pieces) -> int:
    """Return the bytes in pieces that have their own memory. Read-only pieces are views into a column."""
    return sum(len(piece) for piece in pieces if isinstance(piece, bytes) or not piece.readonly)


def _encode(chunk: ChunkToWrite, pages: _WaitingPages, memory: _PageMemory) -> EncodedChunk:
    try:
        encoded_chunk = encode_chunk(chunk, lambda pieces: memory.enter(pages, pieces))
        memory.enter(pages, encoded_chunk.writer.pieces.take())
        return encoded_chunk
    finally:
        pages.pieces.put(None)
