"""Arrow tables in many chunks are written a row group at a time, without a copy of the table, and other readers read them."""

from __future__ import annotations

import io
import struct
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
from fastpq.errors import SchemaError

ROWS = 5000
RANDOM = np.random.default_rng(3)
NULLS = RANDOM.random(ROWS) < 0.1
WORDS = [f"word {number}" for number in range(40)]


def columns() -> dict[str, pa.Array]:
    numbers = RANDOM.integers(-(1 << 40), 1 << 40, ROWS)
    picks = RANDOM.integers(0, len(WORDS), ROWS)
    short = [WORDS[pick] for pick in picks]
    long = [f"{number} {'long ' * (number % 30)}" for number in numbers.tolist()]
    lists = [[int(n)] * (n % 4) if n % 5 else None for n in picks.tolist()]
    return {
        "int64": pa.array(numbers),
        "int8 with nulls": pa.array((numbers % 100).astype(np.int8), mask=NULLS),
        "double": pa.array(RANDOM.random(ROWS)),
        "boolean": pa.array(numbers % 3 == 0, mask=NULLS),
        "short": pa.array(short, mask=NULLS),
        "long": pa.array(long),
        "large": pa.array(long, pa.large_string(), mask=NULLS),
        "view": pa.array(long, pa.string_view()),
        "bytes": pa.array([text.encode() for text in short], pa.binary()),
        "decimal": pa.array([Decimal(int(number)).scaleb(-2) for number in numbers], pa.decimal128(15, 2)),
        "time": pa.array(numbers, pa.timestamp("us", "Europe/Zurich"), mask=NULLS),
        "seconds": pa.array(numbers % (1 << 30), pa.timestamp("s")),
        "dictionary": pa.DictionaryArray.from_arrays(picks.astype(np.int16), WORDS),
        "list": pa.array(lists, pa.list_(pa.int32())),
        "struct": pa.array([{"a": number, "b": text} for number, text in zip(numbers.tolist(), short, strict=True)]),
    }


def chunked(table: pa.Table, *bounds: int) -> pa.Table:
    """The same table with chunks that end at some rows."""
    edges = [0, *bounds, table.num_rows]
    return pa.concat_tables([table.slice(start, stop - start) for start, stop in pairwise(edges)])


@pytest.mark.parametrize("options", [
    {}, {"row_group_size": 700}, {"row_group_size": 700, "threads": 2, "data_page_size": 500},
    {"compression": "none", "use_dictionary": False, "row_group_size": 1300}, {"encoding": "auto", "row_group_bytes": 100_000},
], ids=str)
def test_other_readers_read_chunks(options: dict[str, Any], tmp_path: Path) -> None:
    whole = pa.table(columns())
    table = chunked(whole, 1, 1, 400, 699, 1400, 1401, 3000, 4999)
    target = tmp_path / "chunks.parquet"
    fastpq.write_table(table, target, **options)
    read = pq.read_table(target, page_checksum_verification=True)
    for name in whole.column_names:
        assert read[name].to_pylist() == whole[name].to_pylist(), name
    assert pl.read_parquet(target)["long"].to_list() == whole["long"].to_pylist()
    with duckdb.connect() as connection:
        found = connection.execute(f"SELECT sum(\"int64\"), count(short), sum(length(\"long\")) FROM '{target}'").fetchone()
    nulls = int(NULLS.sum())
    assert found == (int(np.sum(whole["int64"].to_numpy())), ROWS - nulls, sum(map(len, whole["long"].to_pylist())))
    size = options.get("row_group_size")
    if size:
        groups = [pq.ParquetFile(target).metadata.row_group(number).num_rows for number in range(-(-ROWS // size))]
        assert groups == [min(size, ROWS - start) for start in range(0, ROWS, size)]


def test_pages_across_chunks_of_many_sizes(tmp_path: Path) -> None:
    whole = pa.table({name: column for name, column in columns().items() if name not in ("list", "struct", "dictionary")})
    edges = np.sort(RANDOM.integers(0, ROWS, 300)).tolist()
    cases: list[dict[str, Any]] = [{"data_page_rows": 64}, {"data_page_rows": 37, "use_dictionary": False, "compression": "none"}]
    for table in (chunked(whole, *edges), chunked(whole.slice(3, 4000), 5, 6, 13, 3999)):
        expected = table.combine_chunks()
        for options in cases:
            target = tmp_path / "pages.parquet"
            fastpq.write_table(table, target, **options)
            alike = io.BytesIO()
            fastpq.write_table(expected, alike, **options)
            assert target.read_bytes() == alike.getvalue()
            read = pq.read_table(target, page_checksum_verification=True)
            for name in table.column_names:
                assert read[name].to_pylist() == expected[name].to_pylist(), name
            assert pl.read_parquet(target)["large"].to_list() == expected["large"].to_pylist()


def test_text_of_a_later_chunk_that_is_not_utf8() -> None:
    bad = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"a\xff")])
    table = pa.table({"c": pa.chunked_array([pa.array(["x", "y", "z"]), bad])})
    for use_dictionary in (False, True):
        with pytest.raises(SchemaError, match="value 4 is not UTF-8"):
            fastpq.write_table(table, io.BytesIO(), use_dictionary=use_dictionary)


