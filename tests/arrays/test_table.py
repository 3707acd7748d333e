"""Columns and tables in memory, against lists of Python values."""

from __future__ import annotations

import copy
import datetime
import decimal
import io
import pickle
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.dtypes import StringDType

from fastpq import read_table, write_table
from fastpq.arrays.bitmap import count_zeros, pack_bitmap, slice_bitmap, unpack_bitmap
from fastpq.arrays.table import VIEW_DTYPE, BinaryOffsets, BinaryViews, Column, DictionaryValues, Table
from fastpq.convert.caller_input import table_from
from fastpq.errors import FormatError, LimitError, SchemaError
from fastpq.schema.types import (
    ColumnType,
    Date,
    Decimal,
    Float16,
    Integer,
    Interval,
    LogicalType,
    String,
    Time,
    Timestamp,
    Type,
    Unknown,
    Uuid,
)

TEXT = ColumnType(Type.BYTE_ARRAY, None, String())
BYTES = ColumnType(Type.BYTE_ARRAY)
INT64 = ColumnType(Type.INT64)


def validity(values: Sequence[Any]) -> tuple[Any, int]:
    nulls = values.count(None)
    bits = sum((value is not None) << i for i, value in enumerate(values))
    raw = bits.to_bytes((len(values) + 7) // 8, "little")
    return (np.frombuffer(raw, np.uint8) if nulls else None), nulls


def binary_column(values: Sequence[bytes | None], type_: ColumnType = BYTES, dtype: Any = np.int32) -> Column:
    """Offsets that do not start at 0 and data that goes on after them, made without fastpq."""
    data = b"before" + b"".join(value or b"" for value in values) + b"after"
    ends = np.cumsum([6] + [len(value or b"") for value in values])
    bits, nulls = validity(values)
    return Column(type_, BinaryOffsets(ends.astype(dtype), np.frombuffer(data, np.uint8)), bits, nulls)


def fixed_column(type_: ColumnType, values: list[Any]) -> Column:
    bits, nulls = validity(values)
    array = np.array([0 if value is None else value for value in values], type_.dtype)
    return Column(type_, array, bits, nulls)


def read_views(values: BinaryViews) -> list[bytes]:
    """What Arrow's format document says about views, in Python."""
    out = []
    for view in values.views:
        raw = view.tobytes()
        length = int.from_bytes(raw[:4], "little")
        if length <= 12:
            assert raw[4 + length :] == bytes(12 - length)
            out.append(raw[4 : 4 + length])
        else:
            buffer, offset = int.from_bytes(raw[8:12], "little"), int.from_bytes(raw[12:], "little")
            value = values.buffers[buffer][offset : offset + length].tobytes()
            assert raw[4:8] == value[:4]
            out.append(value)
    return out


SAMPLES: list[list[bytes | None]] = [
    [],
    [b""],
    [None],
    [b"a", None, b"twelve bytes", b"thirteen bytes!", b"", b"a", None, b"thirteen bytes!", b"z" * 100],
    [b"x" * (i % 30) for i in range(3000)],
    [None if i % 3 == 0 else str(i % 1100).encode() * 3 for i in range(5000)],
]


@pytest.mark.parametrize("values", SAMPLES, ids=len)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_layouts_hold_the_same_values(values: list[bytes | None], dtype: Any) -> None:
    column = binary_column(values, dtype=dtype)
    layouts = [column, column.as_views(), column.as_dictionary(), column.as_views().as_dictionary()]
    layouts += [layout.as_views() for layout in layouts] + [layout.as_offsets() for layout in layouts]
    for layout in layouts:
        assert len(layout) == len(values)
        assert layout.to_pylist() == values
        assert layout.equals(column)
        assert layout.null_count == values.count(None)


@given(st.lists(st.none() | st.binary(max_size=40), max_size=60), st.data())
def test_layouts_hold_any_values(values: list[bytes | None], data: st.DataObject) -> None:
    column = binary_column(values)
    views = column.as_views()
    assert isinstance(views.values, BinaryViews)
    assert read_views(views.values) == [value or b"" for value in values]
    dictionary = column.as_dictionary()
    assert isinstance(dictionary.values, DictionaryValues)
    assert dictionary.values.dictionary.to_pylist() == list(dict.fromkeys(v for v in values if v is not None))
    offsets = dictionary.as_offsets(wide=True)
    assert isinstance(offsets.values, BinaryOffsets)
    assert offsets.values.offsets.tolist() == np.cumsum([0] + [len(v or b"") for v in values]).tolist()
    assert offsets.values.data.tobytes() == b"".join(v or b"" for v in values)
    start = data.draw(st.integers(0, len(values)))
    stop = data.draw(st.integers(start, len(values)))
    for layout in (column, views, dictionary):
        part = layout.slice(start, stop)
        assert part.to_pylist() == values[start:stop]
        assert part.null_count == values[start:stop].count(None)


def test_offsets_width() -> None:
    column = binary_column([b"abc"])
    assert column.as_offsets() is column
    assert column.as_offsets(wide=False) is column
    wide = column.as_offsets(wide=True)
    assert isinstance(wide.values, BinaryOffsets)
    assert wide.values.offsets.dtype == np.int64
    back = wide.as_offsets(wide=False)
    assert isinstance(back.values, BinaryOffsets)
    assert back.values.offsets.dtype == np.int32


def huge(values: int) -> Column:
    """Views of 2^30 bytes each into one buffer, of which no page is ever touched."""
    view = np.array([1 << 30, 0, 0, 0], np.int32)
    buffer = np.zeros(1 << 30, np.uint8)
    return Column(BYTES, BinaryViews(np.tile(view, values).view(VIEW_DTYPE), [buffer]), nullable=False)


def test_int32_offsets_are_refused_beyond_their_reach() -> None:
    with pytest.raises(LimitError, match="too many for int32 offsets"):
        huge(2).as_offsets(wide=False)


def test_views_of_long_data_take_several_buffers() -> None:
    # 5 GiB of zeros that are never touched, in five values; the first bytes of each are written to tell them apart
    size = 1 << 30
    data = np.zeros(5 * size, np.uint8)
    for i in range(5):
        data[i * size] = i
    column = Column(BYTES, BinaryOffsets(np.arange(6, dtype=np.int64) * size, data), nullable=False)
    views = column.as_views()
    assert isinstance(views.values, BinaryViews)
    assert len(views.values.buffers) == 5
    words = views.values.views.view(np.int32).reshape(-1, 4)
    for length, _, buffer, offset in words.tolist():
        assert length == size
        assert views.values.buffers[buffer][offset] == buffer
    small = np.array([0, 8, size, size + 5, 2 * size - 1, 2 * size + 7, 2 * size + 40], np.int64)
    column = Column(BYTES, BinaryOffsets(small, data), nullable=False)
    views = column.as_views()
    assert isinstance(views.values, BinaryViews)
    assert [len(buffer) for buffer in views.values.buffers] == [2 * size - 1, 41]
    with pytest.raises(LimitError, match="value 0 has 2\\^31 bytes"):
        Column(BYTES, BinaryOffsets(np.array([0, 2 * size], np.int64), data)).as_views()


def broken_layouts() -> dict[str, Any]:
    data = np.zeros(20, np.uint8)
    words = {
        "negative length": [-1, 0, 0, 0],
        "buffer beyond the last": [13, 0, 1, 0],
        "negative buffer": [13, 0, -1, 0],
        "negative offset": [13, 0, 0, -1],
        "value beyond the buffer": [13, 0, 0, 8],
        "length beyond the buffer": [0x7FFFFFFF, 0, 0, 1],
    }
    cases: dict[str, Any] = {
        name: BinaryViews(np.array(view, np.int32).view(VIEW_DTYPE), [data]) for name, view in words.items()
    }
    for name, offsets in {"falling": [5, 3], "beyond": [0, 21], "negative": [-1, 3]}.items():
        cases[f"{name} offsets"] = BinaryOffsets(np.array(offsets, np.int32), data)
        cases[f"{name} wide offsets"] = BinaryOffsets(np.array(offsets, np.int64), data)
    dictionary = binary_column([b"a", b"b"])
    for name, code in {"code beyond": 2, "negative code": -1}.items():
        cases[name] = DictionaryValues(np.array([code], np.int32), dictionary)
    return cases


@pytest.mark.parametrize("name", broken_layouts())
def test_nothing_is_read_outside_the_memory(name: str) -> None:
    column = Column(TEXT, broken_layouts()[name])
    actions: list[Callable[[], object]] = [column.to_pylist, column.to_numpy, lambda: column.equals(binary_column([b"x"], TEXT))]
    if not isinstance(column.values, DictionaryValues):
        actions.append(column.as_dictionary)
    if not isinstance(column.values, BinaryViews):
        actions.append(column.as_views)
    if not isinstance(column.values, BinaryOffsets):
        actions.append(column.as_offsets)
    for action in actions:
        with pytest.raises(FormatError, match="outside"):
            action()


def test_what_stands_where_null_is_never_read() -> None:
    for values in broken_layouts().values():
        column = Column(BYTES, values, np.zeros(1, np.uint8), 1)
        assert column.to_pylist() == [None]
        assert column.equals(binary_column([None]))
        if isinstance(values, DictionaryValues):
            assert column.as_views().as_offsets().to_pylist() == [None]
        if isinstance(values, BinaryViews):
            assert column.as_dictionary().as_offsets().to_pylist() == [None]


def test_fixed_dictionaries() -> None:
    dictionary = Column(INT64, np.array([10, 20]), nullable=False)
    bits, nulls = validity([1, None, 1])
    column = Column(INT64, DictionaryValues(np.array([1, 0, 0], np.int32), dictionary), bits, nulls)
    assert column.to_pylist() == [20, None, 10]
    assert column.to_numpy().filled(-1).tolist() == [20, -1, 10]  # type: ignore[attr-defined]
    assert column.equals(fixed_column(INT64, [20, None, 10]))
    joined = Table.concat([Table({"a": column}), Table({"a": fixed_column(INT64, [5])})])
    assert joined["a"].to_pylist() == [20, None, 10, 5]
    for code in (2, -1):
        with pytest.raises(FormatError, match="outside the dictionary"):
            Column(INT64, DictionaryValues(np.array([code], np.int32), dictionary)).to_numpy()
    with pytest.raises(SchemaError, match="have a fixed width"):
        column.as_views()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros(2, np.int32), "needs int64, not values of shape"),
        (np.zeros((2, 2), np.int64), r"shape \(2, 2\)"),
        (BinaryOffsets(np.zeros(3, np.int32), np.zeros(0, np.uint8)), "cannot hold BinaryOffsets"),
    ],
)
def test_values_must_fit_the_type(values: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Column(INT64, values)


def test_validity_must_fit_the_values() -> None:
    for bits, nulls in ((None, 1), (np.zeros(1, np.uint8), 1), (np.zeros(2, np.int8), 1), (np.zeros(2, np.uint8), 10)):
        with pytest.raises(SchemaError):
            Column(INT64, np.zeros(9, np.int64), bits, nulls)
    for layout in (
        BinaryOffsets(np.zeros(0, np.int32), np.zeros(0, np.uint8)),
        BinaryOffsets(np.zeros(2, np.int16), np.zeros(0, np.uint8)),
        BinaryOffsets(np.zeros(4, np.int32)[::2], np.zeros(0, np.uint8)),
        BinaryOffsets(np.zeros(2, np.int32), np.zeros(0, np.int8)),
        BinaryViews(np.zeros(2, "V15"), []),
        BinaryViews(np.zeros(2, "V16"), [np.zeros(2, np.int32)]),
        DictionaryValues(np.zeros(2, np.int64), binary_column([b"a"])),
    ):
        with pytest.raises(SchemaError):
            Column(BYTES, layout).to_pylist()


DAY = 86_400_000
FIXED: list[tuple[LogicalType | None, Type, int | None, list[Any], list[Any]]] = [
    (None, Type.BOOLEAN, None, [True, None, False], [True, None, False]),
    (Integer(8, True), Type.INT32, None, [-128, None, 127], [-128, None, 127]),
    (Integer(64, False), Type.INT64, None, [2**64 - 1, None, 0], [2**64 - 1, None, 0]),
    (None, Type.DOUBLE, None, [1.5, None, -0.0], [1.5, None, -0.0]),
    (Float16(), Type.FIXED_LEN_BYTE_ARRAY, 2, [0.5, None, 65504.0], [0.5, None, 65504.0]),
    (Date(), Type.INT32, None, [0, None, -719162], [datetime.date(1970, 1, 1), None, datetime.date(1, 1, 1)]),
    (Date(), Type.INT32, None, [2932896, 2932897], [datetime.date(9999, 12, 31), np.datetime64("10000-01-01")]),
    (Time("ms"), Type.INT32, None, [1, None, DAY], [datetime.time(0, 0, 0, 1000), None, np.timedelta64(DAY, "ms")]),
    (Time("us"), Type.INT64, None, [DAY * 1000 - 1, -1], [datetime.time.max, np.timedelta64(-1, "us")]),
    (Time("ns"), Type.INT64, None, [7, None], [np.timedelta64(7, "ns"), None]),
    (Timestamp("ms"), Type.INT64, None, [-1, None], [datetime.datetime(1969, 12, 31, 23, 59, 59, 999000), None]),
    (Timestamp("us", True), Type.INT64, None, [0], [datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)]),
    (Timestamp("ms"), Type.INT64, None, [1 << 60], [np.datetime64(1 << 60, "ms")]),
    (Timestamp("ns"), Type.INT64, None, [1, None], [np.datetime64(1, "ns"), None]),
    (None, Type.INT96, None, [1, None], [np.datetime64(1, "ns"), None]),
    (Decimal(9, 2), Type.INT32, None, [-1, None, 99], [decimal.Decimal("-0.01"), None, decimal.Decimal("0.99")]),
    (Decimal(18, 0), Type.INT64, None, [10**18 - 1], [decimal.Decimal(10**18 - 1)]),
    (None, Type.FIXED_LEN_BYTE_ARRAY, 3, [b"abc", b"d\0\0"], [b"abc", b"d\0\0"]),
    (Interval(), Type.FIXED_LEN_BYTE_ARRAY, 12, [bytes([1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 0, 0])], [(1, 2, 259)]),
    (Uuid(), Type.FIXED_LEN_BYTE_ARRAY, 16, [bytes(range(16))], [uuid.UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")]),
]


@pytest.mark.parametrize(("logical", "physical", "length", "stored", "expected"), FIXED)
def test_python_values(logical: Any, physical: Type, length: Any, stored: list[Any], expected: list[Any]) -> None:
    column = fixed_column(ColumnType(physical, length, logical), stored)
    assert column.to_pylist() == expected
    shown = column.to_numpy(nulls="object")
    assert shown.dtype == object
    assert shown.tolist() == expected
    masked = column.to_numpy()
    assert isinstance(masked, np.ma.MaskedArray)
    assert masked.dtype == column.type.numpy_dtype
    assert np.ma.getmaskarray(masked).tolist() == [value is None for value in stored]
    required = Column(column.type, column.values, nullable=False).to_numpy()
    assert not isinstance(required, np.ma.MaskedArray)
    assert required.dtype == column.type.numpy_dtype


@pytest.mark.parametrize("integer", [0, -1, 2**63, -(2**63) - 1, 10**38 - 1, -(10**38) + 1])
@pytest.mark.parametrize(("width", "precision"), [(16, 38), (32, 76)])
def test_wide_decimals_are_exact(integer: int, width: int, precision: int) -> None:
    if width == 32:
        integer *= 10**38 - 7
    type_ = ColumnType(Type.BYTE_ARRAY, None, Decimal(precision, 7))
    values = np.frombuffer(integer.to_bytes(width, "little", signed=True) * 2, f"V{width}")
    digits = tuple(map(int, str(abs(integer))))
    exact = decimal.Decimal((int(integer < 0), digits, -7))
    assert Column(type_, values).to_pylist() == [exact, exact]
    assert [str(value) for value in Column(type_, values, nullable=False).to_numpy()] == [str(exact)] * 2


def test_to_numpy_shares_memory_where_layouts_agree() -> None:
    for logical, physical, dtype in [
        (None, Type.INT64, np.int64),
        (Integer(16, False), Type.INT32, np.uint16),
        (None, Type.BOOLEAN, np.bool_),
        (Timestamp("us"), Type.INT64, np.int64),
        (None, Type.INT96, np.int64),
        (None, Type.DOUBLE, np.float64),
    ]:
        values: Any = np.zeros(9, dtype)
        column = Column(ColumnType(physical, None, logical), values, np.array([0xFF, 0], np.uint8), 1)
        assert np.shares_memory(column.to_numpy(), values)
        assert np.shares_memory(Column(column.type, values, nullable=False).to_numpy(), values)
        assert np.shares_memory(column.slice(8).to_numpy(), values)


def test_nan_for_nulls() -> None:
    floats = fixed_column(ColumnType(Type.DOUBLE), [1.0, None])
    shown = floats.to_numpy(nulls="nan")
    assert not isinstance(shown, np.ma.MaskedArray)
    assert np.array_equal(shown, [1.0, np.nan], equal_nan=True)
    assert isinstance(floats.values, np.ndarray)
    assert floats.values.tolist() == [1.0, 0.0]  # the column is as before
    times = fixed_column(ColumnType(Type.INT32, None, Date()), [1, None]).to_numpy(nulls="nan")
    assert np.isnat(times).tolist() == [False, True]
    text = binary_column([b"a", None], TEXT).to_numpy(nulls="nan")
    assert text.dtype == StringDType(na_object=np.nan)
    assert np.isnan(text).tolist() == [False, True]
    assert binary_column([b"a", None]).to_numpy(nulls="nan").tolist() == [b"a", None]
    decimals = fixed_column(ColumnType(Type.INT32, None, Decimal(5, 0)), [1, None])
    assert decimals.to_numpy(nulls="nan").tolist() == [1, None]
    with pytest.raises(SchemaError, match="a column of INT64 has 1 nulls, and no NaN"):
        fixed_column(INT64, [1, None]).to_numpy(nulls="nan")
    assert fixed_column(INT64, [1, 2]).to_numpy(nulls="nan").tolist() == [1, 2]


def test_text_to_numpy() -> None:
    values = ["", "a", "héé", "😀" * 10, None]
    column = binary_column([None if value is None else value.encode() for value in values], TEXT)
    for layout in (column, column.as_views(), column.as_dictionary()):
        masked = layout.to_numpy()
        assert masked.dtype == StringDType()
        assert masked.tolist() == values
        assert np.ma.getdata(masked)[4] == ""
        assert layout.to_numpy(strings="object").tolist() == values
        assert layout.slice(0, 4).to_numpy().tolist() == values[:4]
    plain = Column(TEXT, column.slice(0, 4).values, nullable=False).to_numpy()
    assert type(plain) is np.ndarray
    assert plain.tolist() == values[:4]
    with pytest.raises(SchemaError, match="nulls must be one of"):
        column.to_numpy(nulls="none")  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="strings must be one of"):
        column.to_numpy(strings="bytes")  # type: ignore[arg-type]


# Unicode, table 3-7: the ends of each range and what lies just beyond
GOOD_UTF8 = ["00", "7f", "c280", "dfbf", "e0a080", "ed9fbf", "ee8080", "efbfbf", "f0908080", "f48fbfbf"]
BAD_UTF8 = [
    "80", "bf", "c080", "c1bf", "c2", "c200", "e09fbf", "e0a0", "eda080", "edbfbf", "f08fbfbf", "f4908080", "f5808080",
    "ff", "e0a0c0", "f09080", "f0908000",
]


def test_utf8_is_checked() -> None:
    for padding in (b"", b"0123456", b"01234567", b"0123456789abcdef"):
        good = [padding + bytes.fromhex(digits) for digits in GOOD_UTF8]
        assert binary_column(good, TEXT).to_numpy().tolist() == [value.decode() for value in good]
        for digits in BAD_UTF8:
            column = binary_column([b"fine", padding + bytes.fromhex(digits)], TEXT)
            with pytest.raises(FormatError, match="value 1 is not UTF-8"):
                column.to_numpy()
            with pytest.raises(FormatError, match="value 1 is not UTF-8"):
                column.to_pylist()


def test_equality() -> None:
    floats = fixed_column(ColumnType(Type.DOUBLE), [float("nan"), 1.0, None])
    assert floats.equals(fixed_column(ColumnType(Type.DOUBLE), [float("nan"), 1.0, None]))
    assert not floats.equals(fixed_column(ColumnType(Type.DOUBLE), [float("nan"), 2.0, None]))
    assert not floats.equals(fixed_column(ColumnType(Type.DOUBLE), [float("nan"), None, 1.0]))
    assert not floats.equals(floats.slice(0, 2))
    assert not fixed_column(INT64, [1]).equals(fixed_column(ColumnType(Type.INT32), [1]))
    assert not binary_column([b"a", None]).equals(binary_column([None, b"a"]))
    assert not binary_column([b"a", b""]).equals(binary_column([b"a", b"b"]))
    raw = ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 3)
    assert fixed_column(raw, [b"abc"]).equals(fixed_column(raw, [b"abc"]))
    assert not fixed_column(raw, [b"abc"]).equals(fixed_column(raw, [b"abd"]))


