"""``in`` and ``not in`` with few and with very many values, of each type and by each route, compared with Python's sets."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import math
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.arrays.layouts import BinaryOffsets
from fastpq.arrays.slices import SliceReader
from fastpq.filters import key_sets
from fastpq.filters.compare import BytesTable, NumberTable
from fastpq.filters.key_sets import KeySet, ListOfValues
from fastpq.filters.literals import IntegerDomain, domain_of
from fastpq.schema import types
from fastpq.schema.types import ColumnType, Type

ROWS = 3000
UTC = dt.UTC
EPOCH = dt.datetime(1970, 1, 1)
RANDOM = np.random.default_rng(40)


def integers(bits: int, signed: bool) -> Callable[[int], list[int]]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)

    def make(count: int) -> list[int]:
        random = np.random.default_rng(count)
        wide = random.integers(low, high, count, endpoint=True, dtype=np.int64 if signed else np.uint64).tolist()
        near = random.integers(0 if not signed else -50 if bits > 8 else -20, 50, count).tolist()
        return [*wide[: count // 2], *near[count // 2 :]]

    return make


def floats(dtype: Any) -> Callable[[int], list[float]]:
    def make(count: int) -> list[float]:
        random = np.random.default_rng(count)
        with np.errstate(over="ignore"):
            values = (random.standard_normal(count) * 100).astype(dtype)
        special = np.array([math.nan, -0.0, 0.0, math.inf, -math.inf, 1.5], dtype)
        values[::7] = special[random.integers(0, len(special), len(values[::7]))]
        return [float(value) for value in values]

    return make


def spread(make: Callable[[int], Any], most: int = 100_000) -> Callable[[int], list[Any]]:
    return lambda count: [make(int(number)) for number in np.random.default_rng(count).integers(0, most, count)]


def decimals(digits: int, scale: int) -> Callable[[int], list[Decimal]]:
    context = decimal.Context(prec=80)

    def make(count: int) -> list[Decimal]:
        random = np.random.default_rng(count)
        numbers = [int(number) for number in random.integers(-50_000, 50_000, count)]
        return [Decimal(number * (10 ** (digits - 6)) + number % 7).scaleb(-scale, context) for number in numbers]

    return make


DAY = dt.date(2020, 1, 1)
# By name: type in Arrow, and a function that makes values.
KINDS: dict[str, tuple[pa.DataType, Callable[[int], list[Any]]]] = {
    **{f"int{bits}": (getattr(pa, f"int{bits}")(), integers(bits, True)) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (getattr(pa, f"uint{bits}")(), integers(bits, False)) for bits in (8, 16, 32, 64)},
    "float16": (pa.float16(), floats(np.float16)),
    "float32": (pa.float32(), floats(np.float32)),
    "float64": (pa.float64(), floats(np.float64)),
    "bool": (pa.bool_(), spread(lambda number: number % 2 == 0)),
    "string": (pa.string(), spread(lambda number: f"é{number}" * (number % 3))),
    "binary": (pa.binary(), spread(lambda number: number.to_bytes(4, "big").rstrip(b"\0"))),
    "fixed": (pa.binary(5), spread(lambda number: number.to_bytes(5, "little"))),
    "uuid": (pa.uuid(), spread(lambda number: uuid.UUID(int=number << 60))),
    "decimal9": (pa.decimal128(9, 2), decimals(9, 2)),
    "decimal18": (pa.decimal128(18, 4), decimals(18, 4)),
    "decimal38": (pa.decimal128(38, 10), decimals(38, 10)),
    "decimal76": (pa.decimal256(76, 10), decimals(76, 10)),
    "date": (pa.date32(), spread(lambda number: DAY + dt.timedelta(number), 3000)),
    "timestamp[ms]": (pa.timestamp("ms"), spread(lambda number: EPOCH + dt.timedelta(milliseconds=number * 10**6))),
    "timestamp[us]": (pa.timestamp("us"), spread(lambda number: EPOCH - dt.timedelta(microseconds=number))),
    "timestamp[ns]": (pa.timestamp("ns"), spread(lambda number: EPOCH + dt.timedelta(microseconds=number))),
    "timestamp[us, UTC]": (
        pa.timestamp("us", "UTC"), spread(lambda number: EPOCH.replace(tzinfo=UTC) + dt.timedelta(seconds=number))),
    "time32[ms]": (pa.time32("ms"), spread(lambda number: dt.time(number % 24, number % 60, number % 59, number % 1000 * 1000))),
    "time64[us]": (pa.time64("us"), spread(lambda number: dt.time(number % 24, number % 60, 1, number))),
}
# Values that fit a column of the kind, and that none of its values equals.
OUTSIDE: dict[str, list[Any]] = {
    **{f"{sign}int{bits}": [1 << 70, -(1 << 70), 1 << bits, -(1 << bits - 1) - 1, 0.5]
       for bits in (8, 16, 32, 64) for sign in ("", "u")},
    "float16": [1e300, 70000], "float32": [1e300], "fixed": [b"", b"123456"], "decimal9": [Decimal("0.001"), 1 << 200],
    "decimal18": [Decimal("0.00001")], "decimal38": [1 << 200], "date": [dt.datetime(2020, 1, 1, 1)],
    "timestamp[ms]": [np.datetime64(1, "us")], "time32[ms]": [dt.timedelta(microseconds=1)],
}


def equal(value: Any) -> Any:
    """A value that is equal to others as the filters define it: NaN to NaN, and the zeros."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def expected(stored: Sequence[Any], values: Sequence[Any], negated: bool) -> list[int]:
    """Numbers of the rows that match."""
    if negated and None in values:
        return []
    keys = {equal(value) for value in values if value is not None}
    return [row for row, value in enumerate(stored) if value is not None and (equal(value) in keys) is not negated]