def test_frames_of_polars_in_chunks(tmp_path: Path) -> None:
    frame = pl.from_arrow(pa.table({name: column for name, column in columns().items() if name != "dictionary"}))
    assert isinstance(frame, pl.DataFrame)
    frames = pl.concat([frame[:900], frame[900:901], frame[901:]], rechunk=False)
    fastpq.write_table(frames, tmp_path / "frames.parquet", row_group_size=800)
    assert pl.read_parquet(tmp_path / "frames.parquet").equals(frame)


def test_dictionaries_that_differ_between_chunks() -> None:
    parts = [pa.array(words).dictionary_encode() for words in (["b", "a", None], ["c", "a"], ["a"] * 5)]
    target = io.BytesIO()
    fastpq.write_table(pa.table({"c": pa.chunked_array(parts)}), target, row_group_size=4)
    read = pq.read_table(io.BytesIO(target.getvalue()))["c"]
    assert pa.types.is_dictionary(read.type)
    assert read.to_pylist() == ["b", "a", None, "c", "a", *["a"] * 5]


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(("prefixes", "index_type"), [("ab", pa.int32()), ("aa", pa.int8())])
def test_dictionaries_that_outgrow_their_indexes(prefixes: str, index_type: pa.DataType, nested: bool) -> None:
    chunks: list[pa.Array] = [
        pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), [f"{prefix}{number}" for number in range(100)])
        for prefix in prefixes
    ]
    if nested:
        chunks = [pa.ListArray.from_arrays([0, 50, 100], chunk) for chunk in chunks]
    table = pa.table({"c": pa.chunked_array(chunks)})
    target = io.BytesIO()
    fastpq.write_table(table, target)
    read = pq.read_table(io.BytesIO(target.getvalue()))["c"]
    assert (read.type.value_type if nested else read.type).index_type == index_type
    assert read.to_pylist() == table["c"].to_pylist()


