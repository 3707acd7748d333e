"""ProgressBar: shows long work in a terminal after a second, and nothing elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE = 1.0  # seconds before the bar appears


class ProgressBar:
    """A context manager whose call ``bar(done, total)`` is a ``progress`` of fastpq's functions.

    Args:
        what: the work, such as ``reading``.
        unit: what ``done`` and ``total`` count.
    """

    def __init__(self, what: str, unit: str) -> None:
        self._what, self._unit = what, unit
        self._is_silent = not sys.stderr.isatty()
        self._start = time.monotonic()
        self._bars: Progress | None = None
        self._task: Any = None

    def __enter__(self) -> Self:
        return self

    def __call__(self, done: int, total: int) -> None:
        """Show how much is done."""
        if self._is_silent or (self._bars is None and time.monotonic() - self._start < PATIENCE):
            return
        if self._bars is None:
            self._bars = _new_bars(self._unit)
            self._task = self._bars.add_task(self._what, total=total)
            self._bars.start()
        self._bars.update(self._task, completed=done, total=total)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Literal[False]:
        if self._bars is not None:
            self._bars.stop()
        return False


def _new_bars(unit: str) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)
