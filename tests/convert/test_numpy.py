"""Arrays, objects and Arrow data as columns: types, nulls, exactness, and what is refused."""

from __future__ import annotations

import datetime
import decimal
import io
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.dtypes import StringDType

import fastpq
from fastpq.arrays.table import BinaryOffsets, BinaryViews, Column, ListColumn, Table
from fastpq.convert.caller_input import table_from
from fastpq.convert.numpy_input import column_from_numpy
from fastpq.errors import SchemaError
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.types import (
    Bson,
    ColumnType,
    Date,
    Decimal,
    Float16,
    Integer,
    Interval,
    Json,
    String,
    Time,
    Timestamp,
    Type,
    Unknown,
    Uuid,
)
from tests.narrowing import flat

TEXT = ColumnType(Type.BYTE_ARRAY, None, String())
BYTES = ColumnType(Type.BYTE_ARRAY)
UTC = datetime.UTC


def values_of(column: Column) -> np.ndarray[Any, Any]:
    assert isinstance(column.values, np.ndarray)
    return column.values


NUMBERS = [
    (np.bool_, ColumnType(Type.BOOLEAN)),
    (np.int8, ColumnType(Type.INT32, None, Integer(8, True))),
    (np.int16, ColumnType(Type.INT32, None, Integer(16, True))),
    (np.int32, ColumnType(Type.INT32)),
    (np.int64, ColumnType(Type.INT64)),
    (np.uint8, ColumnType(Type.INT32, None, Integer(8, False))),
    (np.uint16, ColumnType(Type.INT32, None, Integer(16, False))),
    (np.uint32, ColumnType(Type.INT32, None, Integer(32, False))),
    (np.uint64, ColumnType(Type.INT64, None, Integer(64, False))),
    (np.float16, ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 2, Float16())),
    (np.float32, ColumnType(Type.FLOAT)),
    (np.float64, ColumnType(Type.DOUBLE)),
]


@pytest.mark.parametrize(("dtype", "expected"), NUMBERS, ids=lambda value: str(value))
def test_numbers(dtype: Any, expected: ColumnType) -> None:
    array = np.array([0, 1, 1, 0, 1], dtype)
    array.flags.writeable = False
    column = flat(column_from_numpy(array))
    assert (column.type, column.nullable, column.null_count) == (expected, False, 0)
    assert np.shares_memory(values_of(column), array)
    assert np.shares_memory(column.to_numpy(), array)
    for other in (array.astype(array.dtype.newbyteorder(">")), np.repeat(array, 2)[::2], array[::-1][::-1]):
        again = column_from_numpy(other)
        assert again.type == expected
        assert again.to_numpy().tolist() == array.tolist()
    masked = flat(column_from_numpy(np.ma.MaskedArray(array, mask=[False, True, False, False, True])))
    assert (masked.nullable, masked.null_count) == (True, 2)
    assert values_of(masked).tolist() == [0, 0, 1, 0, 0]  # zero where null
    assert masked.to_pylist() == [False, None, True, False, None]
    assert array.tolist() == [0, 1, 1, 0, 1]
    assert len(column_from_numpy(array[:0])) == 0


def test_unaligned_values_are_copied() -> None:
    records = np.zeros(3, np.dtype([("a", "i1"), ("b", "i8"), ("c", "U2")]))
    records["b"] = [1, 2, 3]
    records["c"] = ["x", "yé", ""]
    assert not records["b"].flags.aligned
    table = table_from(records)
    assert table.to_pylist() == [{"a": 0, "b": 1, "c": "x"}, {"a": 0, "b": 2, "c": "yé"}, {"a": 0, "b": 3, "c": ""}]
    assert values_of(table.flat("b")).flags.aligned


def test_masked_records() -> None:
    records: Any = np.ma.array([(1, 2.0), (3, 4.0)], dtype=[("a", "i4"), ("b", "f8")], mask=[(False, True), (False, False)])
    table = table_from(records)
    assert table.to_pylist() == [{"a": 1, "b": None}, {"a": 3, "b": 4.0}]
    assert table["a"].nullable


