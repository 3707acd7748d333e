"""Complex numbers and structured arrays as columns of structs, and types that are refused with advice."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq


def read_by_pyarrow(values: Any) -> Any:
    sink = io.BytesIO()
    fastpq.write_table({"a": values}, sink)
    assert fastpq.read_table(sink.getvalue())["a"].to_pylist() == pq.read_table(sink)["a"].to_pylist()
    return pq.read_table(sink)["a"].combine_chunks()


@pytest.mark.parametrize(("dtype", "part"), [("c8", pa.float32()), ("c16", pa.float64()), (">c16", pa.float64())])
def test_complex_numbers(dtype: str, part: pa.DataType) -> None:
    values = np.array([1 + 2j, -0.5j, complex("inf"), 7], dtype)
    found = read_by_pyarrow(values)
    assert [(field.name, field.type) for field in found.type] == [("real", part), ("imag", part)]
    back = found.field("real").to_numpy() + 1j * np.ma.masked_invalid(found.field("imag").to_numpy())
    assert np.array_equal(back.real, values.real)
    assert np.array_equal(found.field("imag").to_numpy(), values.imag)
    assert len(read_by_pyarrow(values[:0])) == 0
    assert read_by_pyarrow(values[::2]).to_pylist() == read_by_pyarrow(values).to_pylist()[::2]


def test_masked_complex_numbers() -> None:
    found = read_by_pyarrow(np.ma.MaskedArray([1j, 2j, 3j], [False, True, False]))
    assert found.to_pylist() == [{"real": 0.0, "imag": 1.0}, None, {"real": 0.0, "imag": 3.0}]


def test_matrices_of_complex_numbers() -> None:
    found = read_by_pyarrow(np.arange(4).reshape(2, 2) * 1j)
    assert [[each["imag"] for each in row] for row in found.to_pylist()] == [[0.0, 1.0], [2.0, 3.0]]


def test_structured_columns() -> None:
    dtype: Any = [("x", "<i4"), ("y", ">f8"), ("name", "U5"), ("pair", "i2", (2,)), ("inner", [("z", "?")])]
    values = np.array([(1, 2.5, "é", [1, 2], (True,)), (3, 4.5, "b", [3, 4], (False,))], dtype)
    found = read_by_pyarrow(values)
    assert found.to_pylist() == [
        {"x": 1, "y": 2.5, "name": "é", "pair": [1, 2], "inner": {"z": True}},
        {"x": 3, "y": 4.5, "name": "b", "pair": [3, 4], "inner": {"z": False}},
    ]
    masked = np.ma.MaskedArray(values[["x", "y"]], [(False, True), (False, False)])
    assert read_by_pyarrow(masked).to_pylist() == [{"x": 1, "y": None}, {"x": 3, "y": 4.5}]


def test_advice() -> None:
    runs = pa.RunEndEncodedArray.from_arrays([2, 5], ["x", "y"])
    union = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["x", "y"])])
    cases: list[tuple[Any, type[Exception], str]] = [
        (np.array([1, 2], np.longdouble), fastpq.SchemaError, r'give array\.astype\("f8"\)'),
        ([1 + 2j, None], fastpq.SchemaError, r"give np\.array\(values\), a column of real and imag"),
        (runs, fastpq.UnsupportedError, r"run-end encoded.*run_end_decode"),
        (union, fastpq.UnsupportedError, "union.*a struct with a field for each type"),
    ]
    for values, kind, message in cases:
        with pytest.raises(kind, match=message):
            fastpq.Table({"a": values})
