"""Files of every combination that fastpq writes, read by pyarrow, DuckDB and Polars.

One file for each codec, page version, encoding and nullability holds a column of every type.
"""

from __future__ import annotations

import datetime
import decimal
import itertools
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import types
from fastpq.types import ColumnType, Type
from tests.interop.comparison import assert_same

ROWS = 700
ROW_GROUP_SIZE = 400
PAGE_ROWS = 150     # several pages in a chunk, the last not a multiple of eight
NULL_EVERY = 5

CODECS = ("none", "snappy", "gzip", "brotli", "zstd", "lz4_raw")
PAGE_VERSIONS = ("1.0", "2.0")
FALLBACK = "fallback"       # a dictionary that grows too large in mid-chunk
ENCODINGS = ("PLAIN", "RLE_DICTIONARY", "PLAIN_DICTIONARY", FALLBACK)

EPOCH = datetime.date(1970, 1, 1)


def fixed(length: int, logical: types.LogicalType | None = None) -> ColumnType:
    return ColumnType(Type.FIXED_LEN_BYTE_ARRAY, length, logical)


def number(i: int) -> int:
    """Values that repeat, and reach both ends of small ranges."""
    return (i * 37) % 251 - 125


def decimal_value(i: int) -> decimal.Decimal:
    return decimal.Decimal(number(i) * 1009).scaleb(-2)


# name: (type, value of row i, Arrow type in which all readers agree)
COLUMNS: dict[str, tuple[ColumnType, Callable[[int], Any], pa.DataType]] = {
    "boolean": (ColumnType(Type.BOOLEAN), lambda i: i % 3 == 0, pa.bool_()),
    "int32": (ColumnType(Type.INT32), lambda i: number(i) << 20, pa.int32()),
    "int64": (ColumnType(Type.INT64), lambda i: number(i) << 50, pa.int64()),
    "float": (ColumnType(Type.FLOAT), lambda i: number(i) / 8, pa.float32()),
    "double": (ColumnType(Type.DOUBLE), lambda i: number(i) / 3, pa.float64()),
    "bytes": (ColumnType(Type.BYTE_ARRAY), lambda i: bytes([i % 256]) * (i % 30), pa.binary()),
    "fixed": (fixed(7), lambda i: bytes([i % 256] * 7), pa.binary(7)),
    "string": (ColumnType(Type.BYTE_ARRAY, None, types.String()), lambda i: f"é{number(i)}" * (i % 9), pa.string()),
    "enum": (ColumnType(Type.BYTE_ARRAY, None, types.Enum()), lambda i: f"kind {i % 4}", pa.binary()),
    "json": (ColumnType(Type.BYTE_ARRAY, None, types.Json()), lambda i: f'{{"i": {i % 50}}}', pa.string()),
    "bson": (ColumnType(Type.BYTE_ARRAY, None, types.Bson()), lambda i: bytes([5, 0, 0, 0, 0]), pa.binary()),
    "uuid": (fixed(16, types.Uuid()), lambda i: uuid.UUID(int=i % 97), pa.binary(16)),
    "decimal32": (ColumnType(Type.INT32, None, types.Decimal(9, 2)), decimal_value, pa.decimal128(9, 2)),
    "decimal64": (ColumnType(Type.INT64, None, types.Decimal(18, 2)), decimal_value, pa.decimal128(18, 2)),
    "decimal_fixed": (fixed(13, types.Decimal(30, 2)), decimal_value, pa.decimal128(30, 2)),
    "decimal_bytes": (ColumnType(Type.BYTE_ARRAY, None, types.Decimal(30, 2)), decimal_value, pa.decimal128(30, 2)),
    "date": (ColumnType(Type.INT32, None, types.Date()), lambda i: EPOCH + datetime.timedelta(number(i)), pa.date32()),
    "float16": (fixed(2, types.Float16()), lambda i: np.float16(number(i) / 8), pa.float16()),
    "unknown": (ColumnType(Type.INT32, None, types.Unknown()), lambda i: None, pa.null()),
    "interval": (fixed(12, types.Interval()), lambda i: bytes([i % 256] * 12), pa.binary(12)),
    "int96": (ColumnType(Type.INT96), lambda i: np.datetime64(number(i) * 10**15, "ns"), pa.timestamp("ns")),
}
for bits, signed in itertools.product((8, 16, 32, 64), (True, False)):
    physical = Type.INT64 if bits == 64 else Type.INT32
    kind = getattr(pa, f"{'' if signed else 'u'}int{bits}")()
    COLUMNS[str(kind)] = (
        ColumnType(physical, None, types.Integer(bits, signed)),
        (lambda i: number(i)) if signed else (lambda i: number(i) + 125),
        kind,
    )
