"""Row metadata: the Spark schema kept in the key-value metadata of files from Spark, for types unknown to Parquet."""

from __future__ import annotations

import json
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import types as st

from fastpq.errors import UnsupportedError


def refined(schema: st.StructType, stored: str | None) -> st.StructType:
    """The Spark schema of a file, with the intervals and collations of its row metadata.

    Fields whose types contradict the row metadata keep their types, as do all fields if the row metadata cannot be read: Spark
    reads such files in the same way.

    Args:
        schema: schema made from the Parquet schema.
        stored: row metadata of the file, if any.

    Raises:
        UnsupportedError: year-month intervals, for which Spark has no Arrow type.
    """
    stated = None if stored is None else _parsed(stored)
    return schema if stated is None else _refined_struct(schema, stated)


def _parsed(stored: str) -> st.StructType | None:
    try:
        return st.StructType.fromJson(_without_classes(json.loads(stored)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, PySparkException):
        return None


def _without_classes(part: Any) -> Any:
    """Parsed JSON with user-defined types replaced by their storage: Spark's parser would import classes named by the file."""
    if isinstance(part, dict):
        if part.get("type") == "udt":
            return _without_classes(part["sqlType"])
        return {name: _without_classes(inner) for name, inner in part.items()}
    return [_without_classes(inner) for inner in part] if isinstance(part, list) else part


def _refined_struct(struct: st.StructType, stated: st.StructType) -> st.StructType:
    types = {part.name: part.dataType for part in stated.fields}
    return st.StructType(
        [st.StructField(part.name, _refined(part.dataType, types.get(part.name)), part.nullable) for part in struct.fields]
    )


def _refined(type_: st.DataType, stated: st.DataType | None) -> st.DataType:
    match type_, stated:
        case st.StructType(), st.StructType():
            return _refined_struct(type_, stated)
        case st.ArrayType(), st.ArrayType():
            return st.ArrayType(_refined(type_.elementType, stated.elementType), type_.containsNull)
        case st.MapType(), st.MapType():
            key, value = _refined(type_.keyType, stated.keyType), _refined(type_.valueType, stated.valueType)
            return st.MapType(key, value, type_.valueContainsNull)
        case (st.LongType(), st.DayTimeIntervalType()) | (st.StringType(), st.StringType()):
            assert stated is not None
            return stated
        case st.IntegerType(), st.YearMonthIntervalType():
            raise UnsupportedError("year-month intervals: PySpark has no Arrow type (a schema with int reads the months)")
    return type_
