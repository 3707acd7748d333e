"""The staircase: for each page or row group a bar from its smallest to its largest value, in file order from top to bottom."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fastpq.common.display import counted
from fastpq.picture.chunk_drawing import LABELS_WIDTH, LONGEST_LABEL, SIZES_WIDTH
from fastpq.picture.filter_pruning import FilterPruning
from fastpq.picture.page_bars import ColumnBars
from fastpq.picture.shapes import label, percent, rectangle

MOST_BARS = 80      # of a column. More are merged with their neighbours.
BAR_HEIGHT, LEAST_HEIGHT, MOST_HEIGHT = 5.0, 30.0, 130.0
THINNEST = 1.5      # width of a bar, so that a single value is seen
# Share of pages for a random value, from which bounds count as useless.
USELESS, MANY_BARS = 0.8, 4


def bar_drawing(columns: list[ColumnBars], pruning: FilterPruning | None, top: float, width: float) -> tuple[str, float]:
    """Return the bars of some columns, and the place below them.

    Args:
        columns: the columns.
        pruning: what a filter reads, or None.
        top: where the drawing begins.
        width: width of the drawing.
    """
    heading = "Bounds in file order, from top to bottom. Sorted values are a staircase. Useless bounds have full width."
    parts = [label(0, top + 11, heading, "h")]
    top += 24
    if not columns:
        parts.append(label(0, top + 8, "No column has bounds: no filter can leave out anything by statistics.", "m"))
        return "".join(parts), top + 16
    for each in columns:
        markup, top = _column(each, pruning, top, width)
        parts.append(markup)
    return "".join(parts), top


def _column(bars: ColumnBars, pruning: FilterPruning | None, top: float, width: float) -> tuple[str, float]:
    count = len(bars.lows)
    height = min(MOST_HEIGHT, max(LEAST_HEIGHT, BAR_HEIGHT * count))
    axis_width = width - LABELS_WIDTH - SIZES_WIDTH
    parts = [
        rectangle(LABELS_WIDTH, top, axis_width, height, "f"),
        label(0, top + 11, bars.column.name, "", LONGEST_LABEL),
        label(0, top + 25, counted(count, bars.unit), "m"),
    ]
    share = bars.share_for_value
    is_useless = share >= USELESS and count >= MANY_BARS
    parts.append(label(width, top + 11, f"{percent(share, 1)} of {bars.unit}s", "w e" if is_useless else "m e"))
    parts.append(label(width, top + 25, "for a random value", "w e" if is_useless else "m e"))
    parts += _bars(bars, pruning, top, height, axis_width)
    below = top + height + 12
    axis = " (in order, not to scale)" if bars.is_ranked and count > 1 else ""
    parts.append(label(LABELS_WIDTH, below, bars.first + axis, "m"))
    parts.append(label(LABELS_WIDTH + axis_width, below, bars.last, "m e"))
    if bars.without_bounds:
        parts.append(label(0, top + 39, f"{bars.without_bounds:,} row groups without", "w"))
    return "".join(parts), below + 14


def _bars(bars: ColumnBars, pruning: FilterPruning | None, top: float, height: float, axis_width: float) -> Iterator[str]:
    count = len(bars.lows)
    edges = np.linspace(0, count, min(count, MOST_BARS) + 1).astype(np.int64)
    step = height / (len(edges) - 1)
    for place, (first, last) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
        low, high = float(bars.lows[first:last].min()), float(bars.highs[first:last].max())
        is_read = bool(bars.is_read[first:last].any())
        x = LABELS_WIDTH + min(low * axis_width, axis_width - THINNEST)
        bar_width = max(THINNEST, (high - low) * axis_width)
        css_class = "q1" if pruning is None else "q2" if is_read else "q0"
        lines = [f"{bars.unit} {first:,}" if last - first == 1 else f"{bars.unit}s {first:,} to {last - 1:,}"]
        groups = bars.groups[first:last]
        if bars.unit == "page":
            own_groups = f"{groups[0]:,}" if groups[0] == groups[-1] else f"{groups[0]:,} to {groups[-1]:,}"
            lines.append(f"row group {own_groups}, {bars.rows[first:last].sum():,} rows")
        else:
            lines.append(f"{bars.rows[first:last].sum():,} rows")
        lines.append(f"from {percent(low, 1)} to {percent(high, 1)} of the axis")
        if pruning is not None:
            group = int(groups[0])
            reason = pruning.reasons[group] or "left out by the column index"
            lines.append("read" if is_read else f"not read: {reason}")
        yield rectangle(x, top + place * step, bar_width, max(0.6, step - min(1.0, step / 4)), f"{css_class} k", lines)
