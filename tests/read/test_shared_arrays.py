"""Values of several pages in one array: text in the bytes of its pages, whole columns of files that pyarrow wrote."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.arrays import memory
from fastpq.arrays.layouts import BinaryViews

MARK = 0xAB         # in memory that arrays had before
ROWS = 6_000
TEXTS = [f"a text of some length, number {i}" for i in range(ROWS)]


def written(path: Path, **options: Any) -> Path:
    options = {"use_dictionary": False, "data_page_size": 8_000, "write_batch_size": 100, "row_group_size": 2_500, **options}
    pq.write_table(pa.table({"text": TEXTS}), path, **options)
    return path


def buffers_of(column: Any) -> list[Any]:
    assert isinstance(column.values, BinaryViews)
    return list(column.values.buffers)


def mark_idle_memory() -> None:
    """Leave idle blocks without a zero."""
    blocks = [memory.empty(1 << shift) for shift in range(18, 24) for _ in range(3)]
    for block in blocks:
        block[:] = MARK


@pytest.mark.parametrize("options", [
    {}, {"row_group_size": ROWS}, {"compression": "none"}, {"compression": "zstd"}, {"data_page_version": "2.0"},
    {"column_encoding": {"text": "DELTA_LENGTH_BYTE_ARRAY"}}, {"use_dictionary": True, "dictionary_pagesize_limit": 30_000},
    {"use_dictionary": True, "row_group_size": 100},
], ids=str)
@pytest.mark.parametrize("threads", [1, 2])
def test_pages_share_arrays(tmp_path: Path, options: dict[str, Any], threads: int) -> None:
    path = written(tmp_path / "x.parquet", **options)
    mark_idle_memory()
    column = fastpq.read_table(path, threads=threads)["text"]
    assert column.to_pylist() == TEXTS
    assert pa.table(fastpq.read_table(path, threads=threads))["text"].to_pylist() == TEXTS
    arrays = buffers_of(column)
    assert len(arrays) == len({id(array) for array in arrays}) <= 2 * pq.ParquetFile(path).num_row_groups
    assert sum(array.nbytes for array in arrays) < 2 * sum(len(text) + 4 for text in TEXTS)
    for array in arrays:
        assert not array.flags.writeable
        assert MARK not in array


def test_batches_keep_their_own_pages(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet")
    with fastpq.ParquetFile(path) as file:
        batches = [batch["text"] for batch in file.iter_batches(batch_size=500)]
    assert [text for batch in batches for text in batch.to_pylist()] == TEXTS
    stored = sum(len(text) + 4 for text in TEXTS)
    assert max(sum(array.nbytes for array in buffers_of(batch)) for batch in batches) < stored / 5


def test_the_bound_of_memory_counts_each_page(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", row_group_size=ROWS)
    values = 16 * ROWS + sum(len(text) + 4 for text in TEXTS)
    assert fastpq.read_table(path, properties=fastpq.ReaderProperties(max_allocation=values + 10_000)).num_rows == ROWS
    with pytest.raises(fastpq.LimitError, match="max_allocation") as caught:
        fastpq.read_table(path, properties=fastpq.ReaderProperties(max_allocation=values - 10_000))
    assert caught.value.context["page"] > 1


LONG = "longer than a view holds: \u00e4"
MIXED = [None if i % 7 == 3 else f"{i % 1000}" if i % 151 else f"number {i}, {LONG}" for i in range(ROWS)]


@pytest.mark.parametrize("options", [
    {}, {"row_group_size": ROWS}, {"compression": "none"}, {"compression": "zstd"}, {"data_page_version": "2.0"},
    {"column_encoding": {"text": "DELTA_LENGTH_BYTE_ARRAY"}}, {"column_encoding": {"text": "DELTA_BYTE_ARRAY"}},
    {"use_dictionary": True, "dictionary_pagesize_limit": 30_000}, {"use_dictionary": True},
], ids=str)
@pytest.mark.parametrize("texts", [MIXED, [text or "" for text in MIXED], [(text or "")[:12] for text in MIXED]],
                         ids=["nulls", "required", "inline"])
@pytest.mark.parametrize("threads", [1, 2])
def test_pages_of_inline_values_are_not_kept(
    tmp_path: Path, options: dict[str, Any], texts: list[str | None], threads: int
) -> None:
    options = {"use_dictionary": False, "data_page_size": 8_000, "write_batch_size": 100, "row_group_size": 2_500, **options}
    table = pa.table({"text": pa.array(texts), "number": range(ROWS)})
    pq.write_table(table, tmp_path / "x.parquet", **options)
    mark_idle_memory()
    column = fastpq.read_table(tmp_path / "x.parquet", threads=threads)["text"]
    assert column.to_pylist() == texts
    assert pa.table({"text": column})["text"].cast(pa.string()).to_pylist() == texts
    if options["use_dictionary"] or options.get("column_encoding") == {"text": "DELTA_BYTE_ARRAY"}:
        return
    arrays = buffers_of(column)
    outside = sum(len(text.encode()) for text in texts if text is not None and len(text.encode()) > 12)
    levels = ROWS // 4
    assert sum(array.nbytes for array in arrays) < outside + levels < sum(len(text or "") for text in texts)
    assert all(MARK not in array for array in arrays)


def test_pages_of_half_inline_values(tmp_path: Path) -> None:
    """Around the share of values from which pages are kept as they are."""
    for every in (2, 5, 7, 10, 20, 21, 22, 50):
        texts = ["longer than a view" if i % every == 0 else "short" for i in range(ROWS)]
        pq.write_table(pa.table({"text": texts}), tmp_path / "x.parquet", use_dictionary=False, data_page_size=4_000)
        assert fastpq.read_table(tmp_path / "x.parquet")["text"].to_pylist() == texts


def test_packed_pages_count_no_more(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": [f"{i:08}" for i in range(ROWS)]}), path, use_dictionary=False, data_page_size=8_000,
                   write_batch_size=100)
    bound = fastpq.ReaderProperties(max_allocation=16 * ROWS + 30_000)
    assert fastpq.read_table(path, properties=bound)["text"].to_pylist() == [f"{i:08}" for i in range(ROWS)]
    with fastpq.ParquetFile(path, properties=bound) as file, pytest.raises(fastpq.LimitError, match="max_allocation"):
        [*file.iter_batches(batch_size=ROWS)]       # which keep their pages


def test_memory_of_large_inline_pages_goes_back(tmp_path: Path) -> None:
    """Pages of 16 MiB, one in a row group; the views take as much."""
    path, rows, groups = tmp_path / "x.parquet", 1 << 20, 8
    texts = pa.array([f"{i:012}" for i in range(rows)])
    schema = pa.schema([pa.field("text", pa.string(), nullable=False)])
    options = {"use_dictionary": False, "data_page_size": 1 << 30, "write_batch_size": rows, "max_rows_per_page": rows}
    with pq.ParquetWriter(path, schema, **options) as writer:
        for _ in range(groups):
            writer.write_table(pa.table({"text": texts}, schema=writer.schema), row_group_size=rows)
    page = 16 * rows
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).total_uncompressed_size < page + 1000
    program = f"""
import fastpq, resource
def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
before = used()
bound = fastpq.ReaderProperties(max_allocation={16 * groups * rows + 2 * page})
table = fastpq.read_table({str(path)!r}, threads=1, properties=bound)
print(table["text"].nbytes, used() - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    size, used = map(int, done.stdout.split())
    assert size < 16 * groups * rows + page + 1000
    assert used < 16 * groups * rows + 4 * page
