"""Arrays of two and more dimensions as columns of lists of one size, with pyarrow and Polars on the other side."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq

ARRAYS: dict[str, Any] = {
    "floats": np.arange(12, dtype=np.float32).reshape(4, 3),
    "integers": np.arange(24).reshape(4, 3, 2),
    "big-endian": np.arange(12, dtype=">i4").reshape(4, 3),
    "strides": np.arange(24).reshape(8, 3)[::2],
    "columns first": np.asfortranarray(np.arange(12).reshape(4, 3)),
    "moments": np.arange(12).reshape(4, 3).astype("M8[us]"),
    "durations": np.arange(12).reshape(4, 3).astype("m8[ms]"),
    "booleans": np.arange(12).reshape(4, 3) % 2 == 0,
    "text": np.arange(12).reshape(4, 3).astype(str),
    "masked": np.ma.array(np.arange(12.0).reshape(4, 3), mask=np.arange(12).reshape(4, 3) % 5 == 0),
    "no rows": np.zeros((0, 3)),
    "one value": np.arange(4).reshape(4, 1),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_others_read_fixed_size_lists(tmp_path: Path, name: str) -> None:
    array = ARRAYS[name]
    fastpq.write_table({"a": array, "n": np.arange(len(array))}, tmp_path / "x")
    found = pq.read_table(tmp_path / "x")
    assert found["a"].type.list_size == array.shape[1]
    wanted = array.tolist() if array.dtype.kind not in "mM" else array.astype(object).tolist()
    assert found["a"].to_pylist() == wanted
    assert pl.read_parquet(tmp_path / "x", use_pyarrow=False)["n"].to_list() == list(range(len(array)))
    again = fastpq.read_table(tmp_path / "x")["a"].to_numpy()
    assert again.shape == array.shape
    assert again.tolist() == array.tolist()
    if name not in ("text", "big-endian"):
        assert again.dtype == array.dtype
    assert isinstance(again, np.ma.MaskedArray) == (name == "masked")


def test_fixed_size_lists_of_pyarrow(tmp_path: Path) -> None:
    values = [[1.0, 2.0], None, [3.0, None], [4.0, 5.0]]
    table = pa.table({"a": pa.array(values, pa.list_(pa.float64(), 2)), "b": pa.array([[1, 2]] * 4, pa.list_(pa.int32(), 2))})
    pq.write_table(table, tmp_path / "x")
    for source in (fastpq.read_table(tmp_path / "x"), fastpq.Table({name: table[name].combine_chunks() for name in "ab"})):
        masked = source["a"].to_numpy()
        assert masked.shape == (4, 2)
        assert masked.tolist() == [[1.0, 2.0], [None, None], [3.0, None], [4.0, 5.0]]
        with_nan = source["a"].to_numpy(nulls="nan")
        assert not isinstance(with_nan, np.ma.MaskedArray)
        assert np.array_equal(with_nan, np.array([[1, 2], [np.nan] * 2, [3, np.nan], [4, 5]]), equal_nan=True)
        assert source["a"].to_numpy(nulls="object").tolist() == values
        assert source["b"].to_numpy().tolist() == [[1, 2]] * 4
        assert source["a"][1:].to_numpy().tolist() == masked[1:].tolist()
        assert source.to_arrow()["a"].to_pylist() == values


def test_no_copy_and_structured_arrays() -> None:
    array = np.arange(30.0).reshape(10, 3)
    table = fastpq.Table({"a": array, "n": np.arange(10)})
    assert np.shares_memory(table["a"].to_numpy(), array)
    structured = table.to_numpy(structured=True)
    assert structured.dtype == np.dtype([("a", "f8", (3,)), ("n", "i8")])
    assert np.array_equal(structured["a"], array)


def test_batches_and_sizes_that_differ(tmp_path: Path) -> None:
    with fastpq.ParquetWriter(tmp_path / "x") as writer:
        writer.write_table({"a": np.zeros((2, 3))})
        writer.write_table({"a": np.ones((2, 3))})
    assert fastpq.read_table(tmp_path / "x")["a"].to_numpy().tolist() == [[0.0] * 3] * 2 + [[1.0] * 3] * 2
    lists = fastpq.Table.concat([fastpq.Table({"a": np.zeros((1, 2))}), fastpq.Table({"a": np.zeros((1, 3))})])["a"]
    assert lists.to_numpy().tolist() == [[0.0] * 2, [0.0] * 3]
    with pytest.raises(fastpq.SchemaError, match="one dimension"):
        fastpq.write_table({"a": np.array([["x", 1]], object)}, tmp_path / "y")


def test_dataframes(tmp_path: Path) -> None:
    fastpq.write_table({"a": np.arange(6).reshape(2, 3)}, tmp_path / "x")
    for frame in (fastpq.read_pandas(tmp_path / "x"), fastpq.read_table(tmp_path / "x").to_pandas()):
        assert [list(row) for row in frame["a"]] == [[0, 1, 2], [3, 4, 5]]


class Longer(list[int]):
    def __len__(self) -> int:
        return 1000


class Shorter(list[int]):
    def __len__(self) -> int:
        return 1


class Repeated(list[int]):
    def __iter__(self) -> Any:
        yield from range(5)


@pytest.mark.parametrize("kind", [Longer, Shorter])
def test_lists_with_a_length_of_their_own(kind: type[list[int]], tmp_path: Path) -> None:
    """Elements are counted, and not asked for: the rows would lie in other memory, or in other rows."""
    fastpq.write_table({"a": [kind([1, 2]), [3], None]}, tmp_path / "x.parquet")
    assert pq.read_table(tmp_path / "x.parquet")["a"].to_pylist() == [[1, 2], [3], None]


def test_lists_with_elements_of_their_own() -> None:
    with pytest.raises(fastpq.SchemaError, match="lists of 3 elements gave 6"):
        fastpq.write_table({"a": [Repeated([1, 2]), [3]]}, io.BytesIO())


@pytest.mark.parametrize("values", [[np.array(5), [3]], [[3], None, np.array(5)], [np.array([3]), np.array(5)]])
def test_arrays_without_a_dimension_are_no_lists(values: list[Any]) -> None:
    with pytest.raises(fastpq.SchemaError, match="is an array without a dimension"):
        fastpq.write_table({"a": values}, io.BytesIO())


@pytest.mark.parametrize("values", [[[1, 2]], [{"x": 1}], [np.array([1, 2])], []])
def test_masked_among_rows_is_null(values: list[Any], tmp_path: Path) -> None:
    masked = np.ma.masked
    fastpq.write_table({"a": [masked, *values, masked]}, tmp_path / "x.parquet")
    expected = [None, *(value.tolist() if isinstance(value, np.ndarray) else value for value in values), None]
    assert pq.read_table(tmp_path / "x.parquet")["a"].to_pylist() == expected


def test_masked_among_maps_is_null(tmp_path: Path) -> None:
    schema = {"m": pa.map_(pa.string(), pa.int64())}
    fastpq.write_table({"m": [np.ma.masked, {"a": 1}]}, tmp_path / "x.parquet", schema=schema)
    assert pq.read_table(tmp_path / "x.parquet")["m"].to_pylist() == [None, [("a", 1)]]


@pytest.mark.parametrize("kind", [np.datetime64, np.timedelta64])
def test_nat_among_objects_is_null(kind: Any, tmp_path: Path) -> None:
    """Arrays of different units become objects, and NaT among these 0."""
    first, other = kind(5, "s"), kind(7, "ms")
    columns = {"flat": [first, kind("NaT", "s"), None, other], "rows": [np.array([first, "NaT"], first.dtype), [other], None, []]}
    columns["nulls"] = [kind("NaT", "s"), None, kind("NaT", "ms"), None]
    fastpq.write_table(columns, tmp_path / "x.parquet")
    found = pq.read_table(tmp_path / "x.parquet")
    assert found["flat"].is_null().to_pylist() == [False, True, True, False]
    assert found["nulls"].null_count == 4
    rows = [row and [value is None for value in row] for row in found["rows"].to_pylist()]
    assert rows == [[False, True], [False], None, []]
    values = fastpq.read_table(tmp_path / "x.parquet")["flat"].to_numpy(nulls="nan")[[0, 3]]
    assert values.astype(other.dtype).tolist() == [kind(5000, "ms").tolist(), other.tolist()]
