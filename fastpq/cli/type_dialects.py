"""Column types as Arrow, pandas, Polars, DuckDB and Spark show them, and as SQL.

The tables hold for pyarrow 26, pandas 3.1 over pyarrow, Polars 2.1 and DuckDB 2.0, which a test compares them with. Spark's
column is what ``fastpq.spark`` gives under Spark 4.1 and later. A type that an engine refuses has a text in angle brackets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fastpq.schema import types as pt
from fastpq.schema.nested_types import DataType, Field, ListType, MapType

REFUSED = "<refused>"
MOST_DUCKDB_PRECISION, MOST_SPARK_PRECISION, MOST_DECIMAL128 = 38, 38, 38


class Dialect(NamedTuple):
    """How one engine names types.

    Attributes:
        physical: names by physical type, for columns without a logical type.
        integers: names by width and sign.
        logical: names by logical type, or functions that return the name for a logical type.
        list_of, map_of, struct_of: return the names for nested types, from the names of their parts.
        variant: name of VARIANT, or ``struct`` if it is a struct.
        other_logical: name for all other logical types. An empty text stands for the name of the physical type.
    """

    physical: Mapping[pt.Type, str]
    integers: Mapping[tuple[int, bool], str]
    logical: Mapping[type[pt.LogicalType], str | Callable[[Any], str]]
    list_of: Callable[[str], str]
    map_of: Callable[[str, str], str]
    struct_of: Callable[[list[tuple[str, str]]], str]
    variant: str = "struct"
    other_logical: str = ""


def type_in(dialect: Dialect, type_: DataType) -> str:
    """Return the name of a type."""
    if isinstance(type_, ListType):
        return dialect.list_of(type_in(dialect, type_.element.type))
    if isinstance(type_, MapType):
        return dialect.map_of(type_in(dialect, type_.key.type), type_in(dialect, type_.value.type))
    if not isinstance(type_, pt.ColumnType):
        if type_.annotation == "VARIANT" and dialect.variant != "struct":
            return dialect.variant
        return dialect.struct_of([(each.name, type_in(dialect, each.type)) for each in type_.fields])
    if isinstance(type_.logical, pt.Integer):
        return dialect.integers[type_.logical.bit_width, type_.logical.signed]
    name = "" if type_.logical is None else dialect.logical.get(type(type_.logical), dialect.other_logical)
    if callable(name):
        name = name(type_.logical)
    return name or dialect.physical[type_.physical].format(length=type_.length)


def _physical(*names: str) -> dict[pt.Type, str]:
    """Return names by physical type, in the order of parquet.thrift."""
    return dict(zip(pt.Type, names, strict=True))


def _integers(*names: str) -> dict[tuple[int, bool], str]:
    """Return names for 8, 16, 32 and 64 bits, signed then unsigned."""
    places = [(width, signed) for signed in (True, False) for width in (8, 16, 32, 64)]
    return dict(zip(places, names, strict=True))


def quoted(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _duckdb_timestamp(logical: pt.Timestamp) -> str:
    if logical.unit == "ns":
        return "TIMESTAMPTZ_NS" if logical.utc else "TIMESTAMP_NS"
    return "TIMESTAMP WITH TIME ZONE" if logical.utc else "TIMESTAMP"


ARROW = Dialect(
    _physical("bool", "int32", "int64", "timestamp[ns]", "float", "double", "binary", "fixed_size_binary[{length}]"),
    _integers("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    {
        pt.String: "string",
        pt.Json: "extension<arrow.json>",
        pt.Uuid: "extension<arrow.uuid>",
        pt.Decimal: lambda each: f"decimal{128 if each.precision <= MOST_DECIMAL128 else 256}({each.precision}, {each.scale})",
        pt.Date: "date32[day]",
        pt.Time: lambda each: f"time{32 if each.unit == 'ms' else 64}[{each.unit}]",
        pt.Timestamp: lambda each: f"timestamp[{each.unit}{', tz=UTC' if each.utc else ''}]",
        pt.Float16: "halffloat",
        pt.Unknown: "null",
    },
    "list<{}>".format,
    "map<{}, {}>".format,
    lambda fields: f"struct<{', '.join(f'{name}: {type_}' for name, type_ in fields)}>",
)
PANDAS = Dialect(
    _physical("bool", "int32", "int64", "datetime64[ns]", "float32", "float64", "object", "object"),
    _integers("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    {
        pt.String: "str",
        pt.Timestamp: lambda each: f"datetime64[{each.unit}{', UTC' if each.utc else ''}]",
        pt.Float16: "float16",
    },
    lambda _: "object",
    lambda *_: "object",
    lambda _: "object",
    other_logical="object",
)
POLARS = Dialect(
    _physical("Boolean", "Int32", "Int64", "Datetime(time_unit='ns', time_zone=None)", "Float32", "Float64", "Binary", "Binary"),
    _integers("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"),
    {
        **dict.fromkeys((pt.String, pt.Enum), "String"),
        pt.Decimal: lambda each: f"Decimal(precision={each.precision}, scale={each.scale})",
        pt.Date: "Date",
        pt.Time: "Time",
        pt.Timestamp: lambda each: f"Datetime(time_unit='{each.unit}', time_zone={repr('UTC') if each.utc else None})",
        pt.Float16: "Float16",
        pt.Interval: REFUSED,
    },
    "List({})".format,
    "Map({}, {})".format,
    lambda fields: f"Struct({{{', '.join(f'{name!r}: {type_}' for name, type_ in fields)}}})",
)
DUCKDB = Dialect(
    _physical("BOOLEAN", "INTEGER", "BIGINT", "TIMESTAMP", "FLOAT", "DOUBLE", "BLOB", "BLOB"),
    _integers("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
    {
        **dict.fromkeys((pt.String, pt.Enum), "VARCHAR"),
        pt.Json: "JSON",
        pt.Uuid: "UUID",
        pt.Decimal: lambda each: (
            f"DECIMAL({each.precision},{each.scale})" if each.precision <= MOST_DUCKDB_PRECISION else "DOUBLE"),
        pt.Date: "DATE",
        pt.Time: lambda each: "TIME_NS" if each.unit == "ns" else "TIME",
        pt.Timestamp: _duckdb_timestamp,
        pt.Float16: "FLOAT",
        pt.Bson: REFUSED,
        pt.Interval: "INTERVAL",
        pt.Unknown: '"NULL"',
    },
    "{}[]".format,
    "MAP({}, {})".format,
    lambda fields: f"STRUCT({', '.join(f'{quoted(name)} {type_}' for name, type_ in fields)})",
    "VARIANT",
)
SPARK = Dialect(
    _physical("BOOLEAN", "INT", "BIGINT", "TIMESTAMP", "FLOAT", "DOUBLE", "BINARY", "BINARY"),
    _integers("TINYINT", "SMALLINT", "INT", "BIGINT", "SMALLINT", "INT", "BIGINT", "DECIMAL(20,0)"),
    {
        **dict.fromkeys((pt.String, pt.Enum, pt.Json), "STRING"),
        pt.Decimal: lambda each: f"DECIMAL({each.precision},{each.scale})" if each.precision <= MOST_SPARK_PRECISION else REFUSED,
        pt.Date: "DATE",
        pt.Time: "TIME(6)",
        pt.Timestamp: lambda each: "TIMESTAMP" if each.utc else "TIMESTAMP_NTZ",
        pt.Float16: "FLOAT",
        pt.Interval: REFUSED,
        pt.Unknown: "VOID",
    },
    "ARRAY<{}>".format,
    "MAP<{}, {}>".format,
    lambda fields: f"STRUCT<{', '.join(f'{_spark_name(name)}: {type_}' for name, type_ in fields)}>",
    "VARIANT",
)
SQL = Dialect(
    _physical("BOOLEAN", "INTEGER", "BIGINT", "TIMESTAMP", "REAL", "DOUBLE PRECISION", "BINARY VARYING", "BINARY({length})"),
    _integers("SMALLINT", "SMALLINT", "INTEGER", "BIGINT", "SMALLINT", "INTEGER", "BIGINT", "DECIMAL(20, 0)"),
    {
        **dict.fromkeys((pt.String, pt.Enum, pt.Json), "VARCHAR"),
        pt.Decimal: lambda each: f"DECIMAL({each.precision}, {each.scale})",
        pt.Date: "DATE",
        pt.Time: "TIME",
        pt.Timestamp: lambda each: "TIMESTAMP WITH TIME ZONE" if each.utc else "TIMESTAMP",
        pt.Float16: "REAL",
        pt.Uuid: "UUID",
    },
    "{} ARRAY".format,
    "MAP({}, {})".format,
    lambda fields: f"ROW({', '.join(f'{quoted(name)} {type_}' for name, type_ in fields)})",
)
ENGINES = {"Arrow": ARROW, "pandas": PANDAS, "Polars": POLARS, "DuckDB": DUCKDB, "Spark": SPARK}


def _spark_name(name: str) -> str:
    """Return a name for Spark's DDL, quoted where it has to be."""
    return (
        name if name.isascii() and name.replace("_", "a").isalnum() and not name[:1].isdigit() else f"`{name.replace('`', '``')}`"
    )


