"""Rows that come in batches are encoded before their row group is complete. Other readers get the same rows as before."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.datasets import open_writers
from fastpq.encryption import AesKey, FileDecryptionProperties, FileEncryptionProperties
from fastpq.write import row_group_in_parts
from fastpq.write.spilled_pages import SpilledPages, SpilledRange

ROWS, BATCH, PAGE_ROWS = 6_000, 170, 500
KEY = AesKey(bytes(range(16)))


def columns() -> dict[str, Any]:
    """Arrow arrays of many types."""
    draw = np.random.default_rng(1)
    numbers = draw.integers(0, 1 << 50, ROWS)
    texts = [f"text {number}" for number in draw.integers(0, 40, ROWS)]
    some = draw.random(ROWS) < 0.7
    floats = draw.random(ROWS)
    floats[::97] = np.nan
    words = [[f"w{j % 7}" for j in range(number % 4)] if number % 9 else None for number in range(ROWS)]
    return {
        "few": pa.array(draw.integers(0, 30, ROWS)),
        "many": pa.array(numbers),
        "nullable": pa.array(numbers % 100, mask=~some),
        "text": pa.array(texts),
        "nullable text": pa.array([text if is_there else None for text, is_there in zip(texts, some, strict=True)]),
        "long text": pa.array([f"{number} {'x' * (number % 50)}" for number in range(ROWS)]),
        "null": pa.nulls(ROWS, pa.int32()),
        "float": pa.array(floats),
        "half": pa.array(floats.astype(np.float16)),
        "boolean": pa.array(some),
        "decimal": pa.array([Decimal(int(number)) / 100 for number in numbers % 100_000], pa.decimal128(12, 2)),
        "moment": pa.array(numbers % (1 << 40), pa.timestamp("us", "UTC")),
        "bytes": pa.array([text.encode() for text in texts], pa.binary()),
        "fixed": pa.array([int(number).to_bytes(8, "big") for number in numbers], pa.binary(8)),
        "list": pa.array(words, pa.list_(pa.string())),
        "struct": pa.array([{"a": int(n) % 50, "b": {"c": text}} for n, text in zip(numbers, texts, strict=True)]),
        "map": pa.array([[(f"k{n % 5}", n)] if n % 3 else [] for n in range(ROWS)], pa.map_(pa.string(), pa.int64())),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(draw.random(4 * ROWS).astype(np.float32)), 4),
    }


TABLE = pa.table(columns())


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a page of each column be enough for a part."""
    monkeypatch.setattr(row_group_in_parts, "PART_BYTES", 1)


def batches(table: pa.Table = TABLE, rows: int = BATCH) -> Iterator[pa.Table]:
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows).combine_chunks()


def written(where: Path, table: pa.Table = TABLE, rows: int = BATCH, **options: Any) -> fastpq.ParquetFile:
    """Write a table in batches, and open the file."""
    defaults = {"row_group_size": 2_500, "data_page_rows": PAGE_ROWS, "data_page_size": 1 << 14}
    with fastpq.ParquetWriter(where, **{**defaults, **options}) as writer:
        for batch in batches(table, rows):
            writer.write_batch(batch)
    assert fastpq.verify_file(where).is_sound
    return fastpq.ParquetFile(where)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", [None, "snappy", "zstd"])
def test_every_reader_gets_the_rows(tmp_path: Path, codec: str | None, version: str) -> None:
    path = tmp_path / "x.parquet"
    with written(path, compression=codec, data_page_version=version) as file:
        assert [group.num_rows for group in file.metadata.row_groups] == [2_500, 2_500, 1_000]
        tables = [pa.table(file.read()), pq.read_table(path)]
    for table in tables:
        assert table.column_names == TABLE.column_names
        for name in TABLE.column_names:
            assert same(table[name], TABLE[name]), name
    frame = pl.read_parquet(path)
    assert frame["text"].to_list() == TABLE["text"].to_pylist()
    assert frame["list"].to_list() == TABLE["list"].to_pylist()
    names = ["few", "nullable", "nullable text", "long text", "decimal", "struct", "list"]
    rows = duckdb_table("SELECT " + ", ".join(f'"{name}"' for name in names) + f" FROM read_parquet('{path}')")
    for name in names:
        assert rows[name].to_pylist() == TABLE[name].to_pylist(), name


