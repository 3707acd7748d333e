"""delete_dataset_rows: which files are written, and what strangers read of the rest."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

import fastpq
from tests.narrowing import present

ROWS = 900
KEY = b"0" * 16


def rows() -> dict[str, Any]:
    numbers = np.arange(ROWS)
    return {"year": 2020 + numbers % 3, "id": numbers, "name": np.array([f"name {number % 30}" for number in numbers])}


def write(root: Path, **options: Any) -> dict[str, int]:
    fastpq.write_dataset(rows(), root, partition_by=["year"], data_page_rows=50, **options)
    return {str(path.relative_to(root)): path.stat().st_mtime_ns for path in sorted(root.rglob("*.parquet"))}


def ids(root: Path) -> list[int]:
    """The ids that are left, which strangers read too."""
    ours: list[int] = sorted(fastpq.read_table(root)["id"].to_pylist())
    assert sorted(pads.dataset(root, partitioning="hive").to_table()["id"].to_pylist()) == ours
    assert sorted(pl.read_parquet(f"{root}/**/*.parquet")["id"].to_list()) == ours
    query = f"select id from read_parquet('{root}/**/*.parquet') order by id"
    assert [number for number, in present(duckdb.sql(query)).fetchall()] == ours
    return ours


def test_partitions_are_pruned(tmp_path: Path) -> None:
    root = tmp_path / "data"
    before = write(root)
    report = fastpq.delete_dataset_rows(root, [("year", "==", 2021), ("name", "==", "name 4")])
    assert ids(root) == [number for number in range(ROWS) if not (number % 3 == 1 and number % 30 == 4)]
    assert (report.deleted_rows, report.removed_files, report.unchanged_files) == (30, (), 2)
    [path] = report.rewritten_files
    assert "year=2021" in path
    after = {str(each.relative_to(root)): each.stat().st_mtime_ns for each in sorted(root.rglob("*.parquet"))}
    assert before.keys() == after.keys()
    assert [name for name in before if before[name] != after[name]] == [os.path.relpath(path, root)]
    assert b"name 4" not in Path(path).read_bytes()
    assert str(report) == "30 rows deleted: 1 files rewritten, 0 removed, 2 unchanged"


def test_whole_files(tmp_path: Path) -> None:
    root = tmp_path / "data"
    write(root, write_metadata_file=True)
    calls: list[tuple[int, int]] = []
    filters = [[("year", "==", 2020)], [("id", "==", 4)]]
    report = fastpq.delete_dataset_rows(root, filters, progress=lambda done, total: calls.append((done, total)))
    assert ids(root) == [number for number in range(ROWS) if number % 3 and number != 4]
    assert (report.deleted_rows, len(report.removed_files), report.unchanged_files) == (301, 1, 1)
    assert calls == [(1, 2), (2, 2)]
    if (root / "_metadata").exists():
        assert fastpq.read_metadata(root / "_metadata").num_rows == 599
    again = fastpq.delete_dataset_rows(root, filters)
    assert (again.deleted_rows, again.unchanged_files) == (0, 2)


def test_encrypted_files(tmp_path: Path) -> None:
    root = tmp_path / "data"
    write(root, encryption_properties=fastpq.FileEncryptionProperties(KEY))
    opening = fastpq.FileDecryptionProperties(KEY)
    for keys in (opening, lambda path: opening):
        fastpq.delete_dataset_rows(root, [("id", "<", 10 if keys is opening else 20)], decryption_properties=keys)
    assert sorted(fastpq.read_table(root, decryption_properties=opening)["id"].to_pylist()) == list(range(20, ROWS))


def test_refusals(tmp_path: Path) -> None:
    root = tmp_path / "data"
    before = write(root)
    with pytest.raises(ValueError, match="filters"):
        fastpq.delete_dataset_rows(root, None)
    with pytest.raises(fastpq.SchemaError):
        fastpq.delete_dataset_rows(root, [("nope", "==", 1)])
    fastpq.write_table({"id": np.arange(5, dtype=np.int32), "name": ["x"] * 5}, root / "year=2020" / "narrow.parquet")
    with pytest.raises(fastpq.UnsupportedError, match="file by file"):
        fastpq.delete_dataset_rows(root, [("id", "==", 1)])
    assert fastpq.read_table(root).num_rows == ROWS + 5
    assert all((root / name).stat().st_mtime_ns == time for name, time in before.items())


def test_interruption(tmp_path: Path) -> None:
    """A second call does the rest."""
    root = tmp_path / "data"
    write(root)

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fastpq.delete_dataset_rows(root, [("id", "<", 100)], progress=interrupt)
    left = ids(root)
    assert set(range(100, ROWS)) < set(left)
    report = fastpq.delete_dataset_rows(root, [("id", "<", 100)])
    assert report.unchanged_files == 1
    assert ids(root) == list(range(100, ROWS))
    assert pa.table(fastpq.read_table(root)).num_rows == ROWS - 100
