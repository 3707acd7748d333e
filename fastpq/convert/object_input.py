"""Converts arrays of Python objects to column values. First it determines which kind of objects they are."""

from __future__ import annotations

import datetime
import decimal
import uuid
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.decimals import EXACT
from fastpq.arrays.layouts import Array, BinaryOffsets
from fastpq.arrays.python_times import days_of, microseconds_of
from fastpq.arrays.strings import from_objects
from fastpq.convert.casting import (
    cast_numeric,
    decimal_type,
    infer_numeric,
    integer_type,
    pack_decimals,
    time_type,
    timestamp_type,
)
from fastpq.errors import SchemaError
from fastpq.schema.types import MAX_DECIMAL256_PRECISION, ColumnType, Decimal, String, Time, Timestamp, Type, Unknown, Uuid

# The column type, the column's values, and the dtype of the NumPy array from which they were cast (None if there was none).
ConvertedObjects = tuple[ColumnType, Array | BinaryOffsets, np.dtype[Any] | None]

# Exact types only, because a subclass may hold more than its base (pandas.Timestamp has nanoseconds).
_KINDS: dict[type, str] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "str",
    np.str_: "str",
    bytes: "bytes",
    np.bytes_: "bytes",
    decimal.Decimal: "decimal",
    uuid.UUID: "uuid",
    datetime.datetime: "datetime",
    datetime.date: "date",
    datetime.time: "time",
    datetime.timedelta: "timedelta",
    np.datetime64: "datetime64",
    np.timedelta64: "timedelta64",
    np.bool_: "bool",
}


NO_ORDER = "a set has no order: give a list, for example sorted(values)"


def python_kind(value: Any) -> str | None:
    """Return a Python value's kind, for example "int", or None if no column type holds the value."""
    kind = _KINDS.get(type(value))
    if kind is None and isinstance(value, np.integer):
        return "int"
    if kind is None and isinstance(value, np.floating) and value.dtype.itemsize <= 8:
        return "float"
    if kind is None and isinstance(value, str | bytes):
        return "str" if isinstance(value, str) else "bytes"
    return kind


def _one_kind(array: Array, firsts: dict[type, int], name: str) -> str | None:
    """Return the kind that all non-null values have. "float" if there are integers and floats. None if all values are null.

    Args:
        array: objects.
        firsts: position where each Python type occurs first.
        name: column name, for errors.
    """
    common_kind: str | None = None
    for each, i in firsts.items():
        kind = python_kind(array[i])
        if {kind, common_kind} == {"int", "float"}:
            kind = common_kind = "float"
        if issubclass(each, set | frozenset):
            raise SchemaError(f"value {i}: {NO_ORDER}", column=name or None)
        if issubclass(each, complex | np.complexfloating):
            raise SchemaError(f"value {i} is complex: give np.array(values), a column of real and imag", column=name or None)
        if kind is None or common_kind not in (None, kind):
            among = ", which no column holds" if common_kind is None or kind is None else f" among values of kind {common_kind}"
            raise SchemaError(f"value {i} is a {each.__module__}.{each.__qualname__}{among}", column=name or None)
        common_kind = kind
    return common_kind


def without_nan(
    array: Array, nulls: NDArray[np.bool_], firsts: dict[type, int]
) -> tuple[Array, NDArray[np.bool_], dict[type, int]]:
    """Replace NaN by null if all other values are not numbers. There NaN stands for a missing value, as in pandas.

    Args:
        array: objects.
        nulls: True where an object is null.
        firsts: position where each Python type occurs first.

    Returns:
        The three arguments, changed where necessary.
    """
    floats = [each for each, i in firsts.items() if python_kind(array[i]) == "float"]
    if not floats or all(python_kind(array[i]) in ("float", "int", None) for i in firsts.values()):
        return array, nulls, firsts
    rows = [i for i, value in enumerate(array) if type(value) in floats]
    if any(array[i] == array[i] for i in rows):
        return array, nulls, firsts         # there are numbers, which are refused later
    array, nulls = array.copy(), nulls.copy()
    array[rows], nulls[rows] = None, True
    return array, nulls, {each: i for each, i in firsts.items() if each not in floats}


