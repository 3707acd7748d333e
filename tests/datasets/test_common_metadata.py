"""pandas' metadata from ``_common_metadata``, where data files have none."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import fsspec
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq

FRAME = pd.DataFrame(
    {"n": pd.array([1, None, 3], "Int64"), "c": pd.Categorical(["b", "a", "b"], ["b", "a"])},
    index=pd.Index(pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"]).as_unit("ns"), name="day"),
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two data files without pandas' metadata, as Dask and jobs of pyarrow write these."""
    table = pa.Table.from_pandas(FRAME)
    plain = table.replace_schema_metadata(None)
    pq.write_table(plain.slice(0, 2), tmp_path / "0.parquet")
    pq.write_table(plain.slice(2), tmp_path / "1.parquet")
    pq.write_metadata(table.schema, tmp_path / "_common_metadata")
    return tmp_path


def test_index_and_dtypes(root: Path) -> None:
    pd.testing.assert_frame_equal(fastpq.read_pandas(root), FRAME)
    dataset = fastpq.ParquetDataset(root)
    for table in (dataset.read(), *dataset.iter_batches(3), dataset.take([0, 1, 2]), pickle.loads(pickle.dumps(dataset)).read()):
        pd.testing.assert_frame_equal(table.to_pandas(), FRAME)
    pd.testing.assert_frame_equal(pa.table(dataset).to_pandas(), FRAME)
    (root / "_common_metadata").unlink()
    assert fastpq.read_pandas(root).index.name is None


def test_frames_of_datasets(root: Path) -> None:
    dataset = fastpq.ParquetDataset(root)
    pd.testing.assert_frame_equal(dataset.to_pandas(), FRAME)
    for frame in (dataset.to_pandas(["n"]), fastpq.read_pandas(root, ["n"]), pd.read_parquet(root, columns=["n"])):
        pd.testing.assert_frame_equal(frame, FRAME[["n"]])
    pd.testing.assert_frame_equal(dataset.to_pandas(filters=("c", "==", "a")), FRAME.iloc[1:2])
    assert dataset.to_pandas(["n"], dtype_backend="pyarrow").dtypes["n"] == pd.ArrowDtype(pa.int64())


def test_labels_that_are_numbers(tmp_path: Path) -> None:
    frame = pd.DataFrame({7: [1, 2, 3], 8: list("abc")})
    fastpq.write_dataset(frame, tmp_path, max_rows_per_file=2)
    dataset = fastpq.ParquetDataset(tmp_path)
    pd.testing.assert_frame_equal(dataset.to_pandas([8], filters=(7, ">", 1)), frame.loc[1:, [8]].reset_index(drop=True))
    pd.testing.assert_frame_equal(fastpq.read_pandas(tmp_path, [7]), frame[[7]])
    with pytest.raises(fastpq.SchemaError, match="no column has the label 9"):
        dataset.to_pandas([9])


def test_frames_of_files(tmp_path: Path) -> None:
    frame = pd.DataFrame({"text": ["a", "b", "a"] * 100}, index=pd.Index(list(range(5, 305)), name="i")).astype({"text": object})
    fastpq.write_table(frame, tmp_path / "x", row_group_size=100)
    with fastpq.ParquetFile(tmp_path / "x") as file:
        before = file.read()
        pd.testing.assert_frame_equal(file.to_pandas(), frame)
        chosen = file.to_pandas(["text"], row_groups=[1], filters=("text", "==", "b"))
        pd.testing.assert_frame_equal(chosen, frame.iloc[100:200].query("text == 'b'"))
        assert type(file.read().flat("text").values) is type(before.flat("text").values)      # to_pandas reads codes


def test_data_files_have_the_say(root: Path) -> None:
    other = FRAME.reset_index()
    pq.write_table(pa.Table.from_pandas(other.iloc[:2], preserve_index=False), root / "0.parquet")
    pd.testing.assert_frame_equal(fastpq.read_pandas(root), other)


def test_a_broken_file_is_passed_over(root: Path) -> None:
    (root / "_common_metadata").write_bytes(b"PAR1 nothing")
    assert list(fastpq.read_pandas(root).columns) == ["n", "c", "day"]


def test_remote(root: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.put(str(root), f"/{root.name}", recursive=True)
    pd.testing.assert_frame_equal(fastpq.read_pandas(f"memory://{root.name}"), FRAME)
    memory.rm(f"/{root.name}", recursive=True)


def test_keys_ask_for_no_plaintext(root: Path) -> None:
    key = fastpq.FileEncryptionProperties(b"k" * 16)
    for name in ("0.parquet", "1.parquet"):
        fastpq.encrypt_file(root / name, root / name, key)
    found = fastpq.read_dataset(root, decryption_properties=fastpq.FileDecryptionProperties(b"k" * 16))
    assert "pandas" not in found.metadata


def test_the_first_file_has_the_say(tmp_path: Path) -> None:
    """A column of the index is no column of the frame, whichever files have rows and whatever their own metadata say."""
    indexed = pd.DataFrame({"x": [1, 2]}, index=pd.Index([10, 20], name="i"))
    for part, table in enumerate([pa.Table.from_pandas(indexed), pa.table({"x": [3, 4], "i": [30, 40]})]):
        (tmp_path / f"part={part}").mkdir()
        pq.write_table(table, tmp_path / f"part={part}" / "0.parquet")
    given: tuple[dict[str, Any], ...] = ({}, {"arrow_schema": False})
    for filters in (None, ("part", "==", 0), ("part", "==", 1)):
        for columns in (None, ["x"]):
            for options in given:
                frame = fastpq.ParquetDataset(tmp_path, **options).to_pandas(columns, filters=filters)
                theirs = pd.read_parquet(tmp_path, columns=columns, filters=filters and [filters])
                pd.testing.assert_frame_equal(frame, theirs, check_dtype=False, check_categorical=False)
