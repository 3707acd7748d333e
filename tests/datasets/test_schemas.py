"""Files of different schemas as one dataset, beside the schemas that pyarrow and Polars unite."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import SchemaError
from fastpq.convert.schemas import resolved

NANOSECONDS = pa.timestamp("ns", "UTC")
MOMENT = dt.datetime(2024, 5, 1, 12, 30)

# Values of one column in two files, and the type of both.
PAIRS: dict[str, tuple[Any, Any, Any]] = {
    "f4 and f8": (pa.array([1.5], pa.float32()), pa.array([0.1], pa.float64()), pa.float64()),
    "f2 and f4": (pa.array(np.array([1.5], "f2")), pa.array([0.1], pa.float32()), pa.float32()),
    "i2 and f4": (pa.array([3], pa.int16()), pa.array([0.5], pa.float32()), pa.float32()),
    "i4 and f4": (pa.array([1 << 30], pa.int32()), pa.array([0.5], pa.float32()), pa.float64()),
    "i8 and f8": (pa.array([1 << 50], pa.int64()), pa.array([0.5], pa.float64()), pa.float64()),
    "u4 and i8": (pa.array([1 << 31], pa.uint32()), pa.array([-1], pa.int64()), pa.int64()),
    "u1 and i1": (pa.array([255], pa.uint8()), pa.array([-1], pa.int8()), pa.int16()),
    "u2 and u4": (pa.array([1 << 15], pa.uint16()), pa.array([1 << 31], pa.uint32()), pa.uint32()),
    "ms and us": (pa.array([MOMENT], pa.timestamp("ms")), pa.array([MOMENT], pa.timestamp("us")), pa.timestamp("us")),
    "us and ns": (pa.array([MOMENT], pa.timestamp("us", "UTC")), pa.array([1], NANOSECONDS), NANOSECONDS),
    "date and time": (pa.array([MOMENT.date()]), pa.array([MOMENT], pa.timestamp("us")), pa.timestamp("us")),
    "times": (pa.array([MOMENT.time()], pa.time32("ms")), pa.array([MOMENT.time()], pa.time64("us")), pa.time64("us")),
    "durations": (pa.array([5], pa.duration("s")), pa.array([7], pa.duration("us")), pa.duration("us")),
    "decimals": (pa.array([Decimal("1.5")]), pa.array([Decimal("123.25")]), pa.decimal128(5, 2)),
    "nulls and text": (pa.nulls(2), pa.array(["x"]), pa.string()),
    "lists and nulls": (pa.array([[1]]), pa.nulls(1), pa.list_(pa.int64())),
    "lists": (pa.array([[1]], pa.list_(pa.int32())), pa.array([[0.5, None]]), pa.list_(pa.float64())),
    "structs": (pa.array([{"a": 1}]), pa.array([{"a": None, "b": "x"}]), pa.struct({"a": pa.int64(), "b": pa.string()})),
    "durations and nulls": (pa.nulls(1), pa.array([3], pa.duration("ms")), pa.duration("ms")),
}


def files_of(folder: Path, *columns: Any) -> Path:
    for number, column in enumerate(columns):
        pq.write_table(pa.table({"x": column, "file": [number] * len(column)}), folder / f"{number}.parquet")
    return folder


@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
@pytest.mark.parametrize("name", PAIRS)
def test_one_type_for_both(tmp_path: Path, name: str, turned: bool) -> None:
    *columns, wanted = PAIRS[name]
    columns = columns[::-1] if turned else columns
    arrow = fastpq.read_table(files_of(tmp_path, *columns)).to_arrow()["x"]
    both = pa.concat_arrays([column.cast(wanted) for column in columns])
    assert arrow.cast(wanted).combine_chunks().equals(both)
    if not pa.types.is_nested(wanted) and not pa.types.is_string(wanted):
        assert arrow.type == wanted
    batches = [pa.table(batch)["x"].cast(wanted) for batch in fastpq.ParquetDataset(tmp_path).iter_batches()]
    assert pa.concat_arrays([chunk for batch in batches for chunk in batch.chunks]).equals(both)


@pytest.mark.parametrize("name", ["f4 and f8", "i4 and f4", "u4 and i8", "u1 and i1", "ms and us"])
def test_as_polars_unites(tmp_path: Path, name: str) -> None:
    files_of(tmp_path, *PAIRS[name][:2])
    frames = [pl.read_parquet(path) for path in sorted(tmp_path.iterdir())]
    wanted = pl.concat(frames, how="diagonal_relaxed")
    assert pl.DataFrame(fastpq.read_dataset(tmp_path))["x"].to_list() == wanted["x"].to_list()


REFUSED = {
    "text and numbers": (pa.array(["x"]), pa.array([1])),
    "u8 and i8": (pa.array([1], pa.uint64()), pa.array([1], pa.int64())),
    "zoned and local": (pa.array([MOMENT], pa.timestamp("us", "UTC")), pa.array([MOMENT], pa.timestamp("us"))),
    "durations and numbers": (pa.array([1], pa.duration("s")), pa.array([1], pa.int64())),
    "lists and numbers": (pa.array([[1]]), pa.array([1])),
}


@pytest.mark.parametrize("name", REFUSED)
def test_no_type_for_both(tmp_path: Path, name: str) -> None:
    with pytest.raises(SchemaError, match=r"here is .* in .*0\.parquet.*column x"):
        fastpq.read_table(files_of(tmp_path, *REFUSED[name]))


def test_a_value_that_a_float_cannot_hold(tmp_path: Path) -> None:
    files_of(tmp_path, pa.array([(1 << 53) + 1]), pa.array([0.5]))
    with pytest.raises(SchemaError, match="9007199254740993") as caught:
        fastpq.read_table(tmp_path)
    assert "0.parquet" in str(caught.value)


def test_filters_see_the_common_type(tmp_path: Path) -> None:
    """A filter is bound to the type of the dataset, not to the one of a file."""
    files_of(tmp_path, pa.array([1, 2, 3], pa.int32()), pa.array([0.5, 1.5, 2.5]))
    dataset = fastpq.ParquetDataset(tmp_path)
    for condition, wanted in ((("x", ">", 1.25), [2, 3, 1.5, 2.5]), (("x", "==", 2), [2]), (("x", "in", [0.5, 3.0]), [3, 0.5])):
        assert dataset.read(filters=[condition])["x"].to_pylist() == wanted
        assert dataset.read(["file"], filters=[condition]).names == ["file"]
        assert dataset.count([condition]) == len(wanted)
        assert [value for batch in dataset.iter_batches(1, filters=[condition]) for value in batch["x"]] == wanted
    both = [[("x", "<", 1.25), ("file", "==", 0)], [("x", "==", 2.5)]]
    assert dataset.read(filters=both)["x"].to_pylist() == [1, 2.5]


def test_the_schema_of_the_first_file(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([1], pa.int32())}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"b": ["x"], "a": pa.array([2], pa.int64())}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": ["y"]}), tmp_path / "2.parquet")
    found = fastpq.read_dataset(tmp_path, schema="first")
    assert found.to_arrow().to_pydict() == {"a": [1, 2, None]}
    assert str(found["a"].type) == "INT32"
    assert fastpq.ParquetDataset(tmp_path, schema="first").num_rows == 3
    pq.write_table(pa.table({"a": [1 << 40]}), tmp_path / "3.parquet")
    with pytest.raises(SchemaError, match=r"3\.parquet"):
        fastpq.read_dataset(tmp_path, schema="first")


@pytest.mark.parametrize(
    "schema",
    [
        {"b": "string", "a": "f8", "c": np.dtype("i4")},
        pa.schema({"b": pa.string(), "a": pa.float64(), "c": pa.int32()}),
        fastpq.ParquetSchema.of([(name, resolved(type_)[0], True) for name, type_ in (("b", str), ("a", float), ("c", "int32"))]),
    ],
    ids=["mapping", "arrow", "parquet"],
)
def test_a_given_schema(tmp_path: Path, schema: Any) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"b": ["x"], "a": pa.array([0.5], pa.float32()), "z": [1]}), tmp_path / "1.parquet")
    found = fastpq.read_dataset(tmp_path, schema=schema)
    assert found.to_pylist() == [{"b": None, "a": 1.0, "c": None}, {"b": "x", "a": 0.5, "c": None}]
    with pytest.raises(SchemaError, match="no column 'z'"):
        fastpq.read_dataset(tmp_path, ["z"], schema=schema)


def test_no_schema() -> None:
    with pytest.raises(ValueError, match=r"schema must be"):
        fastpq.ParquetDataset(__file__, schema="all")
    with pytest.raises(SchemaError, match="the schema of a dataset is"):
        fastpq.ParquetDataset(__file__, schema=5)


def test_times_of_several_versions_of_pyarrow(tmp_path: Path) -> None:
    """Versions of pyarrow set isAdjustedToUTC in different ways, although Arrow's times have no such flag."""
    for number, unit in enumerate(("us", "us", "ms")):
        table = pa.table({"time": pa.array([number, None], pa.time32(unit) if unit == "ms" else pa.time64(unit))})
        with pq.ParquetWriter(tmp_path / f"{number}.parquet", table.schema, write_time_adjusted_to_utc=number == 1) as writer:
            writer.write_table(table)
    expected = [dt.time(), None, dt.time(microsecond=1), None, dt.time(microsecond=2000), None]
    for schema in ("union", "first", pa.schema([("time", pa.time64("us"))])):
        assert fastpq.read_dataset(tmp_path, schema=schema)["time"].to_pylist() == expected
    fastpq.append_table(pa.table({"time": pa.array([7], pa.time64("us"))}), tmp_path / "1.parquet")
    appended = pq.read_table(tmp_path / "1.parquet")["time"].to_pylist()
    assert appended == [dt.time(microsecond=1), None, dt.time(microsecond=7)]
    fastpq.write_dataset({"time": pa.array([9], pa.time64("us"))}, tmp_path)
    assert fastpq.read_table(tmp_path).num_rows == 8


