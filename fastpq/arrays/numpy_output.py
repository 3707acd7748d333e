"""Columns as NumPy arrays and as Python objects."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
from numpy.dtypes import StringDType

from fastpq.arrays.layouts import Array, DictionaryValues
from fastpq.arrays.nodes import DURATION_UNITS
from fastpq.arrays.slices import SliceReader
from fastpq.errors import FormatError, SchemaError
from fastpq.schema.types import ColumnType, Date, Decimal, Interval, Time, Timestamp, Type, Uuid

if TYPE_CHECKING:
    from fastpq.arrays.flat_column import Column
    from fastpq.arrays.nested_columns import AnyColumn, ListColumn, StructColumn

Nulls = Literal["masked", "nan", "object"]
Strings = Literal["stringdtype", "object"]

_EPOCH = datetime.datetime(1970, 1, 1)
_DAYS = (datetime.date.min.toordinal() - _EPOCH.toordinal(), datetime.date.max.toordinal() - _EPOCH.toordinal())
_MAX_DAYS = datetime.timedelta.max.days     # most days of a datetime.timedelta, either way
UNITS_A_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def to_numpy(column: Column, nulls: Nulls, strings: Strings) -> Array:
    """A column as a NumPy array (``Column.to_numpy``)."""
    if nulls not in get_args(Nulls):
        raise SchemaError(f"nulls is one of {get_args(Nulls)}, not {nulls!r}")
    if strings not in get_args(Strings):
        raise SchemaError(f"strings is one of {get_args(Strings)}, not {strings!r}")
    if nulls == "object" and column.nullable:
        return np.fromiter(to_pylist(column), dtype=object, count=len(column))
    missing = np.nan if nulls == "nan" and column.null_count else None
    values = _without_nulls(column, strings, missing)
    if not column.nullable:
        return values
    if nulls == "masked":
        mask: Any = ~column.validity_mask() if column.null_count else np.ma.nomask
        masked: Array = np.ma.MaskedArray(values, mask=mask)
        return masked
    return _with_nan(column, values) if column.null_count else values


def _without_nulls(column: Column, strings: Strings, missing: float | None) -> Array:
    """The values in NumPy's types; something where null: zero, None, or with missing, StringDType's missing value."""
    type_ = column.type
    if type_.is_variable:
        return _variable(column, strings, missing)
    values = fixed_values(column)
    match type_.logical:
        case Decimal() | Uuid():
            return np.fromiter(_objects(column, values), dtype=object, count=len(values))
        case Date() | Time():
            return values.astype(np.int64).view(type_.numpy_dtype)
    unit = unit_of_durations(column)
    return values.view(type_.numpy_dtype if unit is None else f"timedelta64[{unit}]")


def unit_of_durations(column: Column) -> str | None:
    """Unit of the durations in a column, ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``; None for a column of other values."""
    if column.arrow is None or column.type.physical is not Type.INT64 or column.type.logical is not None:
        return None
    return DURATION_UNITS.get(column.arrow.format)


def _variable(column: Column, strings: Strings, missing: float | None) -> Array:
    from fastpq.arrays.strings import to_objects, to_string_dtype

    reader = SliceReader(column.values, column.validity if column.null_count else None)
    if not column.type.is_text or strings == "object":
        return to_objects(reader, column.type.is_text)
    array = np.empty(len(column), StringDType() if missing is None else StringDType(na_object=missing))
    to_string_dtype(reader, array, missing is not None)
    return array


def fixed_values(column: Column) -> Array:
    """The fixed-width values of a column, zero where null; values of a dictionary are gathered."""
    values = column.values
    if isinstance(values, np.ndarray):
        return np.ascontiguousarray(values)
    if not isinstance(values, DictionaryValues):
        raise SchemaError(f"the values of a {column.type} column are not of fixed width")
    dictionary = fixed_values(values.dictionary)
    if len(dictionary) == 0:
        if column.null_count < len(column):
            raise FormatError("a dictionary code outside the dictionary")
        return np.zeros(len(column), dictionary.dtype)
    # As unsigned numbers, negative codes are out of bounds too.
    codes = values.codes.view(np.uint32)
    if len(codes) and int(codes.max()) >= len(dictionary):
        raise FormatError("a dictionary code outside the dictionary")
    gathered = dictionary[codes]
    if column.null_count:
        gathered[~column.validity_mask()] = np.zeros((), gathered.dtype)
    return gathered


def _with_nan(column: Column, values: Array) -> Array:
    if values.dtype.kind in "fmM":
        values = values.copy()
        values[~column.validity_mask()] = np.nan if values.dtype.kind == "f" else np.array("NaT", values.dtype)
    elif values.dtype.kind == "O":
        values[~column.validity_mask()] = None
    elif values.dtype.kind != "T":
        raise SchemaError(
            f"{column.null_count} nulls of a {column.type} column have no NaN: ask for nulls='masked' or 'object'"
        )
    return values


def to_pylist(column: Column) -> list[Any]:
    """A column as Python objects (``Column.to_pylist``)."""
    if column.type.is_variable:
        from fastpq.arrays.strings import to_objects

        reader = SliceReader(column.values, column.validity if column.null_count else None)
        objects: list[Any] = to_objects(reader, column.type.is_text).tolist()
        return objects
    objects = _objects(column, fixed_values(column))
    if column.null_count:
        for i in np.flatnonzero(~column.validity_mask()).tolist():
            objects[i] = None
    return objects


def _objects(column: Column, values: Array) -> list[Any]:
    """Python objects of fixed-width values, with something where null."""
    type_ = column.type
    match type_.logical:
        case Decimal(_, scale):
            from fastpq.arrays.decimals import decimals

            return decimals(unscaled_integers(values), scale)
        case Uuid():
            from uuid import UUID

            return [UUID(bytes=value) for value in _chunks(values)]
        case Interval():
            return list(map(tuple, values.view(np.dtype("<u4")).reshape(-1, 3).tolist()))
        case Date():
            return _within(values, values.astype(np.int64).view("datetime64[D]"), *_DAYS)
        case Timestamp("ms" | "us" as unit, utc):
            moments = _within(values, values.view(type_.numpy_dtype), *_moments(unit))
            return [_aware(moment) for moment in moments] if utc else moments
        case Timestamp():
            return list(values.view(type_.numpy_dtype))
        case Time(unit):
            return _times(values, unit)
        case None if type_.physical == Type.INT96:
            return list(values.view(type_.numpy_dtype))
    if values.dtype.kind == "V":
        return list(_chunks(values))
    duration = unit_of_durations(column)
    if duration is not None:
        return _durations(values, duration)
    objects: list[Any] = values.tolist()
    return objects


def unscaled_integers(values: Array) -> list[int]:
    """The integers of a decimal column.

    Args:
        values: int32, int64, or V16 or V32: little-endian two's complement.
    """
    integers: list[int]
    if values.dtype.kind != "V":
        integers = values.tolist()
        return integers
    words = values.view(np.dtype("<i8")).reshape(len(values), values.dtype.itemsize // 8)
    low = words[:, 0]
    if bool((words[:, 1:] == (low >> 63)[:, None]).all()):
        integers = low.tolist()  # the words above only repeat the sign
        return integers
    return [int.from_bytes(value, "little", signed=True) for value in _chunks(values)]


def _chunks(values: Array) -> list[bytes]:
    raw, width = values.tobytes(), values.dtype.itemsize
    return [raw[at : at + width] for at in range(0, len(raw), width)]


def _moments(unit: str) -> tuple[int, int]:
    """Bounds of datetime.datetime as numbers of a unit: the first and the last value."""
    a_day = UNITS_A_DAY[unit]
    return _DAYS[0] * a_day, (_DAYS[1] + 1) * a_day - 1


def _within(values: Array, moments: Array, first: int, last: int) -> list[Any]:
    """Python dates or datetimes; numpy.datetime64 beyond the years 1 to 9999."""
    objects: list[Any] = moments.tolist()
    for i in np.flatnonzero((values < first) | (values > last)).tolist():
        objects[i] = moments[i]
    return objects


def _aware(moment: Any) -> Any:
    return moment.replace(tzinfo=datetime.UTC) if isinstance(moment, datetime.datetime) else moment


def _durations(values: Array, unit: str) -> list[Any]:
    """datetime.timedelta; numpy.timedelta64 for nanoseconds and for values beyond datetime.timedelta."""
    deltas = values.view(f"timedelta64[{unit}]")
    if unit == "ns":
        return list(deltas)
    most = _MAX_DAYS * UNITS_A_DAY[unit]
    inside = (values >= -most) & (values <= most)
    objects: list[Any] = np.where(inside, deltas, np.zeros((), deltas.dtype)).tolist()
    for i in np.flatnonzero(~inside).tolist():
        objects[i] = deltas[i]
    return objects


def _times(values: Array, unit: str) -> list[Any]:
    """datetime.time; numpy.timedelta64 for nanoseconds and for values outside of one day."""
    from fastpq.arrays.python_times import times_of

    deltas = values.astype(np.int64).view(f"timedelta64[{unit}]")
    if unit == "ns":
        return list(deltas)
    inside = (values >= 0) & (values < UNITS_A_DAY[unit])
    microseconds = np.where(inside, values.astype(np.int64), 0) * (UNITS_A_DAY["us"] // UNITS_A_DAY[unit])
    objects: list[Any] = times_of(microseconds, None).tolist()
    for i in np.flatnonzero(~inside).tolist():
        objects[i] = deltas[i]
    return objects


def rows_of_one_size(column: ListColumn, size: int, nulls: Nulls, strings: Strings, structured: bool) -> Array | None:
    """The values of lists of one size as an array of two or more dimensions; None where a list has another size.

    Args:
        column: the lists.
        size: number of values of a list.
        nulls: as for ``Column.to_numpy``; with ``"nan"``, null lists other than of floats and times give None.
        strings: as for ``Column.to_numpy``.
        structured: whether structs are structured arrays, as for ``StructColumn.to_numpy``.
    """
    valid = column.validity_mask()
    if bool((np.diff(column.offsets)[valid] != size).any()):
        return None
    used = column.used_elements()
    elements = structured_values(used, nulls) if structured else used.to_numpy(nulls=nulls, strings=strings)
    shape = (len(column), size, *elements.shape[1:])
    if not column.null_count:
        rows = elements.reshape(shape)
        return cast(Array, np.ma.asarray(rows)) if column.nullable and nulls == "masked" else rows
    if nulls == "nan" and elements.dtype.kind not in "fmM":
        return None
    starts = column.offsets[:-1][valid] - column.offsets[0]
    found: Any = np.ma.zeros(shape, elements.dtype) if nulls == "masked" else np.zeros(shape, elements.dtype)
    found[valid] = elements[starts[:, None] + np.arange(size)]
    found[~valid] = np.ma.masked if nulls == "masked" else np.nan if elements.dtype.kind == "f" else np.datetime64("NaT")
    return cast(Array, found)


def structured_values(column: AnyColumn, nulls: Nulls) -> Array:
    """The values of a column, of any depth, in NumPy's types with text as objects: structs as structured arrays."""
    return column.to_numpy(nulls=nulls, strings="object", structured=True)


