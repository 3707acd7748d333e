"""Shares of rows that filters keep, estimated by bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.filters import estimate_filters


@pytest.mark.parametrize(
    ("filters", "share"),
    [
        ([("id", "<", 250)], 0.25), ([("id", ">=", 900)], 0.1), ([("id", ">", 5000)], 0), ([("id", "==", 3)], 0.001),
        ([("id", "not in", [3])], 0.999), ([("nulls", "is null")], 0.5), ([("nulls", "is not null"), ("id", "<", 500)], 0.25),
        ([[("id", "<", 500)], [("id", ">", 100)]], 1), ([("text", "==", "a")], 0.25), ([("x", "<=", 499.5)], 0.5),
        ([("same", "<", 7)], 1), ([("same", ">", 7)], 0),
    ],
)
def test_estimated_shares(tmp_path: Path, filters: Any, share: float) -> None:
    numbers = np.arange(1000)
    nulls = np.ma.masked_array(numbers, numbers % 2 == 0)
    columns = {"id": numbers, "nulls": nulls, "text": list(map(str, numbers)), "x": numbers * 1.0, "same": np.full(1000, 7)}
    fastpq.write_table(columns, tmp_path / "file.parquet")
    metadata = fastpq.read_metadata(tmp_path / "file.parquet")
    estimate = estimate_filters(filters, metadata, 0)
    assert estimate.share == pytest.approx(share, abs=0.002)
    assert {column.name for column in estimate.columns.values()} <= set(columns)
