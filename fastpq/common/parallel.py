"""Runs a function on independent items in several threads."""

from __future__ import annotations

import operator
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# For each thread, run_ordered works on at most this many items ahead, or has finished them, before the next result is taken.
AHEAD = 8


def resolve_threads(threads: int | None) -> int:
    """Return the number of threads to use. None means one for each core that is available to this process."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not hasattr(threads, "__index__"):
        raise TypeError(f"threads must be a whole number, or None for one per core, not the {type(threads).__name__} {threads!r}")
    if operator.index(threads) < 1:
        raise ValueError(f"threads must be at least 1, not {threads}")
    return threads


def _begins_threads(threads: int) -> bool:
    """Return whether threads share the work. No thread can start while the interpreter shuts down."""
    return threads > 1 and threading.main_thread().is_alive()


def run_parallel(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Sequence[Result]:
    """Return the results of ``work(item)``, in item order.

    The calling thread works too, and works alone if no other thread can start. After an error no further work begins, and running
    work is finished. A concurrent.futures pool is not used here, because it would hold the GIL for longer than the reads do.
    """
    waiting = list(items)
    if len(waiting) < 2 or not _begins_threads(threads):
        return [work(item) for item in waiting]
    results: dict[int, Result] = {}
    errors: dict[int, BaseException] = {}
    to_do = deque(enumerate(waiting))

    def take_items() -> None:
        while to_do:
            try:
                place, item = to_do.popleft()
            except IndexError:      # another thread took the last item
                return
            try:
                results[place] = work(item)
            except BaseException as error:
                errors[place] = error
                to_do.clear()

    helpers = [_Helper(take_items, number) for number in range(1, min(threads, len(waiting)))]
    try:
        _start(helpers)
        take_items()
        _wait(helpers)
    finally:
        to_do.clear()       # Ctrl-C may have come in this thread, while it worked or waited
        _wait(helpers)
    if errors:
        first = min(errors, key=lambda place: (isinstance(errors[place], Exception), place))     # Ctrl-C counts before all errors
        try:
            raise errors[first]
        finally:
            errors.clear()      # an error refers to this frame, which would refer to it
    return [results[place] for place in range(len(waiting))]


class _Helper(threading.Thread):
    """A thread that works beside the calling one.

    Attributes:
        idle: set while the thread does not work. It is needed because after Ctrl-C in ``join``, Python 3.11 believes that a
            working thread has ended.
    """

    def __init__(self, work: Callable[[], None], number: int) -> None:
        super().__init__(name=f"fastpq-{number}")
        self._work = work
        self.idle = threading.Event()
        self.idle.set()

    def run(self) -> None:
        self.idle.clear()
        try:
            self._work()
        finally:
            self.idle.set()


def _start(helpers: Iterable[_Helper]) -> None:
    """Start threads until the system refuses one."""
    for helper in helpers:
        try:
            helper.start()
        except RuntimeError:
            return


def _wait(helpers: Iterable[_Helper]) -> None:
    """Wait for the threads that have started."""
    for helper in helpers:
        helper.idle.wait()
        if helper.is_alive():
            helper.join()


def run_ordered(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int, *, ahead: int = AHEAD,
    start_pool: Callable[[], Any] | None = None,
) -> Iterator[Result]:
    """Yield the results of ``work(item)``, in item order. For each thread, at most ``ahead`` items run ahead.

    Args:
        work: the function.
        items: its arguments.
        threads: how many items are worked on at the same time.
        ahead: how many items run ahead, for each thread.
        start_pool: returns the pool that runs the function, with the methods of a ThreadPoolExecutor. None starts threads.
    """
    if not _begins_threads(threads):
        yield from map(work, items)
        return
    from concurrent.futures import ThreadPoolExecutor

    pool = start_pool() if start_pool is not None else ThreadPoolExecutor(threads, thread_name_prefix="fastpq")
    waiting: deque[Any] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads * ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
