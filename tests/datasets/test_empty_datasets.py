"""Datasets and files without rows keep the schema that the caller gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import fastpq

ARROW = pa.schema(
    [
        pa.field("a", pa.int64(), nullable=False),
        ("l", pa.list_(pa.int32())),
        ("t", pa.timestamp("us", "UTC")),
        ("d", pa.dictionary(pa.int32(), pa.string())),
        ("s", pa.struct([("x", pa.decimal128(9, 2))])),
    ]
)


def test_peers_see_the_columns(tmp_path: Path) -> None:
    (path,) = fastpq.write_dataset(iter([]), tmp_path / "arrow", schema=ARROW)
    assert ds.dataset(tmp_path / "arrow").schema.equals(ARROW)
    assert pl.read_parquet(path).schema["t"] == pl.Datetime("us", "UTC")
    assert fastpq.read_dataset(tmp_path / "arrow").names == ARROW.names
    (path,) = fastpq.write_dataset(iter([]), tmp_path / "parquet", schema=fastpq.read_schema(path))
    assert [str(field.type) for field in pq.read_schema(path)][:2] == ["int64", "list<element: int32>"]
    named: dict[str, Any] = {"a": "int64", "b": "string", "c": "duration[s]", "d": "M8[ms]"}
    (path,) = fastpq.write_dataset(iter([]), tmp_path / "named", schema=named)
    assert list(map(str, pq.read_schema(path).types)) == ["int64", "string", "duration[s]", "timestamp[ms]"]


def test_files(tmp_path: Path) -> None:
    fastpq.write_table(iter([]), tmp_path / "x", schema=ARROW)
    assert pq.read_schema(tmp_path / "x").equals(ARROW)
    with fastpq.ParquetWriter(tmp_path / "y", {"a": "int16"}):
        pass
    assert pq.read_table(tmp_path / "y").schema == pa.schema([("a", pa.int16())])
    with pytest.raises(fastpq.SchemaError, match="a file needs a schema"):
        fastpq.write_table(iter([]), tmp_path / "z")
    assert fastpq.write_dataset(iter([]), tmp_path / "none") == []


def test_lists_without_values_take_the_given_types(tmp_path: Path) -> None:
    schema: Any = {"a": "float32", "b": "string"}
    fastpq.write_dataset({"a": [], "b": []}, tmp_path / "d", schema=schema)
    assert ds.dataset(tmp_path / "d").schema.types == [pa.float32(), pa.string()]
    fastpq.write_table(fastpq.Table({"a": [None, None]}), tmp_path / "x", schema={"a": "string"})
    assert pq.read_table(tmp_path / "x")["a"].to_pylist() == [None, None]
    assert pq.read_schema(tmp_path / "x").types == [pa.string()]


def test_rows_after_nothing_fit(tmp_path: Path) -> None:
    schema: Any = {"a": "int64", "b": "string"}
    for data in (iter([]), {"a": [1], "b": ["x"]}, iter([{"a": [2], "b": [None]}])):
        fastpq.write_dataset(data, tmp_path, schema=schema)
    assert sorted(fastpq.read_dataset(tmp_path)["a"].to_pylist()) == [1, 2]


def test_partitions_without_rows_have_no_file(tmp_path: Path) -> None:
    schema: Any = {"a": "int64", "b": "string"}
    assert fastpq.write_dataset(iter([]), tmp_path / "d", schema=schema, partition_by=["b"]) == []
