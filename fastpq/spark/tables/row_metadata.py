"""Row metadata: Spark keeps its schema in key-value metadata, and fastpq takes types from it that Parquet does not have."""

from __future__ import annotations

import json
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import types as st

from fastpq.spark.core import UnsupportedError


def refined(schema: st.StructType, row_metadata: str | None, *, has_months: bool = False) -> st.StructType:
    """Return a file's Spark schema, to which its row metadata adds intervals and collations.

    A field whose type contradicts the row metadata keeps its type. All fields keep their types if the row metadata cannot be
    read. Spark reads such files in the same way.

    Args:
        schema: schema made from the Parquet schema.
        row_metadata: the file's row metadata, if it has any.
        has_months: whether the reader has a type for year-month intervals.

    Raises:
        UnsupportedError: the file has year-month intervals, and the reader has no type for them.
    """
    recorded_schema = None if row_metadata is None else _parsed(row_metadata)
    return schema if recorded_schema is None else _refined_struct(schema, recorded_schema, has_months)


def _parsed(text: str) -> st.StructType | None:
    try:
        return st.StructType.fromJson(_without_classes(json.loads(text)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, PySparkException):
        return None


def _without_classes(part: Any) -> Any:
    """Replace user-defined types in parsed JSON by their storage types. Spark's parser would import classes named in the file."""
    if isinstance(part, dict):
        if part.get("type") == "udt":
            return _without_classes(part["sqlType"])
        return {name: _without_classes(inner) for name, inner in part.items()}
    return [_without_classes(inner) for inner in part] if isinstance(part, list) else part


def _refined_struct(struct: st.StructType, recorded_struct: st.StructType, has_months: bool) -> st.StructType:
    fields = {part.name: part for part in recorded_struct.fields}
    return st.StructType([_refined_field(part, fields.get(part.name), has_months) for part in struct.fields])


def _refined_field(part: st.StructField, recorded_field: st.StructField | None, has_months: bool) -> st.StructField:
    if recorded_field is None:
        return part
    type_ = _refined(part.dataType, recorded_field.dataType, has_months)
    return st.StructField(part.name, type_, part.nullable, recorded_field.metadata if has_months else None)


def _refined(type_: st.DataType, recorded_type: st.DataType, has_months: bool) -> st.DataType:
    match type_, recorded_type:
        case st.StructType(), st.StructType():
            return _refined_struct(type_, recorded_type, has_months)
        case st.ArrayType(), st.ArrayType():
            return st.ArrayType(_refined(type_.elementType, recorded_type.elementType, has_months), type_.containsNull)
        case st.MapType(), st.MapType():
            key = _refined(type_.keyType, recorded_type.keyType, has_months)
            return st.MapType(key, _refined(type_.valueType, recorded_type.valueType, has_months), type_.valueContainsNull)
        case (st.LongType(), st.DayTimeIntervalType()) | (st.StringType(), st.StringType()):
            return recorded_type
        case st.IntegerType(), st.YearMonthIntervalType():
            if not has_months:
                raise UnsupportedError("year-month intervals: PySpark has no Arrow type (a schema with int reads the months)")
            return recorded_type
    return type_
