"""Files of several batches: types that differ, nulls that come late, streams, iterators, and metadata."""

from __future__ import annotations

import datetime as dt
import io
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.errors import SchemaError
from fastpq.schema.types import ColumnType, String, Timestamp, Type

CSV = "a,b,c\n1,x,2020\n2,y,\n3,,\n4,z,7\n"


def written(*batches: Any, method: str = "write_batch", **options: Any) -> bytes:
    with fastpq.ParquetWriter(sink := io.BytesIO(), **options) as writer:
        for batch in batches:
            getattr(writer, method)(batch)
    return sink.getvalue()


@pytest.mark.parametrize("method", ["write_batch", "write_table"])
def test_chunks_of_a_csv_file(method: str) -> None:
    data = written(*pd.read_csv(io.StringIO(CSV), chunksize=1), method=method)
    pd.testing.assert_frame_equal(fastpq.read_pandas(data), pd.read_csv(io.StringIO(CSV)))
    assert pq.read_table(io.BytesIO(data)).column("c").to_pylist() == [2020, None, None, 7]


def test_a_generator_of_chunks_and_an_iterator_of_arrays() -> None:
    fastpq.write_table(pd.read_csv(io.StringIO(CSV), chunksize=2), sink := io.BytesIO())
    assert fastpq.read_table(sink.getvalue())["b"].to_pylist() == ["x", "y", None, "z"]
    fastpq.write_table(({"i": np.arange(start, start + 3)} for start in range(0, 9, 3)), sink := io.BytesIO())
    with fastpq.ParquetFile(sink.getvalue()) as file:
        assert file.read()["i"].to_pylist() == [*range(9)]
        assert file.num_row_groups == 1


def test_later_nulls_types_and_orders_of_columns() -> None:
    data = written(
        {"a": np.array([1, 2], np.int32), "l": [[1], [2]], "s": [{"x": 1}, {"x": 2}]},
        {"l": [[None], None], "s": [{}, None], "a": np.array([1.0, 5.0])},
        {"a": np.ma.array([1, 2], mask=[False, True]), "l": [[], [np.int8(3)]], "s": [{"x": 7}, {"x": None}]},
    )
    assert fastpq.read_table(data).to_pylist() == [
        {"a": 1, "l": [1], "s": {"x": 1}}, {"a": 2, "l": [2], "s": {"x": 2}},
        {"a": 1, "l": [None], "s": {"x": None}}, {"a": 5, "l": None, "s": None},
        {"a": 1, "l": [], "s": {"x": 7}}, {"a": None, "l": [3], "s": {"x": None}},
    ]
    assert pq.read_table(io.BytesIO(data)).to_pylist() == fastpq.read_table(data).to_pylist()


MISFITS: list[tuple[Any, Any, str]] = [
    (np.array([1]), np.array([1.5]), "value 0, 1.5, does not fit"),
    (np.array([1], np.int8), np.array([300]), "value 0, 300, does not fit"),
    (np.array([1], np.float32), np.array([0.1]), "value 0, 0.1, has no exact value in the file's FLOAT"),
    (np.array([1.5]), np.array([2**53 + 1]), "value 0, 9007199254740993, does not fit"),
    (np.array([True]), np.array([1]), "does not fit the file's type BOOLEAN"),
    (["a"], [1], "does not fit the file's type BYTE_ARRAY"),
    (np.array([1]), np.array([1], "M8[s]"), "does not fit the file's type INT64"),
    (np.array(["2020"], "M8[D]"), np.array(["2020-01-01T01"], "M8[h]"), "value 0, 2020-01-01T01:00:00.000, does not fit"),
    (np.array([1], "m8[s]"), np.array([5], "m8[ms]"), "value 0, 5 milliseconds, does not fit"),
    (np.array([1], "m8[s]"), np.array([1]), "one column has durations and numbers"),
    (np.array([1]), np.array([1], "m8[s]"), "one column has durations and numbers"),
    ([[1]], [1], "does not fit the file's type list"),
    ([{"x": 1}], [{"y": 1}], "does not fit the file's type struct"),
]


