"""Arrow types of the columns that travel between the JVM and its workers, with the types that PySpark's conversion lacks."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import types as st

from fastpq.spark.tables.spark_types import reader_schema


def memory_schema(schema: st.StructType) -> pa.Schema:
    """Return the Arrow schema for a Spark schema. Year-month intervals are months, and void may stand inside other types."""
    return pa.schema([memory_field(part) for part in schema.fields])


def memory_field(part: st.StructField) -> pa.Field:
    """Return the Arrow field for a field of a Spark schema."""
    return pa.field(part.name, _memory_type(part.dataType), part.nullable)


def _memory_type(type_: st.DataType) -> pa.DataType:
    match type_:
        case st.StructType():
            return pa.struct([memory_field(part) for part in type_.fields])
        case st.ArrayType():
            element = _memory_type(type_.elementType)
            return pa.list_(pa.field("element", element, type_.containsNull or pa.types.is_null(element)))
        case st.MapType():
            value = pa.field("value", _memory_type(type_.valueType), type_.valueContainsNull)
            return pa.map_(_memory_type(type_.keyType), value)
        case st.YearMonthIntervalType():
            return pa.int32()
        case st.NullType():
            return pa.null()
    return reader_schema(st.StructType([st.StructField("value", type_)])).field(0).type
