"""Hive-style partition paths: ``year=2024/country=DE/part-0.parquet`` to values and back; pure, no I/O.

Names and values are escaped as by Hive and Spark; the word ``__HIVE_DEFAULT_PARTITION__`` stands for null. Paths have no types:
the type of a partition column is inferred from all its values, by Spark's rules.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal as Number
from functools import reduce
from typing import Any
from urllib.parse import unquote

import numpy as np

from fastpq.errors import SchemaError
from fastpq.schema.types import ColumnType, Date, Decimal, Integer, String, Timestamp, Type

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"

INT32_TYPE = ColumnType(Type.INT32)
INT64_TYPE = ColumnType(Type.INT64)
DOUBLE_TYPE = ColumnType(Type.DOUBLE)
DATE_TYPE = ColumnType(Type.INT32, None, Date())
TIMESTAMP_TYPE = ColumnType(Type.INT64, None, Timestamp("us", utc=False))
STRING_TYPE = ColumnType(Type.BYTE_ARRAY, None, String())

MOST_DIGITS = 38            # of a decimal in Spark
_INT32_DIGITS, _INT64_DIGITS = 10, 20       # decimal digits of a whole number beside a decimal, as Spark counts

# The texts of numbers are those of Java's Integer.parseInt, BigDecimal and Double.parseDouble.
_INTEGER = re.compile(r"[+-]?\d{1,38}")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,9})?")
_DOUBLE = re.compile(r"[\0- ]*([+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|NaN|Infinity))[fFdD]?[\0- ]*")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# without the hour 24, which Python 3.13 and later take
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} ([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?")
# Characters escaped in the names of folders by Hive and Spark; NUL as well, since no file system takes it.
_ESCAPED = re.compile("[\x00-\x1f\"#%'*/:=?\\\\\x7f{[\\]^]")


def parse_partitions(path: str) -> dict[str, str | None]:
    """Partition values in the directories of a path, as text in path order; None for the null partition.

    Args:
        path: path of a file, separated by ``/``; the last part is the file name, never a partition.

    Raises:
        SchemaError: a name used twice, or a name or value outside UTF-8.
    """
    found: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        name, equals, value = part.partition("=")
        if not equals or not name:
            continue
        key = _unescaped(name, path)
        if key in found:
            raise SchemaError(f"the partition column {key!r} is twice in the path", path=path)
        found[key] = None if value == NULL_PARTITION else _unescaped(value, path)
    return found


def format_partitions(values: Mapping[str, Any]) -> str:
    """Directories for partition values: ``name=value/name=value``, without a ``/`` at either end.

    Args:
        values: by name, outermost first: str, int, float, bool, ``decimal.Decimal``, ``datetime.date``, ``datetime.datetime``
            without a time zone, or None.

    Raises:
        SchemaError: a value of another type; empty text, unfit for a path; or the word for null as text.
    """
    return "/".join(f"{_escaped(name)}={_value_text(name, value)}" for name, value in values.items())


def infer_partition_type(values: Iterable[str | None]) -> ColumnType:
    """The type of a partition column from all its values, by Spark's rules; nulls fit each type.

    A value is INT32, INT64, DECIMAL of at most 38 digits, DOUBLE, DATE, TIMESTAMP (microseconds, without a time zone) or STRING,
    the first of these able to hold the text. ``00501`` is the number 501. Values of different types become the wider type:
    numbers the wider number, dates and timestamps TIMESTAMP, anything else STRING; also INT64 or DECIMAL beside DOUBLE, to lose
    no digits.
    """
    types = {_text_type(value) for value in values if value is not None}
    return reduce(_wider, types) if types else STRING_TYPE


def partition_value(text: str | None, type_: ColumnType, name: str) -> Any:
    """The value of a partition column from its text: int, ``decimal.Decimal``, float, datetime, date, str or None.

    Raises:
        SchemaError: the text is no value of the type, or the type is unsupported for partition columns.
    """
    if text is None:
        return None
    if type_ == STRING_TYPE:
        return text
    try:
        if type_ == DATE_TYPE:
            return dt.date.fromisoformat(text)
        if type_ == TIMESTAMP_TYPE:
            return dt.datetime.fromisoformat(text)
        if isinstance(type_.logical, Decimal):
            return Number(text)
        if type_ == DOUBLE_TYPE:
            return _double(text)
        if type_.physical in (Type.INT32, Type.INT64) and (type_.logical is None or isinstance(type_.logical, Integer)):
            return int(text)
    except (ValueError, ArithmeticError):
        raise SchemaError(f"the partition value {text!r} is no {type_}", column=name) from None
    raise SchemaError(f"a partition column is of numbers, dates, timestamps or strings, not {type_}", column=name)


def _text_type(text: str) -> ColumnType:
    """The type of one value."""
    if _INTEGER.fullmatch(text):
        number = int(text)
        for type_, bound in ((INT32_TYPE, 1 << 31), (INT64_TYPE, 1 << 63)):
            if -bound <= number < bound:
                return type_
    if _NUMBER.fullmatch(text):
        _, digits, exponent = Number(text).as_tuple()
        assert isinstance(exponent, int)
        if 0 <= exponent <= MOST_DIGITS - (length := len(digits)):
            return _decimal(length + exponent)
    if _DOUBLE.fullmatch(text):
        return DOUBLE_TYPE
    if _is_in_iso_format(text, _TIMESTAMP):
        return TIMESTAMP_TYPE
    return DATE_TYPE if _is_in_iso_format(text, _DATE) else STRING_TYPE


def _wider(one: ColumnType, other: ColumnType) -> ColumnType:
    """The type for values of two types."""
    types = {one, other}
    if len(types) == 1:
        return one
    for smaller, wider in ((INT32_TYPE, INT64_TYPE), (INT32_TYPE, DOUBLE_TYPE), (DATE_TYPE, TIMESTAMP_TYPE)):
        if types == {smaller, wider}:
            return wider
    digits = [_digits(type_) for type_ in types]
    return _decimal(max(digits)) if min(digits) else STRING_TYPE


def _digits(type_: ColumnType) -> int:
    """Decimal digits of a whole number's type; 0 for other types."""
    if isinstance(type_.logical, Decimal):
        return type_.logical.precision
    return {INT32_TYPE: _INT32_DIGITS, INT64_TYPE: _INT64_DIGITS}.get(type_, 0)


