"""The floor of a read (``benchmarks.floor``): which bytes are decompressed and copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import fastpq
from benchmarks import floor
from fastpq.arrays.layouts import CodedViews
from fastpq.arrays.table import Column

ROWS = 20_000


def columns() -> dict[str, np.ndarray[Any, Any]]:
    return {
        "number": np.arange(ROWS) * 3,
        "few": np.array(["the first of two texts", "second"] * (ROWS // 2), np.dtypes.StringDType()),
        "text": np.array([f"the text of row {row}, which no view holds" for row in range(ROWS)], np.dtypes.StringDType()),
    }


@pytest.mark.parametrize("codec", floor.CODECS)
def test_pages_are_decompressed_in_full(codec: str, tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    fastpq.write_table(columns(), path, compression=codec, row_group_size=ROWS // 2, data_page_rows=2000)
    chunks = floor.compressed_chunks(path)
    metadata = pq.read_metadata(path)
    assert len(chunks) == 6
    assert all(len(pages) >= 5 for pages in chunks)
    bodies = sum(len(page.body) for pages in chunks for page in pages)
    stored = sum(metadata.row_group(group).column(column).total_compressed_size for group in (0, 1) for column in range(3))
    assert stored * 0.9 < bodies < stored       # the rest are page headers
    floor.decompression(path, codec, 2)()       # raises if a page has another size


def test_the_result_is_copied_once(tmp_path: Path) -> None:
    fastpq.write_table(columns(), tmp_path / "file.parquet")
    table = fastpq.read_table(tmp_path / "file.parquet")
    few = table["few"]
    assert isinstance(few, Column)
    assert isinstance(few.values, CodedViews)
    expected = sum(column.nbytes for column in table.columns)
    assert sum(part.nbytes for part in floor.buffers_of(table)) == expected
    floor.copy_of(table, 2)()


def test_a_ratio_is_that_of_a_turn() -> None:
    assert floor.ratios_of({"read": [3.0, 1.0], "decompression": [0.5, 0.5], "copy": [1.0, 0.5]}) == [1.0, 2.0]
