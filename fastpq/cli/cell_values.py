"""Values from files as text in a table, as JSON, and as fields of CSV."""

from __future__ import annotations

import base64
import datetime
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

LONGEST_BINARY = 12  # bytes of a binary value that a table shows


def value_text(value: Any) -> str:
    """Return a value for a table or a message. Bytes are shown as hexadecimal digits."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes_text(bytes(value))
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{value_text(name)}: {value_text(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(value_text, value)) + "]"
    return str(value)


def _bytes_text(value: bytes) -> str:
    if value.isascii() and value.decode("ascii").isprintable():
        return value.decode("ascii")
    ellipsis = "" if len(value) <= LONGEST_BINARY else f"… ({len(value)} bytes)"
    return f"0x{value[:LONGEST_BINARY].hex()}{ellipsis}"


def json_value(value: Any) -> Any:
    """Return a value as JSON can hold it.

    Bytes become base64, and decimals, times and UUIDs become text. NaN and infinities become the texts ``NaN``, ``Infinity`` and
    ``-Infinity``, because JSON has no such numbers.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, Decimal | UUID):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): json_value(each) for name, each in value.items()}
    if isinstance(value, Sequence) or (hasattr(value, "tolist") and getattr(value, "ndim", 0) != 0):
        return [json_value(each) for each in value]
    if hasattr(value, "item"):
        return json_value(value.item())
    return str(value)


def csv_field(value: Any) -> str:
    """Return a value that is not null as a field of CSV. Nested values are JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Mapping | list | tuple):
        import json

        return json.dumps(json_value(value), ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    text = json_value(value)
    return text if isinstance(text, str) else str(text)


def bound_cell(bound: Any) -> str:
    """Return a bound for a table. A bound that is unknown is an empty text."""
    return "" if bound is None else value_text(bound)
