"""Dask reads datasets through fastpq. It hands columns down; filters are given to read_dask."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fastpq
from fastpq.adapters import read_dask
from tests.adapters.counted import FILES, KEY_FUNCTION, ROWS, CountedDataset, has_no_key
from tests.requirements import needs, peer

needs(peer("dask.dataframe", "'dask[dataframe]'"))

FILTERS = [("id", ">", 299_000), ("text", "!=", "row 5")]


def test_frames(counted: CountedDataset) -> None:
    expected = counted.table().to_pandas(dtype_backend="pyarrow")
    frame = read_dask(counted.folder, **counted.options())
    assert frame.npartitions == FILES
    assert len(frame) == FILES * ROWS
    pd.testing.assert_frame_equal(frame.compute().reset_index(drop=True), expected, check_dtype=False)
    assert frame.dtypes.to_dict() == frame.compute().dtypes.to_dict()
    assert frame["value"].sum().compute() == expected["value"].sum()
    assert frame.groupby("value")["id"].sum().compute().to_dict() == expected.groupby("value")["id"].sum().to_dict()
    assert list(frame[["text", "id"]].tail(2).columns) == ["text", "id"]


def test_filters(counted: CountedDataset) -> None:
    frame = read_dask(counted.folder, ["id"], filters=FILTERS, **counted.options())
    expected = counted.table().to_pandas().query("id > 299000 and text != 'row 5'")["id"]
    assert frame["id"].compute().tolist() == expected.tolist()
    assert len(frame) == len(expected)


def test_bytes(counted: CountedDataset) -> None:
    frame = read_dask(str(counted.folder), **counted.options())
    assert counted.share(frame.compute) > 1.0
    assert counted.share(frame["value"].sum().compute) < 0.15
    few = read_dask(str(counted.folder), filters=[("id", "==", 5)], **counted.options())
    assert counted.share(few.compute) < 0.2


def test_dtypes_do_not_depend_on_values(tmp_path: Path) -> None:
    """A partition with nulls alone, and one without a null, have the dtype of the frame."""
    for number in range(2):
        values = np.ma.array(np.arange(3), mask=[number == 1] * 3)
        fastpq.write_table({"x": values}, tmp_path / f"{number}.parquet")
    for backend in ("pyarrow", "numpy_nullable"):
        frame = read_dask(tmp_path, dtype_backend=backend)
        dtypes = {part.compute().dtypes["x"] for part in frame.partitions}
        assert dtypes == {frame.dtypes["x"]}
        assert frame["x"].sum().compute() == 3
    with pytest.raises(ValueError, match="dtype_backend must be"):
        read_dask(tmp_path, dtype_backend="numpy")      # type: ignore[arg-type]


def test_index_and_labels_of_a_frame(tmp_path: Path) -> None:
    for number in range(2):
        frame = pd.DataFrame({1: [1.5, 2.5], 2: ["a", "b"]}, index=pd.Index([2 * number, 2 * number + 1], name="key"))
        fastpq.write_table(frame, tmp_path / f"{number}.parquet")
    found = read_dask(tmp_path)
    assert found.index.name == "key"
    assert found[[2]].compute().index.tolist() == [0, 1, 2, 3]
    assert found[1].sum().compute() == 8


def test_no_key_in_a_plan_or_a_task(encrypted: CountedDataset) -> None:
    frame = read_dask(encrypted.folder, **encrypted.options(counted=False))
    total = frame["id"].sum()
    graph = total.optimize().__dask_graph__()
    texts = [repr(total), str(total.expr.tree_repr()), repr(dict(graph)), *map(repr, dict(graph).values())]
    assert all(has_no_key(text) for text in texts)
    with pytest.raises(fastpq.UnsupportedError, match="keys never enter a task"):
        pickle.dumps(total)
    with pytest.raises(fastpq.UnsupportedError, match="keys never enter a task"):
        total.compute(scheduler="processes", num_workers=1)


def test_other_processes_import_the_function_of_keys(encrypted: CountedDataset) -> None:
    frame = read_dask(encrypted.folder, decryption_properties=KEY_FUNCTION)
    content = pickle.dumps(frame)
    assert has_no_key(content)
    assert KEY_FUNCTION.encode() in content
    rows = FILES * ROWS
    assert frame["id"].sum().compute(scheduler="processes", num_workers=1) == rows * (rows - 1) // 2
