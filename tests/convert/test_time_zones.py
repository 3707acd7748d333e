"""Names of time zones, for Arrow schemas and pandas metadata."""

from __future__ import annotations

import datetime as dt

import pytest

from fastpq.convert.time_zones import zone_name
from fastpq.errors import SchemaError


@pytest.mark.parametrize(
    ("offset", "name"),
    [(dt.timedelta(), "UTC"), (dt.timedelta(hours=5, minutes=30), "+05:30"), (-dt.timedelta(hours=3), "-03:00")],
    ids=str,
)
def test_fixed_offsets_have_names(offset: dt.timedelta, name: str) -> None:
    assert zone_name(dt.timezone(offset)) == name


@pytest.mark.parametrize("rest", [dt.timedelta(seconds=1), dt.timedelta(microseconds=1)], ids=str)
@pytest.mark.parametrize("sign", [1, -1])
def test_an_offset_must_be_in_whole_minutes(rest: dt.timedelta, sign: int) -> None:
    with pytest.raises(SchemaError, match="has no name, and its UTC offset is unknown or not in whole minutes"):
        zone_name(dt.timezone(sign * (dt.timedelta(hours=1) + rest)))