def table_of(kind: str) -> pa.Table:
    type_, make = KINDS[kind]
    values: list[Any] = make(ROWS)
    values[::11] = [None] * len(values[::11])
    if kind == "uuid":
        stored = [None if value is None else value.bytes for value in values]
        return pa.table({"x": pa.array(stored, pa.uuid()), "row": range(ROWS)})
    if kind == "float16":
        return pa.table({
            "x": pa.array([None if value is None else np.float16(value) for value in values], type_), "row": range(ROWS)})
    return pa.table({"x": pa.array(values, type_), "row": range(ROWS)})


def values_of(table: pa.Table, kind: str) -> list[Any]:
    values = table["x"].to_pylist()
    return [None if value is None else float(value) for value in values] if kind.startswith("float") else values


def lists_of(kind: str, count: int, stored: list[Any]) -> list[Any]:
    """A list of so many values, some of them in the column and some not."""
    made = KINDS[kind][1](count + 1)[:count]
    present = [value for value in stored if value is not None]
    made[: count // 2] = (present * (count // len(present) + 1))[:: 3][: count // 2]
    return made


@pytest.mark.parametrize("count", [1, 1000])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_every_type(kind: str, dictionary: bool, count: int) -> None:
    """The list as it is, with None, with values that no value equals, negated, and as an array."""
    table = table_of(kind)
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=500, use_dictionary=dictionary, write_page_index=True, data_page_size=800)
    stored = values_of(table, kind)
    values = lists_of(kind, count, stored)
    with fastpq.ParquetFile(sink.getvalue()) as file:
        for given in (values, [*values, None], [*values, *OUTSIDE.get(kind, [])]):
            known = [value for value in given if value is None or value not in OUTSIDE.get(kind, [])]
            for negated, op in enumerate(("in", "not in")):
                rows = expected(stored, known, bool(negated))
                filters = [("x", op, given)]
                assert file.read(["row"], filters=filters)["row"].to_pylist() == rows
                assert file.count(filters) == len(rows)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_million_values(kind: str, tmp_path: Path) -> None:
    """By every route: one file, a dataset, batches and the count."""
    table = table_of(kind)
    stored = values_of(table, kind)
    values = lists_of(kind, 1_000_000, stored)
    fastpq.write_table(table, tmp_path / "a.parquet", row_group_size=700, bloom_filter={} if kind == "bool" else {"x": True})
    pq.write_table(table.slice(0, 1000), tmp_path / "b.parquet")
    for negated, op in enumerate(("in", "not in")):
        rows = expected(stored, values, bool(negated))
        both = [*rows, *(row for row in rows if row < 1000)]
        filters = [("x", op, values)]
        with fastpq.ParquetFile(tmp_path / "a.parquet") as file:
            assert file.read(["row"], filters=filters)["row"].to_pylist() == rows
            assert file.count(filters) == len(rows)
            parts = file.iter_batches(500, ["row"], filters=filters)
            assert [row for part in parts for row in part["row"].to_pylist()] == rows
        dataset = fastpq.ParquetDataset(tmp_path)
        assert dataset.read(["row"], filters=filters)["row"].to_pylist() == both
        assert dataset.count(filters) == len(both)


