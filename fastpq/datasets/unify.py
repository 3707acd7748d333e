"""Unites the schemas of all files in a dataset, and converts a file's columns to the united types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from fastpq.arrays.layouts import MAX_INT32
from fastpq.arrays.nodes import DURATION_UNITS, FieldNode, duration_field
from fastpq.arrays.table import AnyColumn, Column
from fastpq.convert.casting import decimal_type, integer_type
from fastpq.convert.fitting import fit
from fastpq.convert.nulls import null_column
from fastpq.convert.numpy_input import column_from_numpy
from fastpq.convert.schemas import resolved
from fastpq.datasets.discovery import DataFile
from fastpq.datasets.hive import infer_partition_type
from fastpq.errors import ParquetError, SchemaError
from fastpq.read.opener import StringLayout
from fastpq.read.wide_decimals import is_narrow_decimal, is_wide_decimal, wide_type
from fastpq.schema.nested_types import DataType, Field, ListType, MapType, StructType
from fastpq.schema.parquet_schema import Int96UnitName, ParquetSchema, int96_types
from fastpq.schema.shape import shape_field, shape_of
from fastpq.schema.types import (
    ColumnType,
    Date,
    Decimal,
    Float16,
    Integer,
    String,
    Time,
    Timestamp,
    Type,
    Unknown,
)

MOST_DIGITS = 76        # largest number of digits that a decimal has in memory
_TIME_UNITS = ("ms", "us", "ns")
_DURATION_UNITS = ("s", "ms", "us", "ns")
_FLOATS = (ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 2, Float16()), ColumnType(Type.FLOAT), ColumnType(Type.DOUBLE))
# For each type in _FLOATS, the largest number of bits for which it represents every integer exactly.
_EXACT_BITS = (11, 24, 53)


class DatasetField(NamedTuple):
    """A dataset's column.

    Attributes:
        field: name, type and nullability.
        duration: the Arrow field if the column has durations, otherwise None.
    """

    field: Field
    duration: FieldNode | None = None

    def is_stored_as(self, other: DatasetField) -> bool:
        """Return whether another field's values have the same type and, if they are durations, the same unit."""
        return self.field.type == other.field.type and self.duration == other.duration

    def __str__(self) -> str:
        return str(self.field.type) if self.duration is None else f"durations ({DURATION_UNITS[self.duration.format]})"

    def in_units_of(self, type_: DataType) -> DatasetField:
        """Return the field with the INT96 units and the widened decimals that another type has."""
        return self._replace(field=replace(self.field, type=_in_units_of(self.field.type, type_)))

    def nullable(self) -> DatasetField:
        """Return the field as one that allows nulls."""
        return self._replace(field=replace(self.field, nullable=True))

    def of_nulls(self, count: int) -> AnyColumn:
        """Return a column of nulls."""
        return null_column(self.field.type, count).with_arrow(self.duration)._with(nullable=self.field.nullable)

    def of_value(self, value: Any, count: int, strings: StringLayout) -> AnyColumn:
        """Return a column that has the same value in every row.

        Args:
            value: a partition value, or None for a column that a file lacks.
            count: row count.
            strings: layout for text and bytes.

        Raises:
            SchemaError: the value is None and the column is required.
        """
        name, type_ = self.field.name, self.field.type
        if value is None:
            if not self.field.nullable and count:
                raise SchemaError("a file lacks a column that the schema requires", column=name)
            return _laid_out(self.of_nulls(count), strings)
        is_small = type(value) is int and abs(value) <= MAX_INT32
        array = np.array([value], np.int64 if is_small else object)
        one = column_from_numpy(array, type=cast(ColumnType, type_), nullable=True, name=name)
        if isinstance(one, Column) and isinstance(one.values, np.ndarray) and not one.null_count:
            return one._with(values=np.repeat(one.values, count))
        return _laid_out(one.take(np.zeros(count, np.int64)), strings)


def _laid_out(column: AnyColumn, strings: StringLayout) -> AnyColumn:
    if column.is_nested or not column.type.is_variable:
        return column
    match strings:
        case "offsets":
            return column.as_offsets()
        case "dictionary":
            return column.as_dictionary()
    return column


def field_of_column(name: str, column: AnyColumn) -> DatasetField:
    """Return the field for a column in a file."""
    return DatasetField(column.as_field(name), column.arrow if column.arrow is not None and column.arrow.is_duration else None)


