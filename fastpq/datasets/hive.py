"""Converts Hive-style partition paths such as ``year=2024/country=DE/part-0.parquet`` to values, and back. It does no I/O.

Names and values are escaped as Hive and Spark do it. The word ``__HIVE_DEFAULT_PARTITION__`` means null. Paths have no types.
Therefore a partition column's type is inferred from all its values, by Spark's rules.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal as Number
from functools import reduce
from typing import Any, TypeAlias
from urllib.parse import unquote

import numpy as np

from fastpq.errors import SchemaError
from fastpq.schema.types import ColumnType, Date, Decimal, Integer, String, Timestamp, Type

Partitioning: TypeAlias = str | Sequence[str] | None      # how readers take partitions from paths, as for ParquetDataset
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"

INT32_TYPE = ColumnType(Type.INT32)
INT64_TYPE = ColumnType(Type.INT64)
DOUBLE_TYPE = ColumnType(Type.DOUBLE)
DATE_TYPE = ColumnType(Type.INT32, None, Date())
TIMESTAMP_TYPE = ColumnType(Type.INT64, None, Timestamp("us", utc=False))
STRING_TYPE = ColumnType(Type.BYTE_ARRAY, None, String())

MOST_DIGITS = 38            # largest number of digits that a decimal has in Spark
_INT32_DIGITS, _INT64_DIGITS = 10, 20       # decimal digits that Spark counts for INT32 and INT64 values next to decimals

# A text is a number if Java's Integer.parseInt, BigDecimal or Double.parseDouble accepts it.
_INTEGER = re.compile(r"[+-]?\d{1,38}")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,9})?")
_DOUBLE = re.compile(r"[\0- ]*([+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|NaN|Infinity))[fFdD]?[\0- ]*")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# The hour 24 is left out: Python 3.13 and later accept it.
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} ([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?")
# Characters that Hive and Spark escape in folder names, and NUL, which no file system accepts.
_ESCAPED = re.compile("[\x00-\x1f\"#%'*/:=?\\\\\x7f{[\\]^]")


def parse_partitions(path: str) -> dict[str, str | None]:
    """Return the partition values in a path's directory names, as text, in path order. None stands for null.

    Args:
        path: file path, separated by ``/``. Its last part is the file name and not a partition.

    Raises:
        SchemaError: a name is used twice, or a name or a value is not UTF-8.
    """
    partitions: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        name, equals, value = part.partition("=")
        if not equals or not name:
            continue
        key = _unescaped(name, path)
        if key in partitions:
            raise SchemaError(f"the path has the partition column {key!r} twice", path=path)
        partitions[key] = None if value == NULL_PARTITION else _unescaped(value, path)
    return partitions


def format_partitions(values: Mapping[str, Any]) -> str:
    """Return the directory path for partition values, for example ``year=2024/country=DE``.

    Args:
        values: values by name, outermost first. A value is a str, int, float, bool, ``decimal.Decimal``, ``datetime.date``,
            ``datetime.datetime`` without a time zone, or None.

    Raises:
        SchemaError: a value has another type, is empty text, which a path cannot hold, or is the word that means null.
    """
    return "/".join(f"{_escaped(name)}={_value_text(name, value)}" for name, value in values.items())


def parse_directories(path: str, names: Sequence[str]) -> dict[str, str | None]:
    """Return the partition values in directory names that are values alone, as text. Directories that are missing are nulls.

    Args:
        path: file path below the dataset's folder, separated by ``/``. Its last part is the file name.
        names: names of the partition columns, outermost first.

    Raises:
        SchemaError: the path has more directories than there are names, or a value is not UTF-8.
    """
    parts = path.split("/")[:-1]
    if len(parts) > len(names):
        raise SchemaError(f"the path has {len(parts)} directories, and partitioning names {len(names)}: {list(names)}", path=path)
    values = [_unescaped(part, path) for part in parts]
    return dict(zip(names, [*values, *[None] * (len(names) - len(values))], strict=True))


def names_of_directories(partitioning: Partitioning) -> list[str] | None:
    """Return the partition columns that ``partitioning`` names, or None if they are in the paths or if there are none.

    Raises:
        ValueError: ``partitioning`` is something else.
    """
    if partitioning is None or partitioning == "hive":
        return None
    is_list = isinstance(partitioning, list | tuple) and all(isinstance(name, str) for name in partitioning)
    if not is_list or len(set(partitioning)) < len(partitioning):
        raise ValueError(f'partitioning must be "hive", a list of different names or None, not {partitioning!r}')
    return list(partitioning)


def format_directories(values: Mapping[str, Any]) -> str:
    """Return the directory path for partition values without names, for example ``2024/DE``.

    Args:
        values: as for ``format_partitions``.

    Raises:
        SchemaError: as in ``format_partitions``, or readers would skip the directory. This is so for null too.
    """
    texts = [_value_text(name, value) for name, value in values.items()]
    for name, text in zip(values, texts, strict=True):
        if text[:1] in ("_", "."):
            raise SchemaError(f"readers skip a directory whose name begins with {text[:1]!r}: {text!r}", column=name)
    return "/".join(texts)


def infer_partition_type(values: Iterable[str | None]) -> ColumnType:
    """Infer a partition column's type from all its values, by Spark's rules. Nulls fit every type.

    A value has the first of these types that can hold its text: INT32, INT64, DECIMAL with at most 38 digits, DOUBLE, DATE,
    TIMESTAMP (microseconds, without a time zone), STRING. ``00501`` is the number 501. If values have different types, the
    column gets a wider type: the wider number for numbers, TIMESTAMP for dates and timestamps, and STRING for anything else.
    INT64 or DECIMAL next to DOUBLE also become STRING, so that no digits are lost.
    """
    types = {_text_type(value) for value in values if value is not None}
    return reduce(_wider, types) if types else STRING_TYPE


def partition_value(text: str | None, type_: ColumnType, name: str) -> Any:
    """Return a partition value for its text: an int, ``decimal.Decimal``, float, datetime, date, str or None.

    Raises:
        SchemaError: the text is not a value of this type, or partition columns cannot have this type.
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
        raise SchemaError(f"the partition value {text!r} does not fit a column of {type_}", column=name) from None
    raise SchemaError(f"a partition column has numbers, dates, timestamps or strings, not {type_}", column=name)


