"""Schemas that callers pass for new files: column types, dtypes, type names, Arrow types, pandas dtypes."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from fastpq.arrays.nodes import FieldNode, duration_field
from fastpq.arrays.table import AnyColumn, Table
from fastpq.arrow.capsules_in import take_schema
from fastpq.arrow.fields import field_of
from fastpq.arrow.hints import stored_field, with_field
from fastpq.convert.casting import decimal_type, duration_unit, infer_numeric, time_type, timestamp_type
from fastpq.convert.fitting import fit
from fastpq.convert.nulls import null_column
from fastpq.convert.numpy_input import column_from_numpy
from fastpq.convert.time_zones import zone_name
from fastpq.errors import ParquetError, SchemaError
from fastpq.schema.nested_types import DataType, Field, holds_map
from fastpq.schema.parquet_schema import GroupNode, ParquetSchema
from fastpq.schema.shape import shape_field, shape_of
from fastpq.schema.types import ColumnType, Date, Json, String, Type, Uuid

_STRING, _BYTES = ColumnType(Type.BYTE_ARRAY, logical=String()), ColumnType(Type.BYTE_ARRAY)
_DATE = ColumnType(Type.INT32, logical=Date())
# Types by name, where NumPy has no dtype.
_NAMES = {
    "string": _STRING, "str": _STRING, "text": _STRING, "bytes": _BYTES, "binary": _BYTES, "date": _DATE,
    "json": ColumnType(Type.BYTE_ARRAY, logical=Json()), "uuid": ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16, Uuid()),
    "time": time_type("us"), "timestamp": timestamp_type("us"),
}
_CLASSES: dict[Any, ColumnType] = {
    str: _STRING, bytes: _BYTES, dt.date: _DATE, dt.time: time_type("us"), dt.datetime: timestamp_type("us"),
}
_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
_MOMENT = re.compile(r"(timestamp|time|duration)\[(s|ms|us|ns)\]")


class RequestedSchema:
    """The types that a caller requests for columns, by name.

    Args:
        schema: a mapping from names to types, an Arrow schema, or a ParquetSchema, whose flat columns and maps are used. None
            requests no types. A type is a ColumnType, a NumPy dtype or its name, a Python class, a name such as "string",
            "bytes", "date", "json", "uuid", "time[us]", "timestamp[ms]", "duration[s]" and "decimal(10, 2)", a pandas dtype, or
            an Arrow type.

    Attributes:
        types: flat column types.
        maps: types that are maps or contain maps, by column name.
        physical_names: names of columns that were given a ColumnType, which says the physical type.

    Raises:
        SchemaError: a value that is not a type.
    """

    def __init__(self, schema: Any) -> None:
        self.types: dict[str, ColumnType] = {}
        self.maps: dict[str, DataType] = {}
        self.physical_names: set[str] = set()
        self._fields: dict[str, tuple[Field, FieldNode | None]] = {}
        if isinstance(schema, ParquetSchema):
            self.types = {column.name: column.type for column in schema.columns if column.is_flat}
            self._names = list(self.types)
            self._take_maps(schema)
            return
        types: Mapping[Any, Any]
        if hasattr(schema, "__arrow_c_schema__"):
            types = {child.name: child for child in take_schema(schema.__arrow_c_schema__()).children}
        elif schema is None or isinstance(schema, Mapping):
            types = schema or {}
        else:
            message = f"a schema must be a mapping of names to types, an Arrow schema or a ParquetSchema, not {schema!r}"
            raise SchemaError(message)
        self._names = list(types)
        for name, each in types.items():
            try:
                type_, field = resolved(each)
            except ParquetError as error:
                raise error.at(column=str(name)) from None
            if isinstance(each, ColumnType):
                self.physical_names.add(name)
            if isinstance(type_, ColumnType):
                self.types[name] = type_
            elif holds_map(type_):
                self.maps[name] = type_
            if field is not None:
                self._fields[name] = Field(name, type_, field.nullable), field

    def _take_maps(self, schema: ParquetSchema) -> None:
        every = range(len(schema.columns))
        for node in schema.root.children:
            if isinstance(node, GroupNode):
                field = shape_field(shape_of(node, every))
                if holds_map(field.type):
                    self.maps[field.name] = field.type
                    self._fields[field.name] = field, None

    def empty(self) -> Table:
        """Return a table without rows that has all columns."""
        return Table((name, self._empty(name)) for name in self._names)

    def _empty(self, name: str) -> AnyColumn:
        if name not in self._fields:
            return column_from_numpy(np.empty(0, object), type=self.types[name], nullable=True, name=name)
        field, node = self._fields[name]
        if node is None:
            return null_column(field.type, 0)._with(nullable=field.nullable)
        return field_of(node).empty()._with(nullable=field.nullable)

    def applied(self, table: Table) -> Table:
        """Return a table with each column converted to its Arrow type in the schema. Columns without an Arrow type are unchanged.

        Args:
            table: the table.

        Raises:
            SchemaError: the table has no column with a name, or a value does not fit its type.
        """
        missing = [name for name in self._fields if name not in table]
        if missing:
            raise SchemaError(f"the schema has {missing}, but the table does not; it has {table.names}")
        return table._of(self._applied(name, column) for name, column in table.items()) if self._fields else table

    def _applied(self, name: str, column: AnyColumn) -> AnyColumn:
        if name not in self._fields:
            return column
        field, node = self._fields[name]
        try:
            fitting_column = fit(column, field, column.arrow if node is None else node)
            fitting_column = fitting_column if node is None else with_field(fitting_column, node)
        except ParquetError as error:
            raise error.at(column=name) from None
        if not field.nullable and fitting_column.null_count:
            raise SchemaError("nulls in a column that the schema made required", column=name)
        return fitting_column._with(nullable=field.nullable)


def resolved(requested_type: Any) -> tuple[DataType, FieldNode | None]:
    """Return the column type for a type that a caller requests, and its Arrow field if Parquet has no such type.

    Args:
        requested_type: the type, as for RequestedSchema.

    Raises:
        SchemaError: the value is not a type.
    """
    if isinstance(requested_type, ColumnType):
        return requested_type, None
    if isinstance(requested_type, FieldNode):
        return field_of(requested_type).empty().type, stored_field(requested_type)
    if hasattr(requested_type, "__arrow_c_schema__"):
        node = take_schema(requested_type.__arrow_c_schema__())
        return field_of(node).empty().type, stored_field(node)
    if type(requested_type).__module__.split(".")[0] == "pandas":
        return _of_pandas(requested_type)
    if isinstance(requested_type, str) and (type_by_name := _type_by_name(requested_type)) is not None:
        return type_by_name
    if isinstance(requested_type, type) and requested_type in _CLASSES:
        return _CLASSES[requested_type], None
    if requested_type is dt.timedelta:
        return ColumnType(Type.INT64), duration_field("us")
    try:
        dtype = np.dtype(requested_type)
    except (TypeError, ValueError):         # ValueError: a text that NumPy takes for a format list
        raise _not_a_type(requested_type) from None
    return _of_dtype(dtype, requested_type)


def _not_a_type(value: Any) -> SchemaError:
    names = ", ".join([*_NAMES, "decimal(9, 2)", "timestamp[us]", "time[us]", "duration[us]"])
    return SchemaError(
        f"{value!r} is not a data type: give a ColumnType, a dtype or its name, an Arrow type (for lists, maps and structs), or "
        f"one of the names {names}"
    )


def _type_by_name(name: str) -> tuple[ColumnType, FieldNode | None] | None:
    """Return the type with a name that is not a NumPy dtype, or None for any other name."""
    if name in _NAMES:
        return _NAMES[name], None
    if match := _DECIMAL.fullmatch(name):
        return decimal_type(int(match[1]), int(match[2])), None
    if match := _MOMENT.fullmatch(name):
        kind, unit = match.groups()
        if kind == "duration":
            return ColumnType(Type.INT64), duration_field(unit)
        if unit != "s":
            return (timestamp_type(unit) if kind == "timestamp" else time_type(unit)), None
        return (timestamp_type("ms"), FieldNode("tss:")) if kind == "timestamp" else (time_type("ms"), FieldNode("tts"))
    return None


def _of_dtype(dtype: np.dtype[Any], requested_type: Any) -> tuple[ColumnType, FieldNode | None]:
    if dtype.kind in "UT":
        return _STRING, None
    if dtype.kind == "S":
        return _BYTES, None
    if dtype.kind == "V" and dtype.names is None and dtype.itemsize:
        return ColumnType(Type.FIXED_LEN_BYTE_ARRAY, dtype.itemsize), None
    if dtype.kind not in "biufmM":
        raise _not_a_type(requested_type)
    type_ = infer_numeric(dtype, "")
    unit = duration_unit(dtype, type_)
    return type_, None if unit is None else duration_field(unit)


def _of_pandas(dtype: Any) -> tuple[DataType, FieldNode | None]:
    if hasattr(dtype, "pyarrow_dtype"):
        return resolved(dtype.pyarrow_dtype)
    if hasattr(dtype, "numpy_dtype"):       # nullable numbers and booleans
        return resolved(dtype.numpy_dtype)
    if dtype.name in ("string", "str"):
        return _STRING, None
    if hasattr(dtype, "tz") and hasattr(dtype, "unit"):
        unit = "ms" if dtype.unit == "s" else dtype.unit
        return timestamp_type(unit, utc=True), FieldNode(f"ts{dtype.unit[0]}:{zone_name(dtype.tz)}")
    raise _not_a_type(dtype)
