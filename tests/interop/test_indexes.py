"""Page indexes and bloom filters exchanged: those that we build read by others, those that others wrote read here.

Ours are grafted onto a file of ours (graft.py); parquet-java prints what it sees, and parquet-java, DataFusion and DuckDB prune
with them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.index.bloom_filter import SplitBlockBloomFilter
from fastpq.index.page_index_builder import PageIndexBuilder
from tests.interop.comparison import assert_same
from tests.interop.graft import graft, page_statistics
from tests.interop.parquet_java import run_program

ROWS = 5000
GROUP_ROWS = 2000
PAGE_ROWS = 150


def columns() -> dict[str, Any]:
    ids = np.arange(ROWS) * 3
    nulls = (ids // 3 % 7 == 0) | ((ids > 3000) & (ids < 5000))
    names = np.array([f"{'é' * (i % 40)}{i:06}{'x' * (i % 60)}" for i in range(ROWS)], object)
    return {
        "id": ids,
        "down": -ids.astype(np.int32) // 2,
        "price": np.ma.MaskedArray(np.where(ids % 5 == 0, np.nan, (ids % 977) / 4), nulls),
        "name": np.ma.MaskedArray(names, nulls),
    }


@pytest.fixture(scope="module")
def grafted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grafted")
    fastpq.write_table(
        columns(), folder / "bare.parquet", row_group_size=GROUP_ROWS, data_page_rows=PAGE_ROWS, use_dictionary=["down"]
    )
    graft(folder / "bare.parquet", folder / "grafted.parquet")
    return folder / "grafted.parquet"


# ---- ours, read by others


def test_values_are_what_they_were(grafted: Path) -> None:
    assert_same(pq.read_table(grafted), pq.read_table(grafted.with_name("bare.parquet")))


def test_parquet_java_sees_every_page(grafted: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    printed = run_program(tmp_path_factory.mktemp("classes"), "Indexes", "index", str(grafted))
    expected = []
    with fastpq.ParquetFile(grafted) as file:
        for group in range(file.num_row_groups):
            for column in file.schema.columns:
                expected += lines(file, group, column.name)
    assert printed.splitlines() == expected
    assert sum("true" in line for line in expected) > 5
    assert {"ASCENDING", "DESCENDING", "UNORDERED"} == {line.split("\t")[3] for line in expected if "\t-\t" not in line}


def lines(file: fastpq.ParquetFile, group: int, name: str) -> list[str]:
    """What Indexes.java prints for a chunk."""
    offset_index, column_index = file.offset_index(group, name), file.column_index(group, name)
    assert offset_index is not None
    printed = []
    for page, location in enumerate(offset_index.page_locations):
        known = ["-"] * 5
        if column_index is not None:
            assert column_index.null_counts is not None
            known = [
                str(bool(column_index.null_pages[page])).lower(),
                str(column_index.null_counts[page]),
                column_index.boundary_order.name,
                column_index.min_values[page].hex(),
                column_index.max_values[page].hex(),
            ]
        printed.append("\t".join([name, *known, str(location.first_row_index), str(location.compressed_page_size)]))
    return printed


def test_parquet_java_prunes(grafted: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("classes")
    assert int(run_program(folder, "Indexes", "rows", str(grafted), "id", "3000")) == PAGE_ROWS
    assert int(run_program(folder, "Indexes", "rows", str(grafted), "id", "3001")) in (0, PAGE_ROWS)     # in no page
    there = [str(3 * row) for row in range(0, ROWS, 100)]
    not_there = [str(-row) for row in range(1, 500)]
    printed = run_program(folder, "Indexes", "bloom", str(grafted), "id", *there, *not_there).splitlines()
    found = [line[: len(there)] for line in printed]
    for value in range(len(there)):
        assert any(line[value] == "1" for line in found)
    false_positives = sum(line[len(there) :].count("1") for line in printed)
    assert false_positives < 0.03 * len(printed) * len(not_there)


def test_datafusion_prunes_pages(grafted: Path) -> None:
    datafusion = pytest.importorskip("datafusion")
    context = datafusion.SessionContext(
        datafusion.SessionConfig({"datafusion.execution.parquet.pushdown_filters": "false"})
    )
    context.register_parquet("data", str(grafted))
    where = "id >= 3000 AND id < 3030"
    assert context.sql(f"SELECT id FROM data WHERE {where}").to_pydict()["id"] == list(range(3000, 3030, 3))
    plan = str(context.sql(f"EXPLAIN ANALYZE SELECT id FROM data WHERE {where}").to_pydict())
    # either "page_index_rows_pruned=1850" or "page_index_rows_pruned=2.00 K total → 150 matched", by version
    match = re.search(r"page_index_rows_pruned=(\S+( K)? total → )?(\d+)", plan)
    assert match is not None, plan
    assert int(match[3]) in (PAGE_ROWS, GROUP_ROWS - PAGE_ROWS), plan


def test_datafusion_prunes_with_bloom_filters(grafted: Path) -> None:
    datafusion = pytest.importorskip("datafusion")
    context = datafusion.SessionContext()
    context.register_parquet("data", str(grafted))
    plan = str(context.sql("EXPLAIN ANALYZE SELECT id FROM data WHERE id = 3001").to_pydict())
    assert re.search(r"row_groups_pruned_bloom_filter=1( total → 0 matched)?\b", plan), plan
    for value in range(0, 3 * ROWS, 999):
        assert context.sql(f"SELECT id FROM data WHERE id = {value}").to_pydict()["id"] == [value]


def test_duckdb_probes(grafted: Path) -> None:
    with duckdb.connect() as connection:

        def excluded(value: int) -> list[bool]:
            query = f"SELECT bloom_filter_excludes FROM parquet_bloom_probe('{grafted}', 'id', {value}) ORDER BY row_group_id"
            return [row[0] for row in connection.execute(query).fetchall()]

        for value in range(0, 3 * ROWS, 333):
            assert not excluded(value)[value // (3 * GROUP_ROWS)]
        not_there = [found for value in range(1, 600, 3) for found in excluded(value)]
        assert sum(not_there) > 0.95 * len(not_there)


def test_we_prune(grafted: Path) -> None:
    with fastpq.ParquetFile(grafted) as file:
        # behind the offset index, pages are the ones that the writer cut
        explanation = file.explain([("id", "==", 3000)], ["id"])
        assert [group.rows for group in explanation.row_groups] == [PAGE_ROWS, 0, 0]
        assert file.count([("id", "==", 3000)]) == 1
        findings = [str(evidence) for evidence in file.explain([("id", "==", 3001)]).row_groups[0].evidence]
        assert findings == ["id in (3001): no row by bloom filter"]


# ---- those of others, and ours beside them


@pytest.mark.parametrize("data_page_version", ["1.0", "2.0"])
def test_what_we_build_is_what_pyarrow_wrote(tmp_path: Path, data_page_version: str) -> None:
    path = tmp_path / "data.parquet"
    table = pa.table(fastpq.read_table(written_bare(tmp_path)))
    table = table.set_column(3, "name", pa.array([None if name is None else name[:20] for name in table["name"].to_pylist()]))
    pq.write_table(
        table,
        path,
        row_group_size=GROUP_ROWS,
        max_rows_per_page=PAGE_ROWS,
        write_batch_size=50,
        write_page_index=True,
        data_page_version=data_page_version,
    )
    with fastpq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            for column in file.schema.columns:
                values = file.read([column.index], row_groups=[group])[column.name].to_pylist()
                offset_index, column_index = file.offset_index(group, column.index), file.column_index(group, column.index)
                assert offset_index is not None
                assert column_index is not None
                builder = PageIndexBuilder(column)
                for page, rows in zip(offset_index.page_locations, offset_index.row_counts.tolist(), strict=True):
                    inside = values[page.first_row_index : page.first_row_index + rows]
                    builder.add(page_statistics(column, page.offset, page.compressed_page_size, inside))
                built = builder.column_index()
                assert built is not None
                assert built.null_pages == column_index.null_pages.tolist()
                assert built.min_values == column_index.min_values
                assert built.max_values == column_index.max_values
                assert built.null_counts == column_index.null_counts.tolist()       # type: ignore[union-attr]
                assert built.boundary_order == column_index.boundary_order
                assert builder.offset_index(0).page_locations == [
                    fmt.PageLocation(
                        offset=page.offset,
                        compressed_page_size=page.compressed_page_size,
                        first_row_index=page.first_row_index,
                    )
                    for page in offset_index.page_locations
                ]


def written_bare(folder: Path) -> Path:
    fastpq.write_table(columns(), folder / "bare.parquet")
    return folder / "bare.parquet"


def probe(found: SplitBlockBloomFilter | None, values: np.ndarray[Any, Any]) -> float:
    assert found is not None
    return float(found.probe(values.view(np.uint8), values.itemsize).mean())


def test_bloom_filters_of_pyarrow(tmp_path: Path) -> None:
    """pyarrow 26: bloom_filter_options."""
    ids = np.arange(20_000) * 3
    options = {"id": {"ndv": 20_000, "fpp": 0.02}}
    pq.write_table(pa.table({"id": ids}), tmp_path / "data.parquet", bloom_filter_options=options)
    with fastpq.ParquetFile(tmp_path / "data.parquet") as file:
        assert probe(file.bloom_filter(0, "id"), ids) == 1
        assert probe(file.bloom_filter(0, "id"), ids + 1) < 0.03


def test_bloom_filters_of_duckdb(tmp_path: Path) -> None:
    """DuckDB 2.0 writes them for chunks that are dictionary-encoded."""
    path = tmp_path / "data.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT 3 * (i % 500) AS id FROM range(20000) t(i)) TO '{path}' (FORMAT parquet)")
    ids = np.arange(500) * 3
    with fastpq.ParquetFile(path) as file:
        assert probe(file.bloom_filter(0, "id"), ids) == 1
        assert probe(file.bloom_filter(0, "id"), ids + 1) < 0.03
        assert file.bloom_filter(0, "id").num_bytes <= 4096     # type: ignore[union-attr]


def test_bloom_filters_of_parquet_rs(tmp_path: Path) -> None:
    """DataFusion 55 (parquet-rs)."""
    datafusion = pytest.importorskip("datafusion")
    ids = np.arange(20_000) * 3
    frame = datafusion.SessionContext().create_dataframe([pa.table({"id": ids}).to_batches()])
    options = datafusion.ParquetWriterOptions(bloom_filter_on_write=True, bloom_filter_fpp=0.02, bloom_filter_ndv=20_000)
    frame.write_parquet_with_options(str(tmp_path / "data.parquet"), options)
    with fastpq.ParquetFile(tmp_path / "data.parquet") as file:
        assert probe(file.bloom_filter(0, "id"), ids) == 1
        assert probe(file.bloom_filter(0, "id"), ids + 1) < 0.03
