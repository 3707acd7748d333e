"""Indexes and bloom filters exchanged with Spark: it skips pages by ours, and we by its."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq

ROWS, PAGE_ROWS = 4000, 200
WANTED = 3 * 1234


def destroy(path: Path, kept: int | None) -> None:
    """Overwrite every data page but those that hold row kept."""
    data = bytearray(path.read_bytes())
    with fastpq.ParquetFile(path) as file:
        for column in file.schema.columns:
            index = file.offset_index(0, column.index)
            assert index is not None
            for offset, size, first_row in index.locations.T.tolist():
                if kept is None or first_row != kept // PAGE_ROWS * PAGE_ROWS:
                    data[offset : offset + size] = b"\xff" * size
    path.write_bytes(data)


def test_spark_skips_our_pages(spark: Any, tmp_path: Path) -> None:
    path, rows = tmp_path / "data.parquet", np.arange(ROWS)
    columns = {"id": rows * 3, "price": rows / 4, "name": np.char.mod("name %d", rows // 10)}
    fastpq.write_table(
        columns, path, data_page_rows=PAGE_ROWS, use_dictionary=False, bloom_filter={"id": True}, compression=None
    )
    destroy(path, WANTED // 3)
    frame = spark.read.parquet(str(path))
    assert [tuple(row) for row in frame.where(f"id = {WANTED}").collect()] == [(WANTED, WANTED / 12, "name 123")]
    with pytest.raises(Exception, match=r"(?i)parquet|corrupt|could not read"):
        frame.where(f"id = {WANTED + 3 * PAGE_ROWS}").collect()
    # no statistics and no column index tell that this one is not there: the bloom filter does
    assert frame.where(f"id = {WANTED + 1}").collect() == []


def test_we_skip_pages_of_spark(spark: Any, tmp_path: Path) -> None:
    options = {
        "parquet.bloom.filter.enabled#id": "true",
        "parquet.bloom.filter.expected.ndv#id": str(ROWS),
        "parquet.enable.dictionary": "false",
        "parquet.page.row.count.limit": str(PAGE_ROWS),
    }
    frame = spark.range(ROWS).selectExpr("id * 3 as id", "id / 4 as price").coalesce(1)
    frame.write.options(**options).parquet(str(tmp_path / "data"))
    [path] = (tmp_path / "data").glob("*.parquet")
    destroy(path, WANTED // 3)
    with fastpq.ParquetFile(path) as file:
        assert file.bloom_filter(0, "id") is not None
        assert file.read(filters=[("id", "==", WANTED)]).to_pylist() == [{"id": WANTED, "price": WANTED / 12}]
        [group] = file.explain([("id", "==", WANTED + 1)]).row_groups
        assert [str(evidence) for evidence in group.evidence][-1].endswith("no row by bloom filter")
        with pytest.raises(fastpq.ParquetError):
            file.read(["id"])