@pytest.mark.parametrize(("first", "later", "message"), MISFITS, ids=[message for *_, message in MISFITS])
def test_values_that_the_first_type_does_not_hold(first: Any, later: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message) as caught:
        written({"c": first}, {"c": later})
    assert caught.value.context["column"] == "c"


FITTING: list[tuple[Any, Any]] = [
    (np.array([1], np.int64), np.array([2], np.uint8)),
    (np.array([0.5], np.float64), np.array([0.1], np.float32)),
    (np.array([0.5], np.float32), np.array([0.25, np.nan])),
    (np.array(["2020-01-01"], "M8[us]"), np.array(["2020-01-02"], "M8[ns]")),
    (np.array(["2020-01-01"], "M8[ms]"), np.array(["2020-01-02", "NaT"], "M8[D]")),
    (np.array([1], "m8[ms]"), np.array([5], "m8[s]")),
    (["a"], np.array(["b"], np.dtypes.StringDType())),
]


@pytest.mark.parametrize(("first", "later"), FITTING, ids=lambda value: str(getattr(value, "dtype", "list")))
def test_values_that_the_first_type_holds(first: Any, later: Any) -> None:
    found = fastpq.read_table(written({"c": first}, {"c": later}))["c"].to_numpy(nulls="nan")
    np.testing.assert_array_equal(found[len(first) :].astype(np.asarray(later).dtype), later)
    np.testing.assert_array_equal(found[: len(first)], first)


@pytest.mark.parametrize("method", ["write_batch", "write_table"])
def test_nulls_alone_are_no_type(method: str) -> None:
    data = written({"a": [None, None], "b": [1, None]}, {"a": [None], "b": [None]}, {"a": ["x"], "b": [3]}, method=method)
    assert fastpq.read_table(data).to_pylist() == [
        {"a": None, "b": 1}, {"a": None, "b": None}, {"a": None, "b": None}, {"a": "x", "b": 3},
    ]
    assert isinstance(fastpq.read_table(data).flat("a").type.logical, String)
    nothing = fastpq.read_table(written({"a": [None, None]}, {"a": [None]}))
    assert nothing["a"].to_pylist() == [None] * 3
    decided_late = written({"a": [None] * 3}, {"a": [None] * 3}, row_group_size=4)
    assert fastpq.read_table(decided_late).num_rows == 6
    with pytest.raises(SchemaError, match="does not fit the file's type INT32 Unknown"):
        written({"a": [None] * 6}, {"a": ["x"]}, row_group_size=4)


def test_a_required_column_stays_required() -> None:
    schema = pa.schema([pa.field("x", pa.int64(), nullable=False)])
    batch = pa.record_batch([pa.array([1])], schema=schema)
    data = written(batch, batch)
    assert not fastpq.read_schema(data).columns[0].nullable
    with pytest.raises(SchemaError, match="made required"):
        written(batch, {"x": [None, 2]})
    fastpq.write_table({"x": [1, 2]}, sink := io.BytesIO())
    assert not fastpq.read_schema(sink.getvalue()).columns[0].nullable


def stream_of(table: pa.Table) -> Iterator[Any]:
    return iter([table.slice(start, 2) for start in range(0, len(table), 2)])


def test_streams_are_the_table() -> None:
    table = pa.table(
        {
            "i": [1, None, 3, 4, 5],
            "t": pa.array([1, 2, None, 4, 5], pa.timestamp("us", "Asia/Tokyo")),
            "d": pa.array(["b", "a", None, "c", "a"]).dictionary_encode(),
            "l": [[1], None, [], [2, 3], [4]],
        },
        metadata={"own": "kept"},
    )
    chunked = pa.concat_tables([table.slice(start, 2) for start in range(0, 5, 2)])
    for data in (chunked, chunked.to_reader(max_chunksize=1), stream_of(table), pl.DataFrame(chunked)):
        fastpq.write_table(data, sink := io.BytesIO(), row_group_size=3)
        with fastpq.ParquetFile(sink.getvalue()) as file:
            assert file.metadata.row_counts == [3, 2]
            found = pa.table(file.read())
        assert found.to_pylist() == table.to_pylist()
        if not isinstance(data, pl.DataFrame):
            assert found.schema.metadata == {b"own": b"kept"}
    fastpq.write_table(table.slice(0, 0).to_reader(), sink := io.BytesIO())
    assert pa.table(fastpq.read_table(sink.getvalue())).schema.names == table.schema.names


