"""Geospatial statistics of several column chunks as those of all their values together (Geospatial.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce

from fastpq.format import BoundingBox, GeospatialStatistics

Range = tuple[float, float]


def merge_statistics(parts: Iterable[GeospatialStatistics | None]) -> GeospatialStatistics:
    """Box and types that hold for all parts.

    Args:
        parts: statistics of column chunks that hold at least one value; None where a chunk has none.

    Returns:
        A box only where every part has one, with Z and M where every box has them: what a part leaves out may be anything.
        Types likewise; an empty list says that they are not known.
    """
    known = list(parts)
    boxes = [None if part is None else part.bbox for part in known]
    types = [None if part is None else part.geospatial_types for part in known]
    return GeospatialStatistics(
        bbox=reduce(_union, boxes) if boxes else None,
        geospatial_types=sorted({code for codes in types for code in codes or ()}) if all(types) else [],
    )


def _union(a: BoundingBox | None, b: BoundingBox | None) -> BoundingBox | None:
    if a is None or b is None:
        return None
    x = _union_x((a.xmin, a.xmax), (b.xmin, b.xmax))
    y = _hull((a.ymin, a.ymax), (b.ymin, b.ymax))
    if x is None or y is None:
        return None
    z, m = _hull((a.zmin, a.zmax), (b.zmin, b.zmax)), _hull((a.mmin, a.mmax), (b.mmin, b.mmax))
    box = BoundingBox(xmin=x[0], xmax=x[1], ymin=y[0], ymax=y[1])
    if z is not None:
        box.zmin, box.zmax = z
    if m is not None:
        box.mmin, box.mmax = m
    return box


def _hull(a: tuple[float | None, float | None], b: tuple[float | None, float | None]) -> Range | None:
    """The range that holds both; None where a bound is missing or is not a number."""
    bounds = [bound for bound in (*a, *b) if bound is not None and not math.isnan(bound)]
    return (min(bounds), max(bounds)) if len(bounds) == 4 else None


def _union_x(a: Range, b: Range) -> Range | None:
    """The same for X, where xmin above xmax is everything from xmin on and everything up to xmax; None for all there is."""
    if any(math.isnan(bound) for bound in (*a, *b)):
        return None
    if a[0] <= a[1] and b[0] <= b[1]:
        return _hull(a, b)
    if a[0] <= a[1]:
        a, b = b, a
    low, high = a               # a wraps around
    if b[0] > b[1]:
        low, high = min(low, b[0]), max(high, b[1])
    elif b[0] < low and b[1] > high:    # not inside a: what is nearer grows
        low, high = (b[0], high) if low - b[0] <= b[1] - high else (low, b[1])
    return (low, high) if low > high else None