NAN = float("nan")


def test_nan_is_a_value() -> None:
    column = column_from_numpy(np.array([1.0, NAN]))
    assert (column.nullable, column.null_count) == (False, 0)
    assert np.isnan(column.to_numpy()[1])


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("Y", Date()), ("M", Date()), ("W", Date()), ("D", Date()),
        ("h", Timestamp("ms")), ("m", Timestamp("ms")), ("s", Timestamp("ms")), ("ms", Timestamp("ms")),
        ("us", Timestamp("us")), ("ns", Timestamp("ns")), ("ps", Timestamp("ns")),
        ("10ms", Timestamp("ms")), ("25s", Timestamp("ms")),
    ],
)
def test_datetimes(unit: str, expected: Any) -> None:
    array = np.array(["1970-02-02", "NaT", "1970-01-01"], "M8[us]").astype(f"M8[{unit}]")
    column = flat(column_from_numpy(array))
    assert column.type.logical == expected
    assert column.null_count == 1
    assert column.nullable
    assert values_of(column)[1] == 0
    shown = column.to_numpy(nulls="nan")
    assert (shown[[0, 2]] == array[[0, 2]]).all()
    assert np.isnat(shown).tolist() == [False, True, False]
    assert not column_from_numpy(array[[0, 2]]).nullable


@pytest.mark.parametrize(
    "array",
    [
        np.array([1], "M8[ps]"),
        np.array([1 << 62], "M8[s]"),
        np.array([1 << 33], "M8[D]"),
        np.empty(1, "M8"),
        np.array([3], "m8[Y]"),
        np.array([1j], np.clongdouble),
        np.array([1.0], np.longdouble),
        np.zeros(2, "V0"),
        np.zeros((2, 2), object),
        np.array(5),
        np.zeros(2, [("a", "g")]),
        "text",
        {1, 2},
    ],
    ids=lambda value: getattr(value, "dtype", type(value).__name__),
)
def test_arrays_without_a_type(array: Any) -> None:
    with pytest.raises(SchemaError, match=r"\[column c\]"):
        column_from_numpy(array, name="c")


def test_datetimes_of_another_unit() -> None:
    whole = np.array(["2020-01-01", "2020-01-02"], "M8[ns]")
    day = ColumnType(Type.INT32, None, Date())
    assert column_from_numpy(whole, type=day).to_numpy().tolist() == whole.astype("M8[D]").tolist()
    assert column_from_numpy(whole, type=ColumnType(Type.INT96)).to_numpy().tolist() == whole.tolist()
    micro = column_from_numpy(whole, type=ColumnType(Type.INT64, None, Timestamp("us", utc=True)))
    assert micro.to_pylist()[0] == datetime.datetime(2020, 1, 1, tzinfo=UTC)
    with pytest.raises(SchemaError, match=r"value 1, 2020-01-01T00:00:00\.000000001, does not fit a column of INT32 Date"):
        column_from_numpy(np.array(["2020-01-01", "2020-01-01T00:00:00.000000001"], "M8[ns]"), type=day)
    with pytest.raises(SchemaError, match="value 0"):
        column_from_numpy(np.array(["2500-01-01"], "M8[ms]"), type=ColumnType(Type.INT64, None, Timestamp("ns")))


@pytest.mark.parametrize("place", [0, 3, 6])
@pytest.mark.parametrize("count", [1 << 40, -(1 << 40)])
def test_datetimes_beyond_another_unit(place: int, count: int) -> None:
    """NumPy wraps around, or since 2.5 raises an error without the place."""
    array = np.array([1, 2, 3, 4, 5, 6, 7], "M8[s]")
    array[place] = np.datetime64(count, "s")
    array[(place + 1) % 7] = np.datetime64("NaT", "s")
    with pytest.raises(SchemaError, match=f"value {place}, .* does not fit"):
        column_from_numpy(array, type=ColumnType(Type.INT64, None, Timestamp("ns")))


