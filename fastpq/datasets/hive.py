"""Hive-style partition paths: ``year=2024/country=DE/part-0.parquet`` to values and back; pure, no I/O.

Names and values are percent-encoded UTF-8; a null is the word ``__HIVE_DEFAULT_PARTITION__``. Paths have no types: a column is
of integers, of dates or of strings by what all of its values are.
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

# A number with zeros in front is a code, as postal codes are; taking it for a number would lose them.
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# Beside letters and digits: what Spark leaves as it is and every filesystem and URL takes.
_SAFE = "_.-~ "


def parse_partitions(path: str) -> dict[str, str | None]:
    """The partition values in the directories of a path, as text, in their order; None for the null partition.

    Args:
        path: of a file, with ``/`` between its parts; the last part is the file's name and no partition.

    Raises:
        SchemaError: one name twice, or a name or value that is not UTF-8.
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
    """The directories of partition values: ``name=value/name=value``, without a ``/`` at either end.

    Args:
        values: by name, outermost first: str, int, bool, ``datetime.date`` or None.

    Raises:
        SchemaError: a value of another type, an empty text (which a path cannot tell from none), or the word for null as text.
    """
    return "/".join(f"{_encoded(name)}={_value_text(name, value)}" for name, value in values.items())


def infer_partition_type(values: Iterable[str | None]) -> ColumnType:
    """The narrowest of INT32, INT64, DATE and STRING that holds all values of a partition column; nulls fit each."""
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
    """A partition's text as a Python value of a type: int, ``datetime.date``, str, or None.

    Raises:
        SchemaError: the text is no such value, or the type is none of a partition.
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
    # a directory of dots alone would be another directory
    return quote(text, safe=_SAFE) if text.strip(".") else text.replace(".", "%2E")


def _decoded(text: str, path: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise SchemaError(f"{text!r} is not UTF-8", path=path) from None
