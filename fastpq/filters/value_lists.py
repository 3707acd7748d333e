"""Converts a long list of filter values to keys at once. ``Domain.equal`` gives the same keys, value by value.

If all values have one type, NumPy converts the list, or one pass with simple operations does. Other lists are left to the caller,
who converts value by value. So is a list with a value that does not fit the column: the caller's way raises the error.
"""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Callable
from fractions import Fraction
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from fastpq.arrays.layouts import Array
from fastpq.filters.literals import (
    FRACTIONS,
    SECONDS,
    BytesDomain,
    Domain,
    FloatDomain,
    IntegerDomain,
    binary_to_bytes,
    text_or_binary_to_bytes,
    text_to_bytes,
    uuid_to_bytes,
)
from fastpq.schema.types import ColumnType, Date, Decimal, Integer, Time, Timestamp, Type

_EPOCHS = {False: dt.datetime(1970, 1, 1), True: dt.datetime(1970, 1, 1, tzinfo=dt.UTC)}
_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
# The same conversion without its checks, by a domain's conversion function and by the type that all values have.
_TO_BYTES: dict[tuple[Any, type], Callable[[Any], bytes]] = {
    (text_to_bytes, str): str.encode,
    (text_or_binary_to_bytes, str): str.encode,
    (text_or_binary_to_bytes, bytes): bytes,
    (binary_to_bytes, bytes): bytes,
    (uuid_to_bytes, uuid.UUID): attrgetter("bytes"),
}


class ConvertedValues(NamedTuple):
    """The keys for a list of values.

    Attributes:
        keys: distinct keys. Numbers with up to 8 bytes are an ascending array in the column's dtype, wider numbers are an
            ascending list, and byte strings are a set.
        has_nan: whether NaN is a key as well.
    """

    keys: Array | list[Any] | set[bytes]
    has_nan: bool = False


def converted_values(domain: Domain, values: Any) -> ConvertedValues | None:
    """Return the keys for a list of values, or None if the values must be converted one by one.

    Args:
        domain: the column's domain.
        values: a list, or a NumPy array.
    """
    if isinstance(values, np.ndarray):
        if type(values) is not np.ndarray or values.ndim != 1:
            return None
        if values.dtype.kind in "biufmM":
            return _of_array(domain, values)
        values = values.tolist()
    kinds = set(map(type, values))
    if type(None) in kinds:
        values = [value for value in values if value is not None]
        kinds.discard(type(None))
    try:
        match domain:
            case BytesDomain() if len(kinds) == 1:
                return _of_bytes(domain, values, *kinds)
            case FloatDomain() if kinds <= {int, float}:
                return _of_array(domain, np.array(values, np.float64))
            case IntegerDomain() if len(kinds) == 1:
                return _of_integers(domain, values, *kinds)
    except (OverflowError, UnicodeEncodeError, decimal.DecimalException):
        pass        # a value that only the slow way can convert or refuse
    return None


def _of_bytes(domain: BytesDomain, values: list[Any], kind: type) -> ConvertedValues | None:
    """Return the keys for texts, byte strings or UUIDs that all have one type."""
    to_bytes = _TO_BYTES.get((domain.to_bytes, kind))
    if to_bytes is None:
        return None
    keys, width = set(map(to_bytes, values)), domain.type.length
    return ConvertedValues(keys if width is None else {key for key in keys if len(key) == width})


