"""Columns of Python objects in DataFrames: text, bytes, dates, times, decimals and lists, beside pyarrow."""

from __future__ import annotations

import datetime
import io
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.arrays.table import Column, DictionaryValues
from fastpq.errors import FormatError, SchemaError
from fastpq.schema.types import ColumnType, String, Type

ROWS = 3000
TEXTS = ["", "a", "ab", "1234567", "12345678", "a text of more than twelve bytes", "\x7f", "\x80"]
TEXTS += ["é", "naïve", "日本", "\U0001f40d and more text"]
DAY, TIME = datetime.date(1582, 10, 15), datetime.time(23, 59, 59, 999_999)


class OddText(str):
    pass


def objects(values: list[Any]) -> pd.Series[Any]:
    return pd.Series(np.fromiter(values, dtype=object, count=len(values)), dtype=object)


def written(frame: pd.DataFrame) -> io.BytesIO:
    sink = io.BytesIO()
    fastpq.write_table(frame, sink)
    return sink


def of_pyarrow(frame: pd.DataFrame, **options: Any) -> io.BytesIO:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(frame), sink, **options)
    return sink


COLUMNS: dict[str, list[Any]] = {
    "text": TEXTS * 250,
    "text with nulls": [*TEXTS, None] * 200,
    "bytes": [text.encode() for text in TEXTS] * 200,
    "bytes with nulls": [b"a", None, b"", bytes(range(256))] * 300,
    "dates": [DAY, None, datetime.date.max, datetime.date(1970, 1, 1)] * 300,
    "times": [TIME, datetime.time(), None, datetime.time(1, 2, 3)] * 300,
    "decimals": [Decimal("1.50"), None, Decimal("-99999.99"), Decimal(0)] * 300,
    "many decimals": [Decimal(number).scaleb(-3) for number in range(5000)],
    "nothing": [None] * 100,
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("rows_of_a_group", [None, 100])
def test_objects_there_and_back(name: str, rows_of_a_group: int | None) -> None:
    frame = pd.DataFrame({"x": objects(COLUMNS[name])})
    ours = written(frame)
    assert pq.read_table(ours)["x"].to_pylist() == COLUMNS[name]
    for file in (ours, of_pyarrow(frame, row_group_size=rows_of_a_group)):
        found = fastpq.read_pandas(file)["x"]
        assert found.dtype == object
        assert found.tolist() == COLUMNS[name]


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"dictionary_pagesize_limit": 200}, {"row_group_size": 500}])
def test_text_of_any_encoding(options: dict[str, Any]) -> None:
    values = [None if number % 7 == 0 else f"é {number % 400}" for number in range(ROWS)]
    frame = pd.DataFrame({"x": objects(values)})
    frame.index = pd.Index(np.array(values[::-1], object), dtype=object)
    found = fastpq.read_pandas(of_pyarrow(frame, **options))
    assert found["x"].tolist() == values
    assert found.index.tolist() == values[::-1]
    chosen = fastpq.read_pandas(of_pyarrow(frame, **options), filters=("x", "==", "é 5"))
    assert chosen["x"].tolist() == ["é 5"] * values.count("é 5")


def test_rows_of_one_dictionary_entry_share_an_object() -> None:
    texts, values = ["a shared text", "another", None] * 1000, [b"bytes", b"more", None] * 1000
    frame = pd.DataFrame({"x": objects(texts), "y": objects(values)})
    found = fastpq.read_pandas(of_pyarrow(frame, row_group_size=900))
    for name in "xy":
        assert found[name].tolist() == frame[name].tolist()
        assert len({id(value) for value in found[name]}) == 3


def test_text_of_the_python_storage() -> None:
    for dtype in (pd.StringDtype("python", na_value=np.nan), pd.StringDtype("python")):
        frame = pd.DataFrame({"x": pd.Series([*TEXTS, None] * 50, dtype=dtype)})
        pd.testing.assert_frame_equal(fastpq.read_pandas(written(frame)), frame)


def coded(entries: list[bytes], codes: list[int]) -> Column:
    dictionary = fastpq.Table({"x": entries})["x"]
    assert isinstance(dictionary, Column)
    text = ColumnType(Type.BYTE_ARRAY, None, String())
    return Column(text, DictionaryValues(np.array(codes, np.int32), dictionary._with(type=text)), nullable=False)


def test_broken_dictionaries() -> None:
    with pytest.raises(FormatError, match="value 2 is not UTF-8"):
        coded([b"a", b"\xff\xff"], [0, 0, 1]).to_pylist()
    assert coded([b"a", b"\xff\xff"], [0, 0]).to_pylist() == ["a", "a"]
    for code in (2, -1):
        with pytest.raises(FormatError, match="code is outside"):
            coded([b"a", b"b"], [0, code]).to_pylist()
    with pytest.raises(FormatError, match="value 0 is not UTF-8"):
        coded([b"ok", b"1234567\xe9"], [1]).to_pylist()