def chunk_of(file: fastpq.ParquetFile, group: int, column: int) -> Any:
    return file.metadata.row_group(group).column(column)


def duckdb_table(query: str) -> pa.Table:
    relation = duckdb.sql(query)
    assert relation is not None
    return relation.to_arrow_table()


def same(one: pa.ChunkedArray, other: pa.ChunkedArray) -> bool:
    if pa.types.is_floating(one.type):
        return np.array_equal(one.to_numpy(), other.to_numpy(), equal_nan=True)
    return bool(one.cast(other.type).to_pylist() == other.to_pylist())


def test_metadata_are_those_of_a_whole_row_group(tmp_path: Path) -> None:
    whole = tmp_path / "whole.parquet"
    fastpq.write_table(TABLE, whole, row_group_size=2_500, data_page_rows=PAGE_ROWS, data_page_size=1 << 14)
    with written(tmp_path / "x.parquet") as file, fastpq.ParquetFile(whole) as expected:
        for number, column in enumerate(expected.schema.columns):
            for group in range(3):
                ours, theirs = (chunk_of(each, group, number) for each in (file, expected))
                assert ours.statistics == theirs.statistics, column.name
                assert (ours.num_values, ours.encodings) == (theirs.num_values, theirs.encodings), column.name
                assert ours.has_dictionary_page == theirs.has_dictionary_page
        indexes = [each.offset_index(0, "few") for each in (file, expected)]
        assert indexes[0] is not None
        assert indexes[1] is not None
        assert indexes[0].locations[2].tolist() == indexes[1].locations[2].tolist() == [0, 500, 1000, 1500, 2000]


def test_a_dictionary_that_gets_full_in_a_later_part(tmp_path: Path) -> None:
    # few values at first, then many: the dictionary is full in the third part
    numbers = np.concatenate([np.arange(1_000) % 50, np.arange(1_500)]).astype(np.int64)
    table = pa.table({"n": numbers, "text": [f"text {number}" for number in numbers]})
    path, filters = tmp_path / "x.parquet", {name: {"ndv": 2_000} for name in ("n", "text")}
    with written(path, table, dictionary_page_size=4_000, bloom_filter=filters, row_group_size=2_500) as file:
        for column in range(2):
            assert {"PLAIN", "RLE_DICTIONARY"} <= {encoding.name for encoding in chunk_of(file, 0, column).encodings}
            found = file.bloom_filter(0, column)
            assert found is not None
            values = [f"text {number}".encode() if column else int(number).to_bytes(8, "little") for number in range(3_000)]
            assert all(map(found.might_contain, values[:1_500]))
            assert sum(map(found.might_contain, values[1_500:])) < 150
    assert pq.read_table(path).equals(table)
    assert duckdb_table(f"SELECT n, text FROM '{path}'").equals(table)


def test_bloom_filters_without_a_number_of_values_are_those_of_a_whole_row_group(tmp_path: Path) -> None:
    table, filters = TABLE.select(["few", "many", "text", "list"]), dict.fromkeys(["few", "many", "text", "list"], True)
    path = tmp_path / "whole.parquet"
    fastpq.write_table(table, path, row_group_size=2_500, bloom_filter=filters)
    with written(tmp_path / "x.parquet", table, bloom_filter=filters) as file, fastpq.ParquetFile(path) as whole:
        for column in range(4):
            ours, theirs = (each.bloom_filter(0, column) for each in (file, whole))
            assert ours is not None
            assert theirs is not None
            assert np.array_equal(ours.bitset, theirs.bitset)


def test_lists_of_any_length_and_row_groups_of_any_size(tmp_path: Path) -> None:
    table = pa.table({"list": pa.array([[1, 2, 3]] * 2_000)})
    with written(tmp_path / "x.parquet", table, row_group_size=sys.maxsize) as file:
        assert file.read()["list"].to_pylist() == [[1, 2, 3]] * 2_000


@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
def test_encrypted_files(tmp_path: Path, algorithm: Any) -> None:
    path = tmp_path / "x.parquet"
    properties = FileEncryptionProperties(footer_key=KEY, algorithm=algorithm)
    with fastpq.ParquetWriter(path, encryption_properties=properties, row_group_size=2_500, data_page_rows=PAGE_ROWS) as writer:
        for batch in batches():
            writer.write_batch(batch)
    keys = FileDecryptionProperties(footer_key=KEY, allowed_algorithms=(algorithm,))
    table = pa.table(fastpq.read_table(path, decryption_properties=keys))
    for name in TABLE.column_names:
        assert same(table[name], TABLE[name]), name


