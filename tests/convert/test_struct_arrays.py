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


RECORD: Any = [
    ("x", "<i4"), ("pair", "i2", (2,)), ("matrix", "f4", (2, 3)), ("z", "c8"), ("zs", "c16", (2,)),
    ("inner", [("flag", "?"), ("moment", "M8[us]"), ("deep", [("z", "c16"), ("span", "m8[ms]")])]), ("rows", [("q", "u1")], (2,)),
]


def some_records(count: int) -> Any:
    """Records of every kind of field, with random bits for numbers."""
    rng = np.random.default_rng(count)
    made = np.zeros(count, RECORD)
    made["x"], made["pair"] = rng.integers(-9, 9, count), rng.integers(-9, 9, (count, 2))
    made["matrix"], made["z"] = rng.random((count, 2, 3)), rng.random(count) - 1j * rng.random(count)
    made["zs"] = 1j * rng.random((count, 2))
    made["inner"]["moment"] = rng.integers(0, 1 << 40, count).astype("M8[us]")
    made["inner"]["deep"]["z"], made["inner"]["deep"]["span"] = rng.random(count), rng.integers(-9, 9, count).astype("m8[ms]")
    made["rows"]["q"] = rng.integers(0, 255, (count, 2))
    return made


def written_and_read(data: Any) -> fastpq.Table:
    sink = io.BytesIO()
    fastpq.write_table(data, sink)
    return fastpq.read_table(sink.getvalue())


@pytest.mark.parametrize("count", [0, 1, 1000])
def test_structured_arrays_come_back(count: int) -> None:
    records = some_records(count)
    found = written_and_read(records).to_numpy(structured=True)
    assert type(found) is np.ndarray
    assert found.dtype == records.dtype
    assert np.array_equal(found, records)
    column = written_and_read({"a": records})["a"]
    assert np.array_equal(column.to_numpy(structured=True), records)
    assert column.to_numpy().dtype == object
    matrix = records.reshape(-1, 1)
    assert np.array_equal(written_and_read({"a": matrix})["a"].to_numpy(structured=True), matrix)


def test_subarrays_alone_come_back() -> None:
    """A list inside of a struct has an Arrow field, and no other column has one."""
    records = np.zeros(2, [("x", "i4"), ("pair", "i2", (2,))])
    assert written_and_read({"a": records})["a"].to_numpy(structured=True).dtype == records.dtype


def test_masked_records_come_back() -> None:
    records = some_records(3)[["x", "inner", "z"]]
    mask: Any = [(0, (0, 0, (0, 0)), 1), (1, (1, 0, (1, 0)), 0), (0, (0, 1, (0, 1)), 0)]
    masked = np.ma.MaskedArray(records, mask)
    found: Any = written_and_read({"a": masked})["a"].to_numpy(structured=True)
    assert found.dtype == [(name, records.dtype[name]) for name in records.dtype.names]
    for part in (lambda a: a["x"], lambda a: a["inner"]["moment"], lambda a: a["inner"]["deep"]["z"], lambda a: a["z"]):
        assert part(found).tolist() == part(masked).tolist()
    assert found.mask.tolist() == masked.mask.tolist()


def test_nulls_of_complex_numbers() -> None:
    column = written_and_read({"z": np.ma.MaskedArray([1j, 2j, 3j], [False, True, False])})["z"]
    masked: Any = column.to_numpy(structured=True)
    assert masked.mask.tolist() == [False, True, False]
    assert column.to_numpy(structured=True, nulls="object").tolist() == [1j, None, 3j]
    found = column.to_numpy(structured=True, nulls="nan")
    assert found.dtype == np.complex128
    assert np.isnan(found).tolist() == [False, True, False]
    assert found[[0, 2]].tolist() == [1j, 3j]


def test_null_structs_have_null_fields() -> None:
    """A null of the struct reaches flat fields, structs and lists inside."""
    table = pa.table({"s": [{"n": 1, "in": {"f": 2.5}, "l": [1]}, None]})
    column = written_and_read(table)["s"]
    found: Any = column.to_numpy(structured=True)
    assert found.mask.tolist()[1][:2] == (True, (True,))
    assert found["l"].tolist() == [[1], None]
    assert column.to_numpy(structured=True, nulls="object").tolist() == [(1, (2.5,), [1]), (None, (None,), None)]
    with pytest.raises(fastpq.SchemaError, match="and no NaN"):
        column.to_numpy(structured=True, nulls="nan")


def test_structs_that_are_no_complex_numbers() -> None:
    """Only two floats of one width, named real and imag in this order, are a complex number."""
    for names, kinds in ((("imag", "real"), ("f8", "f8")), (("real", "imag"), ("f4", "f8")), (("real", "imag"), ("i4", "i4"))):
        records = np.array([(1, 2)], list(zip(names, kinds, strict=True)))
        found = written_and_read({"a": records})["a"].to_numpy(structured=True)
        assert found.dtype == records.dtype
        assert found.tolist() == records.tolist()


def test_fields_of_one_name_are_refused() -> None:
    column = fastpq.Table({"a": pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"])})["a"]
    with pytest.raises(fastpq.SchemaError, match="two fields have the same name"):
        column.to_numpy(structured=True)


def test_advice() -> None:
    cases: list[tuple[Any, type[Exception], str]] = [
        (np.array([1, 2], np.longdouble), fastpq.SchemaError, r'give array\.astype\("f8"\)'),
        ([1 + 2j, None], fastpq.SchemaError, r"give np\.array\(values\), a column of real and imag"),
    ]
    for values, kind, message in cases:
        with pytest.raises(kind, match=message):
            fastpq.Table({"a": values})
