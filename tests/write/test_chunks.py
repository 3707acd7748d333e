"""Column chunks: pages, dictionaries that fill up, batches and threads, each against pyarrow."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from tests.narrowing import present

ROWS = 10_000


def table_with_nulls(rows: int = ROWS, seed: int = 1) -> pa.Table:
    """Columns that take each road through the page loop."""
    generator = np.random.default_rng(seed)
    null = generator.random(rows) < 0.1
    words = np.array([f"word number {i} of many" if i % 3 else f"w{i}" for i in range(rows)], dtype=object)
    return pa.table(
        {
            "few": pa.array(generator.integers(0, 20, rows)),
            "many": pa.array(generator.integers(0, 2**60, rows)),
            "small": pa.array(generator.integers(-100, 100, rows).astype(np.int8), mask=null),
            "flag": pa.array(generator.random(rows) < 0.5, mask=null),
            "real": pa.array(generator.random(rows), mask=null),
            "text": pa.array(words[generator.integers(0, rows, rows)], mask=null),
            "blue": pa.array(words[generator.integers(0, 30, rows)], mask=null),
            "grow": pa.array([words[i % 30 if i < rows // 3 else i] for i in range(rows)]),
            "never": pa.array([None] * rows, pa.int32()),
            "later": pa.array(np.arange(rows), mask=np.arange(rows) < rows // 2),
        }
    )


def written_by_pyarrow(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def written_by_fastpq(table: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    fastpq.write_table(table, sink, **options)
    return sink.getvalue()


def as_arrow(table: fastpq.Table, like: pa.Table) -> pa.Table:
    return pa.table(table).cast(like.schema)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("use_dictionary", [True, False])
@pytest.mark.parametrize("threads", [1, 4])
def test_reads_what_pyarrow_writes(version: str, use_dictionary: bool, threads: int) -> None:
    table = table_with_nulls()
    stored = written_by_pyarrow(
        table,
        data_page_version=version,
        use_dictionary=use_dictionary,
        row_group_size=3_001,
        data_page_size=4_000,
        dictionary_pagesize_limit=8_000,
        write_batch_size=100,
    )
    assert as_arrow(fastpq.read_table(stored, threads=threads), table).equals(table)


@pytest.mark.parametrize("batch_size", [1_000, 1_234, 3_001, 20_000])
@pytest.mark.parametrize("strings", ["views", "offsets", "dictionary"])
def test_batches_add_up(batch_size: int, strings: Any) -> None:
    table = table_with_nulls()
    stored = written_by_pyarrow(table, row_group_size=3_001, data_page_size=4_000, dictionary_pagesize_limit=8_000)
    with fastpq.ParquetFile(stored, strings=strings) as file:
        batches = list(file.iter_batches(batch_size))
    assert [batch.num_rows for batch in batches[:-1]] == [batch_size] * (len(batches) - 1)
    assert pa.concat_tables([as_arrow(batch, table) for batch in batches]).equals(table)


def test_one_row_at_a_time() -> None:
    table = table_with_nulls(300)
    stored = written_by_pyarrow(table, row_group_size=70, data_page_size=100, write_batch_size=10)
    with fastpq.ParquetFile(stored) as file:
        rows = [as_arrow(batch, table) for batch in file.iter_batches(1)]
    assert len(rows) == 300
    assert pa.concat_tables(rows).equals(table)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_pyarrow_reads_a_dictionary_that_fills_up(version: Any, compression: str) -> None:
    table = table_with_nulls()
    stored = written_by_fastpq(
        table,
        data_page_version=version,
        compression=compression,
        dictionary_page_size=6_000,
        data_page_rows=500,
        row_group_size=6_000,
    )
    file = pq.ParquetFile(io.BytesIO(stored), page_checksum_verification=True)
    assert file.read().equals(table)
    encodings = file.metadata.row_group(0).column(table.column_names.index("grow")).encodings
    assert {"PLAIN", "RLE_DICTIONARY"} <= set(encodings)
    assert file.metadata.num_row_groups == 2


def test_a_dictionary_that_does_not_pay_is_dropped() -> None:
    stored = written_by_fastpq({"unique": np.arange(50_000)})
    chunk = pq.ParquetFile(io.BytesIO(stored)).metadata.row_group(0).column(0)
    assert not chunk.has_dictionary_page
    assert set(chunk.encodings) == {"PLAIN"}


def test_pages_keep_their_bounds() -> None:
    values = {"wide": np.arange(10_000), "text": np.array(["x" * 996] * 1_000 + [""] * 9_000, dtype=object)}
    stored = written_by_fastpq(values, use_dictionary=False, data_page_size=8_000, data_page_rows=2_500)
    with fastpq.ParquetFile(stored) as file:
        group = file.metadata.row_group(0)
        pages = {
            group.column(i).path_in_schema[0]: sum(entry.count for entry in group.column(i).encoding_stats)
            for i in range(2)
        }
    assert pages["wide"] == 10
    assert 125 <= pages["text"] <= 140      # eight long values a page, then pages of 2,500 empty ones
    assert pq.read_table(io.BytesIO(stored)).column("text").to_pylist() == list(values["text"])


def test_threads_do_not_change_the_file() -> None:
    table = table_with_nulls()
    files = {written_by_fastpq(table, threads=threads, row_group_size=2_000) for threads in (1, 2, 5)}
    assert len(files) == 1


def test_statistics_are_pyarrow_s() -> None:
    table = table_with_nulls()
    ours = pq.ParquetFile(io.BytesIO(written_by_fastpq(table))).metadata.row_group(0)
    theirs = pq.ParquetFile(io.BytesIO(written_by_pyarrow(table))).metadata.row_group(0)
    for index in range(table.num_columns):
        mine, other = ours.column(index).statistics, theirs.column(index).statistics
        assert (mine.null_count, mine.has_min_max) == (other.null_count, other.has_min_max)
        if other.has_min_max:
            assert (mine.min, mine.max) == (other.min, other.max)


def test_a_flipped_bit_in_a_page_is_refused() -> None:
    stored = bytearray(written_by_fastpq({"a": np.arange(1_000)}, compression="none", use_dictionary=False))
    stored[2_000] ^= 1
    with pytest.raises(fastpq.FormatError, match=r"CRC-32.*column a.*page 0"):
        fastpq.read_table(bytes(stored))
    unchecked = fastpq.read_table(bytes(stored), properties=fastpq.ReaderProperties(verify_checksums=False))
    assert (unchecked["a"].to_numpy() != np.arange(1_000)).sum() == 1


def test_a_claim_of_rows_that_no_page_confirms_takes_no_memory() -> None:
    from fastpq import format as fmt

    stored = written_by_fastpq({"a": np.arange(10)}, compression="none")
    footer_size = int.from_bytes(stored[-8:-4], "little")
    footer, _ = fmt.decode(fmt.FileMetaData, stored, len(stored) - 8 - footer_size)
    footer.num_rows = footer.row_groups[0].num_rows = present(footer.row_groups[0].columns[0].meta_data).num_values = 2**40
    forged = fmt.encode(footer)
    stored = stored[: -8 - footer_size] + forged + len(forged).to_bytes(4, "little") + b"PAR1"
    with pytest.raises((fastpq.FormatError, fastpq.LimitError)):
        fastpq.read_table(stored)


def test_projection_and_row_groups() -> None:
    table = table_with_nulls()
    stored = written_by_pyarrow(table, row_group_size=2_500)
    read = fastpq.read_table(stored, ["text", "few"], row_groups=[3, -4])
    assert read.names == ["text", "few"]
    expected = pa.concat_tables([table.slice(7_500), table.slice(0, 2_500)]).select(["text", "few"])
    assert as_arrow(read, expected).equals(expected)
    with pytest.raises(fastpq.SchemaError, match="text"):
        fastpq.read_table(stored, ["txt"])
    with pytest.raises(fastpq.SchemaError, match="row group 4"):
        fastpq.read_table(stored, row_groups=[4])


def test_batches_of_a_closed_file() -> None:
    sink = io.BytesIO()
    fastpq.write_table({"a": np.arange(10)}, sink)
    for options in ({}, {"filters": [("a", ">", 1)]}, {"row_ranges": [(1, 9)]}):
        with fastpq.ParquetFile(sink.getvalue()) as file:
            batches = file.iter_batches(2, **options)
            assert next(batches).num_rows == 2
        with pytest.raises(ValueError, match="closed"):
            next(batches)


def test_a_file_object_is_read_from_its_first_byte() -> None:
    sink = io.BytesIO(b"")
    fastpq.write_table({"a": np.arange(10)}, sink)
    for position in (0, 4, sink.tell()):
        sink.seek(position)
        assert fastpq.read_table(sink)["a"].to_pylist() == list(range(10))