def _of_integers(domain: IntegerDomain, values: list[Any], kind: type) -> ConvertedValues | None:
    """Return the keys for values that have one type. The column has integers, decimals, booleans, dates, times or moments."""
    logical, physical = domain.type.logical, domain.type.physical
    if kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "Timestamp":
        return _of_pandas_moments(domain, values, isinstance(logical, Timestamp) and logical.utc)
    if isinstance(logical, Decimal):
        units = _unscaled(values, kind, logical.scale, domain.largest)
        return None if units is None else _of_units(domain, units)
    if isinstance(logical, Date):
        return _of_array(domain, np.array(values, "datetime64[D]")) if kind is dt.date else None
    if isinstance(logical, Time):
        microseconds = _microseconds_of_times(values) if kind is dt.time else None
        microseconds = list(map(_microseconds, values)) if kind is dt.timedelta else microseconds
        return None if microseconds is None else _of_array(domain, np.array(microseconds, np.int64).view("timedelta64[us]"))
    if isinstance(logical, Timestamp) or physical is Type.INT96:
        return _of_moments(domain, values, isinstance(logical, Timestamp) and logical.utc) if kind is dt.datetime else None
    if physical is Type.BOOLEAN:
        return _of_units(domain, list(map(int, values))) if kind is bool else None
    if kind is int:
        return _of_units(domain, values)
    return _of_array(domain, np.array(values, np.float64)) if kind is float else None


def _of_units(domain: IntegerDomain, units: list[int]) -> ConvertedValues:
    """Return the keys for integers that count the column's unit."""
    dtype = domain.type.dtype
    if dtype is None or dtype.kind == "V":
        return ConvertedValues(sorted({unit for unit in units if domain.smallest <= unit <= domain.largest}))
    try:
        return ConvertedValues(_within(domain, np.array(units, np.int64)))
    except OverflowError:
        inside = [unit for unit in units if domain.smallest <= unit <= domain.largest]
        return ConvertedValues(_distinct(np.array(inside, dtype)))


def _within(domain: IntegerDomain, numbers: Array) -> Array:
    """Return the numbers within the column's range, distinct, ascending, in the column's dtype."""
    is_inside = (numbers >= domain.smallest) & (numbers <= domain.largest)
    return _distinct((numbers if is_inside.all() else numbers[is_inside]).astype(domain.type.dtype))


def _distinct(numbers: Array) -> Array:
    """Return the numbers without repetitions, ascending. numpy.unique returns the same, but takes longer."""
    numbers = np.sort(numbers)
    if len(numbers) < 2:
        return numbers
    differs = numbers[1:] != numbers[:-1]
    return numbers if differs.all() else numbers[np.append(True, differs)]


def _of_array(domain: Domain, numbers: Array) -> ConvertedValues | None:
    """Return the keys for an array of numbers, booleans, moments or durations."""
    kind, dtype = numbers.dtype.kind, domain.type.dtype
    if dtype is None or dtype.kind == "V" or numbers.dtype.itemsize > 8:
        return None
    if isinstance(domain, FloatDomain):
        return _of_floats(domain, numbers) if kind in "iuf" else None
    if not isinstance(domain, IntegerDomain):
        return None
    logical, physical = domain.type.logical, domain.type.physical
    if kind in "mM":
        return _of_ticks(domain, numbers)
    if physical is Type.BOOLEAN:
        return ConvertedValues(_distinct(numbers)) if kind == "b" else None
    if physical is Type.INT96 or not (logical is None or isinstance(logical, Integer)):
        return None
    if kind in "iu":
        return ConvertedValues(_within(domain, numbers))
    return _of_whole_floats(domain, numbers) if kind == "f" and np.isfinite(numbers).all() else None


def _of_whole_floats(domain: IntegerDomain, numbers: Array) -> ConvertedValues:
    """Return the keys for finite floats, in an integer column. Only whole numbers have a key."""
    wide = numbers.astype(np.float64)       # the bounds below are powers of two or 0, which are exact as floats
    has_key = (wide == np.floor(wide)) & (wide >= float(domain.smallest)) & (wide < float(domain.largest + 1))
    return ConvertedValues(_distinct(wide[has_key].astype(domain.type.dtype)))


def _of_floats(domain: FloatDomain, numbers: Array) -> ConvertedValues:
    """Return the keys for numbers, rounded to the column's precision. A finite number that becomes infinite has no key."""
    wide, dtype = numbers.astype(np.float64), domain.type.dtype
    assert dtype is not None
    with np.errstate(over="ignore"):
        column_values = wide.astype(dtype)
    is_nan = np.isnan(column_values)
    has_key = ~is_nan & ~(np.isinf(column_values) & ~np.isinf(wide))
    return ConvertedValues(_distinct(column_values[has_key] + dtype.type(0)), bool(is_nan.any()))     # -0.0 + 0 is 0.0


