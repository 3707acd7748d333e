"""Expressions of pyarrow.compute and Polars as filters: the rows kept by the other library, or an error that names the part."""

from __future__ import annotations

import datetime as dt
import operator
import re
from pathlib import Path
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

NAN = float("nan")
# Type and values of each column; filters take values out of the same list.
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "f": (pa.float64(), [NAN, -0.0, 0.0, 1.5, -2.0, float("inf"), float("-inf"), 1e300]),
    "g": (pa.float32(), [NAN, -0.0, 0.0, 1.5, -2.0, float("inf")]),
    "i": (pa.int64(), [0, 1, -5, 1 << 62, 7]),
    "u": (pa.uint8(), [0, 1, 255]),
    "s": (pa.string(), ["", "a", "ab", "b", "é"]),
    "y": (pa.binary(), [b"", b"a", b"\xff"]),
    "d": (pa.date32(), [dt.date(2024, 1, 1), dt.date(1960, 2, 3)]),
    "t": (pa.timestamp("us"), [dt.datetime(2024, 1, 1, 12, 30), dt.datetime(1960, 2, 3, 4, 5, 6, 789)]),
    "z": (pa.timestamp("us", "UTC"), [dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC), dt.datetime(1960, 2, 3, tzinfo=dt.UTC)]),
    "b": (pa.bool_(), [True, False]),
}
OPS = ["==", "!=", "<", "<=", ">", ">="]


@st.composite
def tables(draw: Any) -> pa.Table:
    rows = draw(st.integers(0, 12))
    columns: dict[str, Any] = {
        name: pa.array(draw(st.lists(st.one_of(st.none(), st.sampled_from(values)), min_size=rows, max_size=rows)), type_)
        for name, (type_, values) in COLUMNS.items()
    }
    return pa.table({"id": np.arange(rows), **columns})


