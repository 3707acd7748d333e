"""Types of DuckLake as types of Arrow."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from fastpq.catalogs.ducklake.lake_catalog import LakeColumn
from fastpq.common.lazy import package
from fastpq.errors import UnsupportedError

_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
_NAMES = {
    "boolean": "bool", "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64", "uint8": "uint8", "uint16": "uint16",
    "uint32": "uint32", "uint64": "uint64", "float32": "float", "float64": "double", "varchar": "string", "json": "string",
    "blob": "binary", "date": "date32[day]",
}


def arrow_schema_of(columns: Iterable[LakeColumn]) -> Any:
    """Return columns as a pyarrow schema.

    Raises:
        UnsupportedError: pyarrow is not installed, or a type is not known.
    """
    pyarrow = package("pyarrow", "a table of a lake")
    return pyarrow.schema([_field(pyarrow, column) for column in columns])


def _field(pyarrow: Any, column: LakeColumn) -> Any:
    return pyarrow.field(column.name, _type(pyarrow, column), nullable=column.nullable)


def _type(pyarrow: Any, column: LakeColumn) -> Any:
    name, children = column.type_name.lower(), column.children
    if name in _NAMES:
        return pyarrow.type_for_alias(_NAMES[name])
    if decimal := _DECIMAL.fullmatch(name):
        return pyarrow.decimal128(int(decimal[1]), int(decimal[2]))
    match name:
        case "time":
            return pyarrow.time64("us")
        case "timestamp" | "timestamp_us":
            return pyarrow.timestamp("us")
        case "timestamptz":
            return pyarrow.timestamp("us", "UTC")
        case "timestamp_ms":
            return pyarrow.timestamp("ms")
        case "timestamp_ns":
            return pyarrow.timestamp("ns")
        case "struct":
            return pyarrow.struct([_field(pyarrow, child) for child in children])
        case "list":
            return pyarrow.list_(_field(pyarrow, children[0]))
        case "map":
            return pyarrow.map_(_type(pyarrow, children[0]), _field(pyarrow, children[1]))
    raise UnsupportedError(f"the type {column.type_name} of a lake", column=column.name)
