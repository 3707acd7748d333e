"""Column chunks in another order than the schema: the option chunk_order decides in every way of reading."""

from __future__ import annotations

import functools
import io
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import format as fmt
from tests.index.forging import Forgery

ROWS = 300
BY_PATH = fastpq.ReaderProperties(chunk_order="path")
BY_POSITION = fastpq.ReaderProperties(chunk_order="position")


@functools.cache
def table() -> pa.Table:
    return pa.table(
        {
            "a": range(ROWS),
            "b": [ROWS - row for row in range(ROWS)],
            "s": [f"{row:03}" for row in range(ROWS)],
            "n": [{"x": row, "y": [row] * (row % 3)} for row in range(ROWS)],
        }
    )


@functools.cache
def permuted(seed: int) -> bytes:
    """A file with shuffled chunks in its footer; a, b and n.x have the same type."""
    sink = io.BytesIO()
    pq.write_table(
        table(), sink, write_page_index=True, max_rows_per_page=20, write_batch_size=10, use_dictionary=False,
        sorting_columns=[pq.SortingColumn(0)],
    )
    forgery = Forgery(sink.getvalue())
    chunks = forgery.metadata.row_groups[0].columns
    random.Random(seed).shuffle(chunks)
    place = next(number for number, chunk in enumerate(chunks) if path_of(chunk) == ["a"])
    (sorting,) = forgery.metadata.row_groups[0].sorting_columns or []
    sorting.column_idx = place
    return forgery.written()


def path_of(chunk: fmt.ColumnChunk) -> list[str]:
    assert chunk.meta_data is not None
    assert chunk.meta_data.path_in_schema is not None
    return chunk.meta_data.path_in_schema


@pytest.mark.parametrize("seed", range(6))
def test_every_way_of_reading(seed: int, tmp_path: Path) -> None:
    data, rows = permuted(seed), table().to_pylist()
    with fastpq.ParquetFile(data, properties=BY_PATH) as file:
        assert file.read().to_pylist() == rows
        assert file.read(filters=[("b", "<", 11)]).to_pylist() == rows[-10:]
        assert file.read(["s"], filters=[("a", ">", 290), ("n.x", "!=", 295)])["s"].to_pylist() == [
            f"{row:03}" for row in range(291, ROWS) if row != 295
        ]
        assert file.count([("b", ">=", 100)]) == 201
        assert (file.min_max("a"), file.min_max("b")) == ((0, ROWS - 1), (1, ROWS))
        assert file.take([5, 77]).to_pylist() == [rows[5], rows[77]]
        assert [row for batch in file.iter_batches(37, row_ranges=[(100, 200)]) for row in batch.to_pylist()] == rows[100:200]
        for column in file.schema.columns:
            assert file.metadata.row_group(0).column(column.index).path_in_schema == column.path
        assert [entry.column_idx for entry in file.metadata.row_group(0).sorting_columns] == [0]
    for on_error in ("skip", "null"):
        assert fastpq.read_table(data, on_error=on_error, properties=BY_PATH).to_pylist() == rows
    path = tmp_path / "copy"
    fastpq.merge_files([data, data], path, properties=BY_PATH)
    assert fastpq.read_table(path).to_pylist() == rows * 2
    assert pq.read_table(path).to_pylist() == rows * 2
    assert [each.column_index for each in pq.read_metadata(path).row_group(0).sorting_columns] == [0]


def test_paths_and_positions_that_disagree_are_refused_without_the_option(tmp_path: Path) -> None:
    data = permuted(0)
    message = r"column chunk \d belongs to '[\w.]+' by its position and to '[\w.]+' by its path: chunk_order="
    for read in (
        lambda: fastpq.read_table(data),
        lambda: fastpq.read_table(data, filters=[("b", "<", 11)]),
        lambda: fastpq.merge_files([data, data], tmp_path / "copy"),
        lambda: fastpq.ParquetFile(data).min_max("a"),
        lambda: list(fastpq.ParquetFile(data).iter_batches()),
    ):
        with pytest.raises(fastpq.FormatError, match=message):
            read()
    assert not (tmp_path / "copy").exists()


