"""Many short columns of numbers become few blocks of a DataFrame, and it is the DataFrame that pandas reads with pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.convert import dataframes

WIDTH = 300


def wide(rows: int) -> dict[str, pa.Array]:
    rng = np.random.default_rng(rows)
    kinds: list[Any] = [np.int64, np.float32, np.uint8, np.float64, np.int16]
    columns = {f"c{number:03}": pa.array(rng.integers(0, 99, rows).astype(kinds[number % 5])) for number in range(WIDTH)}
    columns["c007"] = pa.array([f"text {number}" for number in range(rows)], pa.string())
    columns["c011"] = pa.array(rng.integers(0, 9, rows), mask=rng.random(rows) < 0.5)
    columns["c012"] = pa.array(rng.integers(0, 99, rows), pa.timestamp("us"))
    columns["c013"] = pa.array([[1, 2]] * rows, pa.list_(pa.int64()))
    columns["c014"] = pa.array(rng.integers(0, 99, rows), pa.duration("ms"))
    columns["c015"] = pa.array(rng.random(rows) < 0.5)
    columns["c016"] = pa.array(rng.random(rows), mask=rng.random(rows) < 0.5)
    return columns


def require_equal(frame: pd.DataFrame, truth: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(frame.drop(columns="c013", errors="ignore"), truth.drop(columns="c013", errors="ignore"))
    assert frame.columns.tolist() == truth.columns.tolist()


@pytest.mark.parametrize("rows", [0, 1, 5, dataframes.MOST_ROWS_IN_A_BLOCK + 1])
def test_wide_files_are_read_as_by_pandas(tmp_path: Path, rows: int) -> None:
    pq.write_table(pa.table(wide(rows)), tmp_path / "wide.parquet")
    frame = fastpq.read_pandas(tmp_path / "wide.parquet")
    require_equal(frame, pd.read_parquet(tmp_path / "wide.parquet", engine="pyarrow"))
    if 0 < rows <= dataframes.MOST_ROWS_IN_A_BLOCK:
        assert len(frame._mgr.blocks) < WIDTH / 10


def test_frames_with_metadata_of_pandas(tmp_path: Path) -> None:
    columns = wide(5)
    frame = pa.table({name: columns[name] for name in columns if name != "c013"}).to_pandas().set_index(["c007", "c020"])
    frame["c021"] = pd.array([1, None, 3, 4, 5], "Int64")
    frame["c022"] = pd.arrays.SparseArray(np.arange(5))
    frame["c023"] = pd.Categorical([1, 2, 1, 2, 3])
    frame["c024"] = np.arange(5).astype(object)
    dense = frame.drop(columns="c022")      # pyarrow does not write sparse columns
    dense.to_parquet(tmp_path / "frame.parquet", engine="pyarrow")
    pd.testing.assert_frame_equal(fastpq.read_pandas(tmp_path / "frame.parquet"), dense)
    fastpq.write_table(frame, tmp_path / "mine.parquet")
    pd.testing.assert_frame_equal(fastpq.read_pandas(tmp_path / "mine.parquet"), frame)
    assert fastpq.read_pandas(tmp_path / "mine.parquet", ["c003", "c001"]).columns.tolist() == ["c003", "c001"]


def test_labels_that_are_numbers(tmp_path: Path) -> None:
    frame = pd.DataFrame(np.arange(5 * WIDTH).reshape(5, WIDTH), columns=range(WIDTH, 0, -1), index=list("abcde"))
    fastpq.write_table(frame, tmp_path / "frame.parquet")
    read = fastpq.read_pandas(tmp_path / "frame.parquet")
    pd.testing.assert_frame_equal(read, frame)
    read.iloc[0, 0] = -1        # the values are the frame's own
    assert read.iloc[0, 0] == -1


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_backends(tmp_path: Path, backend: Any) -> None:
    columns = {name: values for name, values in wide(3).items() if name not in ("c012", "c013", "c014")}
    pq.write_table(pa.table(columns), tmp_path / "wide.parquet")
    truth = pd.read_parquet(tmp_path / "wide.parquet", engine="pyarrow", dtype_backend=backend)
    read = fastpq.read_pandas(tmp_path / "wide.parquet", dtype_backend=backend)
    assert [str(dtype) for dtype in read.dtypes] == [str(dtype) for dtype in truth.dtypes]
    assert read["c000"].tolist() == truth["c000"].tolist()
