"""Values as NumPy arrays and as Python objects. The functions know values and types, not columns."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.dtypes import StringDType

from fastpq.arrays.layouts import Array
from fastpq.arrays.slices import SliceReader
from fastpq.errors import SchemaError
from fastpq.schema.types import ColumnType, Date, Decimal, Interval, Time, Timestamp, Type, Uuid

Nulls = Literal["masked", "nan", "object"]
Strings = Literal["stringdtype", "object"]

_EPOCH = datetime.datetime(1970, 1, 1)
# First and last day that datetime.date can hold, as days since 1970-01-01.
_DAYS = (datetime.date.min.toordinal() - _EPOCH.toordinal(), datetime.date.max.toordinal() - _EPOCH.toordinal())
_MAX_DAYS = datetime.timedelta.max.days     # most days that a datetime.timedelta can hold, positive or negative
UNITS_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def check_output_options(nulls: str, strings: str) -> None:
    """Raise SchemaError if an argument for ``Column.to_numpy`` has an unknown value."""
    if nulls not in get_args(Nulls):
        raise SchemaError(f"nulls must be one of {get_args(Nulls)}, not {nulls!r}")
    if strings not in get_args(Strings):
        raise SchemaError(f"strings must be one of {get_args(Strings)}, not {strings!r}")


def numpy_values(values: Array, type_: ColumnType, unit: str | None) -> Array:
    """Return fixed-width values in the column type's NumPy type. Nulls have arbitrary values.

    Args:
        values: shape (n,), dtype ``type_.dtype``.
        type_: value type.
        unit: duration unit, or None for other values.
    """
    match type_.logical:
        case Decimal() | Uuid():
            return np.fromiter(python_objects(values, type_, unit), dtype=object, count=len(values))
        case Date() | Time():
            return values.astype(np.int64).view(type_.numpy_dtype)
    return values.view(type_.numpy_dtype if unit is None else f"timedelta64[{unit}]")


def variable_values(reader: SliceReader, is_text: bool, strings: Strings, missing: float | None) -> Array:
    """Return variable-length values as a StringDType or an object array.

    Args:
        reader: the values.
        is_text: whether the values are text. Bytes are always objects.
        strings: the array kind for text.
        missing: the StringDType's missing value, or None: then a null is an empty string.
    """
    from fastpq.arrays.strings import to_objects, to_string_dtype

    if not is_text or strings == "object":
        return to_objects(reader, is_text)
    array = np.empty(reader.count, StringDType() if missing is None else StringDType(na_object=missing))
    to_string_dtype(reader, array, missing is not None)
    return array


def with_nan(values: Array, is_null: Array, type_: ColumnType) -> Array:
    """Return NumPy values with NaN, NaT or None instead of nulls. A StringDType has its missing values already.

    Args:
        values: the values, in a ``numpy_dtype``.
        is_null: True where a value is null. At least one is null.
        type_: column type, for the error.

    Raises:
        SchemaError: the values have no NaN.
    """
    if values.dtype.kind in "fmM":
        values = values.copy()
        values[is_null] = np.nan if values.dtype.kind == "f" else np.array("NaT", values.dtype)
    elif values.dtype.kind == "O":
        values[is_null] = None
    elif values.dtype.kind != "T":
        nulls = int(np.count_nonzero(is_null))
        reason = f"a column of {type_} has {nulls} nulls, and no NaN to stand for them"
        raise SchemaError(f"{reason}: use nulls='masked' or nulls='object'")
    return values


def python_objects(values: Array, type_: ColumnType, unit: str | None) -> list[Any]:
    """Return fixed-width values as Python objects. Nulls have arbitrary objects.

    Args:
        values: shape (n,), dtype ``type_.dtype``.
        type_: value type.
        unit: duration unit, or None for other values.
    """
    match type_.logical:
        case Decimal(_, scale):
            from fastpq.arrays.decimals import decimals

            return decimals(unscaled_integers(values), scale)
        case Uuid():
            from uuid import UUID

            return [UUID(bytes=value) for value in _byte_strings(values)]
        case Interval():
            return list(map(tuple, values.view(np.dtype("<u4")).reshape(-1, 3).tolist()))
        case Date():
            return _moments(values, values.astype(np.int64).view("datetime64[D]"), *_DAYS)
        case Timestamp("ms" | "us" as time_unit, utc):
            a_day = UNITS_A_DAY[time_unit]
            moments = _moments(values, values.view(type_.numpy_dtype), _DAYS[0] * a_day, (_DAYS[1] + 1) * a_day - 1)
            return [_with_utc(moment) for moment in moments] if utc else moments
        case Timestamp():
            return list(values.view(type_.numpy_dtype))
        case Time(time_unit):
            return _times(values, time_unit)
        case None if type_.physical == Type.INT96 and type_.length is None:
            return list(values.view(type_.numpy_dtype))
    if values.dtype.kind == "V":
        return list(_byte_strings(values))
    if unit is not None:
        return _durations(values, unit)
    objects: list[Any] = values.tolist()
    return objects


def unscaled_integers(values: Array) -> list[int]:
    """Return a decimal column's unscaled integers.

    Args:
        values: int32, int64, V16 or V32. A V value is little-endian two's complement.
    """
    integers: list[int]
    if values.dtype.kind != "V":
        integers = values.tolist()
        return integers
    words = values.view(np.dtype("<i8")).reshape(len(values), values.dtype.itemsize // 8)
    low = words[:, 0]
    if bool((words[:, 1:] == (low >> 63)[:, None]).all()):
        integers = low.tolist()  # the higher words only repeat the sign
        return integers
    return [int.from_bytes(value, "little", signed=True) for value in _byte_strings(values)]


def _byte_strings(values: Array) -> list[bytes]:
    raw, width = values.tobytes(), values.dtype.itemsize
    return [raw[at : at + width] for at in range(0, len(raw), width)]


def _moments(values: Array, moments: Array, first: int, last: int) -> list[Any]:
    """Return Python dates or datetimes, and numpy.datetime64 for values below first or above last."""
    objects: list[Any] = moments.tolist()
    for i in np.flatnonzero((values < first) | (values > last)).tolist():
        objects[i] = moments[i]
    return objects


def _with_utc(moment: Any) -> Any:
    return moment.replace(tzinfo=datetime.UTC) if isinstance(moment, datetime.datetime) else moment


def _durations(values: Array, unit: str) -> list[Any]:
    """Return datetime.timedelta objects. Nanoseconds, and values that datetime.timedelta cannot hold, are numpy.timedelta64."""
    deltas = values.view(f"timedelta64[{unit}]")
    if unit == "ns":
        return list(deltas)
    bound = _MAX_DAYS * UNITS_A_DAY[unit]
    is_inside = (values >= -bound) & (values <= bound)
    objects: list[Any] = np.where(is_inside, deltas, np.zeros((), deltas.dtype)).tolist()
    for i in np.flatnonzero(~is_inside).tolist():
        objects[i] = deltas[i]
    return objects


def _times(values: Array, unit: str) -> list[Any]:
    """Return datetime.time objects. Nanoseconds, and values that are not within one day, are numpy.timedelta64."""
    from fastpq.arrays.python_times import times_of

    deltas = values.astype(np.int64).view(f"timedelta64[{unit}]")
    if unit == "ns":
        return list(deltas)
    is_inside = (values >= 0) & (values < UNITS_A_DAY[unit])
    microseconds = np.where(is_inside, values.astype(np.int64), 0) * (UNITS_A_DAY["us"] // UNITS_A_DAY[unit])
    objects: list[Any] = times_of(microseconds, None).tolist()
    for i in np.flatnonzero(~is_inside).tolist():
        objects[i] = deltas[i]
    return objects


def structured_array(arrays: Mapping[str, Array], rows: int) -> Array:
    """Return one structured array that holds several arrays as fields.

    Args:
        arrays: arrays by field name, shape (rows, ...).
        rows: row count.

    Returns:
        Shape (rows,). Each field has its array's dtype. It is a MaskedArray if one of the arrays is a MaskedArray.
    """
    dtype = np.dtype([(name, array.dtype, array.shape[1:]) for name, array in arrays.items()])
    is_masked = any(isinstance(array, np.ma.MaskedArray) for array in arrays.values())
    result: Any = np.ma.empty(rows, dtype) if is_masked else np.empty(rows, dtype)
    for name, array in arrays.items():
        result[name] = array
    return cast(Array, result)


def complex_numbers(real: Array, imaginary: Array, is_valid: Array, nulls: Nulls, is_nullable: bool) -> Array:
    """Return complex numbers, null where ``is_valid`` is False.

    Args:
        real: the real parts, float32 or float64, shape (n,).
        imaginary: the imaginary parts, like ``real``.
        is_valid: shape (n,), bool.
        nulls: as for ``Column.to_numpy``.
        is_nullable: whether the numbers may be null. ``"masked"`` then gives a MaskedArray.
    """
    numbers = np.empty(len(real), np.result_type(real, np.complex64))
    numbers.real, numbers.imag = real, imaginary
    if nulls == "nan":
        numbers[~is_valid] = complex(np.nan, np.nan)
    elif nulls == "object" and not is_valid.all():
        objects = numbers.astype(object)
        objects[~is_valid] = None
        return objects
    elif nulls == "masked" and is_nullable:
        return cast(Array, np.ma.MaskedArray(numbers, mask=np.ma.nomask if is_valid.all() else ~is_valid))
    return numbers
