"""Table.to_polars: text of files whose Arrow schema has offsets, which is handed over as views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.arrow.view_request import request_for_views

TEXTS = ["one", None, "a text of more than twelve bytes", "", "zwölf"]
TABLES = {
    "text": {"c": pa.array(TEXTS, pa.string())},
    "large text": {"c": pa.array(TEXTS, pa.large_string())},
    "bytes": {"c": pa.array([None if text is None else text.encode() for text in TEXTS], pa.binary())},
    "lists": {"c": pa.array([TEXTS, [], None, TEXTS[:2]], pa.list_(pa.string()))},
    "structs": {"c": pa.array([{"a": text, "n": 1} for text in TEXTS], pa.struct([("a", pa.large_string()), ("n", pa.int8())]))},
    "maps": {"c": pa.array([[("k", "v")], [], [("a long key of many bytes", None)]], pa.map_(pa.string(), pa.string()))},
    "categories": {"c": pa.array(TEXTS).dictionary_encode(), "d": pa.array(TEXTS)},
    "moments": {"c": pa.array([1, 2, None], pa.timestamp("ms", "Europe/Berlin")), "d": pa.array(["x", "y", None])},
}


@pytest.mark.parametrize("columns", TABLES.values(), ids=TABLES)
def test_a_frame_is_the_one_that_polars_reads(columns: dict[str, Any], tmp_path: Path) -> None:
    table, path = pa.table(columns), tmp_path / "x.parquet"
    pq.write_table(table, path)
    frame = fastpq.read_table(path).to_polars()
    assert frame.equals(pl.DataFrame(fastpq.read_table(path)))
    assert frame.to_arrow().to_pylist() == pl.from_arrow(table).to_arrow().to_pylist()
    assert fastpq.read_table(path, strings="offsets").to_polars().equals(frame)
    assert fastpq.read_table(path, arrow_schema=False).to_polars().to_dicts() == frame.to_dicts()


def test_text_is_requested_as_views(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    # few texts, which are codes in memory, and many, which are views
    columns = {"few": np.resize(["a", "bb", "a text of more than twelve bytes"], 50_000), "many": list(map(str, range(50_000)))}
    pq.write_table(pa.table(columns), path)
    table = fastpq.read_table(path)
    assert pa.table(table).schema.types == [pa.string(), pa.string()]

    class Requested:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return table.__arrow_c_stream__(request_for_views(table))

    handed_over = pa.table(Requested())
    assert handed_over.schema.types == [pa.string_view(), pa.string_view()]
    assert handed_over.to_pydict() == pa.table(table).to_pydict()
    assert table.to_polars().equals(pl.DataFrame(table))
    without = fastpq.Table({"n": [1, 2], "text": ["a", "b"]})
    assert request_for_views(without) is None
