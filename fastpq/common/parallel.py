"""Running independent pieces of work on some threads."""

from __future__ import annotations

import operator
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

Item = TypeVar("Item")
Result = TypeVar("Result")

# How many results of run_ordered wait at most, for each thread, while an earlier one is still in work.
AHEAD = 8


def resolve_threads(threads: int | None) -> int:
    """The number of threads to use: as asked, or one for each core that this process may use."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if operator.index(threads) < 1:
        raise ValueError(f"threads must be at least 1, not {threads}")
    return threads


def run_parallel(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Sequence[Result]:
    """work(item) for each item, results in order; the first error ends it, once running work is done."""
    waiting = list(items)
    if threads == 1 or len(waiting) < 2:
        return [work(item) for item in waiting]
    from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

    with ThreadPoolExecutor(min(threads, len(waiting)), thread_name_prefix="fastpq") as pool:
        futures = [pool.submit(work, item) for item in waiting]
        done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        for future in done:
            if future.exception() is not None:
                pool.shutdown(cancel_futures=True)
                break
        return [future.result() for future in futures if not future.cancelled()]


def run_ordered(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """The results of work(item) in the order of the items, each as soon as it and those before it are there."""
    if threads == 1:
        yield from map(work, items)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads, thread_name_prefix="fastpq") as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > threads * AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)