def pandas_type(field: Field) -> str:
    """Return the dtype in pandas, with the one that a column with nulls gets."""
    name = type_in(PANDAS, field.type)
    if not field.nullable:
        return name
    if name == "bool":
        return "bool (object with nulls)"
    return f"{name} (float64 with nulls)" if "int" in name else name


def spark_ddl(fields: list[Field]) -> str:
    """Return the schema as Spark's DDL, on one line."""
    return ", ".join(
        f"{_spark_name(each.name)} {type_in(SPARK, each.type)}{'' if each.nullable else ' NOT NULL'}" for each in fields
    )


def sql_ddl(fields: list[Field], table: str) -> str:
    """Return a CREATE TABLE statement of standard SQL, with MAP and ROW as many engines have them."""
    lines = [f"    {quoted(each.name)} {type_in(SQL, each.type)}{'' if each.nullable else ' NOT NULL'}" for each in fields]
    return f"CREATE TABLE {quoted(table)} (\n" + ",\n".join(lines) + "\n);"


def polars_code(fields: list[Field]) -> str:
    """Return the schema as Python code for Polars."""
    lines = [f"    {each.name!r}: {_with_prefix(type_in(POLARS, each.type))}," for each in fields]
    return "\n".join(["import polars as pl", "", "schema = pl.Schema({", *lines, "})"])


