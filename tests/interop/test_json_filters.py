"""Filters of lists alone, as JSON gives them: the rows that pyarrow finds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq

TABLE = pa.table({"n": range(12), "t": ["a", "b", "c"] * 4, "p": [1, 2] * 6})
TEXTS = [
    '[["n", ">", 3]]',
    '[["n", ">", 3], ["p", "==", 2]]',
    '[["p", "in", [1]]]',
    '[[["n", "<", 3], ["p", "==", 2]], [["t", "==", "c"]]]',
    '[[["p", "==", 1]], [["n", "not in", [1, 2]], ["t", "!=", "a"]]]',
]


@pytest.mark.parametrize("text", TEXTS)
def test_files_and_datasets(tmp_path: Path, text: str) -> None:
    filters: Any = json.loads(text)
    pq.write_table(TABLE, tmp_path / "file", row_group_size=5)
    pq.write_to_dataset(TABLE, tmp_path / "dataset", partition_cols=["p"])
    expected = pq.read_table(tmp_path / "file", filters=filters)["n"].to_pylist()
    assert 0 < len(expected) < TABLE.num_rows
    assert fastpq.read_table(tmp_path / "file", ["n"], filters=filters)["n"].to_pylist() == expected
    assert sorted(fastpq.read_table(tmp_path / "dataset", ["n"], filters=filters)["n"].to_pylist()) == expected
    assert fastpq.ParquetDataset(tmp_path / "dataset").count(filters) == len(expected)


def test_partitions_ruled_out_are_not_opened(tmp_path: Path) -> None:
    pq.write_to_dataset(TABLE, tmp_path / "dataset", partition_cols=["p"])
    (damaged,) = (tmp_path / "dataset" / "p=2").iterdir()
    damaged.write_bytes(b"")
    assert fastpq.read_dataset(tmp_path / "dataset", ["n"], filters=[["p", "==", 1]])["n"].to_pylist() == [0, 2, 4, 6, 8, 10]


def test_labels_of_frames(tmp_path: Path) -> None:
    frame = pd.DataFrame({1: [1, 2, 3], 2: ["a", "b", "c"]})
    fastpq.write_table(frame, tmp_path / "file")
    found = fastpq.read_pandas(tmp_path / "file", filters=[[1, ">", 1], [2, "!=", "c"]])
    assert found[2].tolist() == ["b"]
