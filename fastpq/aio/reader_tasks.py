"""run_task: runs a function of the reader for a coroutine. The function takes no thread while it waits for a filesystem.

The reader is written for threads: it asks a source for bytes, and waits for them. Here each call of the reader is a greenlet.
When it waits for a coroutine of the filesystem, its thread goes on with another greenlet. A few threads thus serve any number of
reads, and the event loop never waits for the decoding of pages. A greenlet stays in the thread in which it began.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import importlib
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, TypeVar, cast

from fastpq.common.parallel import resolve_threads
from fastpq.errors import RemoteError, UnsupportedError
from fastpq.io.waiting import WAITER, Promise

if TYPE_CHECKING:
    from greenlet import greenlet

Result = TypeVar("Result")

MOST_THREADS = 8        # that run greenlets

_TASK: contextvars.ContextVar[ReaderTask | None] = contextvars.ContextVar("fastpq_task", default=None)


class TaskThread:
    """A thread that runs tasks in turns.

    Attributes:
        executor: the thread.
        num_tasks: tasks that have not ended.
    """

    def __init__(self, name: str) -> None:
        self.executor = ThreadPoolExecutor(1, thread_name_prefix=name)
        self.num_tasks = 0
        self._counting = threading.Lock()

    def count(self, change: int) -> None:
        """Add to the number of tasks. Several threads may do so at the same time."""
        with self._counting:
            self.num_tasks += change


class TaskThreads:
    """The threads of this process. They start with the first task.

    Attributes:
        of_fetches: the thread for tasks that only wait. Nothing in it decodes, so a thread that decodes may wait for it.
    """

    def __init__(self) -> None:
        self._readers = [TaskThread("fastpq-async") for _ in range(min(MOST_THREADS, resolve_threads(None)))]
        self._choosing = threading.Lock()
        self.of_fetches = TaskThread("fastpq-async-fetch")

    def least_busy(self) -> TaskThread:
        """Return the thread with the fewest tasks."""
        with self._choosing:
            return min(self._readers, key=lambda thread: thread.num_tasks)


_threads = TaskThreads()


def _begin_anew() -> None:
    """Make new threads, since a forked process has none."""
    global _threads
    _threads = TaskThreads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


async def run_task(function: Callable[..., Result], *arguments: Any, **options: Any) -> Result:
    """Run a function of the reader, and return its result.

    If the caller is cancelled, requests that the function waits for are cancelled too. A function that decodes goes on until it
    waits or ends. The caller goes on when the function has ended.

    Raises:
        UnsupportedError: greenlet is not installed.
        Exception: what the function raises.
    """
    try:
        importlib.import_module("greenlet")
    except ImportError:
        raise UnsupportedError("asynchronous reads need the package greenlet (pip install greenlet)") from None
    waiter = LoopWaiter(asyncio.get_running_loop())
    task = ReaderTask(waiter, _threads.least_busy(), lambda: function(*arguments, **options))
    return cast(Result, await ended(asyncio.wrap_future(task.start()), task.cancel))


async def ended(outcome: asyncio.Future[Any], cancel: Callable[[], None]) -> Any:
    """Return the result of a future that has to end before the caller goes on.

    Args:
        outcome: the future.
        cancel: asks the work to end early. It is called if the caller is cancelled.
    """
    try:
        return await asyncio.shield(outcome)
    except asyncio.CancelledError:
        cancel()
        while not outcome.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([outcome])
        if not outcome.cancelled():
            outcome.exception()     # marks the error as seen
        raise


class ReaderTask:
    """A call of a function as a greenlet.

    Args:
        waiter: how the function waits.
        thread: the thread that runs it.
        function: the function.

    Attributes:
        greenlet: the greenlet while the function runs or waits.
    """

    def __init__(self, waiter: LoopWaiter, thread: TaskThread, function: Callable[[], Any]) -> None:
        self._waiter = waiter
        self._thread = thread
        self._function = function
        self._outcome: Future[Any] = Future()
        self._pending: Future[Any] | None = None
        self.greenlet: greenlet | None = None
        self._lock = threading.Lock()
        self._is_cancelled = False
        self._context = contextvars.copy_context()
        self._context.run(WAITER.set, waiter)
        self._context.run(_TASK.set, self)

    def start(self) -> Future[Any]:
        """Queue the call, and return its outcome."""
        self._thread.count(1)
        self._thread.executor.submit(self._begin)
        return self._outcome

    def cancel(self) -> None:
        """Raise asyncio.CancelledError in the function, at once if it waits, or else as soon as it waits."""
        with self._lock:
            self._is_cancelled = True
            pending = self._pending
        if pending is not None:
            pending.cancel()

    def wait(self, coroutine: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> Any:
        """Wait for a coroutine. The thread runs other tasks in the meantime."""
        if self._take_cancellation():
            coroutine.close()
            raise asyncio.CancelledError
        try:
            pending = asyncio.run_coroutine_threadsafe(coroutine, loop)
        except RuntimeError:        # the loop is closed
            coroutine.close()
            raise
        with self._lock:
            self._pending = pending
            if self._is_cancelled:      # since the look above
                pending.cancel()
        pending.add_done_callback(self._continue)
        from greenlet import getcurrent

        getcurrent().parent.switch()        # the thread's own greenlet
        self._pending = None
        if self._take_cancellation():
            raise asyncio.CancelledError
        return _result_of(pending)

    def _take_cancellation(self) -> bool:
        """Return whether the task was cancelled. A cancellation counts once, so that cleaning up may wait."""
        with self._lock:
            was_cancelled, self._is_cancelled = self._is_cancelled, False
        return was_cancelled

    def _begin(self) -> None:
        from greenlet import greenlet

        own = self.greenlet = greenlet(self._run)
        own.gr_context = self._context
        own.switch()

    def _continue(self, _: Future[Any]) -> None:
        assert self.greenlet is not None, "a task that waits has a greenlet"
        self._thread.executor.submit(self.greenlet.switch)

    def _run(self) -> None:
        try:
            result = self._function()
        except BaseException as error:
            self._end()
            if isinstance(error, asyncio.CancelledError):
                self._outcome.cancel()
            elif isinstance(error, StopIteration):      # no asyncio future takes it, so the caller would wait for ever
                self._outcome.set_exception(_stop_error(error))
            else:
                self._outcome.set_exception(error)
        else:
            self._end()
            self._outcome.set_result(result)

    def _end(self) -> None:
        self._thread.count(-1)
        self.greenlet = None        # it refers to the task


def _result_of(ended: Future[Result]) -> Result:
    """Return the result of a filesystem's coroutine that has ended.

    Raises:
        RemoteError: it was cancelled, but not by the caller, whose own coroutine must not end like a cancelled one.
    """
    try:
        return ended.result()
    except CancelledError:
        raise RemoteError("the filesystem cancelled the request itself") from None


def _stop_error(error: StopIteration) -> RuntimeError:
    """Return the error that stands for a StopIteration in a coroutine, as in PEP 479."""
    stop_error = RuntimeError("coroutine raised StopIteration")
    stop_error.__cause__ = error
    return stop_error


class LoopWaiter:
    """Waits for coroutines in tasks, and in threads that the reader started.

    Args:
        loop: the event loop of the caller.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def wait(self, function: Callable[..., Coroutine[Any, Any, Result]], *arguments: Any, loop: Any = None) -> Result:
        """Run a coroutine function on a loop, and return its result. ``fastpq.io.waiting.Waiter`` describes the arguments."""
        from greenlet import getcurrent

        task, loop = _TASK.get(), loop or self._loop
        if task is not None and task.greenlet is getcurrent():     # not so in a thread that the reader started
            return cast(Result, task.wait(function(*arguments), loop))
        outcome = asyncio.run_coroutine_threadsafe(function(*arguments), loop)
        wait([outcome])
        return _result_of(outcome)

    def start_pool(self, *, decodes: bool = False) -> TaskPool:
        """Return a pool whose functions take no thread while they wait. ``fastpq.io.waiting.Waiter`` describes the argument."""
        return TaskPool(self, decodes)