@given(st.lists(st.booleans(), max_size=70), st.data())
def test_bitmaps(flags: list[bool], data: st.DataObject) -> None:
    bitmap = pack_bitmap(np.array(flags, np.bool_))
    assert int.from_bytes(bitmap.tobytes(), "little") == sum(flag << i for i, flag in enumerate(flags))
    assert count_zeros(bitmap, len(flags)) == flags.count(False)
    start = data.draw(st.integers(0, len(flags)))
    count = data.draw(st.integers(0, len(flags) - start))
    assert unpack_bitmap(bitmap, start, count).tolist() == flags[start : start + count]
    assert unpack_bitmap(slice_bitmap(bitmap, start, count), 0, count).tolist() == flags[start : start + count]


def sample_table() -> Table:
    return Table({"number": fixed_column(INT64, [1, None, 3]), "text": binary_column([b"a", b"b", None], TEXT)})


def test_tables() -> None:
    table = sample_table()
    assert (table.num_rows, table.num_columns, len(table)) == (3, 2, 2)
    assert table.names == list(table) == ["number", "text"]
    assert table.to_pylist() == [{"number": 1, "text": "a"}, {"number": None, "text": "b"}, {"number": 3, "text": None}]
    assert table.select(["text"]).names == ["text"]
    assert table.slice(1, -1).to_pylist() == [{"number": None, "text": "b"}]
    assert table.slice(5).num_rows == 0
    assert table.to_numpy()["text"].tolist() == ["a", "b", None]
    assert "text" in table
    assert table == sample_table()
    assert table != table.select(["text", "number"])
    assert str(table.schema) == "message schema {\n  optional int64 number;\n  optional binary text (STRING);\n}"
    assert repr(table).startswith("<Table: 3 rows, 2 columns, ")
    assert Table({}, num_rows=4).to_pylist() == [{}] * 4
    assert table.select([]).num_rows == 3


