"""Timestamps, Timedeltas, NaT and NA of pandas in lists and objects, beside pyarrow."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq

DAY = pd.Timestamp("2026-01-02 03:04:05.678901")
FINE = pd.Timestamp("2026-01-02 03:04:05.678901234")
INSTANT = pd.Timestamp("2026-01-02 03:04", tz="Europe/Zurich")
LONG, FINER = pd.Timedelta("2 days 3us"), pd.Timedelta("2 days 3us 5ns")

VALUES: dict[str, list[Any]] = {
    "moments": [DAY, None, pd.NaT],
    "moments and datetimes": [DAY, DAY.to_pydatetime()],
    "nanoseconds": [FINE, pd.NaT, DAY],
    "instants": [pd.NaT, INSTANT],
    "lists": [[DAY, pd.NaT], None, []],
    "lists of nanoseconds": [[FINE, None], pd.NA, [DAY]],
    "nothing before lists": [pd.NA, [1, pd.NA], [None]],
    "structs": [{"at": DAY, "n": pd.NA}, pd.NA, {"at": pd.NaT, "n": 5}],
    "integers": [1, pd.NA, None],
    "text": [pd.NA, "a"],
    "booleans": [pd.NA, True],
    "nulls": [pd.NA, pd.NaT],
    "durations": [LONG, pd.NaT],
    "fine durations": [LONG, FINER],
}


def plain(value: Any) -> Any:
    """What pyarrow makes of a value, with None for pandas' nulls."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return None if value is pd.NA or value is pd.NaT else value


@pytest.mark.parametrize("name", VALUES)
def test_as_pyarrow(name: str) -> None:
    sink = io.BytesIO()
    fastpq.write_table({"x": VALUES[name]}, sink)
    expected = pa.array(plain(VALUES[name]))
    found = pq.read_table(sink)["x"].combine_chunks()
    if name == "instants":
        expected = expected.cast(found.type)
    if name == "nulls":
        assert found.null_count == len(found)
    elif "nanoseconds" in name or "fine" in name:
        exact = found.cast(pa.list_(pa.timestamp("ns"))) if name.startswith("lists") else found
        assert exact.to_pylist() == plain(VALUES[name])
    else:
        assert found.to_pylist() == expected.to_pylist()
    ours = fastpq.read_table(sink.getvalue())["x"]
    assert ours.null_count == expected.null_count


def test_units() -> None:
    units = {name: fastpq.Table({"x": VALUES[name]})["x"].to_numpy(nulls="nan").dtype for name in ("moments", "nanoseconds")}
    assert units == {"moments": np.dtype("M8[us]"), "nanoseconds": np.dtype("M8[ns]")}
