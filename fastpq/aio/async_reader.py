"""What AsyncParquetFile and AsyncParquetDataset share: opening, closing, and batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from types import TracebackType
from typing import Literal, Self

from fastpq.aio.reader_tasks import run_task
from fastpq.arrays.table import Table


class AsyncReader(ABC):
    """A reader for coroutines. It is opened by ``async with``, or when it is awaited."""

    def __await__(self) -> Generator[None, None, Self]:
        """Open the reader, and return it."""
        return self._open().__await__()

    async def __aenter__(self) -> Self:
        return await self._open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Literal[False]:
        await self.close()
        return False

    @abstractmethod
    async def close(self) -> None:
        """Close the reader. Columns that were read stay valid."""

    @abstractmethod
    async def _open(self) -> Self:
        """Open the reader if it is not open yet, and return it."""


async def each_batch(start: Callable[[], Iterator[Table]]) -> AsyncGenerator[Table]:
    """Yield Tables that are read in tasks. If the loop over them ends early, ``aclose`` frees what they hold.

    Args:
        start: returns the Tables. It is called in a task too.
    """
    batches = await run_task(start)
    try:
        while (table := await run_task(next, batches, None)) is not None:
            yield table
    finally:
        if isinstance(batches, Generator):
            await run_task(batches.close)