def united(
    schemas: Iterable[tuple[str, Mapping[str, DatasetField]]], conflicts: dict[str, tuple[str, str]]
) -> dict[str, DatasetField]:
    """Return the columns of all files, each with a type that holds the values in all files.

    Columns are in the order in which they first appear. Integers and floats get the narrowest type that holds both, except that
    a 64-bit integer and a float become DOUBLE. Timestamps, times and durations get the finer unit, dates and timestamps become
    timestamps, and decimals get more digits. A column that has only nulls gets the other type. Lists, maps and structs are
    united by element, by key and value, and by field. A column that a file lacks becomes nullable.

    Args:
        schemas: each file's path, and its columns by name.
        conflicts: filled in with an entry for each column with incompatible types, by name: what differs, and the path of a
            file. Such a column keeps its first type.
    """
    united_fields: dict[str, DatasetField] = {}
    origin: dict[str, str] = {}
    last_fields: Mapping[str, DatasetField] | None = None
    for number, (path, fields) in enumerate(schemas):
        if fields is last_fields:       # files with one schema share their fields
            continue
        last_fields = fields
        for name, new in fields.items():
            field = united_fields.get(name)
            if field is None:
                nullable = new.field.nullable or number > 0
                is_same = new.field.name == name and new.field.nullable == nullable
                united_fields[name] = new if is_same else new._replace(field=Field(name, new.field.type, nullable))
                origin[name] = path
            elif field != new:
                both = _common(field, new)
                if both is None:
                    conflicts.setdefault(name, (f"{new} here is {field} in {origin[name]}", path))
                else:
                    united_fields[name] = both
        for name in united_fields.keys() - fields.keys():
            field = united_fields[name]
            united_fields[name] = field.nullable()
    return united_fields


def given_fields(schema: Any, unit: Int96UnitName = "ns") -> dict[str, DatasetField]:
    """Return the columns in a schema that the caller gave.

    Args:
        schema: a ParquetSchema, or a mapping or an Arrow schema as for ``write_table``.
        unit: unit for INT96 timestamps. ``"auto"`` means nanoseconds.

    Raises:
        SchemaError: ``schema`` is not a schema, or has something that is not a data type.
    """
    if isinstance(schema, ParquetSchema):
        every, types = range(len(schema.columns)), int96_types(schema.columns, "ns" if unit == "auto" else unit)
        fields = [shape_field(shape_of(node, every, types)) for node in schema.root.children]
        return {field.name: DatasetField(field) for field in fields}
    if hasattr(schema, "__arrow_c_schema__"):
        from fastpq.arrow.capsules_in import take_schema

        schema = {child.name: child for child in take_schema(schema.__arrow_c_schema__()).children}
    if not isinstance(schema, Mapping):
        raise SchemaError(
            f'the schema of a dataset is "union", "first", a ParquetSchema, an Arrow schema or a mapping, not {schema!r}'
        )
    columns = {}
    for name, requested_type in schema.items():
        try:
            type_, node = resolved(requested_type)
        except ParquetError as error:
            raise error.at(column=str(name)) from None
        is_duration = node is not None and node.is_duration
        columns[name] = DatasetField(Field(name, type_, node is None or node.nullable), node if is_duration else None)
    return columns


def conform(column: AnyColumn, own: DatasetField, target: DatasetField) -> AnyColumn:
    """Return a file's column in the dataset's type. INT96 columns keep their unit, and widened decimals their 16 bytes.

    Args:
        column: the column as read.
        own: the file's field.
        target: the dataset's field.

    Raises:
        SchemaError: the dataset's type cannot represent a value exactly, or there is a null in a required column.
    """
    if own.field.type != column.type:       # INT96 timestamps in another unit, or widened decimals
        own, target = own.in_units_of(column.type), target.in_units_of(column.type)
    field = target.field
    if not own.is_stored_as(target):
        column = fit(column, field, target.duration)
    if column.null_count and not field.nullable:
        raise SchemaError("nulls in a column that the schema requires to have values")
    return column._with(nullable=field.nullable)


def _in_units_of(type_: DataType, actual: DataType) -> DataType:
    """Return a type with the INT96 units and the widened decimals that another type has. Struct fields are found by name."""
    match type_, actual:
        case ColumnType(Type.INT96), ColumnType(Type.INT96):
            return actual
        case ColumnType(), ColumnType() if is_narrow_decimal(type_) and is_wide_decimal(actual):
            return wide_type(type_)
        case StructType(fields), StructType(others):
            units = {field.name: field.type for field in others}
            inner_fields = [replace(each, type=_in_units_of(each.type, units.get(each.name, each.type))) for each in fields]
            return replace(type_, fields=tuple(inner_fields))
        case ListType(element), ListType(other):
            return ListType(replace(element, type=_in_units_of(element.type, other.type)))
        case MapType(), MapType():
            return MapType(*cast(StructType, _in_units_of(type_.entry.type, actual.entry.type)).fields)
    return type_


