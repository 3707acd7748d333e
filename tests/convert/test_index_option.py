"""index= of write_table, as pandas has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

import fastpq

FRAMES = {
    "range": pd.DataFrame({"a": [1, 2, 3]}),
    "other range": pd.DataFrame({"a": [1, 2, 3]}, pd.RangeIndex(5, 11, 2, name="r")),
    "named": pd.DataFrame({"a": [1, 2, 3]}, pd.Index(["x", "y", "z"], name="k")),
    "levels": pd.DataFrame({"a": [1, 2]}, pd.MultiIndex.from_tuples([(1, "x"), (2, "y")], names=["n", None])),
}


@pytest.mark.parametrize("index", [None, True, False])
@pytest.mark.parametrize("name", FRAMES)
def test_as_pandas(tmp_path: Path, name: str, index: bool | None) -> None:
    frame = FRAMES[name]
    frame.to_parquet(tmp_path / "theirs", index=index)
    fastpq.write_table(frame, tmp_path / "ours", index=index)
    fastpq.write_dataset(frame, tmp_path / "whole", index=index)
    fastpq.write_dataset(iter([frame]), tmp_path / "stream", index=index)
    with fastpq.ParquetWriter(tmp_path / "batches", index=index) as writer:
        writer.write_batch(frame)
    expected = pd.read_parquet(tmp_path / "theirs")
    assert pq.read_schema(tmp_path / "ours").names == pq.read_schema(tmp_path / "theirs").names
    for path in ("ours", "batches", "whole", "stream"):
        pd.testing.assert_frame_equal(fastpq.read_pandas(tmp_path / path), expected)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "ours"), expected)


def test_other_data(tmp_path: Path) -> None:
    data: Any
    for data in ({"a": [1]}, fastpq.Table({"a": [1]})):
        with pytest.raises(fastpq.SchemaError, match="index is an option for pandas DataFrames"):
            fastpq.write_table(data, tmp_path / "x", index=True)
    with pytest.raises(fastpq.SchemaError, match="index is an option for pandas DataFrames"):
        fastpq.write_dataset({"a": [1]}, tmp_path / "d", index=False)