def test_times() -> None:
    of_day = ColumnType(Type.INT32, None, Time("ms"))
    column = column_from_numpy(np.array([0, 86_399, "NaT"], "m8[s]"), type=of_day)
    assert column.to_pylist() == [datetime.time(), datetime.time(23, 59, 59), None]
    assert column_from_numpy([datetime.time(1)]).type == ColumnType(Type.INT64, None, Time("us"))
    for bad in (-1, 86_400):
        with pytest.raises(SchemaError, match=r"value 1, .*not a time of day.*an INT64 column for durations.*\[column t\]"):
            column_from_numpy(np.array([0, bad], "m8[s]"), type=of_day, name="t")
    with pytest.raises(SchemaError, match="times of day do not fit a column of INT64"):
        column_from_numpy([datetime.time(1)], type=ColumnType(Type.INT64))
    with pytest.raises(SchemaError, match="value 0, -1"):
        column_from_numpy(np.array([-1]), type=ColumnType(Type.INT64, None, Time("us")))


UNITS = [("W", "s"), ("D", "s"), ("m", "s"), ("s", "s"), ("ms", "ms"), ("us", "us"), ("ns", "ns")]


@pytest.mark.parametrize(("unit", "stored"), UNITS)
def test_durations(unit: str, stored: str) -> None:
    array = np.array([0, -5, "NaT", 10**6], f"m8[{unit}]")
    column = column_from_numpy(array)
    assert column.type == ColumnType(Type.INT64)
    found = column.to_numpy(nulls="nan")
    assert found.dtype == f"m8[{stored}]"
    np.testing.assert_array_equal(found, array)
    fastpq.write_table({"d": array, "n": [[array[1]], [], [], []]}, sink := io.BytesIO())
    again = fastpq.read_table(sink.getvalue())
    np.testing.assert_array_equal(again["d"].to_numpy(nulls="nan"), array)
    assert again["d"].to_numpy(nulls="nan").dtype == f"m8[{stored}]"
    theirs = pq.read_table(io.BytesIO(sink.getvalue()))
    assert theirs["d"].type == pa.duration(stored)
    assert theirs["d"].to_pylist() == pa.array(array.astype(f"m8[{stored}]")).to_pylist()
    assert theirs["n"].type == pa.list_(pa.field("element", pa.duration(stored), False))


def test_durations_as_python_objects() -> None:
    days = [datetime.timedelta(days=2), None, datetime.timedelta(microseconds=-1)]
    assert column_from_numpy(days).to_pylist() == days
    assert column_from_numpy(np.array([1], "m8[ns]")).to_pylist() == [np.timedelta64(1, "ns")]
    beyond = np.array([2**62], "m8[s]")
    assert column_from_numpy(beyond).to_pylist() == [beyond[0]]
    assert column_from_numpy(np.array([0], "m8[s]"), type=ColumnType(Type.INT64)).to_pylist() == [datetime.timedelta()]
    for refused in (np.empty(1, "m8"), np.array([1], "m8[M]"), np.array([1], "m8[ps]")):
        with pytest.raises(SchemaError):
            column_from_numpy(refused)


def test_numbers_and_missing_text_among_objects() -> None:
    mixed = column_from_numpy([1, None, 2.5])
    assert (mixed.type, mixed.to_pylist()) == (ColumnType(Type.DOUBLE), [1.0, None, 2.5])
    assert column_from_numpy(["a", float("nan"), "b"]).to_pylist() == ["a", None, "b"]
    assert column_from_numpy([datetime.date(2020, 1, 1), np.nan]).to_pylist() == [datetime.date(2020, 1, 1), None]
    with pytest.raises(SchemaError, match="value 1, 9007199254740993, is an integer among floats"):
        column_from_numpy([0.5, 2**53 + 1])
    with pytest.raises(SchemaError, match=r"value 1 is a builtins\.float among values of kind str"):
        column_from_numpy(["a", 1.5])


