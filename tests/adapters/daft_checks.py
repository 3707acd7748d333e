"""Daft reads datasets through fastpq. test_pinned_engines.py runs this file in an environment with Daft."""

from __future__ import annotations

import contextlib
import io
import math
import pickle
from datetime import date, datetime
from typing import Any

import daft
import numpy as np
import pytest
from daft import col, lit

import fastpq
from fastpq.adapters import read_daft
from fastpq.adapters.daft_source import _DaftSource
from fastpq.adapters.dataset_tasks import arrow_task
from tests.adapters.counted import FILES, KEY_FUNCTION, ROWS, CountedDataset, has_no_key

of_x, of_d, of_t, of_f = col("x"), col("d"), col("t"), col("f")
CONDITIONS = [
    of_x > 5, of_x < 5, of_x != 5.0, of_x == math.nan, of_x == 0.0, ~(of_x > 5), of_x.is_in([math.nan, 1.0]), ~of_x.is_in([1.0]),
    of_x <= math.nan, of_x < 0.0, of_x < 0, of_x > -0.0, of_x >= 0, ~(of_x < 0.0), of_x != 0.0, ~of_x.is_in([0.0]),
    of_x.is_in([0.0, 2.0]), of_x.is_in([1.0, None]), ~of_x.is_in([1.0, None]), (of_x < 0.0) | (col("id") == 3),
    ~((of_x < 0.0) & (col("id") == 4)), of_x.is_null(), of_x.not_null(), of_x.between(0, 5), lit(5) < of_x, lit(0.0) > of_x,
    of_x + 1 > 5, (of_x + 1 > 5) & (col("id") > 2), of_x.is_null() | (of_x > 5), of_f > 0.1, of_f == 0.1, of_f < 0.7,
    col("text") > "t3", col("text").startswith("t"), col("text") == "t3", col("text").length() > 1,
    col("text").is_in(["t1", "t2"]), ~col("text").is_in(["t1", "t2"]), col("flag"), ~col("flag"), col("flag") != lit(False),
    (col("flag") == lit(False)) | (col("id") == 1), of_d == date(2020, 1, 3), of_d > date(2020, 1, 3),
    of_d > datetime(2020, 1, 3), of_d.is_in([date(2020, 1, 3)]), of_t.is_in([date(2020, 1, 1)]),
    of_t > datetime(2020, 1, 1, 0, 0, 3),
    of_t == datetime(2020, 1, 1, 0, 0, 3), of_t <= date(2020, 1, 1), col("id") > 2.5, col("id") == 2.0,
    col("id") > -1, col("id") == col("id"), col("id").cast(daft.DataType.string()) == "3", col("id") % 2 == 1,
]


def test_conditions_mean_what_they_mean_in_daft(tmp_path: Any) -> None:
    """The rows are those that Daft keeps of a table in memory: with NaN, zeros of both signs, nulls and times."""
    x = np.ma.array([1.0, math.nan, 9.0, 2.0, -0.0, 0.0, 5.0, 7.0], mask=np.arange(8) == 3)
    rows = {
        "id": np.arange(8), "x": x, "f": np.arange(8, dtype=np.float32) / np.float32(10),
        "text": np.array([f"t{number}" for number in range(7)] + [None], object), "flag": np.arange(8) % 3 == 0,
        "d": np.arange("2020-01-01", "2020-01-09", dtype="datetime64[D]"),
        "t": np.datetime64("2020-01-01", "us") + np.arange(8) * np.timedelta64(1, "s"),
    }
    fastpq.write_table(rows, tmp_path / "x.parquet", row_group_size=2)
    expected = daft.from_arrow(fastpq.read_table(tmp_path / "x.parquet", strings="offsets").to_arrow())
    for condition in CONDITIONS:
        found = read_daft(tmp_path / "x.parquet").where(condition).to_pydict()
        assert found["id"] == expected.where(condition).to_pydict()["id"], str(condition)


def test_queries(counted: CountedDataset) -> None:
    expected = daft.from_arrow(counted.table().to_arrow())
    for query in (
        lambda frame: frame.select("text", "id").sort("id"),
        lambda frame: frame.where(col("id") > 299_990).sort("id"),
        lambda frame: frame.where(col("text") == "row 7").select("value", "id").sort("id").select("value"),
        lambda frame: frame.where((col("id") > 90_000) & (col("id") % 1000 == 5)).select("text"),
        lambda frame: frame.groupby("value").agg(col("id").sum()).sort("value"),
        lambda frame: frame.where(col("id") < 0),
    ):
        found = query(read_daft(counted.folder, **counted.options()))
        assert found.to_arrow().equals(query(expected).to_arrow())
    assert read_daft(counted.folder, **counted.options()).count_rows() == FILES * ROWS
    assert read_daft(counted.folder, **counted.options()).where(col("text") == "row 7").count_rows() == FILES * ROWS // 1000
    assert len(read_daft(counted.folder, **counted.options()).limit(5).to_pydict()["id"]) == 5


def test_bytes(counted: CountedDataset) -> None:
    def read(**more: Any) -> Any:
        return read_daft(str(counted.folder), **counted.options(), **more)

    assert counted.share(lambda: read().collect()) > 1.0
    assert counted.share(lambda: read().select("value").collect()) < 0.15
    assert counted.share(lambda: read().where(col("id") == 5).select("text").collect()) < 0.2
    assert counted.share(lambda: read().where((col("id") == 5) & (col("noise").sqrt() > 0.1)).select("text").collect()) < 0.2


def test_no_key_in_a_plan_or_a_task(encrypted: CountedDataset) -> None:
    query = read_daft(encrypted.folder, **encrypted.options()).where(col("id") > 5).select("text")
    with contextlib.redirect_stdout(io.StringIO()) as text:
        query.explain(show_all=True)
    assert "fastpq" in text.getvalue()
    assert all(has_no_key(part) for part in (text.getvalue(), repr(query), str(query)))
    source = _DaftSource(arrow_task(encrypted.folder, encrypted.options()["decryption_properties"], {}))
    with pytest.raises(fastpq.UnsupportedError, match="keys never enter a task"):
        pickle.dumps(source)
    by_name = pickle.dumps(_DaftSource(arrow_task(encrypted.folder, KEY_FUNCTION, {})))
    assert has_no_key(by_name)
    assert pickle.loads(by_name).read().where(col("id") == 5).to_pydict()["text"] == ["row 5"]
