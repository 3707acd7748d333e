"""SheetView: the widget that draws as much of a sheet as fits the terminal, and moves the cursor.

All text is escaped here, and shown without markup. Colours are the terminal's own.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click, MouseScrollDown, MouseScrollUp, Resize
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from fastpq.cli.browser.sheet import CellPlace, Sheet
from fastpq.cli.failures import failure_of
from fastpq.cli.terminal import Part, Styled, escape_text, shortened, width_of

GAP = 2             # terminal columns between two columns
NARROWEST = 8       # terminal columns that a cut last column has at least
MATCH_CONTEXT = 20  # characters beside a match that the view cuts off
WHEEL_ROWS = 3      # rows for one turn of the mouse wheel

# The terminal's own colours, so that light and dark terminals both stay readable.
STYLES = {
    "": Style(),
    "heading": Style(bold=True, underline=True),
    "label": Style(dim=True),
    "dim": Style(dim=True),
    "warning": Style(color="yellow"),
    "error": Style(color="red"),
    "good": Style(color="green"),
    "strong": Style(bold=True),
    "key": Style(color="cyan", bold=True),
}
CURSOR = Style(reverse=True)


class ColumnSpan(NamedTuple):
    """A sheet's column in the view: its number, and its width in terminal columns."""

    column: int
    width: int


