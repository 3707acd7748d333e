"""Columns and tables from anything that a caller may pass: arrays, lists, pandas arrays, mappings and Arrow data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fastpq.arrays.table import AnyColumn, Table
from fastpq.convert.numpy_input import column_from_numpy, has_arrow_interface, map_column, recast
from fastpq.errors import SchemaError
from fastpq.schema.nested_types import DataType
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.types import ColumnType


def column_from(values: Any, *, type: ColumnType | None = None, nullable: bool | None = None, name: str = "") -> AnyColumn:
    """Return values as a column, like ``column_from_numpy``. A pandas array or index has its own nulls.

    Args:
        values: a pandas array or index, or any value that ``column_from_numpy`` accepts.
        type, nullable, name: as for ``column_from_numpy``.

    Raises:
        SchemaError: as ``column_from_numpy``.
    """
    if not is_pandas_array(values):
        return column_from_numpy(values, type=type, nullable=nullable, name=name)
    from fastpq.convert.dataframe_input import column_from_pandas

    return recast(column_from_pandas(values, name), type, nullable, name)


def is_pandas_array(values: Any) -> bool:
    """Whether values are a pandas array or index, which may have its own nulls. A Series has an Arrow interface."""
    if isinstance(values, np.ndarray) or not hasattr(values, "dtype"):
        return False
    return values.__class__.__module__.partition(".")[0] == "pandas" and not hasattr(values, "__arrow_c_stream__")


def table_from(
    obj: Any, schema: Mapping[str, ColumnType] | ParquetSchema | None = None, maps: Mapping[str, DataType] | None = None
) -> Table:
    """Return a column mapping, a structured array, a Table or an Arrow object as a table.

    Args:
        obj: a mapping from names to values that ``column_from`` accepts, a structured array, a Table, or an object with
            ``__arrow_c_stream__`` or ``__arrow_c_array__``.
        schema: column types, by name. A ParquetSchema, which must be flat, also sets nullability.
        maps: types that contain maps, by column name. Their objects are dicts or pair lists.

    Raises:
        SchemaError: values that do not fit their types, unequal lengths, or names in the schema that the object does not have.
    """
    if isinstance(obj, np.ndarray) and obj.dtype.names:
        obj = {name: obj[name] for name in obj.dtype.names}
    elif not isinstance(obj, Mapping):
        if not has_arrow_interface(obj):
            raise _not_a_table(obj)
        from fastpq.arrow import import_table

        obj = import_table(obj)
    requested_types = _requested_types(schema) if schema else {}
    missing = [name for name in requested_types if name not in obj]
    if missing:
        raise SchemaError(f"the schema has {missing}, but the table does not; it has {list(obj)}")
    if isinstance(obj, Table) and not requested_types:
        return obj
    columns = []
    for name, values in obj.items():
        type_, nullable = requested_types.get(name, (None, None))
        if maps and name in maps and not is_pandas_array(values):
            columns.append((name, map_column(values, maps[name], name)))
            continue
        columns.append((name, column_from(values, type=type_, nullable=nullable, name=str(name))))
    if isinstance(obj, Table):
        return Table(columns, num_rows=obj.num_rows, metadata=obj.metadata)
    return Table(columns)


def _requested_types(schema: Mapping[str, ColumnType] | ParquetSchema | None) -> dict[str, tuple[ColumnType, bool | None]]:
    if isinstance(schema, ParquetSchema):
        nested = [column.name for column in schema if not column.is_flat]
        if nested:
            raise SchemaError(f"the schema must be flat, but {nested[0]!r} is nested")
        return {column.name: (column.type, column.nullable) for column in schema}
    return {name: (type_, None) for name, type_ in (schema or {}).items()}


def _not_a_table(obj: Any) -> SchemaError:
    """Return the error for an object that is not a table. It says how to make one."""
    what = f"a {obj.__class__.__name__} is neither a mapping of names to columns nor a structured array nor Arrow data"
    if callable(getattr(obj, "collect", None)):
        return SchemaError(f"{what}; a query has rows after .collect()")
    if isinstance(obj, list | tuple):
        if obj and (hasattr(obj[0], "__arrow_c_stream__") or hasattr(obj[0], "__arrow_c_array__")):
            return SchemaError(f"{what}: pass iter([...]) to write several tables, one after the other")
        return SchemaError(f"{what}: rows become columns by {{name: [row[name] for row in rows] for name in names}}")
    if isinstance(obj, np.ndarray):
        return SchemaError(f"{what}: give {{name: array}}")
    return SchemaError(what)
