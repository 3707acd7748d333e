"""Sheet: a table that the browser shows. It makes a cell when the cell comes into view, and reads values in the background."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from fastpq.cli.failures import CommandFailure, Failure
from fastpq.cli.terminal import Part, Styled, escape_text, width_of

Opener: TypeAlias = "Callable[[], Sheet]"

MOST_KEPT_ROWS = 1000       # rows whose cells a sheet keeps
SEARCH_STEP = 1000          # rows that a search loads together
LONGEST_TEXT = 1_000_000    # characters that a TextSheet shows
LABEL_GAP = 2


class SheetColumn(NamedTuple):
    """A column in a sheet.

    Attributes:
        name: heading.
        is_number: whether cells are aligned to the right.
        widest: most terminal columns that a cell takes.
    """

    name: str
    is_number: bool = False
    widest: int = 40


class CellPlace(NamedTuple):
    """A cell in a sheet, by row and column."""

    row: int
    column: int


class Sheet(ABC):
    """A table with any number of rows and columns.

    Attributes:
        title: the sheet's name in the path above it.
        num_pinned: how many columns stay in view when the others move to the left.
        has_cell_cursor: whether the cursor is on a cell, not on a whole row.
        note: one sentence below the sheet.
        orders: what ``sorted_by`` takes. The first is file order.
        order: the current order, or "".
        condition: the current filter as text, or "".
        has_more_rows: whether ``find_more_rows`` has to be called until all rows are known.
        can_filter, can_probe, can_go: whether ``filtered``, ``probed`` and ``place_of`` do something.
    """

    title = ""
    num_pinned = 1
    has_cell_cursor = False
    note = ""
    orders: Sequence[str] = ()
    order = ""
    condition = ""
    has_more_rows = False
    can_filter = False
    can_probe = False
    can_go = False

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def num_columns(self) -> int:
        """Number of columns."""

    @abstractmethod
    def column(self, place: int) -> SheetColumn:
        """Return the heading of a column."""

    @abstractmethod
    def cell(self, row: int, column: int) -> Part:
        """Return a cell, or a placeholder if ``is_missing`` says that it has to be loaded first."""

    def is_missing(self, rows: range, columns: range) -> bool:
        """Return whether some cells have to be loaded first."""
        return False

    def load(self, rows: range, columns: range) -> None:        # noqa: B027 - most sheets need nothing
        """Read what some cells need. It is called in the background."""

    def find_more_rows(self) -> None:       # noqa: B027 - most sheets know their rows
        """Look for more rows for a moment, if ``has_more_rows``. It is called in the background."""

    def fit(self, width: int) -> None:      # noqa: B027 - most sheets are the same at each width
        """Prepare the rows for a width in terminal columns."""

    def start(self) -> CellPlace:
        """Return where the cursor begins."""
        return CellPlace(0, 0)

    def opens(self, row: int, column: int) -> bool:
        """Return whether there is a sheet behind a cell."""
        return False

    def open(self, row: int, column: int) -> Sheet:
        """Return the sheet behind a cell, if it ``opens``. It is called in the background."""
        raise CommandFailure("there is nothing behind this cell")

    def message(self, row: int, column: int) -> str:
        """Return a sentence about the cell under the cursor, or ""."""
        return ""

    def filtered(self, text: str) -> Sheet:
        """Return the sheet under a condition, or without one if the text is empty. It is called in the background."""
        raise CommandFailure("this sheet takes no conditions")

    def sorted_by(self, order: str) -> Sheet:
        """Return the sheet in another order. It is called in the background."""
        raise CommandFailure("this sheet has one order")

    def probed(self, text: str, row: int) -> Sheet:
        """Return what the indexes say about a value. It is called in the background.

        Args:
            text: the value, as the user typed it.
            row: the row under the cursor.
        """
        raise CommandFailure("this sheet has no indexes")

    def place_of(self, text: str, place: CellPlace) -> CellPlace:
        """Return the cell that a user asks for: by the row's number, or by letters in the column's name.

        Args:
            text: what the user typed.
            place: where the cursor is.

        Raises:
            CommandFailure: there is no such row or column.
        """
        number = text.replace(",", "").replace("_", "")
        if number.isdecimal():
            if int(number) >= len(self):
                raise CommandFailure(f"the last row is {len(self) - 1:,}")
            return CellPlace(int(number), place.column)
        count = self.num_columns
        for step in range(1, count + 1):
            column = (place.column + step) % count
            if text.lower() in self.column(column).name.lower():
                return CellPlace(place.row, column)
        raise CommandFailure(f"no column has {text!r} in its name")

    def search(self, text: str, place: CellPlace, step: int, columns: range) -> Iterator[CellPlace | int]:
        """Look for a text in the cells, up to an end of the sheet, then from the other end. It is called in the background.

        Args:
            text: what to look for. Small and capital letters are the same.
            place: where the search begins: in the row after this cell, or before it. This cell's row is searched last.
            step: 1 to search forwards, or -1.
            columns: the columns to look into.

        Yields:
            Row numbers: each comes before the rows from there on are searched, so that the caller can stop. At the end comes the
            matching cell, if there is one.
        """
        lower_text, count = text.lower(), len(self)
        for number in range(1, count + 1):
            row = (place.row + step * number) % count
            if (number - 1) % SEARCH_STEP == 0:
                yield row
                self._load_for_search(row, step, columns)
            for column in columns:
                if lower_text in _text(self.cell(row, column)).lower():
                    yield CellPlace(row, column)
                    return

    def _load_for_search(self, row: int, step: int, columns: range) -> None:
        first = row if step > 0 else max(0, row - SEARCH_STEP + 1)
        rows = range(first, min(len(self), first + SEARCH_STEP))
        if self.is_missing(rows, columns):
            self.load(rows, columns)


class RowSheet(Sheet):
    """A sheet with few columns, whose rows are made by ``make_row`` when they come into view.

    Attributes:
        columns: the headings.
    """

    columns: Sequence[SheetColumn] = ()

    def __init__(self) -> None:
        self._rows: OrderedDict[int, Sequence[Part]] = OrderedDict()

    @property
    def num_columns(self) -> int:
        """Number of columns."""
        return len(self.columns)

    def column(self, place: int) -> SheetColumn:
        """Return the heading of a column."""
        return self.columns[place]

    @abstractmethod
    def make_row(self, row: int) -> Sequence[Part]:
        """Return a row's cells."""

    def cell(self, row: int, column: int) -> Part:
        """Return a cell."""
        cells = self._rows.get(row)
        if cells is None:
            cells = self._kept(row, self.make_row(row))
        return cells[column]

    def _kept(self, row: int, cells: Sequence[Part]) -> Sequence[Part]:
        while len(self._rows) >= MOST_KEPT_ROWS:
            self._rows.popitem(last=False)
        self._rows[row] = cells
        return cells


