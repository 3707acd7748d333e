"""Domains of column types. They convert filter values, statistics and stored values to keys that can be compared.

A key is a Python integer (for integers, unscaled decimals, booleans, and dates and times counted in the column's unit), bytes
(for text, binaries, UUIDs), or a pair for a float. Pairs sort as SQL sorts floats: NaN equals NaN and is above all numbers, and
-0.0 equals 0.0. All conversions are exact but one: filter values on float columns are rounded.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
import struct
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Sized
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from fastpq.common.display import shorten
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
SortKey = Any       # int, bytes, or a pair for a float. Only keys in the same domain can be compared.

MOST_SHOWN = 100        # an error message shows at most this many characters of a value
NAN = (1, 0.0)  # NaN's key. A number's key is (0, number).

# Seconds in a unit, then units in a second.
SECONDS = {"W": 604_800, "D": 86_400, "h": 3600, "m": 60, "s": 1}
FRACTIONS = {"ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}
_EPOCH = dt.datetime(1970, 1, 1)
_NUMBERS = ColumnType(Type.INT64)


@dataclass(frozen=True, slots=True)
class Domain(ABC):
    """The ordered values that a column type has. It converts filter values and stored bounds to keys, and keys to encodings.

    Attributes:
        type: the column type.
    """

    type: ColumnType

    @abstractmethod
    def compared(self, ordering: Ordering, value: Any) -> tuple[Ordering, SortKey] | bool:
        """Return what a comparison with a filter's value means for the sort keys of the column's values.

        For example ``< 2.5`` on integers is ``< 3``.

        Returns:
            The ordering and the sort key to compare with, or True if all values pass, or False if no value does.

        Raises:
            SchemaError: the value does not fit the column.
        """

    @abstractmethod
    def equal(self, value: Any) -> SortKey | None:
        """Return the sort key that equal column values have, or None if no column value can equal the filter's value.

        Raises:
            SchemaError: the value does not fit the column.
        """

    @abstractmethod
    def of_bound(self, bound: bytes) -> SortKey | None:
        """Return the sort key of a bound that statistics store, or None for bytes that cannot be a column value."""

    def stored(self, key: SortKey) -> list[bytes] | None:
        """Return all PLAIN encodings of the values with a sort key, for bloom filters, or None if they are unknown."""
        return None

    def refuse(self, value: Any) -> SchemaError:
        return refused_value(value, self.type)


@dataclass(frozen=True, slots=True)
class IntegerDomain(Domain):
    """Integers, booleans, unscaled decimals, and dates and times counted in the column's unit.

    Attributes:
        exact: converts a filter's value to a number of units, or to None if the value has another type.
        smallest, largest: the smallest and the largest possible key.
        width: bytes in a stored bound. None for decimals that may have any length. These are stored with the highest byte first.
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

    def of_bound(self, bound: bytes) -> SortKey | None:
        if self.width is None:
            key = int.from_bytes(bound, "big", signed=True)
        elif len(bound) == self.width:
            key = int.from_bytes(bound, "little", signed=self.smallest < 0)
        else:
            return None
        # Values with 8 or 16 bits are read from the low bits of a stored INT32. A bound beyond their range bounds no value.
        return key if self.smallest <= key <= self.largest else None

    def stored(self, key: SortKey) -> list[bytes] | None:
        physical, logical = self.type.physical, self.type.logical
        if physical in (Type.BOOLEAN, Type.INT96, Type.BYTE_ARRAY):
            # A BOOLEAN is stored as a bit, an INT96 instant has several encodings, a BYTE_ARRAY decimal may have more sign bytes.
            return None
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


# Dates as text, and moments without a time zone as text.
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(_DATE.pattern + r"[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?")
_WIDTHS = {Type.BOOLEAN: 1, Type.INT32: 4, Type.INT64: 8}
_NO_BOUNDS = -1     # the width for INT96, so that no bound fits: INT96 statistics have no defined order