def _with_prefix(name: str) -> str:
    """Put ``pl.`` before each type's name. Names of fields stand in quotes and stay."""
    return re.sub(r"('(?:[^'\\]|\\.)*')|\b([A-Z]\w*)\b(?!=)", _prefixed, name)


def _prefixed(match: re.Match[str]) -> str:
    return match[1] or (match[2] if match[2] == "None" else f"pl.{match[2]}")


def python_code(fields: list[Field]) -> str:
    """Return the schema as Python code, for ``fastpq.write_table(schema=...)``."""
    lines = [f"    {each.name!r}: {_python_type(each.type)}," for each in fields]
    head = ["from fastpq.types import *", *(["import pyarrow as pa"] if any("pa." in line for line in lines) else [])]
    return "\n".join([*head, "", "schema = {", *lines, "}"])


def _python_type(type_: DataType) -> str:
    if isinstance(type_, pt.ColumnType):
        logical = type_.logical
        parts = [f"Type.{type_.physical.name}"]
        if type_.length is not None or logical is not None:
            parts.append(repr(type_.length))
        if logical is not None:
            parts.append(repr(logical))
        return f"ColumnType({', '.join(parts)})"
    return _pyarrow_code(type_)


_PYARROW = {
    "bool": "bool_",
    "float": "float32",
    "double": "float64",
    "halffloat": "float16",
    "date32[day]": "date32",
    "extension<arrow.json>": "json_",
    "extension<arrow.uuid>": "uuid",
}


def _pyarrow_code(type_: DataType) -> str:
    if isinstance(type_, ListType):
        return f"pa.list_({_pyarrow_code(type_.element.type)})"
    if isinstance(type_, MapType):
        return f"pa.map_({_pyarrow_code(type_.key.type)}, {_pyarrow_code(type_.value.type)})"
    if not isinstance(type_, pt.ColumnType):
        return f"pa.struct([{', '.join(f'({each.name!r}, {_pyarrow_code(each.type)})' for each in type_.fields)}])"
    name = type_in(ARROW, type_)
    if name.startswith(("timestamp[", "time32[", "time64[")):
        kind, _, rest = name.rstrip("]").partition("[")
        unit, _, zone = rest.partition(", tz=")
        return f"pa.{kind}({unit!r}{f', {zone!r}' if zone else ''})"
    if name.startswith("fixed_size_binary["):
        return f"pa.binary({name[18:-1]})"
    return f"pa.{name}" if name.startswith("decimal") else f"pa.{_PYARROW.get(name, name)}()"
