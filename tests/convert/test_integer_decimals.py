"""store_decimal_as_integer: decimals with few digits become INT32 or INT64, and every reader has the same values."""

from __future__ import annotations

import io
from decimal import Decimal as Dec
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.convert.integer_decimals import with_integer_decimals
from fastpq.types import ColumnType, Decimal, Type

ROWS = 500
FIXED = ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 7, Decimal(15, 2))
VALUES = [None if row % 11 == 3 else Dec(row * 7919 - 1_900_000) / 100 for row in range(ROWS)]
# physical types by precision
EXPECTED = {
    1: Type.INT32, 9: Type.INT32, 10: Type.INT64, 18: Type.INT64, 19: Type.FIXED_LEN_BYTE_ARRAY, 38: Type.FIXED_LEN_BYTE_ARRAY}


def decimals(precision: int = 15, values: list[Any] = VALUES) -> pa.Array:
    return pa.array(values, pa.decimal128(precision, 2))


def nested_table() -> pa.Table:
    values = decimals()
    return pa.table({
        "flat": values, "wide": decimals(30), "text": [f"text {row}" for row in range(ROWS)],
        "struct": pa.StructArray.from_arrays([values, decimals(9)], names=["a", "b"]),
        "list": pa.array([[value] * (row % 3) for row, value in enumerate(VALUES)], pa.list_(pa.decimal128(15, 2))),
        "map": pa.array([[("key", value)] for value in VALUES], pa.map_(pa.string(), pa.decimal128(12, 2))),
        "dictionary": values.dictionary_encode(),
    })


def physical_types(data: Any) -> dict[str, Type]:
    return {column.name: column.physical_type for column in fastpq.read_schema(data).columns}


def written(data: Any, **options: Any) -> bytes:
    target = io.BytesIO()
    fastpq.write_table(data, target, **options)
    return target.getvalue()


@pytest.mark.parametrize("precision", EXPECTED)
def test_the_narrowest_type_is_taken(precision: int) -> None:
    most = 10 ** precision - 1
    table = pa.table({"x": pa.array([Dec(0), Dec(most), Dec(-most), None], pa.decimal128(precision, 0))})
    data = written(table, store_decimal_as_integer=True)
    assert physical_types(data) == {"x": EXPECTED[precision]}
    target = io.BytesIO()
    pq.write_table(table, target, store_decimal_as_integer=True)
    assert physical_types(target.getvalue()) == physical_types(data)
    assert pq.read_table(io.BytesIO(data)).equals(table)


def test_every_reader_has_the_values(tmp_path: Path) -> None:
    table, path = nested_table(), tmp_path / "a.parquet"
    fastpq.write_table(table, path, store_decimal_as_integer=True)
    types = {name: kind for name, kind in physical_types(path).items() if name not in ("text", "map.key_value.key")}
    assert types.pop("wide") is Type.FIXED_LEN_BYTE_ARRAY
    assert types.pop("struct.b") is Type.INT32
    assert {*types.values()} == {Type.INT64}
    expected = table.set_column(6, "dictionary", table["flat"]).to_pylist()
    assert pq.read_table(path).to_pylist() == expected
    assert pa.table(fastpq.read_table(path)).to_pylist() == expected
    with duckdb.connect() as connection:
        flat = connection.execute(f"select flat, struct.a, list from '{path}'").fetchall()
    assert flat == [(row["flat"], row["struct"]["a"], row["list"]) for row in expected]
    assert pl.read_parquet(path, columns=["flat", "list"]).to_dicts() == [
        {"flat": row["flat"], "list": row["list"]} for row in expected]


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, Type.FIXED_LEN_BYTE_ARRAY), ({"encoding": "auto"}, Type.INT64),
        ({"encoding": "auto", "store_decimal_as_integer": False}, Type.FIXED_LEN_BYTE_ARRAY),
        ({"encoding": "auto", "schema": {"x": FIXED}}, Type.FIXED_LEN_BYTE_ARRAY),
        ({"encoding": "auto", "schema": pa.schema([("x", pa.decimal128(15, 2))])}, Type.INT64),
        ({"encoding": "auto", "schema": {"x": "decimal(15, 2)"}}, Type.INT64),
    ],
)
def test_which_option_decides(options: dict[str, Any], kind: Type) -> None:
    table = pa.table({"x": decimals()})
    inputs = (
        table, pa.table({"x": pa.chunked_array([decimals(), decimals()])}), pl.from_arrow(table), table.to_reader(100),
        fastpq.read_table(written(table)),
    )
    for data in inputs:
        file = written(data, **options)
        assert physical_types(file) == {"x": kind}
        assert pq.read_table(io.BytesIO(file))["x"].to_pylist()[:ROWS] == VALUES


