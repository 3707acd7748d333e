"""BackgroundJobs: one thread that reads the file, so that the keys work while a read takes long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeAlias

Deliver: TypeAlias = "Callable[[Callable[[], None]], Any]"


class Job(NamedTuple):
    """Work for the thread.

    Attributes:
        work: what to do.
        done: called with the result, in the program's thread.
        failed: called with the error, in the program's thread.
    """

    work: Callable[[], Any]
    done: Callable[[Any], None]
    failed: Callable[[Exception], None]


class BackgroundJobs:
    """Does jobs one after another. Nothing waits for the thread when the program ends.

    Args:
        deliver: calls a function in the program's thread. It may raise RuntimeError when the program has ended.
    """

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()     # None ends the thread
        self._num_open = 0
        self._thread: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a job waits, or its result was not taken yet."""
        return self._num_open > 0

    def add(self, job: Job) -> None:
        """Do a job after all that were added before."""
        self._num_open += 1
        self._jobs.put(job)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="fastpq browse", daemon=True)
            self._thread.start()

    def close(self) -> threading.Thread | None:
        """Let the thread end after the jobs that were added. Return the thread, or None if there is none."""
        self._jobs.put(None)
        return self._thread

    def _run(self) -> None:
        for job in iter(self._jobs.get, None):
            try:
                result = job.work()
            except Exception as error:      # whatever a file holds, the program goes on and shows the error
                self._hand_over(job.failed, error)
            else:
                self._hand_over(job.done, result)

    def _hand_over(self, function: Callable[[Any], None], value: Any) -> None:
        def call() -> None:
            self._num_open -= 1
            function(value)

        try:
            self._deliver(call)
        except RuntimeError:        # the program has ended, and nobody wants the result
            self._num_open -= 1
