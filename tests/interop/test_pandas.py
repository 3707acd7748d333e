"""DataFrames to files and back, beside pandas' own way through pyarrow."""

from __future__ import annotations

import datetime
import io
import json
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pandas.testing import assert_frame_equal

import fastpq
from fastpq.convert.dataframe_input import table_from_dataframe
from fastpq.errors import FormatError, SchemaError

PLAIN = {
    "int": np.array([1, -2, 3], np.int32),
    "float": [0.5, np.nan, 2.5],
    "flag": [True, False, True],
    "text": ["a", "é", None],
    "day": pd.Series(np.array(["2020-01-01", "NaT", "1969-12-31T23:59:59.999999"], "M8[us]")).array,
    "zoned": pd.date_range("2020-06-01", periods=3, freq="12h", tz="Europe/Berlin"),
    "maybe": pd.array([1, None, 3], dtype="Int16"),
    "perhaps": pd.array([True, None, False], dtype="boolean"),
    "colour": pd.Categorical(["red", None, "blue"], categories=["green", "red", "blue"], ordered=True),
}
INDEXES: list[Any] = [
    pd.RangeIndex(3),
    pd.RangeIndex(10, 16, 2, name="step"),
    pd.Index([7, 5, 6], name="id"),
    pd.Index(["x", "y", "z"]),
    pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["letter", None]),
]


def written(frame: pd.DataFrame, **options: Any) -> bytes:
    sink = io.BytesIO()
    fastpq.write_table(frame, sink, **options)
    return sink.getvalue()


@pytest.mark.parametrize("index", INDEXES, ids=str)
def test_a_frame_comes_back_as_it_went_in(index: Any) -> None:
    frame = pd.DataFrame(PLAIN, index=index)
    frame.columns.name = "columns"
    data = written(frame)
    assert_frame_equal(fastpq.read_pandas(data), frame)
    theirs = pd.read_parquet(io.BytesIO(data), engine="pyarrow")
    theirs["zoned"] = theirs["zoned"].astype(frame["zoned"].dtype)      # pyarrow makes nanoseconds of them
    assert_frame_equal(theirs.drop(columns="colour"), frame.drop(columns="colour"))
    assert theirs["colour"].astype(object).where(theirs["colour"].notna(), None).tolist() == ["red", None, "blue"]


@pytest.mark.parametrize("index", INDEXES, ids=str)
def test_what_pyarrow_writes(index: Any) -> None:
    frame = pd.DataFrame(PLAIN, index=index)
    sink = io.BytesIO()
    frame.to_parquet(sink, engine="pyarrow")
    got = fastpq.read_pandas(sink.getvalue())
    assert got["colour"].dtype.ordered
    assert got["colour"].astype(object).where(got["colour"].notna(), None).tolist() == ["red", None, "blue"]
    assert_frame_equal(got.drop(columns="colour"), frame.drop(columns="colour"))


def test_some_columns_bring_the_index() -> None:
    frame = pd.DataFrame(PLAIN, index=pd.Index([7, 5, 6], name="id"))
    assert_frame_equal(fastpq.read_pandas(written(frame), ["text"]), frame[["text"]])
    assert fastpq.read_table(written(frame)).names == [*PLAIN, "id"]


def test_integer_names_and_several_frames() -> None:
    frame = pd.DataFrame({0: [1.5, 2.5], 1: ["a", "b"]})
    assert_frame_equal(fastpq.read_pandas(written(frame)), frame)
    sink = io.BytesIO()
    with fastpq.ParquetWriter(sink) as writer:
        writer.write_table(frame)
        writer.write_table(frame)
    assert_frame_equal(fastpq.read_pandas(sink.getvalue()), pd.concat([frame, frame], ignore_index=True))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"index_columns": 7}', '{"columns": 1}', '{"columns": [{"field_name": "x"}]}'])
def test_metadata_that_is_none(text: str) -> None:
    sink = io.BytesIO()
    fastpq.write_table({"x": np.arange(3)}, sink, key_value_metadata={"pandas": text})
    assert_frame_equal(fastpq.read_pandas(sink.getvalue()), pd.DataFrame({"x": np.arange(3)}))


