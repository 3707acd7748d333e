"""Values of arguments, typed by the column that they are compared with."""

from __future__ import annotations

import datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from fastpq.cli.failures import USAGE, CommandFailure

if TYPE_CHECKING:
    from fastpq.schema.parquet_schema import ColumnDescriptor


def literal_for(column: ColumnDescriptor, text: str) -> Any:
    """Return an argument as a value that fits a column.

    Raises:
        CommandFailure: the text is not such a value.
    """
    from fastpq.schema import types as pt

    try:
        match column.logical_type:
            case pt.Decimal():
                return Decimal(text)
            case pt.Date():
                return datetime.date.fromisoformat(text)
            case pt.Timestamp():
                return datetime.datetime.fromisoformat(text)
            case pt.Time():
                return datetime.time.fromisoformat(text)
            case pt.Uuid() | pt.String() | pt.Enum() | pt.Json():
                return text
        return _physical_literal(column.physical_type.name, text)
    except (ValueError, InvalidOperation):
        raise CommandFailure(f"{text!r} is not a value of the column {column.name!r}", USAGE) from None


def _physical_literal(physical: str, text: str) -> Any:
    if physical == "BOOLEAN":
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    if physical in ("INT32", "INT64"):
        return int(text)
    if physical in ("FLOAT", "DOUBLE"):
        return float(text)
    if physical == "INT96":
        return datetime.datetime.fromisoformat(text)
    return bytes.fromhex(text[2:]) if text.startswith("0x") else text.encode()
