"""Byte ranges close together, merged into fewer requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

Range: TypeAlias = tuple[int, int]


class Place(NamedTuple):
    """Place of a requested range in the merged ranges: index of the merged range, and first byte inside."""

    request: int
    start: int


def coalesce(ranges: Sequence[Range], gap: int, limit: int) -> tuple[list[Range], list[Place]]:
    """Merge byte ranges into fewer, larger ones.

    Args:
        ranges: (offset, length) each, in any order; they may overlap.
        gap: most bytes between two ranges to merge.
        limit: most bytes of a merged range; a range beyond the limit stays as given.

    Returns:
        The merged ranges by ascending offset, and the place of each given range, in the given order.
    """
    merged: list[Range] = []
    places: list[Place] = [Place(0, 0)] * len(ranges)
    for position in sorted(range(len(ranges)), key=ranges.__getitem__):
        offset, length = ranges[position]
        if merged:
            start, size = merged[-1]
            end = max(start + size, offset + length)
            contained = end == start + size
            if offset - (start + size) <= gap and (contained or end - start <= limit):
                merged[-1] = (start, end - start)
                places[position] = Place(len(merged) - 1, offset - start)
                continue
        merged.append((offset, length))
        places[position] = Place(len(merged) - 1, 0)
    return merged, places
