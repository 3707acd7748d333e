"""Domains of column types: filter values, statistics and stored values converted to keys of one order.

A key is a Python integer (integers, unscaled decimals, booleans, and dates and times counted in the column's unit), bytes (text,
binaries, UUIDs), or a pair for a float. Pairs sort as SQL sorts floats: NaN equals NaN and is above all numbers, and -0.0 equals
0.0. Conversions are exact, except of filter values on float columns, which are rounded.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np

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
    Unknown,
    Uuid,
)

Ordering = Literal["<", "<=", ">", ">="]
SortKey = Any       # int, bytes, or a pair for a float; comparable with keys of the same domain

NAN = (1, 0.0)  # the key of NaN; the key of a number is (0, number)

_SECONDS = {"W": 604_800, "D": 86_400, "h": 3600, "m": 60, "s": 1}
_FRACTIONS = {"ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}
_EPOCH = dt.datetime(1970, 1, 1)
_NUMBERS = ColumnType(Type.INT64)


@dataclass(frozen=True, slots=True)
class Domain:
    """The ordered set of values of a column type; converts filter values and stored bounds to keys, keys to encodings.

    Attributes:
        type: the column type.
    """

    type: ColumnType

    def compared(self, ordering: Ordering, value: Any) -> tuple[Ordering, SortKey] | bool:
        """An equivalent comparison with a key, for a comparison with a filter's value; True if all values pass, False if none.

        Raises:
            SchemaError: the value does not fit the column.
        """
        raise NotImplementedError

    def equal(self, value: Any) -> SortKey | None:
        """The key of a filter's value; None where no value of the column can equal the filter's value.

        Raises:
            SchemaError: the value does not fit the column.
        """
        raise NotImplementedError

    def of_bound(self, stored: bytes) -> SortKey | None:
        """The key of a bound as stored in statistics; None for bytes that are no value of the column."""
        raise NotImplementedError

    def stored(self, key: SortKey) -> list[bytes] | None:
        """All PLAIN encodings of a key in files, for looking up bloom filters; None where unknown."""
        return None

    def refuse(self, value: Any) -> SchemaError:
        from fastpq.filters.misfits import refused_value
        return refused_value(value, self.type)


@dataclass(frozen=True, slots=True)
class IntegerDomain(Domain):
    """Integers, booleans, unscaled decimals, and dates and times counted in the column's unit.

    Attributes:
        exact: converts a filter's value to a number of units; None for a value of another type.
        smallest, largest: bounds of the keys.
        width: bytes of a stored bound; None for decimals of any length, stored with the highest byte first.
    """

    exact: Callable[[Any], Fraction | int | None]
    smallest: int
    largest: int
    width: int | None

    def compared(self, ordering: Ordering, value: Any) -> tuple[Ordering, SortKey] | bool:
        number = self._number(value)
        if ordering in ("<", ">="):
            key = math.ceil(number)
        else:
            key = math.floor(number)
        if key < self.smallest:
            return ordering in (">", ">=")
        if key > self.largest:
            return ordering in ("<", "<=")
        return ordering, key

    def equal(self, value: Any) -> SortKey | None:
        number = self._number(value)
        if number.denominator != 1 or not self.smallest <= number <= self.largest:
            return None
        return int(number)

    def of_bound(self, stored: bytes) -> SortKey | None:
        if self.width is None:
            key = int.from_bytes(stored, "big", signed=True)
        elif len(stored) == self.width:
            key = int.from_bytes(stored, "little", signed=self.smallest < 0)
        else:
            return None
        # Values of 8 and 16 bits are read from the low bits of a stored INT32. A bound beyond the range is no value's bound.
        return key if self.smallest <= key <= self.largest else None

    def stored(self, key: SortKey) -> list[bytes] | None:
        physical, logical = self.type.physical, self.type.logical
        if physical in (Type.BOOLEAN, Type.INT96, Type.BYTE_ARRAY):
            return None     # in turn: stored as bits; several encodings of one instant; leading sign bytes
        if isinstance(logical, Integer) and logical.bit_width < 32:
            return None     # the bits above bit_width in the file are unknown
        if physical == Type.FIXED_LEN_BYTE_ARRAY:
            width = self.type.length or 0
            return [key.to_bytes(width, "big", signed=True)] if key.bit_length() < 8 * width else None
        return [key.to_bytes(_WIDTHS[physical], "little", signed=self.smallest < 0)]

    def _number(self, value: Any) -> Fraction | int:
        number = self.exact(value)
        if number is None:
            raise self.refuse(value)
        return number


# Texts of dates, and of moments without a time zone.
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(_DATE.pattern + r"[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?")
_WIDTHS = {Type.BOOLEAN: 1, Type.INT32: 4, Type.INT64: 8}
_NO_BOUNDS = -1     # width of INT96, so that no bound fits: statistics of INT96 are in no defined order


@dataclass(frozen=True, slots=True)
class FloatDomain(Domain):
    """Floats: a filter's value is rounded to the column's precision."""

    def compared(self, ordering: Ordering, value: Any) -> tuple[Ordering, SortKey] | bool:
        number, overflowed = self._rounded(value)
        if overflowed:      # beyond every finite number, but not infinite
            outside: Ordering = "<" if ordering in ("<", "<=") else ">="
            if number < 0:
                outside = "<=" if ordering in ("<", "<=") else ">"
            return outside, (0, number)
        return ordering, float_key(number)

    def equal(self, value: Any) -> SortKey | None:
        number, overflowed = self._rounded(value)
        return None if overflowed else float_key(number)

    def of_bound(self, stored: bytes) -> SortKey | None:
        code = _FLOAT_CODES[self._dtype.itemsize]
        if len(stored) != self._dtype.itemsize:
            return None
        (number,) = struct.unpack(code, stored)
        return None if math.isnan(number) else (0, number)

    def stored(self, key: SortKey) -> list[bytes] | None:
        if key == NAN:
            return None     # NaN has many encodings
        numbers = (0.0, -0.0) if key[1] == 0 else (key[1],)
        return [struct.pack(_FLOAT_CODES[self._dtype.itemsize], number) for number in numbers]

    @property
    def _dtype(self) -> np.dtype[Any]:
        dtype = self.type.dtype
        assert dtype is not None
        return dtype

    def _rounded(self, value: Any) -> tuple[float, bool]:
        """The nearest value of the column, and whether rounding made a finite filter value infinite."""
        if isinstance(value, bool | np.bool_ | np.timedelta64) or not isinstance(
            value, int | float | np.integer | np.floating | decimal.Decimal | Fraction
        ):
            raise self.refuse(value)
        try:
            wide = float(value)
        except OverflowError:
            return (math.inf if value > 0 else -math.inf), True
        except ValueError:
            raise self.refuse(value) from None
        with np.errstate(over="ignore"):
            rounded = float(self._dtype.type(wide))
        return rounded, math.isinf(rounded) and not math.isinf(wide)


_FLOAT_CODES = {2: "<e", 4: "<f", 8: "<d"}


def float_key(number: float) -> SortKey:
    """The key of a float."""
    return NAN if math.isnan(number) else (0, number)


@dataclass(frozen=True, slots=True)
class BytesDomain(Domain):
    """Text and bytes, compared byte by byte; a prefix sorts before longer values.

    Attributes:
        to_bytes: converts a filter's value; None for a value of another type.
    """

    to_bytes: Callable[[Any], bytes | None]

    def compared(self, ordering: Ordering, value: Any) -> tuple[Ordering, SortKey] | bool:
        key, width = self._bytes(value), self.type.length
        if width is None or len(key) == width:
            return ordering, key
        if len(key) < width:    # no value equals the key; the first value above the key is the key with zeros appended
            return "<" if ordering in ("<", "<=") else ">=", key.ljust(width, b"\0")
        return "<=" if ordering in ("<", "<=") else ">", key[:width]

    def equal(self, value: Any) -> SortKey | None:
        key, width = self._bytes(value), self.type.length
        return key if width is None or len(key) == width else None

    def of_bound(self, stored: bytes) -> SortKey | None:
        return stored

    def stored(self, key: SortKey) -> list[bytes] | None:
        return [key]

    def _bytes(self, value: Any) -> bytes:
        key = self.to_bytes(value)
        if key is None:
            raise self.refuse(value)
        return key


@dataclass(frozen=True, slots=True)
class NoDomain(Domain):
    """The domain of always-null columns, and of intervals, which have no order; filters may only test for null."""

    def compared(self, ordering: Ordering, value: Any) -> tuple[Ordering, SortKey] | bool:
        raise self.refuse(value)

    def equal(self, value: Any) -> SortKey | None:
        raise self.refuse(value)

    def of_bound(self, stored: bytes) -> SortKey | None:
        return None


@lru_cache(maxsize=1024)
def domain_of(column_type: ColumnType) -> Domain:
    """The domain of a column type."""
    physical, logical = column_type.physical, column_type.logical
    if isinstance(logical, Unknown | Interval):
        return NoDomain(column_type)
    if physical in (Type.FLOAT, Type.DOUBLE) or isinstance(logical, Float16):
        return FloatDomain(column_type)
    if isinstance(logical, Decimal):
        bits = 8 * (column_type.dtype.itemsize if column_type.dtype is not None else 0)
        width = _WIDTHS.get(physical)
        return IntegerDomain(column_type, _decimal_of(logical.scale), -(1 << bits - 1), (1 << bits - 1) - 1, width)
    if physical == Type.BOOLEAN:
        return IntegerDomain(column_type, _boolean, 0, 1, _WIDTHS[physical])
    if physical in (Type.INT32, Type.INT64, Type.INT96):
        dtype = column_type.dtype
        assert dtype is not None
        limits, width = np.iinfo(dtype), _WIDTHS.get(physical, _NO_BOUNDS)
        return IntegerDomain(column_type, _counting(column_type), int(limits.min), int(limits.max), width)
    if isinstance(logical, Uuid):
        return BytesDomain(column_type, _uuid)
    if column_type.is_text:
        return BytesDomain(column_type, _text)
    # Old writers do not annotate text: a BYTE_ARRAY column without annotation takes text, too.
    return BytesDomain(column_type, _text_or_bytes if logical is None and physical == Type.BYTE_ARRAY else _bytes)


def domain_of_durations(unit_of: Callable[[], str | None]) -> Domain:
    """The domain of a column of INT64 numbers, which are durations if they have a unit: filters give durations or numbers.

    Args:
        unit_of: returns the unit, ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``; None for numbers. Called for durations in filters.
    """

    def exact(value: Any) -> Fraction | int | None:
        if not isinstance(value, dt.timedelta | np.timedelta64):
            return _number(value)
        unit = unit_of()
        return None if unit is None else _in_seconds(_time_seconds(value), _FRACTIONS.get(unit, 1))

    return IntegerDomain(_NUMBERS, exact, -(1 << 63), (1 << 63) - 1, _WIDTHS[Type.INT64])


def _counting(column_type: ColumnType) -> Callable[[Any], Fraction | int | None]:
    match column_type.logical:
        case Date():
            return lambda value: _in_seconds(_date_seconds(value, None), Fraction(1, 86_400))
        case Timestamp(unit, utc):
            return lambda value: _in_seconds(_date_seconds(value, utc), _FRACTIONS[unit])
        case Time(unit):
            return lambda value: _in_seconds(_time_seconds(value), _FRACTIONS[unit])
    if column_type.physical == Type.INT96:
        return lambda value: _in_seconds(_date_seconds(value, False), _FRACTIONS["ns"])
    return _number


def _in_seconds(seconds: Fraction | int | None, units: Fraction | int) -> Fraction | int | None:
    return None if seconds is None else seconds * units


def _number(value: Any) -> Fraction | int | None:
    match value:
        case bool() | np.bool_() | np.timedelta64():
            return None
        case int() | Fraction():
            return value
        case np.integer():
            return int(value)
        case float() | np.floating() | decimal.Decimal() if math.isfinite(value):
            return Fraction(value if isinstance(value, decimal.Decimal) else float(value))
    return None


def _decimal_of(scale: int) -> Callable[[Any], Fraction | int | None]:
    def unscaled(value: Any) -> Fraction | int | None:
        if isinstance(value, float | np.floating):
            return None     # the float 0.1 differs from 0.1; filters must use decimal.Decimal("0.1")
        number = _number(value)
        return None if number is None else number * 10**scale

    return unscaled


def _boolean(value: Any) -> int | None:
    return int(value) if isinstance(value, bool | np.bool_) else None


def _text(value: Any) -> bytes | None:
    if not isinstance(value, str):
        return None
    try:
        return value.encode()
    except UnicodeEncodeError:
        return None


def _bytes(value: Any) -> bytes | None:
    if isinstance(value, np.void):
        return value.tobytes()
    return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else None


def _text_or_bytes(value: Any) -> bytes | None:
    return _text(value) if isinstance(value, str) else _bytes(value)


def _uuid(value: Any) -> bytes | None:
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, str):
        try:
            return uuid.UUID(value).bytes
        except ValueError:
            return None
    raw = _bytes(value)
    return raw if raw is not None and len(raw) == 16 else None


def _date_seconds(value: Any, utc: bool | None) -> Fraction | int | None:
    """Seconds since 1970-01-01 of a date or a moment; None for a value of another type.

    Args:
        value: datetime.date, datetime.datetime, numpy.datetime64, or a text in ISO 8601. A datetime64 has no time zone and fits
            all columns.
        utc: whether a datetime.datetime or a text with a time must have a time zone (True) or none (False, None).
    """
    if isinstance(value, str):
        return _text_seconds(value, utc)
    if isinstance(value, np.datetime64):
        return _numpy_seconds(value)
    if isinstance(value, dt.datetime):
        if value != value or (value.utcoffset() is not None) != bool(utc):      # pandas' NaT refuses utcoffset
            return None
        return _delta_seconds(value - (_EPOCH.replace(tzinfo=dt.UTC) if utc else _EPOCH))
    if isinstance(value, dt.date):
        return (value - _EPOCH.date()).days * 86_400
    return None


def _text_seconds(text: str, utc: bool | None) -> Fraction | int | None:
    """As ``_date_seconds``, of a date or a moment in ISO 8601; digits beyond microseconds count in texts without a zone."""
    try:
        if _DATE.fullmatch(text):
            return _date_seconds(dt.date.fromisoformat(text), utc)
        if _MOMENT.fullmatch(text) and not utc:
            return _numpy_seconds(np.datetime64(text.replace(" ", "T")))
        return _date_seconds(dt.datetime.fromisoformat(text), utc)
    except ValueError:
        return None


def _time_seconds(value: Any) -> Fraction | int | None:
    """Seconds since midnight; None for a value of another type."""
    match value:
        case np.timedelta64():
            return _numpy_seconds(value)
        case dt.timedelta():
            return _delta_seconds(value)
        case str():
            try:
                return _time_seconds(dt.time.fromisoformat(value))
            except ValueError:
                return None
        case dt.time() if value.tzinfo is None:
            return ((value.hour * 60 + value.minute) * 60 + value.second) + Fraction(value.microsecond, 10**6)
    return None


def _delta_seconds(delta: dt.timedelta) -> Fraction:
    nanoseconds = getattr(delta, "nanoseconds", 0)      # of pandas' Timedelta
    return delta.days * 86_400 + delta.seconds + Fraction(delta.microseconds * 1000 + nanoseconds, 10**9)


def _numpy_seconds(value: np.datetime64 | np.timedelta64) -> Fraction | int | None:
    unit, step = np.datetime_data(value.dtype)
    if np.isnat(value) or unit == "generic":
        return None
    if unit in ("Y", "M"):
        if isinstance(value, np.timedelta64):
            return None
        value, unit, step = value.astype("datetime64[D]"), "D", 1
    ticks = int(value.astype(np.int64)) * step
    return ticks * _SECONDS[unit] if unit in _SECONDS else Fraction(ticks, _FRACTIONS[unit])
