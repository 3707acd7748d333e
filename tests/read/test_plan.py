"""Plans of reads: offsets of rows, byte ranges, and metadata that contradict each other or the file."""

from __future__ import annotations

import gc
import io
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from benchmarks.footers import columns, row_groups
from fastpq import format as fmt
from fastpq.index.ranges import RowRanges
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.read.plan import plan_pages, plan_read

ROWS = 1000
GROUP = 400


@pytest.fixture(scope="module")
def data() -> bytes:
    sink = io.BytesIO()
    table = pa.table(
        {
            "a": np.arange(ROWS),
            "l": pa.array([[i, i + 1] if i % 3 else [] for i in range(ROWS)]),
            "s": pa.array([{"x": i, "y": str(i)} for i in range(ROWS)]),
        }
    )
    pq.write_table(
        table, sink, row_group_size=GROUP, write_page_index=True, data_page_size=64, write_batch_size=50, use_dictionary=["s.x"]
    )
    return sink.getvalue()


def footer_of(data: bytes) -> tuple[int, fmt.FileMetaData]:
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    return start, fmt.decode(fmt.FileMetaData, data[start:-8])[0]


def forge(data: bytes, change: Callable[[fmt.FileMetaData], None]) -> bytes:
    """The file with its footer changed."""
    start, metadata = footer_of(data)
    change(metadata)
    footer = fmt.encode(metadata)
    return data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def metadata_of(data: bytes) -> FileMetaData:
    return fastpq.read_metadata(data)


def test_rows_follow_each_other_in_the_order_asked_for(data: bytes) -> None:
    metadata = metadata_of(data)
    plan = plan_read(metadata, metadata.schema.columns, [-1, 0], len(data))
    assert plan.num_rows == 200 + GROUP
    assert [column.name for column in plan.columns] == ["a", "l", "s"]
    assert [[chunk.row_offset for chunk in chunks] for _, chunks in plan.columns[2].leaves] == [[0, 200], [0, 200]]
    assert [chunk.row_group for chunk in plan.columns[0].chunks] == [2, 0]
    assert plan.columns[0].flat is not None
    assert plan.columns[1].flat is None
    theirs = pq.read_metadata(io.BytesIO(data))
    for column in plan.columns:
        for chunk in column.chunks:
            their = theirs.row_group(chunk.row_group).column(chunk.column.index)
            start = their.dictionary_page_offset or their.data_page_offset
            assert chunk.start == start
            assert chunk.length == their.total_compressed_size
            assert chunk.num_values == their.num_values


def test_leaves_of_one_column_are_read_together(data: bytes) -> None:
    metadata = metadata_of(data)
    a, _, x, y = metadata.schema.columns
    plan = plan_read(metadata, [y, a, x], None, len(data))
    assert [column.name for column in plan.columns] == ["s", "a"]
    assert [leaf.path for leaf, _ in plan.columns[0].leaves] == [("s", "x"), ("s", "y")]


@pytest.mark.parametrize(("start", "stop"), [(0, 1), (120, 130), (399, 400), (0, 400)])
def test_pages_that_hold_the_rows(data: bytes, start: int, stop: int) -> None:
    with fastpq.ParquetFile(data) as file:
        [chunk] = plan_read(file.metadata, file.metadata.schema.columns[:1], [1], len(data)).columns[0].chunks
        index = file.offset_index(1, 0)
    pages = plan_pages(chunk, index, RowRanges(np.array([[start, stop]]), GROUP), 0)
    if (start, stop) == (0, GROUP):
        assert pages.pages is None
        assert pages.kept is None
        assert pages.num_rows == GROUP
        return
    assert index is not None
    assert pages.pages is not None
    assert pages.num_rows == stop - start
    assert stop - start <= pages.pages.directory[:, 2].sum() < GROUP
    first, last = int(pages.pages.directory[0, 0]), int(pages.pages.directory[-1, 0])
    assert index.first_rows[first] <= start
    assert last + 1 == index.num_pages or index.first_rows[last + 1] >= stop
    assert pages.pages.num_bytes == pages.pages.directory[:, 1].sum() + (index.offsets[0] - chunk.start)


