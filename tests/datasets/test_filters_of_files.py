"""Filters of a ParquetDataset: the rows that pyarrow's ParquetDataset leaves, or an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq

TABLE = pa.table({"n": range(12), "t": ["a", "b", "c"] * 4, "p": [1, 2, 3] * 4})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    pq.write_to_dataset(TABLE, tmp_path / "dataset", partition_cols=["p"])
    return tmp_path / "dataset"


@pytest.mark.parametrize(
    "filters",
    [[("p", "==", 2)], [("p", "in", [1, 3])], [("p", "<", 3), ("p", "!=", 1)], [[("p", "==", 1)], [("p", ">", 2)]]],
    ids=str,
)
def test_partition_columns(root: Path, filters: Any) -> None:
    expected = pq.ParquetDataset(root, filters=filters).read(["n"])["n"].to_pylist()
    assert sorted(fastpq.ParquetDataset(root, filters=filters).read(["n"])["n"].to_pylist()) == sorted(expected)


@pytest.mark.parametrize(
    "filters",
    [[("n", ">", 3)], ("n", ">", 3), [("p", "==", 2), ("n", ">", 3)], [[("p", "==", 1)], [("n", ">", 3)]], [(("n",), ">", 3)]],
    ids=str,
)
def test_other_columns_are_refused(root: Path, filters: Any) -> None:
    """Before, all rows of the files came."""
    with pytest.raises(fastpq.SchemaError, match=r"by partition columns, and 'n' is not one: give filters .* to read"):
        fastpq.ParquetDataset(root, filters=filters)
    if isinstance(filters, list) and filters[0][0] != ("n",):
        expected = pq.ParquetDataset(root, filters=filters).read(["n"])["n"].to_pylist()
        assert sorted(fastpq.read_dataset(root, ["n"], filters=filters)["n"].to_pylist()) == sorted(expected)
        assert fastpq.ParquetDataset(root).count(filters) == len(expected)


def test_directories_without_partitions_are_no_exception(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "one.parquet")
    with pytest.raises(fastpq.SchemaError, match="by partition columns"):
        fastpq.ParquetDataset(tmp_path, filters=[("n", ">", 3)])


@pytest.mark.parametrize(
    "filters",
    [
        5, "p == 1", False, True, [("p", "==", 1), False], [("p", "~", 1)], [("p", "==", "x")], [("q", "==", 1)],
        [("p", "==", 99), ("q", ">", 1)], [[("p", ">", 0)], [("q", ">", 1)]],
    ],
    ids=str,
)
def test_invalid_filters(root: Path, filters: Any) -> None:
    """Whatever partitions there are, and whatever they decide."""
    with pytest.raises(fastpq.SchemaError):
        fastpq.ParquetDataset(root, filters=filters)
