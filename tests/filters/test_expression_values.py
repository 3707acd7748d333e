"""Values of expressions: moments of any unit, times, decimals, sets as Series, structs; and parts that only one library takes."""

from __future__ import annotations

import datetime as dt
import functools
import io
import operator
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpq

UNITS: dict[str, int] = {"ms": 1_000_000, "us": 1_000, "ns": 1}
EDGES = [-1_000_001, -1_000_000, -1_000, -1, 0, 1, 999, 1_000, 1_001, 999_999, 1_000_000, 1_001_000]     # nanoseconds
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def written(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=4, **options)
    return sink.getvalue()


def rows(data: bytes, expression: Any) -> Any:
    return fastpq.read_table(data, ["id"], filters=expression)["id"].to_pylist()


def rows_of_polars(data: bytes, expression: pl.Expr) -> list[int]:
    return pl.read_parquet(io.BytesIO(data)).filter(expression)["id"].to_list()


def column(values: list[Any], type_: pa.DataType) -> bytes:
    return written(pa.table({"id": np.arange(len(values)), "x": pa.array(values, type_)}))


def moments(unit: str) -> list[int | None]:
    return [*sorted({place // UNITS[unit] for place in EDGES}), None]


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([*UNITS]), st.sampled_from([*UNITS]), st.sampled_from(EDGES), st.data())
def test_units_of_polars(own: str, given_unit: Any, place: int, data: st.DataObject) -> None:
    file = column(moments(own), pa.timestamp(own))
    value = pl.lit(place // UNITS[given_unit], dtype=pl.Datetime(given_unit))
    series = pl.Series([place // UNITS[given_unit], None], dtype=pl.Datetime(given_unit))
    x = pl.col("x")
    expression = data.draw(
        st.one_of(
            st.sampled_from(COMPARISONS).map(lambda op: op(x, value)),
            st.sampled_from(COMPARISONS).map(lambda op: op(value, x)),
            st.sampled_from([x.is_between(value, value, closed) for closed in ("both", "left", "right")]),
            st.sampled_from([x.eq_missing(value), x.ne_missing(value), x.is_in(series), x.is_in(series.implode())]),
        )
    )
    for one in (expression, ~expression):
        assert rows(file, one) == rows_of_polars(file, one)


def test_int96_of_polars() -> None:
    file = written(
        pa.table({"id": [0, 1, 2], "x": pa.array([0, 999, 1000], pa.timestamp("ns"))}), use_deprecated_int96_timestamps=True
    )
    for op in COMPARISONS:
        expression = op(pl.col("x"), dt.datetime(1970, 1, 1))
        assert rows(file, expression) == rows_of_polars(file, expression)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["timestamp", "time"]), st.sampled_from([*UNITS]), st.sampled_from([*UNITS]), st.data())
def test_units_of_pyarrow(kind: str, own: str, given_unit: str, data: st.DataObject) -> None:
    def type_of(unit: str) -> pa.DataType:
        return pa.timestamp(unit) if kind == "timestamp" else pa.time32(unit) if unit == "ms" else pa.time64(unit)

    values = [value for value in moments(own) if kind == "timestamp" or value is None or value >= 0]
    table = pa.table({"id": np.arange(len(values)), "x": pa.array(values, type_of(own))})
    place = data.draw(st.sampled_from([edge for edge in EDGES if kind == "timestamp" or edge >= 0]))
    number = pa.int32() if type_of(given_unit).bit_width == 32 else pa.int64()
    value = pa.scalar(place // UNITS[given_unit], number).cast(type_of(given_unit))
    expression = data.draw(st.sampled_from(COMPARISONS))(pc.field("x"), value)
    for one in (expression, ~expression):
        assert rows(written(table), one) == table.filter(one)["id"].to_pylist()
    own_set = pc.field("x").isin(pa.array(data.draw(st.lists(st.sampled_from(values), max_size=3)), type_of(own)))
    assert rows(written(table), own_set) == table.filter(own_set)["id"].to_pylist()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.none(), st.decimals("-9.99", "9.99", places=2)), max_size=8), st.data())
def test_decimals_and_dates(numbers: list[Any], data: st.DataObject) -> None:
    days = data.draw(st.lists(st.one_of(st.none(), st.dates()), min_size=len(numbers), max_size=len(numbers)))
    x, d = pa.array(numbers, pa.decimal128(5, 2)), pa.array(days, pa.date32())
    table = pa.table({"id": np.arange(len(numbers)), "x": x, "d": d})
    file = written(table)
    number = data.draw(st.one_of(st.sampled_from([*numbers, None]), st.decimals("-9.999", "9.999", places=3)))
    day = data.draw(st.one_of(st.sampled_from([*days, None]), st.dates()))
    op = data.draw(st.sampled_from(COMPARISONS))
    of_arrow = [
        op(pc.field("x"), pa.scalar(number, pa.decimal128(6, 3))), op(pc.field("d"), pa.scalar(day, pa.date32())),
        pc.field("x").isin(pa.array(numbers[:2], x.type)), pc.field("d").isin(pa.array(days[:2], d.type)),
    ]
    of_polars = [
        op(pl.col("x"), pl.lit(number, dtype=pl.Decimal(6, 3))), op(pl.col("d"), pl.lit(day, dtype=pl.Date)),
        pl.col("x").is_in(pl.Series(numbers[:2], dtype=pl.Decimal(5, 2))), pl.col("d").is_in(pl.Series(days[:2], dtype=pl.Date)),
    ]
    for one, other in zip(of_arrow, of_polars, strict=True):
        for arrow, polars in ((one, other), (~one, ~other)):
            assert rows(file, arrow) == table.filter(arrow)["id"].to_pylist()
            assert rows(file, polars) == rows_of_polars(file, polars)


@pytest.mark.parametrize(
    ("values", "series"),
    [
        (["a", "b", "abc", None], pl.Series(["abc"])),
        (["a", "b", "abc", None], pl.Series(["abc", None])),
        (["a", "b", "abc", None], pl.Series([], dtype=pl.String)),
        ([b"a", b"b", None], pl.Series([b"ab", b"a"])),
        ([1, 2, 3, None], pl.Series([1, 2])),
        ([1, 2, 3, None], pl.Series([[1, 2]])),
        ([1, 2, 3, None], pl.Series([[1, 2]], dtype=pl.Array(pl.Int64, 2))),
        ([1, 2, 3, None], pl.Series([None, 3])),
        ([dt.time(1), dt.time(2), None], pl.Series([dt.time(2)])),
        ([dt.date(2024, 1, 1), None], pl.Series([dt.date(2024, 1, 1)])),
        ([0.5, 1.5, None], pl.Series([float("nan"), 0.5])),
    ],
)
@pytest.mark.parametrize("nulls_equal", [True, False])
def test_sets_as_series(values: list[Any], series: pl.Series, nulls_equal: bool) -> None:
    file = written(pa.table({"id": np.arange(len(values)), "x": values}))
    given_set = pl.lit(series) if isinstance(series.dtype, pl.List | pl.Array) else series
    expression = pl.col("x").is_in(given_set, nulls_equal=nulls_equal)
    for one in (expression, ~expression):
        assert rows(file, one) == rows_of_polars(file, one)


def test_times_of_nanoseconds() -> None:
    file = column([1000, 1001, 2000], pa.time64("ns"))
    value = pa.scalar(1001, pa.time64("ns"))
    assert rows(file, pc.field("x") == value) == rows(file, pc.field("x").isin(pa.array([1001], value.type))) == [1]
    assert rows(file, pc.field("x") > value) == [2]
    assert rows(file, pl.col("x").is_in(pl.Series([1001]).cast(pl.Time))) == [1]
    assert rows(column([1], pa.time64("us")), pc.field("x") == value) == []


def test_moments_beyond_python() -> None:
    assert rows(column([0, None], pa.timestamp("us")), pc.field("x") < pa.scalar(10**18, pa.timestamp("us"))) == [0]
    assert rows(column([0, None], pa.date32()), pc.field("x") < pa.scalar(10**8, pa.date32())) == [0]
    far = pl.Series([10**18, 0], dtype=pl.Datetime("us"))
    assert rows(column([0, 10**18], pa.timestamp("us")), pl.col("x").is_in(far)) == [0, 1]


def test_functions_without_options() -> None:
    file = column([1, None, 3], pa.int64())
    assert rows(file, pc.is_null(pc.field("x"))) == [1]
    assert rows(file, ~pc.is_null(pc.field("x"))) == [0, 2]


@pytest.mark.parametrize("join", [operator.or_, operator.and_])
def test_many_parts(join: Any) -> None:
    file = column([1, None, 5000], pa.int64())
    parts = [pc.field("x") != k for k in range(3000)] if join is operator.and_ else [pc.field("x") == k for k in range(3000)]
    assert rows(file, functools.reduce(join, parts)) == ([2] if join is operator.and_ else [0])
    deep = functools.reduce(join, [pl.col("x") == k for k in range(800)])
    with pytest.raises(fastpq.UnsupportedError, match="nested too deeply"):
        fastpq.read_table(file, filters=deep)


STRUCT = pa.array([{"n": 1}, {"n": None}, None], pa.struct([("n", pa.int64())]))


@pytest.mark.parametrize(
    ("values", "expression", "reason"),
    [
        (STRUCT, pc.field("x").is_null(), "a struct"),
        (STRUCT, pc.field("x").is_valid(), "a struct"),
        (STRUCT, pl.col("x").is_null(), "a struct"),
        (pa.array([0.1], pa.float32()), pc.field("x") == Decimal("0.1"), "give a float"),
        (pa.array([0.3], pa.float64()), pc.field("x") == Decimal("0.3"), "give a float"),
        (pa.array([0.1], pa.float32()), pl.col("x") == Decimal("0.1"), "give a float"),
        (pa.array([18262], pa.date32()), pc.field("x").isin([dt.datetime(2020, 1, 1, 12)]), "give dates"),
        (pa.array([1]), ~pl.col("x").is_between(None, 2), "a bound None"),
        (pa.array([1]), pl.col("x") == pl.Series([1]), "give the value itself"),
        (pa.array([1]), pl.col("x").is_in(pl.lit(pl.Series([[1], [2]]))), "a list for each row"),
        (pa.array([1], pa.timestamp("ns", "UTC")), pc.field("x") == pa.scalar(1, pa.timestamp("ns")), "column has a time zone"),
        (pa.array([1], pa.timestamp("us")), pl.col("x") == pl.lit(1, dtype=pl.Datetime("ns", "UTC")), "column has no time zone"),
    ],
)
def test_values_without_translation(values: pa.Array, expression: Any, reason: str) -> None:
    file = written(pa.table({"id": np.arange(len(values)), "x": values}))
    with pytest.raises(fastpq.UnsupportedError, match=reason):
        fastpq.read_table(file, filters=expression)


def test_messages_of_long_sets_are_short() -> None:
    with pytest.raises(fastpq.UnsupportedError) as caught:
        fastpq.read_table(column([0.1], pa.float32()), filters=pl.col("x").is_in([0.1] * 10_000))
    assert len(str(caught.value)) < 500
