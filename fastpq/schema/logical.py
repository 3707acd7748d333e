"""Logical types <-> ``logicalType`` and ``converted_type`` of a SchemaElement (LogicalTypes.md; parquet.thrift)."""

from __future__ import annotations

from typing import cast

from fastpq import format as fmt
from fastpq.errors import FormatError, UnsupportedError
from fastpq.schema.types import (
    BitWidth,
    Bson,
    Date,
    Decimal,
    EdgeAlgorithm,
    Enum,
    Float16,
    Geography,
    Geometry,
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
    misfit,
)

_CONVERTED: dict[int, LogicalType] = {
    fmt.ConvertedType.UTF8: String(),
    fmt.ConvertedType.ENUM: Enum(),
    fmt.ConvertedType.JSON: Json(),
    fmt.ConvertedType.BSON: Bson(),
    fmt.ConvertedType.INTERVAL: Interval(),
    fmt.ConvertedType.DATE: Date(),
    fmt.ConvertedType.TIME_MILLIS: Time("ms", utc=True),
    fmt.ConvertedType.TIME_MICROS: Time("us", utc=True),
    fmt.ConvertedType.TIMESTAMP_MILLIS: Timestamp("ms", utc=True),
    fmt.ConvertedType.TIMESTAMP_MICROS: Timestamp("us", utc=True),
    fmt.ConvertedType.INT_8: Integer(8, signed=True),
    fmt.ConvertedType.INT_16: Integer(16, signed=True),
    fmt.ConvertedType.INT_32: Integer(32, signed=True),
    fmt.ConvertedType.INT_64: Integer(64, signed=True),
    fmt.ConvertedType.UINT_8: Integer(8, signed=False),
    fmt.ConvertedType.UINT_16: Integer(16, signed=False),
    fmt.ConvertedType.UINT_32: Integer(32, signed=False),
    fmt.ConvertedType.UINT_64: Integer(64, signed=False),
}
# Local times are written with the converted types of UTC times ("Forward compatibility" of TIME and TIMESTAMP).
_TO_CONVERTED = {logical: fmt.ConvertedType(converted) for converted, logical in _CONVERTED.items()} | {
    Time("ms"): fmt.ConvertedType.TIME_MILLIS,
    Time("us"): fmt.ConvertedType.TIME_MICROS,
    Timestamp("ms"): fmt.ConvertedType.TIMESTAMP_MILLIS,
    Timestamp("us"): fmt.ConvertedType.TIMESTAMP_MICROS,
}


# Annotations forbidden on a physical type, and without effect on its values: INT96 timestamps, and fastparquet's text of one
# length.
_WITHOUT_EFFECT = {(Type.INT96, Timestamp), *((Type.FIXED_LEN_BYTE_ARRAY, text) for text in (String, Enum, Json, Bson))}


def logical_from_thrift(element: fmt.SchemaElement) -> LogicalType | None:
    """The logical type of a leaf, or None.

    ``logicalType`` wins over ``converted_type``. Unknown annotations count as none. A ``logicalType`` forbidden on the physical
    type counts as none, too, unless plain physical values would be wrong values; pyarrow and DuckDB read columns of this kind.

    Args:
        element: a leaf of the schema.

    Raises:
        FormatError: a decimal has an impossible precision or scale, or UINT_64 annotates INT32, or a ``converted_type`` is
            forbidden on the physical type.
        UnsupportedError: a time unit is not MILLIS, MICROS or NANOS.
    """
    if element.logicalType is not None and not _is_placeholder(element):
        logical = _from_union(element.logicalType, element.name)
    elif element.converted_type == fmt.ConvertedType.DECIMAL:
        if element.precision is None:
            raise FormatError("a decimal without its precision", column=element.name)
        logical = Decimal(element.precision, element.scale or 0)
    elif element.converted_type is not None:
        logical = _CONVERTED.get(element.converted_type)
    else:
        logical = None
    if logical is None or element.type is None:
        return None
    physical = Type(element.type)
    if (physical, type(logical)) in _WITHOUT_EFFECT:
        return None
    reason = misfit(physical, element.type_length if physical == Type.FIXED_LEN_BYTE_ARRAY else None, logical)
    if reason is None:
        return logical
    if element.logicalType is None or _changes_values(physical, logical):
        raise FormatError(reason, column=element.name)
    return None


def _is_placeholder(element: fmt.SchemaElement) -> bool:
    """Whether UNKNOWN, without a converted type of its own, stands beside a known one: INTERVAL columns of parquet-java."""
    assert element.logicalType is not None
    known = element.converted_type == fmt.ConvertedType.DECIMAL or element.converted_type in _CONVERTED
    return element.logicalType.UNKNOWN is not None and known


def _changes_values(physical: Type, logical: LogicalType) -> bool:
    """Whether physical values read without this logical type, unfit for the physical type, would be wrong values."""
    match logical:
        case Decimal():
            return physical in (Type.INT32, Type.INT64, Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY)
        case Integer(64, signed=False):
            return physical == Type.INT32
    return False


