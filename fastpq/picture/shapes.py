"""Shapes of SVG as text. Every text from a file is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastpq.common.display import escape, shorten
from fastpq.picture.colours import Swatch

LONGEST_LINE = 200      # characters of a line in a title
CHARACTER_WIDTH = 6.1   # of the font of labels, on average


def safe(text: str, most: int = LONGEST_LINE) -> str:
    """Return a text as one escaped line of at most ``most`` characters. Control characters are shown as in Python."""
    return escape(shorten(text, most))


def percent(part: float, whole: float) -> str:
    """Return a share as a short text such as ``12 %`` or ``0.4 %``."""
    share = 100 * part / whole if whole else 0.0
    return f"{share:.0f} %" if share >= 9.95 or share == 0 else f"{share:.1f} %" if share >= 0.1 else "under 0.1 %"


def title(lines: Iterable[str]) -> str:
    """Return the title of a shape, which browsers show beside the pointer and screen readers read."""
    return f"<title>{chr(10).join(map(safe, lines))}</title>"


def coordinate(value: float) -> str:
    """Return a coordinate with at most two digits after the point."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def rectangle(x: float, y: float, width: float, height: float, css_class: str, lines: Sequence[str] = ()) -> str:
    """Return a rectangle.

    Args:
        x, y, width, height: its place.
        css_class: classes, with spaces between them.
        lines: the title, or nothing.
    """
    places = f'x="{coordinate(x)}" y="{coordinate(y)}" width="{coordinate(width)}" height="{coordinate(height)}"'
    return f'<rect class="{css_class}" {places}>{title(lines)}</rect>' if lines else f'<rect class="{css_class}" {places}/>'


def outline(x: float, y: float, width: float, height: float) -> str:
    """Return a rectangle as a part of a path."""
    return f"M{coordinate(x)} {coordinate(y)}h{coordinate(width)}v{coordinate(height)}h-{coordinate(width)}z"


def label(x: float, y: float, text: str, css_class: str = "", most: int = LONGEST_LINE) -> str:
    """Return a text. Its baseline is at ``y``."""
    classes = f' class="{css_class}"' if css_class else ""
    return f'<text{classes} x="{coordinate(x)}" y="{coordinate(y)}">{safe(text, most)}</text>'


def legend(entries: Iterable[tuple[Swatch, str]], top: float, width: float) -> tuple[str, float]:
    """Return swatches with their texts, in as many lines as they need, and the place below them.

    Args:
        entries: each swatch with its text.
        top: place of the first line.
        width: width of a line.
    """
    parts, x = [], 0.0
    for swatch, text in entries:
        own_width = 18 + CHARACTER_WIDTH * len(text) + 14
        if x and x + own_width > width:
            x, top = 0.0, top + 18
        parts.append(rectangle(x, top, 11, 11, swatch.name))
        parts.append(label(x + 16, top + 9.5, text, "m"))
        x += own_width
    return "".join(parts), top + (18 if parts else 0)
