"""Bounds against NumPy, against arithmetic on Python integers, and against what pyarrow and parquet-rs write."""

from __future__ import annotations

import functools
import itertools
import math
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from fastpq._kernel_calls import min_max, min_max_of
from fastpq.schema import types
from fastpq.schema.types import ColumnType, Type
from fastpq.stats.bounds import order_of, truncate_max, truncate_min
from fastpq.stats.statistics import Order, compare, extreme, nan_count
from tests.requirements import peer

INTEGERS = {
    Order.ORDER_INT32: "<i4",
    Order.ORDER_INT64: "<i8",
    Order.ORDER_UINT32: "<u4",
    Order.ORDER_UINT64: "<u8",
}
FLOATS = {Order.ORDER_FLOAT16: "<f2", Order.ORDER_FLOAT: "<f4", Order.ORDER_DOUBLE: "<f8"}


def raw(array: np.ndarray[Any, Any], shift: int = 0) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes of an array, shift bytes off every alignment."""
    data = np.zeros(array.nbytes + shift, np.uint8)
    data[shift:] = np.frombuffer(array.tobytes(), np.uint8)
    return data[shift:]


def expected_floats(array: np.ndarray[Any, Any]) -> tuple[int, bytes | None, bytes | None]:
    """parquet.thrift, ColumnOrder: no NaN, -0.0 for a minimum and +0.0 for a maximum of zero."""
    numbers = array[~np.isnan(array)]
    if not len(numbers):
        return 0, None, None
    low, high = numbers.min(), numbers.max()
    low = array.dtype.type(-0.0) if low == 0 else low
    high = array.dtype.type(0.0) if high == 0 else high
    return len(numbers), low.tobytes(), high.tobytes()


# ---- fixed width


@pytest.mark.parametrize("order", INTEGERS)
@pytest.mark.parametrize("count", [1, 2, 7, 64, 1000, 4097])
def test_integers(order: Order, count: int) -> None:
    dtype = np.dtype(INTEGERS[order])
    info = np.iinfo(dtype)
    random = np.random.default_rng(count)
    for low, high in (
        (info.min, info.max),
        (-3 if info.min else 0, 3),
        (info.max - 5, info.max),
        (info.min, info.min + 5),
    ):
        array = random.integers(low, high, count, dtype=dtype, endpoint=True)
        for shift in (0, 1, 3):
            assert min_max(order, raw(array, shift)) == (count, array.min().tobytes(), array.max().tobytes())
        for place in (0, count // 2, count - 1):  # an extreme alone, anywhere
            for far in (info.min, info.max):
                array[place] = far
                assert min_max(order, raw(array)) == (count, array.min().tobytes(), array.max().tobytes())


@pytest.mark.parametrize("order", FLOATS)
@given(data=st.data())
@settings(max_examples=80)
def test_floats(order: Order, data: st.DataObject) -> None:
    dtype = np.dtype(FLOATS[order])
    special = [
        0.0,
        -0.0,
        math.nan,
        math.inf,
        -math.inf,
        1.5,
        -1.5,
        float(np.finfo(dtype).max),
        float(np.finfo(dtype).tiny),
    ]
    elements = st.sampled_from(special) | st_numpy.from_dtype(dtype)
    array = data.draw(st_numpy.arrays(dtype, st.integers(0, 200), elements=elements))
    assert min_max(order, raw(array, 1)) == expected_floats(array)
    assert nan_count(order, raw(array, 1)) == np.isnan(array).sum()


@pytest.mark.parametrize("order", FLOATS)
def test_every_kind_of_nan(order: Order) -> None:
    width = np.dtype(FLOATS[order]).itemsize
    unsigned = np.dtype(f"<u{width}")
    infinity = int(np.frombuffer(np.array(math.inf, FLOATS[order]).tobytes(), unsigned)[0])
    sign = 1 << (8 * width - 1)
    nans = [infinity + 1, sign - 1, sign + infinity + 1, 2 * sign - 1]
    array = np.array(nans * 33, unsigned).view(FLOATS[order])
    assert min_max(order, raw(array)) == (0, None, None)
    assert nan_count(order, raw(array)) == 132
    array[70] = -2
    value = array[70].tobytes()
    assert min_max(order, raw(array)) == (1, value, value)
    long = np.full(100_000, math.nan, FLOATS[order])  # more than a 16-bit counter holds
    assert nan_count(order, raw(long)) == 100_000


def test_every_half() -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    numbers = bits[~np.isnan(bits.view("<f2"))]
    values = numbers.view("<f2")
    ranked = numbers[np.argsort(values, kind="stable")]
    for first, second in zip(ranked[:-1].tolist(), ranked[1:].tolist(), strict=True):
        pair = struct.pack("<HH", second, first)
        smaller, larger = (0x8000, 0) if first & 0x7FFF == second & 0x7FFF == 0 else (first, second)
        assert min_max(Order.ORDER_FLOAT16, pair) == (2, struct.pack("<H", smaller), struct.pack("<H", larger))


@pytest.mark.parametrize("order", FLOATS)
def test_zeros_are_written_with_the_sign_that_the_specification_asks_for(order: Order) -> None:
    dtype = FLOATS[order]
    negative, positive = np.array(-0.0, dtype).tobytes(), np.array(0.0, dtype).tobytes()
    for values in ([0.0], [-0.0], [0.0, -0.0], [-0.0] * 100 + [0.0]):
        assert min_max(order, raw(np.array(values, dtype))) == (len(values), negative, positive)
    assert compare(order, negative, positive) == 0


def test_booleans() -> None:
    for values in ([True], [False], [True, False], [False] * 99 + [True]):
        count, low, high = min_max(Order.ORDER_BOOLEAN, np.array(values).view(np.uint8))
        assert (count, low, high) == (len(values), bytes([min(values)]), bytes([max(values)]))
    assert min_max(Order.ORDER_BOOLEAN, bytes([255, 2]))[1:] == (b"\1", b"\1")


def signed(value: bytes) -> int:
    return int.from_bytes(value, "big", signed=True)


@pytest.mark.parametrize(("order", "key"), [(Order.ORDER_BYTES, bytes), (Order.ORDER_SIGNED_BYTES, signed)])
@given(data=st.data())
@settings(max_examples=100)
def test_rows_of_bytes(order: Order, key: Any, data: st.DataObject) -> None:
    width = data.draw(st.integers(1, 20))
    alphabet = st.sampled_from([0, 1, 0x7F, 0x80, 0xFF])  # few bytes, for long common prefixes
    rows = data.draw(st.lists(st.lists(alphabet, min_size=width, max_size=width).map(bytes), min_size=1, max_size=30))
    assert min_max(order, b"".join(rows), width) == (len(rows), min(rows, key=key), max(rows, key=key))
    for left, right in itertools.pairwise(rows):
        assert compare(order, left, right) == (key(left) > key(right)) - (key(left) < key(right))


def test_nothing_takes_part() -> None:
    for order in Order:
        assert min_max(order, b"", 4) == (0, None, None)
    assert min_max(Order.ORDER_NONE, bytes(12), 4) == (0, None, None)
    assert min_max(Order.ORDER_BYTES, b"", 0) == (0, None, None)
    assert nan_count(Order.ORDER_INT32, b"\xff" * 8) == 0
    assert min_max_of(Order.ORDER_NONE, [b"x"]) == (0, None, None)
    assert min_max_of(Order.ORDER_BYTES, []) == (0, None, None)
    assert compare(Order.ORDER_NONE, b"a", b"b") == 0


def test_sizes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="not values of 4 bytes"):
        min_max(Order.ORDER_INT32, bytes(7))
    with pytest.raises(ValueError, match="where 8 are due"):
        compare(Order.ORDER_DOUBLE, bytes(8), bytes(4))


# ---- variable length


@pytest.mark.parametrize(("order", "key"), [(Order.ORDER_BYTES, bytes), (Order.ORDER_SIGNED_BYTES, signed)])
@given(data=st.data())
@settings(max_examples=150)
def test_slices(order: Order, key: Any, data: st.DataObject) -> None:
    alphabet = st.sampled_from([0, 1, 0x7F, 0x80, 0xFF])
    values = data.draw(st.lists(st.lists(alphabet, max_size=12).map(bytes), min_size=1, max_size=30))
    count, low, high = min_max_of(order, values)
    assert count == len(values)
    assert low in values
    assert high in values
    assert key(low) == min(map(key, values))
    assert key(high) == max(map(key, values))
    ranked = sorted(values, key=functools.cmp_to_key(functools.partial(compare, order)))
    assert [key(value) for value in ranked] == sorted(map(key, values))


@pytest.mark.parametrize("order", [*INTEGERS, *FLOATS])
def test_bounds_of_a_chunk_are_merged_from_its_pages(order: Order) -> None:
    dtype = (INTEGERS | FLOATS)[order]
    for seed in range(20):
        array = np.frombuffer(np.random.default_rng(seed).integers(1, 60, 800, dtype=np.uint8).tobytes(), dtype)
        pages = [min_max(order, raw(page)) for page in np.array_split(array, 5)]
        _, lows, highs = zip(*pages, strict=True)
        assert (extreme(order, [*lows], -1), extreme(order, [*highs], 1)) == min_max(order, raw(array))[1:]


def test_bounds_of_bytes_are_merged() -> None:
    assert [extreme(Order.ORDER_BYTES, [b"b", b"a"], -1), extreme(Order.ORDER_BYTES, [b"c", b"bb"], 1)] == [b"a", b"c"]
    signed_bytes = Order.ORDER_SIGNED_BYTES
    bounds = extreme(signed_bytes, [b"\x01", b"\xff"], -1), extreme(signed_bytes, [b"\x02", b"\x01\x00"], 1)
    assert bounds == (b"\xff", b"\x01\x00")


# ---- which order


INT32, INT64, BINARY, FIXED = Type.INT32, Type.INT64, Type.BYTE_ARRAY, Type.FIXED_LEN_BYTE_ARRAY


@pytest.mark.parametrize(
    ("column", "order"),
    [
        (ColumnType(Type.BOOLEAN), Order.ORDER_BOOLEAN),
        (ColumnType(INT32), Order.ORDER_INT32),
        (ColumnType(INT64), Order.ORDER_INT64),
        (ColumnType(Type.INT96), Order.ORDER_NONE),
        (ColumnType(Type.FLOAT), Order.ORDER_FLOAT),
        (ColumnType(Type.DOUBLE), Order.ORDER_DOUBLE),
        (ColumnType(BINARY), Order.ORDER_BYTES),
        (ColumnType(FIXED, 5), Order.ORDER_BYTES),
        (ColumnType(INT32, None, types.Integer(8, True)), Order.ORDER_INT32),
        (ColumnType(INT32, None, types.Integer(16, False)), Order.ORDER_UINT32),
        (ColumnType(INT64, None, types.Integer(64, False)), Order.ORDER_UINT64),
        (ColumnType(INT32, None, types.Date()), Order.ORDER_INT32),
        (ColumnType(INT32, None, types.Time("ms")), Order.ORDER_INT32),
        (ColumnType(INT64, None, types.Time("ns")), Order.ORDER_INT64),
        (ColumnType(INT64, None, types.Timestamp("us", True)), Order.ORDER_INT64),
        (ColumnType(INT32, None, types.Decimal(9, 2)), Order.ORDER_INT32),
        (ColumnType(INT64, None, types.Decimal(18, 2)), Order.ORDER_INT64),
        (ColumnType(BINARY, None, types.Decimal(30, 2)), Order.ORDER_SIGNED_BYTES),
        (ColumnType(FIXED, 16, types.Decimal(38, 2)), Order.ORDER_SIGNED_BYTES),
        (ColumnType(BINARY, None, types.String()), Order.ORDER_BYTES),
        (ColumnType(BINARY, None, types.Enum()), Order.ORDER_BYTES),
        (ColumnType(BINARY, None, types.Json()), Order.ORDER_BYTES),
        (ColumnType(BINARY, None, types.Bson()), Order.ORDER_BYTES),
        (ColumnType(FIXED, 16, types.Uuid()), Order.ORDER_BYTES),
        (ColumnType(FIXED, 2, types.Float16()), Order.ORDER_FLOAT16),
        (ColumnType(FIXED, 12, types.Interval()), Order.ORDER_NONE),
        (ColumnType(INT32, None, types.Unknown()), Order.ORDER_NONE),
    ],
    ids=str,
)
def test_order_of(column: ColumnType, order: Order) -> None:
    assert order_of(column) == order


PYARROW_COLUMNS = {
    "int32": (ColumnType(INT32), pa.array([3, -7, 5], pa.int32()), "<i4"),
    "uint32": (ColumnType(INT32, None, types.Integer(32, False)), pa.array([3, 1 << 31, 5], pa.uint32()), "<u4"),
    "uint64": (ColumnType(INT64, None, types.Integer(64, False)), pa.array([3, 1 << 63, 5], pa.uint64()), "<u8"),
    "float": (ColumnType(Type.FLOAT), pa.array([math.nan, 0.0, 2.5], pa.float32()), "<f4"),
    "double": (ColumnType(Type.DOUBLE), pa.array([math.nan, -1.5, -0.0], pa.float64()), "<f8"),
    "half": (ColumnType(FIXED, 2, types.Float16()), pa.array(np.array([np.nan, -1.5, 4], np.float16)), "<f2"),
}


@pytest.mark.parametrize("name", PYARROW_COLUMNS)
def test_pyarrow_writes_the_same_bounds(name: str, tmp_path: Path) -> None:
    column, array, dtype = PYARROW_COLUMNS[name]
    pq.write_table(pa.table({"x": array}), tmp_path / "x.parquet")
    statistics = pq.read_metadata(tmp_path / "x.parquet").row_group(0).column(0).statistics
    _, low, high = min_max(order_of(column), raw(array.to_numpy(zero_copy_only=False)))
    assert low
    assert high
    theirs = [np.frombuffer(value, dtype) if isinstance(value, bytes) else np.array([value], dtype)
              for value in (statistics.min, statistics.max)]
    assert [value.tobytes() for value in theirs] == [low, high]


def test_pyarrow_orders_decimals_the_same(tmp_path: Path) -> None:
    values = [
        Decimal("1.5"),
        Decimal("-1.5"),
        Decimal("-99999999999999999999.9"),
        Decimal("99999999999999999999.9"),
        Decimal("0"),
    ]
    pq.write_table(pa.table({"x": pa.array(values, pa.decimal128(30, 1))}), tmp_path / "x.parquet")
    statistics = pq.read_metadata(tmp_path / "x.parquet").row_group(0).column(0).statistics
    stored = [int(value.scaleb(1)).to_bytes(13, "big", signed=True) for value in values]
    _, low, high = min_max(Order.ORDER_SIGNED_BYTES, b"".join(stored), 13)
    assert low
    assert high
    assert [signed(low), signed(high)] == [int(Decimal(value).scaleb(1)) for value in (statistics.min, statistics.max)]


# ---- truncation


@given(st.binary(max_size=20), st.integers(1, 20), st.booleans())
@settings(max_examples=150)
def test_truncated_bounds_are_bounds(value: bytes, length: int, utf8: bool) -> None:
    low, low_exact = truncate_min(value, length, utf8)
    high, high_exact = truncate_max(value, length, utf8)
    assert low_exact == (low == value)
    assert high_exact == (high == value)
    assert low <= value
    assert value.startswith(low)
    assert len(low) <= max(length, 4 if utf8 else 0)
    if high is not None:
        assert high >= value
        assert len(high) <= max(length, 4 if utf8 else 0)


@given(st.text(max_size=12), st.integers(1, 20))
@settings(max_examples=150)
def test_truncated_text_is_text(text: str, length: int) -> None:
    value = text.encode()
    low, _ = truncate_min(value, length, True)
    high, _ = truncate_max(value, length, True)
    assert text.startswith(low.decode())
    assert high is None or high.decode() >= text  # code points are in the order of their UTF-8
    if len(value) > length and high is None:
        prefix = low.decode()
        assert all(code in "\x7f\u07ff\uffff\U0010ffff" for code in prefix)


@pytest.mark.parametrize(
    ("value", "length", "utf8", "low", "high"),
    [
        (b"Blart Versenwald III", 1, True, b"B", b"C"),  # the example of parquet.thrift
        (b"abc", 3, False, b"abc", b"abc"),
        (b"abcd", 3, False, b"abc", b"abd"),
        (b"ab\xff\xffz", 4, False, b"ab\xff\xff", b"ac"),
        (b"\xff\xff\xff", 2, False, b"\xff\xff", None),
        ("aé".encode(), 2, True, b"a", b"b"),
        ("éa".encode(), 1, True, "é".encode(), "ê".encode()),
        (b"a\x7fx", 2, True, b"a\x7f", b"b"),
        (b"\x7f\x7f\x7f", 2, True, b"\x7f\x7f", None),
        ("\ud7ffx".encode(), 3, True, "\ud7ff".encode(), "\ue000".encode()),
        ("\U0010ffff\U0010ffff".encode(), 4, True, "\U0010ffff".encode(), None),
        (b"a\xff\xfe\xfd", 2, True, b"a\xff", b"b"),  # not UTF-8 at all
    ],
)
def test_truncation_by_example(value: bytes, length: int, utf8: bool, low: bytes, high: bytes | None) -> None:
    assert truncate_min(value, length, utf8)[0] == low
    assert truncate_max(value, length, utf8)[0] == high


@pytest.mark.parametrize(
    "text",
    [
        "a" * 100,
        "é" * 50,
        "a" * 63 + "é" * 9,
        "a" + "\U0010ffff" * 30,
        "a" * 60 + "\U0010ffff" * 3,
        "a" * 63 + "\x7f" * 4,
    ],
    ids=range(6),
)
def test_parquet_rs_truncates_text_the_same(text: str, tmp_path: Path) -> None:
    arro3 = peer("arro3.io", "arro3-io")
    arro3.write_parquet(pa.table({"x": [text]}), str(tmp_path / "x.parquet"))  # truncates to 64 bytes
    statistics = pq.read_metadata(tmp_path / "x.parquet").row_group(0).column(0).statistics
    assert truncate_min(text.encode(), 64, True) == (statistics.min.encode(), False)
    assert truncate_max(text.encode(), 64, True) == (statistics.max.encode(), False)