def test_lists_of_arrays_keep_their_dtype() -> None:
    column = column_from_numpy([np.array([1, 2], np.float32), None, np.array([3], np.float32)])
    assert isinstance(column, ListColumn)
    assert column.elements.type == ColumnType(Type.FLOAT)
    assert column.to_pylist() == [[1.0, 2.0], None, [3.0]]
    assert column_from_numpy([np.array([1], np.int8), np.array([2.5])]).to_pylist() == [[1.0], [2.5]]


TEXTS = ["", "a", "héé", "日本語", "😀", "x" * 50]


@pytest.mark.parametrize(
    "array",
    [
        np.array(TEXTS),
        np.array(TEXTS, ">U50"),
        np.array(TEXTS, StringDType()),
        np.repeat(np.array(TEXTS, StringDType()), 3)[::3],
        np.array(TEXTS, object),
        np.repeat(np.array(TEXTS, object), 2)[::2],
        TEXTS,
        tuple(TEXTS),
        [np.str_(text) for text in TEXTS],
    ],
    ids=["U", ">U", "StringDType", "strided StringDType", "object", "strided object", "list", "tuple", "str_"],
)
def test_text(array: Any) -> None:
    column = column_from_numpy(array)
    assert column.type == TEXT
    assert not column.nullable
    assert column.to_pylist() == TEXTS
    assert isinstance(column.values, BinaryOffsets)
    assert column.values.data.tobytes() == "".join(TEXTS).encode()
    assert column_from_numpy(array, type=BYTES).to_pylist() == [text.encode() for text in TEXTS]
    assert column_from_numpy(array, type=ColumnType(Type.BYTE_ARRAY, None, Json())).to_pylist() == TEXTS


@pytest.mark.parametrize("missing", [None, np.nan, "NA"])
def test_missing_strings(missing: Any) -> None:
    dtype = StringDType(na_object=missing)
    array = np.array(["a", missing, "", "long enough for the arena"], dtype)
    column = column_from_numpy(array)
    assert column.nullable
    assert column.to_pylist() == ["a", None, "", "long enough for the arena"]
    assert column_from_numpy(array[[0, 2]]).nullable
    assert column_from_numpy(np.array([], dtype)).to_pylist() == []
    with pytest.raises(SchemaError, match=r"value 1 is null .*\[column s\]"):
        column_from_numpy(array, nullable=False, name="s")


@given(st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)))
def test_any_text_through_every_way(texts: list[str | None]) -> None:
    dtype = StringDType(na_object=None)
    ways = [texts, np.array(texts, dtype)] if texts else [np.array(texts, dtype)]
    for way in ways:
        column = column_from_numpy(way)
        if None not in texts or set(texts) != {None}:
            assert column.to_pylist() == texts
        if column.type == TEXT:
            assert column.to_numpy(nulls="nan", strings="object").tolist() == texts
            assert column.as_views().to_numpy().tolist() == texts


def test_string_arrays_in_threads() -> None:
    # NumPy guards the strings of an array with a lock: no thread may wait for it while it holds the GIL
    array = np.array([f"number {i} of a long array" for i in range(20_000)], StringDType())

    def there_and_back(_: int) -> bool:
        return bool((flat(column_from_numpy(array)).as_views().to_numpy() == array).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(there_and_back, range(24), timeout=600))


def test_text_that_utf8_cannot_hold() -> None:
    for array in (np.array(["fine", "\ud800"]), ["fine", "a\udfff"]):
        with pytest.raises(SchemaError, match=r"value 1 has a surrogate.*\[column s\]"):
            column_from_numpy(array, name="s")


