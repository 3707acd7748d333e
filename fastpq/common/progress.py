"""Progress of long work, reported to one function: ``progress(done, total)``.

Both numbers count rows, except that Spark jobs count files. The calls come one after another, and ``done`` never falls. The last
call is ``(total, total)``. Work without rows or files makes one call, ``(0, 0)``. Readers call from any of their threads, and
writers from the caller's thread. Spark jobs call from a watcher thread in the driver, except for the last call, which comes from
the caller's thread.

Writers call ``(total, total)`` once, after the footer is written and before the file takes its place. If the function raises an
exception, the work ends, the caller gets the exception, and an unfinished file does not appear. tqdm and rich show the numbers
like this::

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
    """Counter that reports finished rows to a function.

    Args:
        progress: called as ``progress(done, total)``, or None for no calls.
        total: number of rows, as far as it is known.
        holds_last: whether only ``finish`` calls ``(total, total)``, because written rows are not yet a file without the footer.
    """

    def __init__(self, progress: Progress | None, total: int = 0, *, holds_last: bool = False) -> None:
        self._progress = progress
        self._total = total
        self._holds_last = holds_last
        self._is_silent = False     # during a call, and for good after an exception from it
        self._num_done = 0
        self._last_report: tuple[int, int] | None = None
        self._lock = Lock()

    def expect(self, rows: int) -> None:
        """Add rows to the total. A call that ``holds_last`` has held back comes now, with the new total."""
        if self._progress is not None and rows:
            with self._lock:
                self._total += rows
                if self._holds_last and self._num_done:
                    self._report()

    def add(self, rows: int) -> None:
        """Add finished rows."""
        if self._progress is not None and rows:
            with self._lock:
                self._num_done = min(self._num_done + rows, self._total)
                if self._num_done < self._total or not self._holds_last:
                    self._report()

    def finish(self) -> None:
        """Report all rows as finished."""
        if self._progress is not None:
            with self._lock:
                self._num_done = self._total
                self._report()

    def span(self, rows: int) -> Span | None:
        """Return a part of the work that counts as ``rows`` rows, or None if there is no function to report to."""
        return None if self._progress is None else Span(self, rows)

    def _report(self) -> None:
        now = self._num_done, self._total
        if self._progress is None or self._is_silent or self._last_report == now:
            return
        self._last_report = now
        self._is_silent = True
        self._progress(*now)
        self._is_silent = False


class Span:
    """A part of the work, which counts in its own units.

    Args:
        meter: the meter for the whole work.
        rows: how many rows the whole part counts as.
    """

    def __init__(self, meter: Meter, rows: int) -> None:
        self._meter = meter
        self._rows = rows
        self._num_done = self._total = self._last_report = 0
        self._lock = Lock()

    def begin(self, units: int) -> None:
        """Set how many units the part has."""
        self._total = units

    def add(self, units: int) -> None:
        """Add finished units."""
        with self._lock:
            self._num_done += units
            self._reach(self._num_done, self._total)

    def reach(self, num_done: int, total: int) -> None:
        """Set how far the part is. Work that has its own ``progress(done, total)`` calls this."""
        with self._lock:
            self._reach(num_done, total)

    def _reach(self, num_done: int, total: int) -> None:
        now = self._rows * num_done // total if total else self._rows
        rows, self._last_report = now - self._last_report, now
        self._meter.add(rows)