BLOOMED = [kind for kind in KINDS if kind not in ("bool", "int8", "int16", "uint8", "uint16")]


@pytest.mark.parametrize("kind", BLOOMED)
def test_bloom_filters_rule_out_lists(kind: str) -> None:
    """No row group of the values' neighbours is read: the bounds enclose the list, the bloom filters do not have it."""
    table = table_of(kind).filter(pa.compute.is_valid(table_of(kind)["x"]))
    sink = io.BytesIO()
    fastpq.write_table(table, sink, bloom_filter={"x": {"fpp": 1e-9}}, use_dictionary=False)
    stored = values_of(table, kind)
    with fastpq.ParquetFile(sink.getvalue()) as file:
        present = [("x", "in", stored[:100])]
        assert file.count(present) == len(expected(stored, stored[:100], False))
        known = {equal(each) for each in stored}
        absent = [value for value in KINDS[kind][1](20_000)[10_000:] if equal(value) not in known and value == value][:40]
        if absent:
            (group,) = file.explain([("x", "in", absent)]).row_groups
            assert group.rows == 0, [str(each) for each in group.evidence]


def column_types() -> list[ColumnType]:
    return [
        *(ColumnType(Type.INT32, None, types.Integer(bits, signed)) for bits in (8, 16, 32) for signed in (True, False)),
        ColumnType(Type.INT64), ColumnType(Type.INT64, None, types.Integer(64, False)), ColumnType(Type.INT96),
        ColumnType(Type.FLOAT), ColumnType(Type.DOUBLE), ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 2, types.Float16()),
        ColumnType(Type.BOOLEAN), ColumnType(Type.BYTE_ARRAY, None, types.String()), ColumnType(Type.BYTE_ARRAY),
        ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 3), ColumnType(Type.FIXED_LEN_BYTE_ARRAY, 16, types.Uuid()),
        ColumnType(Type.INT32, None, types.Date()), ColumnType(Type.INT32, None, types.Decimal(9, 2)),
        ColumnType(Type.BYTE_ARRAY, None, types.Decimal(30, 3)),
        *(ColumnType(Type.INT64, None, types.Timestamp(unit, utc)) for unit in ("ms", "us", "ns") for utc in (True, False)),
        ColumnType(Type.INT32, None, types.Time("ms")), ColumnType(Type.INT64, None, types.Time("ns")),
    ]


LISTS: list[Any] = [
    [1, 2, -3, 1 << 40, 1 << 63, -(1 << 63), 1 << 64, -(1 << 64), 255, 256], [1 << 63, (1 << 64) - 1], [1, 2.5, -0.0], [math.inf],
    [1.0, -0.0, 0.1, 2.0**63, -(2.0**63), 2.0**64, 1e300, 65519.0, 65520.0, 1e-320], [math.nan, 1.0, 0.0],
    [True, False], [True, 1],
    ["a", "", "\ud800"], ["a", "é", "2020-01-01", "2020-01-01 10:00"], [b"", b"abc", b"abcd"], [b"x" * 16],
    [uuid.UUID(int=1), uuid.UUID(int=2)], [str(uuid.UUID(int=1))], [dt.date(2020, 1, 1), dt.date(1, 1, 1)],
    [dt.datetime(2020, 1, 1), dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)],
    [dt.datetime(2020, 1, 1, tzinfo=UTC), dt.datetime(2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5)))],
    [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=UTC)], [dt.time(1, 2, 3, 4), dt.time(0)], [dt.time(1, tzinfo=UTC)],
    [dt.timedelta(seconds=1), dt.timedelta(days=-1, microseconds=1), dt.timedelta.max],
    [Decimal("1.23"), Decimal("1.234"), Decimal("-1E+5"), Decimal("1E-400"), Decimal("1E+80")], [Decimal("NaN"), Decimal(1)],
    [Fraction(1, 2), Fraction(3)], [1, None], [None, None], [None, b"abc"], [np.int64(3), 4], [np.float32(0.1), 0.1], [object()],
    np.array([1, 2, 300], np.int64), np.array([1, 200], np.uint8), np.array([(1 << 64) - 1, 5], np.uint64),
    np.array([True, False]),
    np.array([0.5, 2, 1e300, 2.0**31, -(2.0**31)]), np.array([math.nan, 1.0]), np.array([math.inf, 1.0]),
    np.array([0.1, 2], np.float32), np.array([1.5], np.longdouble), np.array([[1, 2]]), np.ma.masked_array([1, 2], [True, False]),
    np.array(["2020-01-01", "1969-12-31"], "datetime64[D]"), np.array(["2020-01-01T10", "1969-12-31T00"], "datetime64[h]"),
    np.array(["2020-01", "1500-01"], "datetime64[M]"), np.array(["2020-01-01", "NaT"], "datetime64[D]"),
    np.array([1, 10**18, -1], "datetime64[ns]"), np.array([1, 10**18], "datetime64[as]"),
    np.array([7, 86_400_000], "datetime64[25ms]"),
    np.array([1, 10**18, -(10**18)], "datetime64[W]"), np.array([1, 1000, 10**9], "timedelta64[ns]"),
    np.array([1], "timedelta64[M]"),
    np.array([1, 2], "timedelta64"), np.array([b"abc", b"a"]), np.array(["a", "b"]), np.array([b"abc"], "V3"),
    np.array(["a", None], object), np.array(["a", "b"], np.dtypes.StringDType()),
]


