"""min_max and explain of datasets, beside DuckDB, and the files that they open."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.datasets.opened_files import OpenedFiles
from tests.requirements import peer

duckdb = peer("duckdb")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for year in range(2020, 2026):
        rows = pa.table(
            {
                "n": pa.array([year, None, -year], pa.int64() if year % 2 else pa.int32()),
                "x": [year / 7, float("nan"), None],
                "text": [f"é{year}", "a", None],
                "at": pa.array([dt.datetime(year, 1, 2), None, None], pa.timestamp("us" if year % 2 else "ms")),
                "day": [dt.date(year, 5, 5), None, None],
                "price": pa.array([Decimal(year), None, None], pa.decimal128(12, 2)),
                "tags": [["a"], None, []],
                "none": pa.nulls(3, pa.int32()),
            }
        )
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(rows, tmp_path / f"year={year}" / "x.parquet")
    (tmp_path / "year=1990").mkdir()
    pq.write_table(rows.slice(0, 0), tmp_path / "year=1990" / "x.parquet")
    return tmp_path


class Opened:
    """Numbers of the files opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.numbers: set[int] = set()
        plain = OpenedFiles.opened

        def noted(opened: OpenedFiles, number: int, *, keep: bool = False) -> Any:
            self.numbers.add(number)
            return plain(opened, number, keep=keep)

        monkeypatch.setattr(OpenedFiles, "opened", noted)


@pytest.mark.parametrize("column", ["n", "text", "at", "day", "price", "year", "none"])
def test_min_max_as_duckdb(root: Path, column: str) -> None:
    with duckdb.connect() as connection:
        files = f"read_parquet('{root}/**/*.parquet', hive_partitioning=true)"
        query = f'SELECT min("{column}"), max("{column}") FROM {files}'
        expected = connection.sql(query).fetchall()[0]
    assert fastpq.ParquetDataset(root).min_max(column) == expected


def test_min_max_of_chosen_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = fastpq.ParquetDataset(root, filters=("year", "in", [2021, 2023]), schema="first")
    opened = Opened(monkeypatch)
    assert dataset.min_max("n") == (-2023, 2023)
    assert opened.numbers == {0, 1}
    assert fastpq.ParquetDataset(root).min_max("x") == (2020 / 7, 2025 / 7)
    opened.numbers.clear()
    assert fastpq.ParquetDataset(root, schema=pq.read_schema(root / "year=2020" / "x.parquet")).min_max("year") == (2020, 2025)
    assert opened.numbers == {0, 1, 6}      # the first has no row
    with pytest.raises(fastpq.UnsupportedError, match="nested"):
        dataset.min_max("tags")
    with pytest.raises(fastpq.SchemaError, match="no column 'nothing'"):
        dataset.min_max("nothing")
    assert fastpq.ParquetDataset(root, filters=("year", "==", 1)).min_max("n") == (None, None)


def test_explain(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = fastpq.ParquetDataset(root, schema="first")
    opened = Opened(monkeypatch)
    filters = [("year", ">=", 2023), ("day", "<", "2025-01-01")]
    found = dataset.explain(filters, ["text"])
    assert opened.numbers == {4, 5, 6}
    assert [path.split("/")[-2] for path in found.files] == ["year=2023", "year=2024", "year=2025"]
    assert [file.bytes_read > 0 for file in found.files.values()] == [True, True, False]
    assert [path.split("/")[-2] for path in found.left_out] == ["year=1990", "year=2020", "year=2021", "year=2022"]
    assert 0 < found.bytes_read < found.num_bytes
    assert str(found).startswith("3 of 7 files, ")
    assert "0 of 1 row groups" in str(found)
    assert "3 of 7 files" in repr(found)
    assert "<table>" in found._repr_html_()
    assert dataset.count(filters) == 2


def test_explain_of_columns_of_another_type(root: Path) -> None:
    found = fastpq.ParquetDataset(root).explain([("n", ">", 2023)], ["day"])     # int32 and int64
    assert len(found.files) == 7
    read = {path.split("/")[-2]: file.bytes_read for path, file in found.files.items()}
    assert read["year=2021"] == 0 < read["year=2025"]
    assert np.all([read[f"year={year}"] > 0 for year in (2020, 2022, 2024)])    # these are converted, and read whole
