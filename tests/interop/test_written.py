"""Files of every combination that fastpq writes, read by pyarrow, DuckDB and Polars.

For each codec, page version, encoding and nullability a file holds a column of every type.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import itertools
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.schema import types
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.types import ColumnType, Type
from tests.interop.comparison import assert_same
from tests.requirements import peer

duckdb = peer("duckdb")

ROWS = 700
ROW_GROUP_SIZE = 400
PAGE_ROWS = 150     # several pages in a chunk, the last not a multiple of eight
NULL_EVERY = 5

CODECS = ("none", "snappy", "gzip", "brotli", "zstd", "lz4_raw")
PAGE_VERSIONS = ("1.0", "2.0")
FALLBACK = "fallback"       # a dictionary that grows too large in mid-chunk
ENCODINGS = ("PLAIN", "RLE_DICTIONARY", "PLAIN_DICTIONARY", "DELTA", "SPLIT", FALLBACK)
BY_TYPE = {     # the encodings that fit only some types, twice where there are two for one
    "DELTA": {
        Type.BOOLEAN: "RLE",
        Type.INT32: "DELTA_BINARY_PACKED",
        Type.INT64: "DELTA_BINARY_PACKED",
        Type.BYTE_ARRAY: "DELTA_LENGTH_BYTE_ARRAY",
        Type.FIXED_LEN_BYTE_ARRAY: "DELTA_BYTE_ARRAY",
    },
    "SPLIT": {
        Type.BYTE_ARRAY: "DELTA_BYTE_ARRAY",
        **dict.fromkeys((Type.INT32, Type.INT64, Type.FLOAT, Type.DOUBLE, Type.FIXED_LEN_BYTE_ARRAY), "BYTE_STREAM_SPLIT"),
    },
}

_FIXED = {"fixed", "uuid", "decimal_fixed"}
# (reader, encodings): the columns that the reader refuses in them
REFUSED = {
    ("polars", "DELTA"): _FIXED | {"float16"},
    ("polars", "SPLIT"): _FIXED,
    ("duckdb", "DELTA"): {"decimal_bytes"},
    ("duckdb", "SPLIT"): _FIXED | {"float16"},
}

EPOCH = datetime.date(1970, 1, 1)


def fixed(length: int, logical: types.LogicalType | None = None) -> ColumnType:
    return ColumnType(Type.FIXED_LEN_BYTE_ARRAY, length, logical)


def number(i: int) -> int:
    """From -125 to 115; 13 values repeat on the first page, and each later page brings a few more."""
    return ((i * 5) % 13 + 7 * (i // PAGE_ROWS)) * 6 - 125


def decimal_value(i: int) -> decimal.Decimal:
    return decimal.Decimal(number(i) * 1009).scaleb(-2)


def instant(unit: types.TimeUnitName, i: int) -> np.datetime64:
    return np.datetime64(number(i) * 10**10, unit)


def time_of_day(unit: types.TimeUnitName, i: int) -> np.timedelta64:
    return np.timedelta64((number(i) + 125) * 1001, unit)


# name: (type, value of row i, Arrow type in which all readers agree)
COLUMNS: dict[str, tuple[ColumnType, Callable[[int], Any], pa.DataType]] = {
    "boolean": (ColumnType(Type.BOOLEAN), lambda i: i % 3 == 0, pa.bool_()),
    "int32": (ColumnType(Type.INT32), lambda i: number(i) << 20, pa.int32()),
    "int64": (ColumnType(Type.INT64), lambda i: number(i) << 50, pa.int64()),
    "float": (ColumnType(Type.FLOAT), lambda i: number(i) / 8, pa.float32()),
    "double": (ColumnType(Type.DOUBLE), lambda i: number(i) / 3, pa.float64()),
    "bytes": (ColumnType(Type.BYTE_ARRAY), lambda i: bytes([number(i) + 125]) * (number(i) % 30), pa.binary()),
    "fixed": (fixed(7), lambda i: bytes([number(i) + 125] * 7), pa.binary(7)),
    "string": (ColumnType(Type.BYTE_ARRAY, None, types.String()), lambda i: f"é{number(i)}" * (number(i) % 4), pa.string()),
    "enum": (ColumnType(Type.BYTE_ARRAY, None, types.Enum()), lambda i: f"kind {i % 4}", pa.binary()),
    "json": (ColumnType(Type.BYTE_ARRAY, None, types.Json()), lambda i: f'{{"i": {number(i)}}}', pa.string()),
    "bson": (ColumnType(Type.BYTE_ARRAY, None, types.Bson()), lambda i: bytes([5, 0, 0, 0, 0]), pa.binary()),
    "uuid": (fixed(16, types.Uuid()), lambda i: uuid.UUID(int=number(i) + 125), pa.binary(16)),
    "decimal32": (ColumnType(Type.INT32, None, types.Decimal(9, 2)), decimal_value, pa.decimal128(9, 2)),
    "decimal64": (ColumnType(Type.INT64, None, types.Decimal(18, 2)), decimal_value, pa.decimal128(18, 2)),
    "decimal_fixed": (fixed(13, types.Decimal(30, 2)), decimal_value, pa.decimal128(30, 2)),
    "decimal_bytes": (ColumnType(Type.BYTE_ARRAY, None, types.Decimal(30, 2)), decimal_value, pa.decimal128(30, 2)),
    "date": (ColumnType(Type.INT32, None, types.Date()), lambda i: EPOCH + datetime.timedelta(number(i)), pa.date32()),
    "float16": (fixed(2, types.Float16()), lambda i: np.float16(number(i) / 8), pa.float16()),
    "unknown": (ColumnType(Type.INT32, None, types.Unknown()), lambda i: None, pa.null()),
    "interval": (fixed(12, types.Interval()), lambda i: bytes([number(i) + 125] * 12), pa.binary(12)),
    "int96": (ColumnType(Type.INT96), lambda i: np.datetime64(number(i) * 10**15, "ns"), pa.timestamp("ns")),
}
BIT_WIDTHS: tuple[types.BitWidth, ...] = (8, 16, 32, 64)
for bits, signed in itertools.product(BIT_WIDTHS, (True, False)):
    physical = Type.INT64 if bits == 64 else Type.INT32
    kind = getattr(pa, f"{'' if signed else 'u'}int{bits}")()
    COLUMNS[str(kind)] = (
        ColumnType(physical, None, types.Integer(bits, signed)),
        (lambda i: number(i)) if signed else (lambda i: number(i) + 125),
        kind,
    )
TIME_UNITS: tuple[types.TimeUnitName, ...] = ("ms", "us", "ns")
for unit, utc in itertools.product(TIME_UNITS, (True, False)):
    suffix = f"{unit}{'_utc' if utc else ''}"
    COLUMNS[f"timestamp_{suffix}"] = (
        ColumnType(Type.INT64, None, types.Timestamp(unit, utc)),
        functools.partial(instant, unit),
        pa.timestamp(unit, "UTC" if utc else None),
    )
    COLUMNS[f"time_{suffix}"] = (
        ColumnType(Type.INT32 if unit == "ms" else Type.INT64, None, types.Time(unit, utc)),
        functools.partial(time_of_day, unit),
        pa.time32("ms") if unit == "ms" else pa.time64(unit),
    )
NEVER_REQUIRED = {"unknown"}
RARE = {"bson", "interval"}     # DuckDB refuses files with the one, Polars with the other: they have a file of their own


def names(nullable: bool, rare: bool = False) -> tuple[str, ...]:
    return tuple(name for name in COLUMNS if (nullable or name not in NEVER_REQUIRED) and (name in RARE) == rare)


def value(name: str, i: int, nullable: bool) -> Any:
    return None if nullable and i % NULL_EVERY == 0 else COLUMNS[name][1](i)


def as_stored(item: Any, kind: pa.DataType) -> Any:
    """A value as pyarrow builds arrays from it."""
    if isinstance(item, uuid.UUID):
        return item.bytes
    if isinstance(item, (np.datetime64, np.timedelta64)):
        return int(item.astype(np.int64))
    return item.encode() if isinstance(item, str) and pa.types.is_binary(kind) else item


@functools.cache
def expected(nullable: bool, chosen: tuple[str, ...]) -> pa.Table:
    columns = {}
    for name in chosen:
        kind = COLUMNS[name][2]
        columns[name] = pa.array([as_stored(value(name, i, nullable), kind) for i in range(ROWS)], kind)
    return pa.table(columns)


@functools.cache
def to_write(nullable: bool, name: str) -> np.ndarray:
    """A column as an array: of its own dtype (masked where nullable) where NumPy has one, of objects elsewhere."""
    values = [value(name, i, nullable) for i in range(ROWS)]
    sample = COLUMNS[name][1](0)
    if dtype := own_dtype(COLUMNS[name][0], sample):
        filled = np.array([sample if item is None else item for item in values], dtype)
        return np.ma.masked_array(filled, [item is None for item in values]) if nullable else filled
    objects = np.empty(ROWS, object)
    objects[:] = values
    return objects


def own_dtype(column_type: ColumnType, sample: Any) -> np.dtype | None:
    """The dtype of an array of such values, or None where only objects hold them."""
    if isinstance(sample, bytes) and column_type.length:
        return np.dtype(f"V{column_type.length}")
    return np.array(sample).dtype if isinstance(sample, (bool, int, float, np.generic)) else None


def encodings(encoding: str, chosen: tuple[str, ...]) -> dict[str, Any]:
    """Writer options for one encoding of all columns; booleans have no dictionary, they are RLE instead."""
    if encoding == FALLBACK:
        return {"use_dictionary": True, "dictionary_page_size": 200}
    return {"column_encoding": {name: encoding_of(name, encoding) for name in chosen}}


def encoding_of(name: str, encoding: str) -> str:
    physical = COLUMNS[name][0].physical
    if encoding in BY_TYPE:
        return BY_TYPE[encoding].get(physical, "PLAIN")
    return "RLE" if physical is Type.BOOLEAN and encoding != "PLAIN" else encoding


@dataclass(frozen=True)
class Written:
    """Files of one combination: a column of every type in two files, and what they hold."""

    common: Path
    rare: Path
    encoding: str
    nullable: bool

    @property
    def common_table(self) -> pa.Table:
        return expected(self.nullable, names(self.nullable))

    def table_for(self, reader: str) -> pa.Table:
        """The common columns without those that the reader refuses."""
        return self.common_table.drop_columns(sorted(REFUSED.get((reader, self.encoding), ())))

    @property
    def rare_table(self) -> pa.Table:
        return expected(self.nullable, names(self.nullable, rare=True))


def combinations() -> Iterator[Any]:
    for codec, version, encoding, nullable in itertools.product(CODECS, PAGE_VERSIONS, ENCODINGS, (True, False)):
        name = f"{codec}-{version}-{encoding}-{'optional' if nullable else 'required'}"
        yield pytest.param((codec, version, encoding, nullable), id=name)


@pytest.fixture(scope="module", params=combinations())
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Written:
    codec, version, encoding, nullable = request.param
    folder = tmp_path_factory.mktemp("written")
    for rare in (False, True):
        path = folder / f"{rare}.parquet"
        chosen = names(nullable, rare)
        fastpq.write_table(
            {name: to_write(nullable, name) for name in chosen},
            path,
            schema=ParquetSchema.of([(name, COLUMNS[name][0], nullable) for name in chosen]),
            compression=codec,
            data_page_version=version,
            row_group_size=ROW_GROUP_SIZE,
            data_page_rows=PAGE_ROWS,
            **encodings(encoding, chosen),
        )
        check_what_was_asked_for(path, codec, encoding, nullable)
    return Written(folder / "False.parquet", folder / "True.parquet", encoding, nullable)


def check_what_was_asked_for(path: Path, codec: str, encoding: str, nullable: bool) -> None:
    """Codec, encoding and nullability as pyarrow finds them in the footer."""
    file = pq.ParquetFile(path)
    for index, name in enumerate(file.schema.names):
        chunk = file.metadata.row_group(0).column(index)
        assert chunk.compression == {"none": "UNCOMPRESSED", "lz4_raw": "LZ4"}.get(codec, codec.upper())
        assert file.schema.column(index).max_definition_level == int(nullable)
        if encoding.endswith("DICTIONARY") and name not in ("boolean", *NEVER_REQUIRED):
            assert chunk.has_dictionary_page, name
        if encoding == "PLAIN" or encoding in BY_TYPE:
            assert set(chunk.encodings) <= {encoding_of(name, encoding), "RLE"}, name
            assert encoding_of(name, encoding) in chunk.encodings or name in NEVER_REQUIRED, name
        if encoding == FALLBACK and name == "int64":
            assert "PLAIN" in chunk.encodings
            assert chunk.has_dictionary_page


def test_pyarrow(written: Written) -> None:
    assert_same(pq.read_table(written.common, page_checksum_verification=True), written.common_table)
    assert_same(pq.read_table(written.rare, page_checksum_verification=True), written.rare_table)


def test_fastpq(written: Written) -> None:
    assert_same(pa.table(fastpq.read_table(written.common)), written.common_table)
    assert_same(pa.table(fastpq.read_table(written.rare)), written.rare_table)


def test_polars(written: Written) -> None:
    truth = written.table_for("polars")
    table = pl.read_parquet(written.common, columns=truth.schema.names).to_arrow()
    assert_same(table, as_read(truth, table))


def test_duckdb(written: Written) -> None:
    truth = written.table_for("duckdb")
    text = "unhex(replace(uuid::VARCHAR, '-', '')) AS uuid"      # as it is in Arrow it would be text
    columns = ", ".join(text if name == "uuid" else f'"{name}"' for name in truth.schema.names)
    with duckdb.connect() as connection:
        connection.execute("SET timezone = 'UTC'")
        table = connection.sql(f"SELECT {columns} FROM read_parquet('{written.common}')").to_arrow_table()
    assert_same(table, as_read(truth, table))


def as_read(truth: pa.Table, got: pa.Table) -> pa.Table:
    """The truth in the unit or the float that a reader has for a type that it lacks (DuckDB: no TIME in nanoseconds)."""
    for index, (field, other) in enumerate(zip(truth.schema, got.schema, strict=True)):
        if field.name == "uuid" and pa.types.is_string(other.type):
            spelled = [None if item is None else str(uuid.UUID(bytes=item)) for item in truth.column(index).to_pylist()]
            truth = truth.set_column(index, field.name, pa.array(spelled))
        if pa.types.is_temporal(field.type) or pa.types.is_float16(field.type):
            truth = truth.set_column(index, field.name, truth.column(index).cast(other.type, safe=False))
    return truth