def _decimal(digits: int) -> ColumnType:
    return ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16, Decimal(digits, 0))


def _double(text: str) -> float:
    match = _DOUBLE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return float(match[1])


def _is_in_iso_format(text: str, pattern: re.Pattern[str]) -> bool:
    if not pattern.fullmatch(text):
        return False
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _value_text(name: str, value: Any) -> str:
    match value:
        case None:
            return NULL_PARTITION
        case bool():
            return "true" if value else "false"
        case float() | np.floating():
            return _float_text(value)
        case dt.datetime(tzinfo=None):
            return _escaped(value.isoformat(" ").rstrip("0") if value.microsecond else value.isoformat(" "))
        case dt.datetime():
            raise SchemaError("the text of an instant depends on a time zone: write a date or a local time", column=name)
        case Number():
            return format(value, "f")
        case int() | dt.date():
            return str(value)
        case str():
            if value in ("", NULL_PARTITION):
                raise SchemaError(f"{value!r} cannot be told from null in the name of a directory", column=name)
            if not value.isprintable() and any("\ud800" <= character <= "\udfff" for character in value):
                raise SchemaError(f"{value!r} has no form in UTF-8", column=name)
            return _escaped(value)
    raise SchemaError(f"a partition value is a str, number, bool, date or datetime, not a {type(value).__name__}", column=name)


def _float_text(value: float | np.floating[Any]) -> str:
    """The shortest text of a number with a point: Spark takes 1e16 for a whole number."""
    text = str(value).replace("inf", "Infinity").replace("nan", "NaN")
    exponent = text.partition("e+")[2]
    return f"{format(Number(text), 'f')}.0" if exponent and int(exponent) < MOST_DIGITS else text


def _escaped(text: str) -> str:
    if not text.strip("."):     # ".." would mean another directory
        return text.replace(".", "%2E")
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def _unescaped(text: str, path: str) -> str:
    """The text of an escaped name or value; percent-encoded UTF-8 is read as well, as other writers escape."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise SchemaError(f"{text!r} is not UTF-8", path=path) from None
