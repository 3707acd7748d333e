"""One schema for all files of a dataset, and conversion of a file's columns to the common schema."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fastpq.arrays.table import AnyColumn
from fastpq.convert.numpy_input import column_from_numpy
from fastpq.errors import SchemaError
from fastpq.schema.nested_types import DataType, Field
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.types import ColumnType, Integer, Type


def unify(schemas: Iterable[tuple[str, dict[str, Field]]]) -> dict[str, Field]:
    """Columns of all files, in order of first appearance.

    A column missing in a file becomes nullable; signed integers of different widths become the wider type.

    Args:
        schemas: path of each file, and its columns by name.

    Raises:
        SchemaError: incompatible types of a column; the message names both files.
    """
    unified: dict[str, Field] = {}
    origin: dict[str, str] = {}
    for number, (path, fields) in enumerate(schemas):
        for name, field in fields.items():
            known = unified.get(name)
            if known is None:
                unified[name] = replace(field, nullable=field.nullable or number > 0)
                origin[name] = path
                continue
            type_ = _common(known.type, field.type)
            if type_ is None:
                raise SchemaError(f"{field.type} here is {known.type} in {origin[name]}", column=name, path=path)
            unified[name] = Field(name, type_, known.nullable or field.nullable)
        for name in unified.keys() - fields.keys():
            unified[name] = replace(unified[name], nullable=True)
    return unified


def conform(column: AnyColumn, field: Field) -> AnyColumn:
    """A column of a file in the dataset's type, with integers widened; INT96 columns keep their unit."""
    if column.type != field.type and isinstance(field.type, ColumnType) and field.type.physical is not Type.INT96:
        column = column_from_numpy(column, type=field.type, name=field.name)
    return column._with(nullable=field.nullable)


def schema_of(fields: dict[str, Field]) -> ParquetSchema:
    """A ParquetSchema of the fields."""
    return ParquetSchema.of(fields.values())


def _common(one: DataType, other: DataType) -> DataType | None:
    if one == other:
        return one
    widths = [_signed_width(one), _signed_width(other)]
    if None in widths:
        return None
    return one if (widths[0] or 0) > (widths[1] or 0) else other


def _signed_width(type_: DataType) -> int | None:
    if not isinstance(type_, ColumnType) or type_.physical not in (Type.INT32, Type.INT64):
        return None
    if isinstance(type_.logical, Integer):
        return type_.logical.bit_width if type_.logical.signed else None
    if type_.logical is not None:
        return None
    return 32 if type_.physical is Type.INT32 else 64