def _of_ticks(domain: IntegerDomain, ticks: Array) -> ConvertedValues | None:
    """Return the keys for a datetime64 or timedelta64 array, converted to the column's unit without rounding."""
    logical = domain.type.logical
    if isinstance(logical, Time):
        kind = "m"
    elif isinstance(logical, Date | Timestamp) or domain.type.physical is Type.INT96:
        kind = "M"
    else:
        return None
    if ticks.dtype.kind != kind or np.isnat(ticks).any():
        return None
    unit, step = np.datetime_data(ticks.dtype)
    if kind == "M" and unit in ("Y", "M"):
        ticks, unit, step = ticks.astype("datetime64[D]"), "D", 1
    if unit not in SECONDS and unit not in FRACTIONS:
        return None
    seconds = Fraction(SECONDS[unit]) if unit in SECONDS else Fraction(1, FRACTIONS[unit])
    factor = seconds * step * _units_of_second(domain.type)
    if max(factor.numerator, factor.denominator) >> 63:
        return None
    counts = ticks.astype(np.int64)
    most = ((1 << 63) - 1) // factor.numerator      # a larger count, multiplied, is beyond every column's range
    counts = counts[(counts <= most) & (counts >= -most)] * factor.numerator
    return ConvertedValues(_within(domain, counts[counts % factor.denominator == 0] // factor.denominator))


def _units_of_second(type_: ColumnType) -> Fraction:
    """Return how many of the column's units are in a second."""
    logical = type_.logical
    if isinstance(logical, Date):
        return Fraction(1, SECONDS["D"])
    return Fraction(FRACTIONS[logical.unit if isinstance(logical, Timestamp | Time) else "ns"])


def _of_moments(domain: IntegerDomain, values: list[dt.datetime], is_utc: bool) -> ConvertedValues | None:
    """Return the keys for datetimes, or None if one of them has a time zone and the column has none, or the reverse."""
    if not is_utc and any(value.tzinfo is not None for value in values):
        return None
    epoch = _EPOCHS[is_utc]
    try:
        microseconds = [_microseconds(value - epoch) for value in values]
    except TypeError:       # a datetime without a time zone
        return None
    return _of_array(domain, np.array(microseconds, np.int64).view("datetime64[us]"))


def _of_pandas_moments(domain: IntegerDomain, values: list[Any], is_utc: bool) -> ConvertedValues | None:
    """Return the keys for pandas' Timestamps, or None if one of them has a time zone and the column has none, or the reverse."""
    if any((value.tzinfo is not None) != is_utc for value in values):
        return None
    return _of_array(domain, np.array([value.value for value in values], np.int64).view("datetime64[ns]"))


def _microseconds(duration: dt.timedelta) -> int:
    return (duration.days * SECONDS["D"] + duration.seconds) * 1_000_000 + duration.microseconds


def _microseconds_of_times(values: list[dt.time]) -> list[int] | None:
    """Return the microseconds since midnight for each time, or None if one of the times has a time zone."""
    if any(value.tzinfo is not None for value in values):
        return None
    return [((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond for value in values]


def _unscaled(values: list[Any], kind: type, scale: int, largest: int) -> list[int] | None:
    """Return the unscaled numbers for integers or decimals. A decimal that no column value can equal is left out.

    The result is None for values that have another type, and for NaN and infinity.
    """
    if kind is int:
        return [value * 10**scale for value in values]
    if kind is not decimal.Decimal or not all(value.is_finite() for value in values):
        return None
    units = []
    for value in values:
        unscaled_value = value.scaleb(scale, _EXACT)
        if abs(unscaled_value) <= largest + 1 and (unit := int(unscaled_value)) == unscaled_value:
            units.append(unit)
    return units