@pytest.mark.parametrize("keys", [None, FileEncryptionProperties(footer_key=KEY)], ids=["plaintext", "encrypted"])
def test_pages_that_are_too_many_for_memory_wait_in_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: FileEncryptionProperties | None
) -> None:
    def write(name: str) -> bytes:
        path = tmp_path / name
        with fastpq.ParquetWriter(path, encryption_properties=keys, row_group_size=2_500, data_page_rows=PAGE_ROWS) as writer:
            for batch in batches():
                writer.write_batch(batch)
            assert {each.name for each in tmp_path.iterdir()} <= {"memory.parquet"}
        return path.read_bytes()

    in_memory = write("memory.parquet")
    monkeypatch.setattr(row_group_in_parts, "MOST_IN_MEMORY", 20_000)
    sizes: list[int] = []
    add = SpilledPages.add

    def counted(self: SpilledPages, pieces: list[Any]) -> SpilledRange:
        sizes.append(len(pieces))
        return add(self, pieces)

    monkeypatch.setattr(SpilledPages, "add", counted)
    spilled = write("spilled.parquet")
    assert len(sizes) > 20
    if keys is None:
        assert spilled == in_memory
    else:       # nonces differ, and so do checksums, whose length in a page header varies
        assert abs(len(spilled) - len(in_memory)) < len(in_memory) / 1000
    own_keys = None if keys is None else FileDecryptionProperties(footer_key=KEY)
    table = pa.table(fastpq.read_table(tmp_path / "spilled.parquet", decryption_properties=own_keys))
    for name in TABLE.column_names:
        assert same(table[name], TABLE[name]), name


def test_a_full_disk_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class FullDisk(io.BytesIO):
        def write(self, data: Any) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(row_group_in_parts, "MOST_IN_MEMORY", 20_000)
    monkeypatch.setattr("fastpq.write.spilled_pages.tempfile.TemporaryFile", lambda dir: FullDisk())
    with pytest.raises(OSError, match="No space left on device") as caught, \
            fastpq.ParquetWriter(tmp_path / "x.parquet", row_group_size=2_500, data_page_rows=PAGE_ROWS) as writer:
        for batch in batches():
            writer.write_batch(batch)
    assert caught.value.filename == str(tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_caller_may_change_the_arrays(tmp_path: Path) -> None:
    path, array = tmp_path / "x.parquet", np.empty(800)
    with fastpq.ParquetWriter(path, compression=None, use_dictionary=False, data_page_rows=500, row_group_size=4_000) as writer:
        for number in range(10):
            array[:] = number
            writer.write_batch({"x": array})
        array[:] = -1
    assert pq.read_table(path)["x"].to_pylist() == [float(number) for number in range(10) for _ in range(800)]


def test_streams_and_iterators(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    stream = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=BATCH))
    fastpq.write_table(stream, path, row_group_size=2_500, data_page_rows=PAGE_ROWS)
    with fastpq.ParquetFile(path) as file:
        assert [group.num_rows for group in file.metadata.row_groups] == [2_500, 2_500, 1_000]
    assert pq.read_table(path).select(["many", "text"]).equals(TABLE.select(["many", "text"]))
    fastpq.write_table(({"text": batch["text"]} for batch in batches()), path, data_page_rows=PAGE_ROWS)
    assert pq.read_table(path)["text"].to_pylist() == TABLE["text"].to_pylist()


def test_what_needs_all_rows_still_waits(tmp_path: Path) -> None:
    table = TABLE.select(["few", "many"])
    with written(tmp_path / "sorted.parquet", table, sort_by=["many"]) as file:
        numbers = file.read(row_groups=[0])["many"].to_numpy()
        assert (np.diff(numbers) >= 0).all()
    categories = pa.table({"c": pa.array(["b", "a", "c", "unused"]).take(pa.array([0, 1, 0, 2] * 1_500)).dictionary_encode()})
    assert written(tmp_path / "categories.parquet", categories).read()["c"].to_pylist() == categories["c"].to_pylist()
    with written(tmp_path / "chosen.parquet", table, encoding="auto") as file:
        assert file.read()["many"].to_pylist() == table["many"].to_pylist()