MISSING = [None, np.nan, pd.NA, pd.NaT]


@pytest.mark.parametrize("value", ["text", b"bytes", DAY, TIME, Decimal("1.5"), datetime.datetime(2020, 1, 1), [1, 2], {"a": 1}])
@pytest.mark.parametrize("missing", MISSING)
def test_missing_values_among_objects(value: Any, missing: Any) -> None:
    if missing is np.nan and isinstance(value, list | dict):
        return      # pyarrow takes NaN as a missing list, fastpq as a value of another type
    frame = pd.DataFrame({"x": objects([value, missing, value])})
    found = pq.read_table(written(frame))["x"].to_pylist()
    assert found == [value, None, value]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", b"b"], "value 1 is a builtins.bytes among values of kind str"),
        (["a", 1], "value 1 is a builtins.int among"),
        ([b"a", None, "b"], "value 2 is a builtins.str among values of kind bytes"),
        (["a", "\ud800"], "value 1 has a surrogate"),
        (["a", "é\udfff"], "value 1 has a surrogate"),
        ([DAY, TIME], "value 1 is a datetime.time among values of kind date"),
        ([DAY, None, datetime.datetime(2020, 1, 1)], "value 2 is a datetime.datetime among values of kind date"),
        ([TIME, TIME.replace(tzinfo=datetime.UTC)], "value 1 is a time with a time zone"),
        ([Decimal(1), 2.5], "value 1 is a builtins.float among values of kind decimal"),
        ([Decimal(1), Decimal("Infinity")], "value 1, Infinity, is not a finite decimal"),
        ([[1], "text"], "value 1 is a str among lists"),
        ([{"a": 1}, [1]], "value 1 is a list among dicts"),
        (["a", 1.5], "value 1 is a builtins.float among"),
    ],
)
def test_other_values_in_a_column(values: list[Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message) as raised:
        written(pd.DataFrame({"x": objects(values)}))
    assert "column x]" in str(raised.value)


def test_subclasses_of_text() -> None:
    values = [OddText("é"), "a", np.str_("b"), OddText("plain")]
    assert pq.read_table(written(pd.DataFrame({"x": objects(values)})))["x"].to_pylist() == ["é", "a", "b", "plain"]


def test_decimals_beyond_a_type() -> None:
    type_ = fastpq.Table({"x": [Decimal("1.5")]})["x"].type
    with pytest.raises(SchemaError, match=r"value 2, 1\.25, is not a number with at most 1 decimal places \(scale 1\)"):
        fastpq.write_table({"x": [Decimal("1.5"), None, Decimal("1.25")]}, io.BytesIO(), schema={"x": type_})
    with pytest.raises(SchemaError, match="value 0 has more than 2 digits"):
        fastpq.write_table({"x": [Decimal("99.5")]}, io.BytesIO(), schema={"x": type_})


@pytest.mark.parametrize(
    "values",
    [
        [np.arange(3), None, np.arange(0), np.arange(5)],
        [np.arange(3.0), np.array([np.nan])],
        [np.array(["2020-01-01"], "M8[us]"), np.array([], "M8[us]")],
        [np.arange(6)[::2], np.arange(4)[::-1]],
        [np.arange(3), [4, 5], (6,)],
        [np.arange(2, dtype=np.int32), np.arange(2, dtype=np.int64)],
        [["a", "b"], None, np.array(["c"], object)],
        [[[1], [2, 3]], [[]], None],
        [[1, 2], pd.NA, [3]],
    ],
)
def test_lists_there_and_back(values: list[Any]) -> None:
    frame = pd.DataFrame({"x": objects(values)})
    expected = pa.array([None if value is pd.NA else value for value in values]).to_pylist()
    file = written(frame)
    assert repr(pq.read_table(file)["x"].to_pylist()) == repr(expected)     # of NaN, too
    found = fastpq.read_pandas(file)["x"]
    peer = pd.read_parquet(file, engine="pyarrow")["x"]
    assert [type(value) for value in found] == [type(value) for value in peer]
    assert [None if value is None else np.asarray(value).dtype for value in found] == [
        None if value is None else np.asarray(value).dtype for value in peer]
    assert repr([plain(value) for value in found]) == repr([plain(value) for value in peer])


def plain(value: Any) -> Any:
    return [plain(each) for each in value] if isinstance(value, np.ndarray) else value



def test_a_signaling_nan_is_an_error_of_its_column() -> None:
    frame = pd.DataFrame({"a": pd.Series([Decimal("2.5"), Decimal("snan")], dtype=object)})
    with pytest.raises(fastpq.SchemaError, match=r"signaling NaN.*column a"):
        fastpq.write_table(frame, io.BytesIO())
