"""Progress of long work, told to one callable: ``progress(done, total)``.

Both numbers count rows; Spark jobs count files. Calls come one at a time, and ``done`` never falls. The last call is
``(total, total)``; work without rows or files has the one call ``(0, 0)``. Readers call from any of their threads, writers
from the caller's thread, Spark jobs from a watcher thread of the driver, except the last call, from the caller's thread.

Writers call ``(total, total)`` once, when the footer is written and before the file takes its place. An exception from the
callable ends the work and reaches the caller; an unfinished file does not appear. tqdm and rich take the numbers
so::

    with tqdm(unit=" rows") as bar:
        def show(done, total):
            bar.total = total
            bar.update(done - bar.n)
        table = fastpq.read_table(path, progress=show)

    with rich.progress.Progress() as bars:
        task = bars.add_task("reading")
        table = fastpq.read_table(path, progress=lambda done, total: bars.update(task, completed=done, total=total))
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], object]


class Meter:
    """Counts finished rows, and calls a callable with the numbers.

    Args:
        progress: called as ``progress(done, total)``; None for no calls.
        total: rows of the work, as far as known.
        holds_last: leave the call ``(total, total)`` to ``finish``: written rows make no file without a footer.
    """

    def __init__(self, progress: Progress | None, total: int = 0, *, holds_last: bool = False) -> None:
        self._progress = progress
        self._total = total
        self._holds_last = holds_last
        self._is_silent = False     # after an exception from the callable
        self._done = 0
        self._told: tuple[int, int] | None = None
        self._lock = Lock()

    def expect(self, rows: int) -> None:
        """Count more rows into the total; a call held back by holds_last is made now, with the new total."""
        if self._progress is not None and rows:
            with self._lock:
                self._total += rows
                if self._holds_last and self._done:
                    self._tell()

    def add(self, rows: int) -> None:
        """Count rows as done."""
        if self._progress is not None and rows:
            with self._lock:
                self._done = min(self._done + rows, self._total)
                if self._done < self._total or not self._holds_last:
                    self._tell()

    def finish(self) -> None:
        """Count all rows as done."""
        if self._progress is not None:
            with self._lock:
                self._done = self._total
                self._tell()

    def span(self, rows: int) -> Span | None:
        """A part of the work, worth some rows; None without a callable."""
        return None if self._progress is None else Span(self, rows)

    def _tell(self) -> None:
        now = self._done, self._total
        if self._progress is None or self._is_silent or self._told == now:
            return
        self._told = now
        self._is_silent = True
        self._progress(*now)
        self._is_silent = False


class Span:
    """A part of the work, in units of its own.

    Args:
        meter: meter of the whole work.
        rows: rows counted for the whole part.
    """

    def __init__(self, meter: Meter, rows: int) -> None:
        self._meter = meter
        self._rows = rows
        self._units = self._of = self._told = 0
        self._lock = Lock()

    def begin(self, units: int) -> None:
        """Say how many units the part has."""
        self._of = units

    def add(self, units: int) -> None:
        """Count units as done."""
        with self._lock:
            self._units += units
            self._reach(self._units, self._of)

    def reach(self, done: int, total: int) -> None:
        """Set the progress of the part; to be called by work with a ``progress(done, total)`` of its own."""
        with self._lock:
            self._reach(done, total)

    def _reach(self, done: int, total: int) -> None:
        now = self._rows * done // total if total else self._rows
        rows, self._told = now - self._told, now
        self._meter.add(rows)
