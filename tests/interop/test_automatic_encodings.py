"""Every encoding that encoding="auto" may choose is read by pyarrow, DuckDB and Polars; tests/spark has Spark."""

from __future__ import annotations

import io
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.format import Encoding
from tests.interop.automatic_encodings import files


def test_peers_read_every_automatic_encoding(tmp_path: Path) -> None:
    count = 0
    for name, path, values in files(tmp_path, ["1.0", "2.0"]):
        assert pq.read_table(path)["x"].to_pylist() == values, name
        assert [row[0] for row in duckdb.read_parquet(str(path)).fetchall()] == values, name
        assert pl.read_parquet(path)["x"].to_list() == values, name
        count += 1
    assert count >= 140


@pytest.mark.parametrize("kind", ["decimal", "fixed", "uuid", "dictionary"])
def test_auto_takes_no_encoding_that_a_peer_does_not_read(kind: str) -> None:
    """Values for which an encoding out of the peers' reach would be the smallest."""
    rng, rows = np.random.default_rng(5), 40_000
    sorted_texts = pa.array([f"https://example.org/some/path/{i:09}/page" for i in range(rows)])
    columns = {
        "decimal": pa.array(np.cumsum(rng.integers(0, 9, rows))).cast(pa.decimal128(30, 0)),
        "fixed": pa.array([f"a long common beginning {i:08}".encode() for i in range(rows)], pa.binary(32)),
        "uuid": pa.array([i.to_bytes(16, "big") for i in range(rows)], pa.binary(16)),
        "dictionary": sorted_texts.dictionary_encode(),
    }
    table = pa.table({"x": columns[kind]})
    fastpq.write_table(table, sink := io.BytesIO(), encoding="auto", arrow_schema=True)
    stored = fastpq.read_metadata(sink.getvalue()).row_group(0).column(0)
    assert {Encoding(encoding).name for encoding in stored.encodings} <= {"PLAIN", "RLE", "RLE_DICTIONARY"}
    assert pq.read_table(io.BytesIO(sink.getvalue()))["x"].to_pylist() == table["x"].to_pylist()
    assert pl.read_parquet(io.BytesIO(sink.getvalue()))["x"].to_list() == table["x"].to_pylist()