def test_a_stream_is_written_in_bounded_memory(tmp_path: Any) -> None:
    code = """
import resource, sys, numpy as np, pyarrow as pa, fastpq
schema = pa.schema([("x", pa.float64())])
def batches():
    for seed in range(60):
        yield pa.record_batch([pa.array(np.random.default_rng(seed).random(500_000))], schema=schema)
fastpq.write_table(pa.table({"x": [0.5]}), sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
fastpq.write_table(pa.RecordBatchReader.from_batches(schema, batches()), sys.argv[1], row_group_size=500_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    found = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x.parquet")], check=True, capture_output=True, text=True, timeout=1200
    )
    assert int(found.stdout) < 120_000      # KiB; the stream has 234 MiB
    assert fastpq.read_metadata(tmp_path / "x.parquet").num_rows == 30_000_000


def test_metadata_of_arrow_come_back() -> None:
    table = pa.table({"a": [1]}, metadata={"geo": "{}", "own": "é"})
    fastpq.write_table(table, sink := io.BytesIO())
    for found in (pa.table(fastpq.read_table(sink.getvalue())), pq.read_table(io.BytesIO(sink.getvalue()))):
        assert found.schema.metadata == {b"geo": b"{}", b"own": "é".encode()}
    fastpq.write_table(fastpq.read_table(sink.getvalue()), again := io.BytesIO(), key_value_metadata={"own": "mine"})
    assert pq.read_schema(io.BytesIO(again.getvalue())).metadata == {b"geo": b"{}", b"own": b"mine"}
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index([5, 6], name="i"))
    fastpq.write_table(pa.Table.from_pandas(frame), sink := io.BytesIO())
    pd.testing.assert_frame_equal(fastpq.read_pandas(sink.getvalue()), frame)


def test_metadata_of_values_stay_out_of_encrypted_files() -> None:
    geo = '{"version": "1.0.0", "primary_column": "g", "columns": {"g": {"encoding": "WKB", "bbox": [1, 2, 3, 4]}}}'
    table = pa.table({"g": [b"secret"]}, metadata={"geo": geo, "own": "kept"})
    keys = fastpq.FileEncryptionProperties(b"k" * 16, {"g": b"c" * 16})
    fastpq.write_table(table, sink := io.BytesIO(), encryption_properties=keys)
    found = fastpq.read_metadata(sink.getvalue(), decryption_properties=fastpq.FileDecryptionProperties(b"k" * 16))
    assert "bbox" not in (found.key_value("geo") or "")
    assert found.key_value("own") == "kept"


def test_marks_of_one_file_are_not_of_the_next() -> None:
    given = {"org.apache.spark.sql.parquet.row.metadata": "{}", "k": "v"}
    fastpq.write_table({"a": [1]}, sink := io.BytesIO(), key_value_metadata=given)
    fastpq.write_table(fastpq.read_table(sink.getvalue()), again := io.BytesIO())
    assert fastpq.read_metadata(again.getvalue()).key_value_metadata == {"k": "v"}


def test_a_dropped_writer_warns() -> None:
    writers = [fastpq.ParquetWriter(io.BytesIO())]
    with pytest.warns(ResourceWarning, match="was never closed, so nothing is written"):
        writers.clear()


def test_columns_of_a_parquet_schema_are_found_by_name() -> None:
    schema = fastpq.read_schema(written({"a": [1], "b": ["x"]}))
    assert fastpq.read_table(written({"b": ["y"], "a": [2]}, schema=schema)).to_pylist() == [{"a": 2, "b": "y"}]
    moment = ColumnType(Type.INT64, None, Timestamp("ms"))
    data = written({"t": [dt.datetime(2020, 1, 1)]}, {"t": np.array(["2021"], "M8[Y]")}, schema={"t": moment})
    assert fastpq.read_table(data)["t"].to_pylist() == [dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1)]


TYPES: list[tuple[Any, list[Any], pa.DataType]] = [
    (np.dtype("f4"), [1, 2.5], pa.float32()),
    ("int16", [1, None], pa.int16()),
    (np.uint8, [1, 2], pa.uint8()),
    (float, [1, 2], pa.float64()),
    (str, ["a"], pa.string()),
    ("string", ["a"], pa.string()),
    ("bytes", [b"a"], pa.binary()),
    ("date", [dt.date(2020, 1, 1)], pa.date32()),
    ("timestamp[ms]", [dt.datetime(2020, 1, 1)], pa.timestamp("ms")),
    ("datetime64[ns]", [dt.datetime(2020, 1, 1)], pa.timestamp("ns")),
    ("time[us]", [dt.time(1)], pa.time64("us")),
    ("duration[ms]", [dt.timedelta(1)], pa.duration("ms")),
    (np.dtype("m8[s]"), [dt.timedelta(1)], pa.duration("s")),
    (dt.timedelta, [dt.timedelta(1)], pa.duration("us")),
    ("decimal(10, 2)", [1], pa.decimal128(10, 2)),
    (pd.Int32Dtype(), [1, None], pa.int32()),
    (pd.StringDtype(), ["a"], pa.string()),
    (pd.DatetimeTZDtype("us", "Asia/Tokyo"), [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "Asia/Tokyo")),
    (pd.ArrowDtype(pa.float32()), [1.5], pa.float32()),
    (pa.int8(), [1, None], pa.int8()),
    (pa.timestamp("ms", "Europe/Berlin"), [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], pa.timestamp("ms", "Europe/Berlin")),
    (pa.list_(pa.float32()), [[1, 2], None], pa.list_(pa.float32())),
    (pa.struct({"a": pa.int8(), "b": pa.string()}), [{"a": 1}, None], pa.struct({"a": pa.int8(), "b": pa.string()})),
    (pl.Int16(), [1], pa.int16()),
]


@pytest.mark.parametrize(("type_", "values", "expected"), TYPES, ids=str)
def test_types_of_a_schema(type_: Any, values: list[Any], expected: pa.DataType) -> None:
    if isinstance(type_, pl.DataType):
        type_ = pl.Schema({"c": type_})
    schema = type_ if isinstance(type_, pl.Schema) else {"c": type_}
    fastpq.write_table({"c": values}, sink := io.BytesIO(), schema=schema)
    found = pq.read_table(io.BytesIO(sink.getvalue()))["c"]
    assert str(found.type).replace("element", "item").replace(" not null", "") == str(expected)
    assert found.to_pylist() == pa.array(values, expected).to_pylist()


def test_an_arrow_schema_casts_and_requires() -> None:
    schema = pa.schema([pa.field("a", pa.int8(), nullable=False), pa.field("b", pa.string())])
    found = pq.read_schema(io.BytesIO(written({"a": [1], "b": ["x"]}, schema=schema)))
    assert found.equals(schema)
    with pytest.raises(SchemaError, match="made required"):
        written({"a": [None], "b": ["x"]}, schema=schema)
    with pytest.raises(SchemaError, match=r"the schema has \['a'"):
        written({"b": ["x"]}, schema=schema)


NO_TYPES = ["nonsense", 7, object(), np.dtype("O"), np.dtype("c16"), "duration[y]", pd.CategoricalDtype()]


@pytest.mark.parametrize("wrong", NO_TYPES, ids=range(len(NO_TYPES)))
def test_types_that_are_none(wrong: Any) -> None:
    with pytest.raises(SchemaError, match=r"is not a data type|no Parquet type") as caught:
        written({"a": [1]}, schema={"a": wrong})
    assert caught.value.context["column"] == "a"
    with pytest.raises(SchemaError, match="a schema must be a mapping"):
        written({"a": [1]}, schema=7)
