"""Fitting of later tables to the columns of a file's first table: types are changed only if no value is lost.

Batches of one source often differ in types: a batch of nulls alone has no type, or a type that pandas chose.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fastpq.arrays.layouts import DictionaryValues
from fastpq.arrays.nested_columns import ListColumn, StructColumn
from fastpq.arrays.nodes import DURATION_UNITS, FieldNode, duration_field
from fastpq.arrays.table import AnyColumn, Column, Table
from fastpq.convert.casting import change_unit
from fastpq.convert.nulls import null_column
from fastpq.convert.numpy_input import column_from_numpy
from fastpq.errors import ParquetError, SchemaError
from fastpq.schema.nested_types import DataType, Field, ListType, MapType, StructType, element_of
from fastpq.schema.types import ColumnType, Date, Decimal, Float16, Integer, Time, Timestamp, Type, Unknown


def nullable_throughout(column: AnyColumn) -> AnyColumn:
    """A column whose values, elements and fields may all be null; keys of maps stay required."""
    match column:
        case ListColumn(pairs=None):
            elements = nullable_throughout(column.elements)
            return column._with(type=ListType(elements.as_field("element")), elements=elements, nullable=True)
        case StructColumn() if column.type.annotation is None:
            children = tuple(map(nullable_throughout, column.children))
            names = (field.name for field in column.type.fields)
            fields = tuple(child.as_field(name) for name, child in zip(names, children, strict=True))
            return column._with(type=replace(column.type, fields=fields), children=children, nullable=True)
    return column._with(nullable=True)


def is_undecided(column: AnyColumn, *, of_pandas: bool) -> bool:
    """Whether the type of a column is still open: null values alone, untyped (also inside of it), or of pandas' float type.

    Args:
        column: the column.
        of_pandas: whether the column comes from a DataFrame, whose columns of missing values alone are floats.
    """
    if isinstance(column, Column) and of_pandas and len(column) == column.null_count and _is_float(column.type):
        return True
    return _holds_unknown(column.type)


def _holds_unknown(type_: DataType) -> bool:
    if isinstance(type_, ColumnType):
        return isinstance(type_.logical, Unknown)
    if isinstance(type_, StructType):
        return any(_holds_unknown(field.type) for field in type_.fields)
    return _holds_unknown(element_of(type_).type)


class FileFields:
    """The names, types and units of the columns of a file's first table, for the tables after it.

    Args:
        table: the first table.

    Attributes:
        without_order: names of columns with an ordered first dictionary and a different later one; the order of all is unknown.
    """

    def __init__(self, table: Table) -> None:
        self.without_order: set[str] = set()
        self._columns = {name: column.slice(0, 0) for name, column in table.items()}
        self._repeats = len(self._columns) < len(table.names)

    def fitted(self, table: Table) -> Table:
        """A table with the file's columns in the file's order; a table of other names is unchanged, and refused later.

        Args:
            table: the table.

        Raises:
            SchemaError: a value has no exact counterpart in the type of the file's column.
        """
        if self._repeats or len(table.names) != len(self._columns) or set(table.names) != self._columns.keys():
            return table
        found = []
        for name, own in self._columns.items():
            try:
                found.append((name, self._with_dictionary(name, own, fit(table[name], own.as_field(name), own.arrow))))
            except ParquetError as error:
                raise error.at(column=name) from None
        return Table(found, num_rows=table.num_rows)


    def _with_dictionary(self, name: str, own: AnyColumn, column: AnyColumn) -> AnyColumn:
        """A column with the first table's dictionary, where both are equal: codes of one dictionary are joined as they are."""
        if not isinstance(own, Column) or not isinstance(own.values, DictionaryValues) or not isinstance(column, Column):
            return column
        values, first = column.values, own.values.dictionary
        if isinstance(values, DictionaryValues) and (values.dictionary is first or values.dictionary.equals(first)):
            return column._with(values=DictionaryValues(values.codes, first, own.values.is_ordered))
        if own.values.is_ordered:
            self.without_order.add(name)
        return column


