"""Values inside of structs are read from a dataset as from a file, and maps of different structs are united."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq

ROWS: list[dict[str, Any]] = [
    {"s": {"a": 1, "b": "x", "t": {"u": 1.5, "v": [{"k": 1, "w": "m"}]}}, "n": 1},
    {"s": None, "n": 2},
    {"s": {"a": None, "b": "y", "t": None}, "n": 3},
]
TYPE = pa.schema([
    ("s", pa.struct([
        ("a", pa.int64()), ("b", pa.string()),
        ("t", pa.struct([("u", pa.float64()), ("v", pa.list_(pa.struct([("k", pa.int32()), ("w", pa.string())])))])),
    ])),
    ("n", pa.int64()),
])
REQUESTS: list[list[Any]] = [
    ["s.b"], ["s.b", "n"], ["n", ("s", "t", "u")], ["s.t"], ["s.t.v.list.element.w", "s.a"], ["s.b", "s"], ["s.a", "s.b", "s.t"],
]


def written(folder: Path, *tables: pa.Table) -> Path:
    for number, table in enumerate(tables):
        part = folder / f"p={number}"
        part.mkdir()
        pq.write_table(table, part / "file.parquet")
    return folder


@pytest.mark.parametrize("columns", REQUESTS, ids=str)
def test_a_folder_gives_what_a_file_gives(columns: list[Any], tmp_path: Path) -> None:
    table = pa.Table.from_pylist(ROWS, TYPE)
    folder = written(tmp_path, table, table)
    truth = fastpq.read_table(folder / "p=0" / "file.parquet", columns)
    dataset = fastpq.ParquetDataset(folder)
    once, twice = pa.table(truth).to_pylist(), [*pa.table(truth).to_pylist()] * 2
    for found in (
        fastpq.read_table(folder, columns), dataset.read(columns), fastpq.Table.concat([*dataset.iter_batches(2, columns)]),
        dataset.take(range(6), columns), dataset.head(6, columns), dataset.tail(6, columns),
    ):
        assert pa.table(found).to_pylist() == twice
        assert pa.table(found).schema.equals(pa.table(truth).schema)
    filtered = dataset.read(columns, filters=[("p", "==", 1), ("n", ">", 1)])
    assert pa.table(filtered).to_pylist() == once[1:]
    whole = dataset.explain(("n", ">", 0))
    assert dataset.explain(("n", ">", 0), columns).bytes_read <= whole.bytes_read


def test_partition_columns_stand_beside_values_of_structs(tmp_path: Path) -> None:
    folder = written(tmp_path, *[pa.Table.from_pylist(ROWS, TYPE)] * 2)
    found = pa.table(fastpq.read_table(folder, ["p", "s.b"])).to_pylist()
    assert found == [{"p": p, "s": None if row["s"] is None else {"b": row["s"]["b"]}} for p in (0, 1) for row in ROWS]


def test_only_the_requested_leaves_are_read(tmp_path: Path) -> None:
    folder = written(tmp_path, *[pa.Table.from_pylist(ROWS, TYPE)] * 2)
    dataset = fastpq.ParquetDataset(folder)
    sizes = [dataset.explain(("n", ">", 0), columns).bytes_read for columns in (["s.b"], ["s"])]
    assert sizes[0] < sizes[1]


def test_fields_that_a_file_lacks_are_null_in_its_structs(tmp_path: Path) -> None:
    first = pa.table({"s": pa.array([{"a": 1, "b": 2}, None], pa.struct([("a", pa.int32()), ("b", pa.int32())]))})
    second = pa.table({"s": pa.array([{"c": 3}, None], pa.struct([("c", pa.int32())]))})
    third = pa.table({"s": pa.array([{"b": 4, "a": 5}], pa.struct([("b", pa.int64()), ("a", pa.int32())]))})
    folder = written(tmp_path, first, second, third, pa.table({"x": [1]}))
    found = pa.table(fastpq.read_table(folder, ["s.b"]))
    assert found.to_pylist() == [{"s": {"b": 2}}, {"s": None}, {"s": {"b": None}}, {"s": None}, {"s": {"b": 4}}, {"s": None}]
    assert found.schema.field("s").type.field("b").type == pa.int64()
    dataset = fastpq.ParquetDataset(folder)
    assert pa.table(dataset.read(["s.b"], filters=(("s", "b"), ">", 2))).to_pylist() == [{"s": {"b": 4}}]
    assert pa.table(dataset.read(["s.a"], filters=(("s", "b"), ">", 1))).to_pylist() == [{"s": {"a": 1}}, {"s": {"a": 5}}]


def test_timestamps_inside_of_structs_keep_one_unit(tmp_path: Path) -> None:
    type_ = pa.struct([("t", pa.timestamp("us")), ("x", pa.int64())])
    days = [dt.datetime(2020, 1, 1), dt.datetime(1500, 1, 1)]
    for number, day in enumerate(days):
        table = pa.table({"s": pa.array([{"t": day, "x": 1}], type_)})
        pq.write_table(table, tmp_path / f"{number}.parquet", use_deprecated_int96_timestamps=True)
    dataset = fastpq.ParquetDataset(tmp_path)
    for found in (dataset.read(["s.t"]), fastpq.Table.concat([*dataset.iter_batches(1, ["s.t"])])):
        assert pa.table(found).to_pylist() == [{"s": {"t": day}} for day in days]


@pytest.mark.parametrize("column", ["s.z", "z.b", ("s", "z"), 0, None, "s.b.c"])
def test_unknown_columns_are_named(column: Any, tmp_path: Path) -> None:
    folder = written(tmp_path, *[pa.Table.from_pylist(ROWS, TYPE)] * 2)
    with pytest.raises(fastpq.SchemaError, match=r"there is no column|a column key of a dataset must be"):
        fastpq.ParquetDataset(folder).read([column])
    with pytest.raises(fastpq.UnsupportedError, match="nested column"):
        fastpq.ParquetDataset(folder).min_max("s.b")


def test_structs_and_numbers_in_maps_are_united(tmp_path: Path) -> None:
    first = pa.table({"m": pa.array([[("k", {"a": 1})], None], pa.map_(pa.string(), pa.struct([("a", pa.int32())])))})
    both = pa.struct([("b", pa.string()), ("a", pa.int64())])
    second = pa.table({"m": pa.array([[("l", {"b": "x", "a": 2})], []], pa.map_(pa.string(), both))})
    folder = written(tmp_path, first, second)
    dataset = fastpq.ParquetDataset(folder)
    rows = [{"m": [("k", {"a": 1, "b": None})]}, {"m": None}, {"m": [("l", {"a": 2, "b": "x"})]}, {"m": []}]
    for found in (dataset.read(["m"]), fastpq.Table.concat([*dataset.iter_batches(3, ["m"])])):
        assert pa.table(found).to_pylist() == rows
    assert pa.table(dataset.read(["m"])).schema.field("m").type.item_type.field("a").type == pa.int64()
    keys = pa.table({"m": pa.array([[(1, 2)]], pa.map_(pa.int32(), pa.int8()))})
    (tmp_path / "keys").mkdir()
    with pytest.raises(fastpq.SchemaError, match="m"):
        fastpq.read_table(written(tmp_path / "keys", keys, pa.table(
            {"m": pa.array([[("1", 2)]], pa.map_(pa.string(), pa.int8()))})))
