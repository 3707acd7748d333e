"""Enums of Polars: values, categories and their order, for Polars, pyarrow and pandas, in files of Polars and of ours."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.arrays.nodes import FieldNode
from fastpq.arrow.canonical import enum_categories

CATEGORIES = ["high", "größer; als 7;low", "", "mid", "unused"]
VALUES = ["mid", None, "high", "größer; als 7;low", "", "mid"]
ENUM = pl.Enum(CATEGORIES)
FRAME = pl.DataFrame(
    {
        "e": pl.Series(VALUES, dtype=ENUM),
        "l": pl.Series([["mid", None], [], None, ["high"], [""], ["mid"]], dtype=pl.List(ENUM)),
        "s": pl.Series([{"e": value} for value in VALUES], dtype=pl.Struct({"e": ENUM})),
        "all null": pl.Series([None] * 6, dtype=ENUM),
    }
)


def by_fastpq() -> bytes:
    sink = io.BytesIO()
    fastpq.write_table(FRAME, sink, row_group_size=2)
    return sink.getvalue()


def by_polars() -> bytes:
    sink = io.BytesIO()
    FRAME.write_parquet(sink, row_group_size=2)
    return sink.getvalue()


@pytest.mark.parametrize("write", [by_fastpq, by_polars])
@pytest.mark.parametrize("strings", ["views", "offsets", "dictionary"])
def test_enums_come_back(write: Any, strings: Any) -> None:
    data = write()
    table = fastpq.read_table(data, strings=strings)
    found = pl.DataFrame(table)
    assert found.schema == FRAME.schema
    assert found.equals(FRAME)
    arrow = pa.table(table)
    for column in (arrow["e"], arrow["l"].combine_chunks().flatten(), arrow["s"].combine_chunks().field("e"), arrow["all null"]):
        assert column.type.ordered
        assert (column.chunk(0) if isinstance(column, pa.ChunkedArray) else column).dictionary.to_pylist() == CATEGORIES
    assert arrow["e"].to_pylist() == VALUES
    frame = fastpq.read_pandas(data, ["e", "all null"], strings=strings)
    expected = pd.Series(pd.Categorical(VALUES, CATEGORIES, ordered=True), name="e")
    pd.testing.assert_series_equal(frame["e"], expected)
    assert list(frame["all null"].cat.categories) == CATEGORIES
    assert frame["e"].max() == "mid"


def test_other_readers_of_our_files() -> None:
    found = pl.read_parquet(by_fastpq())
    assert found.schema == FRAME.schema
    assert found.equals(FRAME)
    theirs = pq.read_table(io.BytesIO(by_fastpq()))
    assert theirs["e"].type.ordered
    assert theirs["e"].to_pylist() == VALUES
    again = io.BytesIO()
    fastpq.write_table(fastpq.read_table(by_polars()), again)
    assert pl.read_parquet(again.getvalue()).equals(FRAME)


def test_datasets_and_batches(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(by_polars())
    (tmp_path / "b.parquet").write_bytes(by_fastpq())
    both = pl.concat([FRAME, FRAME])
    assert pl.DataFrame(fastpq.read_dataset(tmp_path)).equals(both)
    assert list(fastpq.read_pandas(tmp_path, ["e"])["e"].cat.categories) == CATEGORIES
    with fastpq.ParquetFile(by_polars()) as file:
        batches = [pl.DataFrame(batch) for batch in file.iter_batches(4)]
    assert pl.concat(batches).equals(FRAME)


def test_a_value_beside_the_categories_stays() -> None:
    """Metadata that lack a value of the column say nothing: the values come back, without the order."""
    field = pa.field("e", pa.dictionary(pa.int8(), pa.string(), ordered=True), metadata={"_PL_ENUM_VALUES2": "4;high"})
    table = pa.table([pa.array(["high", "low"]).cast(field.type)], schema=pa.schema([field]))
    sink = io.BytesIO()
    fastpq.write_table(table, sink)
    assert pa.table(fastpq.read_table(sink.getvalue()))["e"].to_pylist() == ["high", "low"]


@pytest.mark.parametrize("packed", [b"5;high", b"-1;high", b"high", b"4", b";", b"1;\xff", b"4;high3", b"\xb2;hi"])
def test_broken_metadata_are_no_categories(packed: bytes) -> None:
    field = FieldNode("C", metadata={b"_PL_ENUM_VALUES": packed}, dictionary=FieldNode("u"))
    assert enum_categories(field) is None


def test_metadata_of_earlier_versions() -> None:
    for key in (b"_PL_ENUM_VALUES", b"_PL_ENUM_VALUES2"):
        field = FieldNode("C", metadata={key: b"4;high0;3;a;b"}, dictionary=FieldNode("u"))
        assert enum_categories(field) == ["high", "", "a;b"]
        assert enum_categories(FieldNode("u", metadata={key: b"4;high"})) is None