@pytest.mark.parametrize("type_", column_types(), ids=str)
def test_the_fast_way_gives_the_keys_of_the_slow_way(type_: ColumnType, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = domain_of(type_)
    for values in LISTS:
        results: list[Any] = []
        for few in (0, 1 << 30):
            monkeypatch.setattr(key_sets, "FEW_VALUES", few)
            try:
                results.append(list(KeySet.of(domain, values)))
            except fastpq.SchemaError as error:
                results.append(str(error))
        assert results[0] == results[1], values


def test_hashes_of_single_keys_differ() -> None:
    """Equal hashes made a filter of 3,000 conditions on one column take two minutes."""
    domain = domain_of(ColumnType(Type.INT64))
    assert len({hash(KeySet.of(domain, [number])) for number in range(1000)}) > 900


@pytest.mark.parametrize("type_", column_types(), ids=str)
def test_key_sets_as_sequences_and_as_arrays(type_: ColumnType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds are compared, and hashes made, as with the keys one by one."""
    domain = domain_of(type_)
    for values in LISTS:
        sets = []
        for few in (0, 1 << 30):
            monkeypatch.setattr(key_sets, "FEW_VALUES", few)
            try:
                sets.append(KeySet.of(domain, values))
            except fastpq.SchemaError:
                continue
        if not sets:
            continue
        fast, slow = sets
        assert fast == slow
        assert hash(fast) == hash(slow)
        keys = list(slow)
        assert len(fast) == len(slow) == len(keys)
        for low in [None, *keys]:
            for high in [None, *keys]:
                if low is None or high is None or low <= high:
                    between = any((low is None or low <= key) and (high is None or key <= high) for key in keys)
                    assert fast.has_key_between(low, high) is slow.has_key_between(low, high) is between
        hashes = [None if each.plain_hashes is None else sorted(each.plain_hashes.tolist()) for each in (fast, slow)]
        assert hashes[0] == hashes[1]


def test_lists_are_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = domain_of(ColumnType(Type.INT64))
    values = ListOfValues(range(100))
    monkeypatch.setattr(IntegerDomain, "equal", None)
    assert values.keys_for(domain) is values.keys_for(domain)
    assert list(values.keys_for(domain_of(ColumnType(Type.DOUBLE)))) == [(0, float(number)) for number in range(100)]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("signed", [False, True])
def test_tables_of_numbers(dtype: Any, signed: bool) -> None:
    """Against numpy.isin: dense and sparse keys, runs, both ends of the range, none at all."""
    info = np.iinfo(dtype)
    kind = np.dtype(dtype).str.replace("u", "i") if signed else dtype
    ends = np.iinfo(kind)
    near = np.arange(-40, 40).astype(dtype)
    for count in (0, 1, 2, 40, 3000):
        wide = RANDOM.integers(0, info.max, count, dtype=dtype, endpoint=True)
        for keys in (wide, np.append(wide, near), np.append(wide >> np.array(1, dtype), np.array([info.max, 0], dtype))):
            for more in ([], [ends.min, ends.max, ends.min + 1, ends.max - 1]):
                chosen = np.unique(np.append(keys.view(kind), np.array(more, kind)))
                random = RANDOM.integers(0, info.max, 5000, dtype=dtype, endpoint=True)
                values = np.concatenate([random, near, chosen.view(dtype)])
                values = np.concatenate([values, values + np.array(1, dtype), values - np.array(1, dtype)])
                table = NumberTable(chosen.view(dtype))
                assert np.array_equal(table.are_keys(values), np.isin(values, chosen.view(dtype)))
                assert np.array_equal(table.are_keys(values[:5]), np.isin(values[:5], chosen.view(dtype)))
    assert table.are_keys(values[:0]).tolist() == []
    with pytest.raises(ValueError, match="expected"):
        table.are_keys(np.zeros(3, f"V{np.dtype(dtype).itemsize + 1}"))
    with pytest.raises(ValueError, match="unsigned"):
        NumberTable(np.zeros(3))


def test_tables_of_bytes() -> None:
    for count in (0, 1, 100, 50_000):
        keys = [bytes(RANDOM.integers(0, 256, number % 40, np.uint8)) + number.to_bytes(3, "big") for number in range(count)]
        table = BytesTable(keys)
        fixed = np.frombuffer(b"".join(number.to_bytes(7, "little") for number in range(2000)), "V7")
        chosen = BytesTable([bytes(value) for value in fixed[::3].tolist()])
        assert chosen.are_fixed_keys(fixed).tolist() == [number % 3 == 0 for number in range(2000)]
        values = [*keys[::2], b"not there", b""]
        offsets = np.cumsum([0, *map(len, values)]).astype(np.int64)
        reader = SliceReader(BinaryOffsets(offsets, np.frombuffer(b"".join(values), np.uint8)))
        assert table.are_keys(reader).tolist() == [*[True] * len(keys[::2]), False, False]
    assert BytesTable([b""]).are_fixed_keys(np.zeros(3, "V0")).tolist() == [True] * 3


UTC_TYPE = pa.timestamp("us", "UTC")
ARRAYS: dict[str, tuple[Any, Callable[[list[Any]], Any]]] = {
    "pyarrow": (pa.array(range(100)), pa.array),
    "chunks": (pa.array(range(100)), lambda values: pa.chunked_array([values[:2], values[2:]])),
    "text": (pa.array(map(str, range(100))), pa.array),
    "dictionary": (pa.array(map(str, range(100))), lambda values: pa.array(values).dictionary_encode()),
    "moments": (pa.array(range(100), pa.timestamp("ns")), lambda values: pa.array(values, pa.timestamp("ns"))),
    "moments of UTC": (pa.array(range(100), pa.timestamp("us", "UTC")), lambda values: pa.array(values, UTC_TYPE)),
    "pandas": (pa.array(range(100), pa.timestamp("us")), lambda values: [pd.Timestamp(value) for value in values]),
    "numpy": (pa.array(range(100)), np.array),
}


@pytest.mark.parametrize("count", [3, 40])
@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_as_values(kind: str, count: int) -> None:
    """Arrays of Arrow and NumPy stand for the list of their values. Null stands for None."""
    column, array_of = ARRAYS[kind]
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": column, "row": range(100)}), sink)
    values = column.cast(column.type).to_pylist()[:count] if kind != "moments" else list(range(count))
    keys = array_of(values)
    with fastpq.ParquetFile(sink.getvalue()) as file:
        assert file.read(["row"], filters=[("x", "in", keys)])["row"].to_pylist() == list(range(count))
        assert file.count([("x", "not in", keys)]) == 100 - count


def test_arrays_with_nulls_and_of_wrong_shapes() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": range(10)}), sink)
    masked = np.ma.array([1, 2, 3], mask=[False, True, False])
    with fastpq.ParquetFile(sink.getvalue()) as file:
        for keys in (masked, pa.array([1, None, 3]), [1, None, 3]):
            assert file.read(filters=[("x", "in", keys)])["x"].to_pylist() == [1, 3]
            assert file.count([("x", "not in", keys)]) == 0
        assert file.count([("x", "not in", np.ma.array([1, 2]))]) == 8
        for keys in (np.array(3), np.zeros((2, 2), np.int64)):
            with pytest.raises(fastpq.SchemaError, match="an array with one dimension"):
                file.count([("x", "in", keys)])