class LoadedSheet(RowSheet):
    """A RowSheet whose rows are made in the background, because this takes a read or much computing."""

    def is_missing(self, rows: range, columns: range) -> bool:
        """Return whether some rows are not made yet."""
        return any(row not in self._rows for row in rows)

    def load(self, rows: range, columns: range) -> None:
        """Make rows."""
        for row in rows:
            if row not in self._rows:
                self._kept(row, self.make_row(row))

    def cell(self, row: int, column: int) -> Part:
        """Return a cell, or a placeholder if the row is not made yet. The first column is known without a read."""
        cells = self._rows.get(row)
        if cells is not None:
            return cells[column]
        return self.label(row) if column == 0 else Styled("…", "dim")

    def label(self, row: int) -> Part:
        """Return the first cell in a row."""
        return str(row)


class Fact(NamedTuple):
    """One line in a FactSheet.

    Attributes:
        label: what it is.
        value: the text, with a style or without.
        opener: makes the sheet behind it, or None.
    """

    label: str
    value: Part
    opener: Opener | None = None


class FactSheet(Sheet):
    """Labels and values. Some open other sheets. A long value goes on in the next rows.

    Args:
        title: the sheet's name.
        facts: the lines. A Fact without label and value is an empty line.
        note: one sentence below the sheet.
    """

    def __init__(self, title: str, facts: Sequence[Fact], note: str = "") -> None:
        self.title, self.facts, self.note = title, list(facts), note
        self._label_width = max((len(each.label) for each in facts), default=0)
        self._lines: list[tuple[str, Styled, int]] = []
        self.fit(80)

    def fit(self, width: int) -> None:
        """Wrap the values."""
        room = max(20, width - self._label_width - LABEL_GAP)
        self._lines = []
        for number, fact in enumerate(self.facts):
            text, style = fact.value if isinstance(fact.value, Styled) else (fact.value, "")
            for place, piece in enumerate(_wrapped(text, room)):
                self._lines.append(("" if place else fact.label, Styled(piece, style), number))

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def num_columns(self) -> int:
        """Two: label and value."""
        return 2

    def column(self, place: int) -> SheetColumn:
        """Return an empty heading."""
        return SheetColumn("", widest=10_000)

    def cell(self, row: int, column: int) -> Part:
        """Return the label, or one line of the value."""
        label, value, number = self._lines[row]
        style = "key" if self.facts[number].opener is not None else "label"
        return value if column else Styled(label, style)

    def opens(self, row: int, column: int) -> bool:
        """Return whether there is a sheet behind the line."""
        return 0 <= row < len(self._lines) and self.facts[self._lines[row][2]].opener is not None

    def open(self, row: int, column: int) -> Sheet:
        """Return the sheet behind the line."""
        opener = self.facts[self._lines[row][2]].opener
        assert opener is not None
        return opener()


