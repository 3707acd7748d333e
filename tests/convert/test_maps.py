"""Maps from dicts and lists of pairs, where the schema asks for maps; pyarrow reads the files."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq

COUNTS = {"m": pa.map_(pa.string(), pa.int32())}


def read_back(data: Any, schema: Any) -> list[Any]:
    """The values that pyarrow reads, the same as fastpq's."""
    fastpq.write_table(data, sink := io.BytesIO(), schema=schema)
    table = pq.read_table(io.BytesIO(sink.getvalue()))
    assert table.schema.field("m").type == schema["m"]
    table.validate(full=True)
    found: list[Any] = table["m"].to_pylist()
    assert fastpq.read_table(sink.getvalue())["m"].to_pylist() == found
    return found


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([{"a": 1}, None, {"b": 2, "c": None}], [[("a", 1)], None, [("b", 2), ("c", None)]]),
        ([[("a", 1), ("a", 2)], [], [["b", 3]]], [[("a", 1), ("a", 2)], [], [("b", 3)]]),
        ([{}, {}], [[], []]),
        ([None, None], [None, None]),
        ([], []),
    ],
)
def test_dicts_and_pairs(values: list[Any], expected: list[Any]) -> None:
    objects = np.empty(len(values), object)
    objects[:] = values
    for data in ({"m": values}, {"m": objects}, pd.DataFrame({"m": pd.Series(values, dtype=object)})):
        assert read_back(data, COUNTS) == expected


def test_other_types_of_keys_and_values() -> None:
    schema = {"m": pa.map_(pa.int16(), pa.struct({"x": pa.float32()}))}
    assert read_back({"m": [{1: {"x": 0.5}}, {2: None}]}, schema) == [[(1, {"x": 0.5})], [(2, None)]]


def test_batches() -> None:
    batches = iter([{"m": [{"a": 1}]}, pd.DataFrame({"m": [{"b": 2}, {"c": 3}]})])
    assert read_back(batches, COUNTS) == [[("a", 1)], [("b", 2)], [("c", 3)]]


def test_maps_of_arrow_are_fitted() -> None:
    maps = pa.table({"m": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64()))})
    assert read_back(maps, COUNTS) == [[("a", 1)], None]
    with pytest.raises(fastpq.SchemaError, match="does not fit"):
        read_back(pa.table({"m": pa.array([[("a", 1 << 40)]], pa.map_(pa.string(), pa.int64()))}), COUNTS)


def test_pandas_reads_the_frame() -> None:
    frame = pd.DataFrame({"m": [{"a": 1}, {"b": 2}]}, index=pd.Index([7, 8], name="i"))
    fastpq.write_table(frame, sink := io.BytesIO(), schema=pa.schema({**COUNTS, "i": pa.int64()}))
    for found in (pd.read_parquet(io.BytesIO(sink.getvalue())), fastpq.read_pandas(sink.getvalue())):
        assert found["m"].tolist() == [[("a", 1)], [("b", 2)]]
        assert found.index.equals(frame.index)


NESTED = [
    (pa.list_(pa.map_(pa.string(), pa.int32())), [[{"a": 1}, None], [], None, [[("b", None)]]],
     [[[("a", 1)], None], [], None, [[("b", None)]]]),
    (pa.struct({"x": pa.map_(pa.string(), pa.int32()), "y": pa.int8()}),
     [{"x": {"a": 1}}, None, {"y": 2}, {"x": [("b", 2)], "y": None}],
     [{"x": [("a", 1)], "y": None}, None, {"x": None, "y": 2}, {"x": [("b", 2)], "y": None}]),
    (pa.map_(pa.string(), pa.map_(pa.string(), pa.int32())), [{"a": {"b": 1}, "c": None}, [("d", [("e", 2)])], {"f": {}}, None],
     [[("a", [("b", 1)]), ("c", None)], [("d", [("e", 2)])], [("f", [])], None]),
    (pa.map_(pa.string(), pa.list_(pa.struct({"m": pa.map_(pa.int16(), pa.string())}))),
     [{"a": [{"m": {1: "x"}}, {}]}, {"b": []}],
     [[("a", [{"m": [(1, "x")]}, {"m": None}])], [("b", [])]]),
    (pa.large_list(pa.map_(pa.string(), pa.int32())), [[{}], [None], []], [[[]], [None], []]),
    (pa.list_(pa.map_(pa.string(), pa.int32())), [None, None], [None, None]),
]


@pytest.mark.parametrize(("type_", "values", "expected"), NESTED)
def test_maps_inside(type_: pa.DataType, values: list[Any], expected: list[Any]) -> None:
    batches = iter([{"m": values[:1]}, {"m": values[1:]}])
    for data in ({"m": values}, pd.DataFrame({"m": pd.Series(values, dtype=object)}), batches):
        assert read_back(data, {"m": type_}) == expected


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (pa.list_(pa.map_(pa.string(), pa.int32())), [5]),
        (pa.list_(pa.map_(pa.string(), pa.int32())), {"a": 1}),
        (pa.list_(pa.map_(pa.string(), pa.int32())), 5),
        (pa.struct({"x": pa.map_(pa.string(), pa.int32())}), [("a", 1)]),
        (pa.struct({"x": pa.map_(pa.string(), pa.int32())}), {"x": {"a": 1}, "z": 1}),
        (pa.map_(pa.string(), pa.map_(pa.string(), pa.int32())), {"a": 5}),
        (pa.map_(pa.string(), pa.map_(pa.string(), pa.int32())), {"a": {"b": "text"}}),
    ],
)
def test_no_maps_inside(type_: pa.DataType, value: Any) -> None:
    with pytest.raises(fastpq.SchemaError):
        read_back({"m": [value]}, {"m": type_})


@pytest.mark.parametrize(("type_", "values", "expected"), NESTED)
def test_maps_of_a_parquet_schema(type_: pa.DataType, values: list[Any], expected: list[Any]) -> None:
    like = pa.table({"m": pa.array([], type_), "i": pa.array([], pa.int16())})
    pq.write_table(like, sink := io.BytesIO())
    schema = fastpq.read_schema(sink.getvalue())
    fastpq.write_table({"m": values, "i": list(range(len(values)))}, sink := io.BytesIO(), schema=schema)
    table = pq.read_table(io.BytesIO(sink.getvalue()))
    assert table["m"].to_pylist() == expected
    assert fastpq.read_schema(sink.getvalue()) == schema


@pytest.mark.parametrize("value", [5, "ab", [1], [("a", 1, 2)], {None: 1}, [(None, 1)]])
def test_no_maps(value: Any) -> None:
    with pytest.raises(fastpq.SchemaError, match="value 1 is not a map"):
        read_back({"m": [{}, value]}, COUNTS)


@pytest.mark.parametrize("value", [{"a": "text"}, {1: 1}, {"a": 1 << 40}])
def test_other_types_than_the_schema_s(value: Any) -> None:
    with pytest.raises(fastpq.SchemaError):
        read_back({"m": [value]}, COUNTS)
