"""The table of types in fastpq.schema.types, the rules of LogicalTypes.md, and Arrow's own format strings."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fastpq import format as fmt
from fastpq.errors import FormatError, SchemaError, UnsupportedError
from fastpq.schema import types
from fastpq.schema.logical import logical_from_thrift, logical_to_thrift
from fastpq.schema.types import (
    Bson,
    ColumnType,
    Date,
    Decimal,
    Enum,
    Float16,
    Integer,
    Interval,
    Json,
    LogicalType,
    String,
    Time,
    Timestamp,
    Type,
    Unknown,
    Uuid,
    max_precision,
)
from tests.narrowing import present

ROW = re.compile(r"^([A-Z0-9_]+)(?:\((\d+)\))?\s+(None|\w+\(.*?\))\s+(\S+)\s+(\S+)\s+(\S+)$", re.MULTILINE)


def table_rows() -> list[tuple[ColumnType, str, str, str]]:
    """The rows of the table in the module's docstring."""
    rows = []
    for physical, length, logical, storage, numpy_name, arrow in ROW.findall(types.__doc__ or ""):
        if physical in Type.__members__:
            meaning: LogicalType | None = eval(logical, vars(types))
            column = ColumnType(Type[physical], int(length) if length else None, meaning)
            rows.append((column, storage, numpy_name, arrow))
    return rows


ROWS = table_rows()


def test_the_table_has_a_row_for_everything() -> None:
    assert {column.physical for column, *_ in ROWS} == set(Type)
    names = {type(column.logical).__name__ for column, *_ in ROWS}  # slots make each dataclass a second class
    assert names == {"NoneType", *(each.__name__ for each in LogicalType.__subclasses__())}
    widths = {column.logical for column, *_ in ROWS if isinstance(column.logical, Integer)}
    assert len(widths) == 8


@pytest.mark.parametrize(("column", "storage", "numpy_name", "arrow"), ROWS, ids=lambda value: str(value))
def test_the_table_says_what_the_code_does(column: ColumnType, storage: str, numpy_name: str, arrow: str) -> None:
    assert column.dtype == (None if storage == "None" else np.dtype(storage))
    expected: Any = np.dtypes.StringDType() if numpy_name == "StringDType()" else np.dtype(numpy_name)
    assert column.numpy_dtype == expected
    assert column.arrow_format == arrow
    assert column.is_variable == (storage == "None")
    assert column.is_text == isinstance(column.logical, String | Enum | Json)


ARROW_TYPES = [
    (ColumnType(Type.BOOLEAN), pa.bool_()),
    (ColumnType(Type.INT32, None, Integer(8, True)), pa.int8()),
    (ColumnType(Type.INT32, None, Integer(16, False)), pa.uint16()),
    (ColumnType(Type.INT32), pa.int32()),
    (ColumnType(Type.INT64, None, Integer(64, False)), pa.uint64()),
    (ColumnType(Type.INT64), pa.int64()),
    (ColumnType(Type.INT96), pa.timestamp("ns")),
    (ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 2, Float16()), pa.float16()),
    (ColumnType(Type.FLOAT), pa.float32()),
    (ColumnType(Type.DOUBLE), pa.float64()),
    (ColumnType(Type.BYTE_ARRAY), pa.binary_view()),
    (ColumnType(Type.BYTE_ARRAY, None, String()), pa.string_view()),
    (ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 7), pa.binary(7)),
    (ColumnType(Type.INT32, None, Date()), pa.date32()),
    (ColumnType(Type.INT32, None, Time("ms")), pa.time32("ms")),
    (ColumnType(Type.INT64, None, Time("us")), pa.time64("us")),
    (ColumnType(Type.INT64, None, Time("ns")), pa.time64("ns")),
    (ColumnType(Type.INT64, None, Timestamp("ms")), pa.timestamp("ms")),
    (ColumnType(Type.INT64, None, Timestamp("us", utc=True)), pa.timestamp("us", "UTC")),
    (ColumnType(Type.INT64, None, Timestamp("ns", utc=True)), pa.timestamp("ns", "UTC")),
    (ColumnType(Type.INT32, None, Decimal(9, 2)), pa.decimal128(9, 2)),
    (ColumnType(Type.BYTE_ARRAY, None, Decimal(60, 5)), pa.decimal256(60, 5)),
    (ColumnType(Type.INT32, None, Unknown()), pa.null()),
]


