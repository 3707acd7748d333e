"""Arrays and indexes of pandas in a dict, and DataFrames whose labels are not text; pyarrow on the other side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import fastpq

LARGE = (1 << 53) + 1
ARRAYS: dict[str, tuple[Any, list[Any]]] = {
    "Int64": (pd.array([LARGE, None], dtype="Int64"), [LARGE, None]),
    "Float64": (pd.array([0.5, None], dtype="Float64"), [0.5, None]),
    "boolean": (pd.array([True, None], dtype="boolean"), [True, None]),
    "string": (pd.array(["a", None], dtype="string"), ["a", None]),
    "index": (pd.Index(pd.array([LARGE, None], dtype="Int64")), [LARGE, None]),
    "arrow": (pd.array([LARGE, None], dtype="int64[pyarrow]"), [LARGE, None]),
    "zoned": (pd.date_range("2024-01-01", periods=2, tz="UTC"), list(pd.date_range("2024-01-01", periods=2, tz="UTC"))),
    "naive": (pd.date_range("2024-01-01", periods=2), list(pd.date_range("2024-01-01", periods=2))),
    "categories": (pd.Categorical(["b", None]), ["b", None]),
    "range": (pd.RangeIndex(2), [0, 1]),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_values_and_nulls(tmp_path: Path, name: str) -> None:
    array, wanted = ARRAYS[name]
    fastpq.write_table({"a": array}, tmp_path / "x")
    found = pq.read_table(tmp_path / "x")["a"].to_pylist()
    assert found == [value.to_pydatetime() if isinstance(value, pd.Timestamp) else value for value in wanted]
    assert fastpq.Table({"n": [1, 2]}).add("a", array)["a"].null_count == wanted.count(None)


def test_partitions_of_nullable_numbers(tmp_path: Path) -> None:
    fastpq.write_dataset({"g": pd.array([1, None], dtype="Int64"), "n": [1, 2]}, tmp_path, partition_by=["g"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g=1", "g=__HIVE_DEFAULT_PARTITION__"]


@pytest.mark.parametrize("writer", ["fastpq", "pyarrow"])
def test_labels_that_are_numbers(tmp_path: Path, writer: str) -> None:
    frame = pd.DataFrame({2020: [1, 2], 2021: ["a", "b"], 0: [5, 50]})
    if writer == "fastpq":
        fastpq.write_table(frame, tmp_path / "x")
    else:
        frame.to_parquet(tmp_path / "x", engine="pyarrow")
    key: Any
    for key in (2021, np.int64(2021)):
        pd.testing.assert_frame_equal(fastpq.read_pandas(tmp_path / "x", [key]), frame[[2021]])
    found = fastpq.read_pandas(tmp_path / "x", [0], filters=[(0, ">", 5)])
    assert found[0].tolist() == [50]
    assert fastpq.read_pandas(tmp_path / "x", filters=fastpq.Or((2020, "==", 1), [[(2021, "==", "b")]])).shape == (2, 3)
    with pytest.raises(fastpq.SchemaError, match="no column has the label 1;"):
        fastpq.read_pandas(tmp_path / "x", [1])


def test_labels_of_levels(tmp_path: Path) -> None:
    frame = pd.DataFrame([[1, 2, 3]], columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("b", "x")]))
    fastpq.write_table(frame, tmp_path / "x")
    pd.testing.assert_frame_equal(fastpq.read_pandas(tmp_path / "x", [("a", "y")]), frame[[("a", "y")]])


def test_positions_of_other_files_stay(tmp_path: Path) -> None:
    fastpq.write_table({"a": [1], "b": [2]}, tmp_path / "x")
    assert fastpq.read_pandas(tmp_path / "x", [1]).columns.tolist() == ["b"]


def test_mistakes(tmp_path: Path) -> None:
    fastpq.write_table({"a": [1, None]}, tmp_path / "x")
    with pytest.raises(fastpq.SchemaError, match="takes no value"):
        fastpq.read_table(tmp_path / "x", filters=[("a", "is null", False)])
    with pytest.raises(fastpq.SchemaError, match="two columns would have the name"):
        fastpq.Table({"a": [1], "b": [2]}).rename({"a": "b"})
    assert fastpq.Table({"a": [1], "b": [2]}).rename({"a": "b", "b": "a"}).names == ["b", "a"]
    with pytest.raises(IsADirectoryError):
        fastpq.write_table({"a": [1]}, f"{tmp_path}/new/")
    assert not (tmp_path / "new").exists()
    with pytest.raises(fastpq.SchemaError, match="not a mapping of column names"):
        fastpq.Table(pd.DataFrame({"id": [1]}))


def test_types_of_partition_columns(tmp_path: Path) -> None:
    fastpq.write_dataset({"a": [1, 2], "zip": ["007", "1"]}, tmp_path, partition_by=["zip"])
    assert sorted(fastpq.read_dataset(tmp_path)["zip"]) == [1, 7]
    for schema in ({"a": "int64", "zip": "string"}, {"zip": "string"}):
        found = fastpq.read_dataset(tmp_path, schema=schema, filters=[("zip", "==", "007")])
        assert found["zip"].to_pylist() == ["007"]
    with pytest.raises(fastpq.SchemaError, match="a partition column has numbers"):
        fastpq.read_dataset(tmp_path, schema={"a": "int64", "zip": "bytes"})


@pytest.mark.parametrize("names", [[1, 0], ["x", 0], [0, None], [1, 1]])
def test_levels_named_by_numbers_of_others(names: list[Any], tmp_path: Path) -> None:
    """pandas takes an integer for the name of a level before its number."""
    levels = pd.MultiIndex.from_tuples([(1, "x"), (2, "y")], names=names)
    rows = pd.DataFrame({"a": [1, 2]}, index=levels)
    labels = pd.DataFrame([[1, 2]], columns=levels)
    for frame in (rows, labels):
        fastpq.write_table(frame, tmp_path / "x.parquet")
        found = fastpq.read_pandas(tmp_path / "x.parquet")
        for axis, expected in zip(found.axes, frame.axes, strict=True):
            assert axis.tolist() == expected.tolist()
            assert axis.names == expected.names
    fastpq.write_table(rows, tmp_path / "x.parquet")
    if len(set(names)) == 2:
        assert pd.read_parquet(tmp_path / "x.parquet").index.tolist() == levels.tolist()


def test_an_index_of_one_level(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.MultiIndex.from_arrays([[5, 6]], names=["x"]))
    fastpq.write_table(frame, tmp_path / "x.parquet")
    assert fastpq.read_pandas(tmp_path / "x.parquet").index.tolist() == [5, 6]
