"""Columns that hold only nulls, with any type, flat or nested, and tables without rows."""

from __future__ import annotations

import numpy as np

from fastpq.arrays.nested_columns import ListColumn, StructColumn
from fastpq.arrays.table import AnyColumn, Table
from fastpq.convert.numpy_input import column_from_numpy
from fastpq.schema.nested_types import DataType, StructType, element_of
from fastpq.schema.parquet_schema import ParquetSchema, int96_types
from fastpq.schema.shape import shape_field, shape_of
from fastpq.schema.types import ColumnType

_ONE_NULL = np.zeros(1, np.uint8)


def null_column(type_: DataType, count: int) -> AnyColumn:
    """Return a column with ``count`` nulls and any type."""
    return _one_null(type_).take(np.zeros(count, np.int64))


def empty_table(schema: ParquetSchema) -> Table:
    """Return a table without rows that has a schema's columns. INT96 timestamps have nanoseconds."""
    every, types = range(len(schema.columns)), int96_types(schema.columns, "ns")
    fields = [shape_field(shape_of(node, every, types)) for node in schema.root.children]
    return Table._made([(field.name, null_column(field.type, 0)._with(nullable=field.nullable)) for field in fields], 0)


def _one_null(type_: DataType) -> AnyColumn:
    if isinstance(type_, ColumnType):
        return column_from_numpy(np.array([None], object), type=type_)
    if isinstance(type_, StructType):
        # nobody reads a required field's value inside a null struct
        children = tuple(_one_null(field.type)._with(nullable=field.nullable) for field in type_.fields)
        children = tuple(child if child.nullable else child._with(validity=None, null_count=0) for child in children)
        return StructColumn._made(type_, children, 1, validity=_ONE_NULL, null_count=1)
    element = element_of(type_)
    elements = _one_null(element.type).slice(0, 0)._with(nullable=element.nullable)
    return ListColumn._made(type_, np.zeros(2, np.int32), elements, validity=_ONE_NULL, null_count=1)
