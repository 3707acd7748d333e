"""Fitting later tables to the columns in a file's first table. A type is changed only if no value is lost.

Batches from one source often differ in their types: a batch with only nulls has no type, or a type that pandas chose.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fastpq.arrays.flat_column import DictionaryValues
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
    """Return a column that may be null, as may its lists' elements and its structs' fields.

    Maps and annotated structs may be null only as a whole.
    """
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
    """Whether the column type is still open: it holds only nulls without a type (also inside of it), or with pandas' float
    type.

    Args:
        column: the column.
        of_pandas: whether the column comes from a DataFrame, where a column with only missing values is a float column.
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
    """The column names, types and units in a file's first table, to which later tables are fitted.

    Args:
        table: the first table.

    Attributes:
        without_order: names of columns whose first dictionary is ordered and differs from a later one. The order of all their
            entries is unknown.
    """

    def __init__(self, table: Table) -> None:
        self.without_order: set[str] = set()
        self._columns = {name: column.slice(0, 0) for name, column in table.items()}
        self._repeats = len(self._columns) < len(table.names)

    def fitted(self, table: Table) -> Table:
        """Return a table with the file's columns, in the file's order. A table with other names is unchanged, and refused later.

        Args:
            table: the table.

        Raises:
            SchemaError: a value has no exact counterpart in the file column's type.
        """
        if self._repeats or len(table.names) != len(self._columns) or set(table.names) != self._columns.keys():
            return table
        columns = []
        for name, own in self._columns.items():
            try:
                column = fit(table[name], own.as_field(name), own.arrow)
                if _has_fixed_size(own):
                    _check_list_sizes(own, column)
                columns.append((name, self._with_dictionary(name, own, column)))
            except ParquetError as error:
                raise error.at(column=name) from None
        return Table(columns, num_rows=table.num_rows)

    def _with_dictionary(self, name: str, own: AnyColumn, column: AnyColumn) -> AnyColumn:
        """Return the column with the first table's dictionary if both are equal, so that codes can be joined unchanged."""
        if not isinstance(own, Column) or not isinstance(own.values, DictionaryValues) or not isinstance(column, Column):
            return column
        values, first = column.values, own.values.dictionary
        is_ordered = isinstance(values, DictionaryValues) and values.is_ordered and own.values.is_ordered
        if is_ordered and not len(first):       # no table so far had an entry
            self._columns[name] = column.slice(0, 0)
            return column
        if isinstance(values, DictionaryValues) and (values.dictionary is first or values.dictionary.equals(first)):
            return column._with(values=DictionaryValues(values.codes, first, own.values.is_ordered))
        if own.values.is_ordered:
            self.without_order.add(name)
        return column


def _has_fixed_size(column: AnyColumn) -> bool:
    """Return whether a column has Arrow lists of one size, at any depth."""
    match column:
        case ListColumn():
            return (column.arrow is not None and column.arrow.format.startswith("+w:")) or _has_fixed_size(column.elements)
        case StructColumn():
            return any(map(_has_fixed_size, column.children))
    return False


def _check_list_sizes(own: AnyColumn, column: AnyColumn) -> None:
    """Refuse lists of another size than the file's ARROW:schema says, because pyarrow could not read the file then.

    Args:
        own: the file's column.
        column: new values that have the file's type.

    Raises:
        SchemaError: a list has another size.
    """
    match own, column:
        case ListColumn(), ListColumn():
            valid, format_ = column.validity_mask(), "" if own.arrow is None else own.arrow.format
            if format_.startswith("+w:"):
                size, sizes = int(format_.partition(":")[2]), np.diff(column.offsets)[valid]
                if bool((sizes != size).any()):
                    other = int(sizes[sizes != size][0])
                    raise SchemaError(f"a list of {other} values does not fit the file's lists, which all have {size}")
            _check_list_sizes(own.elements, column.elements.slice(int(column.offsets[0]), int(column.offsets[-1])))
        case StructColumn(), StructColumn():
            rows = np.flatnonzero(column.validity_mask())
            for own_child, child in zip(own.children, column.children, strict=True):
                _check_list_sizes(own_child, child if len(rows) == len(column) else child.take(rows))