def test_bytes() -> None:
    array = np.array([b"ab", b"", b"c\0d"])
    column = column_from_numpy(array)
    assert column.type == BYTES
    assert column.to_pylist() == [b"ab", b"", b"c\0d"]
    assert column_from_numpy(array, type=TEXT).to_pylist() == ["ab", "", "c\0d"]
    assert column_from_numpy(array, type=ColumnType(Type.BYTE_ARRAY, None, Bson())).to_pylist() == array.tolist()
    fixed = column_from_numpy(array, type=ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 3))
    assert fixed.to_pylist() == [b"ab\0", b"\0\0\0", b"c\0d"]
    assert column_from_numpy([b"x", None, b"\xff"]).to_pylist() == [b"x", None, b"\xff"]
    for bad in (np.array([b"ok", b"\xff"]), [b"ok", b"\xff"]):
        with pytest.raises(SchemaError, match="value 1 is not UTF-8"):
            column_from_numpy(bad, type=TEXT)
    with pytest.raises(SchemaError, match="fit a column of FIXED_LEN_BYTE_ARRAY"):
        column_from_numpy(array, type=ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 4))


def test_void() -> None:
    array = np.array([b"0123456789abcdef", b"\0" * 16], "V16")
    column = column_from_numpy(array)
    assert column.type == ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16)
    assert np.shares_memory(values_of(column), array)
    assert column_from_numpy(array, type=BYTES).to_pylist() == [b"0123456789abcdef", b"\0" * 16]
    uuids = column_from_numpy(array, type=ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16, Uuid()))
    assert uuids.to_pylist()[1] == uuid.UUID(int=0)
    interval = ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 12, Interval())
    assert column_from_numpy(np.zeros(1, "V12"), type=interval).to_pylist() == [(0, 0, 0)]
    for type_ in (interval, ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16, Decimal(38, 0)), ColumnType(Type.INT32)):
        with pytest.raises(SchemaError, match="16 bytes do not fit"):
            column_from_numpy(array, type=type_)
    masked = column_from_numpy(np.ma.MaskedArray(array, mask=[True, False]))
    assert masked.to_pylist() == [None, b"\0" * 16]


D = decimal.Decimal
OBJECTS: list[tuple[list[Any], ColumnType]] = [
    ([True, None], ColumnType(Type.BOOLEAN)),
    ([1, None, -(2**63)], ColumnType(Type.INT64)),
    ([1, 2**64 - 1], ColumnType(Type.INT64, None, Integer(64, False))),
    ([np.int16(5), 6, np.uint8(7)], ColumnType(Type.INT64)),
    ([1.5, None, NAN], ColumnType(Type.DOUBLE)),
    ([np.float32(1.5), 2.5], ColumnType(Type.DOUBLE)),
    ([D("1.23"), None, D(-100)], ColumnType(Type.INT32, None, Decimal(5, 2))),
    ([D("0.001")], ColumnType(Type.INT32, None, Decimal(3, 3))),
    ([D(0)], ColumnType(Type.INT32, None, Decimal(1, 0))),
    ([D("1E+3"), D("0E-2")], ColumnType(Type.INT32, None, Decimal(6, 2))),
    ([D(10**17), D("0.1")], ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 9, Decimal(19, 1))),
    ([D(10**17)], ColumnType(Type.INT64, None, Decimal(18, 0))),
    ([D(-(10**37))], ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16, Decimal(38, 0))),
    ([D(10**75)], ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 32, Decimal(76, 0))),
    ([uuid.UUID(int=5), None], ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16, Uuid())),
    ([datetime.date(1, 1, 1), None, datetime.date.max], ColumnType(Type.INT32, None, Date())),
    ([datetime.datetime(1, 1, 1), None, datetime.datetime.max], ColumnType(Type.INT64, None, Timestamp("us"))),
    ([datetime.datetime(2020, 1, 1, tzinfo=UTC)], ColumnType(Type.INT64, None, Timestamp("us", True))),
    ([datetime.time.max, None], ColumnType(Type.INT64, None, Time("us"))),
    ([np.datetime64(3, "ns"), None], ColumnType(Type.INT64, None, Timestamp("ns"))),
]


