"""Plots of the job file-size, as SVG for docs/pages/performance.md: size against time to write, and size against time to read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Literal, NamedTuple, TypeAlias

Measure: TypeAlias = Literal["write", "read"]

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 680, 420, 64, 16, 44, 48      # units of the drawing
LEAST = 0.95                # ratio at the left and lower edge
# Ratios with a line. The last one is at the edge, and so are all larger ones.
SIZE_TICKS, TIME_TICKS = (1.0, 1.2, 1.4, 1.7, 2.0), (1.0, 1.4, 2.0, 2.8, 4.0)
# Fill of each writer's marks on a light and on a dark page, and their shape. Shapes tell them apart without colours.
MARKS = (("#1f5fa8", "#a9d0f7", "circle"), ("#b3470c", "#f0883e", "square"), ("#2f8f6c", "#4cc49c", "triangle"),
         ("#84587a", "#d39ac0", "diamond"), ("#57606a", "#c3ccd5", "cross"), ("#8f702c", "#ecd08a", "bar"))


class SizePoint(NamedTuple):
    """One file.

    Attributes:
        table, writer: names.
        megabytes: its size.
        write, read: processor seconds.
    """

    table: str
    writer: str
    megabytes: float
    write: float
    read: float


def points_of_table(markdown: str) -> list[SizePoint]:
    """Return the files of the table in Markdown that report.size_markdown writes. Empty without a table."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in markdown.splitlines() if line.startswith("|")]
    if len(rows) < 3:
        return []
    writers = rows[0][1:-1]
    points = []
    for table, *cells in rows[2:]:
        for writer, cell in zip(writers, cells, strict=False):
            size, write, read = (float(part.split()[0]) for part in cell.split("<br>"))
            points.append(SizePoint(table, writer, size, write, read))
    return points


def size_plot(points: Sequence[SizePoint], measure: Measure) -> str:
    """Return a plot with a mark for each file: its size and time, over the smallest size and the shortest time of its table.

    A large mark is the mean of a writer. Files further to the left are smaller, and those further down are quicker.
    """
    text = f"Size of files against the time to {measure} them, for {len({point.table for point in points})} tables"
    body = "\n".join(_shapes(points, measure))
    light = "".join(f".w{number}{{fill:{mark[0]}}}" for number, mark in enumerate(MARKS))
    dark = "".join(f".w{number}{{fill:{mark[1]}}}" for number, mark in enumerate(MARKS))
    style = (
        "text{fill:#1f2328;font:11px system-ui,-apple-system,'Segoe UI',sans-serif}.m{fill:#59636e}.e{text-anchor:end}"
        f".c{{text-anchor:middle}}path.g{{stroke:#d0d7de;fill:none}}path.z{{stroke:#8c959f;fill:none}}.s{{opacity:.4}}{light}"
        "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.m{fill:#9198a1}path.g{stroke:#3d444d}path.z{stroke:#9198a1}"
        f"{dark}}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(text)}">\n'
        f"<style>{style}</style>\n{body}\n</svg>\n"
    )


def _shapes(points: Sequence[SizePoint], measure: Measure) -> Iterator[str]:
    for size, time in zip(SIZE_TICKS, TIME_TICKS, strict=True):
        line = "z" if size == 1 else "g"
        yield f'<path class="{line}" d="M{_x(size)} {TOP}V{HEIGHT - BOTTOM}M{LEFT} {_y(time)}H{WIDTH - RIGHT}"/>'
        yield f'<text class="m c" x="{_x(size)}" y="{HEIGHT - BOTTOM + 16}">{size:g}×</text>'
        yield f'<text class="m e" x="{LEFT - 8}" y="{_y(time) + 4}">{time:g}×</text>'
    yield f'<text class="m c" x="{(LEFT + WIDTH - RIGHT) // 2}" y="{HEIGHT - 12}">size over the smallest file of the table</text>'
    middle = (TOP + HEIGHT - BOTTOM) // 2
    label = f"time to {measure} over the shortest"
    yield f'<text class="m c" x="14" y="{middle}" transform="rotate(-90 14 {middle})">{label}</text>'
    writers = list(dict.fromkeys(point.writer for point in points))
    smallest, shortest = _least(points, "megabytes"), _least(points, measure)
    place = LEFT
    for number, writer in enumerate(writers):
        own = [point for point in points if point.writer == writer]
        ratios = [(point.megabytes / smallest[point.table], getattr(point, measure) / shortest[point.table]) for point in own]
        yield _mark(number, place + 6, 20, 6) + f'<text x="{place + 18}" y="24">{escape(writer)}</text>'
        place += 34 + 7 * len(writer)
        for point, (size, seconds) in zip(own, ratios, strict=True):
            title = f"{point.table}, {writer}: {point.megabytes:g} MB, {getattr(point, measure):g} s"
            yield f'<g class="s"><title>{escape(title)}</title>{_mark(number, _x(size), _y(seconds), 4)}</g>'
        means = [math.exp(sum(math.log(pair[axis]) for pair in ratios) / len(ratios)) for axis in (0, 1)]
        title = f"{writer}, mean: {means[0]:.2f} times the smallest size, {means[1]:.2f} times the shortest time"
        yield f"<g><title>{escape(title)}</title>{_mark(number, _x(means[0]), _y(means[1]), 8)}</g>"


def _least(points: Sequence[SizePoint], name: str) -> dict[str, float]:
    """Return the smallest value of each table. Times of a millisecond or less count as one."""
    least: dict[str, float] = {}
    for point in points:
        least[point.table] = min(least.get(point.table, math.inf), max(getattr(point, name), 0.001))
    return least


def _mark(number: int, x: int, y: int, size: int) -> str:
    css_class = f"w{number % len(MARKS)}"
    paths = {
        "square": f"M{x - size} {y - size}h{2 * size}v{2 * size}h-{2 * size}z",
        "triangle": f"M{x} {y - size}l{size} {2 * size}h-{2 * size}z",
        "diamond": f"M{x} {y - size}l{size} {size}l-{size} {size}l-{size} -{size}z",
        "cross": f"M{x - size} {y - 2}h{2 * size}v4h-{2 * size}zM{x - 2} {y - size}h4v{2 * size}h-4z",
        "bar": f"M{x - size} {y - 2}h{2 * size}v4h-{2 * size}z",
    }
    shape = MARKS[number % len(MARKS)][2]
    if shape == "circle":
        return f'<circle class="{css_class}" cx="{x}" cy="{y}" r="{size}"/>'
    return f'<path class="{css_class}" d="{paths[shape]}"/>'


def _x(ratio: float) -> int:
    return LEFT + round((WIDTH - LEFT - RIGHT) * _part(ratio, SIZE_TICKS[-1]))


def _y(ratio: float) -> int:
    return HEIGHT - BOTTOM - round((HEIGHT - TOP - BOTTOM) * _part(ratio, TIME_TICKS[-1]))


def _part(ratio: float, most: float) -> float:
    """Return where a ratio stands between the edges, on a scale of logarithms."""
    return math.log(min(max(ratio, LEAST), most) / LEAST) / math.log(most / LEAST)
