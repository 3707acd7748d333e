"""RecoveryReport and Loss: which rows, columns and bytes are lost in a damaged file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from fastpq.common.display import LINE_WIDTH, Grid, Heading, View, counted, more, of_bytes, shorten, to_html, to_text
from fastpq.options import OnError

ON_ERROR: tuple[OnError, ...] = ("raise", "null", "skip")
# Number of losses that a RecoveryReport shows as text and as HTML.
TEXT_LOSSES, HTML_LOSSES = 5, 50


@dataclass(frozen=True, slots=True, order=True)
class Loss:
    """Unreadable rows in one leaf column.

    Attributes:
        row_group: row group index.
        column: the leaf's dotted path.
        start, stop: row range, without stop. Rows are counted from 0 through all row groups.
        reason: the error that reading these rows raised.
    """

    row_group: int
    column: str
    start: int
    stop: int
    reason: str

    @property
    def num_rows(self) -> int:
        """Lost row count."""
        return self.stop - self.start

    def __str__(self) -> str:
        return f"{self.column}: rows {self.start} to {self.stop - 1} of row group {self.row_group}: {self.reason}"


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """What was lost when a file was read, and which footer was used.

    Attributes:
        found_by: ``"footer"``, ``"checkpoint"`` for an unfinished file's last footer, or ``"pages"`` for page headers alone.
        losses: unreadable rows in the requested columns.
        unread: byte ranges outside all known row groups, as (offset, length). They are after the last checkpoint, or between
            and after the row groups that were rebuilt from pages.
        reason: why the file's own footer is not readable. None if that footer was used.
    """

    found_by: Literal["footer", "checkpoint", "pages"]
    losses: tuple[Loss, ...] = ()
    unread: tuple[tuple[int, int], ...] = ()
    reason: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing."""
        return self.found_by == "footer" and not self.losses

    def __str__(self) -> str:
        lines = [] if self.reason is None else [f"read by {self.found_by}: {self.reason}"]
        lines += [f"{length} bytes at offset {offset} hold no row group that can be read" for offset, length in self.unread]
        return "\n".join([*lines, *map(str, self.losses)]) or "nothing is lost"

    def __repr__(self) -> str:
        return to_text(self._view(TEXT_LOSSES))

    def _repr_html_(self) -> str:
        return to_html(self._view(HTML_LOSSES))

    def _view(self, most: int) -> View:
        """Return the display, with the footer that was used and the first losses."""
        facts = [f"read by {self.found_by}", counted(len(self.losses), "loss")]
        facts += [f"{of_bytes(sum(length for _, length in self.unread))} unread"] if self.unread else []
        headings = [
            Heading("column"), Heading("row group", is_number=True), Heading("rows", is_number=True),
            Heading("lost", is_number=True), Heading("reason", is_prose=True),
        ]
        rows = [
            (loss.column, str(loss.row_group), f"{loss.start:,} to {loss.stop - 1:,}", f"{loss.num_rows:,}", loss.reason)
            for loss in self.losses[:most]
        ]
        grid = Grid(headings, rows, more(len(self.losses), len(rows), "loss")) if rows else None
        note = self.reason or ("nothing is lost" if self.is_whole else "")
        return View("RecoveryReport", facts, grid, note=shorten(note, LINE_WIDTH))


def merged_losses(losses: Iterable[Loss]) -> tuple[Loss, ...]:
    """Return the losses in order, without duplicates. A column's losses are joined if they touch or overlap."""
    result: list[Loss] = []
    for loss in sorted(losses):
        last = result[-1] if result else None
        if last and (last.row_group, last.column) == (loss.row_group, loss.column) and loss.start <= last.stop:
            result[-1] = Loss(last.row_group, last.column, last.start, max(last.stop, loss.stop), last.reason)
        else:
            result.append(loss)
    return tuple(result)