@pytest.mark.parametrize(("values", "expected"), OBJECTS, ids=lambda value: str(value)[:40])
def test_objects(values: list[Any], expected: ColumnType) -> None:
    for way in (values, np.array([*values, None], object)[:-1]):
        column = column_from_numpy(way)
        assert column.type == expected
        assert column.nullable == (None in values)
        again = column.to_pylist()
        assert [str(value) for value in again] == [str(value) for value in again]
        for value, read in zip(values, again, strict=True):
            assert read == value or (value != value and read != read)


def test_other_time_zones_become_utc() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=5))
    column = column_from_numpy([datetime.datetime(2020, 1, 1, 3, tzinfo=zone), None])
    assert column.to_pylist() == [datetime.datetime(2019, 12, 31, 22, tzinfo=UTC), None]
    local = ColumnType(Type.INT64, None, Timestamp("us"))
    with pytest.raises(SchemaError, match="time zone do not fit"):
        column_from_numpy([datetime.datetime(2020, 1, 1, tzinfo=UTC)], type=local)
    milliseconds = ColumnType(Type.INT64, None, Timestamp("ms", utc=True))
    assert column_from_numpy([datetime.datetime(2020, 1, 1)], type=milliseconds).type == milliseconds


def test_nothing_but_nulls() -> None:
    for values in ([], [None, None], np.array([None], object)):
        column = column_from_numpy(values)
        assert column.type == ColumnType(Type.INT32, None, Unknown())
        assert column.nullable
        assert column.to_pylist() == list(values)
        typed = column_from_numpy(values, type=TEXT)
        assert typed.type == TEXT
        assert typed.to_pylist() == list(values)
    unknown = ColumnType(Type.BYTE_ARRAY, None, Unknown())
    assert column_from_numpy([None], type=unknown).to_pylist() == [None]
    with pytest.raises(SchemaError, match="only nulls"):
        column_from_numpy(np.zeros(2), type=unknown)


class Odd:
    """An object that no column holds."""

    def __repr__(self) -> str:
        return "Odd()"


