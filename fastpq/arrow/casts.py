"""Conversion of values to other units or widths, between Arrow and columns. Values under nulls must be zero."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays import memory
from fastpq.arrow import loops
from fastpq.errors import SchemaError

_MILLISECONDS_PER_DAY = 86_400_000


def seconds_to_milliseconds(values: NDArray[Any]) -> NDArray[Any]:
    """Convert times or timestamps (int32 or int64) from seconds to milliseconds of the same dtype.

    Raises:
        SchemaError: a value overflows.
    """
    bounds = np.iinfo(values.dtype)
    low, high = -(-bounds.min // 1000), bounds.max // 1000
    if values.min(initial=0) < low or values.max(initial=0) > high:
        row = int(np.argmax((values < low) | (values > high)))
        raise SchemaError(f"{values[row]} seconds in row {row} are too many for {values.dtype} milliseconds").showing(values[row])
    milliseconds: NDArray[Any] = values * values.dtype.type(1000)
    return milliseconds


def milliseconds_to_days(values: NDArray[np.int64]) -> NDArray[np.int32]:
    """Convert dates from milliseconds to days since 1970-01-01.

    Raises:
        SchemaError: a value is not a whole number of days, or int32 cannot hold its days.
    """
    days, rest = np.divmod(values, _MILLISECONDS_PER_DAY)
    narrow = days.astype(np.int32)
    is_wrong = (rest != 0) | (narrow != days)
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        message = f"the date of {values[row]} milliseconds in row {row} is not a whole number of int32 days"
        raise SchemaError(message).showing(values[row])
    return narrow


def narrow_decimals(values: NDArray[np.void]) -> NDArray[np.void]:
    """Convert 32-byte little-endian integers to 16 bytes.

    Raises:
        SchemaError: a value does not fit 16 bytes.
    """
    out = np.empty(len(values), dtype="V16")
    row = loops.narrow_into(values.view(np.uint8), out.view(np.uint8))
    if row >= 0:
        raise SchemaError(f"the decimal in row {row} does not fit into 128 bits")
    return out


def widen_decimals(values: NDArray[Any]) -> NDArray[np.void]:
    """Convert int32 or int64 values to 16-byte little-endian integers."""
    out = memory.empty(16 * len(values)).view("V16")
    loops.widen_into(values, out.view(np.uint8))
    return out
