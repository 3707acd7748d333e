"""Conversion between validity bitmaps and boolean arrays. A bitmap is LSB first, and a one means that there is a value."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def bitmap_size(count: int) -> int:
    """Return the size in bytes that a bitmap with ``count`` bits has."""
    return (count + 7) // 8


def unpack_bitmap(bitmap: NDArray[np.uint8], start: int, count: int) -> NDArray[np.bool_]:
    """Return bits ``start`` to ``start + count - 1`` as booleans."""
    first = start // 8
    bits = np.unpackbits(bitmap[first : bitmap_size(start + count)], count=start % 8 + count, bitorder="little")
    return bits[start % 8 :].view(np.bool_)


def pack_bitmap(flags: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return booleans as a bitmap. The bits after the last boolean are zero."""
    return np.packbits(flags, bitorder="little")


def validity_of(is_valid: NDArray[np.bool_]) -> tuple[NDArray[np.uint8] | None, int]:
    """Return a column's validity bitmap (None without nulls) and its null count, from a flag for each value."""
    null_count = len(is_valid) - int(np.count_nonzero(is_valid))
    return (pack_bitmap(is_valid) if null_count else None), null_count


def slice_bitmap(bitmap: NDArray[np.uint8], start: int, count: int) -> NDArray[np.uint8]:
    """Return a part of a bitmap. It is a view if the part starts on a byte boundary, else a copy."""
    if start % 8 == 0:
        return bitmap[start // 8 : bitmap_size(start + count)]
    return pack_bitmap(unpack_bitmap(bitmap, start, count))


def count_zeros(bitmap: NDArray[np.uint8], count: int) -> int:
    """Return how many of the first ``count`` bits are zero."""
    whole = count // 8
    ones = int(np.bitwise_count(bitmap[:whole]).sum(dtype=np.int64))
    if count % 8:
        ones += (int(bitmap[whole]) & ((1 << count % 8) - 1)).bit_count()
    return count - ones
