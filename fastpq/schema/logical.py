"""Conversion of logical types to and from a SchemaElement's annotations ``logicalType`` and ``converted_type``.

LogicalTypes.md and parquet.thrift describe both annotations.
"""

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
    type_mismatch,
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
# Local times have the same converted types as UTC times (LogicalTypes.md, "TIME" and "TIMESTAMP", "Forward compatibility").
_TO_CONVERTED = {logical: fmt.ConvertedType(number) for number, logical in _CONVERTED.items()} | {
    Time("ms"): fmt.ConvertedType.TIME_MILLIS,
    Time("us"): fmt.ConvertedType.TIME_MICROS,
    Timestamp("ms"): fmt.ConvertedType.TIMESTAMP_MILLIS,
    Timestamp("us"): fmt.ConvertedType.TIMESTAMP_MICROS,
}
# Logical types without parameters: the member of the union LogicalType, and the member's struct.
_SIMPLE_TYPES: dict[LogicalType, tuple[str, type[fmt.Struct]]] = {
    String(): ("STRING", fmt.StringType),
    Enum(): ("ENUM", fmt.EnumType),
    Date(): ("DATE", fmt.DateType),
    Unknown(): ("UNKNOWN", fmt.NullType),
    Json(): ("JSON", fmt.JsonType),
    Bson(): ("BSON", fmt.BsonType),
    Uuid(): ("UUID", fmt.UUIDType),
    Float16(): ("FLOAT16", fmt.Float16Type),
}
# The same for units: the member of the union TimeUnit, and the member's struct.
TIME_UNITS: dict[TimeUnitName, tuple[str, type[fmt.Struct]]] = {
    "ms": ("MILLIS", fmt.MilliSeconds),
    "us": ("MICROS", fmt.MicroSeconds),
    "ns": ("NANOS", fmt.NanoSeconds),
}
# Annotations that are forbidden on a physical type, but are ignored because they do not change its values: INT96 timestamps, and
# fixed-length text, which fastparquet writes.
_WITHOUT_EFFECT = {(Type.INT96, Timestamp), *((Type.FIXED_LEN_BYTE_ARRAY, text) for text in (String, Enum, Json, Bson))}


def logical_from_thrift(element: fmt.SchemaElement) -> LogicalType | None:
    """Return a leaf's logical type, or None.

    ``logicalType`` wins over ``converted_type``. Unknown annotations are ignored. A ``logicalType`` that is forbidden on the
    physical type is ignored too, unless the physical values would then be wrong. pyarrow and DuckDB also read such columns.

    Args:
        element: a schema leaf.

    Raises:
        FormatError: a decimal has an impossible precision or scale, UINT_64 annotates INT32, or a ``converted_type`` is forbidden
            on the physical type.
        UnsupportedError: a time unit is not MILLIS, MICROS or NANOS.
    """
    if element.logicalType is not None and not _is_placeholder(element):
        logical = _from_union(element.logicalType, element.name)
    elif element.converted_type == fmt.ConvertedType.DECIMAL:
        if element.precision is None:
            raise FormatError("a decimal has no precision", column=element.name)
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
    reason = type_mismatch(physical, element.type_length if physical == Type.FIXED_LEN_BYTE_ARRAY else None, logical)
    if reason is None:
        return logical
    if element.logicalType is None or _changes_values(physical, logical):
        raise FormatError(reason, column=element.name)
    return None


def _is_placeholder(element: fmt.SchemaElement) -> bool:
    """Return whether UNKNOWN comes with a known converted type, as in INTERVAL columns from parquet-java.

    UNKNOWN itself has no converted type.
    """
    assert element.logicalType is not None
    is_known = element.converted_type == fmt.ConvertedType.DECIMAL or element.converted_type in _CONVERTED
    return element.logicalType.UNKNOWN is not None and is_known


def _changes_values(physical: Type, logical: LogicalType) -> bool:
    """Return whether values would be wrong without this logical type, which is forbidden on the physical type."""
    match logical:
        case Decimal():
            return physical in (Type.INT32, Type.INT64, Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY)
        case Integer(64, signed=False):
            return physical == Type.INT32
    return False


def _from_union(union: fmt.LogicalType, name: str) -> LogicalType | None:
    for logical, (member, _) in _SIMPLE_TYPES.items():
        if getattr(union, member) is not None:
            return logical
    if union.DECIMAL is not None:
        return Decimal(union.DECIMAL.precision, union.DECIMAL.scale)
    if union.TIME is not None:
        return Time(_unit(union.TIME.unit, name), union.TIME.isAdjustedToUTC)
    if union.TIMESTAMP is not None:
        return Timestamp(_unit(union.TIMESTAMP.unit, name), union.TIMESTAMP.isAdjustedToUTC)
    if union.INTEGER is not None:
        return Integer(cast(BitWidth, union.INTEGER.bitWidth), union.INTEGER.isSigned)  # type_mismatch() checks the width
    if union.GEOMETRY is not None:
        return Geometry(union.GEOMETRY.crs)
    if union.GEOGRAPHY is not None:
        return _geography(union.GEOGRAPHY)
    return None


def _geography(annotation: fmt.GeographyType) -> LogicalType | None:
    """Return the logical type for a GEOGRAPHY annotation, or None if the edge algorithm is unknown.

    The values' bytes do not depend on the algorithm.
    """
    if annotation.algorithm is None:
        return Geography(annotation.crs)
    names = [name for name, number in fmt.EdgeInterpolationAlgorithm.__members__.items() if number == annotation.algorithm]
    return Geography(annotation.crs, cast(EdgeAlgorithm, names[0])) if names else None


def _unit(unit: fmt.TimeUnit, name: str) -> TimeUnitName:
    for unit_name, (member, _) in TIME_UNITS.items():
        if getattr(unit, member) is not None:
            return unit_name
    raise UnsupportedError(f"the time unit {unit!r} is not supported", column=name)


def _thrift_unit(unit: TimeUnitName) -> fmt.TimeUnit:
    member, struct = TIME_UNITS[unit]
    return fmt.TimeUnit(**{member: struct()})


Annotations = tuple[fmt.LogicalType | None, fmt.ConvertedType | None, int | None, int | None]


def logical_to_thrift(logical: LogicalType | None) -> Annotations:
    """Return a SchemaElement's annotations for a logical type, both the current and the deprecated one.

    Args:
        logical: the logical type, or None.

    Returns:
        ``(logicalType, converted_type, scale, precision)``. Each is None if the specification has none ("Forward compatibility"
        in LogicalTypes.md).
    """
    if logical is None:
        return None, None, None, None
    if isinstance(logical, Decimal):
        union = fmt.LogicalType(DECIMAL=fmt.DecimalType(scale=logical.scale, precision=logical.precision))
        return union, fmt.ConvertedType.DECIMAL, logical.scale, logical.precision
    return _to_union(logical), _TO_CONVERTED.get(logical), None, None


def _to_union(logical: LogicalType) -> fmt.LogicalType | None:
    if logical in _SIMPLE_TYPES:
        member, struct = _SIMPLE_TYPES[logical]
        return fmt.LogicalType(**{member: struct()})
    match logical:
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