def structured_of_struct(column: StructColumn, nulls: Nulls) -> Array:
    """Structs as a structured array, or as complex numbers (``StructColumn.to_numpy``)."""
    names = [field.name for field in column.type.fields]
    if len(set(names)) < len(names):
        raise SchemaError(f"two fields of one name in {names}")
    if names == ["real", "imag"]:
        kinds = {child.type.numpy_dtype if isinstance(child.type, ColumnType) else None for child in column.children}
        if len(kinds) == 1 and kinds & {np.dtype(np.float32), np.dtype(np.float64)}:
            return _complex_numbers(column, nulls)
    children = column.children
    if column.null_count:
        children = tuple(child._with(**column._nulls_with(child)) for child in children)
    arrays = {name: structured_values(child, nulls) for name, child in zip(names, children, strict=True)}
    return structured_array(arrays, len(column))


def _complex_numbers(column: StructColumn, nulls: Nulls) -> Array:
    """Structs of two floats, real and imaginary parts, as complex numbers; null where a part or the struct is null."""
    parts = [cast("Column", child) for child in column.children]
    real, imag = (np.ma.getdata(fixed_values(part)) for part in parts)
    found = np.empty(len(column), np.result_type(real, np.complex64))
    found.real, found.imag = real, imag
    valid = column.validity_mask() & parts[0].validity_mask() & parts[1].validity_mask()
    if nulls == "nan":
        found[~valid] = complex(np.nan, np.nan)
    elif nulls == "object" and not valid.all():
        objects = found.astype(object)
        objects[~valid] = None
        return objects
    elif nulls == "masked" and (column.nullable or any(part.nullable for part in parts)):
        return cast(Array, np.ma.MaskedArray(found, mask=np.ma.nomask if valid.all() else ~valid))
    return found


def structured_array(arrays: Mapping[str, Array], rows: int) -> Array:
    """One structured array of arrays.

    Args:
        arrays: arrays of shape (rows,), by name of the field.
        rows: number of rows.

    Returns:
        Shape (rows,), with a field of each array's dtype; a MaskedArray if one of the arrays is.
    """
    dtype = np.dtype([(name, array.dtype, array.shape[1:]) for name, array in arrays.items()])
    masked = any(isinstance(array, np.ma.MaskedArray) for array in arrays.values())
    made: Any = np.ma.empty(rows, dtype) if masked else np.empty(rows, dtype)
    for name, array in arrays.items():
        made[name] = array
    return cast(Array, made)
