"""Ordered dictionaries of several files: reads and batches have one flag and, where the files agree, one list of entries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq

FIRST = ("low", "mid", "high")
ROWS = 10


def frame(categories: Sequence[str], *, zone: str = "Europe/Berlin") -> pd.DataFrame:
    return pd.DataFrame({
        "size": pd.Categorical([categories[row % len(categories)] for row in range(ROWS)], list(categories), ordered=True),
        "at": pd.date_range("2020-01-01", periods=ROWS, freq="h", tz=zone), "n": range(ROWS),
    })


def write(folder: Path, lists: Sequence[Sequence[str]], writer: str) -> list[pd.DataFrame]:
    frames = [frame(categories) for categories in lists]
    for number, each in enumerate(frames):
        path = folder / f"{number}.parquet"
        if writer == "fastpq":
            fastpq.write_table(each, path)
        else:
            table = pa.Table.from_pandas(each)
            pq.write_table(table if writer == "pandas" else table.replace_schema_metadata(None), path)
    return frames


@pytest.mark.parametrize("writer", ["fastpq", "pandas", "pyarrow"])
@pytest.mark.parametrize(
    ("lists", "entries"),
    [
        ([FIRST, FIRST], FIRST), ([FIRST, ("low", "high")], FIRST), ([("low", "high"), FIRST], FIRST),
        ([FIRST, ("high", "mid", "low")], None), ([("a", "b"), ("b", "c")], None),
    ],
)
def test_reads_and_batches_agree(tmp_path: Path, writer: str, lists: Any, entries: Sequence[str] | None) -> None:
    values = [value for each in write(tmp_path, lists, writer) for value in each["size"]]
    dataset = fastpq.ParquetDataset(tmp_path)
    batches = list(dataset.iter_batches(7))
    wholes = [dataset.read().to_pandas(), dataset.to_pandas(), fastpq.read_pandas(tmp_path)]
    filtered = dataset.read(filters=[("n", ">=", 0)]).to_pandas()
    for found in (*wholes, filtered, pd.concat([batch.to_pandas().astype({"size": object}) for batch in batches])):
        assert found["size"].astype(object).tolist() == values
        assert str(found["at"].dtype) == "datetime64[us, Europe/Berlin]"
    for found in (*wholes, filtered, *(batch.to_pandas() for batch in batches)):
        assert isinstance(found["size"].dtype, pd.CategoricalDtype)
        assert found["size"].dtype.ordered is (entries is not None)
        assert entries is None or found["size"].dtype.categories.tolist() == list(entries)
    tables = [batch.to_arrow() for batch in batches]
    assert {table.schema.field("size").type.ordered for table in tables} == {entries is not None}
    assert pa.concat_tables(tables).combine_chunks()["size"].cast(pa.string()).to_pylist() == values      # of one Arrow type


def test_one_file_keeps_its_order(tmp_path: Path) -> None:
    write(tmp_path, [FIRST], "pyarrow")
    for batch in fastpq.ParquetDataset(tmp_path).iter_batches(3):
        assert batch.to_pandas()["size"].dtype == pd.CategoricalDtype(list(FIRST), ordered=True)


def test_files_without_the_column(tmp_path: Path) -> None:
    write(tmp_path, [FIRST, FIRST], "pyarrow")
    fastpq.write_table({"n": [1]}, tmp_path / "2.parquet")
    batches = [batch.to_arrow() for batch in fastpq.ParquetDataset(tmp_path).iter_batches(4)]
    assert pa.concat_tables(batches).num_rows == 2 * ROWS + 1
    assert fastpq.read_table(tmp_path).to_arrow()["size"].null_count == 1
