"""Logical types to and from the footer, with the ConvertedTypes of old (LogicalTypes.md)."""

from __future__ import annotations

from fastpq import format as fmt
from fastpq.types import (
    MAX_PRECISION_256,
    Bson,
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
    TimeUnitName,
    Type,
    Unknown,
    Uuid,
)

_C = fmt.ConvertedType

_CONVERTED: dict[int, LogicalType] = {
    _C.UTF8: String(),
    _C.ENUM: Enum(),
    _C.DATE: Date(),
    _C.TIME_MILLIS: Time("ms", True),
    _C.TIME_MICROS: Time("us", True),
    _C.TIMESTAMP_MILLIS: Timestamp("ms", True),
    _C.TIMESTAMP_MICROS: Timestamp("us", True),
    _C.UINT_8: Integer(8, False),
    _C.UINT_16: Integer(16, False),
    _C.UINT_32: Integer(32, False),
    _C.UINT_64: Integer(64, False),
    _C.INT_8: Integer(8, True),
    _C.INT_16: Integer(16, True),
    _C.INT_32: Integer(32, True),
    _C.INT_64: Integer(64, True),
    _C.JSON: Json(),
    _C.BSON: Bson(),
    _C.INTERVAL: Interval(),
}
# Local times and timestamps have no ConvertedType.
_CONVERTED_OF = {logical: converted for converted, logical in _CONVERTED.items()}

_SIMPLE: dict[str, LogicalType] = {
    "STRING": String(),
    "ENUM": Enum(),
    "DATE": Date(),
    "UNKNOWN": Unknown(),
    "JSON": Json(),
    "BSON": Bson(),
    "UUID": Uuid(),
    "FLOAT16": Float16(),
}
_UNITS: dict[str, TimeUnitName] = {"MILLIS": "ms", "MICROS": "us", "NANOS": "ns"}
_UNIT_MEMBERS: dict[str, fmt.TimeUnit] = {
    "ms": fmt.TimeUnit(MILLIS=fmt.MilliSeconds()),
    "us": fmt.TimeUnit(MICROS=fmt.MicroSeconds()),
    "ns": fmt.TimeUnit(NANOS=fmt.NanoSeconds()),
}
_DECIMAL_DIGITS = {
    Type.INT32: 9,
    Type.INT64: 18,
    Type.BYTE_ARRAY: MAX_PRECISION_256,
    Type.FIXED_LEN_BYTE_ARRAY: MAX_PRECISION_256,
}


def logical_from_thrift(element: fmt.SchemaElement) -> LogicalType | None:
    """The logical type of a leaf: its LogicalType or, without one that is known here, its ConvertedType.

    An annotation that does not fit the physical type is no annotation: values then come as they are stored.
    """
    if element.type is None:
        return None
    logical = _from_union(element.logicalType) if element.logicalType is not None else None
    if logical is None and element.converted_type is not None:
        if element.converted_type == _C.DECIMAL:
            logical = Decimal(element.precision or 0, element.scale or 0)
        else:
            logical = _CONVERTED.get(element.converted_type)
    return logical if logical is not None and fits(logical, Type(element.type), element.type_length) else None


def fits(logical: LogicalType, physical: Type, length: int | None) -> bool:
    """Whether the specification allows the logical type on the physical type."""
    match logical:
        case String() | Enum() | Json() | Bson():
            return physical is Type.BYTE_ARRAY
        case Uuid():
            return physical is Type.FIXED_LEN_BYTE_ARRAY and length == 16
        case Float16():
            return physical is Type.FIXED_LEN_BYTE_ARRAY and length == 2
        case Interval():
            return physical is Type.FIXED_LEN_BYTE_ARRAY and length == 12
        case Date():
            return physical is Type.INT32
        case Time(unit):
            return physical is (Type.INT32 if unit == "ms" else Type.INT64)
        case Timestamp():
            return physical is Type.INT64
        case Integer(bit_width):
            return physical is (Type.INT64 if bit_width == 64 else Type.INT32)
        case Decimal(precision, scale):
            return physical in _DECIMAL_DIGITS and 0 < precision <= _DECIMAL_DIGITS[physical] and 0 <= scale <= precision
        case Unknown():
            return True
    return False


def _from_union(union: fmt.LogicalType) -> LogicalType | None:
    member = union.member
    if member is None:
        return None
    if union.DECIMAL is not None:
        return Decimal(union.DECIMAL.precision, union.DECIMAL.scale)
    if union.INTEGER is not None and union.INTEGER.bitWidth in (8, 16, 32, 64):
        return Integer(union.INTEGER.bitWidth, union.INTEGER.isSigned)  # type: ignore[arg-type]
    for kind, annotation in ((Time, union.TIME), (Timestamp, union.TIMESTAMP)):
        if annotation is not None and annotation.unit.member is not None:
            return kind(_UNITS[annotation.unit.member], annotation.isAdjustedToUTC)
    return _SIMPLE.get(member)


def annotate(element: fmt.SchemaElement, logical: LogicalType | None) -> None:
    """Write a logical type into a leaf's element, with the ConvertedType that old readers know it by."""
    if logical is None:
        return
    if isinstance(logical, Decimal):
        element.converted_type = _C.DECIMAL
        element.scale, element.precision = logical.scale, logical.precision
    else:
        element.converted_type = _CONVERTED_OF.get(logical)
    element.logicalType = _to_union(logical)


def _to_union(logical: LogicalType) -> fmt.LogicalType | None:
    match logical:
        case Decimal(precision, scale):
            return fmt.LogicalType(DECIMAL=fmt.DecimalType(scale=scale, precision=precision))
        case Integer(bit_width, signed):
            return fmt.LogicalType(INTEGER=fmt.IntType(bitWidth=bit_width, isSigned=signed))
        case Time(unit, utc):
            return fmt.LogicalType(TIME=fmt.TimeType(isAdjustedToUTC=utc, unit=_UNIT_MEMBERS[unit]))
        case Timestamp(unit, utc):
            return fmt.LogicalType(TIMESTAMP=fmt.TimestampType(isAdjustedToUTC=utc, unit=_UNIT_MEMBERS[unit]))
        case Interval():
            return None
    classes = {
        String: ("STRING", fmt.StringType),
        Enum: ("ENUM", fmt.EnumType),
        Date: ("DATE", fmt.DateType),
        Unknown: ("UNKNOWN", fmt.NullType),
        Json: ("JSON", fmt.JsonType),
        Bson: ("BSON", fmt.BsonType),
        Uuid: ("UUID", fmt.UUIDType),
        Float16: ("FLOAT16", fmt.Float16Type),
    }
    name, made = classes[type(logical)]
    return fmt.LogicalType(**{name: made()})
