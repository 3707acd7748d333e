"""Page indexes and bloom filters exchanged: those that we build read by others, those that others wrote read here.

Ours are indexed onto a file of ours (graft.py); parquet-java prints what it sees, and parquet-java, DataFusion and DuckDB prune
with them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.encryption.cipher import ModuleCipher
from fastpq.filters.evidence import claims_of
from fastpq.index.bloom_filter import SplitBlockBloomFilter, hash_each
from fastpq.index.bloom_format import FilterRequest, ProbedBlocks, probe_bloom_filters
from tests.interop.comparison import assert_same
from tests.interop.parquet_java import ParquetJava
from tests.narrowing import present
from tests.requirements import peer

duckdb = peer("duckdb")

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
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("indexed") / "indexed.parquet"
    fastpq.write_table(
        columns(),
        path,
        row_group_size=GROUP_ROWS,
        data_page_rows=PAGE_ROWS,
        use_dictionary=["down"],
        bloom_filter=dict.fromkeys(columns(), True),
    )
    return path


# ---- ours, read by others


def test_pyarrow_reads_what_it_reads_without(indexed: Path, tmp_path: Path) -> None:
    fastpq.write_table(columns(), tmp_path / "bare.parquet", write_page_index=False)
    assert not pq.read_metadata(tmp_path / "bare.parquet").row_group(0).column(0).has_offset_index
    chunk = pq.read_metadata(indexed).row_group(0).column(0)
    assert chunk.has_offset_index
    assert chunk.has_column_index
    assert_same(pq.read_table(indexed), pq.read_table(tmp_path / "bare.parquet"))


def test_parquet_java_sees_every_page(indexed: Path, parquet_java: ParquetJava) -> None:
    printed = parquet_java.run("Indexes", "index", indexed)
    expected = []
    with fastpq.ParquetFile(indexed) as file:
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


def test_parquet_java_prunes(indexed: Path, parquet_java: ParquetJava) -> None:
    assert int(parquet_java.run("Indexes", "rows", str(indexed), "id", "3000")) == PAGE_ROWS
    assert int(parquet_java.run("Indexes", "rows", str(indexed), "id", "3001")) in (0, PAGE_ROWS)     # in no page
    there = [str(3 * row) for row in range(0, ROWS, 100)]
    not_there = [str(-row) for row in range(1, 500)]
    printed = parquet_java.run("Indexes", "bloom", str(indexed), "id", *there, *not_there).splitlines()
    found = [line[: len(there)] for line in printed]
    for value in range(len(there)):
        assert any(line[value] == "1" for line in found)
    false_positives = sum(line[len(there) :].count("1") for line in printed)
    assert false_positives < 0.03 * len(printed) * len(not_there)


def test_datafusion_prunes_pages(indexed: Path) -> None:
    datafusion = peer("datafusion")
    context = datafusion.SessionContext(
        datafusion.SessionConfig({"datafusion.execution.parquet.pushdown_filters": "false"})
    )
    context.register_parquet("data", str(indexed))
    where = "id >= 3000 AND id < 3030"
    assert context.sql(f"SELECT id FROM data WHERE {where}").to_pydict()["id"] == list(range(3000, 3030, 3))
    plan = str(context.sql(f"EXPLAIN ANALYZE SELECT id FROM data WHERE {where}").to_pydict())
    # either "page_index_rows_pruned=1850" or "page_index_rows_pruned=2.00 K total → 150 matched", by version
    match = re.search(r"page_index_rows_pruned=(\S+( K)? total → )?(\d+)", plan)
    assert match is not None, plan
    assert int(match[3]) in (PAGE_ROWS, GROUP_ROWS - PAGE_ROWS), plan


def test_datafusion_prunes_with_bloom_filters(indexed: Path) -> None:
    datafusion = peer("datafusion")
    context = datafusion.SessionContext()
    context.register_parquet("data", str(indexed))
    plan = str(context.sql("EXPLAIN ANALYZE SELECT id FROM data WHERE id = 3001").to_pydict())
    assert re.search(r"row_groups_pruned_bloom_filter=1( total → 0 matched)?\b", plan), plan
    for value in range(0, 3 * ROWS, 999):
        assert context.sql(f"SELECT id FROM data WHERE id = {value}").to_pydict()["id"] == [value]


def test_duckdb_probes(indexed: Path) -> None:
    with duckdb.connect() as connection:

        def excluded(value: int) -> list[bool]:
            query = f"SELECT bloom_filter_excludes FROM parquet_bloom_probe('{indexed}', 'id', {value}) ORDER BY row_group_id"
            return [row[0] for row in connection.execute(query).fetchall()]

        for value in range(0, 3 * ROWS, 333):
            assert not excluded(value)[value // (3 * GROUP_ROWS)]
        not_there = [found for value in range(1, 600, 3) for found in excluded(value)]
        assert sum(not_there) > 0.95 * len(not_there)


def test_we_prune(indexed: Path) -> None:
    with fastpq.ParquetFile(indexed) as file:
        # behind the offset index, pages are the ones that the writer cut
        explanation = file.explain([("id", "==", 3000)], ["id"])
        assert [group.rows for group in explanation.row_groups] == [PAGE_ROWS, 0, 0]
        assert file.count([("id", "==", 3000)]) == 1
        findings = [str(evidence) for evidence in file.explain([("id", "==", 3001)]).row_groups[0].evidence]
        assert findings == ["id in (3001): no row by bloom filter"]


# ---- those of others, and ours beside them


@pytest.mark.parametrize("data_page_version", ["1.0", "2.0"])
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_what_we_write_is_what_pyarrow_wrote(tmp_path: Path, data_page_version: Any, use_dictionary: bool) -> None:
    theirs, ours = tmp_path / "theirs.parquet", tmp_path / "ours.parquet"
    fastpq.write_table(columns(), ours)
    table = pa.table(fastpq.read_table(ours, strings="offsets"))
    table = table.set_column(3, "name", pa.array([None if name is None else name[:20] for name in table["name"].to_pylist()]))
    options = {"use_dictionary": use_dictionary, "row_group_size": GROUP_ROWS, "data_page_version": data_page_version}
    pq.write_table(table, theirs, max_rows_per_page=PAGE_ROWS, write_batch_size=50, write_page_index=True, **options)
    fastpq.write_table(table, ours, data_page_rows=PAGE_ROWS, **options)
    with fastpq.ParquetFile(theirs) as file, fastpq.ParquetFile(ours) as mine:
        for group in range(file.num_row_groups):
            for column in file.schema.columns:
                offset_index, expected = mine.offset_index(group, column.index), file.offset_index(group, column.index)
                assert offset_index is not None
                assert expected is not None
                assert offset_index.first_rows.tolist() == expected.first_rows.tolist()
                column_index, wanted = mine.column_index(group, column.index), file.column_index(group, column.index)
                assert column_index is not None
                assert wanted is not None
                assert column_index.null_pages.tolist() == wanted.null_pages.tolist()
                assert column_index.min_values == wanted.min_values
                assert column_index.max_values == wanted.max_values
                assert column_index.null_counts.tolist() == wanted.null_counts.tolist()       # type: ignore[union-attr]
                assert column_index.boundary_order == wanted.boundary_order


def test_nested_pages_are_those_of_pyarrow(tmp_path: Path) -> None:
    """Level histograms and sizes of nested columns, and pages that begin with rows."""
    lists = [None if i % 5 == 0 else [None if j % 3 == 0 else "v" * (j % 7) for j in range(i % 4)] for i in range(2000)]
    table = pa.table({"list": lists, "struct": [None if i % 3 == 0 else {"a": i, "b": None} for i in range(2000)]})
    table = table.cast(pa.schema([table.schema.field(0), ("struct", pa.struct([("a", pa.int64()), ("b", pa.int32())]))]))
    theirs, ours = tmp_path / "theirs.parquet", tmp_path / "ours.parquet"
    pq.write_table(table, theirs, max_rows_per_page=100, write_batch_size=10, write_page_index=True, data_page_version="2.0")
    for version in ("1.0", "2.0"):
        fastpq.write_table(table, ours, data_page_rows=100, data_page_version=version)
        assert pq.read_table(ours).equals(table)
        with fastpq.ParquetFile(theirs) as file, fastpq.ParquetFile(ours) as mine:
            for column in file.schema.columns:
                one, other = mine.column_index(0, column.index), file.column_index(0, column.index)
                assert one is not None
                assert other is not None
                assert (one.min_values, one.max_values) == (other.min_values, other.max_values)
                for name in ("null_counts", "repetition_level_histograms", "definition_level_histograms"):
                    counts, expected = getattr(one, name), getattr(other, name)
                    assert counts is None or np.array_equal(counts, expected), (column.name, name)
                assert (one.definition_level_histograms is None) == (column.max_definition_level < 2)
                pages, their_pages = mine.offset_index(0, column.index), file.offset_index(0, column.index)
                assert pages is not None
                assert their_pages is not None
                assert pages.first_rows.tolist() == their_pages.first_rows.tolist() == list(range(0, 2000, 100))
                if column.physical_type is fastpq.Type.BYTE_ARRAY:
                    assert np.array_equal(
                        present(pages.unencoded_byte_array_data_bytes), present(their_pages.unencoded_byte_array_data_bytes)
                    )
                sizes = mine.metadata.row_group(0).column(column.index).metadata.size_statistics
                their_sizes = file.metadata.row_group(0).column(column.index).metadata.size_statistics
                if sizes is not None and their_sizes is not None:
                    assert sizes.unencoded_byte_array_data_bytes == their_sizes.unencoded_byte_array_data_bytes
                    for name in ("repetition_level_histogram", "definition_level_histogram"):
                        assert getattr(sizes, name) in (None, getattr(their_sizes, name))


@pytest.mark.parametrize(("more", "usable"), [(0, True), (32, False), (5, False), (-32, False), (1 << 40, False)])
def test_blocks_of_bloom_filters_are_enough(more: int, usable: bool, indexed: Path) -> None:
    """Of a filter the blocks that values belong to are read alone; all of it, where its length is not what its header says."""
    values = [value.to_bytes(8, "little") for value in range(3 * GROUP_ROWS, 3 * GROUP_ROWS + 300)]
    with fastpq.ParquetFile(indexed, memory_map=False) as file:
        whole = file.bloom_filter(1, "id")
        assert whole is not None
        chunk = file.metadata.row_group(1).column(0)
        assert chunk.metadata.bloom_filter_length is not None
        chunk.metadata.bloom_filter_length += more
        before = file.io.bytes_read
        claims = claims_of(file.metadata, file.schema.columns[0], chunk, GROUP_ROWS)
        requests = [FilterRequest(chunk, ModuleCipher(), claims, hash_each([value])) for value in values]
        found = [probe_bloom_filters(file._source, [request])[0] for request in requests]
        if not usable:
            assert {type(error) for error in found} == {fastpq.FormatError}
            return
        for value, blocks in zip(values, found, strict=True):
            assert isinstance(blocks, ProbedBlocks if more == 0 else SplitBlockBloomFilter)
            assert blocks.probe_hashes(hash_each([value])).tolist() == [whole.might_contain(value)]
        assert more or file.io.bytes_read - before < len(values) * whole.num_bytes / 4


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
    datafusion = peer("datafusion")
    ids = np.arange(20_000) * 3
    frame = datafusion.SessionContext().create_dataframe([pa.table({"id": ids}).to_batches()])
    options = datafusion.ParquetWriterOptions(bloom_filter_on_write=True, bloom_filter_fpp=0.02, bloom_filter_ndv=20_000)
    frame.write_parquet_with_options(str(tmp_path / "data.parquet"), options)
    with fastpq.ParquetFile(tmp_path / "data.parquet") as file:
        assert probe(file.bloom_filter(0, "id"), ids) == 1
        assert probe(file.bloom_filter(0, "id"), ids + 1) < 0.03
