"""Shows objects as text, and as HTML for notebooks: a headline, facts and a small table.

The HTML brings its own style. It takes its colours from the page, which may be light or dark. Every name and value is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

ELLIPSIS = "…"
NULL = "null"
# Longest cell text, in characters.
TEXT_WIDTH = 24
HTML_WIDTH = 64
# Longest text line, in characters.
LINE_WIDTH = 110
LONGEST_FACT = 160      # in characters

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")

_STYLE = """
.fastpq{font-size:13px;line-height:1.45;margin:.3em 0;max-width:100%}
.fastpq .t{font-weight:600}
.fastpq .f{opacity:.72;margin-left:.7em}
.fastpq .s,.fastpq pre{overflow:auto;max-width:100%;scrollbar-width:thin;scrollbar-color:rgba(128,128,128,.6) transparent}
.fastpq table{border-collapse:collapse;margin:.45em 0 .2em;border:0;font-size:12.5px}
.fastpq th,.fastpq td{padding:.18em .8em;text-align:left;white-space:nowrap;border:0;background:none;color:inherit;
vertical-align:top}
.fastpq thead th{border-bottom:1px solid rgba(128,128,128,.55);font-weight:600}
.fastpq thead th span{display:block;font-weight:400;font-size:11px;opacity:.65}
.fastpq tbody tr{background:none;border-bottom:1px solid rgba(128,128,128,.16)}
.fastpq tbody tr:hover{background:rgba(128,128,128,.12)}
.fastpq tbody td{font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:12px}
.fastpq .r{text-align:right;font-variant-numeric:tabular-nums}
.fastpq .p{white-space:normal;min-width:22em}
.fastpq .n{opacity:.45}
.fastpq .b{display:inline-block;width:90px;height:7px;border-radius:4px;background:rgba(128,128,128,.25);vertical-align:middle;
margin-right:.7em;overflow:hidden}
.fastpq .b i{display:block;height:100%;background:#3b82c4;border-radius:4px}
.fastpq .m{opacity:.6;font-size:12px}
.fastpq pre{margin:.45em 0 .2em;padding:.5em .8em;border-left:3px solid rgba(128,128,128,.4);background:rgba(128,128,128,.08);
color:inherit;font-size:12px;line-height:1.4;max-height:40em}
""".replace("\n", "")


# These are plain classes because every ``import fastpq`` makes them, and dataclasses take a hundred times as long.
class Heading:
    """A column heading in a Grid.

    Args:
        name: first line.
        detail: second line, which shows a type.
        is_number: whether values are aligned to the right.
        is_prose: whether values are sentences. They may be long, and HTML wraps them.
    """

    def __init__(self, name: str, detail: str = "", is_number: bool = False, is_prose: bool = False) -> None:
        self.name, self.detail, self.is_number, self.is_prose = name, detail, is_number, is_prose


class Share:
    """A cell that shows a bar before its text.

    Args:
        text: the text, which has the numbers.
        part: bar length, from 0 to 1.
    """

    def __init__(self, text: str, part: float) -> None:
        self.text, self.part = text, part


Cell = str | Share


class Grid:
    """A small table.

    Args:
        headings: column headings.
        rows: the cells in each row.
        note: a line below the table, such as the number of rows that are not shown.
    """

    def __init__(self, headings: Sequence[Heading], rows: Sequence[Sequence[Cell]], note: str = "") -> None:
        self.headings, self.rows, self.note = headings, rows, note


class View:
    """What is shown about one object.

    Args:
        name: the object's class.
        facts: short texts after the name.
        grid: a table below them.
        lines: text lines below the table.
        note: a line at the end.
    """

    def __init__(
        self, name: str, facts: Sequence[str] = (), grid: Grid | None = None, lines: Sequence[str] = (), note: str = ""
    ) -> None:
        self.name, self.facts, self.grid, self.lines, self.note = name, facts, grid, lines, note


def to_text(view: View) -> str:
    """Return a view as a few lines of text."""
    facts = ", ".join(map(_fact, view.facts))
    lines = [f"<{view.name}: {facts}>" if facts else f"<{view.name}>"]
    if view.grid is not None:
        lines += _grid_lines(view.grid)
    lines += [f"  {shorten(line, LINE_WIDTH)}" for line in view.lines]
    if view.note:
        lines.append(f"  {view.note}")
    return "\n".join(lines)


def to_html(view: View) -> str:
    """Return a view as an HTML element with its style."""
    facts = "".join(f'<span class="f">{escape(_fact(fact))}</span>' for fact in view.facts)
    parts = [f'<div class="fastpq"><style>{_STYLE}</style><div><span class="t">{escape(view.name)}</span>{facts}</div>']
    if view.grid is not None:
        parts.append(_grid_html(view.grid))
    if view.lines:
        parts.append(f"<pre>{escape(chr(10).join(shorten(line, 4 * HTML_WIDTH) for line in view.lines))}</pre>")
    if view.note:
        parts.append(f'<div class="m">{escape(view.note)}</div>')
    return "".join([*parts, "</div>"])


def escape(text: str) -> str:
    """Escape a text for HTML."""
    from html import escape as escape_html  # imported late, because its table of entities takes time

    return escape_html(text)


def shorten(text: str, width: int) -> str:
    """Return a text as one line that has at most ``width`` characters. Control characters are escaped as in Python."""
    line = text[: width + 1]
    if not line.isprintable():
        line = "".join(character if character.isprintable() else repr(character)[1:-1] for character in line)
    return line if len(line) <= width else line[: width - 1] + ELLIPSIS


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 row``, ``20,000 rows``, ``2 losses``, ``2 indexes``."""
    plural = "" if number == 1 else "es" if noun.endswith(("s", "x")) else "s"
    return f"{number:,} {noun}{plural}"


def of_bytes(number: int) -> str:
    """Return a size in bytes as a text such as ``12.3 kB``, with three digits. Units are powers of 1000."""
    value = float(number)
    for unit in _UNITS:
        if abs(value) < 999.5 or unit == _UNITS[-1]:
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" or value >= 99.95 else f"{value:.1f} {unit}"


def more(total: int, num_shown: int, noun: str) -> str:
    """Return a note that says how many items are not shown, or an empty text if all are shown."""
    return f"{ELLIPSIS} and {counted(total - num_shown, f'more {noun}')}" if total > num_shown else ""


def _fact(text: str) -> str:
    return shorten(text, LONGEST_FACT)


def _grid_lines(grid: Grid) -> Iterable[str]:
    """Return a grid's text lines, with as many columns side by side as a line can hold."""
    columns: list[list[str]] = []
    line_width = 0
    for number, heading in enumerate(grid.headings):
        most = max(TEXT_WIDTH, LINE_WIDTH - line_width - 2) if heading.is_prose else TEXT_WIDTH
        cells = [heading.name, heading.detail, *(_text_of(row[number]) for row in grid.rows)]
        cells = [shorten(cell, most) for cell in cells]
        width = max(map(len, cells))
        line_width += width + 2
        if columns and line_width > LINE_WIDTH:
            break
        columns.append([cell.rjust(width) if heading.is_number else cell.ljust(width) for cell in cells])
    lines = ["  " + "  ".join(cells).rstrip() for cells in zip_longest(*columns, fillvalue="")]
    if not any(heading.detail for heading in grid.headings):
        del lines[1]
    hidden_names = [heading.name for heading in grid.headings[len(columns) :]]
    if hidden_names:
        lines.append(f"  not shown: {shorten(', '.join(hidden_names[:20]), LINE_WIDTH)}")
    if grid.note:
        lines.append(f"  {grid.note}")
    return lines


def _grid_html(grid: Grid) -> str:
    heads = "".join(
        f'<th{_aligned(heading)}>{escape(shorten(heading.name, HTML_WIDTH))}'
        + (f"<span>{escape(shorten(heading.detail, HTML_WIDTH))}</span>" if heading.detail else "")
        + "</th>"
        for heading in grid.headings
    )
    rows = "".join(
        "<tr>" + "".join(_cell_html(*pair) for pair in zip(grid.headings, row, strict=True)) + "</tr>" for row in grid.rows
    )
    note = f'<div class="m">{escape(grid.note)}</div>' if grid.note else ""
    return f'<div class="s"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>{note}'


def _cell_html(heading: Heading, cell: Cell) -> str:
    text = escape(shorten(_text_of(cell), 6 * HTML_WIDTH if heading.is_prose else HTML_WIDTH))
    if isinstance(cell, Share):
        percent = round(100 * min(max(cell.part, 0.0), 1.0))
        return f'<td><span class="b"><i style="width:{percent}%"></i></span>{text}</td>'
    if cell in (NULL, ELLIPSIS):
        text = f'<span class="n">{text}</span>'
    return f"<td{_aligned(heading)}>{text}</td>"


def _aligned(heading: Heading) -> str:
    return ' class="r"' if heading.is_number else ' class="p"' if heading.is_prose else ""


def _text_of(cell: Cell) -> str:
    return cell.text if isinstance(cell, Share) else cell
