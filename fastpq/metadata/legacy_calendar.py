"""LegacyCalendar: the calendar that Spark's old dates and timestamps are stored in, and how values are moved out of it.

Spark 2 stored dates and timestamps in the hybrid calendar, which is Julian before 1582-10-15. Spark 3 and 4 do so on request
(``datetimeRebaseModeInWrite=LEGACY``). The file's key-value metadata say so. All other writers, and fastpq in memory, use the
proleptic Gregorian calendar. Spark's own reader keeps year, month and day of a date, and moves timestamps by the rules of a time
zone. A date can be moved without knowing any zone. A timestamp cannot, so timestamps from times when the calendars or the zones'
rules differ are refused.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from fastpq import format as fmt
from fastpq.errors import UnsupportedError
from fastpq.schema.types import ColumnType, Date, Timestamp, Type

CalendarChoice = Literal["rebase", "keep"]

# Keys in the key-value metadata. A file with the value "keep" of the option ``legacy_calendar`` keeps them.
SPARK_VERSION = "org.apache.spark.version"
LEGACY_TIMES, LEGACY_INT96 = "org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96"
CALENDAR_KEYS = frozenset({SPARK_VERSION, LEGACY_TIMES, LEGACY_INT96})
# First version of Spark whose files are in the Gregorian calendar if they do not say otherwise.
_FIRST_GREGORIAN, _FIRST_GREGORIAN_INT96 = (3, 0), (3, 1)

FIRST_DAY = -141_427                    # 1582-10-15, in days since 1970-01-01
FIRST_SECOND = -2_208_988_800           # 1900-01-01 00:00:00 UTC, in seconds since 1970-01-01
_TICKS = {"ms": 10**3, "us": 10**6, "ns": 10**9}        # per second
_DAYS_BEFORE = 719_470      # from 0000-03-01 in the Julian calendar to 1970-01-01
_DAYS_A_CENTURY = 36_525    # in the Julian calendar


def gregorian_days(days: Any) -> Any:
    """Return the days that have the same year, month and day in the Gregorian calendar as days in the Julian calendar.

    A day that the Gregorian calendar lacks, such as 1000-02-29, becomes the next day, as in Spark. The order stays the same.

    Args:
        days: a number, or an array of numbers, of days since 1970-01-01, each before FIRST_DAY.
    """
    century = (days + _DAYS_BEFORE) // _DAYS_A_CENTURY      # of years that begin in March
    return days + 2 - century + century // 4


class CalendarRule(NamedTuple):
    """What happens to a column's values that are stored in the hybrid calendar.

    Attributes:
        first: first value that both calendars store as the same number, in days or in the column's unit.
        is_date: whether the column has dates, which are moved. Timestamps are refused.
    """

    first: int
    is_date: bool

    def key(self, bound: Any) -> Any:
        """Return a stored bound in the Gregorian calendar. None if the bound is None, or a timestamp that is refused."""
        if bound is None or bound >= self.first:
            return bound
        return gregorian_days(bound) if self.is_date else None

    def convert(self, values: Any, validity: Any, in_place: bool) -> Any:
        """Return values in the Gregorian calendar.

        Args:
            values: whole numbers, or times of NumPy, as stored. Shape (n,).
            validity: bitmap of the values that are not null, or None without nulls.
            in_place: whether the values may be changed. Else a copy is made if there are old values.

        Raises:
            UnsupportedError: a timestamp is old.
        """
        numbers = values.view(np.int64 if values.dtype.itemsize == 8 else np.int32)
        is_old = numbers < self.first
        if validity is not None and not self.is_date:
            is_old &= np.unpackbits(validity, count=len(numbers), bitorder="little").view(np.bool_)
        if not is_old.any():
            return values
        if not self.is_date:
            raise UnsupportedError(
                "the file is in Spark's legacy calendar, and this column has a timestamp before 1900, whose time in the "
                'Gregorian calendar depends on a time zone: legacy_calendar="keep" gives timestamps as they are stored')
        gregorian_values = values if in_place else values.copy()
        gregorian_values.view(numbers.dtype)[is_old] = gregorian_days(numbers[is_old])
        return gregorian_values


class LegacyCalendar:
    """What a file's key-value metadata say about the calendar of its dates and timestamps. They are decoded on first use.

    Args:
        footer: the serialized footer.
        key_values: where the list of key-value metadata begins and ends in the footer.

    Attributes:
        is_kept: whether values are given as they are stored, whatever the file says.
    """

    __slots__ = ("_footer", "_kinds", "_span", "is_kept")

    _kinds: tuple[bool, bool] | None

    def __init__(self, footer: memoryview, key_values: tuple[int, int]) -> None:
        self._footer = footer
        self._span = key_values
        self._kinds = None if key_values[1] > key_values[0] else (False, False)
        self.is_kept = False

    @property
    def is_hybrid(self) -> bool:
        """Whether dates and timestamps, or those stored as INT96, are in the hybrid calendar and are not given as stored."""
        return not self.is_kept and any(self.kinds)

    def rule(self, type_: ColumnType) -> CalendarRule | None:
        """Return what happens to old values in a column, or None if they are right as they are stored.

        Args:
            type_: the column's type in memory.
        """
        if not self.is_hybrid:
            return None
        has_legacy_times, has_legacy_int96 = self.kinds
        logical = type_.logical
        if type_.physical is Type.INT96 and type_.length is not None and has_legacy_int96:
            raise UnsupportedError(
                'stored bytes of INT96 timestamps in the legacy calendar: legacy_calendar="keep" gives them as they are')
        if type_.physical is Type.INT96:
            unit = logical.unit if isinstance(logical, Timestamp) else "ns"
            return CalendarRule(FIRST_SECOND * _TICKS[unit], False) if has_legacy_int96 else None
        if not has_legacy_times:
            return None
        if isinstance(logical, Date):
            return CalendarRule(FIRST_DAY, True)
        if isinstance(logical, Timestamp) and logical.utc:
            return CalendarRule(FIRST_SECOND * _TICKS[logical.unit], False)
        return None

    @property
    def kinds(self) -> tuple[bool, bool]:
        """Whether dates and timestamps, and whether INT96 timestamps, are stored in the hybrid calendar."""
        if self._kinds is not None:
            return self._kinds
        self._kinds = False, False
        if SPARK_VERSION.encode() in bytes(self._footer[slice(*self._span)]):
            entries = {entry.key: entry.value for entry in fmt.decode_list(fmt.KeyValue, self._footer, self._span[0])}
            version = entries.get(SPARK_VERSION)
            if version is not None:
                self._kinds = (
                    LEGACY_TIMES in entries or _is_before(version, _FIRST_GREGORIAN),
                    LEGACY_INT96 in entries or _is_before(version, _FIRST_GREGORIAN_INT96),
                )
        return self._kinds


def _is_before(version: str, first: tuple[int, int]) -> bool:
    parts = version.split(".")
    try:
        return (int(parts[0]), int(parts[1])) < first
    except (ValueError, IndexError):
        return False
