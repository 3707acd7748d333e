"""How a thread waits for a filesystem's coroutine: it blocks, or another read goes on in the meantime.

A function that fastpq.aio runs has a Waiter in its context. Without a Waiter the thread blocks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

from fastpq.errors import UnsupportedError

Result = TypeVar("Result")


class Promise(Protocol):
    """The outcome of a call in a Pool. concurrent.futures.Future is one."""

    def result(self) -> Any:
        """Wait for the end of the call, and return its result or raise its error."""


class Pool(Protocol):
    """Runs functions beside the caller. concurrent.futures.ThreadPoolExecutor is one."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Any:
        """Start a function, and return the Promise of its result."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the pool."""


class Waiter(Protocol):
    """Waits for coroutines in such a way that other reads go on in the same thread."""

    def wait(self, function: Callable[..., Coroutine[Any, Any, Result]], *arguments: Any, loop: Any = None) -> Result:
        """Run a coroutine function, wait for its end, and return its result.

        Args:
            function: the coroutine function.
            arguments: its arguments.
            loop: the event loop that must run it. None is the loop of the caller of fastpq.aio.
        """

    def start_pool(self, *, decodes: bool = False) -> Pool:
        """Return a pool whose functions take no thread while they wait.

        Args:
            decodes: whether the functions decode pages too, and do not only fetch bytes. Then only a function that takes no
                thread while it waits may wait for their results.
        """


WAITER: ContextVar[Waiter | None] = ContextVar("fastpq_waiter", default=None)


def call_filesystem(waiter: Waiter | None, filesystem: Any, method: str, *arguments: Any, **options: Any) -> Any:
    """Call a method of an fsspec filesystem, and return its result.

    Args:
        waiter: waits for the coroutine of an asynchronous filesystem. None calls the method for callers without an event loop.
        filesystem: the filesystem.
        method: name of the method.
        arguments, options: arguments of the method.

    Raises:
        UnsupportedError: the filesystem has coroutines alone (``asynchronous=True``), and there is no waiter.
    """
    if waiter is not None and filesystem.async_impl:

        async def call() -> Any:
            return await getattr(filesystem, f"_{method}")(*arguments, **options)

        return waiter.wait(call, loop=loop_of(filesystem))
    refuse_without_loop(filesystem)
    return getattr(filesystem, method)(*arguments, **options)


def ask_filesystem(filesystem: Any, method: str, *arguments: Any, **options: Any) -> Any:
    """Call a method of an fsspec filesystem in the way of the present context, and return its result.

    Args:
        filesystem, method, arguments, options: as for ``call_filesystem``.

    Raises:
        UnsupportedError: as ``call_filesystem``.
    """
    return call_filesystem(WAITER.get(), filesystem, method, *arguments, **options)


def loop_of(filesystem: Any) -> Any:
    """Return the event loop that runs a filesystem's coroutines. None for one with ``asynchronous=True``: the caller's loop."""
    return None if filesystem.asynchronous else filesystem.loop


def refuse_without_loop(filesystem: Any) -> None:
    """Refuse a filesystem whose coroutines need the caller's event loop.

    Raises:
        UnsupportedError: it was made with ``asynchronous=True``.
    """
    if getattr(filesystem, "asynchronous", False) is True:
        raise UnsupportedError(
            "a filesystem with asynchronous=True needs an event loop: use AsyncParquetFile or aread_table, or leave it out"
        )


def sleep(seconds: float) -> None:
    """Wait for some seconds. Other reads go on in the meantime if there is a Waiter."""
    waiter = WAITER.get()
    if waiter is None:
        time.sleep(seconds)
    else:
        waiter.wait(asyncio.sleep, seconds)
