"""Files and datasets as Arrow streams: for pyarrow, Polars and DuckDB, and as the input of a writer."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from tests.requirements import peer

duckdb = peer("duckdb")
ROWS = 200_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    for number in range(2):
        rows = np.arange(ROWS) + number * ROWS
        table = pa.table(
            {
                "id": rows,
                "text": pa.array(np.char.add("t", (rows % 1000).astype(str))).dictionary_encode(),
                "lists": pa.array([[row, None] if row % 3 else None for row in rows.tolist()]),
                "at": pa.array(rows, pa.timestamp("us", "Europe/Berlin")),
                "for": pa.array(rows, pa.duration("ms")),
            }
        )
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=50_000)
    return folder


def test_other_libraries_take_a_file(folder: Path) -> None:
    wanted = pq.read_table(folder / "0.parquet")
    with fastpq.ParquetFile(folder / "0.parquet") as file:
        assert file.num_rows == ROWS
        reader = pa.RecordBatchReader.from_stream(file)
        assert reader.schema.equals(wanted.schema)
        batches = list(reader)
        assert [len(batch) for batch in batches] == [65_536, 65_536, 65_536, 3_392]
        assert pa.Table.from_batches(batches).to_pylist() == wanted.to_pylist()
        assert pl.DataFrame(file).equals(pl.read_parquet(folder / "0.parquet"), null_equal=True)
        assert pa.schema(file).equals(wanted.schema)


def test_other_libraries_take_a_dataset(folder: Path) -> None:
    dataset = fastpq.ParquetDataset(folder)
    wanted = pl.read_parquet(sorted(folder.iterdir()))
    assert pl.DataFrame(dataset).equals(wanted, null_equal=True)
    assert duckdb.sql("SELECT count(*), sum(id) FROM dataset").fetchall() == [(2 * ROWS, ROWS * (2 * ROWS - 1))]


def test_the_input_of_a_writer(folder: Path, tmp_path: Path) -> None:
    """Batches are read as the writer asks for them."""
    fastpq.write_table(fastpq.ParquetDataset(folder), tmp_path / "all.parquet", row_group_size=100_000)
    with fastpq.ParquetFile(folder / "0.parquet") as file, fastpq.ParquetWriter(tmp_path / "one.parquet") as writer:
        writer.write_table(file)
    wanted = pa.concat_tables([pq.read_table(folder / f"{number}.parquet") for number in range(2)])
    found = pq.read_table(tmp_path / "all.parquet")
    assert pq.ParquetFile(tmp_path / "all.parquet").num_row_groups == 4
    assert found.schema.names == wanted.schema.names
    assert found.to_pylist() == wanted.to_pylist()
    assert pq.read_table(tmp_path / "one.parquet").to_pylist() == wanted.slice(0, ROWS).to_pylist()


def test_rows_are_read_when_they_are_asked_for(folder: Path) -> None:
    with fastpq.ParquetFile(folder / "0.parquet") as file:
        before = file.io.bytes_read
        reader = pa.RecordBatchReader.from_stream(file)
        reader.read_next_batch()
        first = file.io.bytes_read - before
        list(reader)
        assert first < 0.6 * (file.io.bytes_read - before)       # of two of four row groups


def test_an_error_ends_the_stream(folder: Path, tmp_path: Path) -> None:
    """A consumer that asks again after an error is not told that the stream ended well."""
    data = bytearray((folder / "0.parquet").read_bytes())
    chunk = pq.ParquetFile(folder / "0.parquet").metadata.row_group(3).column(0)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    data[start : start + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    with fastpq.ParquetFile(bytes(data)) as file:
        reader = pa.RecordBatchReader.from_stream(file)
        rows = len(reader.read_next_batch()) + len(reader.read_next_batch())
        for _ in range(3):
            with pytest.raises((pa.ArrowInvalid, OSError)):
                while True:
                    rows += len(reader.read_next_batch())
    assert rows <= 150_000


def test_an_interrupt_is_an_error_of_the_stream(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with fastpq.ParquetFile(folder / "0.parquet") as file:
        read = file.iter_batches()

        def interrupted() -> Any:
            yield next(read)
            raise KeyboardInterrupt

        monkeypatch.setattr(type(file), "iter_batches", lambda self: interrupted())
        reader = pa.RecordBatchReader.from_stream(file)
        assert len(reader.read_next_batch()) == 65_536
        with pytest.raises((pa.ArrowInvalid, OSError), match="KeyboardInterrupt"):
            reader.read_next_batch()


def test_a_stream_left_early_and_no_rows(tmp_path: Path, folder: Path) -> None:
    with fastpq.ParquetFile(folder / "0.parquet") as file:
        reader = pa.RecordBatchReader.from_stream(file)
        reader.read_next_batch()
        del reader
        gc.collect()
        assert file.read(["id"]).num_rows == ROWS
    empty = pa.table({"a": pa.array([], pa.string()), "b": pa.array([], pa.list_(pa.int32()))})
    pq.write_table(empty, tmp_path / "empty.parquet")
    with fastpq.ParquetFile(tmp_path / "empty.parquet") as file:
        assert pa.table(file).equals(empty)
    assert pa.table(fastpq.ParquetDataset(tmp_path)).equals(empty)


def test_no_rows_are_written(tmp_path: Path) -> None:
    empty = pa.table({"a": pa.array([], pa.string()), "b": pa.array([], pa.int32())})
    pq.write_table(empty, tmp_path / "empty.parquet")
    with fastpq.ParquetFile(tmp_path / "empty.parquet") as file:
        fastpq.write_table(file, tmp_path / "file")
    fastpq.write_table(fastpq.ParquetDataset(tmp_path / "empty.parquet"), tmp_path / "dataset")
    for name in ("file", "dataset"):
        assert pq.read_table(tmp_path / name).equals(empty)


def test_batches_of_null_lists_of_one_size(tmp_path: Path) -> None:
    values = [[1, 2]] * 10 + [None] * 150_000 + [[3, 4]] * 10
    pq.write_table(pa.table({"a": pa.array(values, pa.list_(pa.int32(), 2))}), tmp_path / "x")
    with fastpq.ParquetFile(tmp_path / "x") as file:
        found = pa.table(file)
    found.validate(full=True)
    assert found["a"].type == pa.list_(pa.field("element", pa.int32()), 2)
    assert found["a"].to_pylist() == values