def without_pandas_scalars(
    array: Array, nulls: NDArray[np.bool_], firsts: dict[type, int], name: str
) -> tuple[Array, NDArray[np.bool_], dict[type, int]]:
    """Replace pandas' NA and NaT by null, and its Timestamps and Timedeltas by values of Python or NumPy.

    Args:
        array: objects.
        nulls: True where an object is null.
        firsts: position where each Python type occurs first.
        name: column name, for errors.

    Returns:
        The first three arguments, changed where necessary.

    Raises:
        SchemaError: nanoseconds in a Timestamp with a time zone, or a year that a datetime cannot hold.
    """
    foreign = {each for each in firsts if each.__module__.partition(".")[0] == "pandas"}
    if not foreign:
        return array, nulls, firsts
    array, nulls = array.copy(), nulls.copy()
    rows = [i for i, value in enumerate(array) if type(value) in foreign]
    times = [array[i] for i in rows if not is_missing(array[i])]
    has_nanoseconds = any(getattr(time, "nanosecond", 0) or getattr(time, "nanoseconds", 0) for time in times)
    for i in rows:
        value = array[i]
        if is_missing(value):
            array[i], nulls[i] = None, True
        elif isinstance(value, datetime.timedelta):
            array[i] = value.to_timedelta64() if has_nanoseconds else value.to_pytimedelta()     # type: ignore[attr-defined]
        elif isinstance(value, datetime.datetime):
            array[i] = _moment(value, has_nanoseconds, i, name)
    firsts = {}
    for i in np.flatnonzero(~nulls).tolist():
        firsts.setdefault(type(array[i]), i)
    return array, nulls, firsts


def nat_among(array: Array, firsts: dict[type, int]) -> NDArray[np.bool_]:
    """Return a mask of the objects that are NumPy's NaT.

    Args:
        array: objects.
        firsts: position where each Python type occurs first.
    """
    is_nat = np.zeros(len(array), np.bool_)
    if not firsts.keys().isdisjoint(_MOMENTS):
        is_nat[:] = [type(value) in _MOMENTS and bool(np.isnat(value)) for value in array]
    return is_nat


_MOMENTS = frozenset({np.datetime64, np.timedelta64})


def is_missing(value: Any) -> bool:
    """Return whether a value is pandas' NA or NaT."""
    return type(value).__name__ in ("NAType", "NaTType") and type(value).__module__.partition(".")[0] == "pandas"


def _moment(value: Any, has_nanoseconds: bool, i: int, name: str) -> datetime.datetime | np.datetime64:
    """Return a pandas Timestamp as a datetime, or as a datetime64 in a column with nanoseconds."""
    if has_nanoseconds and value.tzinfo is not None:
        message = f"value {i} is a Timestamp in a time zone, in a column with nanoseconds: give pd.Series(values)"
        raise SchemaError(message, column=name or None)
    try:
        moment: datetime.datetime | np.datetime64 = value.to_datetime64() if has_nanoseconds else value.to_pydatetime()
    except ValueError as error:
        message = f"value {i} is a Timestamp with a year that a datetime cannot hold: give a datetime64 array"
        raise SchemaError(message, column=name or None) from error
    return moment


def convert_objects(
    array: Array, nulls: NDArray[np.bool_], firsts: dict[type, int], type_: ColumnType | None, name: str
) -> ConvertedObjects:
    """Convert objects that have one kind to column values. Nulls become zeros or empty values.

    Args:
        array: one-dimensional and contiguous, dtype object.
        nulls: True where an object is null.
        firsts: position where each Python type occurs first.
        type_: column type for the result. None infers the type.
        name: column name, for errors.

    Raises:
        SchemaError: values with several kinds or an unsupported kind, or values that do not fit the type.
    """
    kind = _one_kind(array, firsts, name)
    if kind in ("str", "bytes"):
        return _convert_binary(array, kind == "str", type_, name)
    if kind is None:
        type_ = type_ or ColumnType(Type.INT32, None, Unknown())
        return type_, np.zeros(len(array), np.bool_), None  # all null: the caller replaces the array by zeros with the type
    if kind == "decimal" or (kind == "int" and type_ is not None and isinstance(type_.logical, Decimal)):
        return _convert_decimals(array, nulls, type_, name)
    if kind == "uuid":
        return _convert_uuids(array, nulls, type_, name)
    numbers = _numbers(array, nulls, kind, name)
    if type_ is None:
        type_ = _infer(numbers, kind, array, nulls)
    elif kind == "time" and not isinstance(type_.logical, Time):
        raise SchemaError(f"times of day do not fit a column of {type_}", column=name or None)
    elif kind == "datetime" and _is_aware(array, nulls) and type_.logical not in _INSTANTS:
        raise SchemaError(f"datetimes with a time zone do not fit a column of {type_}", column=name or None)
    return type_, cast_numeric(numbers, type_, name), numbers.dtype


