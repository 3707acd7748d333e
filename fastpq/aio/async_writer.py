"""AsyncParquetWriter: writes one file in coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Self

from fastpq.aio.reader_tasks import ended
from fastpq.api.writer import ParquetWriter
from fastpq.common.progress import Progress


class AsyncParquetWriter:
    """Writer of one Parquet file in coroutines. It is an asynchronous context manager.

    Tables are encoded and uploaded in another thread, one after another, and the event loop goes on. An exception inside the
    ``async with`` block, or a cancellation before the file takes its place, leaves the target unchanged.

    Args:
        where: a path, a writable binary file object or an fsspec URL.
        schema: as for ParquetWriter.
        progress: as for ParquetWriter. It is called in another thread than the event loop's.
        **options: any other argument of ParquetWriter.

    Raises:
        SchemaError, UnsupportedError, TypeError: as for ParquetWriter.
    """

    def __init__(self, where: Any, schema: Any = None, *, progress: Progress | None = None, **options: Any) -> None:
        self._is_cancelled = False
        self._progress = progress
        self._writer = ParquetWriter(where, schema, progress=self._report, **options)
        self._in_turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Literal[False]:
        await (self.close() if kind is None else self.abort())
        return False

    async def write_table(self, data: Any) -> None:
        """Write rows as one or more row groups.

        Args:
            data: as for ``ParquetWriter.write_table``. It must not change before the coroutine ends.

        Raises:
            SchemaError: columns have unequal lengths, or do not fit the file's schema.
            ValueError: the writer is closed.
        """
        await self._run(self._writer.write_table, data)

    async def write_batch(self, data: Any) -> None:
        """Add rows. A row group is written when it has enough rows or bytes.

        Args:
            data: as for ``ParquetWriter.write_batch``. It must not change before the coroutine ends.

        Raises:
            SchemaError, ValueError: as for ``write_table``.
        """
        await self._run(self._writer.write_batch, data)

    async def close(self) -> None:
        """Write the footer, and let the file take its place."""
        await self._run(self._writer.close)

    async def abort(self) -> None:
        """Give the file up. The target stays unchanged."""
        await self._run(self._writer.abort)

    async def _run(self, method: Callable[..., None], *arguments: Any) -> None:
        """Run a method of the writer in a thread.

        If the caller is cancelled, the method ends early, and the file does not take its place. The caller goes on when the
        method has ended.
        """
        async with self._in_turn:
            self._is_cancelled = False
            await ended(asyncio.ensure_future(asyncio.to_thread(method, *arguments)), self._cancel)

    def _cancel(self) -> None:
        self._is_cancelled = True

    def _report(self, done: int, total: int) -> None:
        """Pass progress on. The writer calls this last before the file takes its place."""
        if self._progress is not None:
            self._progress(done, total)
        if self._is_cancelled:
            raise asyncio.CancelledError