def test_positions_are_what_pyarrow_goes_by() -> None:
    """Two columns with equal types, whose chunks are swapped."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": range(5), "b": range(5, 10)}), sink, write_page_index=True)
    forgery = Forgery(sink.getvalue())
    forgery.metadata.row_groups[0].columns.reverse()
    data = forgery.written()
    theirs = pq.ParquetFile(io.BytesIO(data)).read().to_pydict()
    assert theirs["a"] == [*range(5, 10)]
    with fastpq.ParquetFile(data, properties=BY_POSITION) as file:
        assert {name: file.read()[name].to_pylist() for name in "ab"} == theirs
        assert file.read(filters=[("a", ">=", 7)])["b"].to_pylist() == [2, 3, 4]
        assert file.min_max("a") == (5, 9)
        assert pickle.loads(pickle.dumps(file.metadata)).row_group(0).column(0).statistics.max == 9
    with fastpq.ParquetFile(data, properties=BY_PATH) as file:
        assert file.read()["a"].to_pylist() == [*range(5)]


def test_datasets(tmp_path: Path) -> None:
    for seed in range(3):
        (tmp_path / f"{seed}.parquet").write_bytes(permuted(seed))
    found = fastpq.read_dataset(tmp_path, filters=[("b", "==", 7)], properties=BY_PATH)
    assert found["a"].to_pylist() == [ROWS - 7] * 3


def test_encrypted_again(tmp_path: Path) -> None:
    key = bytes(range(16))
    encryption = fastpq.FileEncryptionProperties(key, column_keys={"a": bytes(16)})
    fastpq.encrypt_file(permuted(3), tmp_path / "encrypted", encryption, properties=BY_PATH)
    decryption = fastpq.FileDecryptionProperties(key, column_keys={"a": bytes(16)})
    assert fastpq.read_table(tmp_path / "encrypted", decryption_properties=decryption).to_pylist() == table().to_pylist()


def test_a_chunk_left_out() -> None:
    """No other column's chunk of the same type takes its place."""
    forgery = Forgery(permuted(0))
    group = forgery.metadata.row_groups[0]
    gone = next(chunk for chunk in group.columns if path_of(chunk) == ["b"])
    group.columns.remove(gone)
    forgery.chunks = [chunk for chunk in forgery.chunks if chunk.entry is not gone]
    with fastpq.ParquetFile(forgery.written(), properties=BY_PATH) as file:
        for name in ("a", "s", "n"):
            assert file.read([name])[name].to_pylist() == table()[name].to_pylist()
        with pytest.raises(fastpq.FormatError, match="none for column 1"):
            file.read(["b"])


def test_paths_that_do_not_tell() -> None:
    """Two columns of one name, and paths unknown to the schema: chunks are in the order of the columns."""
    sink = io.BytesIO()
    fastpq.write_table({"a": np.arange(5), "b": np.arange(5) * 2}, sink)
    for paths in (["a", "a"], ["x", "y"], ["b", "b"]):
        forgery = Forgery(sink.getvalue())
        for chunk, name in zip(forgery.chunks, paths, strict=True):
            chunk.metadata.path_in_schema = [name]
        assert fastpq.read_table(forgery.written()).to_pylist() == [{"a": row, "b": row * 2} for row in range(5)]


def test_the_order_is_the_same_without_a_schema() -> None:
    forgery = Forgery(permuted(1))
    forgery.metadata.schema[0].num_children = 77
    chunks: list[Any] = forgery.metadata.row_groups[0].columns
    metadata = fastpq.read_metadata(forgery.written())
    group = metadata.row_group(0)
    assert [list(group.column(place).path_in_schema) for place in range(len(chunks))] == [path_of(each) for each in chunks]


def test_on_error_goes_by_path() -> None:
    """An option that is missing is no damage."""
    data, rows = permuted(2), table().to_pylist()
    for on_error in ("skip", "null"):
        assert fastpq.read_table(data, on_error=on_error).to_pylist() == rows
    recovered, report = fastpq.recover_table(data)
    assert recovered.to_pylist() == rows
    assert not report.losses
