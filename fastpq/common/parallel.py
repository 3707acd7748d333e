"""Independent pieces of work on several threads."""

from __future__ import annotations

import operator
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

Item = TypeVar("Item")
Result = TypeVar("Result")

# Most items of run_ordered in work or done ahead of the next result, for each thread.
AHEAD = 8


def resolve_threads(threads: int | None) -> int:
    """The number of threads to use: as given, or for None one for each core available to this process."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not hasattr(threads, "__index__"):
        raise TypeError(f"threads is a whole number, or None for one a core, not the {type(threads).__name__} {threads!r}")
    if operator.index(threads) < 1:
        raise ValueError(f"threads must be at least 1, not {threads}")
    return threads


def _begins_threads(threads: int) -> bool:
    """Whether work is shared out to threads; while the interpreter ends, none can begin."""
    return threads > 1 and threading.main_thread().is_alive()


def run_parallel(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Sequence[Result]:
    """The results of work(item), in the order of the items; after an error no work is begun, and running work is finished.

    The calling thread works too, alone where no other can begin. A pool of concurrent.futures would take longer under the GIL
    than the reads that use it.
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
            except IndexError:      # another thread took the last
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
        to_do.clear()       # after Ctrl-C in this thread, at work or waiting
        _wait(helpers)
    if errors:
        first = min(errors, key=lambda place: (isinstance(errors[place], Exception), place))     # Ctrl-C before all errors
        try:
            raise errors[first]
        finally:
            errors.clear()      # an error refers to this frame
    return [results[place] for place in range(len(waiting))]


class _Helper(threading.Thread):
    """A thread beside the calling one.

    Attributes:
        idle: not set during work. After Ctrl-C in ``join``, Python 3.11 takes a thread at work for an ended one.
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
    """Start threads, until the system has none left."""
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
    work: Callable[[Item], Result], items: Iterable[Item], threads: int, *, ahead: int = AHEAD
) -> Iterator[Result]:
    """Yield the results of work(item) in the order of the items; at most ``ahead`` items for each thread run ahead."""
    if not _begins_threads(threads):
        yield from map(work, items)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads, thread_name_prefix="fastpq") as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > threads * ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