def test_frames_that_are_refused() -> None:
    with pytest.raises(SchemaError, match="has two columns named 'a': rename"):
        written(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_without_pyarrow() -> None:
    """In a process that cannot import it."""
    code = """
import sys
sys.modules["pyarrow"] = None
import io, pandas as pd, fastpq
frame = pd.DataFrame({"a": [1, 2], "s": ["x", None], "c": pd.Categorical(["u", "v"])}, index=pd.Index([3, 4], name="i"))
sink = io.BytesIO()
fastpq.write_table(frame, sink)
pd.testing.assert_frame_equal(fastpq.read_pandas(sink.getvalue()), frame)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=1200)


@pytest.mark.parametrize(
    "values",
    [
        pd.Categorical([1, None, 2]),
        pd.Categorical([None, None, None], categories=[]),
        pd.Categorical(pd.to_datetime(["2020-01-01", None, "2021-01-01"])),
        pd.Categorical([0.5, None, -1.0]),
    ],
    ids=["integers", "none", "dates", "floats"],
)
def test_categories_that_are_no_text(values: pd.Categorical) -> None:
    frame = fastpq.read_pandas(written(pd.DataFrame({"c": values})))
    assert isinstance(frame["c"].dtype, pd.CategoricalDtype)
    assert [None if pd.isna(value) else value for value in frame["c"]] == [None if pd.isna(value) else value for value in values]


def test_sparse_columns_are_written_whole() -> None:
    data = written(pd.DataFrame({"s": pd.arrays.SparseArray([0, 0, 1])}))
    assert fastpq.read_pandas(data)["s"].tolist() == pd.read_parquet(io.BytesIO(data))["s"].tolist() == [0, 0, 1]


def test_later_frames_with_other_categories() -> None:
    sink = io.BytesIO()
    with fastpq.ParquetWriter(sink) as writer:
        for values in (["a", "b"], ["z", "b"]):
            writer.write_table(pd.DataFrame({"c": pd.Categorical(values)}))
    assert fastpq.read_pandas(sink.getvalue())["c"].tolist() == ["a", "b", "z", "b"]
    assert pd.read_parquet(io.BytesIO(sink.getvalue()))["c"].tolist() == ["a", "b", "z", "b"]


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_categories_of_encrypted_files_are_not_in_the_footer(plaintext_footer: bool) -> None:
    frame = pd.DataFrame({"a": range(3), "c": pd.Categorical(["secret 1", "secret 2", "secret 1"])})
    keys = fastpq.FileEncryptionProperties(b"k" * 16, {"c": b"c" * 16}, plaintext_footer=plaintext_footer, unlisted="plaintext")
    data = written(frame, encryption_properties=keys)
    assert b"secret" not in data
    metadata = fastpq.read_metadata(data, decryption_properties=fastpq.FileDecryptionProperties(b"k" * 16))
    assert "secret" not in str(metadata.key_value_metadata)
    readers = fastpq.FileDecryptionProperties(b"k" * 16, {"c": b"c" * 16})
    assert fastpq.read_pandas(data, decryption_properties=readers)["c"].tolist() == frame["c"].tolist()


# Metadata is anybody's text: nonsense in it is left out, and what contradicts the values is a typed error.
NONSENSE: list[tuple[str, Any]] = [
    ("columns", {"not": "a list"}),
    ("columns", [["a"], None, {"field_name": ["a"], "name": {"b": 1}}, {"field_name": "int", "name": [1]}]),
    ("columns", [{"field_name": "text", "pandas_type": "categorical", "metadata": {"categories": [[1], {}, None, "a", "a", 1]}}]),
    ("columns", [{"field_name": "text", "numpy_type": ["object"], "metadata": "none"}]),
    ("column_indexes", [{"name": ["x"], "numpy_type": {}}]),
    ("column_indexes", "columns"),
    ("index_columns", "int"),
    ("index_columns", [["int"], None, 1, "int", "int", "missing"]),
    ("index_columns", [{"kind": "range", "start": 0, "stop": 10**40, "step": 1}]),
    ("index_columns", [{"kind": "range", "start": 0, "stop": 3, "step": 1, "name": ["x"]}]),
    ("index_columns", [{"kind": "range", "start": 0, "stop": "3", "step": None}]),
]
CONTRADICTIONS = [
    {"field_name": "zoned", "metadata": {"timezone": "Nowhere/Land"}},
    {"field_name": "zoned", "metadata": {"timezone": "../../etc/passwd"}},
    {"field_name": "zoned", "metadata": {"timezone": "\0"}},
    {"field_name": "int", "numpy_type": "Int8"},
]


def forged(key: str, found: Any) -> bytes:
    frame = pd.DataFrame({"int": [1, 2, 300], "text": ["a", "b", None], "zoned": PLAIN["zoned"]})
    table, _ = table_from_dataframe(frame, with_categories=False)
    sink = io.BytesIO()
    fastpq.write_table(table, sink, key_value_metadata={"pandas": json.dumps({key: found})})
    return sink.getvalue()


@pytest.mark.parametrize(("key", "found"), NONSENSE, ids=str)
def test_nonsense_in_the_metadata_is_left_out(key: str, found: Any) -> None:
    frame = fastpq.read_pandas(forged(key, found), columns=["int", "text"])
    assert frame.reset_index()["int"].tolist() == [1, 2, 300]
    assert frame["text"].dropna().tolist() == ["a", "b"]


@pytest.mark.parametrize("entry", CONTRADICTIONS, ids=str)
def test_metadata_that_contradict_the_values(entry: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="pandas' metadata") as caught:
        fastpq.read_pandas(forged("columns", [entry]))
    assert caught.value.context["column"] == entry["field_name"]


@pytest.mark.parametrize("text", ["[]", "{", "null", '"x"', "[" * 100_000])
def test_metadata_that_are_no_object(text: str) -> None:
    sink = io.BytesIO()
    fastpq.write_table({"int": np.arange(3)}, sink, key_value_metadata={"pandas": text})
    assert_frame_equal(fastpq.read_pandas(sink.getvalue()), pd.DataFrame({"int": np.arange(3)}))


TIME_TYPES = [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]


@pytest.mark.parametrize("nulls", [True, False])
@pytest.mark.parametrize("type_", TIME_TYPES, ids=str)
def test_times_of_day_are_those_of_pyarrow(type_: pa.DataType, nulls: bool) -> None:
    times = [datetime.time(0), datetime.time(23, 59, 59), datetime.time(1, 2, 3)] + [None] * nulls
    table = pa.table({"t": pa.array(times, type_)})
    pq.write_table(table, sink := io.BytesIO())
    frame = fastpq.read_pandas(sink.getvalue())
    assert_frame_equal(frame, table.to_pandas())
    assert frame["t"].tolist() == times
    fastpq.write_table(frame, again := io.BytesIO())
    assert_frame_equal(fastpq.read_pandas(again.getvalue()), frame)
    assert pq.read_table(io.BytesIO(again.getvalue()))["t"].to_pylist() == times
    empty = fastpq.read_pandas(sink.getvalue(), filters=[("t", ">", datetime.time(23, 59, 59))])
    assert_frame_equal(empty, table.slice(0, 0).to_pandas())


def test_times_finer_than_microseconds_stay_timedelta64() -> None:
    table = pa.table({"t": pa.array([1, None, 86_400 * 10**9 - 1], pa.int64()).cast(pa.time64("ns"))})
    with pytest.raises(pa.ArrowInvalid, match="non-zero nanoseconds"):
        table.to_pandas()
    pq.write_table(table, sink := io.BytesIO())
    got = fastpq.read_pandas(sink.getvalue())["t"]
    assert got.dtype == "timedelta64[ns]"
    assert got.isna().tolist() == [False, True, False]
    assert got.dropna().astype("int64").tolist() == [1, 86_400 * 10**9 - 1]


def test_times_outside_of_a_day_are_timedelta64() -> None:
    table = pa.table({"t": pa.array([-1, 0], pa.int64()).cast(pa.time64("us"))})
    pq.write_table(table, sink := io.BytesIO())
    as_stored = fastpq.ReaderProperties(verify_times=False)
    got = fastpq.read_pandas(sink.getvalue(), properties=as_stored)["t"]
    assert got.tolist() == [pd.Timedelta(-1, "us"), pd.Timedelta(0)]


def test_a_frame_of_timedelta64_comes_back_as_timedelta64() -> None:
    frame = pd.DataFrame({"t": np.array([0, 86_399_999_999], "m8[us]")})
    assert_frame_equal(fastpq.read_pandas(written(frame)), frame)


@pytest.mark.parametrize("write", [written, lambda frame: frame.to_parquet(engine="pyarrow")], ids=["fastpq", "pyarrow"])
def test_ordered_categories_keep_their_order(write: Any) -> None:
    sizes = pd.Categorical(["high", "low", "mid"], ["low", "mid", "high", "unused"], ordered=True)
    frame = pd.DataFrame({"size": sizes})
    found = fastpq.read_pandas(write(frame))
    assert_frame_equal(found, frame)
    assert found["size"].max() == "high"
    table = pa.table(fastpq.read_table(write(frame)))
    assert table["size"].type.ordered
    assert table["size"].chunk(0).dictionary.to_pylist() == ["low", "mid", "high", "unused"]


def test_an_order_that_a_file_does_not_keep_is_not_claimed() -> None:
    frame = pd.DataFrame({"n": pd.Categorical([3, 1, 2], [3, 2, 1], ordered=True)})
    found = fastpq.read_pandas(frame.to_parquet(engine="pyarrow"))     # integers, in pyarrow's file
    assert found["n"].tolist() == [3, 1, 2]
    assert not isinstance(found["n"].dtype, pd.CategoricalDtype)


def test_categories_of_an_encrypted_file_keep_their_order() -> None:
    frame = pd.DataFrame({"c": pd.Categorical(["b", "c", "b"], ["c", "b", "a"], ordered=True)})
    keys = fastpq.FileEncryptionProperties(b"k" * 16)
    data = written(frame, encryption_properties=keys)
    assert_frame_equal(fastpq.read_pandas(data, decryption_properties=fastpq.FileDecryptionProperties(b"k" * 16)), frame)


@pytest.mark.parametrize("method", ["write_table", "write_batch"])
def test_later_frames_end_an_order(method: str) -> None:
    for later, is_ordered in ((["z", "b"], False), (["b", "a"], True)):
        sink = io.BytesIO()
        with fastpq.ParquetWriter(sink) as writer:
            for values in (["b", "a"], later):
                categories = sorted({*values, "a", "b"}, reverse=True)
                getattr(writer, method)(pd.DataFrame({"c": pd.Categorical(values, categories, ordered=True)}))
        found = fastpq.read_pandas(sink.getvalue())["c"]
        assert found.tolist() == ["b", "a", *later]
        assert found.dtype.ordered is is_ordered
        table = pa.table(fastpq.read_table(sink.getvalue()))["c"]
        assert table.to_pylist() == found.tolist()
        assert table.type.ordered is is_ordered
        assert not is_ordered or table.chunk(0).dictionary.to_pylist() == ["b", "a"]


@pytest.mark.parametrize("zone", [datetime.timezone(datetime.timedelta(hours=5, minutes=30)), "US/Eastern", "UTC"], ids=str)
def test_zones_are_those_of_pandas(zone: Any) -> None:
    frame = pd.DataFrame({"t": pd.date_range("2024-03-09", periods=3, tz=zone)})
    data = written(frame)
    assert_frame_equal(pd.read_parquet(io.BytesIO(data), engine="pyarrow"), frame)
    assert_frame_equal(fastpq.read_pandas(data), frame)


def test_old_names_of_offsets_are_read() -> None:
    entry = {"field_name": "zoned", "pandas_type": "datetimetz", "metadata": {"timezone": "UTC+05:30"}}
    assert str(fastpq.read_pandas(forged("columns", [entry]))["zoned"].dtype.tz) == "UTC+05:30"


def test_a_table_is_no_array() -> None:
    table = fastpq.read_table(written(pd.DataFrame({"a": [1], "b": [2.5]})))
    for take in (np.asarray, pd.DataFrame):
        with pytest.raises(SchemaError, match="not an array"):
            take(table)
    assert_frame_equal(pd.DataFrame(table.to_numpy(nulls="nan")), pd.DataFrame({"a": [1], "b": [2.5]}))


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_dtype_backends_are_those_of_pandas(backend: Any) -> None:
    names = ["int", "float", "flag", "text", "day", "maybe", "perhaps"]
    frame = pd.DataFrame({name: PLAIN[name] for name in names}, index=pd.Index([7, 5, 6], name="id"))
    data = frame.to_parquet(engine="pyarrow")
    theirs = pd.read_parquet(io.BytesIO(data), engine="pyarrow", dtype_backend=backend)
    found = fastpq.read_pandas(data, dtype_backend=backend)
    if backend == "pyarrow":        # text is large_string there, string here
        theirs["text"] = theirs["text"].astype(found["text"].dtype)
    assert_frame_equal(found, theirs)
    with pytest.raises(SchemaError, match="dtype_backend must be one of"):
        fastpq.read_pandas(data, dtype_backend="numpy")  # type: ignore[arg-type]


def test_attrs_and_what_json_does_not_hold() -> None:
    frame = pd.DataFrame({"a": [1]})
    frame.attrs = {"unit": "m"}
    assert pd.read_parquet(io.BytesIO(written(frame))).attrs == fastpq.read_pandas(written(frame)).attrs == {"unit": "m"}
    keys = fastpq.FileEncryptionProperties(b"k" * 16)
    readers = fastpq.FileDecryptionProperties(b"k" * 16)
    assert fastpq.read_pandas(written(frame, encryption_properties=keys), decryption_properties=readers).attrs == {}
    frame.attrs = {"when": object()}
    with pytest.warns(UserWarning, match="attrs of the DataFrame are left out"):
        assert fastpq.read_pandas(written(frame)).attrs == {}


# Labels that contradict their entry stay text.
LABELS: list[dict[str, Any]] = [
    {"pandas_type": "int64", "numpy_type": "int64"},
    {"pandas_type": "datetime", "numpy_type": "datetime64[us]"},
    {"pandas_type": "datetimetz", "numpy_type": "datetime64[us]", "metadata": {"timezone": "Nowhere/Land"}},
    {"pandas_type": "decimal", "numpy_type": "object"},
    {"pandas_type": "unicode", "numpy_type": "object", "metadata": {"labels": "period[Q-XXX]"}},
    {"pandas_type": "unicode", "numpy_type": "object", "metadata": {"labels": "category", "categories": 7}},
    {"pandas_type": "unicode", "numpy_type": "object", "metadata": {"labels": "timedelta64[y]"}},
    {"pandas_type": 7, "numpy_type": ["x"], "metadata": {"labels": []}},
]


@pytest.mark.parametrize("entry", LABELS, ids=str)
def test_labels_that_contradict_their_text_stay_text(entry: dict[str, Any]) -> None:
    found = fastpq.read_pandas(forged("column_indexes", [entry]))
    assert found.columns.tolist() == ["int", "text", "zoned"]
    assert fastpq.read_pandas(forged("column_indexes", [entry, entry])).columns.tolist() == ["int", "text", "zoned"]


# Entries of categories, periods and intervals that do not fit the values, in a column of 1, 2, 300.
FORGED = [
    {"field_name": "int", "pandas_type": "categorical", "metadata": {"categories": ["a", "b"]}},
    {"field_name": "int", "pandas_type": "categorical", "metadata": {"categories": [1, 1]}},
    {"field_name": "int", "pandas_type": "categorical", "metadata": {"categories": [1, 10**30]}},
    {"field_name": "int", "pandas_type": "categorical", "metadata": {"categories": {"left": [1]}}},
    {"field_name": "int", "numpy_type": "interval[int64, right]"},
    {"field_name": "int", "numpy_type": "int64", "metadata": {"sparse": "Sparse[nonsense"}},
]


@pytest.mark.parametrize("entry", FORGED, ids=str)
def test_forged_entries_change_no_value(entry: dict[str, Any]) -> None:
    assert fastpq.read_pandas(forged("columns", [entry]))["int"].tolist() == [1, 2, 300]


def test_a_period_of_no_frequency() -> None:
    with pytest.raises(FormatError, match="pandas' metadata says period"):
        fastpq.read_pandas(forged("columns", [{"field_name": "int", "numpy_type": "period[nonsense]"}]))


@pytest.mark.parametrize("count", [1, 2])
def test_labels_that_are_no_utf8(count: int) -> None:
    """A label in pandas' metadata has a byte that no UTF-8 has; pandas' dtype of text does not take it."""
    out = io.BytesIO()
    fastpq.write_table(pd.DataFrame({f"name{number}": [1, 2] for number in range(count)}), out)
    stored = out.getvalue()
    broken = stored.replace(b'"name": "name0"', b'"name": "nam\xff0"')
    assert broken != stored
    frame = fastpq.read_pandas(broken)
    assert frame.columns.tolist() == ["nam\udcff0", "name1"][:count]
    assert frame["nam\udcff0"].tolist() == [1, 2]
