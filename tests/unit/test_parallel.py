"""Running work on threads: order, bounds, errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from fastpq.parallel import AHEAD, resolve_threads, run, run_ordered


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_order(threads: int) -> None:
    def work(item: int) -> int:
        time.sleep(0.002 * (item % 3))
        return item * item

    expected = [item * item for item in range(40)]
    assert list(run(work, range(40), threads)) == expected
    assert list(run_ordered(work, range(40), threads)) == expected


def test_no_more_is_taken_than_may_wait() -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for item in range(1000):
            taken += 1
            yield item

    results = run_ordered(lambda item: item, items(), 2)
    assert next(results) == 0
    assert taken <= 2 * AHEAD + 1


def test_the_first_error_ends_the_work() -> None:
    started = []

    def work(item: int) -> int:
        started.append(item)
        if item == 3:
            raise LookupError("three")
        time.sleep(0.001)
        return item

    for runner in (run, run_ordered):
        started.clear()
        with pytest.raises(LookupError, match="three"):
            list(runner(work, range(10_000), 2))
        assert len(started) < 1000


def test_the_pool_ends_with_its_reader() -> None:
    before = threading.active_count()
    results = run_ordered(lambda item: item, range(100), 3)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


def test_threads_as_asked_or_as_there_are() -> None:
    assert resolve_threads(3) == 3
    assert (resolve_threads(None) >= 1) is True
    with pytest.raises(ValueError, match="at least 1"):
        resolve_threads(0)
    with pytest.raises(TypeError, match="float"):
        resolve_threads(1.5)  # type: ignore[arg-type]