@dataclass(frozen=True, slots=True)
class FloatDomain(Domain):
    """Floats. A filter's value is rounded to the column's precision."""

    def compared(self, ordering: Ordering, value: Any) -> tuple[Ordering, SortKey] | bool:
        number, has_overflow = self._rounded(value)
        if has_overflow:      # the value is beyond the column's finite numbers, but not infinite
            outside: Ordering = "<" if ordering in ("<", "<=") else ">="
            if number < 0:
                outside = "<=" if ordering in ("<", "<=") else ">"
            return outside, (0, number)
        return ordering, float_key(number)

    def equal(self, value: Any) -> SortKey | None:
        number, has_overflow = self._rounded(value)
        return None if has_overflow else float_key(number)

    def of_bound(self, bound: bytes) -> SortKey | None:
        code = _FLOAT_CODES[self._dtype.itemsize]
        if len(bound) != self._dtype.itemsize:
            return None
        (number,) = struct.unpack(code, bound)
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
        """Return the nearest column value, and whether rounding made a finite value infinite."""
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
            nearest = float(self._dtype.type(wide))
        return nearest, math.isinf(nearest) and not math.isinf(wide)


_FLOAT_CODES = {2: "<e", 4: "<f", 8: "<d"}


def float_key(number: float) -> SortKey:
    """Return a float's key."""
    return NAN if math.isnan(number) else (0, number)


@dataclass(frozen=True, slots=True)
class BytesDomain(Domain):
    """Text and bytes, compared byte by byte. A prefix comes before longer values.

    Attributes:
        to_bytes: converts a filter's value, or returns None if the value has another type.
    """

    to_bytes: Callable[[Any], bytes | None]

    def compared(self, ordering: Ordering, value: Any) -> tuple[Ordering, SortKey] | bool:
        key, width = self._bytes(value), self.type.length
        if width is None or len(key) == width:
            return ordering, key
        if len(key) < width:    # No value equals the key. The first value above it is the key with zeros appended.
            return "<" if ordering in ("<", "<=") else ">=", key.ljust(width, b"\0")
        return "<=" if ordering in ("<", "<=") else ">", key[:width]

    def equal(self, value: Any) -> SortKey | None:
        key, width = self._bytes(value), self.type.length
        return key if width is None or len(key) == width else None

    def of_bound(self, bound: bytes) -> SortKey | None:
        return bound

    def stored(self, key: SortKey) -> list[bytes] | None:
        return [key]

    def _bytes(self, value: Any) -> bytes:
        key = self.to_bytes(value)
        if key is None:
            raise self.refuse(value)
        return key


@dataclass(frozen=True, slots=True)
class NoDomain(Domain):
    """The domain for always-null columns, and for intervals and stored INT96 values, which have no order.

    Filters can only test them for null.
    """

    def compared(self, ordering: Ordering, value: Any) -> tuple[Ordering, SortKey] | bool:
        raise self.refuse(value)

    def equal(self, value: Any) -> SortKey | None:
        raise self.refuse(value)

    def of_bound(self, bound: bytes) -> SortKey | None:
        return None


@lru_cache(maxsize=1024)
def domain_of(column_type: ColumnType) -> Domain:
    """Return the domain for a column type."""
    physical, logical = column_type.physical, column_type.logical
    if isinstance(logical, Unknown | Interval) or (physical is Type.INT96 and column_type.length is not None):
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
        return BytesDomain(column_type, uuid_to_bytes)
    if column_type.is_text:
        return BytesDomain(column_type, text_to_bytes)
    # Old writers do not annotate text. A BYTE_ARRAY column without annotation therefore takes text, too.
    takes_text = logical is None and physical == Type.BYTE_ARRAY
    return BytesDomain(column_type, text_or_binary_to_bytes if takes_text else binary_to_bytes)


def domain_of_durations(unit_of: Callable[[], str | None]) -> Domain:
    """Return the domain for an INT64 column that may hold durations. Filters on it give durations or numbers.

    Args:
        unit_of: returns the durations' unit, ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``, or None if the column holds plain numbers.
            It is called only if a filter gives a duration.
    """

    def exact(value: Any) -> Fraction | int | None:
        if not isinstance(value, dt.timedelta | np.timedelta64):
            return _number(value)
        unit = unit_of()
        return None if unit is None else _in_seconds(_time_seconds(value), FRACTIONS.get(unit, 1))

    return IntegerDomain(_NUMBERS, exact, -(1 << 63), (1 << 63) - 1, _WIDTHS[Type.INT64])


