"""PNG images from SVG drawings, made by the package resvg-py."""

from __future__ import annotations

from functools import cache
from typing import Any

from fastpq.common.lazy import package
from fastpq.errors import UnsupportedError

_FAMILIES = ("DejaVu Sans", "Liberation Sans", "Noto Sans", "Helvetica", "Arial")
_TEXT = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20"><text y="15" font-family="sans-serif">{}</text></svg>'


def png_of(svg: str, width: int, purpose: str) -> bytes:
    """Return a drawing as a PNG image on a white page.

    Args:
        svg: the drawing.
        width: the image's width in pixels.
        purpose: what needs the image, for errors.

    Raises:
        UnsupportedError: resvg-py is not installed, or the machine has no font for the drawing's text.
        ValueError: the width is not positive.
    """
    if width < 1:
        raise ValueError(f"the width of an image must be positive, not {width}")
    resvg = package("resvg_py", purpose, "resvg-py")
    font = _font(resvg)
    if font is None:
        raise UnsupportedError(f"{purpose} needs a font, and this machine has none (Debian: apt-get install fonts-dejavu-core)")
    image: bytes = resvg.svg_to_bytes(svg_string=svg, background="#ffffff", width=width, **font)
    return image


@cache
def _font(resvg: Any) -> dict[str, str] | None:
    """Return resvg's options for a font that draws text, or None without a font. Then resvg leaves text out.

    resvg asks fontconfig what sans-serif means. On a machine whose fontconfig cannot tell, the families are tried by name.
    """
    empty = resvg.svg_to_bytes(svg_string=_TEXT.format(""))
    choices: list[dict[str, str]] = [{}, *({"sans_serif_family": family} for family in _FAMILIES)]
    return next((font for font in choices if resvg.svg_to_bytes(svg_string=_TEXT.format("x"), **font) != empty), None)