class OddDatetime(datetime.datetime):
    """As pandas.Timestamp: a subclass that may hold more than its base."""


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, None, "a"], "value 2 is a builtins.str among values of kind int"),
        (["a", b"b"], "value 1 is a builtins.bytes among values of kind str"),
        ([True, 1], "value 1 is a builtins.int among values of kind bool"),
        ([None, Odd()], r"value 1 is a .*\.Odd, which no column holds"),
        ([OddDatetime(2020, 1, 1)], "OddDatetime, which no column holds"),
        ([datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1)], "value 1 is a datetime.datetime among"),
        ([2**64], "value 0 is an integer with more than 64 bits"),
        ([0, -1, 2**63], "value 2 is an integer"),
        ([datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, tzinfo=UTC)], "value 1 is a datetime with a"),
        ([datetime.time(1, tzinfo=UTC)], "value 0 is a time with a time zone"),
        ([D("NaN")], "value 0, NaN, is not a finite decimal"),
        ([D(1), D("Infinity")], "value 1, Infinity, is not a finite decimal"),
        ([D(10**76), D(1)], "decimals with 77 digits"),
        ([np.complex64(1)], "is complex: give np.array"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_objects_that_are_refused(values: list[Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message) as caught:
        column_from_numpy(values, name="odd")
    assert caught.value.context == {"column": "odd"}


I32 = ColumnType(Type.INT32)
I64 = ColumnType(Type.INT64)
U64 = ColumnType(Type.INT64, None, Integer(64, False))
I8 = ColumnType(Type.INT32, None, Integer(8, True))


@pytest.mark.parametrize(
    ("array", "type_", "expected"),
    [
        (np.array([-128, 127]), I8, [-128, 127]),
        (np.array([0, 2**63 - 1], np.uint64), I64, [0, 2**63 - 1]),
        (np.array([0, 5], np.int8), U64, [0, 5]),
        (np.array([1.0, -3.0]), I32, [1, -3]),
        (np.array([-(2.0**63)]), I64, [-(2**63)]),
        (np.array([2**53], np.int64), ColumnType(Type.DOUBLE), [2.0**53]),
        (np.array([1, 2], np.float32), ColumnType(Type.DOUBLE), [1.0, 2.0]),
        (np.array([0.1]), ColumnType(Type.FLOAT), [np.float32(0.1)]),
        (np.array([np.inf]), ColumnType(Type.FLOAT), [np.inf]),
        (np.array([18262]), ColumnType(Type.INT32, None, Date()), [datetime.date(2020, 1, 1)]),
        (np.array([5], np.int16), ColumnType(Type.INT64, None, Timestamp("ns")), [np.datetime64(5, "ns")]),
        (np.array([12, -3]), ColumnType(Type.INT32, None, Decimal(5, 2)), [D("12.00"), D("-3.00")]),
        ([7, None], ColumnType(Type.BYTE_ARRAY, None, Decimal(38, 1)), [D("7.0"), None]),
        ([D("1.50"), D("2")], ColumnType(Type.INT64, None, Decimal(10, 1)), [D("1.5"), D("2.0")]),
        ([1, None], ColumnType(Type.DOUBLE), [1.0, None]),
        (np.ma.MaskedArray([1, 999], mask=[False, True]), I8, [1, None]),
    ],
)
def test_casts(array: Any, type_: ColumnType, expected: list[Any]) -> None:
    column = column_from_numpy(array, type=type_)
    assert column.type == type_
    assert column.to_pylist() == expected


@pytest.mark.parametrize(
    ("array", "type_", "message"),
    [
        (np.array([1, 128]), I8, "value 1, 128, does not fit"),
        (np.array([-1]), U64, "value 0, -1"),
        (np.array([2**63], np.uint64), I64, "value 0"),
        (np.array([0.5]), I32, "value 0, 0.5"),
        (np.array([NAN]), I32, "value 0, nan"),
        (np.array([2.0**63]), I64, "value 0"),
        (np.array([2**53 + 1]), ColumnType(Type.DOUBLE), "value 0"),
        (np.array([1e39]), ColumnType(Type.FLOAT), "value 0, 1e"),
        (np.array([True]), I32, "dtype bool do not fit"),
        (np.array([1]), ColumnType(Type.BOOLEAN), "dtype int64 do not fit"),
        (np.array([1]), TEXT, "dtype int64 do not fit"),
        (np.array([1.5]), ColumnType(Type.INT32, None, Decimal(5, 2)), "dtype float64 do not fit"),
        (np.array([1000]), ColumnType(Type.INT32, None, Decimal(5, 2)), "value 0 has more than 5 digits"),
        ([D("0.001")], ColumnType(Type.INT32, None, Decimal(5, 2)), "value 0, 0.001, is not a number with at most 2 decimal p"),
        ([D("NaN")], ColumnType(Type.INT32, None, Decimal(5, 2)), "value 0, NaN, is not a number with"),
        ([D("1E+200")], ColumnType(Type.INT32, None, Decimal(5, 2)), "value 0"),
        ([D(1)], I64, "decimals do not fit"),
        ([uuid.UUID(int=1)], TEXT, "UUIDs do not fit"),
        (np.array(["a"]), I64, "text and bytes do not fit"),
        (np.array(["a"], StringDType()), ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 1), "text and bytes do not fit"),
        (np.array(["2020"], "M8[D]"), I64, "do not fit"),
    ],
)
def test_casts_that_are_refused(array: Any, type_: ColumnType, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        column_from_numpy(array, type=type_, name="c")


def test_nullable_is_as_asked() -> None:
    assert column_from_numpy(np.arange(3), nullable=True).nullable
    assert not column_from_numpy(np.ma.MaskedArray([1, 2]), nullable=False).nullable
    assert column_from_numpy(np.ma.MaskedArray([1, 2])).nullable
    for values in ([1, None], np.ma.MaskedArray([1, 2], mask=[False, True]), np.array([0, "NaT"], "M8[s]")):
        with pytest.raises(SchemaError, match=r"value 1 is null .*\[column n\]"):
            column_from_numpy(values, nullable=False, name="n")
    column = column_from_numpy([1, None])
    with pytest.raises(SchemaError, match="value 1 is null"):
        column_from_numpy(column, nullable=False)
    assert not column_from_numpy(column.slice(0, 1), nullable=False).nullable


def test_columns_are_cast_too() -> None:
    column = flat(column_from_numpy(["a", None, "b"]))
    as_bytes = column_from_numpy(column.as_dictionary(), type=BYTES)
    assert as_bytes.to_pylist() == [b"a", None, b"b"]
    assert column_from_numpy(as_bytes, type=TEXT).equals(column)
    assert column_from_numpy(column) is column
    with pytest.raises(SchemaError, match="not UTF-8"):
        column_from_numpy(column_from_numpy([b"\xff"]), type=TEXT)
    assert column_from_numpy(column_from_numpy([1, None]), type=I8).to_pylist() == [1, None]
    decimals = column_from_numpy([D("1.5"), None])
    finer = ColumnType(Type.INT64, None, Decimal(12, 3))
    assert column_from_numpy(decimals, type=finer).to_pylist() == [D("1.500"), None]


def test_tables_from_mappings() -> None:
    table = table_from({"a": np.arange(2), "b": ["x", None], "c": column_from_numpy([1.5, 2.5])})
    assert table.to_pylist() == [{"a": 0, "b": "x", "c": 1.5}, {"a": 1, "b": None, "c": 2.5}]
    assert table_from(table) is table
    assert table_from({}).num_rows == 0
    cast = table_from(table, {"a": I8})
    assert [column.type for column in cast.columns] == [I8, TEXT, ColumnType(Type.DOUBLE)]
    schema = ParquetSchema.of([("a", I32, True), ("b", TEXT, True)])
    assert table_from(table, schema)["a"].nullable
    with pytest.raises(SchemaError, match=r"the schema has \['z'\]"):
        table_from(table, {"z": I8})
    with pytest.raises(SchemaError, match=r"3 values in a table of 2 rows \[column b\]"):
        table_from({"a": np.arange(2), "b": np.arange(3)})
    with pytest.raises(SchemaError, match="a list is neither"):
        table_from([1, 2])
    with pytest.raises(SchemaError, match=r"value 1 is null in a column that is not nullable \[column b\]"):
        table_from(table, ParquetSchema.of([("b", TEXT, False)]))
    assert table_from(Table({}, num_rows=7), {}).num_rows == 7


def test_arrow_data() -> None:
    arrow = pa.table({"a": pa.array([1, None, 3]), "s": pa.array(["x", "a long string, not inline", None])})
    table = table_from(arrow)
    assert table.to_pylist() == arrow.to_pylist()
    assert table_from(arrow.to_batches()[0]).to_pylist() == arrow.to_pylist()
    mixed = table_from({"a": arrow["a"], "s": arrow["s"].chunk(0), "n": np.arange(3)}, {"a": I8})
    assert mixed["a"].type == I8
    assert mixed.select(["a", "s"]).to_pylist() == arrow.to_pylist()
    back = pa.table(table)
    assert back.to_pylist() == arrow.to_pylist()
    assert pa.array(table["a"]).to_pylist() == [1, None, 3]
    assert pa.schema(table).names == ["a", "s"]
    assert isinstance(table.flat("s").as_views().values, BinaryViews)


def test_pyarrow_reads_objects_the_same_way() -> None:
    samples: list[list[Any]] = [
        [True, None], [1, None], [1.5, None], ["a", None], [b"a", None],
        [datetime.date(2020, 1, 1)], [datetime.datetime(2020, 1, 1, 1)], [datetime.time(1, 2, 3, 4)],
    ]
    for values in samples:
        assert pa.array(column_from_numpy(values)).to_pylist() == pa.array(values).to_pylist()