def chunk_of(metadata: fmt.FileMetaData) -> fmt.ColumnMetaData:
    chunk = metadata.row_groups[1].columns[0].meta_data
    assert chunk is not None
    return chunk


def fewer_values(metadata: fmt.FileMetaData) -> None:
    chunk_of(metadata).num_values = GROUP - 1


def negative_rows(metadata: fmt.FileMetaData) -> None:
    metadata.row_groups[1].num_rows = -1


def another_type(metadata: fmt.FileMetaData) -> None:
    chunk_of(metadata).type = fmt.Type.DOUBLE


def behind_the_end(metadata: fmt.FileMetaData) -> None:
    chunk_of(metadata).total_compressed_size = 1 << 40


def before_the_start(metadata: fmt.FileMetaData) -> None:
    chunk_of(metadata).data_page_offset = -4


def size_that_wraps(metadata: fmt.FileMetaData) -> None:
    chunk_of(metadata).data_page_offset = (1 << 63) - 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (fewer_values, "399 values in a row group of 400 rows"),
        (negative_rows, "the row group has -1 rows"),
        (another_type, "in a column of INT64"),
        (behind_the_end, "outside the file"),
        (before_the_start, "-4|outside the file"),
        (size_that_wraps, "outside the file"),
    ],
)
def test_consistency_checks(data: bytes, change: Callable[[fmt.FileMetaData], None], words: str) -> None:
    forged = forge(data, change)
    metadata = metadata_of(forged)
    with pytest.raises(fastpq.FormatError, match=words) as raised:
        plan_read(metadata, metadata.schema.columns, None, len(forged))
    assert raised.value.context["row_group"] == 1
    assert plan_read(metadata, metadata.schema.columns, [0], len(forged)).num_rows == GROUP


@pytest.mark.parametrize("index", [3, -4])
def test_no_such_row_group(data: bytes, index: int) -> None:
    metadata = metadata_of(data)
    with pytest.raises(fastpq.SchemaError, match=f"there is no row group {index}: the file has 3"):
        plan_read(metadata, metadata.schema.columns, [index], len(data))


def test_more_rows_than_a_file_can_have() -> None:
    groups = [fmt.RowGroup(columns=[], total_byte_size=0, num_rows=1 << 62)] * 4
    schema = [fmt.SchemaElement(name="schema", num_children=1), fmt.SchemaElement(name="a", type=1, repetition_type=0)]
    stored = fmt.encode(fmt.FileMetaData(version=2, schema=schema, num_rows=0, row_groups=groups))
    with fastpq.ParquetFile(b"PAR1" + stored + len(stored).to_bytes(4, "little") + b"PAR1") as file:
        for use in (file.count, file.read, lambda: file.head(1)):
            with pytest.raises(fastpq.FormatError, match=f"{1 << 64} rows"):
                use()


@pytest.mark.parametrize("data", [row_groups(3000), columns(3000)], ids=["row groups", "columns"])
def test_plans_are_no_work_for_the_garbage_collector(data: bytes) -> None:
    """Each collection visits all tracked objects: with some a chunk, a plan takes longer than in proportion to its chunks."""
    with fastpq.ParquetFile(data) as file:
        schema = file.schema.columns
        plan_read(file.metadata, schema, [0], len(data))
        gc.collect()
        gc.disable()
        try:
            before = len(gc.get_objects())
            plan = plan_read(file.metadata, schema, None, len(data))
            gc.collect()        # takes tuples of numbers out
            gc.collect()        # and tuples of these
            made = len(gc.get_objects()) - before
        finally:
            gc.enable()
        assert len(plan.chunks) == 3000
        assert made < 100
        assert file.read().num_rows == plan.num_rows