def _text_type(text: str) -> ColumnType:
    """Return the type that one value has by itself."""
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
    """Return the type for a column that has values of both types."""
    types = {one, other}
    if len(types) == 1:
        return one
    for smaller, wider in ((INT32_TYPE, INT64_TYPE), (INT32_TYPE, DOUBLE_TYPE), (DATE_TYPE, TIMESTAMP_TYPE)):
        if types == {smaller, wider}:
            return wider
    digits = [_digits(type_) for type_ in types]
    return _decimal(max(digits)) if min(digits) else STRING_TYPE


def _digits(type_: ColumnType) -> int:
    """Return how many decimal digits a type for whole numbers has, or 0 for another type."""
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
                raise SchemaError(f"{value!r} in the name of a directory would mean null", column=name)
            if not value.isprintable() and any("\ud800" <= character <= "\udfff" for character in value):
                raise SchemaError(f"{value!r} cannot be encoded in UTF-8", column=name)
            return _escaped(value)
    reason = f"a partition value must be a str, number, bool, date or datetime, not a {type(value).__name__}"
    raise SchemaError(reason, column=name)


def _float_text(value: float | np.floating[Any]) -> str:
    """Return a number's shortest text that has a decimal point, because Spark would read 1e16 as a whole number."""
    text = str(value).replace("inf", "Infinity").replace("nan", "NaN")
    exponent = text.partition("e+")[2]
    return f"{format(Number(text), 'f')}.0" if exponent and int(exponent) < MOST_DIGITS else text


def _escaped(text: str) -> str:
    if not text.strip("."):     # ".." would mean another directory
        return text.replace(".", "%2E")
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)


def _unescaped(text: str, path: str) -> str:
    """Return a name or value without its escapes. Percent-encoded UTF-8, which other writers use, is decoded too."""
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise SchemaError(f"{text!r} is not UTF-8", path=path) from None


def values_of_partitions(texts: Iterable[Mapping[str, str | None]], types: Mapping[str, ColumnType]) -> list[dict[str, Any]]:
    """Return each file's partition values by column name. Files in the same partition share one dict.

    Args:
        texts: each file's partition values as text, by column name. All files have the same columns.
        types: the columns' types.
    """
    by_texts: dict[tuple[str | None, ...], dict[str, Any]] = {}
    values = []
    for partitions in texts:
        place = tuple(partitions.values())
        if place not in by_texts:
            by_texts[place] = {name: partition_value(text, types[name], name) for name, text in partitions.items()}
        values.append(by_texts[place])
    return values
