"""Schemas that callers give for columns to be written: column types, dtypes, names of types, Arrow types, pandas' dtypes."""

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
# Names of types without a dtype in NumPy.
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


class GivenSchema:
    """The types that a caller gives for columns, by name.

    Args:
        schema: a mapping of names to types, an Arrow schema, or a ParquetSchema, whose flat columns are used; None for no types.
            A type is a ColumnType, a NumPy dtype or its name, a Python class, one of the names "string", "bytes", "date", "json",
            "uuid", "time[us]", "timestamp[ms]", "duration[s]" and "decimal(10, 2)", a pandas dtype, or an Arrow type.

    Attributes:
        types: types of flat columns.
        maps: types that are maps or have maps inside, by name of the column.

    Raises:
        SchemaError: no type.
    """

    def __init__(self, schema: Any) -> None:
        self.types: dict[str, ColumnType] = {}
        self.maps: dict[str, DataType] = {}
        self._fields: dict[str, tuple[Field, FieldNode | None]] = {}
        if isinstance(schema, ParquetSchema):
            self.types = {column.name: column.type for column in schema.columns if column.is_flat}
            self._names = list(self.types)
            self._take_maps(schema)
            return
        given: Mapping[Any, Any]
        if hasattr(schema, "__arrow_c_schema__"):
            given = {child.name: child for child in take_schema(schema.__arrow_c_schema__()).children}
        elif schema is None or isinstance(schema, Mapping):
            given = schema or {}
        else:
            raise SchemaError(f"a schema is a mapping of names to types, an Arrow schema or a ParquetSchema, no {schema!r}")
        self._names = list(given)
        for name, each in given.items():
            try:
                type_, field = resolved(each)
            except ParquetError as error:
                raise error.at(column=str(name)) from None
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
        """A table without rows, of all columns."""
        return Table((name, self._empty(name)) for name in self._names)

    def _empty(self, name: str) -> AnyColumn:
        if name not in self._fields:
            return column_from_numpy(np.empty(0, object), type=self.types[name], nullable=True, name=name)
        field, node = self._fields[name]
        if node is None:
            return null_column(field.type, 0)._with(nullable=field.nullable)
        return with_field(field_of(node).empty(), node)._with(nullable=field.nullable)

    def applied(self, table: Table) -> Table:
        """A table with each column converted to its Arrow type in the schema; columns without an Arrow type are unchanged.

        Args:
            table: the table.

        Raises:
            SchemaError: no column of a name, or a value that does not fit its type.
        """
        missing = [name for name in self._fields if name not in table]
        if missing:
            raise SchemaError(f"the schema has {missing}, which the table has not; it has {table.names}")
        return table._of(self._applied(name, column) for name, column in table.items()) if self._fields else table

    def _applied(self, name: str, column: AnyColumn) -> AnyColumn:
        if name not in self._fields:
            return column
        field, node = self._fields[name]
        try:
            found = fit(column, field, column.arrow if node is None else node)
            found = found if node is None else with_field(found, node)
        except ParquetError as error:
            raise error.at(column=name) from None
        if not field.nullable and found.null_count:
            raise SchemaError("nulls in a column that the schema made required", column=name)
        return found._with(nullable=field.nullable)


def resolved(given: Any) -> tuple[DataType, FieldNode | None]:
    """The column type of a type that a caller gives, and the Arrow field of a type beyond Parquet's.

    Args:
        given: the type, as for GivenSchema.

    Raises:
        SchemaError: no type.
    """
    if isinstance(given, ColumnType):
        return given, None
    if isinstance(given, FieldNode):
        return field_of(given).empty().type, stored_field(given)
    if hasattr(given, "__arrow_c_schema__"):
        node = take_schema(given.__arrow_c_schema__())
        return field_of(node).empty().type, stored_field(node)
    if type(given).__module__.split(".")[0] == "pandas":
        return _of_pandas(given)
    if isinstance(given, str) and (named := _named(given)) is not None:
        return named
    if isinstance(given, type) and given in _CLASSES:
        return _CLASSES[given], None
    if given is dt.timedelta:
        return ColumnType(Type.INT64), duration_field("us")
    try:
        dtype = np.dtype(given)
    except (TypeError, ValueError):         # ValueError: a text that NumPy takes for a list of formats
        raise _no_type(given) from None
    return _of_dtype(dtype, given)


def _no_type(given: Any) -> SchemaError:
    names = ", ".join([*_NAMES, "decimal(9, 2)", "timestamp[us]", "time[us]", "duration[us]"])
    return SchemaError(
        f"{given!r} is no type: give a ColumnType, a dtype or its name, an Arrow type (for lists, maps and structs), or one of "
        f"the names {names}"
    )


def _named(name: str) -> tuple[ColumnType, FieldNode | None] | None:
    """The type of a name that is no dtype of NumPy; None for other names."""
    if name in _NAMES:
        return _NAMES[name], None
    if found := _DECIMAL.fullmatch(name):
        return decimal_type(int(found[1]), int(found[2])), None
    if found := _MOMENT.fullmatch(name):
        kind, unit = found.groups()
        if kind == "duration":
            return ColumnType(Type.INT64), duration_field(unit)
        if unit != "s":
            return (timestamp_type(unit) if kind == "timestamp" else time_type(unit)), None
        return (timestamp_type("ms"), FieldNode("tss:")) if kind == "timestamp" else (time_type("ms"), FieldNode("tts"))
    return None


def _of_dtype(dtype: np.dtype[Any], given: Any) -> tuple[ColumnType, FieldNode | None]:
    if dtype.kind in "UT":
        return _STRING, None
    if dtype.kind == "S":
        return _BYTES, None
    if dtype.kind == "V" and dtype.names is None and dtype.itemsize:
        return ColumnType(Type.FIXED_LEN_BYTE_ARRAY, dtype.itemsize), None
    if dtype.kind not in "biufmM":
        raise _no_type(given)
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
    raise _no_type(dtype)