def test_tables_that_do_not_hold_together() -> None:
    with pytest.raises(SchemaError, match=r"1 values in a table of 3 rows \[column b\]"):
        Table({"a": fixed_column(INT64, [1, 2, 3]), "b": fixed_column(INT64, [1])})
    with pytest.raises(SchemaError, match=r"2 values in a table of 3 rows \[column b\]"):
        Table({"a": np.zeros(3), "b": ["x", "y"]})
    with pytest.raises(SchemaError, match="must be a str"):
        Table({1: fixed_column(INT64, [1])})  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="no column 'c': the table has"):
        sample_table()["c"]


def test_concatenation() -> None:
    samples = [values for values in SAMPLES if len(values) < 100]
    expected = [value for values in samples for value in values]
    columns = [binary_column(values) for values in samples]
    mixed = [[c, c.as_views(), c.as_dictionary(), c.as_offsets(wide=True)][i % 4] for i, c in enumerate(columns)]
    for parts in (columns, [c.as_views() for c in columns], [c.as_dictionary() for c in columns], mixed):
        joined = Table.concat([Table({"a": part}) for part in parts])["a"]
        assert joined.to_pylist() == expected
        assert joined.null_count == expected.count(None)
    whole = binary_column(expected).as_dictionary()
    halves = Table.concat([Table({"a": whole.slice(0, 3)}), Table({"a": whole.slice(3)})]).flat("a")
    assert isinstance(halves.values, DictionaryValues)
    assert halves.equals(whole)
    offsets = Table.concat([Table({"a": c}) for c in columns]).flat("a")
    assert isinstance(offsets.values, BinaryOffsets)
    assert offsets.values.data.tobytes() == b"".join(value or b"" for value in expected)


