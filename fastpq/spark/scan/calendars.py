"""Spark files in the hybrid calendar, which is Julian before 1582-10-15. fastpq reads them, but refuses old values.

Spark 2 wrote such files, and Spark 3 and 4 write them on request (LEGACY). Spark's own reader moves old values into the Gregorian
calendar. fastpq refuses values from times when the calendars differ: dates before 1582-10-15, and timestamps before 1900.
Timestamps also depend on the time zone.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np

from fastpq.spark.core import (
    And,
    AnyColumn,
    Column,
    FileMetaData,
    ListColumn,
    Or,
    StructColumn,
    Table,
    Type,
    UnsupportedError,
    pt,
)

VERSION = "org.apache.spark.version"
FIRST_DAY = -141_427                    # 1582-10-15
FIRST_SECOND = -2_208_988_800           # 1900-01-01 00:00:00 UTC
_TICKS = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_FIRST_DATE = datetime.date(1582, 10, 15)
_FIRST_MOMENT = datetime.datetime(1900, 1, 1, tzinfo=datetime.UTC)


class Calendar:
    """The calendar that a file's old dates and timestamps use, according to its key-value metadata.

    Args:
        metadata: the file's footer.

    Attributes:
        is_hybrid: whether dates and timestamps, or those stored as INT96, are in the hybrid calendar.
    """

    def __init__(self, metadata: FileMetaData) -> None:
        self._times, self._int96 = metadata.calendar.kinds
        self.is_hybrid = self._times or self._int96

    def checked(self, table: Table) -> Table:
        """Return the same table after a check of its dates and timestamps.

        Raises:
            UnsupportedError: a value is from a time when the calendars differ.
        """
        for name, column in table.items():
            self._check(name, column)
        return table

    def _check(self, name: str, column: AnyColumn) -> None:
        match column:
            case ListColumn():
                self._check(name, column.elements)
            case StructColumn():
                for child in column.children:
                    self._check(name, child)
            case Column() if (first := self._first(column)) is not None and isinstance(column.values, np.ndarray):
                values = column.values.view(np.int64 if column.values.itemsize == 8 else np.int32)
                if column.null_count:
                    values = values[column.validity_mask()]
                if len(values) and values.min() < first:
                    raise refusal(name)

    def _first(self, column: Column) -> int | None:
        """Return the earliest value on which both calendars agree. None if the column needs no check."""
        logical = column.type.logical
        if isinstance(logical, pt.Date):
            return FIRST_DAY if self._times else None
        if column.type.physical == Type.INT96:
            unit = np.datetime_data(column.type.numpy_dtype)[0]
            return FIRST_SECOND * _TICKS[unit] if self._int96 else None
        if isinstance(logical, pt.Timestamp) and logical.utc and self._times:
            return FIRST_SECOND * _TICKS[logical.unit]
        return None


def refusal(name: str) -> UnsupportedError:
    """Return the error for an old value, or for a filter with one."""
    return UnsupportedError(
        "the file is in Spark's legacy calendar, and this is a date before 1582-10-15 or a timestamp before 1900: "
        "Spark's own source reads it", column=name)


def old_column(tree: Any) -> str | None:
    """Return the first column that is compared with a date before 1582-10-15 or a moment before 1900. None if there is none."""
    if isinstance(tree, And | Or):
        return next((name for name in map(old_column, tree.children) if name is not None), None)
    if isinstance(tree, bool) or tree is None:
        return None
    values = tree[2] if len(tree) > 2 and isinstance(tree[2], list | tuple | set | frozenset) else tree[2:]
    return tree[0] if any(map(_is_old, values)) else None


def _is_old(value: Any) -> bool:
    if isinstance(value, datetime.datetime):
        return (value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)) < _FIRST_MOMENT
    return isinstance(value, datetime.date) and value < _FIRST_DATE
