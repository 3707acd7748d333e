"""Tables to work with: rows, slices, other columns, and conversions, beside pyarrow, pandas and Polars."""

from __future__ import annotations

import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fastpq
from fastpq import SchemaError, Table, UnsupportedError

ARROW = pa.table(
    {
        "n": pa.array([1, None, 3, 4], pa.int16()),
        "text": pa.array(["a", "b", None, "ü"]),
        "lists": pa.array([[1], [], None, [2, None]]),
        "structs": pa.array([{"x": 1, "y": "p"}, None, {"x": None, "y": "q"}, {"x": 4, "y": None}]),
        "price": pa.array([Decimal("1.50"), None, Decimal("-2.00"), Decimal("0.01")]),
    }
)


@pytest.fixture
def table() -> Table:
    return Table({name: ARROW[name].combine_chunks() for name in ARROW.column_names})


@pytest.mark.parametrize(
    "rows", [slice(None, 3), slice(1, None), slice(-2, None), slice(None, None, -1), slice(0, 4, 3), slice(9, 2)]
)
def test_slices(table: Table, rows: slice) -> None:
    assert table[rows].to_pylist() == ARROW.to_pylist()[rows]
    assert table[rows].num_rows == len(range(4)[rows])
    for name in table:
        assert table[name][rows].to_pylist() == ARROW[name].to_pylist()[rows]


def test_values(table: Table) -> None:
    for name in table:
        column, wanted = table[name], ARROW[name].to_pylist()
        assert [column[place] for place in range(-4, 4)] == [*wanted, *wanted]
        assert column[np.int64(3)] == wanted[3]
        assert list(column) == wanted
        for place in (4, -5):
            with pytest.raises(IndexError, match=f"value {place} of a column of 4 values"):
                column[place]
    for several in ([1, 2], np.array([1, 2]), np.array([True] * 4), "text", 1.5):
        with pytest.raises(SchemaError, match="must be an integer"):
            table["n"][several]


def test_a_field_of_structs_keeps_its_name(table: Table) -> None:
    structs = table["structs"]
    assert isinstance(structs, fastpq.StructColumn)
    assert structs["y"].to_pylist()[2] == "q"
    assert structs[2] == {"x": None, "y": "q"}


def test_iteration_over_many_values() -> None:
    values = np.arange(10_000)
    table = Table({"a": values, "b": values.astype(str)})
    assert list(table["a"]) == values.tolist()
    assert [(row["a"], row["b"]) for row in table.rows()] == [(value, str(value)) for value in values.tolist()]


def test_shape_and_other_columns(table: Table) -> None:
    assert table.shape == (4, 5) == ARROW.shape
    other = table.select(["n", "text"]).rename({"n": "number"}).add("flag", [True, False, None, True])
    flags = pa.array([True, False, None, True])
    wanted = ARROW.select(["n", "text"]).rename_columns(["number", "text"]).append_column("flag", flags)
    assert pa.table(other).to_pylist() == wanted.to_pylist()
    assert other.drop(["text"]).names == ["number", "flag"]
    assert Table({}).add("x", np.arange(3)).shape == (3, 1)
    assert Table({"x": np.zeros(0)}).add("y", []).shape == (0, 2)


def test_refused(table: Table) -> None:
    for wrong in (lambda: table.drop(["none"]), lambda: table.rename({"none": "x"}), lambda: table.select(["none"])):
        with pytest.raises(SchemaError, match="no column 'none'"):
            wrong()
    for wrong in (lambda: table.drop("n"), lambda: table.select("n")):
        with pytest.raises(SchemaError, match="not the single name 'n'"):
            wrong()
    with pytest.raises(SchemaError, match=r"a column with this name.*drop"):
        table.add("n", [1, 2, 3, 4])
    with pytest.raises(SchemaError, match="3 values in a table of 4 rows"):
        table.add("new", [1, 2, 3])
    with pytest.raises(SchemaError, match="2 values in a table of 0 rows"):
        Table({"x": np.zeros(0)}).add("y", [1, 2])


def test_metadata_stay() -> None:
    table = Table({"a": [1], "b": [2]}, metadata={"k": "v"})
    for other in (table.drop(["a"]), table.rename({"a": "c"}), table.add("c", [1]), table[:1], table.select(["a"])):
        assert other.metadata == {"k": "v"}


def test_conversions(table: Table) -> None:
    arrow = table.to_arrow()
    assert isinstance(arrow, pa.Table)
    assert arrow.to_pylist() == ARROW.to_pylist()
    column = table["lists"].to_arrow()
    assert isinstance(column, pa.ListArray)
    assert column.to_pylist() == ARROW["lists"].to_pylist()
    polars = table.to_polars()
    assert isinstance(polars, pl.DataFrame)
    assert polars.to_dicts() == ARROW.to_pylist()


def test_dataframes_have_the_dtypes_of_the_metadata(tmp_path: Any) -> None:
    frame = pd.DataFrame(
        {"c": pd.Categorical(["b", "a", "b"], ["b", "a"], ordered=True), "n": pd.array([1, None, 3], "Int8")},
        index=pd.Index([7, 8, 9], name="key"),
    )
    frame.to_parquet(tmp_path / "x", engine="pyarrow")
    pd.testing.assert_frame_equal(fastpq.read_table(tmp_path / "x").to_pandas(), frame)
    pd.testing.assert_frame_equal(Table({"a": np.arange(3)}).to_pandas(), pd.DataFrame({"a": np.arange(3)}))
    assert str(Table({"a": [1, 2]}).to_pandas(dtype_backend="numpy_nullable").dtypes["a"]) == "Int64"


def test_structured_arrays() -> None:
    plain = Table({"a": np.arange(3), "b": np.array([1.5, 2.5, 3.5], np.float32)}).to_numpy(structured=True)
    assert plain.dtype == np.dtype([("a", "<i8"), ("b", "<f4")])
    assert plain["b"].tolist() == [1.5, 2.5, 3.5]
    again = Table({name: plain[name] for name in "ab"})
    assert again.to_numpy(structured=True).tolist() == plain.tolist()
    masked = Table({"a": np.ma.array([1, 2], mask=[True, False]), "s": ["x", "y"]}).to_numpy(structured=True)
    assert isinstance(masked, np.ma.MaskedArray)
    assert masked["a"].tolist() == [None, 2]
    assert masked["s"].tolist() == ["x", "y"]
    assert Table({}, num_rows=2).to_numpy(structured=True).shape == (2,)


def test_packages_that_are_missing(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UnsupportedError, match=r"Table.to_polars needs the package polars \(pip install polars\)"):
        table.to_polars()


def test_shown_by_ipython(table: Table) -> None:
    class Printer:
        shown = ""

        def text(self, text: str) -> None:
            self.shown += text

    for shown in (table, table["text"]):
        printer = Printer()
        shown._repr_pretty_(printer, False)
        assert printer.shown == str(shown)
        assert "ü" in printer.shown
