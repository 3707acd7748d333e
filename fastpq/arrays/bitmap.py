"""Validity bitmaps (LSB first, a one is a value) <-> arrays of booleans."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def bitmap_size(count: int) -> int:
    """Bytes of a bitmap of ``count`` bits."""
    return (count + 7) // 8


def unpack_bitmap(bitmap: NDArray[np.uint8], start: int, count: int) -> NDArray[np.bool_]:
    """Bits ``start`` to ``start + count - 1`` as booleans."""
    first = start // 8
    bits = np.unpackbits(bitmap[first : bitmap_size(start + count)], count=start % 8 + count, bitorder="little")
    return bits[start % 8 :].view(np.bool_)


def pack_bitmap(flags: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Booleans as a bitmap; the bits after the last are zero."""
    return np.packbits(flags, bitorder="little")


def slice_bitmap(bitmap: NDArray[np.uint8], start: int, count: int) -> NDArray[np.uint8]:
    """The bitmap of a part: a view where the part starts on a byte, else a copy."""
    if start % 8 == 0:
        return bitmap[start // 8 : bitmap_size(start + count)]
    return pack_bitmap(unpack_bitmap(bitmap, start, count))


def count_zeros(bitmap: NDArray[np.uint8], count: int) -> int:
    """Zeros among the first ``count`` bits."""
    whole = count // 8
    ones = int(np.bitwise_count(bitmap[:whole]).sum(dtype=np.int64))
    if count % 8:
        ones += (int(bitmap[whole]) & ((1 << count % 8) - 1)).bit_count()
    return count - ones