def _counting(column_type: ColumnType) -> Callable[[Any], Fraction | int | None]:
    match column_type.logical:
        case Date():
            return lambda value: _in_seconds(_date_seconds(value, None), Fraction(1, 86_400))
        case Timestamp(unit, utc):
            return lambda value: _in_seconds(_date_seconds(value, utc), FRACTIONS[unit])
        case Time(unit):
            return lambda value: _in_seconds(_time_seconds(value), FRACTIONS[unit])
    if column_type.physical == Type.INT96:
        return lambda value: _in_seconds(_date_seconds(value, False), FRACTIONS["ns"])
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
            return None     # The float 0.1 is not exactly 0.1. Filters must use decimal.Decimal("0.1").
        number = _number(value)
        return None if number is None else number * 10**scale

    return unscaled


def _boolean(value: Any) -> int | None:
    return int(value) if isinstance(value, bool | np.bool_) else None


def text_to_bytes(value: Any) -> bytes | None:
    if not isinstance(value, str):
        return None
    try:
        return value.encode()
    except UnicodeEncodeError:
        return None


def binary_to_bytes(value: Any) -> bytes | None:
    if isinstance(value, np.void):
        return value.tobytes()
    return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else None


def text_or_binary_to_bytes(value: Any) -> bytes | None:
    return text_to_bytes(value) if isinstance(value, str) else binary_to_bytes(value)


def uuid_to_bytes(value: Any) -> bytes | None:
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, str):
        try:
            return uuid.UUID(value).bytes
        except ValueError:
            return None
    raw = binary_to_bytes(value)
    return raw if raw is not None and len(raw) == 16 else None


def _date_seconds(value: Any, utc: bool | None) -> Fraction | int | None:
    """Return the seconds from 1970-01-01 to a date or a moment, or None for a value that has another type.

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
    """Like ``_date_seconds``, for text in ISO 8601. Text without a time zone may have digits beyond microseconds."""
    try:
        if _DATE.fullmatch(text):
            return _date_seconds(dt.date.fromisoformat(text), utc)
        if _MOMENT.fullmatch(text) and not utc:
            return _numpy_seconds(np.datetime64(text.replace(" ", "T")))
        return _date_seconds(dt.datetime.fromisoformat(text), utc)
    except ValueError:
        return None


def _time_seconds(value: Any) -> Fraction | int | None:
    """Return a time's seconds since midnight or a duration's seconds, or None for a value that has another type."""
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
    nanoseconds = getattr(delta, "nanoseconds", 0)      # pandas' Timedelta has them
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
    return ticks * SECONDS[unit] if unit in SECONDS else Fraction(ticks, FRACTIONS[unit])


def refused_value(value: Any, type_: ColumnType) -> SchemaError:
    """Return the error for a filter's value that does not fit a column.

    Args:
        value: the value as the caller gave it.
        type_: the column type.
    """
    kind = type(value).__name__
    if isinstance(value, Sized) and not isinstance(value, str | bytes | bytearray | memoryview):
        return SchemaError(f"{kind} does not fit a column of {type_}: give one value, or a list of values to 'in'")
    text = shorten(repr(value), MOST_SHOWN)
    description = text if text.partition("(")[0].rpartition(".")[2] == kind else f"{kind} {text}"
    hint = _hint(value, type_)
    return SchemaError(f"{description} does not fit a column of {type_}{hint and ': '}{hint}")


def _hint(value: Any, type_: ColumnType) -> str:
    if type_.physical is Type.INT96 and type_.length is not None:
        return 'coerce_int96_timestamp_unit="stored" gives bytes, which have no order'
    if isinstance(type_.logical, Decimal) and isinstance(value, float | np.floating) and math.isfinite(value):
        return f'floats are rarely exact, so give Decimal("{float(value)}")'
    if isinstance(type_.logical, Timestamp) or type_.physical is Type.INT96:
        has_zone = isinstance(type_.logical, Timestamp) and type_.logical.utc
        if isinstance(value, dt.datetime) and value == value:       # not pandas' NaT
            return _zone_hint(value, has_zone)
        if isinstance(value, str):
            return f'give a moment as text, for example "2024-01-31 10:00{"Z" if has_zone else ""}", or a datetime'
    return ""


def _zone_hint(value: dt.datetime, has_zone: bool) -> str:
    of_pandas = hasattr(value, "tz_localize")
    if has_zone and value.tzinfo is None:
        way = 'tz_localize("UTC")' if of_pandas else "replace(tzinfo=datetime.UTC)"
        return f"its moments have a time zone, so give value.{way}, or another zone"
    if value.tzinfo is not None and not has_zone:
        return f"its moments have no time zone, so give value.{'tz_localize(None)' if of_pandas else 'replace(tzinfo=None)'}"
    return ""