def _from_union(union: fmt.LogicalType, name: str) -> LogicalType | None:
    for member, logical in _SIMPLE_MEMBERS.items():
        if getattr(union, member) is not None:
            return logical
    if union.DECIMAL is not None:
        return Decimal(union.DECIMAL.precision, union.DECIMAL.scale)
    if union.TIME is not None:
        return Time(_unit(union.TIME.unit, name), union.TIME.isAdjustedToUTC)
    if union.TIMESTAMP is not None:
        return Timestamp(_unit(union.TIMESTAMP.unit, name), union.TIMESTAMP.isAdjustedToUTC)
    if union.INTEGER is not None:
        return Integer(cast(BitWidth, union.INTEGER.bitWidth), union.INTEGER.isSigned)  # misfit() checks the width
    if union.GEOMETRY is not None:
        return Geometry(union.GEOMETRY.crs)
    if union.GEOGRAPHY is not None:
        return _geography(union.GEOGRAPHY)
    return None


def _geography(annotation: fmt.GeographyType) -> LogicalType | None:
    """The logical type of a GEOGRAPHY annotation; None for an unknown edge algorithm, without effect on the stored bytes."""
    if annotation.algorithm is None:
        return Geography(annotation.crs)
    known = [name for name, number in fmt.EdgeInterpolationAlgorithm.__members__.items() if number == annotation.algorithm]
    return Geography(annotation.crs, cast(EdgeAlgorithm, known[0])) if known else None


_SIMPLE_MEMBERS: dict[str, LogicalType] = {
    "STRING": String(),
    "ENUM": Enum(),
    "DATE": Date(),
    "UNKNOWN": Unknown(),
    "JSON": Json(),
    "BSON": Bson(),
    "UUID": Uuid(),
    "FLOAT16": Float16(),
}


def _unit(unit: fmt.TimeUnit, name: str) -> TimeUnitName:
    if unit.MILLIS is not None:
        return "ms"
    if unit.MICROS is not None:
        return "us"
    if unit.NANOS is not None:
        return "ns"
    raise UnsupportedError(f"the time unit of {unit!r}", column=name)


def _thrift_unit(unit: TimeUnitName) -> fmt.TimeUnit:
    if unit == "ms":
        return fmt.TimeUnit(MILLIS=fmt.MilliSeconds())
    if unit == "us":
        return fmt.TimeUnit(MICROS=fmt.MicroSeconds())
    return fmt.TimeUnit(NANOS=fmt.NanoSeconds())


Annotations = tuple[fmt.LogicalType | None, fmt.ConvertedType | None, int | None, int | None]


def logical_to_thrift(logical: LogicalType | None) -> Annotations:
    """The fields of a SchemaElement for a logical type, both the current annotation and the deprecated one.

    Args:
        logical: the logical type, or None.

    Returns:
        ``(logicalType, converted_type, scale, precision)``; each None where the specification has none
        ("Forward compatibility" in LogicalTypes.md).
    """
    if logical is None:
        return None, None, None, None
    if isinstance(logical, Decimal):
        union = fmt.LogicalType(DECIMAL=fmt.DecimalType(scale=logical.scale, precision=logical.precision))
        return union, fmt.ConvertedType.DECIMAL, logical.scale, logical.precision
    return _to_union(logical), _TO_CONVERTED.get(logical), None, None


def _to_union(logical: LogicalType) -> fmt.LogicalType | None:
    match logical:
        case String():
            return fmt.LogicalType(STRING=fmt.StringType())
        case Enum():
            return fmt.LogicalType(ENUM=fmt.EnumType())
        case Json():
            return fmt.LogicalType(JSON=fmt.JsonType())
        case Bson():
            return fmt.LogicalType(BSON=fmt.BsonType())
        case Uuid():
            return fmt.LogicalType(UUID=fmt.UUIDType())
        case Float16():
            return fmt.LogicalType(FLOAT16=fmt.Float16Type())
        case Date():
            return fmt.LogicalType(DATE=fmt.DateType())
        case Unknown():
            return fmt.LogicalType(UNKNOWN=fmt.NullType())
        case Time(unit, utc):
            return fmt.LogicalType(TIME=fmt.TimeType(isAdjustedToUTC=utc, unit=_thrift_unit(unit)))
        case Timestamp(unit, utc):
            return fmt.LogicalType(TIMESTAMP=fmt.TimestampType(isAdjustedToUTC=utc, unit=_thrift_unit(unit)))
        case Integer(width, signed):
            return fmt.LogicalType(INTEGER=fmt.IntType(bitWidth=width, isSigned=signed))
        case Geometry(crs):
            return fmt.LogicalType(GEOMETRY=fmt.GeometryType(crs=crs))
        case Geography(crs, algorithm):
            number = None if algorithm is None else fmt.EdgeInterpolationAlgorithm[algorithm]
            return fmt.LogicalType(GEOGRAPHY=fmt.GeographyType(crs=crs, algorithm=number))
    return None  # INTERVAL has no member in the union yet