@pytest.mark.parametrize(("column", "arrow_type"), ARROW_TYPES, ids=lambda value: str(value))
def test_pyarrow_has_the_same_format_strings(column: ColumnType, arrow_type: pa.DataType) -> None:
    schema = (ctypes.c_void_p * 9)()  # struct ArrowSchema, of which the first member is the format
    address = ctypes.addressof(schema)
    arrow_type._export_to_c(address)
    try:
        assert ctypes.cast(present(schema[0]), ctypes.c_char_p).value == column.arrow_format.encode()
    finally:
        pa.DataType._import_from_c(address)  # takes it back and so releases it


@pytest.mark.parametrize(
    ("physical", "length", "logical", "message"),
    [
        (Type.FIXED_LEN_BYTE_ARRAY, None, None, "cannot have the length"),
        (Type.FIXED_LEN_BYTE_ARRAY, 0, None, "cannot have the length"),
        (Type.INT32, 4, None, "does not take a length"),
        (Type.INT32, None, String(), "may not annotate INT32"),
        (Type.FIXED_LEN_BYTE_ARRAY, 15, Uuid(), "may not annotate FIXED_LEN_BYTE_ARRAY"),
        (Type.INT64, None, Date(), "may not annotate INT64"),
        (Type.INT64, None, Time("ms"), "may not annotate"),
        (Type.INT32, None, Time("us"), "may not annotate"),
        (Type.INT64, None, Timestamp("s"), "not a time unit"),    # type: ignore[arg-type]
        (Type.INT64, None, Integer(32, True), "may not annotate"),
        (Type.INT32, None, Integer(24, True), "bit width"),    # type: ignore[arg-type]
        (Type.DOUBLE, None, Decimal(9, 2), "may not annotate"),
        (Type.INT32, None, Decimal(10, 2), "more than the 9 digits"),
        (Type.INT64, None, Decimal(19, 2), "more than the 18 digits"),
        (Type.FIXED_LEN_BYTE_ARRAY, 16, Decimal(39, 2), "more than the 38 digits"),
        (Type.INT32, None, Decimal(0, 0), "must be positive"),
        (Type.INT32, None, Decimal(3, 4), "must be between"),
        (Type.INT32, None, Decimal(3, -1), "must be between"),
    ],
)
def test_what_does_not_fit_is_refused(physical: Type, length: Any, logical: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        ColumnType(physical, length, logical)


def test_digits_of_fixed_length_decimals() -> None:
    for length in range(1, 65):  # floor(log10(2 ** (8 n - 1) - 1)), LogicalTypes.md
        digits = max_precision(Type.FIXED_LEN_BYTE_ARRAY, length)
        assert digits is not None
        assert 10**digits <= 2 ** (8 * length - 1) - 1 < 10 ** (digits + 1)


@pytest.mark.parametrize("length", [-3, 0])
def test_decimals_need_bytes(length: int) -> None:
    assert max_precision(Type.FIXED_LEN_BYTE_ARRAY, length) == 0
    with pytest.raises(SchemaError, match=r"0 digits|cannot have the length"):
        ColumnType(Type.FIXED_LEN_BYTE_ARRAY, length, Decimal(3, 1))


def test_decimals_beyond_256_bits_are_named() -> None:
    column = ColumnType(Type.BYTE_ARRAY, None, Decimal(77, 0))
    for ask in ("dtype", "arrow_format"):
        with pytest.raises(UnsupportedError, match="more than 76 digits"):
            getattr(column, ask)


# The tables "Backward compatibility" and "Forward compatibility" of LogicalTypes.md.
CONVERTED = [
    (Type.BYTE_ARRAY, "UTF8", String()),
    (Type.BYTE_ARRAY, "ENUM", Enum()),
    (Type.BYTE_ARRAY, "JSON", Json()),
    (Type.BYTE_ARRAY, "BSON", Bson()),
    (Type.INT32, "DATE", Date()),
    (Type.INT32, "TIME_MILLIS", Time("ms", utc=True)),
    (Type.INT64, "TIME_MICROS", Time("us", utc=True)),
    (Type.INT64, "TIMESTAMP_MILLIS", Timestamp("ms", utc=True)),
    (Type.INT64, "TIMESTAMP_MICROS", Timestamp("us", utc=True)),
    (Type.INT32, "INT_8", Integer(8, True)),
    (Type.INT32, "INT_16", Integer(16, True)),
    (Type.INT32, "INT_32", Integer(32, True)),
    (Type.INT64, "INT_64", Integer(64, True)),
    (Type.INT32, "UINT_8", Integer(8, False)),
    (Type.INT32, "UINT_16", Integer(16, False)),
    (Type.INT32, "UINT_32", Integer(32, False)),
    (Type.INT64, "UINT_64", Integer(64, False)),
]


def leaf(physical: Type, **members: Any) -> fmt.SchemaElement:
    return fmt.SchemaElement(type=physical, name="x", repetition_type=fmt.FieldRepetitionType.REQUIRED, **members)


@pytest.mark.parametrize(("physical", "name", "logical"), CONVERTED)
def test_converted_types_both_ways(physical: Type, name: str, logical: LogicalType) -> None:
    converted = fmt.ConvertedType[name]
    assert logical_from_thrift(leaf(physical, converted_type=converted)) == logical
    union, written, scale, precision = logical_to_thrift(logical)
    assert (written, scale, precision) == (converted, None, None)
    assert logical_from_thrift(leaf(physical, logicalType=union)) == logical


def test_converted_interval_has_no_logical_type() -> None:
    converted = fmt.ConvertedType.INTERVAL
    element = leaf(Type.FIXED_LEN_BYTE_ARRAY, type_length=12, converted_type=converted)
    assert logical_from_thrift(element) == Interval()
    assert logical_to_thrift(Interval()) == (None, converted, None, None)


def test_unknown_beside_a_converted_type_is_the_converted_type() -> None:
    """parquet-java writes INTERVAL columns, full of values, with a ``logicalType`` of UNKNOWN."""
    unknown = fmt.LogicalType(UNKNOWN=fmt.NullType())
    interval = leaf(Type.FIXED_LEN_BYTE_ARRAY, type_length=12, converted_type=fmt.ConvertedType.INTERVAL, logicalType=unknown)
    assert logical_from_thrift(interval) == Interval()
    decimal = leaf(Type.INT32, converted_type=fmt.ConvertedType.DECIMAL, scale=2, precision=9, logicalType=unknown)
    assert logical_from_thrift(decimal) == Decimal(9, 2)
    assert logical_from_thrift(leaf(Type.INT32, converted_type=24, logicalType=unknown)) == Unknown()


@pytest.mark.parametrize(
    ("physical", "length", "logical", "converted"),
    [
        (Type.INT32, None, Time("ms"), "TIME_MILLIS"),  # local times carry the old annotations too
        (Type.INT64, None, Time("us"), "TIME_MICROS"),
        (Type.INT64, None, Time("ns"), None),
        (Type.INT64, None, Time("ns", utc=True), None),
        (Type.INT64, None, Timestamp("ms"), "TIMESTAMP_MILLIS"),
        (Type.INT64, None, Timestamp("us"), "TIMESTAMP_MICROS"),
        (Type.INT64, None, Timestamp("ns"), None),
        (Type.INT64, None, Timestamp("ns", utc=True), None),
        (Type.FIXED_LEN_BYTE_ARRAY, 16, Uuid(), None),
        (Type.FIXED_LEN_BYTE_ARRAY, 2, Float16(), None),
        (Type.DOUBLE, None, Unknown(), None),
    ],
)
def test_logical_types_both_ways(physical: Type, length: Any, logical: LogicalType, converted: str | None) -> None:
    union, written, _, _ = logical_to_thrift(logical)
    assert written == (None if converted is None else fmt.ConvertedType[converted])
    assert logical_from_thrift(leaf(physical, type_length=length, logicalType=union)) == logical


def test_decimals_say_their_digits_twice() -> None:
    union, converted, scale, precision = logical_to_thrift(Decimal(9, 2))
    assert (converted, scale, precision) == (fmt.ConvertedType.DECIMAL, 2, 9)
    assert logical_from_thrift(leaf(Type.INT32, logicalType=union)) == Decimal(9, 2)
    old = leaf(Type.INT32, converted_type=converted, scale=2, precision=9)
    assert logical_from_thrift(old) == Decimal(9, 2)
    assert logical_from_thrift(leaf(Type.INT32, converted_type=converted, precision=9)) == Decimal(9, 0)


@pytest.mark.parametrize(
    ("physical", "members"),
    [
        (Type.FIXED_LEN_BYTE_ARRAY, {"type_length": 5, "converted_type": fmt.ConvertedType.UTF8}),
        (Type.INT64, {"logicalType": fmt.LogicalType(DATE=fmt.DateType())}),
        (Type.FIXED_LEN_BYTE_ARRAY, {"type_length": 15, "logicalType": fmt.LogicalType(UUID=fmt.UUIDType())}),
        (Type.DOUBLE, {"logicalType": fmt.LogicalType(DECIMAL=fmt.DecimalType(scale=2, precision=9))}),
        (Type.INT32, {"logicalType": fmt.LogicalType(INTEGER=fmt.IntType(bitWidth=24, isSigned=True))}),
        (Type.BYTE_ARRAY, {"logicalType": fmt.LogicalType(VARIANT=fmt.VariantType())}),
        (Type.BYTE_ARRAY, {"converted_type": fmt.ConvertedType.LIST}),
        (Type.BYTE_ARRAY, {"converted_type": 99}),
        (Type.INT32, {}),
    ],
)
def test_what_is_unknown_or_does_not_fit_is_no_logical_type(physical: Type, members: dict[str, Any]) -> None:
    assert logical_from_thrift(leaf(physical, **members)) is None


@pytest.mark.parametrize(
    ("physical", "members"),
    [
        (Type.INT32, {"converted_type": fmt.ConvertedType.DECIMAL}),
        (Type.INT32, {"logicalType": fmt.LogicalType(DECIMAL=fmt.DecimalType(scale=0, precision=10))}),
        (Type.INT64, {"logicalType": fmt.LogicalType(DECIMAL=fmt.DecimalType(scale=5, precision=4))}),
        (Type.BYTE_ARRAY, {"logicalType": fmt.LogicalType(DECIMAL=fmt.DecimalType(scale=0, precision=0))}),
        (Type.INT32, {"converted_type": fmt.ConvertedType.UINT_64}),
    ],
)
def test_annotations_that_would_give_wrong_values_are_errors(physical: Type, members: dict[str, Any]) -> None:
    with pytest.raises(FormatError):
        logical_from_thrift(leaf(physical, **members))


def test_unknown_time_units_are_unsupported() -> None:
    union = fmt.LogicalType(TIMESTAMP=fmt.TimestampType(isAdjustedToUTC=True, unit=fmt.TimeUnit()))
    with pytest.raises(UnsupportedError, match="time unit"):
        logical_from_thrift(leaf(Type.INT64, logicalType=union))