class TaskPool:
    """Runs functions that fetch bytes beside the read that needs them, or that read several files at the same time.

    Args:
        waiter: how the functions wait.
        decodes: whether they decode pages.
    """

    def __init__(self, waiter: LoopWaiter, decodes: bool = False) -> None:
        self._waiter, self._decodes = waiter, decodes
        self._tasks: list[tuple[ReaderTask, Future[Any]]] = []

    def submit(self, function: Callable[..., Any], /, *arguments: Any) -> Promise:
        """Start a function, and return the promise of its result."""
        thread = _threads.least_busy() if self._decodes else _threads.of_fetches
        task = ReaderTask(self._waiter, thread, lambda: function(*arguments))
        future = task.start()
        self._tasks.append((task, future))
        return TaskPromise(future)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the pool. With ``cancel_futures`` the functions that still wait are cancelled."""
        for task, future in self._tasks:
            if cancel_futures and not future.done():
                task.cancel()
        for _, future in self._tasks:
            if wait and not future.done():
                with contextlib.suppress(Exception, asyncio.CancelledError):     # the read ends, so nobody needs the results
                    TaskPromise(future).result()


class TaskPromise:
    """The outcome of a function in a TaskPool.

    Args:
        future: the outcome of its task.
    """

    def __init__(self, future: Future[Any]) -> None:
        self._future = future

    def result(self) -> Any:
        """Wait for the function's end, and return its result."""
        waiter = WAITER.get()
        if waiter is not None and not self._future.done():
            waiter.wait(self._until_done)
        return self._future.result()

    async def _until_done(self) -> None:
        outcome = asyncio.wrap_future(self._future)
        await asyncio.wait([outcome])
        if not outcome.cancelled():
            outcome.exception()     # marks the error as seen