def test_errors_name_the_column_and_the_row_group(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    invalid = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"a\xff")])
    good = pa.table({"n": np.arange(1_000), "text": ["x"] * 1_000})
    bad = pa.table({"n": np.arange(1_000), "text": pa.chunked_array([pa.array(["x"] * 999), invalid]).combine_chunks()})
    with pytest.raises(fastpq.SchemaError, match=r"UTF-8.*column text") as caught, \
            fastpq.ParquetWriter(path, data_page_rows=500, row_group_size=10_000) as writer:
        for table in (good, good, bad):
            writer.write_batch(table)
    assert "row group 0" in str(caught.value)
    assert not path.exists()
    required = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    with pytest.raises(fastpq.SchemaError, match="null"), fastpq.ParquetWriter(path, required, data_page_rows=500) as writer:
        writer.write_batch(good.select(["n"]))
        writer.write_batch(pa.table({"n": pa.array([1, None], pa.int64())}))


def test_files_of_a_limited_size_keep_the_order_of_the_rows(tmp_path: Path) -> None:
    counts = [0, 50, 350, 650]
    table = pa.table({"i": range(650), "text": [f"v{number}" for number in range(650)]})
    batches_of_table = (table.slice(start, stop - start) for start, stop in pairwise(counts))
    fastpq.write_dataset(batches_of_table, tmp_path, max_bytes_per_file=5_000, row_group_size=700)
    assert [number for path in sorted(tmp_path.iterdir()) for number in pq.read_table(path)["i"].to_pylist()] == list(range(650))


def test_files_of_partitions_keep_their_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_writers, "MOST_WAITING", 500)      # writes row groups before they are full
    draw = np.random.default_rng(1)
    tables = [pa.table({"p": draw.integers(0, 3, 300), "i": draw.integers(0, 1 << 60, 300)}) for _ in range(9)]
    limits: dict[str, Any] = {"max_bytes_per_file": 1_000, "data_page_rows": 10, "row_group_size": 700, "compression": None}
    fastpq.write_dataset(iter(tables), tmp_path, partition_by=["p"], **limits)
    files = [pq.read_metadata(path) for path in tmp_path.glob("*/*.parquet")]
    assert sum(file.num_rows for file in files) == 2_700
    for file in files:
        groups = [file.row_group(number) for number in range(file.num_row_groups)]
        assert len(groups) == 1 or sum(group.column(0).total_compressed_size for group in groups) <= 1_000


def test_files_of_a_dataset_have_full_row_groups(tmp_path: Path) -> None:
    table = TABLE.select(["few", "many", "text"])
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=BATCH))
    fastpq.write_dataset(stream, tmp_path, max_bytes_per_file=20_000, row_group_size=1_000, data_page_rows=PAGE_ROWS)
    files = sorted(tmp_path.glob("*.parquet"))
    assert len(files) > 1
    assert sorted(pa.concat_tables(map(pq.read_table, files))["many"].to_pylist()) == sorted(table["many"].to_pylist())


# Prints the growth of resident memory, at its highest, while many batches are written, and the stored size of a row group.
PEAK = """
import json
from pathlib import Path
import numpy as np
import fastpq

def resident(name):
    text = Path("/proc/self/status").read_text()
    return 1024 * int(text.partition(name + ":")[2].split()[0])

draw = np.random.default_rng(1)
batch = {f"c{i}": draw.integers(0, 50, 20_000) if i % 2 else draw.random(20_000).round(3) for i in range(40)}
path = Path(TARGET)
fastpq.write_table(batch, path)
before = resident("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
with fastpq.ParquetWriter(path, threads=1) as writer:
    for _ in range(60):
        writer.write_batch(batch)
with fastpq.ParquetFile(path) as file:
    stored = sum(file.metadata.row_group(0).column(number).total_compressed_size for number in range(40))
print(json.dumps([resident("VmHWM") - before, stored, 60 * 40 * 160_000]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/clear_refs")
def test_a_row_group_takes_the_memory_of_its_pages(tmp_path: Path) -> None:
    program = f"TARGET = {str(tmp_path / 'x.parquet')!r}\n{PEAK}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    growth, stored, raw = json.loads(done.stdout)
    assert stored < raw / 4
    assert growth < 1.5 * stored + (32 << 20)
