"""Hive-style partition paths: ``year=2024/country=DE/part-0.parquet`` to values and back; pure, no I/O.

Names and values are percent-encoded UTF-8; the word ``__HIVE_DEFAULT_PARTITION__`` stands for null. Paths have no types: the type
of a partition column, integers, dates or strings, is inferred from all its values.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, unquote

from fastpq.errors import SchemaError
from fastpq.schema.types import ColumnType, Date, Integer, String, Type

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"

INT32_TYPE = ColumnType(Type.INT32)
INT64_TYPE = ColumnType(Type.INT64)
DATE_TYPE = ColumnType(Type.INT32, None, Date())
STRING_TYPE = ColumnType(Type.BYTE_ARRAY, None, String())

# Digits with leading zeros stay text, for example postal codes: an integer would lose the zeros.
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# Characters beside letters and digits left unencoded: safe in all filesystems and URLs, and not encoded by Spark.
_SAFE = "_.-~ "


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
        key = _decoded(name, path)
        if key in found:
            raise SchemaError(f"the partition column {key!r} is twice in the path", path=path)
        found[key] = None if value == NULL_PARTITION else _decoded(value, path)
    return found


def format_partitions(values: Mapping[str, Any]) -> str:
    """Directories for partition values: ``name=value/name=value``, without a ``/`` at either end.

    Args:
        values: by name, outermost first: str, int, bool, ``datetime.date`` or None.

    Raises:
        SchemaError: a value of another type; empty text, unfit for a path; or the word for null as text.
    """
    return "/".join(f"{_encoded(name)}={_value_text(name, value)}" for name, value in values.items())


def infer_partition_type(values: Iterable[str | None]) -> ColumnType:
    """The narrowest of INT32, INT64, DATE and STRING able to hold all values of a partition column; nulls fit each."""
    given = [value for value in values if value is not None]
    if given and all(len(value) <= 20 and _INTEGER.fullmatch(value) and value != "-0" for value in given):
        numbers = [int(value) for value in given]
        for type_, bound in ((INT32_TYPE, 1 << 31), (INT64_TYPE, 1 << 63)):
            if all(-bound <= number < bound for number in numbers):
                return type_
    if given and all(_is_date(value) for value in given):
        return DATE_TYPE
    return STRING_TYPE


def partition_value(text: str | None, type_: ColumnType, name: str) -> Any:
    """The value of a partition column from its text: int, ``datetime.date``, str, or None.

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
        if type_.physical in (Type.INT32, Type.INT64) and (type_.logical is None or isinstance(type_.logical, Integer)):
            return int(text)
    except ValueError:
        raise SchemaError(f"the partition value {text!r} is no {type_}", column=name) from None
    raise SchemaError(f"a partition column is of integers, dates or strings, not {type_}", column=name)


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _value_text(name: str, value: Any) -> str:
    if value is None:
        return NULL_PARTITION
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value.isoformat()
    if not isinstance(value, str):
        raise SchemaError(f"a partition value is a str, int, bool or date, not a {type(value).__name__}", column=name)
    if value in ("", NULL_PARTITION):
        raise SchemaError(f"{value!r} cannot be told from null in the name of a directory", column=name)
    return _encoded(value)


def _encoded(text: str) -> str:
    # a name of dots alone ("..") would mean another directory
    return quote(text, safe=_SAFE) if text.strip(".") else text.replace(".", "%2E")


def _decoded(text: str, path: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise SchemaError(f"{text!r} is not UTF-8", path=path) from None