for unit, utc in itertools.product(("ms", "us", "ns"), (True, False)):
    suffix = f"{unit}{'_utc' if utc else ''}"
    COLUMNS[f"timestamp_{suffix}"] = (
        ColumnType(Type.INT64, None, types.Timestamp(unit, utc)),
        lambda i, unit=unit: np.datetime64(number(i) * 10**10, unit),
        pa.timestamp(unit, "UTC" if utc else None),
    )
    COLUMNS[f"time_{suffix}"] = (
        ColumnType(Type.INT32 if unit == "ms" else Type.INT64, None, types.Time(unit, utc)),
        lambda i, unit=unit: np.timedelta64((number(i) + 125) * 1001, unit),
        pa.time32("ms") if unit == "ms" else pa.time64(unit),
    )
NEVER_REQUIRED = {"unknown"}
NOT_IN_ALL = {"interval", "bson"}       # Polars refuses a file with the one, DuckDB a file with the other


def names(nullable: bool) -> list[str]:
    return [name for name in COLUMNS if nullable or name not in NEVER_REQUIRED]


def value(name: str, i: int, nullable: bool) -> Any:
    return None if nullable and i % NULL_EVERY == 0 else COLUMNS[name][1](i)


def as_stored(item: Any, kind: pa.DataType) -> Any:
    """A value as pyarrow builds arrays from it."""
    if isinstance(item, uuid.UUID):
        return item.bytes
    if isinstance(item, (np.datetime64, np.timedelta64)):
        return int(item.astype(np.int64))
    return item.encode() if isinstance(item, str) and pa.types.is_binary(kind) else item


def expected(nullable: bool) -> pa.Table:
    columns = {}
    for name in names(nullable):
        kind = COLUMNS[name][2]
        values = [as_stored(value(name, i, nullable), kind) for i in range(ROWS)]
        columns[name] = pa.array(values, kind)
    return pa.table(columns)


def to_write(nullable: bool) -> dict[str, np.ndarray]:
    """The columns as arrays: of their own dtype (masked where nullable) for numbers and times, of objects for the rest."""
    columns = {}
    for name in names(nullable):
        values = [value(name, i, nullable) for i in range(ROWS)]
        sample = COLUMNS[name][1](0)
        if isinstance(sample, (bool, int, float, np.generic)):
            filled = np.array([sample if item is None else item for item in values])
            columns[name] = np.ma.masked_array(filled, [item is None for item in values]) if nullable else filled
        else:
            columns[name] = np.empty(ROWS, object)
            columns[name][:] = values
    return columns


def encodings(encoding: str, nullable: bool) -> dict[str, Any]:
    """Writer options for one encoding of all columns; booleans have no dictionary, they are RLE instead."""
    chosen = dict.fromkeys(names(nullable), "RLE_DICTIONARY" if encoding == FALLBACK else encoding)
    if encoding != "PLAIN":
        chosen["boolean"] = "RLE"
    return {"column_encoding": chosen} | ({"dictionary_page_size": 300} if encoding == FALLBACK else {})


