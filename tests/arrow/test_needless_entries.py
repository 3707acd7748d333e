"""ARROW:schema is left out where it would say nothing that the file's schema does not say."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq

PLAIN = {
    "bool": pa.bool_(), "int8": pa.int8(), "uint16": pa.uint16(), "int64": pa.int64(), "float": pa.float32(),
    "half": pa.float16(),
    "date": pa.date32(), "time": pa.time32("ms"), "timestamp": pa.timestamp("us"), "utc": pa.timestamp("ms", "UTC"),
    "decimal": pa.decimal128(12, 2), "fixed": pa.binary(4),
    "struct": pa.struct([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.struct([("c", pa.float32())]))]),
}
OTHERS = {
    "text": pa.string(), "views": pa.string_view(), "bytes": pa.binary(), "zone": pa.timestamp("us", "Europe/Berlin"),
    "seconds": pa.timestamp("s"), "duration": pa.duration("s"), "date64": pa.date64(), "wide": pa.decimal256(12, 2),
    "null": pa.null(), "struct": pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.string())]))]),
    "list": pa.list_(pa.int64()), "field metadata": pa.struct([pa.field("a", pa.int64(), metadata={"unit": "m"})]),
}


def written(type_: pa.DataType, **options: Any) -> bytes:
    fastpq.write_table(pa.table({"x": pa.nulls(3, type_)}), sink := io.BytesIO(), **options)
    return sink.getvalue()


@pytest.mark.parametrize("name", PLAIN)
def test_plain_types_need_no_entry(name: str) -> None:
    data = written(PLAIN[name])
    assert "ARROW:schema" not in fastpq.read_metadata(data).key_value_metadata
    with_entry = written(PLAIN[name], arrow_schema=True)
    assert "ARROW:schema" in fastpq.read_metadata(with_entry).key_value_metadata
    for each in (data, with_entry):
        assert pq.read_table(io.BytesIO(each)).schema == pa.schema({"x": PLAIN[name]})
        assert pa.table(fastpq.read_table(each)).schema == pa.schema({"x": PLAIN[name]})


@pytest.mark.parametrize("name", OTHERS)
def test_other_types_keep_the_entry(name: str) -> None:
    data = written(OTHERS[name])
    assert "ARROW:schema" in fastpq.read_metadata(data).key_value_metadata
    assert pa.table(fastpq.read_table(data)).schema == pa.schema({"x": OTHERS[name]})


def test_polars_keeps_nulls(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [1, 2], "n": [None, None]})
    fastpq.write_table(frame, tmp_path / "x.parquet")
    assert pl.read_parquet(tmp_path / "x.parquet").schema == frame.schema


@pytest.mark.parametrize("is_first", [True, False])
def test_files_with_and_without_the_entry_share_metadata(tmp_path: Path, is_first: bool) -> None:
    table = pa.table({"x": [1, 2], "price": [0.5, None]})
    fastpq.write_table(table, tmp_path / "1.parquet", arrow_schema=is_first)
    fastpq.write_dataset_metadata(tmp_path)
    fastpq.write_dataset(table, tmp_path, arrow_schema=not is_first, basename_template="2-{i}.parquet")
    assert {"_metadata", "_common_metadata"} <= {path.name for path in tmp_path.iterdir()}
    assert fastpq.read_table(tmp_path)["x"].to_pylist() == [1, 2, 1, 2]
    zoned = pa.table({"x": [1, 2], "price": pa.array([1, 2], pa.int8()).cast(pa.float64())})
    fastpq.write_table(zoned, tmp_path / "3.parquet")
    fastpq.write_dataset_metadata(tmp_path)
    other = pa.table({"x": pa.array([1, 2], pa.duration("s")), "price": [0.5, 1.5]})
    fastpq.write_table(other, tmp_path / "4.parquet")
    with pytest.raises(fastpq.SchemaError, match="Arrow types differ"):
        fastpq.write_dataset_metadata(tmp_path)


def test_metadata_of_a_field_keep_the_entry() -> None:
    schema = pa.schema([pa.field("x", pa.int64(), metadata={"unit": "m"})])
    fastpq.write_table(pa.table({"x": [1]}, schema=schema), sink := io.BytesIO())
    assert pa.table(fastpq.read_table(sink.getvalue())).schema.field("x").metadata == {b"unit": b"m"}