def fit(column: AnyColumn, field: Field, arrow: FieldNode | None) -> AnyColumn:
    """A column as the values of a field; top-level nullability is left to the writer.

    Args:
        column: the column.
        field: name, type and nullability.
        arrow: the Arrow field of the file's column, for the unit of durations.

    Raises:
        SchemaError: a value has no exact counterpart in the field's type.
    """
    if column.type != field.type and column.null_count == len(column):
        found = null_column(field.type, len(column))
        return found.with_arrow(arrow) if arrow is not None and arrow.is_duration else found
    if isinstance(field.type, ColumnType):
        if not isinstance(column, Column):
            raise _misfit(column, field.type)
        return _flat(column, field.type, arrow)
    if column.type == field.type:
        return column
    match column:
        case ListColumn(pairs=None) if isinstance(field.type, ListType):
            elements = _inner(column.elements, field.type.element)
            return column._with(type=field.type, elements=elements)
        case ListColumn(pairs=StructColumn() as pairs) if isinstance(field.type, MapType):
            parts = zip(pairs.children, (field.type.key, field.type.value), strict=True)
            children = tuple(_inner(child, part) for child, part in parts)
            elements = pairs._with(type=StructType((field.type.key, field.type.value)), children=children)
            return column._with(type=field.type, elements=elements)
        case StructColumn() if isinstance(field.type, StructType):
            return _struct(column, field.type)
    raise _misfit(column, field.type)


def _struct(column: StructColumn, type_: StructType) -> StructColumn:
    known = dict(zip((field.name for field in column.type.fields), column.children, strict=True))
    more = known.keys() - {field.name for field in type_.fields}
    if more or column.type.annotation != type_.annotation:
        raise _misfit(column, type_)
    children = []
    for field in type_.fields:
        child = known.get(field.name)
        children.append(null_column(field.type, len(column)) if child is None else _inner(child, field))
        if child is None and not field.nullable:
            raise _misfit(column, type_)
    return column._with(type=type_, children=tuple(children))


def _inner(column: AnyColumn, field: Field) -> AnyColumn:
    found = fit(column, field, column.arrow)
    if found.null_count and not field.nullable:
        raise SchemaError(f"nulls in {field.name}, which the first table or the schema made required")
    return found._with(nullable=field.nullable)


def _misfit(column: AnyColumn, type_: DataType) -> SchemaError:
    return SchemaError(f"{column.type} is not the {type_} of the file")


# ---- flat columns


def _flat(column: Column, type_: ColumnType, arrow: FieldNode | None) -> Column:
    wanted, given = (DURATION_UNITS.get(each.format) if each is not None else None for each in (arrow, column.arrow))
    if wanted != given and (wanted is None or given is None) and type_.physical is Type.INT64 and type_.logical is None:
        raise SchemaError("durations and numbers in one column" if column.type == type_ else f"{column.type} is no duration")
    if wanted is not None and given is not None and wanted != given:
        array = column.to_numpy(nulls="nan")
        return column._with(values=change_unit(array, wanted, type_, ""), arrow=duration_field(wanted))
    if column.type == type_:
        return column
    if not _is_kin(column.type, type_):
        raise _misfit(column, type_)
    values = column.to_numpy(nulls="object" if isinstance(type_.logical, Decimal) else "masked")
    found = column_from_numpy(column if type_.is_variable else values, type=type_, nullable=column.nullable or None)
    assert isinstance(found, Column)
    if _is_float(type_) and _is_float(column.type):
        _check_rounding(column, found)
    return found


def _is_kin(one: ColumnType, other: ColumnType) -> bool:
    """Whether values of one type may be values of another, by meaning."""
    if _is_number(one) and _is_number(other):
        return True
    if one.is_variable and other.is_variable:
        return one.logical is None or other.logical is None or one.is_text == other.is_text
    match one.logical, other.logical:
        case (Timestamp(_, utc), Timestamp(_, other_utc)) | (Time(_, utc), Time(_, other_utc)):
            return utc == other_utc
        case (Date(), Timestamp(_, utc)) | (Timestamp(_, utc), Date()):
            return not utc
        case Decimal(), Decimal():
            return True
    return False


def _is_number(type_: ColumnType) -> bool:
    is_plain = type_.logical is None and type_.physical in (Type.INT32, Type.INT64, Type.FLOAT, Type.DOUBLE)
    return is_plain or isinstance(type_.logical, Integer | Float16)


def _is_float(type_: ColumnType) -> bool:
    return type_.physical in (Type.FLOAT, Type.DOUBLE) or isinstance(type_.logical, Float16)


def _check_rounding(column: Column, cast: Column) -> None:
    given: Any = np.ma.getdata(column.to_numpy())
    found: Any = np.ma.getdata(cast.to_numpy())
    if found.itemsize >= given.itemsize:
        return
    wrong = (found.astype(given.dtype) != given) & ~np.isnan(given) & column.validity_mask()
    if wrong.any():
        row = int(np.argmax(wrong))
        raise SchemaError(f"value {row}, {given[row]}, is no value of the file's {cast.type}").showing(given[row])