def fit(column: AnyColumn, field: Field, arrow: FieldNode | None) -> AnyColumn:
    """Return a column as a field's values. The writer decides about nullability at the top level.

    Args:
        column: the column.
        field: name, type and nullability.
        arrow: the file column's Arrow field, which has the unit for durations.

    Raises:
        SchemaError: a value has no exact counterpart in the field's type.
    """
    if column.type != field.type and column.null_count == len(column):
        nulls = null_column(field.type, len(column))
        return nulls.with_arrow(arrow) if arrow is not None and arrow.is_duration else nulls
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
    children_by_name = dict(zip((field.name for field in column.type.fields), column.children, strict=True))
    more = children_by_name.keys() - {field.name for field in type_.fields}
    if more or column.type.annotation != type_.annotation:
        raise _misfit(column, type_)
    children = []
    for field in type_.fields:
        child = children_by_name.get(field.name)
        children.append(null_column(field.type, len(column)) if child is None else _inner(child, field))
        if child is None and not field.nullable:
            raise _misfit(column, type_)
    return column._with(type=type_, children=tuple(children))


def _inner(column: AnyColumn, field: Field) -> AnyColumn:
    fitting_column = fit(column, field, column.arrow)
    if fitting_column.null_count and not field.nullable:
        raise SchemaError(f"nulls in {field.name}, which the first table or the schema made required")
    return fitting_column._with(nullable=field.nullable)


def _misfit(column: AnyColumn, type_: DataType) -> SchemaError:
    return SchemaError(f"the type {column.type} does not fit the file's type {type_}")


# ---- flat columns


def _flat(column: Column, type_: ColumnType, arrow: FieldNode | None) -> Column:
    unit, own_unit = (DURATION_UNITS.get(each.format) if each is not None else None for each in (arrow, column.arrow))
    if unit != own_unit and (unit is None or own_unit is None) and type_.physical is Type.INT64 and type_.logical is None:
        reason = "one column has durations and numbers" if column.type == type_ else f"{column.type} is not a duration"
        raise SchemaError(reason)
    if unit is not None and own_unit is not None and unit != own_unit:
        array = column.to_numpy(nulls="nan")
        return column._with(values=change_unit(array, unit, type_, ""), arrow=duration_field(unit))
    if column.type == type_:
        return column
    if not _is_kin(column.type, type_):
        raise _misfit(column, type_)
    values = column.to_numpy(nulls="object" if isinstance(type_.logical, Decimal) else "masked")
    cast = column_from_numpy(column if type_.is_variable else values, type=type_, nullable=column.nullable or None)
    assert isinstance(cast, Column)
    if _is_float(type_) and _is_float(column.type):
        _check_rounding(column, cast)
    return cast


def _is_kin(one: ColumnType, other: ColumnType) -> bool:
    """Whether values with one type can have another type, by their meaning."""
    if _is_number(one) and _is_number(other):
        return True
    if one.is_variable and other.is_variable:
        return one.logical is None or other.logical is None or one.is_text == other.is_text
    match one.logical, other.logical:
        case Timestamp(_, utc), Timestamp(_, other_utc):
            return utc == other_utc
        case Time(), Time():        # versions of pyarrow write different flags for the same times
            return True
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
    values: Any = np.ma.getdata(column.to_numpy())
    cast_values: Any = np.ma.getdata(cast.to_numpy())
    if cast_values.itemsize >= values.itemsize:
        return
    wrong = (cast_values.astype(values.dtype) != values) & ~np.isnan(values) & column.validity_mask()
    if wrong.any():
        row = int(np.argmax(wrong))
        raise SchemaError(f"value {row}, {values[row]}, has no exact value in the file's {cast.type}").showing(values[row])
