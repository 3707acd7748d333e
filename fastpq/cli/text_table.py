"""Tables that fit the width of a terminal. Text columns are shortened first. Then the least important columns are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from fastpq.cli.terminal import Part, Screen, Styled, escape_text, shortened, width_of

GAP = 2  # columns between two table columns
SHORTEST_TEXT = 12  # columns to which a text column may be shortened
MOST_NAMES = 12  # of columns that are left out, which are named


F = TypeVar("F")


class TableColumn(NamedTuple):
    """A column of a TextTable.

    Attributes:
        name: heading.
        is_number: whether cells stand at the right.
        importance: a column with a smaller number is left out first if the terminal is narrow. Columns with 9 always stay.
        is_text: whether cells may be shortened.
        is_path: whether a short cell keeps its end, where the name of a nested column is.
    """

    name: str
    is_number: bool = False
    importance: int = 9
    is_text: bool = False
    is_path: bool = False


def number(name: str, importance: int = 9) -> TableColumn:
    """Return a column with numbers."""
    return TableColumn(name, True, importance)


def text(name: str, importance: int = 9) -> TableColumn:
    """Return a column with text that may be shortened."""
    return TableColumn(name, False, importance, True)


def path(name: str, importance: int = 9) -> TableColumn:
    """Return a column with dotted paths of columns."""
    return TableColumn(name, False, importance, True, True)


def print_facts(
    screen: Screen, facts: Iterable[F], columns: Sequence[tuple[TableColumn, Callable[[F], Part]]], indent: int = 0
) -> None:
    """Print a table with one row for each of some facts.

    Args:
        screen: where to print.
        facts: the facts.
        columns: each heading with the function that returns a cell.
        indent: columns before the table.
    """
    rows = [[cell_of(each) for _, cell_of in columns] for each in facts]
    print_table(screen, [heading for heading, _ in columns], rows, indent)


def print_table(screen: Screen, columns: Sequence[TableColumn], rows: Sequence[Sequence[Part]], indent: int = 0) -> None:
    """Print a table. Columns whose cells are all empty are left out.

    Args:
        screen: where to print.
        columns: the headings.
        rows: the cells in each row.
        indent: columns before the table.
    """
    cells = [[_cell(part, column) for part, column in zip(row, columns, strict=True)] for row in rows]
    shown_places = [place for place in range(len(columns)) if not cells or any(row[place].text for row in cells)]
    widths = {
        place: max([width_of(columns[place].name), *(width_of(row[place].text) for row in cells)]) for place in shown_places
    }
    left_out = _fit(columns, widths, screen.width - indent)
    _print_row(screen, indent, columns, widths, [Styled(column.name, "heading") for column in columns])
    for row in cells:
        _print_row(screen, indent, columns, widths, row)
    if left_out:
        names = [columns[place].name for place in sorted(left_out)]
        rest = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
        screen.paragraph(f"not shown at this width: {', '.join(names[:MOST_NAMES])}{rest}", indent, "dim")


def _cell(part: Part, column: TableColumn) -> Styled:
    text, style = (part, "") if isinstance(part, str) else part
    text = escape_text(text)
    return Styled(repr(text) if column.is_path and text.isspace() else text, style)     # a name of spaces would look like none


def _fit(columns: Sequence[TableColumn], widths: dict[int, int], room: int) -> list[int]:
    """Shorten and remove columns in ``widths`` until they fit. Return the removed ones."""
    least = {place: min(width, SHORTEST_TEXT) if columns[place].is_text else width for place, width in widths.items()}
    removable = sorted(
        (place for place in widths if columns[place].importance < 9), key=lambda place: (columns[place].importance, -place)
    )
    excess = _total(least) - room
    left_out: list[int] = []
    for place in removable:
        if excess <= 0:
            break
        del widths[place]
        left_out.append(place)
        excess -= least[place] + GAP
    if excess > 0:
        widths.update({place: least[place] for place in widths})
    while _total(widths) > room and excess <= 0:
        longest = max((place for place in widths if widths[place] > least[place]), key=lambda place: widths[place])
        widths[longest] -= 1
    return left_out


def _total(widths: dict[int, int]) -> int:
    return sum(widths.values()) + GAP * max(0, len(widths) - 1)


def _print_row(
    screen: Screen, indent: int, columns: Sequence[TableColumn], widths: dict[int, int], row: Sequence[Styled]
) -> None:
    parts: list[Part] = [" " * indent]
    last = max(widths, default=0)
    for place, width in widths.items():
        cell = row[place]
        content = shortened(cell.text, width, keeps_end=columns[place].is_path)
        padding = " " * (width - width_of(content))
        gap = "" if place == last else " " * GAP
        if columns[place].is_number:
            parts += [padding, Styled(content, cell.style), gap]
        else:
            parts += [Styled(content, cell.style), padding + gap if gap else ""]
    screen.line(*parts)
