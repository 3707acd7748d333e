"""coalesce: merges byte ranges that are close together, so that fewer requests are needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

Range: TypeAlias = tuple[int, int]


class Place(NamedTuple):
    """Where a requested range is in the merged ranges.

    Attributes:
        request: index of the merged range.
        start: where the requested range begins in the merged range, in bytes.
    """

    request: int
    start: int


def coalesce(ranges: Sequence[Range], gap: int, limit: int) -> tuple[list[Range], list[Place]]:
    """Merge byte ranges into fewer, larger ones.

    Args:
        ranges: (offset, length) each, in any order. They may overlap.
        gap: ranges with at most this many bytes between them are merged.
        limit: largest merged range in bytes. A longer range stays as it is.

    Returns:
        (the merged ranges, a place for each requested range). Merged ranges have ascending offsets. Places have the same order
        as ``ranges``.
    """
    merged_ranges: list[Range] = []
    places: list[Place] = [Place(0, 0)] * len(ranges)
    for position in sorted(range(len(ranges)), key=ranges.__getitem__):
        offset, length = ranges[position]
        if merged_ranges:
            start, size = merged_ranges[-1]
            end = max(start + size, offset + length)
            is_contained = end == start + size
            if offset - (start + size) <= gap and (is_contained or end - start <= limit):
                merged_ranges[-1] = (start, end - start)
                places[position] = Place(len(merged_ranges) - 1, offset - start)
                continue
        merged_ranges.append((offset, length))
        places[position] = Place(len(merged_ranges) - 1, 0)
    return merged_ranges, places
