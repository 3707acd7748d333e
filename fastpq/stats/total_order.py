"""Compares floating-point bounds in IEEE 754 total order (parquet.thrift, ``IEEE_754_TOTAL_ORDER``).

-NaN < -infinity < numbers < -0.0 < +0.0 < numbers < infinity < +NaN. Bounds ignore NaNs, unless all values are NaNs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

# The bits that infinity has, by the bytes per value.
_INFINITY = {2: 0x7C00, 4: 0x7F80_0000, 8: 0x7FF0_0000_0000_0000}


def total_key(bound: bytes) -> int:
    """Return an integer for a little-endian float with 2, 4 or 8 bytes. Integers compare as the floats do in total order."""
    magnitude = int.from_bytes(bound, "little") & ~(1 << (8 * len(bound) - 1))
    return ~magnitude if bound[-1] & 0x80 else magnitude


def is_nan(bound: bytes) -> bool:
    """Return whether a float with 2, 4 or 8 bytes is a NaN."""
    magnitude = int.from_bytes(bound, "little") & ~(1 << (8 * len(bound) - 1))
    return magnitude > _INFINITY[len(bound)]


def is_largest_finite(bound: bytes, sign: int) -> bool:
    """Return whether a float with 2, 4 or 8 bytes is the largest finite number (sign 1), or its negative (-1)."""
    magnitude = int.from_bytes(bound, "little") & ~(1 << (8 * len(bound) - 1))
    return magnitude == _INFINITY.get(len(bound), 0) - 1 and (bound[-1] & 0x80 != 0) is (sign < 0)


def total_extreme(bounds: Sequence[bytes | None], sign: int) -> bytes | None:
    """Return the smallest (sign -1) or largest (1) bound. NaN counts only if there is nothing else. None never counts."""
    known_bounds = [bound for bound in bounds if bound is not None]
    numbers = [bound for bound in known_bounds if not is_nan(bound)]
    return max(numbers or known_bounds, key=lambda bound: sign * total_key(bound), default=None)


def total_keys_are_monotonic(bounds: Sequence[bytes], sign: int) -> bool:
    """Return whether bounds ascend (sign 1) or descend (-1). Equal bounds are allowed."""
    keys = [sign * total_key(bound) for bound in bounds]
    return all(one <= other for one, other in pairwise(keys))
