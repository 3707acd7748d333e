"""Dates and times of day of Python to numbers and back, against Python's own arithmetic."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest

from fastpq.arrays.python_times import days_of, microseconds_of, times_of
from fastpq.errors import SchemaError

EPOCH = datetime.date(1970, 1, 1)
DAY = 86_400_000_000


def objects(*values: Any) -> np.ndarray[Any, Any]:
    return np.fromiter(values, dtype=object, count=len(values))


class OddDate(datetime.date):
    pass


class OddTime(datetime.time):
    pass


def test_days_of_every_month_and_leap_year() -> None:
    years = [1, 4, 100, 399, 400, 401, 1599, 1600, 1900, 1969, 1970, 1972, 2000, 2024, 2100, 9999]
    dates = [datetime.date(year, month, day) for year in years for month in range(1, 13) for day in (1, 27, 28)]
    dates += [datetime.date(year, 2, 29) for year in years if year % 4 == 0 and (year % 100 or year % 400 == 0)]
    dates += [datetime.date.min, datetime.date.max, EPOCH, EPOCH - datetime.timedelta(1)]
    assert days_of(objects(*dates), "").tolist() == [(date - EPOCH).days for date in dates]


def test_days_of_random_dates() -> None:
    ordinals = np.random.default_rng().integers(1, datetime.date.max.toordinal(), 5000).tolist()
    dates = objects(*map(datetime.date.fromordinal, ordinals))
    assert days_of(dates, "").tolist() == [ordinal - EPOCH.toordinal() for ordinal in ordinals]


def test_nulls_are_zero() -> None:
    assert days_of(objects(None, datetime.date(1970, 1, 3), np.ma.masked), "").tolist() == [0, 2, 0]
    assert microseconds_of(objects(None, datetime.time(0, 0, 1), np.ma.masked), "").tolist() == [0, 1_000_000, 0]
    assert days_of(objects(), "").tolist() == microseconds_of(objects(), "").tolist() == []


@pytest.mark.parametrize(
    "wrong", [datetime.datetime(2020, 1, 1), OddDate(2020, 1, 1), "2020-01-01", 3, np.datetime64("2020-01-01")])
def test_other_values_among_dates(wrong: Any) -> None:
    with pytest.raises(SchemaError, match=rf"value 1 is a {type(wrong).__name__}, not a date \[column d\]"):
        days_of(objects(EPOCH, wrong), "d")


@pytest.mark.parametrize("wrong", [OddTime(1), "01:00", 3, datetime.timedelta(1)])
def test_other_values_among_times(wrong: Any) -> None:
    with pytest.raises(SchemaError, match=rf"value 1 is a {type(wrong).__name__}, not a time \[column t\]"):
        microseconds_of(objects(datetime.time(), wrong), "t")


def test_a_time_in_a_zone() -> None:
    with pytest.raises(SchemaError, match=r"value 2 is a time with a time zone \[column t\]"):
        microseconds_of(objects(datetime.time(), None, datetime.time(1, tzinfo=datetime.UTC)), "t")


def test_times_there_and_back() -> None:
    draw = np.random.default_rng()
    few = draw.integers(0, DAY, 50)
    numbers = np.concatenate([[0, DAY - 1, 1, 999_999, 1_000_000], draw.integers(0, DAY, 5000), draw.choice(few, 5000)])
    times = times_of(numbers, None)
    midnight = datetime.datetime(2000, 1, 1)
    assert times.tolist() == [(midnight + datetime.timedelta(microseconds=number)).time() for number in numbers.tolist()]
    assert {type(time) for time in times} == {datetime.time}
    assert microseconds_of(times, "").tolist() == numbers.tolist()


def test_rows_of_one_time_share_an_object() -> None:
    times = times_of(np.tile(np.array([3_600_000_000, 5], np.int64), 1000), None)
    assert len({id(time) for time in times}) == 2


def test_times_that_are_not_present_are_none_and_not_looked_at() -> None:
    present = np.array([True, False, True, False])
    assert times_of(np.array([0, -5, 1, DAY], np.int64), present).tolist() == [
        datetime.time(), None, datetime.time(microsecond=1), None]


@pytest.mark.parametrize("number", [-1, DAY, np.iinfo(np.int64).min, np.iinfo(np.int64).max])
def test_no_time_of_a_day(number: int) -> None:
    with pytest.raises(SchemaError, match=f"value 1 \\({number} microseconds\\) is not a time of day"):
        times_of(np.array([0, number], np.int64), None)


def test_unfit_arrays() -> None:
    times = objects(datetime.time(), datetime.time(1), datetime.time(2), datetime.time(3))
    with pytest.raises(SchemaError, match="contiguous"):
        microseconds_of(times[::2], "")
    with pytest.raises(SchemaError, match="contiguous"):
        days_of(np.zeros(3), "")
    with pytest.raises(SchemaError, match="int64"):
        times_of(np.zeros(3, np.int32), None)
    with pytest.raises(SchemaError, match="int64"):
        times_of(np.zeros(6, np.int64)[::2], None)
    unfit: list[Any] = [np.ones(2, np.bool_), np.ones(3, np.uint8), np.ones(6, np.bool_)[::2]]
    for present in unfit:
        with pytest.raises(SchemaError, match="not a contiguous array of 3 booleans"):
            times_of(np.zeros(3, np.int64), present)
