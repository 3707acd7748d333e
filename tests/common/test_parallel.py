"""Running work on threads: order, bounds, errors."""

from __future__ import annotations

import _thread
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fastpq.common.parallel import AHEAD, resolve_threads, run_ordered, run_parallel
from tests.threads import threads_of_fastpq

GUARD = 60      # seconds until a test fails that hangs


@pytest.mark.parametrize("runner", [run_parallel, run_ordered])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_order(threads: int, runner: Any) -> None:
    """Of two items the second is done first, where there are threads for both."""
    done = [threading.Event() for _ in range(40)]

    def work(item: int) -> int:
        if threads > 1 and item % 2 == 0:
            assert done[item + 1].wait(GUARD), "the next item did not start meanwhile"
        done[item].set()
        return item * item

    assert list(runner(work, range(40), threads)) == [item * item for item in range(40)]


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
        if item > 3:
            time.sleep(0.05)        # so that starting 1000 of them takes longer than noticing the error, on any machine
        return item

    for runner in (run_parallel, run_ordered):
        started.clear()
        with pytest.raises(LookupError, match="three"):
            list(runner(work, range(10_000), 2))
        assert len(started) < 1000


def test_ctrl_c_ends_the_work_of_all_threads() -> None:
    started = []

    def work(item: int) -> None:
        started.append(item)
        if item == 5:
            _thread.interrupt_main()
        time.sleep(0.005)

    for _ in range(3):
        started.clear()
        before = threads_of_fastpq()
        with pytest.raises(KeyboardInterrupt):
            run_parallel(work, range(1000), 3)
        assert len(started) < 900
        assert not threads_of_fastpq() - before


def test_ctrl_c_while_the_last_thread_works(request: pytest.FixtureRequest) -> None:
    both = threading.Barrier(2)
    is_handled = threading.Event()
    ended = []
    before = threads_of_fastpq()

    def interrupt(*_: Any) -> None:
        is_handled.set()
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGINT, interrupt)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, old))

    def work(item: int) -> None:
        both.wait(GUARD)
        if threading.current_thread() is threading.main_thread():
            return
        time.sleep(0.05)        # until the main thread waits
        while not is_handled.is_set():      # a signal in the moment before it waits would be handled only after the wait
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            is_handled.wait(1)
        time.sleep(0.2)
        ended.append(item)

    with pytest.raises(KeyboardInterrupt):
        run_parallel(work, range(2), 2)
    assert len(ended) == 1
    assert not threads_of_fastpq() - before


def test_ctrl_c_comes_before_an_error() -> None:
    both = threading.Barrier(2)

    def work(item: int) -> None:
        both.wait(GUARD)
        raise KeyboardInterrupt if item else LookupError

    with pytest.raises(KeyboardInterrupt):
        run_parallel(work, range(2), 2)


def test_work_is_done_where_no_more_threads_can_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start
    begun: list[threading.Thread] = []

    def start_one(thread: threading.Thread) -> None:
        if begun:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_one)
    assert run_parallel(str, range(50), 5) == [str(number) for number in range(50)]
    assert begun


def test_the_error_of_the_first_item_counts() -> None:
    both = threading.Barrier(2)

    def work(item: int) -> None:
        both.wait(GUARD)
        raise LookupError(item)

    for _ in range(20):
        with pytest.raises(LookupError, match="0"):
            run_parallel(work, range(2), 2)


def test_the_pool_ends_with_its_reader() -> None:
    before = threads_of_fastpq()
    results = run_ordered(lambda item: item, range(100), 3)
    next(results)
    assert threads_of_fastpq() - before
    results.close()  # type: ignore[attr-defined]
    assert not threads_of_fastpq() - before


def test_threads_as_asked_or_as_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve_threads(3) == 3
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 5}, raising=False)
    assert resolve_threads(None) == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert resolve_threads(None) == 7
    with pytest.raises(ValueError, match="at least 1"):
        resolve_threads(0)
    with pytest.raises(TypeError, match="float"):
        resolve_threads(1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("runner", ["run_parallel", "run_ordered"])
def test_work_is_done_while_the_interpreter_ends(runner: str) -> None:
    """No thread begins then."""
    program = (
        "import atexit\n"
        f"from fastpq.common.parallel import {runner}\n"
        f"atexit.register(lambda: print(list({runner}(str, range(9), 3)), flush=True))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=GUARD)
    assert (done.stdout.strip(), done.stderr) == (str([str(number) for number in range(9)]), "")