def holds_same_values(one: DatasetField, other: DatasetField) -> bool:
    """Return whether two columns have values of the same type. Nullability and the stored width of decimals may differ.

    Args:
        one, other: the columns. A column that has only nulls and no type has the same values as any other column.
    """
    if _is_unknown(one.field.type) or _is_unknown(other.field.type):
        return True
    units = [None if each.duration is None else each.duration.format for each in (one, other)]
    return units[0] == units[1] and _is_same(one.field.type, other.field.type)


def is_wider_number(one: DatasetField, other: DatasetField) -> bool:
    """Return whether a flat column has a number type that holds every value of another flat column's number type."""
    types = one.field.type, other.field.type
    if one.duration is not None or other.duration is not None or not all(isinstance(type_, ColumnType) for type_ in types):
        return False
    wide, narrow = cast(tuple[ColumnType, ColumnType], types)
    bits = _integer_bits(narrow)
    if wide in _FLOATS and bits is not None:
        return bits[0] - bits[1] <= _EXACT_BITS[_FLOATS.index(wide)]
    return _common_number(wide, narrow) == wide


def _is_same(one: DataType, other: DataType) -> bool:
    if one == other or _is_unknown(one) or _is_unknown(other):
        return True
    match one, other:
        case ListType(element), ListType(other_element):
            return _is_same(element.type, other_element.type)
        case MapType(), MapType():
            return _is_same(one.entry.type, other.entry.type)
        case StructType(), StructType():
            names = [[field.name for field in each.fields] for each in (one, other)]
            pairs = zip(one.fields, other.fields, strict=False)
            is_same = all(_is_same(field.type, other_field.type) for field, other_field in pairs)
            return one.annotation == other.annotation and names[0] == names[1] and is_same
        case ColumnType(), ColumnType():
            bits = _integer_bits(one)
            is_decimal = isinstance(one.logical, Decimal) and one.logical == other.logical
            return is_decimal or (bits is not None and bits == _integer_bits(other))
    return False


def _common(one: DatasetField, other: DatasetField) -> DatasetField | None:
    """Return the field for two columns that have the same name in two files, or None if no type holds both."""
    nullable = one.field.nullable or other.field.nullable
    duration = one.duration or other.duration
    if one.duration is not None and other.duration is not None:
        units = (DURATION_UNITS[one.duration.format], DURATION_UNITS[other.duration.format])
        type_: DataType | None = one.field.type
        duration = duration_field(max(units, key=_DURATION_UNITS.index))
    elif duration is not None and not (_is_unknown(one.field.type) or _is_unknown(other.field.type)):
        return None
    else:
        type_ = common_type(one.field.type, other.field.type)
    return None if type_ is None else DatasetField(Field(one.field.name, type_, nullable), duration)


def common_type(one: DataType, other: DataType) -> DataType | None:
    """Return the narrowest type that holds the values of both types, or None if there is none."""
    if one == other or _is_unknown(other):
        return one
    if _is_unknown(one):
        return other
    match one, other:
        case ListType(element), ListType(other_element):
            both = _common_field(element, other_element)
            return None if both is None else ListType(both)
        case StructType(annotation=None), StructType(annotation=None):
            return _common_struct(one, other)
        case MapType(), MapType():
            key, value = _common_field(one.key, other.key), _common_field(one.value, other.value)
            return None if key is None or value is None else MapType(key, value)
        case ColumnType(), ColumnType():
            return _common_number(one, other) or _common_logical(one, other)
    return None


def _is_unknown(type_: DataType) -> bool:
    return isinstance(type_, ColumnType) and isinstance(type_.logical, Unknown)


def _common_field(one: Field, other: Field) -> Field | None:
    type_ = common_type(one.type, other.type)
    return None if type_ is None else Field(one.name, type_, one.nullable or other.nullable)


