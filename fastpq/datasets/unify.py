"""One schema for all files of a dataset, and columns of a file in the types of this schema."""

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
from fastpq.read.int96 import Place, in_units, units_in
from fastpq.read.opener import StringLayout
from fastpq.schema.nested_types import DataType, Field, ListType, MapType, StructType
from fastpq.schema.parquet_schema import ParquetSchema, int96_types
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
    TimeUnitName,
    Type,
    Unknown,
)

MOST_DIGITS = 76        # of decimals in memory
_TIME_UNITS = ("ms", "us", "ns")
_DURATION_UNITS = ("s", "ms", "us", "ns")
_FLOATS = (ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 2, Float16()), ColumnType(Type.FLOAT), ColumnType(Type.DOUBLE))
# Bits of the largest integers below which every integer is exact, of _FLOATS.
_EXACT_BITS = (11, 24, 53)


class DatasetField(NamedTuple):
    """A column of a dataset.

    Attributes:
        field: name, type and nullability.
        duration: the Arrow field of durations; None for any other column.
    """

    field: Field
    duration: FieldNode | None = None

    def is_stored_as(self, other: DatasetField) -> bool:
        """Whether the values of another field are stored alike: types, and units of durations, are equal."""
        return self.field.type == other.field.type and self.duration == other.duration

    def __str__(self) -> str:
        return str(self.field.type) if self.duration is None else f"durations ({DURATION_UNITS[self.duration.format]})"

    def in_units(self, units: Mapping[Place, TimeUnitName]) -> DatasetField:
        """The column with INT96 timestamps in given units, by place."""
        return self._replace(field=in_units(self.field, (self.field.name,), units)) if units else self

    def nullable(self) -> DatasetField:
        """The column with nulls."""
        return self._replace(field=replace(self.field, nullable=True))

    def of_nulls(self, count: int) -> AnyColumn:
        """A column of nulls."""
        return null_column(self.field.type, count).with_arrow(self.duration)._with(nullable=self.field.nullable)

    def of_value(self, value: Any, count: int, strings: StringLayout) -> AnyColumn:
        """A column of one value in every row: a partition value, or None for a column missing in a file.

        Args:
            value: the value.
            count: number of rows.
            strings: layout of text and bytes.

        Raises:
            SchemaError: None in a required column.
        """
        name, type_ = self.field.name, self.field.type
        if value is None:
            if not self.field.nullable and count:
                raise SchemaError("a file lacks a column that the schema made required", column=name)
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
    """The field of a column of a file."""
    return DatasetField(column.as_field(name), column.arrow if column.arrow is not None and column.arrow.is_duration else None)


def united(
    schemas: Iterable[tuple[str, Mapping[str, DatasetField]]], conflicts: dict[str, tuple[str, str]]
) -> dict[str, DatasetField]:
    """Columns of all files, in order of first appearance, each of a type that holds the values of all files.

    Integers and floats become the narrowest type for both, a 64-bit integer beside a float a DOUBLE. Timestamps, times and
    durations take the finer unit, dates beside timestamps become timestamps, decimals get more digits. Columns of nulls alone
    take the other type. Lists and structs are united by element and by field. A column missing in a file becomes nullable.

    Args:
        schemas: path of each file, and its columns by name.
        conflicts: gets the columns of incompatible types, which keep the first one: what differs, and a path, by name.
    """
    found: dict[str, DatasetField] = {}
    origin: dict[str, str] = {}
    for number, (path, fields) in enumerate(schemas):
        for name, new in fields.items():
            known = found.get(name)
            if known is None:
                found[name] = new._replace(field=Field(name, new.field.type, new.field.nullable or number > 0))
                origin[name] = path
            elif known != new:
                both = _common(known, new)
                if both is None:
                    conflicts.setdefault(name, (f"{new} here is {known} in {origin[name]}", path))
                else:
                    found[name] = both
        for name in found.keys() - fields.keys():
            known = found[name]
            found[name] = known.nullable()
    return found