def combinations() -> Iterator[Any]:
    for codec, version, encoding, nullable in itertools.product(CODECS, PAGE_VERSIONS, ENCODINGS, (True, False)):
        name = f"{codec}-{version}-{encoding}-{'optional' if nullable else 'required'}"
        yield pytest.param((codec, version, encoding, nullable), id=name)


@pytest.fixture(scope="module", params=combinations())
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bool]:
    """A file of all columns, with one beside it of those that every reader has a type for."""
    codec, version, encoding, nullable = request.param
    path = tmp_path_factory.mktemp("written") / "all.parquet"
    table = to_write(nullable)
    for target, left_out in ((path, set()), (path.with_name("common.parquet"), NOT_IN_ALL)):
        chosen = [name for name in table if name not in left_out]
        options = encodings(encoding, nullable)
        options["column_encoding"] = {name: options["column_encoding"][name] for name in chosen}
        fastpq.write_table(
            {name: table[name] for name in chosen},
            target,
            schema={name: COLUMNS[name][0] for name in chosen},
            compression=codec,
            data_page_version=version,
            row_group_size=ROW_GROUP_SIZE,
            data_page_rows=PAGE_ROWS,
            **options,
        )
    check_what_was_asked_for(path, codec, encoding, nullable)
    return path, nullable


def check_what_was_asked_for(path: Path, codec: str, encoding: str, nullable: bool) -> None:
    """Codec, encoding and nullability as pyarrow finds them in the footer."""
    metadata = pq.read_metadata(path)
    schema = pq.ParquetFile(path).schema
    for index, name in enumerate(names(nullable)):
        chunk = metadata.row_group(0).column(index)
        assert chunk.compression == {"none": "UNCOMPRESSED", "lz4_raw": "LZ4"}.get(codec, codec.upper())
        assert schema.column(index).max_definition_level == int(nullable)
        if encoding.endswith("DICTIONARY") and name not in ("boolean", *NEVER_REQUIRED):
            assert chunk.has_dictionary_page, name
        if encoding == "PLAIN":
            assert set(chunk.encodings) <= {"PLAIN", "RLE"}, name
        if encoding == FALLBACK and name == "string":
            assert "PLAIN" in chunk.encodings
            assert chunk.has_dictionary_page


def test_pyarrow(written: tuple[Path, bool]) -> None:
    path, nullable = written
    assert_same(pq.read_table(path, page_checksum_verification=True), expected(nullable))


def test_fastpq(written: tuple[Path, bool]) -> None:
    path, nullable = written
    assert_same(pa.table(fastpq.read_table(path)), expected(nullable))


def as_read(truth: pa.Table, got: pa.Table) -> pa.Table:
    """The truth in the finer unit or wider float that a reader has instead of a type that it lacks."""
    for index, (field, other) in enumerate(zip(truth.schema, got.schema, strict=True)):
        if pa.types.is_temporal(field.type) or pa.types.is_float16(field.type):
            truth = truth.set_column(index, field.name, truth.column(index).cast(other.type, safe=False))
    return truth


def test_polars(written: tuple[Path, bool]) -> None:
    path, nullable = written
    chosen = [name for name in names(nullable) if name not in NOT_IN_ALL]
    table = pl.read_parquet(path.with_name("common.parquet")).to_arrow()
    assert_same(table, as_read(expected(nullable).select(chosen), table))


def test_duckdb(written: tuple[Path, bool]) -> None:
    path, nullable = written
    chosen = [name for name in names(nullable) if name not in NOT_IN_ALL]
    with duckdb.connect() as connection:
        connection.execute("SET timezone = 'UTC'")
        columns = ", ".join(f'"{name}"' for name in chosen)
        file = path.with_name("common.parquet")
        table = connection.sql(f"SELECT {columns} FROM read_parquet('{file}')").to_arrow_table()
    assert_same(table, as_read(expected(nullable).select(chosen), table))
