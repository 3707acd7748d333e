"""Types that need strangers of their own: wide decimals, geometries, and the ConvertedTypes of old readers and writers."""

from __future__ import annotations

import datetime as dt
import io
import random
import struct
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.schema import types
from fastpq.schema.types import ColumnType, Type
from tests.requirements import peer

fastparquet = peer("fastparquet")

duckdb = peer("duckdb")

EXACT = Context(prec=80)
PRECISIONS = (1, 2, 9, 10, 18, 19, 28, 38, 39, 57, 76)


def decimals(precision: int, scale: int) -> list[Decimal | None]:
    most = 10**precision - 1
    return [Decimal(n).scaleb(-scale, EXACT) if n is not None else None for n in (most, -most, 0, None, 1, -1, most // 3)]


def holders(precision: int) -> list[ColumnType]:
    """The column types that hold decimals of so many digits."""
    length = ((10**precision).bit_length() + 8) // 8
    chosen = [(Type.FIXED_LEN_BYTE_ARRAY, size) for size in (length, 16 if length <= 16 else 32)] + [(Type.BYTE_ARRAY, None)]
    chosen += [(Type.INT64, None)] if precision <= 18 else []
    chosen += [(Type.INT32, None)] if precision <= 9 else []
    return [ColumnType(physical, size, types.Decimal(precision, precision // 2)) for physical, size in chosen]


def written(data: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    fastpq.write_table(data, sink, **options)
    return sink.getvalue()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_decimals(precision: int, tmp_path: Path) -> None:
    scale = precision // 2
    values = decimals(precision, scale)
    for type_ in holders(precision):
        for dictionary in (True, False):
            data = written({"d": values}, schema={"d": type_}, use_dictionary=dictionary)
            assert pq.read_table(io.BytesIO(data))["d"].to_pylist() == values, type_
            assert fastpq.read_table(data)["d"].to_pylist() == values
            low, high = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0).statistics.min, max(filter(None, values))
            assert (low, high) == (min(value for value in values if value is not None), values[0])
        if precision <= 38:
            (tmp_path / "d.parquet").write_bytes(data)
            with duckdb.connect() as connection:
                assert [row[0] for row in connection.sql(f"FROM '{tmp_path}/d.parquet'").fetchall()] == values
    made = pa.array(values, pa.decimal256(precision, scale) if precision > 38 else pa.decimal128(precision, scale))
    for options in ({}, {"store_decimal_as_integer": True}, {"use_dictionary": False, "column_encoding": "BYTE_STREAM_SPLIT"}):
        sink = io.BytesIO()
        pq.write_table(pa.table({"d": made}), sink, **options)
        read = fastpq.read_table(sink.getvalue())["d"]
        assert read.to_pylist() == values
        assert pa.array(read).equals(made)


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"])
@pytest.mark.parametrize("length", range(1, 33))
def test_decimals_of_every_length(length: int, encoding: str) -> None:
    """Values of both signs in chunks of few and many rows, with as many digits as the bytes hold, and with fewer."""
    chance = random.Random(length)
    digits = len(str((1 << 8 * length - 1) - 1)) - 1
    fewer = {39} if length > 16 else {1, min(digits, 9), min(digits, 18)}       # pyarrow holds up to 38 digits in 16 bytes
    for precision in fewer | {digits}:
        type_ = ColumnType(Type.FIXED_LEN_BYTE_ARRAY, length, types.Decimal(precision, 0))
        for rows in (1, 3, 8, 17, 300):
            values = [Decimal(chance.randrange(1 - 10**precision, 10**precision)) for _ in range(rows)]
            data = written({"d": values}, schema={"d": type_}, use_dictionary=False, column_encoding={"d": encoding})
            assert pq.read_table(io.BytesIO(data))["d"].to_pylist() == values
            assert fastpq.read_table(data)["d"].to_pylist() == values


def test_geometries_of_duckdb(tmp_path: Path) -> None:
    """DuckDB knows GEOMETRY without its spatial extension; its boxes and ours are the same."""
    shapes = ["POINT (1 2)", "LINESTRING Z (0 0 5, 10 -3 7)", "POLYGON ((0 0, 4 0, 4 4, 0 0))", "MULTIPOINT M (1 1 9, 2 2 8)"]
    listed = ", ".join(f"('{text}'::GEOMETRY)" for text in shapes)
    with duckdb.connect() as connection:
        query = f"SELECT * FROM (VALUES {listed}, (NULL)) AS t(g)"
        connection.sql(f"COPY ({query}) TO '{tmp_path}/theirs.parquet' (GEOPARQUET_VERSION 'NONE')")
        theirs = fastpq.read_table(tmp_path / "theirs.parquet")
        assert isinstance(theirs.flat("g").type.logical, types.Geometry)
        fastpq.write_table(theirs, tmp_path / "ours.parquet")
        query = "SELECT geo_bbox, geo_types FROM parquet_metadata('{}/{}.parquet')"
        boxes = {name: connection.sql(query.format(tmp_path, name)).fetchall()[0] for name in ("theirs", "ours")}
        assert boxes["ours"][0] == boxes["theirs"][0]
        assert set(boxes["ours"][1]) == set(boxes["theirs"][1])
        both = [connection.sql(f"SELECT g::VARCHAR FROM '{tmp_path}/{name}.parquet'").fetchall() for name in boxes]
        assert both[0] == both[1]
        assert [row[0] for row in both[0]][:3:2] == [shapes[0], shapes[2]]


OLD: dict[str, tuple[ColumnType, list[Any]]] = {
    "utf8": (ColumnType(Type.BYTE_ARRAY, None, types.String()), ["é", "b"]),
    "json": (ColumnType(Type.BYTE_ARRAY, None, types.Json()), ['{"a": 1}', "[2]"]),
    "date": (ColumnType(Type.INT32, None, types.Date()), [dt.date(1969, 12, 31), dt.date(2024, 2, 29)]),
    "time_millis": (ColumnType(Type.INT32, None, types.Time("ms", True)), [dt.time(1, 2, 3), dt.time(0)]),
    "time_micros": (ColumnType(Type.INT64, None, types.Time("us", True)), [dt.time(1, 2, 3, 4), dt.time(0)]),
    "timestamp_millis": (ColumnType(Type.INT64, None, types.Timestamp("ms", True)), [1, -1]),
    "timestamp_micros": (ColumnType(Type.INT64, None, types.Timestamp("us", True)), [1, -1]),
    "decimal": (ColumnType(Type.INT32, None, types.Decimal(5, 2)), [Decimal("1.25"), Decimal("-3.00")]),
}
for bits in (8, 16, 32, 64):
    for signed in (True, False):
        type_ = ColumnType(Type.INT64 if bits == 64 else Type.INT32, None, types.Integer(bits, signed))
        OLD[f"{'int' if signed else 'uint'}_{bits}"] = (type_, [1, (1 << (bits - signed)) - 1])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")   # it leaves files open
@pytest.mark.filterwarnings("ignore:The 'generic' unit:DeprecationWarning")     # of fastparquet, under NumPy 2.5
def test_a_reader_of_converted_types_alone(tmp_path: Path) -> None:
    """fastparquet, which knows no LogicalType."""
    path = tmp_path / "old.parquet"
    columns: dict[str, Any] = {name: values for name, (_, values) in OLD.items()}
    columns["timestamp_millis"] = np.array(columns["timestamp_millis"], "M8[ms]")
    columns["timestamp_micros"] = np.array(columns["timestamp_micros"], "M8[us]")
    fastpq.write_table(columns, path, schema={name: type_ for name, (type_, _) in OLD.items()})
    read = fastparquet.ParquetFile(str(path)).to_pandas()
    for name, (_, values) in OLD.items():
        got = read[name].tolist()
        if name == "json":
            assert got == [{"a": 1}, [2]]
        elif name == "date":
            assert [value.date() for value in got] == values
        elif name.startswith("time_"):
            assert [(dt.datetime.min + value.to_pytimedelta()).time() for value in got] == values
        elif name.startswith("timestamp"):
            assert [value.value for value in got] == [n * (10**6 if name.endswith("millis") else 10**3) for n in values]
        else:
            assert got == (pytest.approx([1.25, -3.0]) if name == "decimal" else values), name


def test_a_writer_of_converted_types_alone(tmp_path: Path) -> None:
    path = tmp_path / "old.parquet"
    frame = pd.DataFrame(
        {
            **{f"{kind}{bits}": np.array([1, 0], f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
            "text": ["é", "b"],
            "when": np.array(["2024-02-29T12:00:00.000001", "1969-12-31"], "M8[us]"),
            "lasted": np.array([5, 7], "m8[us]"),
            "day": [b"x", b"yz"],
        }
    )
    fastparquet.write(str(path), frame, object_encoding={"text": "utf8", "day": "bytes"})
    elements = fastpq.read_metadata(path).schema_elements[1:]
    assert any(element.converted_type is not None and element.logicalType is None for element in elements)
    read = fastpq.read_table(path)
    for name in frame.columns[:8]:
        assert read[name].to_numpy(nulls="nan").dtype == frame[name].dtype, name
    assert read["text"].to_pylist() == ["é", "b"]
    assert read["day"].to_pylist() == [b"x", b"yz"]
    assert np.array_equal(np.asarray(read["when"]).astype("M8[us]"), frame["when"].to_numpy())
    assert np.array_equal(np.asarray(read["lasted"]).astype("m8[us]"), frame["lasted"].to_numpy())


def test_intervals_and_uuids_of_duckdb(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        query = "SELECT INTERVAL '14 months 3 days 2 seconds' AS i, '00000000-0000-0000-0000-00000000000a'::UUID AS u, "
        query += "{'x': 1}::VARIANT AS v"
        connection.sql(f"COPY ({query}) TO '{tmp_path}/theirs.parquet'")
        row = fastpq.read_table(tmp_path / "theirs.parquet").to_pylist()[0]
        assert row["i"] == (14, 3, 2000)
        assert row["u"].int == 10
        assert row["v"] == {"x": 1}
        interval = ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 12, types.Interval())
        stored = np.frombuffer(struct.pack("<3I", 14, 3, 2000), "V12")
        fastpq.write_table({"i": stored}, tmp_path / "ours.parquet", schema={"i": interval})
        same = connection.sql(f"SELECT i = INTERVAL '14 months 3 days 2 seconds' FROM '{tmp_path}/ours.parquet'").fetchall()
        assert same == [(True,)]