@pytest.mark.parametrize("nested", [False, True])
def test_geometries_of_which_one_is_not_wkb(nested: bool) -> None:
    point = struct.pack("<BIdd", 1, 1, 2.0, 3.0)
    for first, second in ([[b"no WKB"], [point]], [[point], [b"no WKB"]], [[None], [b"no WKB", point]], [[b"no WKB"], [None]]):
        field = pa.field("g", pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb"})
        chunks: list[pa.Array] = [pa.array(part, pa.binary()) for part in (first, second)]
        if nested:
            chunks = [pa.StructArray.from_arrays([chunk], fields=[field]) for chunk in chunks]
            field = pa.field("s", chunks[0].type)
        table = pa.Table.from_arrays([pa.chunked_array(chunks)], schema=pa.schema([field]))
        target = io.BytesIO()
        fastpq.write_table(table, target)
        assert fastpq.read_metadata(target.getvalue()).schema.columns[0].type.logical is None
        assert pq.read_table(io.BytesIO(target.getvalue())).column(0).to_pylist() == table.column(0).to_pylist()


def test_a_null_in_a_required_column_of_a_later_chunk() -> None:
    field = pa.field("c", pa.int64(), nullable=False)
    table = pa.Table.from_arrays([pa.chunked_array([[1, 2], [3, None]], pa.int64())], schema=pa.schema([field]))
    with pytest.raises(SchemaError, match="nulls"):
        fastpq.write_table(table, io.BytesIO())


def test_progress_counts_the_rows_of_all_chunks() -> None:
    calls: list[tuple[int, int]] = []
    table = chunked(pa.table({"x": np.arange(100)}), 10, 30, 60)
    fastpq.write_table(table, io.BytesIO(), row_group_size=40, progress=lambda done, total: calls.append((done, total)))
    assert {total for _, total in calls} == {100}
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert calls[-1] == (100, 100)


def test_a_table_whose_row_count_is_a_method() -> None:
    class OtherTable:
        def __init__(self, table: pa.Table) -> None:
            self.table = table

        def num_rows(self) -> int:
            return int(self.table.num_rows)

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return self.table.__arrow_c_stream__(requested_schema)

    calls: list[tuple[int, int]] = []
    table = chunked(pa.table({"x": np.arange(100)}), 10, 60)
    target = io.BytesIO()
    fastpq.write_table(OtherTable(table), target, row_group_size=40, progress=lambda done, total: calls.append((done, total)))
    assert pq.read_table(io.BytesIO(target.getvalue())).equals(table)
    assert calls[-1] == (100, 100)


def test_streams_of_batches(tmp_path: Path) -> None:
    whole = pa.table(columns())
    table = chunked(whole, 1, 400, 699, 1400, 3000)
    cases: dict[str, dict[str, Any]] = {"whole": {}, "small": {"row_group_size": 700}}
    for name, options in cases.items():
        target = tmp_path / f"{name}.parquet"
        fastpq.write_table(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()), target, **options)
        with fastpq.ParquetWriter(tmp_path / "writer.parquet", **options) as writer:
            writer.write_batch(pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=130)))
            writer.write_batch(table)
        for path, copies in ((target, 1), (tmp_path / "writer.parquet", 2)):
            read = pq.read_table(path)
            for column in whole.column_names:
                assert read[column].to_pylist() == copies * whole[column].to_pylist(), column


def test_arrays_of_an_iterator_may_be_reused() -> None:
    array, target = np.zeros(10, np.int64), io.BytesIO()

    def batches() -> Iterator[dict[str, np.ndarray]]:
        for number in range(5):
            array[:] = number
            yield {"x": array}

    fastpq.write_table(batches(), target)
    assert pq.read_table(io.BytesIO(target.getvalue()))["x"].to_pylist() == [number for number in range(5) for _ in range(10)]


# Prints the size of a table with chunks, and the growth of resident memory, at its highest, while the table is written, and while
# its batches are written as a stream.
PEAK = """
import io
from pathlib import Path
import numpy as np
import pyarrow as pa
import fastpq

class Nowhere(io.RawIOBase):
    def writable(self):
        return True
    def write(self, data):
        return len(data)

def resident(name):
    text = Path("/proc/self/status").read_text()
    return 1024 * int(text.partition(name + ":")[2].split()[0])

values = np.random.default_rng(1).integers(0, 1 << 62, 1 << 20)
def table(parts):
    return pa.concat_tables([pa.table({f"column {i}": values[part::parts] for i in range(16)}) for part in range(parts)])
fastpq.write_table(table(64).slice(0, 70_000), Nowhere(), threads=1)
chunks = table(64)

def growth(data):
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    fastpq.write_table(data, Nowhere(), threads=1, row_group_size=1 << 18)
    return resident("VmHWM") - before

print(chunks.nbytes, growth(chunks), growth(pa.RecordBatchReader.from_batches(chunks.schema, chunks.to_batches())))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/clear_refs")
def test_tables_in_chunks_and_streams_are_not_copied() -> None:
    done = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    size, growth, growth_of_stream = map(int, done.stdout.split())
    assert size == 128 << 20
    assert growth < 32 << 20
    assert growth_of_stream < (32 << 20) + (32 << 20)       # the pages of a row group, and 32 MiB