_INSTANTS = [Timestamp(unit, utc=True) for unit in ("ms", "us", "ns")]


def _infer(numbers: Array, kind: str, array: Array, nulls: NDArray[np.bool_]) -> ColumnType:
    if kind == "datetime":
        return timestamp_type("us", _is_aware(array, nulls))
    if kind == "int":
        return integer_type(numbers.dtype)
    if kind == "time":
        return time_type("us")
    return infer_numeric(numbers.dtype, "")


def _convert_binary(array: Array, text: bool, type_: ColumnType | None, name: str) -> ConvertedObjects:
    type_ = type_ or ColumnType(Type.BYTE_ARRAY, None, String() if text else None)
    if text and not type_.is_variable:
        raise SchemaError(f"text does not fit a column of {type_}", column=name or None)
    offsets, data, _ = from_objects(array, text, name)
    return type_, BinaryOffsets(offsets, data), None


def _present(array: Array, nulls: NDArray[np.bool_]) -> list[Any]:
    present: list[Any] = array[~nulls].tolist()
    return present


def _numbers(array: Array, nulls: NDArray[np.bool_], kind: str, name: str) -> Array:
    """Return a bool, int64, uint64, float64, datetime64 or timedelta64 array with the values, and zeros for nulls."""
    match kind:
        case "date":
            return days_of(array, name).view("M8[D]")
        case "time":
            return microseconds_of(array, name).view("m8[us]")
    present = _present(array, nulls)
    dense: Array
    match kind:
        case "bool":
            dense = np.array(present, np.bool_)
        case "float":
            dense = np.array(present, np.float64)
            _check_exact(array, present, dense, name)
        case "int":
            dense = _integers(array, present, name)
        case "datetime":
            dense = np.array(_naive(array, present, name), "M8[us]")
        case "timedelta":
            dense = np.array(present, "m8[us]")
        case _:
            dense = np.array(present)  # NumPy chooses the finest unit among the values
    full = np.zeros(len(array), dense.dtype)
    full[~nulls] = dense
    return full


def _check_exact(array: Array, present: list[Any], dense: Array, name: str) -> None:
    """Refuse integers among floats if a float64 cannot hold them."""
    for i in np.flatnonzero(np.abs(dense) >= 1 << 53).tolist():
        if isinstance(present[i], int) and int(dense[i]) != present[i]:
            row = next(row for row, value in enumerate(array) if value is present[i])
            message = f"value {row}, {present[i]}, is an integer among floats, but a float64 cannot hold it"
            raise SchemaError(message, column=name or None).showing(present[i])


def _integers(array: Array, present: list[Any], name: str) -> Array:
    low, high = min(present), max(present)
    if low >= -(1 << 63) and high < 1 << 63:
        return np.array(present, np.int64)
    if low >= 0 and high < 1 << 64:
        return np.array(present, np.uint64)
    wrong = low if low < -(1 << 63) else high
    i = next(i for i, value in enumerate(array) if value is wrong)
    raise SchemaError(f"value {i} is an integer with more than 64 bits, or its sign needs another type", column=name or None)


def _is_aware(array: Array, nulls: NDArray[np.bool_]) -> bool:
    return any(value.tzinfo is not None for value in array[~nulls][:1])


