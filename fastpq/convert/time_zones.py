"""Conversions between Python's tzinfo objects and the time zone names in Arrow schemas."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from pathlib import PurePath

from fastpq.errors import SchemaError

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d\d):?(\d\d)")
_MINUTE = dt.timedelta(minutes=1)
_ZONES = "zoneinfo"         # name of the folder that holds the time zone database. dateutil's zones know their file in it


def zone_name(zone: dt.tzinfo) -> str:
    """Return the name of a time zone in Arrow schemas and pandas metadata.

    Args:
        zone: an object from datetime, zoneinfo, pytz or dateutil.

    Returns:
        The zone's name in the time zone database. For a fixed offset "UTC", or a text such as "+05:30".

    Raises:
        SchemaError: the zone has no name, and its UTC offset is unknown or not in whole minutes.
    """
    for attribute in ("key", "zone"):       # in zoneinfo and in pytz
        name = getattr(zone, attribute, None)
        if isinstance(name, str):
            return name
    place = getattr(zone, "_filename", None)        # in dateutil
    if isinstance(place, str):
        parts = PurePath(place).parts
        name = "/".join(parts[parts.index(_ZONES) + 1 :] if _ZONES in parts else parts).lstrip("/")
        if name in zoneinfo.available_timezones():
            return name
    offset = zone.utcoffset(None)
    if offset is None or offset % _MINUTE:
        raise SchemaError(f"the time zone {zone!r} has no name, and its UTC offset is unknown or not in whole minutes")
    minutes = offset // _MINUTE
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}" if minutes else "UTC"


def zone_of(name: str) -> dt.tzinfo:
    """Return the time zone that has a name.

    Args:
        name: a result of ``zone_name``, or an offset such as "UTC+05:30", which old files have.

    Raises:
        LookupError, ValueError, OSError: no zone has the name.
    """
    offset = _OFFSET.fullmatch(name)
    if offset is None:
        return dt.UTC if name in ("UTC", "utc") else zoneinfo.ZoneInfo(name)
    sign, hours, minutes = offset.groups()
    distance = dt.timedelta(hours=int(hours), minutes=int(minutes))
    return dt.timezone(-distance if sign == "-" else distance)