def _common_struct(one: StructType, other: StructType) -> StructType | None:
    fields = {field.name: field for field in one.fields}
    others = {field.name: field for field in other.fields}
    if len(fields) < len(one.fields) or len(others) < len(other.fields):
        return None
    for name, field in others.items():
        both = _common_field(fields[name], field) if name in fields else Field(name, field.type, True)
        if both is None:
            return None
        fields[name] = both
    for name in fields.keys() - others.keys():
        fields[name] = Field(name, fields[name].type, True)
    return StructType(tuple(fields.values()))


def _common_number(one: ColumnType, other: ColumnType) -> ColumnType | None:
    """Return the narrowest type for integers and floats."""
    bits, other_bits = _integer_bits(one), _integer_bits(other)
    if bits is not None and other_bits is not None:
        return _integer_of(bits, other_bits)
    if one in _FLOATS and other in _FLOATS:
        return max(one, other, key=_FLOATS.index)
    if other in _FLOATS and bits is not None:
        return _float_of(other, bits)
    return _float_of(one, other_bits) if one in _FLOATS and other_bits is not None else None


def _integer_bits(type_: ColumnType) -> tuple[int, bool] | None:
    """Return an integer type's width in bits, and whether it is signed, or None for other types."""
    if type_.physical not in (Type.INT32, Type.INT64):
        return None
    if isinstance(type_.logical, Integer):
        return type_.logical.bit_width, type_.logical.signed
    return (32 if type_.physical is Type.INT32 else 64, True) if type_.logical is None else None


def _integer_of(one: tuple[int, bool], other: tuple[int, bool]) -> ColumnType | None:
    signed = one[1] or other[1]
    width = max(bits if is_signed or not signed else 2 * bits for bits, is_signed in (one, other))
    return None if width > 64 else integer_type(np.dtype(f"{'int' if signed else 'uint'}{width}"))


def _float_of(type_: ColumnType, integer: tuple[int, bool]) -> ColumnType:
    """Return the float type that holds a float type and integers. At worst it is DOUBLE, which rounds some 64-bit integers."""
    bits = integer[0] - integer[1]
    first = _FLOATS.index(type_)
    return next((_FLOATS[place] for place in range(first, 3) if bits <= _EXACT_BITS[place]), _FLOATS[2])


def _common_logical(one: ColumnType, other: ColumnType) -> ColumnType | None:
    """Return the type that holds two time units, two decimal precisions, or two kinds of text, or None if there is none."""
    if Type.INT96 in (one.physical, other.physical):
        return None
    match one.logical, other.logical:
        case Timestamp(unit, utc), Timestamp(other_unit, other_utc):
            finer = one if _TIME_UNITS.index(unit) > _TIME_UNITS.index(other_unit) else other
            return finer if utc == other_utc else None
        case Time(unit, utc), Time(other_unit, other_utc):      # versions of pyarrow write different flags for the same times
            finer = one if _TIME_UNITS.index(unit) > _TIME_UNITS.index(other_unit) else other
            return replace(finer, logical=Time(cast(Time, finer.logical).unit, utc and other_utc))
        case (Date(), Timestamp(_, False)):
            return other
        case (Timestamp(_, False), Date()):
            return one
        case Decimal(precision, scale), Decimal(other_precision, other_scale):
            digits = max(precision - scale, other_precision - other_scale) + max(scale, other_scale)
            return decimal_type(digits, max(scale, other_scale)) if digits <= MOST_DIGITS else None
    if one.is_text and other.is_text:
        return ColumnType(Type.BYTE_ARRAY, logical=String())
    return None


def schema_of(fields: Iterable[DatasetField]) -> ParquetSchema:
    """Return a ParquetSchema that has the fields."""
    return ParquetSchema.of(each.field for each in fields)


def types_of_partitions(files: Sequence[DataFile], schema_fields: Mapping[str, DatasetField]) -> dict[str, ColumnType]:
    """Return the partition columns' types. A type comes from the given schema, or is inferred from all values."""
    first = files[0]
    for file in files:
        if list(file.partitions) != list(first.partitions):
            raise SchemaError(
                f"partitions {list(file.partitions)} here are {list(first.partitions)} in {first.path}", path=file.path
            )
    texts = {name: [file.partitions[name] for file in files] for name in first.partitions}
    types = {
        name: schema_fields[name].field.type if name in schema_fields else infer_partition_type(texts[name]) for name in texts
    }
    for name, type_ in types.items():
        if not isinstance(type_, ColumnType):
            raise SchemaError(f"a partition column has numbers, dates, timestamps or strings, not {type_}", column=name)
    return cast(dict[str, ColumnType], types)
