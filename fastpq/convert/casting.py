"""Casts from NumPy numbers, dates and times to the storage for a column type. A cast is exact, or raises SchemaError."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.layouts import Array, BinaryOffsets
from fastpq.arrays.numpy_output import UNITS_A_DAY
from fastpq.errors import SchemaError
from fastpq.schema.types import (
    ColumnType,
    Date,
    Decimal,
    Float16,
    Integer,
    Interval,
    Time,
    Timestamp,
    Type,
    Uuid,
    column_type,
    max_precision,
)

# Stored unit for each datetime64 unit. A value that is not a whole number of the stored unit is refused.
DATETIME_UNITS = {
    "Y": "D", "M": "D", "W": "D", "D": "D", "h": "ms", "m": "ms", "s": "ms", "ms": "ms", "us": "us", "ns": "ns",
    "ps": "ns", "fs": "ns", "as": "ns",
}
# Stored unit for durations, for each timedelta64 unit. Years and months are missing, because they have no fixed length.
DURATION_UNITS = {
    "W": "s", "D": "s", "h": "s", "m": "s", "s": "s", "ms": "ms", "us": "us", "ns": "ns", "ps": "ns", "fs": "ns", "as": "ns",
}
_DURATION = ColumnType(Type.INT64)      # the type for durations; the column's Arrow field holds their unit
# Largest magnitude up to which a float holds every integer exactly, by the float's bytes.
_EXACT_INTEGERS = {2: 1 << 11, 4: 1 << 24, 8: 1 << 53}


def integer_type(dtype: np.dtype[Any]) -> ColumnType:
    """Return the column type for an integer dtype."""
    width, signed = 8 * dtype.itemsize, dtype.kind == "i"
    physical = Type.INT64 if width == 64 else Type.INT32
    if signed and width >= 32:
        return column_type(physical, None, None)
    return column_type(physical, None, Integer(width, signed))  # type: ignore[arg-type]  # NumPy has the same four widths


def decimal_type(precision: int, scale: int) -> ColumnType:
    """Return the narrowest type for decimals: INT32, INT64 or FIXED_LEN_BYTE_ARRAY."""
    logical = Decimal(precision, scale)
    if precision <= 9:
        return ColumnType(Type.INT32, None, logical)
    if precision <= 18:
        return ColumnType(Type.INT64, None, logical)
    length = next(n for n in range(9, 65) if (max_precision(Type.FIXED_LEN_BYTE_ARRAY, n) or 0) >= precision)
    return ColumnType(Type.FIXED_LEN_BYTE_ARRAY, length, logical)


def infer_numeric(dtype: np.dtype[Any], name: str) -> ColumnType:
    """Return the column type for a boolean, integer, float, datetime64 or timedelta64 dtype."""
    match dtype.kind:
        case "b":
            return ColumnType(Type.BOOLEAN)
        case "i" | "u":
            return integer_type(dtype)
        case "f" if dtype.itemsize == 2:
            return ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 2, Float16())
        case "f" if dtype.itemsize in (4, 8):
            return ColumnType(Type.FLOAT if dtype.itemsize == 4 else Type.DOUBLE)
        case "M" if _unit(dtype) in DATETIME_UNITS:
            unit = DATETIME_UNITS[_unit(dtype)]
            return ColumnType(Type.INT32, None, Date()) if unit == "D" else timestamp_type(unit)
        case "m" if _unit(dtype) in DURATION_UNITS:
            return _DURATION
    advice = ': give array.astype("f8")' if dtype.kind == "f" else ""
    raise SchemaError(f"no Parquet type holds the dtype {dtype}{advice}", column=name or None)


def timestamp_type(unit: Any, utc: bool = False) -> ColumnType:
    """Return the TIMESTAMP type with a unit."""
    return ColumnType(Type.INT64, None, Timestamp(unit, utc))


def time_type(unit: Any) -> ColumnType:
    """Return the TIME type with a unit, not adjusted to UTC."""
    return ColumnType(Type.INT32 if unit == "ms" else Type.INT64, None, Time(unit))


def duration_unit(dtype: np.dtype[Any] | None, type_: ColumnType) -> str | None:
    """Return the unit in which timedelta64 values are stored in a duration column, or None for any other dtype or column."""
    return DURATION_UNITS[_unit(dtype)] if dtype is not None and dtype.kind == "m" and type_ == _DURATION else None


def _unit(dtype: np.dtype[Any]) -> str:
    return np.datetime_data(dtype)[0]


def cast_numeric(array: Array, type_: ColumnType, name: str) -> Array:
    """Cast booleans, integers, floats, datetime64 and timedelta64 to the storage for a column type.

    NaT becomes 0, and numbers keep their value. An integer in a date, time or timestamp column is the raw count, and in a decimal
    column the value. Floats may be rounded to narrower floats, but not to infinity.

    Args:
        array: one-dimensional, in native byte order.
        type_: a fixed-width type.
        name: column name, for errors.

    Returns:
        Array with the shape and order of the input and the dtype ``type_.dtype``. It is the input or a view if nothing changes.

    Raises:
        SchemaError: a value or a dtype that does not fit the type.
    """
    if array.dtype.kind == "M":
        return _cast_datetime(array, type_, name)
    if array.dtype.kind == "m":
        return _cast_timedelta(array, type_, name)
    if isinstance(type_.logical, Decimal):
        if array.dtype.kind not in "iu":
            raise _misfit(array, type_, name)
        factor = 10**type_.logical.scale
        return pack_decimals([value * factor for value in array.tolist()], type_, name)
    dtype = type_.dtype
    if dtype is None or dtype.kind == "V" or (dtype.kind == "b") != (array.dtype.kind == "b"):
        raise _misfit(array, type_, name)
    if array.dtype == dtype:
        cast = array
    else:
        cast = _to_float(array, dtype, type_, name) if dtype.kind == "f" else _to_integer(array, dtype, type_, name)
    if isinstance(type_.logical, Time):
        _check_range(cast, 0, UNITS_A_DAY[type_.logical.unit] - 1, type_, name)
    return cast


def _misfit(array: Array, type_: ColumnType, name: str) -> SchemaError:
    is_rounded = array.dtype.kind == "f" and isinstance(type_.logical, Decimal)
    advice = ": floats are rarely exact, so give [Decimal(str(value)) for value in values]" if is_rounded else ""
    return SchemaError(f"values of dtype {array.dtype} do not fit a column of {type_}{advice}", column=name or None)


def refuse(bad: Array, array: Array, type_: ColumnType, name: str) -> None:
    """Raise SchemaError for the first value that is marked in ``bad``, an array with a flag for each value."""
    if bad.any():
        i = int(np.argmax(bad))
        raise SchemaError(f"value {i}, {array[i]!s}, does not fit a column of {type_}", column=name or None).showing(array[i])


def _check_range(array: Array, first: int, last: int, type_: ColumnType, name: str) -> None:
    """Refuse values below first or above last. A bound that the dtype cannot hold refuses nothing."""
    if len(array) == 0:
        return
    if int(array.min()) < first or int(array.max()) > last:
        info = np.iinfo(array.dtype)
        refuse((array < max(first, int(info.min))) | (array > min(last, int(info.max))), array, type_, name)


def _to_integer(array: Array, dtype: np.dtype[Any], type_: ColumnType, name: str) -> Array:
    info = np.iinfo(dtype)
    if array.dtype.kind == "f":
        # both bounds are powers of two, so they are exact as floats, and NaN fails every comparison
        inside = (array >= float(info.min)) & (array < float(int(info.max) + 1)) & (array == np.trunc(array))
        refuse(~inside, array, type_, name)
    else:
        _check_range(array, int(info.min), int(info.max), type_, name)
    return array.astype(dtype)


def _to_float(array: Array, dtype: np.dtype[Any], type_: ColumnType, name: str) -> Array:
    if array.dtype.kind != "f":
        bound = _EXACT_INTEGERS[dtype.itemsize]
        _check_range(array, -bound, bound, type_, name)
        return array.astype(dtype)
    with np.errstate(over="ignore", under="ignore"):
        cast = array.astype(dtype, copy=False)
    if dtype.itemsize < array.dtype.itemsize:
        refuse(np.isinf(cast) & ~np.isinf(array), array, type_, name)
    return cast


def change_unit(array: Array, unit: str, type_: ColumnType, name: str) -> Array:
    """Return counts in another unit, and 0 for NaT.

    Raises:
        SchemaError: a value that is too large, or that is not a whole number in the unit.
    """
    if _unit(array.dtype) == "generic":
        raise SchemaError(f"values of dtype {array.dtype} have no unit", column=name or None)
    dtype, nat = np.dtype(f"{array.dtype.kind}8[{unit}]"), np.isnat(array)
    try:
        counts = array.astype(dtype, copy=False)
        # NumPy truncates silently, and before 2.5 wraps around: converting back reveals every value that changed
        differs = None if dtype == array.dtype else (counts.astype(array.dtype) != array) | np.isnat(counts)
    except OverflowError:       # NumPy 2.5
        refuse(np.arange(len(array)) == _first_overflow(array, dtype), array, type_, name)
        raise
    if differs is not None:
        refuse(differs & ~nat, array, type_, name)
    integers = counts.view(np.int64)
    return np.where(nat, np.int64(0), integers) if nat.any() else integers


def _first_overflow(array: Array, dtype: np.dtype[Any]) -> int:
    """Return the position where the first value overflows in another unit."""
    first, last = 0, len(array) - 1
    while first < last:
        middle = (first + last) // 2
        try:
            array[first : middle + 1].astype(dtype).astype(array.dtype)
            first = middle + 1
        except OverflowError:
            last = middle
    return first


def _cast_datetime(array: Array, type_: ColumnType, name: str) -> Array:
    match type_.logical:
        case Date():
            days = change_unit(array, "D", type_, name)
            _check_range(days, -(1 << 31), (1 << 31) - 1, type_, name)
            return days.astype(np.int32)
        case Timestamp(unit):
            return change_unit(array, unit, type_, name)
        case None if type_.physical == Type.INT96 and type_.length is None:
            return change_unit(array, "ns", type_, name)
    raise _misfit(array, type_, name)


def _cast_timedelta(array: Array, type_: ColumnType, name: str) -> Array:
    if type_ == _DURATION and _unit(array.dtype) in DURATION_UNITS:
        return change_unit(array, DURATION_UNITS[_unit(array.dtype)], type_, name)
    if not isinstance(type_.logical, Time):
        raise _misfit(array, type_, name)
    unit = type_.logical.unit
    counts = change_unit(array, unit, type_, name)
    outside = (counts < 0) | (counts >= UNITS_A_DAY[unit])
    if outside.any():
        i = int(np.argmax(outside))
        raise SchemaError(
            f"value {i}, {array[i]!s}, is not a time of day: TIME holds 0 to 24 hours; use an INT64 column for durations",
            column=name or None,
        ).showing(array[i])
    return counts.astype(np.int32) if unit == "ms" else counts


def pack_decimals(integers: Sequence[int], type_: ColumnType, name: str) -> Array:
    """Store unscaled integers as a decimal type.

    Raises:
        SchemaError: an integer with more digits than the precision.
    """
    logical, dtype = type_.logical, type_.dtype
    assert isinstance(logical, Decimal)
    assert dtype is not None
    bound = 10**logical.precision
    if not -bound < min(integers, default=0) <= max(integers, default=0) < bound:
        i = next(i for i, value in enumerate(integers) if not -bound < value < bound)
        raise SchemaError(f"value {i} has more than {logical.precision} digits", column=name or None)
    if dtype.kind == "i":
        return np.array(integers, dtype)
    width = dtype.itemsize
    raw = b"".join([value.to_bytes(width, "little", signed=True) for value in integers])
    return np.frombuffer(raw, dtype)


def is_raw(type_: ColumnType) -> bool:
    """Whether a Column holds a type's FIXED_LEN_BYTE_ARRAY values as stored: no logical type, UUID or INTERVAL."""
    raw = type_.logical is None or isinstance(type_.logical, Uuid | Interval)
    return type_.physical == Type.FIXED_LEN_BYTE_ARRAY and raw


def cast_binary(values: BinaryOffsets, nulls: NDArray[np.bool_] | None, type_: ColumnType, name: str) -> Array:
    """Return byte strings as fixed-length values, with zero bytes for nulls.

    Raises:
        SchemaError: the type has another storage, or a string has another length.
    """
    if not is_raw(type_):
        raise SchemaError(f"text and bytes do not fit a column of {type_}", column=name or None)
    assert type_.length is not None
    lengths = np.diff(values.offsets)
    present = np.ones(len(lengths), np.bool_) if nulls is None else ~nulls
    wrong = np.flatnonzero(present & (lengths != type_.length))
    if len(wrong):
        message = f"value {wrong[0]} has {lengths[wrong[0]]} bytes, which does not fit a column of {type_}"
        raise SchemaError(message, column=name or None)
    out = np.zeros(len(lengths), f"V{type_.length}")
    starts = values.offsets[:-1][present].astype(np.int64)
    rows = values.data[starts[:, None] + np.arange(type_.length)]
    out[present] = np.ascontiguousarray(rows).view(f"V{type_.length}").reshape(-1)
    return out
