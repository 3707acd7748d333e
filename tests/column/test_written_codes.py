"""Arrow dictionaries and categoricals are written from their codes; pyarrow and DuckDB read the files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.arrays.table import Column, DictionaryValues
from fastpq.errors import FormatError

ENTRIES = ["z", "unused", "", "größer als zwölf Zeichen", "z", "a", "größer als zwölf Zeichen"]     # two entries are repeated


def coded(rows: int, nulls: bool) -> pa.DictionaryArray:
    rng = np.random.default_rng(rows)
    codes = rng.choice([0, 2, 3, 4, 5, 6], rows).astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=rng.random(rows) < 0.2 if nulls else None), pa.array(ENTRIES))


def plain(column: Any) -> list[Any]:
    return column.to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("rows", [0, 1, 7, 20_000])
def test_repeated_and_unused_entries(tmp_path: Path, rows: int, version: str, nulls: bool) -> None:
    column, path = coded(rows, nulls), tmp_path / "codes.parquet"
    lists = pa.ListArray.from_arrays(pa.array(np.arange(0, rows + 1, max(rows // 3, 1)), pa.int32()), column)
    options: dict[str, Any] = {"row_group_size": 7_000, "data_page_size": 1_000, "data_page_version": version}
    fastpq.write_table(pa.table({"s": column}), path, **options)
    assert plain(pq.read_table(path)["s"]) == plain(column)
    assert [text for (text,) in duckdb.execute("select s from read_parquet(?)", [str(path)]).fetchall()] == plain(column)
    fastpq.write_table(pa.table({"s": lists}), path, **options)
    assert plain(pq.read_table(path)["s"]) == plain(lists)
    assert fastpq.read_table(path)["s"].to_pylist() == plain(lists)


def test_bounds_are_those_of_the_used_entries(tmp_path: Path) -> None:
    entries, path = pa.array(["a", "b", "c", "d", "b"]), tmp_path / "bounds.parquet"
    column = pa.DictionaryArray.from_arrays(pa.array([1, 4, None, 2], pa.int8()), entries)
    fastpq.write_table(pa.table({"s": column}), path)
    statistics = pq.read_metadata(path).row_group(0).column(0).statistics
    assert (statistics.min, statistics.max, statistics.null_count) == ("b", "c", 1)


def test_a_dictionary_over_the_page_size_falls_back(tmp_path: Path) -> None:
    texts, path = [f"{n:050}" for n in range(3000)], tmp_path / "large.parquet"
    frame = pd.DataFrame({"s": pd.Categorical.from_codes(np.arange(9000) % 3000, texts)})
    fastpq.write_table(frame, path, dictionary_page_size=10_000)
    assert "PLAIN" in pq.read_metadata(path).row_group(0).column(0).encodings
    assert plain(pq.read_table(path)["s"]) == frame["s"].tolist()


def test_dictionary_pages_have_each_entry_once(tmp_path: Path) -> None:
    path = tmp_path / "entries.parquet"
    fastpq.write_table(pa.table({"s": coded(20_000, True)}), path, row_group_size=7_000)
    for number in range(3):
        found = pq.ParquetFile(path, read_dictionary=["s"]).read_row_group(number)["s"].chunk(0)
        assert found.dictionary.to_pylist() == ["z", "unused", "", "größer als zwölf Zeichen", "a"]


@pytest.mark.parametrize("code", [-1, 2, 2**31 - 1])
def test_a_code_outside_the_dictionary(code: int) -> None:
    entries = fastpq.Table({"s": np.array(["a", "b"], object)})["s"]
    assert isinstance(entries, Column)
    column = Column._made(entries.type, DictionaryValues(np.array([0, code, 1], np.int32), entries._with(nullable=False)))
    with pytest.raises(FormatError, match="a dictionary code is outside the dictionary"):
        fastpq.write_table({"s": column}, io.BytesIO())
