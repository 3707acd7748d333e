"""Tables exchanged with Polars, DuckDB, pandas, nanoarrow and arro3 through the Arrow C interfaces."""

from __future__ import annotations

import datetime as dt
import gc
import uuid
from decimal import Decimal as Dec
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from fastpq.arrays.table import AnyColumn, BinaryViews, DictionaryValues, ListColumn, Table
from fastpq.arrow import import_column, import_table
from fastpq.convert.numpy_input import column_from_numpy
from fastpq.errors import LimitError, SchemaError
from fastpq.schema.nested_types import Field, ListType
from fastpq.schema.types import Decimal, Timestamp
from tests.interop.arrow_cases import (
    CASES,
    DAY,
    NOON,
    NOON_UTC,
    Array,
    Stream,
    array_of,
    pattern,
    stored,
)
from tests.narrowing import flat
from tests.requirements import peer


def common() -> tuple[Table, dict[str, list[Any]]]:
    """A table of every type that is common to all, with nulls, and its values."""
    left_out = {"json", "time32[s]", "float16", "decimal256", "decimal256 of few digits", "dictionary of large binary"}
    left_out.add("month_day_nano_interval")
    arrays = {name: array_of(case, pattern(case.values, nulls=True)) for name, case in CASES.items() if name not in left_out}
    return import_table(pa.table(arrays)), {name: array.to_pylist() for name, array in arrays.items()}


