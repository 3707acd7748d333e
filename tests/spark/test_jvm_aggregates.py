"""Aggregates of which tasks compute parts: the results of Spark's native source, and which aggregates stay with Spark."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from decimal import Context, Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as spark_types

import fastpq
from fastpq.arrays.table import Table
from fastpq.spark.batches import FileScan, ScanPlan, scan_split
from fastpq.spark.filters import encode_filters
from fastpq.spark.jvm import scan
from fastpq.spark.jvm.expressions import aggregate_of, type_of
from fastpq.spark.jvm.parts import PartialAggregates, TaskParts
from fastpq.spark.listing import ListedFile
from fastpq.spark.planning import Split
from tests.spark.conftest import CLIENT
from tests.spark.test_jvm_plans import both, parted, plan_of
from tests.spark.test_jvm_read import FORMAT, native

__all__ = ["native", "parted"]      # fixtures


def is_pushed(frame: Any) -> bool:
    return "PushedAggregates" in plan_of(frame)


PUSHED = [
    "sum(i32)", "sum(id)", "sum(f64)", "sum(small)", "sum(long)", "avg(i32)", "avg(small)", "avg(long)", "avg(f64)", "min(f32)",
    "max(f64)", "max(small)", "max(long)", "min(i8)", "sum(small * long)", "sum(small - long)", "sum(long - small)",
    "sum(small + 1)", "sum(2 - long)", "sum(1.50 * small)", "sum(f64 * 2.5d - f64)", "sum(small * small * small)",
    "sum(-1.0d * f64)", "count(*)", "count(nested)", "count(lists)", "count(wide)", "count(text)", "count(flag)", "count(long)",
]
LEFT = [
    "sum(i8)", "sum(i16)", "sum(f32)", "avg(id)", "sum(wide)", "sum(i32 + 1)", "sum(distinct i8)", "stddev(f64)",
    "sum(small / 3)", "sum(f32 * f32)", "sum(long * long * long)", "sum(i32) filter (where flag)", "sum(small % 3)",
    "sum(abs(small))", "sum(nested.x)", "max(text)", "min(day)", "max(instant)", "max(wide)", "max(flag)",
]


def test_parts(spark: Any, native: tuple[Any, str]) -> None:
    frame, path = native
    found, expected = spark.read.format(FORMAT).load(path).selectExpr(*PUSHED), frame.selectExpr(*PUSHED)
    assert is_pushed(found)
    assert found.schema == expected.schema
    assert found.first().asDict() == expected.first().asDict()


def test_aggregates_that_stay_with_spark(spark: Any, native: tuple[Any, str]) -> None:
    """One of them keeps all of a query with Spark."""
    frame, path = native
    ours = spark.read.format(FORMAT).load(path)
    assert [aggregate for aggregate in LEFT if is_pushed(ours.selectExpr("sum(id)", aggregate))] == []
    assert ours.selectExpr(*LEFT).first().asDict() == frame.selectExpr(*LEFT).first().asDict()


def test_conditions_on_values(spark: Any, native: tuple[Any, str]) -> None:
    frame, path = native
    found = spark.read.format(FORMAT).load(path).where("id > 500").selectExpr("sum(i32)")
    assert not is_pushed(found)
    assert found.collect() == frame.where("id > 500").selectExpr("sum(i32)").collect()


@pytest.mark.parametrize(
    ("condition", "groups"),
    [("true", []), ("true", ["part", "name"]), ("part > 1", ["name"]), ("part = 9", []), ("part = 9", ["name"]),
     ("name is null", []), ("name = 'b' and part < 3", ["part", "name"])],
)
def test_folders(spark: Any, parted: str, condition: str, groups: list[str]) -> None:
    """Conditions on folders and groups by folders, with a row group in each task; the rows of no folder have a count of zero."""
    aggregates = ["sum(id)", "count(tiny)", "avg(part)", "sum(part)", "count(name)", "max(part)", "min(price)", "max(price)"]
    found, expected = (
        frame.where(condition).groupBy(*groups).agg(*map(_expr, aggregates))
        for frame in both(spark, parted, minPartitions="24", maxPartitionBytes="1")
    )
    assert sorted(map(str, found.collect())) == sorted(map(str, expected.collect()))
    if condition != "part = 9":
        assert is_pushed(found)


def _expr(text: str) -> Any:
    from pyspark.sql import functions as f

    return f.expr(text)


def test_groups_by_values_stay_with_spark(spark: Any, parted: str) -> None:
    found, expected = (frame.groupBy("flag").agg(_expr("sum(id)")) for frame in both(spark, parted))
    assert not is_pushed(found)
    assert sorted(found.collect()) == sorted(expected.collect())


def test_filters_of_the_source(spark: Any, parted: str) -> None:
    """Filters among the options are applied in the tasks, so that parts leave their rows out."""
    frame = spark.read.format(FORMAT).option("filters", encode_filters(("id", ">", 2150))).load(parted)
    found = frame.selectExpr("sum(id)", "count(*)")
    assert is_pushed(found)
    assert found.collect() == spark.read.parquet(parted).where("id > 2150").selectExpr("sum(id)", "count(*)").collect()


@pytest.mark.parametrize("value", ["NaN", "-0.0", "Infinity", "-Infinity", "1e308"])
def test_floating_point_numbers(spark: Any, tmp_path: Path, value: str) -> None:
    columns = {"x": [float(value), 1.0, float(value), None], "y": [None, float(value), None, None], "z": [None] * 4}
    types = {"x": pa.float64(), "y": pa.float32(), "z": pa.float64()}
    pq.write_table(pa.table({name: pa.array(values, types[name]) for name, values in columns.items()}), tmp_path / "rows.parquet")
    aggregates = [f"{kind}({name})" for kind in ("min", "max") for name in "xyz"] + ["sum(x)", "sum(z)", "avg(x)", "avg(z)"]
    found, expected = (frame.selectExpr(*aggregates) for frame in both(spark, str(tmp_path)))
    assert is_pushed(found)
    assert str(found.collect()) == str(expected.collect())


def test_sums_are_in_the_order_of_rows(spark: Any, tmp_path: Path) -> None:
    """The last digits of a sum of doubles depend on the order."""
    fastpq.write_table({"x": np.random.default_rng(5).normal(size=250_000) * 1e6}, tmp_path / "rows.parquet")
    found, expected = (frame.coalesce(1).selectExpr("sum(x)", "avg(x)") for frame in both(spark, str(tmp_path)))
    assert found.collect() == expected.collect()


def test_sums_that_would_take_many_parts(spark: Any, tmp_path: Path) -> None:
    """Spark adds parts in the type of what is summed: where its range holds few rows, Spark adds the rows."""
    numbers = np.arange(1000) % 100
    cents = pa.array([Decimal(number) / 100 for number in numbers.tolist()], pa.decimal128(4, 2))
    columns = {"i8": numbers.astype(np.int8), "i32": numbers.astype(np.int32), "top": np.full(1000, 2**31 - 1, np.int32)}
    pq.write_table(pa.table({**columns, "cents": cents, "wide": cents.cast(pa.decimal128(9, 2))}), tmp_path / "rows.parquet")
    expected = spark.read.parquet(str(tmp_path))
    for aggregate, pushed in (("sum(i8)", False), ("sum(i32)", True), ("sum(top)", False), ("sum(cents)", True),
                              ("sum(cents * cents)", True), ("sum(wide)", True), ("avg(i8)", False), ("count(i8)", False)):
        found = spark.read.format(FORMAT).load(str(tmp_path)).selectExpr(aggregate)
        assert is_pushed(found) is pushed, aggregate
        assert found.collect() == expected.selectExpr(aggregate).collect()


def test_sums_without_statistics_stay_with_spark(spark: Any, tmp_path: Path) -> None:
    fastpq.write_table({"x": np.arange(100), "y": np.arange(100) * 0.5}, tmp_path / "rows.parquet", write_statistics=False)
    found, expected = (frame.selectExpr("sum(x)") for frame in both(spark, str(tmp_path)))
    assert not is_pushed(found)
    assert found.collect() == expected.collect()
    found, expected = (frame.selectExpr("sum(y)", "max(x)") for frame in both(spark, str(tmp_path)))
    assert is_pushed(found)
    assert found.collect() == expected.collect()


def test_a_sum_that_overflows(spark: Any, tmp_path: Path) -> None:
    top = 2**56
    fastpq.write_table({"x": np.full(1000, top), "y": np.tile([top, -top], 500)}, tmp_path / "rows.parquet")
    found, expected = (frame.selectExpr("sum(y)", "avg(y)") for frame in both(spark, str(tmp_path)))
    assert found.collect() == expected.collect()
    for frame in both(spark, str(tmp_path)):
        assert frame.selectExpr("avg(x)").collect() == [(float(top),)]
        assert is_pushed(frame.selectExpr("sum(x)")) is ("fastpq" in plan_of(frame))
        with pytest.raises(Exception, match="ARITHMETIC_OVERFLOW"):
            frame.selectExpr("sum(x)").collect()
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        found, expected = (frame.selectExpr("sum(x)") for frame in both(spark, str(tmp_path)))
        assert is_pushed(found)
        assert found.collect() == expected.collect()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")


def test_files_that_differ(spark: Any, tmp_path: Path) -> None:
    """Decimals in other forms, and a file without the column."""
    digits = [Decimal(number) / 100 for number in range(-500, 500, 7)]
    plain = pa.table({"id": range(len(digits)), "price": pa.array(digits, pa.decimal128(12, 2))})
    pq.write_table(plain, tmp_path / "a.parquet")
    pq.write_table(plain, tmp_path / "b.parquet", store_decimal_as_integer=True)
    pq.write_table(plain.drop_columns("price"), tmp_path / "c.parquet")
    pq.write_table(plain.slice(0, 0), tmp_path / "d.parquet")
    aggregates = ["sum(price)", "count(price)", "min(price)", "max(price)", "sum(price * price)", "sum(id)", "avg(price)"]
    found, expected = (frame.selectExpr(*aggregates) for frame in both(spark, str(tmp_path), maxPartitionBytes="1"))
    assert is_pushed(found)
    assert found.collect() == expected.collect()


def test_encrypted_columns(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "secret")
    keys = {"parquet.encryption.footer.key": "kf", "parquet.encryption.column.keys": "kc1:id"}
    spark.range(1000).selectExpr("id", "id % 9 as rest").coalesce(1).write.options(**keys).parquet(path)
    found, expected = (frame.selectExpr("sum(id)", "sum(rest)") for frame in both(spark, path, **{"kms.client": CLIENT}))
    assert is_pushed(found)
    assert found.collect() == expected.collect()


def test_aggregates_of_joined_and_grouped_results(spark: Any, parted: str) -> None:
    """Parts below other operators: a subquery, a join, a condition on the result, a union of two scans."""
    frames = both(spark, parted)
    results = []
    for number, frame in enumerate(frames):
        frame.createOrReplaceTempView(f"rows{number}")
        results.append([
            spark.sql(text.replace("ROWS", f"rows{number}")).collect()
            for text in (
                "select part, s from (select part, sum(id) s from ROWS group by part) where s > 300000 order by part",
                "select count(*) from ROWS where id > (select avg(part) + 1000 from ROWS)",
                "select a.part, a.s, b.t from (select part, sum(id) s from ROWS group by part) a "
                "join (select part, sum(tiny) t from ROWS group by part) b on a.part = b.part order by 1",
                "select sum(id) from ROWS union all select sum(tiny) from ROWS",
                "select part, sum(id) from ROWS group by part having max(price) is not null order by 1",
            )
        ])
    assert results[0] == results[1]


# ---- without a session

EXACT = Context(prec=200)
DIGITS = st.integers(-(10**18) + 1, 10**18 - 1) | st.integers(-3, 3)
TREES = [["*", ["column", "a"], ["column", "b"]], ["-", ["column", "a"], ["column", "b"]],
         ["+", ["decimal", "0.5", 1, 1], ["column", "b"]], ["column", "a"]]


@given(st.lists(st.tuples(st.none() | DIGITS, DIGITS), max_size=40), st.sampled_from(TREES), st.sampled_from([2, 18]))
@settings(max_examples=80)
def test_decimals_are_added_exactly(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int | None, int]], tree: Any, scale: int
) -> None:
    path = tmp_path_factory.mktemp("decimals") / "rows.parquet"
    known = [(None if x is None else EXACT.scaleb(Decimal(x), -scale), Decimal(y)) for x, y in rows]
    a, b = (pa.array([row[i] for row in known], pa.decimal128(18, s)) for i, s in ((0, scale), (1, 0)))
    pq.write_table(pa.table({"a": a, "b": b}), path, row_group_size=7)
    columns: dict[str, spark_types.DataType] = {"a": spark_types.DecimalType(18, scale), "b": spark_types.DecimalType(18, 0)}
    type_ = type_of(tree, columns)
    assert isinstance(type_, spark_types.DecimalType)
    parts = [part for part in parts_of(path, columns, ["sum", tree]) if part is not None]
    assert all(part.adjusted() < type_.precision - type_.scale for part in parts)
    values = [value for row in known if (value := computed(tree, *row)) is not None]
    with localcontext(EXACT):
        assert sum(parts) == sum(values)
    assert bool(parts) is bool(values)


def computed(tree: Any, a: Decimal | None, b: Decimal) -> Decimal | None:
    match tree:
        case ["column", _]:
            return a
        case ["+", *_]:
            return EXACT.add(Decimal("0.5"), b)
        case ["*", *_]:
            return None if a is None else EXACT.multiply(a, b)
    return None if a is None else EXACT.subtract(a, b)


def schema_of(columns: dict[str, spark_types.DataType]) -> spark_types.StructType:
    return spark_types.StructType([spark_types.StructField(name, type_) for name, type_ in columns.items()])


def partial_aggregates(columns: dict[str, spark_types.DataType], asked: list[Any]) -> PartialAggregates:
    aggregate = aggregate_of(asked, columns)
    assert aggregate is not None
    return PartialAggregates((), (aggregate,), schema_of({"0": aggregate.type}))


def split_of(path: Path) -> Split:
    return Split(ListedFile(str(path), path.stat().st_size, ()), None, path.stat().st_size)


def parts_of(path: Path, columns: dict[str, spark_types.DataType], asked: list[Any]) -> list[Any]:
    """The parts of an aggregate of the rows of a file."""
    parts = TaskParts(partial_aggregates(columns, asked))

    def tables(scan: FileScan) -> Iterator[tuple[FileScan, Table]]:
        return ((scan, table) for table in scan.tables())

    for file, table in scan_split(split_of(path), ScanPlan(schema_of(columns), batch_rows=5), tables):
        parts.add(file, table)
    (found,) = parts.columns()
    return found


def test_numbers_that_numpy_takes_for_unsigned(tmp_path: Path) -> None:
    """10**19 is above int64 and below 2**64; int64 and uint64 together would be floats."""
    digits = {"a": (10, 10, 1234567891), "b": (10, 9, 1123456789), "c": (10, 0, 1234567891)}
    values = {name: EXACT.scaleb(Decimal(value), -scale) for name, (_, scale, value) in digits.items()}
    types = {name: pa.decimal128(precision, scale) for name, (precision, scale, _) in digits.items()}
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({name: pa.array([value] * 3, types[name]) for name, value in values.items()}), path)
    columns: dict[str, spark_types.DataType] = {
        name: spark_types.DecimalType(precision, scale) for name, (precision, scale, _) in digits.items()
    }
    a, b, c = (["column", name] for name in "abc")
    found = parts_of(path, columns, ["sum", ["-", ["*", a, b], c]])
    with localcontext(EXACT):
        assert sum(found) == 3 * (values["a"] * values["b"] - values["c"])


def test_long_sums_take_no_overflow(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    fastpq.write_table({"x": np.array([2**63 - 1, -(2**63), 5, 2**63 - 1, 2**63 - 1])}, path)
    parts = parts_of(path, {"x": spark_types.LongType()}, ["sum", ["column", "x"]])
    assert sum(parts) == 3 * (2**63 - 1) - 2**63 + 5
    assert all(-(2**63) <= part < 2**63 for part in parts)


def test_very_many_parts_are_handed_over_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.parquet"
    fastpq.write_table({"x": np.full(1000, 100, np.int8)}, path)
    columns: dict[str, spark_types.DataType] = {"x": spark_types.ByteType()}
    asked = partial_aggregates(columns, ["sum", ["column", "x"]])
    plan = pickle.dumps((ScanPlan(schema_of(columns), batch_rows=50), asked))
    monkeypatch.setattr(scan, "MOST_PARTS", 120)
    found = [rows for rows, _ in scan.batches(plan, pickle.dumps((split_of(path),)))]
    assert found == [150] * 6 + [100]
