"""ranges_without: what is left of a data file without its deleted rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def ranges_without(positions: NDArray[np.int64], num_rows: int) -> list[tuple[int, int]]:
    """Return the ranges of rows that stay, in ascending order.

    Args:
        positions: the deleted rows, in ascending order and without repeats. Positions after the last row are ignored.
        num_rows: how many rows the file has.
    """
    inside = positions[positions < num_rows]
    starts, stops = np.append(0, inside + 1), np.append(inside, num_rows)
    is_range = starts < stops
    return list(zip(starts[is_range].tolist(), stops[is_range].tolist(), strict=True))