class TextSheet(Sheet):
    """A text that is wrapped to the terminal's width.

    Args:
        title: the sheet's name.
        text: the text. Each of its lines begins a new row.
        note: one sentence below the sheet.
    """

    def __init__(self, title: str, text: str, note: str = "") -> None:
        self.title, self.note = title, note
        if len(text) > LONGEST_TEXT:
            self.note = f"the first {LONGEST_TEXT:,} of {len(text):,} characters"
        self._text = text[:LONGEST_TEXT]
        self._lines: list[str] = []
        self.fit(80)

    def fit(self, width: int) -> None:
        """Wrap the lines."""
        self._lines = [piece for line in self._text.split("\n") for piece in _wrapped(line, max(20, width))]

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def num_columns(self) -> int:
        """One."""
        return 1

    def column(self, place: int) -> SheetColumn:
        """Return an empty heading."""
        return SheetColumn("", widest=10_000)

    def cell(self, row: int, column: int) -> Part:
        """Return a line."""
        return self._lines[row]


def failure_sheet(title: str, failure: Failure) -> Sheet:
    """Return a sheet that shows an error instead of a sheet that cannot be opened."""
    facts = [Fact("error", Styled(failure.message, "error"))]
    if failure.hint:
        facts.append(Fact("hint", failure.hint))
    return FactSheet(title, facts)


def _text(part: Part) -> str:
    return part.text if isinstance(part, Styled) else part


def _wrapped(text: str, width: int) -> list[str]:
    """Return a text in pieces of at most ``width`` terminal columns, broken at spaces where this is possible."""
    text = escape_text(text)
    pieces, start = [], 0
    while len(text) - start > width or width_of(text[start:]) > width:
        end = start + width
        while width_of(text[start:end]) > width:
            end -= 1
        space = text.rfind(" ", start + width // 2, end + 1)
        if space > 0:
            pieces.append(text[start:space])
            start = space + 1
        else:
            pieces.append(text[start:end])
            start = end
    return [*pieces, text[start:]]
