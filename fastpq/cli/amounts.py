"""Numbers as a person reads them: bytes with units, counts with separators, shares in percent, durations."""

from __future__ import annotations

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def size_text(size: int) -> str:
    """Return a size with a decimal unit, for example ``1.25 MB``. Bytes stay whole."""
    if abs(size) < 1000:
        return f"{size} B"
    value, unit = float(size), 0
    while abs(value) >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{digits}f} {_UNITS[unit]}"


def exact_size_text(size: int) -> str:
    """Return a size with a unit, and all bytes behind it if the unit rounds."""
    return size_text(size) if abs(size) < 1000 else f"{size_text(size)} ({size:,} bytes)"


def count_text(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, for example ``1 row`` and ``1,200 rows``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def share_text(part: float, whole: float) -> str:
    """Return a share in percent. Small shares stay visible."""
    if not whole:
        return ""
    share = 100 * part / whole
    return f"{share:.0f} %" if share >= 9.95 or share == 0 else f"{share:.1f} %" if share >= 0.05 else "<0.1 %"


def ratio_text(one: float, other: float) -> str:
    """Return how many times ``one`` is ``other``, for example ``3.2x``."""
    return f"{one / other:.1f}x" if other else ""


def seconds_text(seconds: float) -> str:
    """Return a duration with a unit."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"
