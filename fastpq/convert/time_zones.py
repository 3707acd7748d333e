"""Names of time zones: Python's tzinfo objects as Arrow's names, and back."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from pathlib import PurePath
from typing import Any

from fastpq.errors import SchemaError

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d\d):?(\d\d)")
_ZONES = "zoneinfo"         # folder of the time zone database, of files that dateutil names


def zone_name(zone: dt.tzinfo) -> str:
    """The name of a zone in Arrow's schemas and pandas' metadata: of the time zone database, or an offset such as "+05:30".

    Args:
        zone: an object of datetime, zoneinfo, pytz or dateutil.

    Raises:
        SchemaError: neither a name nor an offset of whole minutes.
    """
    for attribute in ("key", "zone"):       # of zoneinfo, of pytz
        name = getattr(zone, attribute, None)
        if isinstance(name, str):
            return name
    place = getattr(zone, "_filename", None)        # of dateutil
    if isinstance(place, str):
        parts = PurePath(place).parts
        name = "/".join(parts[parts.index(_ZONES) + 1 :] if _ZONES in parts else parts).lstrip("/")
        if name in zoneinfo.available_timezones():
            return name
    offset = zone.utcoffset(None)
    if offset is None or offset.seconds % 60:
        raise SchemaError(f"the time zone {zone!r} has neither a name nor an offset of whole minutes")
    minutes = int(offset.total_seconds()) // 60
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}" if minutes else "UTC"


def zone_of(name: str) -> dt.tzinfo:
    """The zone of a name.

    Args:
        name: as given by ``zone_name``; the offsets "UTC+05:30" of old files too.

    Raises:
        LookupError, ValueError, OSError: no zone has the name.
    """
    offset = _OFFSET.fullmatch(name)
    if offset is None:
        return dt.UTC if name in ("UTC", "utc") else zoneinfo.ZoneInfo(name)
    sign, hours, minutes = offset.groups()
    found = dt.timedelta(hours=int(hours), minutes=int(minutes))
    return dt.timezone(-found if sign == "-" else found)


def zone_or_none(name: Any) -> dt.tzinfo | None:
    """The zone of a name; None for anything else than a name."""
    return zone_of(name) if isinstance(name, str) and name else None
