"""ParquetWriter: batches, schemas, and the old file or the whole new one."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import fastpq


def test_batches_become_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "batches.parquet"
    with fastpq.ParquetWriter(path, row_group_size=1_000) as writer:
        for start in range(0, 2_500, 100):
            writer.write_batch({"a": np.arange(start, start + 100), "b": np.full(100, "same")})
        writer.write_table({"a": np.arange(2_500, 2_600), "b": np.full(100, "other")})
    file = pq.ParquetFile(path)
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [1_000, 1_000, 500, 100]
    assert file.read().column("a").to_pylist() == list(range(2_600))


def test_row_groups_keep_their_bound_in_bytes() -> None:
    sink = io.BytesIO()
    fastpq.write_table({"a": np.arange(10_000), "b": np.arange(10_000.0)}, sink, row_group_bytes=16_000)
    metadata = pq.ParquetFile(sink).metadata
    assert [metadata.row_group(i).num_rows for i in range(10)] == [1_000] * 10


def test_an_exception_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "kept.parquet"
    fastpq.write_table({"a": np.arange(3)}, path)
    before = path.read_bytes()
    with pytest.raises(KeyError), fastpq.ParquetWriter(path) as writer:
        writer.write_table({"a": np.arange(1_000)})
        raise KeyError("stop")
    assert path.read_bytes() == before
    with pytest.raises(fastpq.SchemaError), fastpq.ParquetWriter(path) as writer:
        writer.write_table({"a": np.arange(1_000)})
        writer.write_table({"b": np.arange(1_000)})
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept.parquet"]


def test_nothing_written_needs_a_schema(tmp_path: Path) -> None:
    path = tmp_path / "none.parquet"
    with pytest.raises(fastpq.SchemaError, match="schema"), fastpq.ParquetWriter(path):
        pass
    assert not path.exists()


def test_zero_rows(tmp_path: Path) -> None:
    path = tmp_path / "empty.parquet"
    fastpq.write_table({"a": np.array([], dtype=np.float32), "b": np.array([], dtype=str)}, path)
    assert pq.read_table(path).num_rows == 0
    assert pq.read_schema(path).names == ["a", "b"]
    assert fastpq.read_table(path).num_rows == 0


def test_unknown_options_and_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "refused.parquet"
    with pytest.raises(TypeError, match="compresion"):
        fastpq.write_table({"a": np.arange(3)}, path, compresion="zstd")
    with pytest.raises(fastpq.SchemaError, match=r"column_encoding.*b"):
        fastpq.write_table({"a": np.arange(3)}, path, column_encoding={"b": "PLAIN"})
    with pytest.raises(fastpq.UnsupportedError, match="DELTA_BINARY_PACKED"):
        fastpq.write_table({"a": np.arange(3)}, path, column_encoding={"a": "DELTA_BINARY_PACKED"})
    assert not path.exists()


def test_options_by_column() -> None:
    sink = io.BytesIO()
    fastpq.write_table(
        {"a": np.arange(100) % 3, "b": np.arange(100) % 3, "c": np.arange(100) % 2 == 0},
        sink,
        compression={"a": "zstd"},
        column_encoding={"b": "PLAIN", "c": "RLE", "a": "PLAIN_DICTIONARY"},
        write_statistics=["a"],
    )
    group = pq.ParquetFile(sink).metadata.row_group(0)
    assert [group.column(i).compression for i in range(3)] == ["ZSTD", "UNCOMPRESSED", "UNCOMPRESSED"]
    assert [group.column(i).encodings for i in range(3)] == [("PLAIN_DICTIONARY",), ("PLAIN",), ("RLE",)]
    assert [group.column(i).is_stats_set for i in range(3)] == [True, False, False]
    assert pq.read_table(sink).column("c").to_pylist() == [True, False] * 50


def test_key_value_metadata() -> None:
    sink = io.BytesIO()
    fastpq.write_table({"a": np.arange(3)}, sink, key_value_metadata={"made by": "a test"})
    assert pq.ParquetFile(sink).metadata.metadata == {b"made by": b"a test"}
    assert fastpq.read_metadata(sink.getvalue()).key_value_metadata == {"made by": "a test"}
