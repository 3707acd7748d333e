"""Reading into the caller's arrays (out=)."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq

ROWS = 1000


def file_of(**options: Any) -> bytes:
    columns = {
        "number": pa.array(np.arange(ROWS), pa.int64()),
        "price": pa.array(np.arange(ROWS) / 4),
        "flag": pa.array(np.arange(ROWS) % 3 == 0),
        "when": pa.array(np.arange(ROWS), pa.timestamp("us")),
        "day": pa.array(np.arange(ROWS, dtype=np.int32), pa.date32()),
        "maybe": pa.array([None if i % 4 == 0 else i for i in range(ROWS)], pa.int32()),
        "text": pa.array([str(i) for i in range(ROWS)]),
        "list": pa.array([[i] for i in range(ROWS)]),
    }
    sink = io.BytesIO()
    pq.write_table(
        pa.table(columns), sink, row_group_size=300, max_rows_per_page=50, write_batch_size=10, write_page_index=True, **options
    )
    return sink.getvalue()


@pytest.fixture(scope="module", params=[{}, {"compression": "none", "use_dictionary": False}], ids=["snappy", "plain"])
def file(request: pytest.FixtureRequest) -> fastpq.ParquetFile:
    return fastpq.ParquetFile(file_of(**request.param))


@pytest.mark.parametrize("rows", [None, [(0, ROWS)], [(10, 20), (295, 640), (999, 1000)]])
def test_values_stand_in_the_arrays(file: fastpq.ParquetFile, rows: list[tuple[int, int]] | None) -> None:
    wanted = np.concatenate([np.arange(*pair) for pair in rows or [(0, ROWS)]])
    count = len(wanted)
    out = {
        "number": np.full(count, -1),
        "price": np.full(count, -1.0),
        "flag": np.zeros(count, np.bool_),
        "when": np.zeros(count, "datetime64[us]"),
        "day": np.zeros(count, np.int32),
    }
    table = file.read([*out, "text"], row_ranges=rows, out=out)
    assert np.array_equal(out["number"], wanted)
    assert np.array_equal(out["price"], wanted / 4)
    assert np.array_equal(out["flag"], wanted % 3 == 0)
    assert np.array_equal(out["when"].view(np.int64), wanted)
    assert np.array_equal(out["day"], wanted)
    assert table["text"].to_pylist() == [str(i) for i in wanted]
    assert table.equals(file.read([*out, "text"], row_ranges=rows))
    for name, array in out.items():
        assert np.shares_memory(table.flat(name).values, array), name       # no copy


def test_a_part_of_a_larger_array(file: fastpq.ParquetFile) -> None:
    whole = np.full(ROWS + 2, -1)
    file.read(["number"], out={"number": whole[1:-1]})
    assert whole[0] == whole[-1] == -1
    assert np.array_equal(whole[1:-1], np.arange(ROWS))


def test_one_row_group_that_could_be_a_view() -> None:
    array = np.empty(300, np.int64)
    with fastpq.ParquetFile(file_of(compression="none", use_dictionary=False)) as file:
        file.read(["number"], row_groups=[1], out={"number": array})
    assert np.array_equal(array, np.arange(300, 600))


def test_nulls_need_a_mask(file: fastpq.ParquetFile) -> None:
    with pytest.raises(fastpq.SchemaError, match="MaskedArray"):
        file.read(["maybe"], out={"maybe": np.zeros(ROWS, np.int32)})
    assert file.read(["maybe"], row_ranges=[(1, 4)], out={"maybe": np.zeros(3, np.int32)})["maybe"].to_pylist() == [1, 2, 3]
    expected = [None if i % 4 == 0 else i for i in range(ROWS)]
    for mask in (np.ma.nomask, np.ones(ROWS, np.bool_)):
        array = np.ma.MaskedArray(np.zeros(ROWS, np.int32), mask)
        table = file.read(["maybe"], out={"maybe": array})
        assert array.tolist() == expected == table["maybe"].to_pylist()
    array = np.ma.MaskedArray(np.zeros(ROWS), np.ones(ROWS, np.bool_))
    file.read(["price"], out={"price": array})
    assert not array.mask.any()


def read_only() -> np.ndarray[Any, Any]:
    array = np.zeros(ROWS, np.int64)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("name", "array", "reason"),
    [
        ("number", np.zeros(ROWS, np.int32), "int32"),
        ("number", np.zeros(ROWS, ">i8"), ">i8"),
        ("number", np.zeros(ROWS - 1, np.int64), "shape"),
        ("number", np.zeros((ROWS, 1), np.int64), "shape"),
        ("number", np.zeros(2 * ROWS, np.int64)[::2], "contiguous"),
        ("number", read_only(), "writable"),
        ("number", [0] * ROWS, "list"),
        ("day", np.zeros(ROWS, "datetime64[D]"), "held as int32"),
        ("text", np.zeros(ROWS, object), "no fixed length"),
        ("list", np.zeros(ROWS, object), "of lists"),
        ("nothing", np.zeros(ROWS), "not read"),
    ],
)
def test_arrays_that_do_not_fit(file: fastpq.ParquetFile, name: str, array: Any, reason: str) -> None:
    with pytest.raises(fastpq.SchemaError, match=reason):
        file.read(out={name: array})


def test_arrays_apart_and_rows_known(file: fastpq.ParquetFile) -> None:
    shared = np.zeros(ROWS + 1, np.int64)
    with pytest.raises(fastpq.SchemaError, match="shares memory"):
        file.read(["number", "when"], out={"number": shared[:-1], "when": shared[1:]})
    with pytest.raises(fastpq.SchemaError, match="filters"):
        file.read(["number"], filters=[("number", ">", 3)], out={"number": shared[1:]})


CUBES = {
    "floats": np.arange(ROWS * 4, dtype=np.float32).reshape(ROWS, 4),
    "cubes": np.arange(ROWS * 6, dtype=np.int16).reshape(ROWS, 2, 3),
    "moments": np.arange(ROWS * 2).astype("M8[us]").reshape(ROWS, 2),
    "flags": (np.arange(ROWS * 3) % 5 == 0).reshape(ROWS, 3),
    "nothing": np.empty((ROWS, 0), np.int64),
}


def in_arrow(array: np.ndarray[Any, Any]) -> pa.Array:
    found = pa.array(array.reshape(-1))
    for size in reversed(array.shape[1:]):
        found = pa.FixedSizeListArray.from_arrays(found, size) if size else pa.array([[]] * ROWS, pa.list_(pa.int64(), 0))
    return found


@pytest.mark.parametrize("rows", [None, [(10, 20), (295, 640), (999, 1000)]])
@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("foreign", [True, False])
def test_lists_of_one_length(rows: Any, stored: bool, foreign: bool) -> None:
    sink = io.BytesIO()
    if foreign:
        table = pa.table({name: in_arrow(array) for name, array in CUBES.items() if name != "nothing"})
        pq.write_table(table, sink, row_group_size=300, store_schema=stored)
    else:
        fastpq.write_table(CUBES, sink, row_group_size=300, arrow_schema=stored)
    wanted = np.concatenate([np.arange(*pair) for pair in rows or [(0, ROWS)]])
    names = [name for name in CUBES if not foreign or name != "nothing"]
    out = {name: np.zeros((len(wanted), *CUBES[name].shape[1:]), CUBES[name].dtype) for name in names}
    read = fastpq.read_table(sink.getvalue(), names, row_ranges=rows, out=out, threads=2)
    plain = fastpq.read_table(sink.getvalue(), names, row_ranges=rows)
    for name, array in out.items():
        assert np.array_equal(array, CUBES[name][wanted])
        assert read[name].equals(plain[name])
        leaf: Any = read[name]
        while leaf.is_nested:
            leaf = leaf.elements
        assert np.shares_memory(leaf.values, array) or not array.size, name
        if stored and foreign:
            assert np.shares_memory(read[name].to_numpy(), array)
    if not foreign:
        truth = pq.read_table(io.BytesIO(sink.getvalue())).take(wanted)
        assert truth["cubes"].to_pylist() == out["cubes"].tolist()


def test_lists_with_nulls_need_a_mask() -> None:
    values = [[1, None], None, [3, 4], [None, None], [5, 6]]
    deep: Any = [[[1], [2]], [None, [3]], None, [[4], [None]], [[5], [6]]]
    table = pa.table({"a": pa.array(values, pa.list_(pa.int32(), 2)), "b": pa.array(deep, pa.list_(pa.list_(pa.int64())))})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    for mask in (False, np.ma.nomask):
        out: dict[str, Any] = {"a": np.ma.array(np.zeros((5, 2), np.int32), mask=mask), "b": np.ma.zeros((5, 2, 1), np.int64)}
        read = fastpq.read_table(sink.getvalue(), out=out)
        assert read.to_pylist() == table.to_pylist()
        assert out["a"].tolist() == [row or [None, None] for row in values]
        assert out["b"].tolist() == [[element or [None] for element in row or [None, None]] for row in deep]
    for name, array in (("a", np.zeros((5, 2), np.int32)), ("b", np.zeros((5, 2, 1), np.int64))):
        with pytest.raises(fastpq.SchemaError, match=r"[45] nulls in an array without a mask"):
            fastpq.read_table(sink.getvalue(), [name], out={name: array})


def test_a_matrix() -> None:
    matrix: Any = np.zeros((2, 2), np.int64).view(np.matrix)
    fastpq.read_table(pq_bytes({"a": [[1, 2], [3, 4]]}), out={"a": matrix})
    assert matrix.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("unit", ["ns", "us", "ms"])
def test_lists_of_int96(unit: str) -> None:
    moments = np.array([["2020-01-01", "2021-01-01"]], f"M8[{unit}]")
    sink, found = io.BytesIO(), np.zeros_like(moments)
    pq.write_table(pa.table({"a": in_arrow(moments)}), sink, use_deprecated_int96_timestamps=True)
    fastpq.read_table(sink.getvalue(), out={"a": found})
    assert np.array_equal(found, moments)


def pq_bytes(columns: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.zeros((3, 3), np.int64), r"a list of 2 values for an array of shape \(3, 3\)"),
        (np.zeros((3, 2), np.int32), "int32"),
        (np.zeros((2, 2), np.int64), "for 3 rows"),
        (np.zeros((3, 2, 1), np.int64), r"give an array of shape \(3, length\)"),
        (np.zeros((2, 3), np.int64).T, "contiguous"),
    ],
)
def test_lists_that_do_not_fit(array: Any, reason: str) -> None:
    with pytest.raises(fastpq.SchemaError, match=reason):
        fastpq.read_table(pq_bytes({"a": [[1, 2], [3, 4], [5, 6]]}), out={"a": array})


def test_other_nested_columns() -> None:
    data = pq_bytes({"s": [{"x": 1}], "m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))})
    for name in ("s", "m"):
        with pytest.raises(fastpq.SchemaError, match="a nested column cannot be read into an array"):
            fastpq.read_table(data, [name], out={name: np.zeros((1, 1), np.int64)})
    ragged = pq_bytes({"a": [[1, 2], [3], []]})
    with pytest.raises(fastpq.SchemaError, match="a list of 1 values"):
        fastpq.read_table(ragged, out={"a": np.zeros((3, 2), np.int64)})
