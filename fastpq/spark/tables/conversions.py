"""Stored types that may be read as another Spark type: the same as for Spark's own Parquet source.

Where a conversion is refused, Spark's own source mostly refuses it too. It also reads decimals, dates and timestamps as the plain
numbers that are stored. Such a read is refused here, since the numbers say something else than the values.
"""

from __future__ import annotations

from pyspark.sql import types as st

from fastpq.spark.core import ColumnType, DataType, ListType, MapType, SchemaError, StructType, Type, pt
from fastpq.spark.versions import GeographyType, GeometryType, TimeType

INT32_DIGITS, INT64_DIGITS = 10, 20         # a decimal needs so many digits before its point to hold each integer
_PLAIN_INT32: tuple[type[st.DataType], ...] = (st.ByteType, st.ShortType, st.IntegerType, st.LongType, st.DoubleType)
_TEXT: tuple[type[st.DataType], ...] = (st.StringType, st.CharType, st.VarcharType)
_FROM_BYTES: tuple[type[st.DataType], ...] = (*_TEXT, st.BinaryType, GeometryType, GeographyType)


class ConversionError(SchemaError):
    """A column's stored type cannot be read as the requested Spark type."""


def check_conversion(stored_type: DataType, requested_type: st.DataType, column: str) -> None:
    """Check that a stored type can be read as a Spark type.

    Args:
        stored_type: type in the file. Fields of structs have the names that the requested type has.
        requested_type: Spark type.
        column: the column's name, for the error.

    Raises:
        ConversionError: a value of the stored type may have no equal value of the Spark type.
    """
    match stored_type, requested_type:
        case StructType(annotation=None), st.StructType():
            types = {part.name: part.type for part in stored_type.fields}
            for part in requested_type.fields:
                if part.name in types:
                    check_conversion(types[part.name], part.dataType, f"{column}.{part.name}")
        case ListType(), st.ArrayType():
            check_conversion(stored_type.element.type, requested_type.elementType, f"{column}.element")
        case MapType(), st.MapType():
            check_conversion(stored_type.key.type, requested_type.keyType, f"{column}.key")
            check_conversion(stored_type.value.type, requested_type.valueType, f"{column}.value")
        case ColumnType(), _ if not _is_readable(stored_type, requested_type):
            name = requested_type.simpleString()
            raise ConversionError(f"{stored_type} is stored, which cannot be read as {name}", column=column)


def _is_readable(stored_type: ColumnType, requested_type: st.DataType) -> bool:
    if isinstance(requested_type, st.UserDefinedType):
        return _is_readable(stored_type, requested_type.sqlType())
    if isinstance(requested_type, st.NullType) or isinstance(stored_type.logical, pt.Unknown):
        return True
    if isinstance(stored_type.logical, pt.Decimal):
        return isinstance(requested_type, st.DecimalType) and _holds_decimal(stored_type.logical, requested_type)
    match stored_type.physical:
        case Type.BOOLEAN:
            return isinstance(requested_type, st.BooleanType)
        case Type.FLOAT:
            return isinstance(requested_type, st.FloatType | st.DoubleType)
        case Type.DOUBLE:
            return isinstance(requested_type, st.DoubleType)
        case Type.INT96:
            return isinstance(requested_type, st.TimestampType | st.TimestampNTZType)
        case Type.INT32:
            return _int32_is_readable(stored_type, requested_type)
        case Type.INT64:
            return _int64_is_readable(stored_type, requested_type)
    if isinstance(stored_type.logical, pt.Float16):
        return isinstance(requested_type, st.FloatType | st.DoubleType)
    return isinstance(requested_type, _FROM_BYTES)


def _int32_is_readable(stored_type: ColumnType, requested_type: st.DataType) -> bool:
    match stored_type.logical:
        case pt.Date():
            return isinstance(requested_type, st.DateType | st.TimestampNTZType)
        case pt.Time():
            return isinstance(requested_type, TimeType)
        case pt.Integer(width, False) if width > 16:
            return isinstance(requested_type, st.LongType)
    if isinstance(requested_type, st.DecimalType):
        return requested_type.precision - requested_type.scale >= INT32_DIGITS
    return isinstance(requested_type, (*_PLAIN_INT32, st.DateType, st.YearMonthIntervalType))


def _int64_is_readable(stored_type: ColumnType, requested_type: st.DataType) -> bool:
    match stored_type.logical:
        case pt.Timestamp():
            return isinstance(requested_type, st.TimestampType | st.TimestampNTZType)
        case pt.Time():
            return isinstance(requested_type, TimeType)
    if isinstance(requested_type, st.DecimalType):
        return requested_type.precision - requested_type.scale >= INT64_DIGITS
    return isinstance(requested_type, st.LongType | st.DayTimeIntervalType)


def _holds_decimal(stored_type: pt.Decimal, requested_type: st.DecimalType) -> bool:
    """Whether the requested type has as many digits before and behind the point."""
    more_digits = requested_type.scale - stored_type.scale
    return more_digits >= 0 and requested_type.precision - stored_type.precision >= more_digits