def compared(op: str, one: Any, other: Any) -> Any:
    return {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[op](
        one, other
    )


@st.composite
def arrow_conditions(draw: Any) -> pc.Expression:
    name = draw(st.sampled_from([*COLUMNS]))
    type_, values = COLUMNS[name]
    column, value = pc.field(name), draw(st.sampled_from(values))
    kind = draw(st.sampled_from(["compare", "flipped", "null", "in", "valid", "special"]))
    if kind in ("compare", "flipped"):
        scalar = pa.scalar(draw(st.sampled_from([value, value, value, None])), type_)
        return compared(draw(st.sampled_from(OPS)), *((column, scalar) if kind == "compare" else (pc.scalar(scalar), column)))
    if kind == "in":
        allowed = [one for one in values if not (isinstance(one, float) and (one == 0 or np.isnan(one)))]
        chosen = draw(st.lists(st.one_of(st.none(), st.sampled_from(allowed)), max_size=3))
        return pc.is_in(column, pa.array(chosen, type_), skip_nulls=draw(st.booleans()))
    if kind == "null":
        return column.is_null(nan_is_null=draw(st.booleans()))
    if kind == "special":
        return pc.field("b") if draw(st.booleans()) else pc.field(draw(st.sampled_from("fg"))).is_nan()
    return column.is_valid()


@st.composite
def polars_conditions(draw: Any) -> pl.Expr:
    name = draw(st.sampled_from([*COLUMNS]))
    _, values = COLUMNS[name]
    finite = [one for one in values if not isinstance(one, float) or np.isfinite(one)]
    column, value = pl.col(name), draw(st.sampled_from(finite))
    kind = draw(st.sampled_from(["compare", "flipped", "null", "in", "valid", "special", "missing", "between"]))
    if kind in ("compare", "flipped"):
        literal = pl.lit(value)
        both: pl.Expr = compared(draw(st.sampled_from(OPS)), *((column, literal) if kind == "compare" else (literal, column)))
        return both
    if kind == "missing":
        given_value = pl.lit(draw(st.sampled_from([value, None])))
        return column.eq_missing(given_value) if draw(st.booleans()) else column.ne_missing(given_value)
    if kind == "between":
        closed = draw(st.sampled_from(["both", "left", "right", "none"]))
        return column.is_between(pl.lit(value), pl.lit(draw(st.sampled_from(finite))), closed=closed)
    if kind == "in":
        chosen = draw(st.lists(st.one_of(st.none(), st.sampled_from(values)), max_size=3))
        dtype = pl.Series(pa.array([], COLUMNS[name][0])).dtype
        return column.is_in(pl.Series(chosen, dtype=dtype).implode(), nulls_equal=draw(st.booleans()))
    if kind == "null":
        return column.is_null()
    if kind == "special":
        floating = pl.col(draw(st.sampled_from("fg")))
        test: pl.Expr = draw(st.sampled_from([pl.col("b"), floating.is_nan(), floating.is_not_nan()]))
        return test
    return column.is_not_null()


def trees(conditions: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        conditions,
        lambda inner: st.one_of(
            st.builds(lambda a, b: a & b, inner, inner), st.builds(lambda a, b: a | b, inner, inner), inner.map(lambda a: ~a)
        ),
        max_leaves=5,
    )


@settings(max_examples=150, deadline=None)
@given(tables(), trees(arrow_conditions()))
def test_rows_of_pyarrow(tmp_path_factory: pytest.TempPathFactory, table: pa.Table, expression: pc.Expression) -> None:
    path = tmp_path_factory.mktemp("arrow") / "x"
    pq.write_table(table, path, row_group_size=4, store_schema=False)
    expected = table.filter(expression)["id"].to_pylist()
    assert fastpq.read_table(path, ["id"], filters=expression)["id"].to_pylist() == expected
    assert fastpq.ParquetDataset(path).count(expression) == len(expected)


@settings(max_examples=150, deadline=None)
@given(tables(), trees(polars_conditions()))
def test_rows_of_polars(tmp_path_factory: pytest.TempPathFactory, table: pa.Table, expression: pl.Expr) -> None:
    path = tmp_path_factory.mktemp("polars") / "x"
    pq.write_table(table, path, row_group_size=4)
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    expected = frame.filter(expression)["id"].to_list()
    assert fastpq.read_table(path, ["id"], filters=expression)["id"].to_pylist() == expected
    assert fastpq.ParquetDataset(path).count(expression) == len(expected)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("expressions") / "x"
    nested = pa.array([{"n": 1}, {"n": None}, None, {"n": 4}])
    data = {"i": [1, 2, None, 4], "f": [0.5, None, NAN, 2.0], "g": pa.array([0.1, 1, 2, 3], pa.float32()), "k": nested}
    pq.write_table(pa.table(data | {"s": ["a", "ab", None, "b"], "e": pa.array([0, 1, 2, 3], pa.timestamp("ns"))}), path)
    return path


def test_fields_of_structs_and_prefixes(path: Path) -> None:
    for expression, rows in (
        (pc.field("k", "n") > 1, [4]), (~(pc.field("k", "n") > 1), [1]), (pl.col("k").struct.field("n") >= 1, [1, 4]),
        (pc.starts_with(pc.field("s"), "a"), [1, 2]), (pl.col("s").str.starts_with("a"), [1, 2]),
        (pc.field("e") > pa.scalar(2, pa.timestamp("ns")), [4]),
    ):
        assert fastpq.read_table(path, filters=expression)["i"].to_pylist() == rows
        assert fastpq.read_table(path, filters=fastpq.And(expression, ("i", "is not null")))["i"].to_pylist() == rows
        assert len(fastpq.read_pandas(path, filters=[expression])) == len(rows)


def test_datasets(tmp_path: Path) -> None:
    fastpq.write_dataset({"x": np.arange(6.0), "p": np.arange(6) % 3}, tmp_path, partition_by=["p"])
    for expression, of_partitions in (
        ((pc.field("p") == 1) & ~(pc.field("x").is_nan()), pc.field("p") == 1),
        ((pl.col("p") == 1) & pl.col("x").is_not_nan(), pl.col("p") == 1),
    ):
        with pytest.raises(fastpq.SchemaError, match="'x' is not one"):
            fastpq.ParquetDataset(tmp_path, filters=expression)
        dataset = fastpq.ParquetDataset(tmp_path, filters=of_partitions)
        assert len(dataset.files) == 1
        assert dataset.read(filters=expression)["x"].to_pylist() == [1.0, 4.0]
        assert fastpq.read_table(tmp_path, filters=expression)["x"].to_pylist() == [1.0, 4.0]


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        (pc.field("i") + 1 > 2, r"add_checked\(i, 1\)"),
        (pc.field("i") > pc.field("f"), "i > f of .*two columns are compared"),
        (pc.field("g") > 0.1, r"the column rounds 0\.1"),
        (pl.col("g") > 0.1, r"the column rounds 0\.1"),
        (pl.col("f") > 10**30, "the column rounds"),
        (pc.field("i") == 2.0**53, "is a float, but the column does not have floats"),
        (pc.field("i").cast("string") == "1", r"cast\(i\)"),
        (~pc.starts_with(pc.field("s"), "a"), r"starts with\(s, 'a'\)"),
        (pc.match_substring(pc.field("s"), "a"), r"match_substring\(s\)"),
        (pc.field("f").isin([0.0]), r"zeros of either sign"),
        (pc.field("i").is_nan(), r"is nan\(i\)"),
        (pc.scalar(True), "a condition names a column"),
        (pl.col("i") + 1 > 2, r'the part \(col\("i"\)\) \+ \(1\) of .*a condition compares a column, as it is, with a value'),
        (pl.col("i").sum() > 2, r'col\("i"\)\.sum\(\) of .*depends on other rows'),
        (pl.col("i").over("f") > 2, r'col\("i"\)\.over\(.*depends on other rows'),
        (pl.col("f").abs() > 2, r'col\("f"\)\.abs\(\) of .*a condition compares'),
        (pl.col("i").cast(pl.Float64) > 2, r"strict_cast.*give the value in the type of the column"),
        (pl.when(pl.col("i") > 1).then(True).otherwise(False), "when.*with & and |"),
        (pl.col("i").map_elements(abs, return_dtype=pl.Int64) > 1, "a function of Python is called"),
        (pl.len() > 1, r"len\(\) of .*other rows"),
        (pl.col("i").alias("j") > 1, r"leave alias\(\) out"),
        (pl.all() > 1, r"name one column by pl\.col"),
        (pl.col("f") == NAN, "NaN and infinities"),
        (pl.col("f") < float("inf"), "NaN and infinities"),
        (pl.lit(True), "a condition names a column"),
        (pl.col("s").str.contains("a"), r'col\("s"\)\.str\.contains\('),
        (pl.col("i") > pl.col("f"), "i > f of .*two columns are compared"),
    ],
)
def test_parts_without_translation(path: Path, expression: Any, part: str) -> None:
    with pytest.raises(fastpq.UnsupportedError, match=part) as caught:
        fastpq.read_table(path, filters=expression)
    assert not re.search(r'\{"|": ', str(caught.value))      # JSON


def test_unknown_columns(path: Path) -> None:
    for expression in (pc.field("none") > 1, pl.col("none") > 1, pc.field("none").is_nan()):
        with pytest.raises(fastpq.SchemaError, match="none"):
            fastpq.read_table(path, filters=expression)
