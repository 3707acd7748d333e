"""Statements whose outcome differs from Spark's own source: the outcome by fastpq's source, and the documented difference."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Difference:
    """A documented difference.

    Attributes:
        row: first cell of its row in docs/pages/spark.md.
        outcome: outcome by fastpq's source.
    """

    row: str
    outcome: Any


def _rows(types: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the outcome of a DataFrame with columns of these types."""
    fields = [{"metadata": {}, "name": name, "nullable": True, "type": type_} for name, type_ in types.items()]
    schema = json.dumps({"fields": fields, "type": "struct"}, separators=(",", ":"))
    return {"schema": schema, "rows": sorted(map(dict, rows), key=repr)}


def _values(type_: str, *values: Any) -> dict[str, Any]:
    return _rows({"value": type_}, ({"value": value} for value in values))


def _stored(physical: str, logical: str, name: str = "value") -> list[list[str]]:
    return [["id", "INT64", "None"], [name, physical, logical]]


UNREAD = ("SparkException", "FAILED_READ_FILE.NO_HINT")
MISMATCH = ("SparkException", "FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH")
REFUSED = ("AnalysisException", "PYTHON_DATA_SOURCE_ERROR")
MICROSECONDS = _stored(
    "INT64",
    "Timestamp(isAdjustedToUTC=true, timeUnit=microseconds, is_from_converted_type=false, force_set_converted_type=false)",
)
OLD = _rows({"day": "string", "instant": "string"}, [{"day": "1000-01-01", "instant": "1000-01-01 00:00:00"}])
OUTCOMES: dict[str, dict[tuple[str, str], Any]] = {
    "types of other writers": {
        ("files of Arrow", "nulls"): _values("void", None, None),
        ("files of Arrow", "float16"): _values("float", "000000000000f83f", None),
        ("files of Arrow", "time_millis"): _values("time(6)", None, datetime.time(1, 2, 3)),
        ("files of Arrow", "uuid"): _values("binary", None, bytes(range(16))),
        ("files of Arrow", "nanos"): UNREAD,
        ("files of Arrow", "codec_BROTLI"): _values("long", *range(100)),
        ("files of Arrow", "uint32 as int"): MISMATCH,
        ("settings of Parquet", "respectUnknownTypeAnnotation off"): [["value", "void"], ["id", "bigint"]],
    },
    "numbers behind values": {
        ("types read as others", name): MISMATCH for name in ("decimal as int", "decimal as double", "date as int")
    },
    "old calendar": {
        ("calendars", "LEGACY TIMESTAMP_MICROS"): UNREAD,
        ("calendars", "LEGACY INT96"): UNREAD,
        ("calendars", "LEGACY TIMESTAMP_MILLIS"): UNREAD,
        ("calendars", "LEGACY, filtered"): UNREAD,
        ("calendars", "LEGACY, filtered by an instant"): UNREAD,
        ("calendars", "LEGACY, new days alone"): UNREAD,
        ("calendars", "written EXCEPTION"): [OLD, OLD],
    },
    "unknown options": {
        ("options", "an unknown option"): REFUSED,
        ("options", "an option of another format"): REFUSED,
        ("options", "numbers as options"): REFUSED,
        ("writing", "an option that nothing knows"): REFUSED,
    },
    "stored form": {
        ("stored types", "timestamp"): MICROSECONDS,
        ("stored types", "INT96"): MICROSECONDS,
        ("stored types", "milliseconds"): MICROSECONDS,
        ("stored types", "old form: timestamp"): MICROSECONDS,
        ("stored types", "old form: decimal of 9 digits"): _stored("INT32", "Decimal(precision=9, scale=2)"),
        ("stored types", "old form: decimal of 18 digits"): _stored("INT64", "Decimal(precision=18, scale=2)"),
        ("stored types", "old form: array"): _stored("INT64", "None", "value.list.element"),
    },
    "identifiers of fields": {
        ("stored types", "identifiers of fields"): [["id", None], ["text", None]],
        ("settings of Parquet", "fieldId.read"): UNREAD,
        ("settings of Parquet", "fieldId.read, a missing one"): UNREAD,
        ("settings of Parquet", "fieldId.read.ignoreMissing"): UNREAD,
    },
    "user-defined types": {("types", "user-defined type"): "struct"},
    "settings for old files": {
        ("files of Arrow, by settings", "nanos"): REFUSED,
        ("files of Arrow, by settings", "int96"): UNREAD,
        ("settings of Parquet", "int96AsTimestamp off"): REFUSED,
    },
}
DIFFERENCES = {
    statement: Difference(row, outcome) for row, outcomes in OUTCOMES.items() for statement, outcome in outcomes.items()
}
