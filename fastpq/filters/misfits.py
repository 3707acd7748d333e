"""The error of a filter's value that does not fit its column, with a value that does."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Sized
from typing import Any

import numpy as np

from fastpq.common.display import shorten
from fastpq.errors import SchemaError
from fastpq.schema.types import ColumnType, Decimal, Timestamp, Type

MOST_SHOWN = 100        # characters of a value


def refused_value(value: Any, type_: ColumnType) -> SchemaError:
    """The error of a filter's value that does not fit a column.

    Args:
        value: as given.
        type_: type of the column.
    """
    kind = type(value).__name__
    if isinstance(value, Sized) and not isinstance(value, str | bytes | bytearray | memoryview):
        return SchemaError(f"{kind} does not fit a column of {type_}: give one value, or a list of values to 'in'")
    shown = shorten(repr(value), MOST_SHOWN)
    named = shown if shown.partition("(")[0].rpartition(".")[2] == kind else f"{kind} {shown}"
    hint = _hint(value, type_)
    return SchemaError(f"{named} does not fit a column of {type_}{hint and ': '}{hint}")


def _hint(value: Any, type_: ColumnType) -> str:
    if isinstance(type_.logical, Decimal) and isinstance(value, float | np.floating) and math.isfinite(value):
        return f'floats are rarely exact, so give Decimal("{float(value)}")'
    if isinstance(type_.logical, Timestamp) or type_.physical is Type.INT96:
        has_zone = isinstance(type_.logical, Timestamp) and type_.logical.utc
        if isinstance(value, dt.datetime) and value == value:       # not pandas' NaT
            return _zone_hint(value, has_zone)
        if isinstance(value, str):
            return f'give a moment as text, for example "2024-01-31 10:00{"Z" if has_zone else ""}", or a datetime'
    return ""


def _zone_hint(value: dt.datetime, has_zone: bool) -> str:
    of_pandas = hasattr(value, "tz_localize")
    if has_zone and value.tzinfo is None:
        way = 'tz_localize("UTC")' if of_pandas else "replace(tzinfo=datetime.UTC)"
        return f"its moments have a time zone, so give value.{way}, or another zone"
    if value.tzinfo is not None and not has_zone:
        return f"its moments have no time zone, so give value.{'tz_localize(None)' if of_pandas else 'replace(tzinfo=None)'}"
    return ""