class SheetView(Widget):
    """The view of one sheet. Keys move the cursor. All other keys belong to the app.

    Attributes:
        sheet: the sheet, or None before the first one.
        place: where the cursor is.
        top: the first row in view.
        first_column: the first column in view behind the pinned ones.
    """

    class Changed(Message):
        """Another part of the sheet is in view, or the cursor moved."""

    can_focus = True
    DEFAULT_CSS = "SheetView { width: 1fr; height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup,ctrl+b", "page(-1)", show=False),
        Binding("pagedown,ctrl+f,space", "page(1)", show=False),
        Binding("home", "home", show=False),
        Binding("left,h", "side(-1)", show=False),
        Binding("right,l", "side(1)", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.sheet: Sheet | None = None
        self.place = CellPlace(0, 0)
        self.top = self.first_column = 0
        self._spans: list[ColumnSpan] = []
        self._is_cut = False
        self._widths: dict[int, int] = {}

    def show_sheet(self, sheet: Sheet, place: CellPlace, top: int = 0, first_column: int | None = None) -> None:
        """Show a sheet.

        Args:
            sheet: the sheet.
            place: where the cursor is.
            top: the first row in view.
            first_column: the first column in view behind the pinned ones, or None for the first.
        """
        self.sheet, self.place, self.top = sheet, place, top
        self.first_column = sheet.num_pinned if first_column is None else first_column
        self._widths = {}
        sheet.fit(self.size.width)
        self.show_changes()

    def show_changes(self) -> None:
        """Draw the sheet again, after it has more rows or the cursor has moved."""
        if self.sheet is None:
            return
        last = max(0, len(self.sheet) - 1)
        self.place = CellPlace(min(max(0, self.place.row), last), self.place.column)
        last_top = max(0, len(self.sheet) - self.page_rows)
        self.top = max(0, min(max(self.top, self.place.row - self.page_rows + 1), self.place.row, last_top))
        self._lay_out()
        self.refresh()
        self.post_message(self.Changed())

    @property
    def page_rows(self) -> int:
        """How many rows are in view."""
        height: int = self.size.height
        return max(1, height - self._has_heading)

    @property
    def _has_heading(self) -> bool:
        return self.sheet is not None and any(self.sheet.column(place).name for place in range(min(3, self.sheet.num_columns)))

    @property
    def rows(self) -> range:
        """The rows in view. They may reach beyond the end of the sheet."""
        return range(self.top, self.top + self.page_rows)

    @property
    def columns(self) -> range:
        """The columns in view behind the pinned ones."""
        last = self._spans[-1].column + 1 if self._spans else 0
        return range(min(self.first_column, last), last)

    @property
    def has_hidden_columns(self) -> bool:
        """Whether the view can move to the side."""
        if self.sheet is None:
            return False
        return self._is_cut or self.first_column > self.sheet.num_pinned or self.columns.stop < self.sheet.num_columns

    def move_to(self, place: CellPlace) -> None:
        """Put the cursor on a cell, and bring it into view. Before the first sheet there is none."""
        if self.sheet is None:
            return
        self.place = place
        if self.sheet.has_cell_cursor:
            self._bring_into_view(place.column)
        self.show_changes()

    def _bring_into_view(self, column: int) -> None:
        assert self.sheet is not None
        if column < self.sheet.num_pinned:
            return
        if column < self.first_column or column > self.columns.stop:
            self.first_column = column
        self._lay_out()
        while self.first_column < column and (column >= self.columns.stop or (self._is_cut and column == self.columns.stop - 1)):
            self.first_column += 1
            self._lay_out()

    def _lay_out(self) -> None:
        """Choose the columns that fit, with the widths that their cells in view need."""
        assert self.sheet is not None
        num_pinned = min(self.sheet.num_pinned, self.sheet.num_columns)
        self._spans, self._is_cut = [], False
        room, column = self.size.width, 0
        while room > 0 and column < self.sheet.num_columns:
            width = self._width_of(column)
            if width > room:
                if self._spans and room < NARROWEST:
                    break
                width, self._is_cut = room, True
            self._spans.append(ColumnSpan(column, width))
            room -= width + GAP
            column = max(column + 1, self.first_column) if column + 1 >= num_pinned else column + 1
        if column >= self.sheet.num_columns and self._is_cut and self.first_column >= self.sheet.num_columns - 1:
            self._is_cut = False        # nothing more can be done for the last column

    def _width_of(self, column: int) -> int:
        """Return the width that a column needs. A column does not become narrower while its sheet is shown."""
        assert self.sheet is not None
        heading = self.sheet.column(column)
        widest = max(self._widths.get(column, 1), width_of(escape_text(heading.name)))
        for row in range(self.top, min(len(self.sheet), self.top + self.page_rows)):
            widest = max(widest, width_of(self._cell(row, column).text))
        self._widths[column] = min(widest, max(heading.widest, width_of(heading.name)) if not heading.is_number else widest)
        return self._widths[column]

    def cut_match(self, text: str) -> str:
        """Return the text around a match in the cell under the cursor if the view cuts the match off. Otherwise return ""."""
        if self.sheet is None or self.place.row >= len(self.sheet):
            return ""
        cell, text = self._cell(*self.place).text, text.lower()
        width = next((span.width for span in self._spans if span.column == self.place.column), 0)
        start = cell.lower().find(text)
        if start < 0 or (width and text in shortened(cell, width).lower()):
            return ""
        first, last = max(0, start - MATCH_CONTEXT), start + len(text) + MATCH_CONTEXT
        return f"{'…' if first else ''}{cell[first:last]}{'…' if last < len(cell) else ''}"

    def _cell(self, row: int, column: int) -> Styled:
        """Return an escaped cell. A cell that cannot be made shows why."""
        assert self.sheet is not None
        try:
            part: Part = self.sheet.cell(row, column)
        except Exception as error:      # whatever a file holds, the other cells stay readable
            part = Styled(failure_of(error).message, "error")
        return Styled(escape_text(part)) if isinstance(part, str) else Styled(escape_text(part.text), part.style)

    def render_line(self, y: int) -> Strip:
        """Return one line."""
        width = self.size.width
        if self.sheet is None:
            return Strip.blank(width)
        if y == 0 and self._has_heading:
            cells = [Styled(escape_text(self.sheet.column(span.column).name), "heading") for span in self._spans]
            return self._strip(cells, width, is_heading=True)
        row = self.top + y - self._has_heading
        if row >= len(self.sheet):
            return Strip.blank(width)
        return self._strip([self._cell(row, span.column) for span in self._spans], width, is_cursor=row == self.place.row)

    def _strip(self, cells: list[Styled], width: int, *, is_heading: bool = False, is_cursor: bool = False) -> Strip:
        assert self.sheet is not None
        segments: list[Segment] = []
        for span, cell in zip(self._spans, cells, strict=True):
            text = shortened(cell.text, span.width)
            padding = " " * (span.width - width_of(text))
            style = STYLES.get(cell.style, STYLES[""])
            is_marked = is_cursor and (not self.sheet.has_cell_cursor or span.column == self.place.column)
            blank = CURSOR if is_marked else Style()
            style = style + CURSOR if is_marked else style
            if self.sheet.column(span.column).is_number:
                segments += [Segment(padding, blank), Segment(text, style)]
            else:
                segments += [Segment(text, style), Segment(padding, blank)]
            segments.append(Segment(" " * GAP, CURSOR if is_marked and not self.sheet.has_cell_cursor else Style()))
        rest = CURSOR if is_cursor and not self.sheet.has_cell_cursor and not is_heading else Style()
        return Strip(segments).adjust_cell_length(width, rest)

    def action_move(self, step: int) -> None:
        """Move the cursor by rows."""
        self.move_to(CellPlace(self.place.row + step, self.place.column))

    def action_page(self, step: int) -> None:
        """Move the cursor and the view by pages."""
        self.top += step * self.page_rows
        self.move_to(CellPlace(self.place.row + step * self.page_rows, self.place.column))

    def action_home(self) -> None:
        """Move the cursor to the first row."""
        self.move_to(CellPlace(0, self.place.column))

    def action_side(self, step: int) -> None:
        """Move the cursor or the view by columns."""
        if self.sheet is None:
            return
        if self.sheet.has_cell_cursor:
            column = min(max(self.place.column + step, self.sheet.num_pinned), self.sheet.num_columns - 1)
            self.move_to(CellPlace(self.place.row, column))
        elif step < 0 or self._is_cut or self.columns.stop < self.sheet.num_columns:
            last = max(self.sheet.num_pinned, self.sheet.num_columns - 1)
            self.first_column = min(max(self.first_column + step, self.sheet.num_pinned), last)
            self.show_changes()

    def on_resize(self, event: Resize) -> None:
        """Fit the sheet to the new width."""
        if self.sheet is not None:
            self.sheet.fit(event.size.width)
            self.show_changes()

    def on_click(self, event: Click) -> None:
        """Put the cursor on the row under the mouse. A second click opens it."""
        row = self.top + event.y - self._has_heading
        if self.sheet is None or not 0 <= row < len(self.sheet):
            return
        column = self._column_at(event.x)
        place = CellPlace(row, column if self.sheet.has_cell_cursor else self.place.column)
        if event.chain > 1:
            self.app.simulate_key("enter")
        else:
            self.move_to(place)

    def _column_at(self, x: int) -> int:
        for span in self._spans:
            if x < span.width + GAP:
                return span.column
            x -= span.width + GAP
        return self.place.column

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Move down."""
        self.action_move(WHEEL_ROWS)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Move up."""
        self.action_move(-WHEEL_ROWS)