def test_concatenation_of_other_columns() -> None:
    table = sample_table()
    joined = Table.concat([table, table.slice(0, 1), table.slice(3)])
    assert joined.to_pylist() == table.to_pylist() + table.to_pylist()[:1]
    assert Table.concat([table]) == table
    with pytest.raises(SchemaError, match="at least one table"):
        Table.concat([])
    with pytest.raises(SchemaError, match="table 1 has the columns"):
        Table.concat([table, table.select(["text"])])
    with pytest.raises(SchemaError, match=r"INT32 after INT64 \[column a\]"):
        Table.concat([Table({"a": fixed_column(INT64, [1])}), Table({"a": fixed_column(ColumnType(Type.INT32), [1])})])


def test_all_null_columns() -> None:
    bits = np.zeros(1, np.uint8)
    column = Column(ColumnType(Type.INT32, None, Unknown()), np.zeros(2, np.int32), bits, 2)
    assert column.to_pylist() == [None, None]
    assert column.to_numpy().mask.all()  # type: ignore[attr-defined]


def test_numpy_takes_columns() -> None:
    table = table_from({"a": np.arange(3), "f": [1.5, None, 2.5], "i": [1, None, 2]})
    assert np.array_equal(np.asarray(table["a"]), np.arange(3))
    assert np.isnan(np.asarray(table["f"])[1])
    with pytest.raises(SchemaError, match="no NaN"):
        np.asarray(table["i"])
    assert table.get("nothing") is None
    assert table.get("a") is table["a"]


def test_copies_of_a_table_keep_its_metadata() -> None:
    sink = io.BytesIO()
    write_table({"a": [1, 2], "t": ["x", None]}, sink, key_value_metadata={"key": "value"}, arrow_schema=True)
    table = read_table(sink.getvalue())
    for made in (pickle.loads(pickle.dumps(table)), copy.deepcopy(table)):
        assert made.equals(table)
        assert made.metadata == {"key": "value"}