def test_tables_and_batches_of_one_writer(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"x": decimals()})
    with fastpq.ParquetWriter(path, encoding="auto", row_group_size=700) as writer:
        writer.write_table(table)
        writer.write_batch(table)
        writer.write_batch({"x": np.array(VALUES, object)})
        for batch in table.to_batches(100):
            writer.write_batch(batch)
    assert physical_types(path) == {"x": Type.INT64}
    assert pq.read_table(path)["x"].to_pylist() == 4 * VALUES


def test_an_appended_table_takes_the_types_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for as_integer, kind in ((False, Type.FIXED_LEN_BYTE_ARRAY), (True, Type.INT64)):
        fastpq.write_table(pa.table({"x": decimals()}), path, store_decimal_as_integer=as_integer)
        fastpq.append_table(pa.table({"x": decimals()}), path, encoding="auto")
        assert physical_types(path) == {"x": kind}
        assert pq.read_table(path)["x"].to_pylist() == 2 * VALUES


@pytest.mark.parametrize("precision", [9, 15])
def test_digits_beyond_the_precision_are_refused(precision: int) -> None:
    """Arrow data may have them. Under a null any bytes are right."""
    for number in (1 << 40 if precision == 9 else 1 << 70, -(1 << 90)):
        stored = np.frombuffer(b"".join(each.to_bytes(16, "little", signed=True) for each in (5, number)), np.uint8)
        buffers = [None, pa.py_buffer(stored.tobytes())]
        array = pa.Array.from_buffers(pa.decimal128(precision, 2), 2, buffers)
        with pytest.raises(fastpq.SchemaError, match="a decimal in row 1 has more digits") as caught:
            written(pa.table({"x": array}), store_decimal_as_integer=True)
        assert caught.value.context["column"] == "x"
        nulls = pa.Array.from_buffers(pa.decimal128(precision, 2), 2, [pa.py_buffer(b"\x01"), buffers[1]])
        data = written(pa.table({"x": nulls}), store_decimal_as_integer=True)
        assert pq.read_table(io.BytesIO(data))["x"].to_pylist() == [Dec("0.05"), None]


def test_a_table_without_decimals_is_the_same_object() -> None:
    table = fastpq.read_table(written(pa.table({"a": [1, 2], "b": [[1], [2]]})))
    assert with_integer_decimals(table) is table


def test_a_file_without_tables() -> None:
    target = io.BytesIO()
    with fastpq.ParquetWriter(target, pa.schema([("x", pa.decimal128(15, 2))]), encoding="auto"):
        pass
    assert physical_types(target.getvalue()) == {"x": Type.INT64}


@pytest.mark.parametrize(
    ("path", "name"), [("flat", "flat"), ("struct.a", "struct"), ("list", "list"), ("map.key_value.value", "map")]
)
def test_an_encoding_that_the_caller_chose_keeps_the_type(path: str, name: str) -> None:
    """A whole column keeps its type, also if only a part of it has an encoding."""
    table, sink = nested_table(), io.BytesIO()
    table = table.select([name, "dictionary"])
    fastpq.write_table(table, sink, encoding="auto", column_encoding={path: "DELTA_BYTE_ARRAY"})
    kinds = {column.path_in_schema: column.physical_type for column in _chunks(sink) if column.physical_type != "BYTE_ARRAY"}
    assert kinds.pop("dictionary") == "INT64"
    assert set(kinds.values()) == {"FIXED_LEN_BYTE_ARRAY"}
    assert pq.read_table(sink)[name].equals(table[name])
    with pytest.raises(fastpq.SchemaError, match="DELTA_BYTE_ARRAY does not fit INT"):
        fastpq.write_table(
            table, io.BytesIO(), encoding="auto", column_encoding={path: "DELTA_BYTE_ARRAY"}, store_decimal_as_integer=True)


def _chunks(sink: io.BytesIO) -> list[Any]:
    row_group = pq.read_metadata(sink).row_group(0)
    return [row_group.column(index) for index in range(row_group.num_columns)]
