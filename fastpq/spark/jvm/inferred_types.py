"""Spark types for columns in files that Spark did not write. Some settings of the session change them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import types as st

from fastpq.spark.core import (
    ColumnType,
    DataType,
    ListType,
    MapType,
    ParquetSchema,
    StructType,
    Type,
    UnsupportedError,
    pt,
    shape_of,
)
from fastpq.spark.tables.spark_types import spark_schema, spark_type

BINARY_AS_STRING = "spark.sql.parquet.binaryAsString"
INFER_LOCAL = "spark.sql.parquet.inferTimestampNTZ.enabled"
INT96_AS_TIMESTAMP = "spark.sql.parquet.int96AsTimestamp"
NANOS_AS_LONG = "spark.sql.legacy.parquet.nanosAsLong"
_CHANGING = {NANOS_AS_LONG: "true", BINARY_AS_STRING: "true", INFER_LOCAL: "false", INT96_AS_TIMESTAMP: "false"}
Settings = Mapping[str, str | None]


def inferred_schema(schema: ParquetSchema, settings: Settings) -> st.StructType:
    """Return the Spark schema for the schema of a file without Spark's row metadata.

    Args:
        schema: the file's schema.
        settings: the session's settings by name. None stands for a setting's default.

    Raises:
        UnsupportedError: Spark does not have a type, or the settings refuse it.
    """
    if not any(_is(settings, name, value) for name, value in _CHANGING.items()):
        return spark_schema(schema)
    fields = []
    for node in schema.root.children:
        shape = shape_of(node, range(len(schema.columns)))
        try:
            fields.append(st.StructField(shape.name, spark_type(_changed(shape.type, settings)), True))
        except UnsupportedError as error:
            raise error.at(column=shape.name) from None
    return st.StructType(fields)


def _changed(type_: DataType, settings: Settings) -> DataType:
    """Return a stored type as the settings let Spark see it."""
    match type_:
        case StructType(annotation=None):
            return replace(type_, fields=tuple(replace(part, type=_changed(part.type, settings)) for part in type_.fields))
        case ListType():
            return replace(type_, element=replace(type_.element, type=_changed(type_.element.type, settings)))
        case MapType():
            key, value = (replace(part, type=_changed(part.type, settings)) for part in (type_.key, type_.value))
            return MapType(key, value)
        case ColumnType(physical=Type.BYTE_ARRAY, logical=None) if _is(settings, BINARY_AS_STRING, "true"):
            return ColumnType(Type.BYTE_ARRAY, None, pt.String())
        case ColumnType(logical=pt.Timestamp("ns", _)) if _is(settings, NANOS_AS_LONG, "true"):
            raise UnsupportedError(f"timestamps in nanoseconds are not read as numbers, which {NANOS_AS_LONG}=true asks for")
        case ColumnType(logical=pt.Timestamp(unit, False)) if _is(settings, INFER_LOCAL, "false"):
            return ColumnType(type_.physical, None, pt.Timestamp(unit, True))
        case ColumnType(physical=Type.INT96) if _is(settings, INT96_AS_TIMESTAMP, "false"):
            raise UnsupportedError(f"INT96 columns are refused by {INT96_AS_TIMESTAMP}=false")
    return type_


def _is(settings: Settings, name: str, value: str) -> bool:
    return str(settings.get(name)).lower() == value