def same(name: str, got: Any, want: Any) -> bool:
    """Equality where a library turns UUIDs into bytes or text, drops a timezone, or makes decimals of another scale."""
    if want is None or got is None:
        return want is None and got is None
    if isinstance(want, uuid.UUID):
        return got in (want, want.bytes, str(want))
    if isinstance(got, pa.MonthDayNano):     # what DuckDB makes of durations
        got = dt.timedelta(microseconds=got.nanoseconds // 1000)
    if isinstance(got, dt.datetime) and not isinstance(want, dt.datetime):     # what Polars makes of date64
        got = got.date() if got.time() == dt.time(0) else got
    if isinstance(want, dt.datetime) and isinstance(got, dt.datetime) and want.tzinfo:
        return bool(got.astimezone(dt.UTC) == want)
    return bool(got == want)


def assert_same(got: dict[str, list[Any]], want: dict[str, list[Any]]) -> None:
    for name, values in want.items():
        assert len(got[name]) == len(values), name
        wrong = [(g, w) for g, w in zip(got[name], values, strict=True) if not same(name, g, w)]
        assert not wrong, (name, wrong[0])


def test_polars_reads_us() -> None:
    table, want = common()
    frame = pl.DataFrame(Stream(table))
    del table
    gc.collect()
    assert_same(frame.to_dict(as_series=False), want)
    structs = pl.from_arrow(Stream(import_table(pa.table({"a": [1, None]}))))
    assert isinstance(structs, pl.Series)
    assert structs.to_list() == [{"a": 1}, {"a": None}]
    assert pl.Series(Array(flat(import_column(pa.array(["x", None], pa.string_view()))))).to_list() == ["x", None]


def test_we_read_polars() -> None:
    times = [dt.time(1, 2, 3), None, dt.time(0)]
    frame = pl.DataFrame(
        {
            "i8": pl.Series([1, None, -3], dtype=pl.Int8),
            "u64": pl.Series([1, None, 2**64 - 1], dtype=pl.UInt64),
            "f32": pl.Series([1.5, None, -3.0], dtype=pl.Float32),
            "b": [True, None, False],
            "s": ["short", None, "a string of more than twelve bytes"],
            "z": [b"short", None, b"a string of more than twelve bytes"],
            "d": [DAY, None, DAY],
            "t": times,
            "ms": pl.Series([NOON, None, NOON], dtype=pl.Datetime("ms")),
            "us": pl.Series([NOON_UTC, None, NOON_UTC], dtype=pl.Datetime("us", "Europe/Berlin")),
            "dec": pl.Series([Dec("1.25"), None, Dec("-2.00")], dtype=pl.Decimal(12, 2)),
            "cat": pl.Series(["x", None, "y"], dtype=pl.Categorical),
            "enum": pl.Series(["x", None, "y"], dtype=pl.Enum(["y", "x"])),
            "n": pl.Series([None] * 3, dtype=pl.Null),
        }
    )
    for data in (
        frame,
        pl.concat([frame, frame.slice(1), frame.head(0)], rechunk=False),
        frame.slice(1, 2),
        frame.clear(),
    ):
        table = import_table(data)
        assert isinstance(table.flat("s").values, BinaryViews)
        assert isinstance(table.flat("cat").values, DictionaryValues)
        assert table.flat("us").type.logical == Timestamp("us", utc=True)
        assert table.flat("dec").type.logical == Decimal(12, 2)
        assert_same(pa.table(Stream(table)).to_pydict(), data.to_dict(as_series=False))
    assert stored(flat(import_column(frame["s"]))) == [b"short", None, b"a string of more than twelve bytes"]
    days = pl.DataFrame({"x": [dt.timedelta(1), None]})
    assert pl.DataFrame(Stream(import_table(days))).equals(days)
    nested = pl.DataFrame({"x": [{"a": 1, "b": [1, 2]}, None], "y": pl.Series([[1, 2], None], dtype=pl.Array(pl.Int8, 2))})
    assert import_table(nested).to_pylist() == nested.to_dicts()


def arrow_of(relation: Any) -> pa.Table:
    return pa.RecordBatchReader.from_stream(relation).read_all()


def test_duckdb_reads_us() -> None:
    duckdb = peer("duckdb")
    table, want = common()
    ours = Stream(table)
    assert_same(arrow_of(duckdb.sql("SELECT * FROM ours")).to_pydict(), want)
    query = "SELECT sum(int8), count(string), max(string_view), count(*) FROM ours WHERE bool"
    sums = duckdb.sql(query).fetchall()[0]
    rows = [i for i in range(61) if want["bool"][i]]
    strings = [want["string_view"][i] for i in rows if want["string_view"][i] is not None]
    assert sums == (sum(want["int8"][i] or 0 for i in rows), len(strings), max(strings), len(rows))
    del ours
    gc.collect()


def test_types_nested_deeper_than_some_consumers_take() -> None:
    """A consumer refuses what is too deep for it. pyarrow takes 62 lists inside each other; Polars and DuckDB take more."""
    duckdb = peer("duckdb")
    deepest: AnyColumn = column_from_numpy(np.array([7, 8]))
    for _ in range(100):
        fields = ListType(Field("element", deepest.type))
        deepest = ListColumn(fields, np.array([0, len(deepest)], np.int32), deepest)
    ours = Table({"deep": deepest})
    (expected,) = ours["deep"].to_pylist()
    series = pl.DataFrame(ours)["deep"]
    for _ in range(99):
        series = series[0]
    assert series[0].to_list() == [7, 8]
    assert duckdb.sql("SELECT * FROM ours").fetchall() == [(expected,)]
    with pytest.raises(pa.ArrowInvalid, match="Recursion level"):
        pa.table(ours)
    with pytest.raises(LimitError, match="deeper than 64 levels"):
        import_table(ours)


def test_we_read_duckdb() -> None:
    duckdb = peer("duckdb")
    query = """
        SELECT CASE WHEN i % 7 = 3 THEN NULL ELSE i END AS i, i::HUGEINT AS h, i % 2 = 0 AS b, 'row ' || i AS s,
            ('a much longer row ' || i)::BLOB AS z, DATE '2024-02-29' AS d, TIME '01:02:03' AS t, (i / 4)::DECIMAL(9, 2) AS c,
            TIMESTAMP_S '2024-02-29 12:00:00' AS ts, TIMESTAMPTZ '2024-02-29 12:00:00+00' AS tz,
            CASE WHEN i % 3 = 0 THEN 'x' ELSE 'y' END::ENUM('x', 'y') AS e
        FROM range(300000) AS r(i)
    """
    relation = duckdb.sql(query)
    table = import_table(relation)
    assert table.num_rows == 300_000
    assert table["i"].null_count == 300_000 // 7
    assert stored(table.flat("i"))[:5] == [0, 1, 2, None, 4]
    want = arrow_of(relation)
    back = pa.table(Stream(table))
    back.validate(full=True)
    for name in want.column_names:
        assert back.column(name).cast(want.column(name).type).equals(want.column(name)), name
    months = duckdb.sql("SELECT INTERVAL '3 months 2 days 1 second' AS v")
    assert import_table(months)["v"].to_pylist() == [(3, 2, 1000)]
    assert pa.table(Stream(import_table(months))).equals(arrow_of(months))
    with pytest.raises(SchemaError, match=r"interval is negative.*column v"):
        import_table(duckdb.sql("SELECT INTERVAL '-1 day' AS v"))


def test_pandas_reads_us_and_we_read_pandas() -> None:
    table, want = common()
    frame = pd.DataFrame.from_arrow(Stream(table))
    assert len(frame) == 61
    assert [None if pd.isna(value) else int(value) for value in frame["int8"]] == want["int8"]
    assert [None if pd.isna(value) else value for value in frame["string_view"]] == want["string_view"]
    assert [None if pd.isna(value) else value.to_pydatetime() for value in frame["timestamp[us]"]] == want["timestamp[us]"]
    data = pd.DataFrame({"i": [1, 2], "s": ["x", None], "t": pd.to_datetime(["2024-02-29", None]), "f": [1.5, np.nan]})
    back = import_table(data)
    assert stored(back.flat("i")) == [1, 2]
    assert stored(back.flat("s")) == [b"x", None]
    assert back["t"].null_count == 1
    series = pd.Series([1, None, 3], dtype="Int64")
    assert stored(flat(import_column(series))) == [1, None, 3]


def test_nanoarrow_both_ways() -> None:
    nanoarrow = peer("nanoarrow")
    table, want = common()
    array = nanoarrow.c_array_stream(Stream(table))
    assert [child.name for child in array.get_schema().children] == list(want)
    for name, case in CASES.items():
        if name.endswith("_view"):
            continue  # nanoarrow 0.9 corrupts memory when it passes on an array of more than 3 buffers, to pyarrow as well
        column = flat(import_column(nanoarrow.c_array(array_of(case, pattern(case.values, nulls=True)))))
        assert stored(column) == pattern(case.stored, nulls=True), name
    for name in ("int8", "bool", "float64", "string", "date32", "fixed_size_binary"):
        checked = nanoarrow.Array(Array(table.flat(name)))
        assert checked.to_pylist() == want[name]
        nanoarrow.c_array(Array(table.flat(name))).view()
    mine = nanoarrow.Array([1, None, 3], nanoarrow.int64())
    assert stored(flat(import_column(mine))) == [1, None, 3]


def test_arro3_both_ways() -> None:
    arro3 = peer("arro3.core", "arro3-core")
    table, want = common()
    theirs = arro3.Table.from_arrow(Stream(table))
    assert theirs.num_rows == 61
    assert_same(pa.table(theirs).to_pydict(), want)
    assert_same(pa.table(Stream(import_table(theirs))).to_pydict(), want)
    assert stored(flat(import_column(theirs["int8"]))) == want["int8"]
