"""split_file: by rows, bytes and values; what strangers read of the parts together is what they read of the whole."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from tests.narrowing import present

ROWS = 3000
KEY = b"0" * 16


def rows() -> pa.Table:
    return pa.table(
        {
            "id": list(range(ROWS)),
            "name": [f"name {row % 7}" if row % 4 else None for row in range(ROWS)],
            "kind": [["a", "b", None][row // 1500 + row % 2] for row in range(ROWS)],
            "list": [[{"a": row, "b": str(row)}] * (row % 3) for row in range(ROWS)],
        }
    )


@pytest.fixture(params=["pyarrow", "fastpq", "encrypted"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    path = tmp_path / "source.parquet"
    settings: dict[str, Any] = {"row_group_size": 1000}
    if request.param == "pyarrow":
        pq.write_table(rows(), path, max_rows_per_page=100, **settings)
        return path, {}
    if request.param == "fastpq":
        fastpq.write_table(rows(), path, data_page_rows=100, bloom_filter={"name": True}, **settings)
        return path, {}
    keys = fastpq.FileEncryptionProperties(KEY)
    fastpq.write_table(rows(), path, data_page_rows=100, encryption_properties=keys, **settings)
    return path, {"decryption_properties": fastpq.FileDecryptionProperties(KEY)}


def read(path: str, options: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a part, which strangers read too if it is plaintext."""
    found: list[dict[str, Any]] = pa.table(fastpq.read_table(path, **options)).to_pylist()
    if not options:
        assert pq.read_table(path).to_pylist() == found
        assert pl.read_parquet(path, glob=False, hive_partitioning=False).to_arrow().to_pylist() == found
        query = f"select sum(id) from read_parquet('{path}', hive_partitioning=false)"
        assert present(duckdb.sql(query)).fetchall() == [(sum(row["id"] for row in found),)]
    return found