def _naive(array: Array, present: list[Any], name: str) -> list[Any]:
    """Return datetimes as naive datetimes in UTC, or unchanged if all are naive. A mixture is refused."""
    aware = present[0].tzinfo is not None
    for value in present:
        if (value.utcoffset() is not None) != aware:
            i = next(i for i, other in enumerate(array) if other is value)
            raise SchemaError(
                f"value {i} is a datetime {'without' if aware else 'with'} a time zone, but earlier values are not",
                column=name or None,
            )
    return [value.astimezone(datetime.UTC).replace(tzinfo=None) for value in present] if aware else present


def _convert_uuids(array: Array, nulls: NDArray[np.bool_], type_: ColumnType | None, name: str) -> ConvertedObjects:
    type_ = type_ or ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16, Uuid())
    if type_.physical != Type.FIXED_LEN_BYTE_ARRAY or type_.length != 16 or isinstance(type_.logical, Decimal):
        raise SchemaError(f"UUIDs do not fit a column of {type_}", column=name or None)
    full = np.zeros(len(array), "V16")
    full[~nulls] = np.frombuffer(b"".join([value.bytes for value in _present(array, nulls)]), "V16")
    return type_, full, None


def _convert_decimals(array: Array, nulls: NDArray[np.bool_], type_: ColumnType | None, name: str) -> ConvertedObjects:
    type_ = type_ or _infer_decimal(array, nulls, name)
    if not isinstance(type_.logical, Decimal):
        advice = ": give [float(value) for value in values]" if type_.dtype is not None and type_.dtype.kind == "f" else ""
        raise SchemaError(f"decimals do not fit a column of {type_}{advice}", column=name or None)
    scale, factor = type_.logical.scale, 10**type_.logical.scale
    rows, present = np.flatnonzero(~nulls).tolist(), _present(array, nulls)
    present_integers = _unscaled_integers(present, scale) or [
        _unscaled_integer(value, scale, i, name) if isinstance(value, decimal.Decimal) else int(value) * factor
        for i, value in zip(rows, present, strict=True)
    ]
    integers = [0] * len(array)
    for i, integer in zip(rows, present_integers, strict=True):
        integers[i] = integer
    return type_, pack_decimals(integers, type_, name), None


def _unscaled_integers(values: list[Any], scale: int) -> list[int] | None:
    """Return decimals as unscaled integers. None if a value is not a Decimal, or has more than ``scale`` decimal places."""
    if not isinstance(values[0], decimal.Decimal):
        return None
    try:
        decimals = [*map(EXACT.scaleb, values, repeat(decimal.Decimal(scale)))]
        integers = [*map(int, decimals)]
    except (decimal.DecimalException, ValueError, OverflowError):
        return None
    return integers if decimals == integers else None


def _unscaled_integer(value: decimal.Decimal, scale: int, i: int, name: str) -> int:
    try:
        scaled_value = value.scaleb(scale, EXACT)
        integer = int(scaled_value)
        if scaled_value == integer:
            return integer
    except (decimal.DecimalException, ValueError, OverflowError):  # not a number, or more digits than any decimal column
        pass
    message = f"value {i}, {value}, is not a number with at most {scale} decimal places (scale {scale})"
    raise SchemaError(message, column=name or None).showing(value)


def _infer_decimal(array: Array, nulls: NDArray[np.bool_], name: str) -> ColumnType:
    """Return the smallest decimal type that holds every value exactly."""
    scale = integral = 0
    for i, value in zip(np.flatnonzero(~nulls).tolist(), _present(array, nulls), strict=True):
        _, digits, exponent = value.as_tuple()
        if not isinstance(exponent, int):
            raise SchemaError(f"value {i}, {value}, is not a finite decimal", column=name or None).showing(value)
        scale = max(scale, -exponent)
        integral = max(integral, len(digits) + exponent if digits != (0,) else 0)
    precision = max(scale + integral, 1)
    if precision > MAX_DECIMAL256_PRECISION:
        message = f"decimals with {precision} digits, but a decimal type has at most {MAX_DECIMAL256_PRECISION}"
        raise SchemaError(message, column=name or None)
    return decimal_type(precision, scale)
