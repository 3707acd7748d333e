"""Cases for tests of Arrow import and export: values of every type of both Arrow and Parquet, in pyarrow and as stored."""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from dataclasses import dataclass
from decimal import Decimal as Dec
from typing import Any

import numpy as np
import pyarrow as pa

from fastpq.arrays.table import BinaryOffsets, BinaryViews, Column, DictionaryValues, Table
from fastpq.arrow import export_array, export_schema, export_stream
from fastpq.schema.types import (
    ColumnType,
    Date,
    Decimal,
    Float16,
    Integer,
    Interval,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
    Type,
    Uuid,
)

INT32, INT64, TEXT = (ColumnType(Type.INT32), ColumnType(Type.INT64), ColumnType(Type.BYTE_ARRAY, logical=String()))
UUIDS = [uuid.UUID(int=1 << 120), uuid.UUID(int=7)]
WORDS = ["", "inline", "exactly12byt", "thirteen byte", "größer als zwölf Zeichen"]


class Stream:
    """A Table as a consumer sees it: an object with the Arrow stream interface alone."""

    def __init__(self, table: Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return export_stream(self.table, requested_schema)


class Array:
    """A Column as a consumer sees it: an object with the Arrow array interface alone."""

    def __init__(self, column: Column) -> None:
        self.column = column

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return export_array(self.column, requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return export_schema(self.column)


@dataclass(frozen=True)
class Case:
    """Values of a pyarrow type, and the expected results of import and export.

    Attributes:
        given: the pyarrow type.
        values: Python values of the type.
        type: column type after import.
        stored: values in the column after import.
        back: pyarrow type after export, if other than given.
        python: Python values after import, if other than values.
    """

    given: pa.DataType
    values: list[Any]
    type: ColumnType
    stored: list[Any]
    back: pa.DataType | None = None
    python: list[Any] | None = None


def fixed(logical: LogicalType | None, physical: Type, length: int | None = None) -> ColumnType:
    return ColumnType(physical, length, logical)


def little(width: int, *values: int) -> list[bytes]:
    return [value.to_bytes(width, "little", signed=True) for value in values]


def integer(given: pa.DataType, bits: Any, signed: bool) -> Case:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    logical = None if signed and bits >= 32 else Integer(bits, signed)
    values = [low, high, 1]
    return Case(given, values, fixed(logical, Type.INT64 if bits == 64 else Type.INT32), values)


DAY = dt.date(1969, 12, 31)
NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 1000)
NOON_S = NOON.replace(microsecond=0)
NOON_UTC = NOON.replace(tzinfo=dt.UTC)
MS = 1709208000001
UTF8 = [word.encode() for word in WORDS]
DECIMALS = [Dec("1.25"), Dec("-99.99"), Dec("0.00")]
CENTS = [125, -9999, 0]
FLBA = Type.FIXED_LEN_BYTE_ARRAY

CASES = {
    "bool": Case(pa.bool_(), [True, False, True], ColumnType(Type.BOOLEAN), [True, False, True]),
    "int8": integer(pa.int8(), 8, True),
    "int16": integer(pa.int16(), 16, True),
    "int32": integer(pa.int32(), 32, True),
    "int64": integer(pa.int64(), 64, True),
    "uint8": integer(pa.uint8(), 8, False),
    "uint16": integer(pa.uint16(), 16, False),
    "uint32": integer(pa.uint32(), 32, False),
    "uint64": integer(pa.uint64(), 64, False),
    "float16": Case(pa.float16(), [1.5, -2.0, 0.0], fixed(Float16(), FLBA, 2), [1.5, -2.0, 0.0]),
    "float32": Case(pa.float32(), [1.5, -2.0, 0.0], ColumnType(Type.FLOAT), [1.5, -2.0, 0.0]),
    "float64": Case(pa.float64(), [1e300, -0.1, 0.0], ColumnType(Type.DOUBLE), [1e300, -0.1, 0.0]),
    "string": Case(pa.string(), WORDS, TEXT, UTF8),
    "large_string": Case(pa.large_string(), WORDS, TEXT, UTF8),
    "string_view": Case(pa.string_view(), WORDS, TEXT, UTF8),
    "binary": Case(pa.binary(), UTF8, ColumnType(Type.BYTE_ARRAY), UTF8),
    "large_binary": Case(pa.large_binary(), UTF8, ColumnType(Type.BYTE_ARRAY), UTF8),
    "binary_view": Case(pa.binary_view(), UTF8, ColumnType(Type.BYTE_ARRAY), UTF8),
    "json": Case(pa.json_(), ["{}", "[1]"], fixed(Json(), Type.BYTE_ARRAY), [b"{}", b"[1]"]),
    "fixed_size_binary": Case(pa.binary(3), [b"abc", b"\0\1\2"], fixed(None, FLBA, 3), [b"abc", b"\0\1\2"]),
    "uuid": Case(pa.uuid(), UUIDS, fixed(Uuid(), FLBA, 16), [value.bytes for value in UUIDS]),
    "decimal32": Case(pa.decimal32(5, 2), DECIMALS, fixed(Decimal(5, 2), Type.INT32), CENTS, pa.decimal128(5, 2)),
    "decimal64": Case(pa.decimal64(12, 2), DECIMALS, fixed(Decimal(12, 2), Type.INT64), CENTS, pa.decimal128(12, 2)),
    "decimal128": Case(pa.decimal128(5, 2), DECIMALS, fixed(Decimal(5, 2), FLBA, 3), little(16, *CENTS)),
    "decimal256": Case(pa.decimal256(50, 2), DECIMALS, fixed(Decimal(50, 2), FLBA, 21), little(32, *CENTS)),
    "decimal256 of few digits": Case(
        pa.decimal256(20, 2), DECIMALS, fixed(Decimal(20, 2), FLBA, 9), little(16, *CENTS)
    ),
    "date32": Case(pa.date32(), [DAY, dt.date(2024, 2, 29)], fixed(Date(), Type.INT32), [-1, 19782]),
    "date64": Case(pa.date64(), [DAY, dt.date(2024, 2, 29)], fixed(Date(), Type.INT32), [-1, 19782]),
    "time32[s]": Case(pa.time32("s"), [dt.time(0, 0, 1)], fixed(Time("ms"), Type.INT32), [1000]),
    "time32[ms]": Case(pa.time32("ms"), [dt.time(0, 0, 1, 5000)], fixed(Time("ms"), Type.INT32), [1005]),
    "time64[us]": Case(pa.time64("us"), [dt.time(0, 0, 1, 5)], fixed(Time("us"), Type.INT64), [1_000_005]),
    "time64[ns]": Case(pa.time64("ns"), [dt.time(0, 0, 1)], fixed(Time("ns"), Type.INT64), [10**9]),
    "timestamp[s]": Case(pa.timestamp("s"), [NOON_S], fixed(Timestamp("ms"), Type.INT64), [MS - 1]),
    "timestamp[ms]": Case(pa.timestamp("ms"), [NOON], fixed(Timestamp("ms"), Type.INT64), [MS]),
    "timestamp[us]": Case(pa.timestamp("us"), [NOON], fixed(Timestamp("us"), Type.INT64), [MS * 1000]),
    "timestamp[ns]": Case(pa.timestamp("ns"), [NOON], fixed(Timestamp("ns"), Type.INT64), [MS * 10**6]),
    "timestamp[us, Europe/Berlin]": Case(
        pa.timestamp("us", "Europe/Berlin"),
        [NOON_UTC],
        fixed(Timestamp("us", utc=True), Type.INT64),
        [MS * 1000],
    ),
    "duration[s]": Case(pa.duration("s"), [dt.timedelta(1), dt.timedelta(seconds=-1)], INT64, [86400, -1]),
    "duration[ns]": Case(pa.duration("ns"), [dt.timedelta(0), dt.timedelta(seconds=-1)], INT64, [0, -(10**9)]),
    "month_day_nano_interval": Case(
        pa.month_day_nano_interval(),
        [pa.MonthDayNano([1, 2, 3_000_000]), pa.MonthDayNano([0, 31, 0])],
        fixed(Interval(), FLBA, 12),
        [struct.pack("<3I", 1, 2, 3), struct.pack("<3I", 0, 31, 0)],
    ),
    "dictionary of strings": Case(pa.dictionary(pa.int32(), pa.string()), WORDS, TEXT, UTF8),
    "dictionary of large binary": Case(
        pa.dictionary(pa.uint8(), pa.large_binary()),
        UTF8,
        ColumnType(Type.BYTE_ARRAY),
        UTF8,
    ),
    "dictionary of numbers": Case(pa.dictionary(pa.int8(), pa.int64()), [5, -5], INT64, [5, -5]),
}


def stored(column: Column) -> list[Any]:
    """The stored values of a column; None for nulls."""
    values = column.values
    if isinstance(values, DictionaryValues):
        entries = stored(values.dictionary)
        out = [entries[code] if entries else None for code in values.codes.tolist()]
    elif isinstance(values, BinaryOffsets):
        ends = values.offsets.tolist()
        out = [values.data[ends[i] : ends[i + 1]].tobytes() for i in range(len(ends) - 1)]
    elif isinstance(values, BinaryViews):
        out = [view_bytes(view, values) for view in values.views.tolist()]
    else:
        out = values.tolist()
    if column.validity is None:
        return out
    valid = np.unpackbits(column.validity, count=len(out), bitorder="little")
    return [value if ok else None for value, ok in zip(out, valid, strict=True)]


def view_bytes(view: bytes, values: BinaryViews) -> bytes:
    length, number, offset = (int.from_bytes(view[at : at + 4], "little") for at in (0, 8, 12))
    return view[4 : 4 + length] if length <= 12 else values.buffers[number][offset : offset + length].tobytes()


def pattern(values: list[Any], nulls: bool) -> list[Any]:
    """61 values, the given ones repeated, with nulls (if wanted) at varying positions."""
    cycled = [values[i % len(values)] for i in range(61)]
    return [None if nulls and i % 7 in (0, 3) else value for i, value in enumerate(cycled)]


def array_of(case: Case, values: list[Any]) -> pa.Array:
    if isinstance(case.given, pa.DictionaryType):
        return pa.array(values, case.given.value_type).dictionary_encode().cast(case.given)
    if isinstance(case.given, pa.BaseExtensionType) and case.given != pa.uuid():
        return pa.ExtensionArray.from_storage(case.given, pa.array(values, case.given.storage_type))
    if pa.types.is_float16(case.given):
        return pa.array([None if value is None else np.float16(value) for value in values], case.given)
    return pa.array(values, case.given)