@pytest.mark.parametrize("size", [1000, 700, 2500, 5000])
def test_by_rows(source: tuple[Path, dict[str, Any]], tmp_path: Path, size: int) -> None:
    path, options = source
    calls: list[tuple[int, int]] = []
    reports = fastpq.split_file(
        path, tmp_path / "part-{number:03}", rows=size, progress=lambda done, total: calls.append((done, total)), **options
    )
    assert list(reports) == [str(tmp_path / f"part-{number:03}") for number in range(-(-ROWS // size))]
    parts = [read(part, options) for part in reports]
    assert [len(part) for part in parts[:-1]] == [size] * (len(parts) - 1)
    assert [*chain(*parts)] == rows().to_pylist()
    assert calls[-1] == (ROWS, ROWS)
    assert all(report.copied_pages for report in reports.values())
    if size in (1000, 5000):
        assert not any(report.decoded_pages for report in reports.values())


def test_by_bytes(source: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    path, options = source
    for num_bytes, count in ((1, 3), (path.stat().st_size, 1)):
        reports = fastpq.split_file(path, tmp_path / "part-{number}", num_bytes=num_bytes, **options)
        assert len(reports) == count
        assert [*chain(*(read(part, options) for part in reports))] == rows().to_pylist()
        assert not any(report.decoded_pages for report in reports.values())


def test_by_values(source: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    path, options = source
    reports = fastpq.split_file(path, tmp_path / "kind={value}", by="kind", **options)
    assert list(reports) == [str(tmp_path / f"kind={value}") for value in ("a", "b", None)]
    for part, value in zip(reports, ("a", "b", None), strict=True):
        assert read(part, options) == [row for row in rows().to_pylist() if row["kind"] == value]


def test_refusals(tmp_path: Path) -> None:
    path = tmp_path / "source.parquet"
    pq.write_table(rows(), path)
    refused: list[dict[str, Any]] = [{}, {"rows": 5, "num_bytes": 5}, {"rows": 0}, {"num_bytes": -1}]
    for arguments in refused:
        with pytest.raises(ValueError, match="positive"):
            fastpq.split_file(path, tmp_path / "{number}", **arguments)
    with pytest.raises(ValueError, match="number"):
        fastpq.split_file(path, tmp_path / "same", rows=1000)
    for column in ("nope", "list"):
        with pytest.raises(fastpq.SchemaError):
            fastpq.split_file(path, tmp_path / "{number}", by=column)
    pq.write_table(rows().slice(0, 0), path)
    assert len(fastpq.split_file(path, tmp_path / "{number}", rows=10)) == 1
    assert pq.read_table(tmp_path / "0").num_rows == 0


def test_the_source_is_no_target(tmp_path: Path) -> None:
    """The second file would be made from the first one, and rows would be lost."""
    path = tmp_path / "part-1.parquet"
    pq.write_table(rows(), path, row_group_size=1000)
    (tmp_path / "link").symlink_to(tmp_path)
    for targets in (tmp_path / "part-{number}.parquet", tmp_path / "link" / "part-{number}.parquet"):
        with pytest.raises(ValueError, match="replace the source"):
            fastpq.split_file(path, targets, rows=1000)
    assert pq.read_table(path).equals(rows())
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "part-1.parquet"]


def test_values_in_paths(tmp_path: Path) -> None:
    """Values lead to no other folder."""
    (tmp_path / "out").mkdir()
    names = ["../evil", "a/b", "..", "50%", "plain"]
    path = tmp_path / "source.parquet"
    pq.write_table(pa.table({"name": names, "price": [float("nan"), 1.5, float("nan"), 1.5, None]}), path)
    reports = fastpq.split_file(path, tmp_path / "out" / "{value}", by="name")
    assert [Path(each).name for each in reports] == ["..%2Fevil", "a%2Fb", "%2E%2E", "50%25", "plain"]
    assert [pq.read_table(each)["name"].to_pylist() for each in reports] == [[name] for name in names]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out", "source.parquet"]
    prices = fastpq.split_file(path, tmp_path / "price-{number}", by="price")
    assert [pq.read_table(each).num_rows for each in prices] == [2, 2, 1]


def test_indexes_of_pandas(tmp_path: Path) -> None:
    """A part has its part of a RangeIndex. Rows that do not follow each other are counted from 0."""
    frame = pd.DataFrame({"v": np.arange(100), "k": ["a", "b"] * 50}, index=pd.RangeIndex(10, 310, 3))
    path = tmp_path / "source.parquet"
    frame.to_parquet(path, row_group_size=30)
    for number, part in enumerate(fastpq.split_file(path, tmp_path / "part-{number}", rows=40)):
        for read in (pd.read_parquet(part), fastpq.read_pandas(part)):
            pd.testing.assert_frame_equal(read, frame[number * 40 : number * 40 + 40])
    reports = fastpq.split_file(path, tmp_path / "k={value}", by="k")
    for part, value in zip(reports, "ab", strict=True):
        expected = frame[frame.k == value].reset_index(drop=True)
        for read in (pd.read_parquet(part, partitioning=None), fastpq.read_pandas(part)):
            pd.testing.assert_frame_equal(read, expected)
        assert [each.part for each in reports[part].dropped_metadata] == ["the labels of the RangeIndex"]
    fastpq.delete_rows(path, path, rows=[0, 50])
    for read in (pd.read_parquet(path), fastpq.read_pandas(path)):
        pd.testing.assert_frame_equal(read, frame.drop(index=[10, 160]).reset_index(drop=True))


def test_entries_about_all_rows(tmp_path: Path) -> None:
    path = tmp_path / "source.parquet"
    geo = {"version": "1.1.0", "primary_column": "name", "columns": {"name": {"encoding": "WKB", "bbox": [0, 0, 1, 1]}}}
    entries = {"geo": json.dumps(geo), "hoodie_min_record_key": "a", "own": "x"}
    fastpq.write_table(rows(), path, key_value_metadata=entries)
    [report, *_] = fastpq.split_file(path, tmp_path / "part-{number}", rows=2000).values()
    assert [entry.key for entry in report.dropped_metadata] == ["geo", "hoodie_min_record_key"]
    kept = fastpq.read_metadata(tmp_path / "part-0").key_value_metadata
    assert kept.keys() >= {"geo", "own"}
    assert "bbox" not in present(kept["geo"])
    assert "hoodie_min_record_key" not in kept
    fastpq.split_file(path, tmp_path / "part-{number}", rows=2000, keep_metadata=["geo"])
    assert "bbox" in present(fastpq.read_metadata(tmp_path / "part-0").key_value_metadata["geo"])
