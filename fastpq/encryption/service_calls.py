"""Calls of key services: with a time limit, with further attempts, many at the same time, and none while a service is down."""

from __future__ import annotations

import contextvars
import functools
import queue
import random
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

from fastpq.errors import KeyAccessError

T = TypeVar("T")
Item = TypeVar("Item")

DEFAULT_TIMEOUT = 10.0      # in seconds, for all calls for one file, with all their attempts
DEFAULT_ATTEMPTS = 3
FIRST_PAUSE = 0.1           # in seconds. Each later pause is twice as long, and shortened at random by up to a half
MOST_FAILURES = 3           # number of consecutive calls without an answer after which a service counts as down
DOWN_SECONDS = 5.0          # how long a service that is down is not asked again
MOST_CONCURRENT_CALLS = 32  # largest number of simultaneous calls for one file
FAR_SECONDS = 0.002         # a key service that takes at least this long is distant. Starting threads takes less time


class _State:
    """What is known about one service.

    Attributes:
        failures: number of consecutive calls without an answer.
        down_until: monotonic time before which the service is not asked.
    """

    def __init__(self) -> None:
        self.failures, self.down_until = 0, 0.0


class CallTime:
    """The time that is left for the calls for one file. Simultaneous calls count once, and the time between calls does not count.

    After a pause of DOWN_SECONDS all of the time is left again: the caller asks anew. Threads can share it.

    Args:
        seconds: longest time for all calls.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = self._left = seconds
        self._running_calls = 0
        self._since = time.monotonic()      # when the first running call began, or the last call ended
        self._lock = threading.Lock()

    @property
    def is_over(self) -> bool:
        """Whether no time is left. To ask does not end a pause."""
        with self._lock:
            since = time.monotonic() - self._since
            return self._left <= since if self._running_calls else self._left <= 0 and since < DOWN_SECONDS

    @contextmanager
    def spent(self) -> Iterator[float]:
        """Count the time of the block, and give the number of seconds that are left for it."""
        with self._lock:
            now = time.monotonic()
            if not self._running_calls:
                self._left = self._seconds if now - self._since >= DOWN_SECONDS else self._left
                self._since = now
            self._running_calls += 1
            left = self._left - (now - self._since)
        try:
            yield left
        finally:
            with self._lock:
                self._running_calls -= 1
                if not self._running_calls:
                    now = time.monotonic()
                    self._left, self._since = self._left - (now - self._since), now


class ServiceCalls:
    """Limits for calls of key services. Threads can share it.

    Args:
        timeout: longest time in seconds for all calls for one file together, with all their attempts. None calls without a limit,
            in the caller's thread.
        attempts: largest number of attempts, if the service does not answer.

    Raises:
        ValueError, TypeError: a limit is not a positive number.
    """

    def __init__(self, timeout: float | None = DEFAULT_TIMEOUT, attempts: int = DEFAULT_ATTEMPTS) -> None:
        if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float)):
            raise TypeError(f"timeout must be a number of seconds or None, not {type(timeout).__name__}")
        if timeout is not None and not 0 < timeout <= threading.TIMEOUT_MAX:
            raise ValueError(f"timeout must be a positive number of seconds, not {timeout!r}")
        if isinstance(attempts, bool) or not isinstance(attempts, int):
            raise TypeError(f"attempts must be a whole number, not {type(attempts).__name__}")
        if attempts < 1:
            raise ValueError(f"attempts must be at least 1, not {attempts}")
        self._timeout, self._attempts = timeout, attempts
        self._states: dict[Hashable, _State] = {}
        self._lock = threading.Lock()

    def time_of_file(self) -> CallTime | None:
        """Return the time for all calls for one file. None without a limit."""
        return None if self._timeout is None else CallTime(self._timeout)

    def call(self, service: Hashable, function: Callable[[], T], what: str = "", call_time: CallTime | None = None) -> T:
        """Call a service, again if it does not answer.

        Args:
            service: the service's name, by which its failures are counted.
            function: makes the call. It tells by ``KeyAccessError.is_unavailable`` that the service did not answer.
            what: what the service is asked to do, for the message.
            call_time: the time for this call and others. None gives it a time of its own.

        Raises:
            KeyAccessError: the service did not answer in time, or is down. Then ``is_unavailable`` is True.
            Exceptions from the function.
        """
        if self._timeout is None:
            self._check_up(service)
            return self._try_often(service, function, None, "")
        extent = " for all keys of a file" if call_time is not None else ""
        request_text = f"was asked to {what}, and " if what else ""
        words = f"the key service {request_text}did not answer in time ({self._timeout:g} seconds{extent})"
        call_time = call_time or CallTime(self._timeout)
        if call_time.is_over:
            raise _unavailable(words)
        self._check_up(service)
        with call_time.spent() as seconds:
            is_short = seconds < self._timeout / 2
            return self._try_often(service, function, time.monotonic() + seconds, words, is_short=is_short)

    def _try_often(
        self, service: Hashable, function: Callable[[], T], deadline: float | None, words: str, *, is_short: bool = False
    ) -> T:
        """Call a service until it answers, at most until a monotonic time. A call that takes too long fails with ``words``.

        If the time is short, because other calls have used it, such a call does not mean that the service is down.
        """
        attempt = 0
        while True:
            attempt += 1
            try:
                result = function() if deadline is None else _call_within(deadline - time.monotonic(), function, words)
            except KeyAccessError as error:
                if not error.is_unavailable:
                    self._note_answer(service)
                    raise
                pause = FIRST_PAUSE * 2 ** (attempt - 1) * random.uniform(0.5, 1)
                if attempt < self._attempts and (deadline is None or time.monotonic() + pause < deadline):
                    time.sleep(pause)
                    continue
                is_late = deadline is not None and time.monotonic() >= deadline
                if not (is_late and is_short):
                    self._note_failure(service, is_hanging=is_late)
                if attempt > 1:
                    error.message += f" ({attempt} attempts)"
                raise
            except Exception:
                self._note_answer(service)
                raise
            self._note_answer(service)
            return result

    def _check_up(self, service: Hashable) -> None:
        """Refuse a call of a service that is down. After some time one caller may try again, and the others still not."""
        with self._lock:
            state, now = self._states.get(service), time.monotonic()
            if state is None or state.failures < MOST_FAILURES:
                return
            if now >= state.down_until:
                state.down_until = now + (self._timeout or DOWN_SECONDS)
                return
            seconds = state.down_until - now
        raise _unavailable(f"the key service did not answer before, and is not asked again for {seconds:.1f} seconds")

    def _note_answer(self, service: Hashable) -> None:
        with self._lock:
            self._states.pop(service, None)

    def _note_failure(self, service: Hashable, *, is_hanging: bool) -> None:
        with self._lock:
            state = self._states.setdefault(service, _State())
            state.failures += MOST_FAILURES if is_hanging else 1        # nobody waits for a hanging service twice
            state.down_until = time.monotonic() + DOWN_SECONDS


def _unavailable(message: str) -> KeyAccessError:
    error = KeyAccessError(message)
    error.is_unavailable = True
    return error


def _call_within(seconds: float, function: Callable[[], T], words: str) -> T:
    """Call a function in a thread of its own, and return its result.

    A call that takes too long goes on in its thread, which does not keep the process alive.

    Args:
        seconds: longest time.
        function: the function. It sees the caller's context variables.
        words: message of the error for a call that takes too long.

    Raises:
        KeyAccessError: the call took too long. Then ``is_unavailable`` is True.
        Exceptions from the function.
    """
    context = contextvars.copy_context()
    future: Future[T] = Future()
    threading.Thread(target=_complete, args=(future, lambda: context.run(function)), name="fastpq-key", daemon=True).start()
    try:
        return future.result(max(seconds, 0))
    except TimeoutError:
        if future.done():       # it ended at the last moment
            return future.result()
        raise _unavailable(words) from None
    finally:
        del future      # its exception has this frame in its traceback


def _complete(future: Future[T], function: Callable[[], T]) -> None:
    """Call a function, and put its result or its exception into a future."""
    try:
        future.set_result(function())
    except BaseException as error:
        future.set_exception(error)


def call_all(function: Callable[[Item], T], items: Iterable[Item], *, is_far: bool = False) -> dict[Item, Future[T]]:
    """Call a function for several items, and return the finished futures by item. An interruption does not wait for the calls.

    The items are handled one after the other until a call takes long. Then the others are handled at the same time.

    Args:
        function: the function. Several threads may call it.
        items: the items. Equal items are handled once.
        is_far: whether it is known that calls take long. Then all items are handled at the same time.
    """
    futures: dict[Item, Future[T]] = {item: Future() for item in items}
    pending_items: queue.SimpleQueue[Item] = queue.SimpleQueue()
    rest = iter(futures)
    for item in () if is_far else rest:
        start = time.monotonic()
        _complete(futures[item], functools.partial(function, item))
        if isinstance(error := futures[item].exception(), KeyboardInterrupt | SystemExit):
            raise error
        if time.monotonic() - start >= FAR_SECONDS:
            break
    for item in rest:
        pending_items.put(item)

    def work() -> None:
        while True:
            try:
                item = pending_items.get_nowait()
            except queue.Empty:
                return
            _complete(futures[item], functools.partial(function, item))

    threads = min(pending_items.qsize(), MOST_CONCURRENT_CALLS)
    for _ in range(threads):
        threading.Thread(target=work, name="fastpq-keys", daemon=True).start()
    try:
        for future in futures.values():
            future.exception()      # waits for it
    except BaseException:       # Ctrl-C: the threads find no further items
        while not pending_items.empty():
            try:
                pending_items.get_nowait()
            except queue.Empty:
                break
        raise
    return futures