@pytest.mark.parametrize("with_schema", [(True, False, True), (False, True, False)])
def test_batches_have_one_arrow_schema(tmp_path: Path, with_schema: tuple[bool, ...]) -> None:
    """Only some of the files have ARROW:schema, so that their own Arrow types differ."""
    types = {
        "text": pa.large_string(), "code": pa.dictionary(pa.int32(), pa.string()), "day": pa.date64(), "number": pa.int16(),
        "list": pa.large_list(pa.field("item", pa.large_string())), "zone": pa.timestamp("us", "Europe/Berlin"),
        "pair": pa.struct([("a", pa.large_binary()), ("b", pa.int8())]), "wide": pa.int64(),
    }
    values: dict[str, Any] = {
        "text": ["x", None], "code": ["a", "b"], "day": [dt.date(2020, 1, 1), None], "number": [1, 2], "list": [["y"], None],
        "zone": [dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None], "pair": [{"a": b"z", "b": 1}, None], "wide": [1, 2],
    }
    for number, has_schema in enumerate(with_schema):
        own = types | {"wide": pa.int32() if number == 0 else pa.int64()}
        table = pa.table({name: pa.array(values[name], type_) for name, type_ in own.items() if (number, name) != (0, "text")})
        pq.write_table(table, tmp_path / f"{number}.parquet", store_schema=has_schema)
    dataset = fastpq.ParquetDataset(tmp_path)
    whole = [{**dict(zip(values, row, strict=True))} for row in zip(*values.values(), strict=True)]
    expected = [row | {"text": None} for row in whole] + whole * (len(with_schema) - 1)
    for batch_size in (1, 2, 4):
        tables = [pa.table(batch) for batch in dataset.iter_batches(batch_size, list(values))]
        assert {table.schema.remove_metadata() for table in tables} == {tables[0].schema.remove_metadata()}
        assert [{**row, "day": row["day"]} for table in tables for row in table.to_pylist()] == expected
    stream = pa.RecordBatchReader.from_stream(dataset)
    assert stream.read_all().num_rows == 2 * len(with_schema)
    assert pl.DataFrame(dataset)["text"].to_list() == [row["text"] for row in expected]