def given_fields(schema: Any, unit: TimeUnitName = "ns") -> dict[str, DatasetField]:
    """The columns of a schema that a caller gives.

    Args:
        schema: a ParquetSchema, or a mapping or an Arrow schema as for ``write_table``.
        unit: of INT96 timestamps.

    Raises:
        SchemaError: no schema, or no type.
    """
    if isinstance(schema, ParquetSchema):
        every, types = range(len(schema.columns)), int96_types(schema.columns, unit)
        fields = [shape_field(shape_of(node, every, types)) for node in schema.root.children]
        return {field.name: DatasetField(field) for field in fields}
    if hasattr(schema, "__arrow_c_schema__"):
        from fastpq.arrow.capsules_in import take_schema

        schema = {child.name: child for child in take_schema(schema.__arrow_c_schema__()).children}
    if not isinstance(schema, Mapping):
        raise SchemaError(
            f'the schema of a dataset is "union", "first", a ParquetSchema, an Arrow schema or a mapping, not {schema!r}'
        )
    found = {}
    for name, given in schema.items():
        try:
            type_, node = resolved(given)
        except ParquetError as error:
            raise error.at(column=str(name)) from None
        is_duration = node is not None and node.is_duration
        found[name] = DatasetField(Field(name, type_, node is None or node.nullable), node if is_duration else None)
    return found


def conform(column: AnyColumn, own: DatasetField, wanted: DatasetField) -> AnyColumn:
    """A column of a file in the dataset's type; INT96 columns keep the unit in which they were read.

    Args:
        column: the column as read.
        own: the file's field.
        wanted: the dataset's field.

    Raises:
        SchemaError: a value without an exact counterpart in the type, or a null in a required column.
    """
    if units := dict(units_in(column.type, (wanted.field.name,))):
        own, wanted = own.in_units(units), wanted.in_units(units)
    field = wanted.field
    if not own.is_stored_as(wanted):
        column = fit(column, field, wanted.duration)
    if column.null_count and not field.nullable:
        raise SchemaError("nulls in a column that the schema made required")
    return column._with(nullable=field.nullable)


def holds_same_values(one: DatasetField, other: DatasetField) -> bool:
    """Whether two columns have the values of one type: nullability, and the widths of stored decimals, may differ.

    Args:
        one: a column; a column of nulls alone, without a type, is like any other.
        other: another column.
    """
    if _is_unknown(one.field.type) or _is_unknown(other.field.type):
        return True
    units = [None if each.duration is None else each.duration.format for each in (one, other)]
    return units[0] == units[1] and _is_same(one.field.type, other.field.type)


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
    """The field of two files' columns of one name; None if no type holds both."""
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
    """The narrowest type of the values of two types; None if there is none."""
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
    """The narrowest type of integers and floats."""
    bits, other_bits = _integer_bits(one), _integer_bits(other)
    if bits is not None and other_bits is not None:
        return _integer_of(bits, other_bits)
    if one in _FLOATS and other in _FLOATS:
        return max(one, other, key=_FLOATS.index)
    if other in _FLOATS and bits is not None:
        return _float_of(other, bits)
    return _float_of(one, other_bits) if one in _FLOATS and other_bits is not None else None


def _integer_bits(type_: ColumnType) -> tuple[int, bool] | None:
    """Width and sign of an integer type; None for other types."""
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
    """The float type of a float type and integers; not all 64-bit integers are a DOUBLE."""
    bits = integer[0] - integer[1]
    first = _FLOATS.index(type_)
    return next((_FLOATS[place] for place in range(first, 3) if bits <= _EXACT_BITS[place]), _FLOATS[2])


def _common_logical(one: ColumnType, other: ColumnType) -> ColumnType | None:
    """The type of two units of time, two precisions of decimals, or two kinds of text."""
    if Type.INT96 in (one.physical, other.physical):
        return None
    match one.logical, other.logical:
        case (Timestamp(unit, utc), Timestamp(other_unit, other_utc)) | (Time(unit, utc), Time(other_unit, other_utc)):
            finer = one if _TIME_UNITS.index(unit) > _TIME_UNITS.index(other_unit) else other
            return finer if utc == other_utc else None
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
    """A ParquetSchema of the fields."""
    return ParquetSchema.of(each.field for each in fields)


def types_of_partitions(files: Sequence[DataFile], given: Mapping[str, DatasetField]) -> dict[str, ColumnType]:
    """The types of the partition columns: given, or inferred from all values."""
    first = files[0]
    for file in files:
        if list(file.partitions) != list(first.partitions):
            raise SchemaError(
                f"partitions {list(file.partitions)} here are {list(first.partitions)} in {first.path}", path=file.path
            )
    texts = {name: [file.partitions[name] for file in files] for name in first.partitions}
    types = {name: given[name].field.type if name in given else infer_partition_type(texts[name]) for name in texts}
    for name, type_ in types.items():
        if not isinstance(type_, ColumnType):
            raise SchemaError(f"a partition column is of numbers, dates, timestamps or strings, not {type_}", column=name)
    return cast(dict[str, ColumnType], types)
