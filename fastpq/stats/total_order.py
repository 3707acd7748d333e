"""Floating-point values in IEEE 754 total order (parquet.thrift, ``IEEE_754_TOTAL_ORDER``).

-NaN < -infinity < numbers < -0.0 < +0.0 < numbers < infinity < +NaN. Bounds ignore NaNs, unless all values are NaNs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

# The bits of infinity, by the size of a value in bytes.
_INFINITY = {2: 0x7C00, 4: 0x7F80_0000, 8: 0x7FF0_0000_0000_0000}


def total_key(bound: bytes) -> int:
    """An integer for a little-endian float of 2, 4 or 8 bytes; integers compare in the total order of their floats."""
    magnitude = int.from_bytes(bound, "little") & ~(1 << (8 * len(bound) - 1))
    return ~magnitude if bound[-1] & 0x80 else magnitude


def is_nan(bound: bytes) -> bool:
    """Whether a float of 2, 4 or 8 bytes is a NaN."""
    magnitude = int.from_bytes(bound, "little") & ~(1 << (8 * len(bound) - 1))
    return magnitude > _INFINITY[len(bound)]


def total_extreme(bounds: Sequence[bytes | None], sign: int) -> bytes | None:
    """The smallest (sign -1) or largest (1) of bounds; NaNs and None are ignored, but NaNs alone give a NaN, None alone None."""
    known = [bound for bound in bounds if bound is not None]
    numbers = [bound for bound in known if not is_nan(bound)]
    return max(numbers or known, key=lambda bound: sign * total_key(bound), default=None)


def total_keys_are_monotonic(bounds: Sequence[bytes], sign: int) -> bool:
    """Whether bounds ascend (sign 1) or descend (-1), equal ones allowed."""
    keys = [sign * total_key(bound) for bound in bounds]
    return all(one <= other for one, other in pairwise(keys))
