"""Nested columns of any shape: what fastpq writes others read, and what others write fastpq reads."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fastpq
from fastpq import format as fmt
from fastpq.arrays.table import ListColumn, StructColumn
from fastpq.convert.caller_input import table_from
from fastpq.read import nested as nested_readings
from fastpq.schema.nested_types import StructType
from fastpq.schema.types import Type
from tests.interop.comparison import assert_same
from tests.interop.random_tables import ENCODINGS, encodings, options, tables
from tests.narrowing import present
from tests.requirements import peer

duckdb = peer("duckdb")

PATIENT = settings(
    max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def has_maps(type_: pa.DataType) -> bool:
    if pa.types.is_map(type_):
        return True
    return pa.types.is_nested(type_) and any(has_maps(type_.field(i).type) for i in range(type_.num_fields))


# what they refuse of fixed-length values, such as decimals
REFUSED_OF_FIXED = {"BYTE_STREAM_SPLIT", "DELTA_BYTE_ARRAY"}
# where Polars panics at a page of nulls alone in a nested column, in files of pyarrow too
PANICS_IN_NESTED = {"DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"}


@given(tables(), options(), st.data())
@PATIENT
def test_written_files_are_read_by_others(table: pa.Table, options: dict[str, Any], data: st.DataObject) -> None:
    chosen = data.draw(encodings(table))
    sink = io.BytesIO()
    fastpq.write_table(table, sink, column_encoding=chosen, **options)
    read = pq.read_table(sink)
    read.validate(full=True)
    assert_same(read, table)
    assert_same(pa.table(fastpq.read_table(sink.getvalue())), table)
    leaves = fastpq.read_schema(sink.getvalue()).columns
    if any(leaf.physical_type is Type.FIXED_LEN_BYTE_ARRAY and chosen[leaf.name] in REFUSED_OF_FIXED for leaf in leaves):
        return
    if any(not leaf.is_flat and chosen[leaf.name] in PANICS_IN_NESTED for leaf in leaves):
        return
    if not any(has_maps(field.type) for field in table.schema):     # Polars reads maps as lists of structs
        assert_same(pl.read_parquet(sink.getvalue()).to_arrow(), table)


@given(tables(), options())
@settings(PATIENT, max_examples=15)
def test_alp_in_nested_columns(table: pa.Table, options: dict[str, Any]) -> None:
    """Which no other library reads."""
    leaves = table_from(table).schema.columns
    floats = {leaf.name: "ALP" for leaf in leaves if leaf.physical_type in (Type.FLOAT, Type.DOUBLE)}
    sink = io.BytesIO()
    fastpq.write_table(table, sink, column_encoding=floats, **options)
    assert_same(pa.table(fastpq.read_table(sink.getvalue())), table)


@given(tables(), st.sampled_from(["1.0", "2.0"]), st.sampled_from([1, 4, 1000]))
@PATIENT
def test_files_of_pyarrow(table: pa.Table, version: str, row_group_size: int) -> None:
    sink = io.BytesIO()
    pq.write_table(
        table, sink, data_page_version=version, row_group_size=row_group_size, data_page_size=64, write_batch_size=3
    )
    read = fastpq.read_table(sink.getvalue())
    again = pa.table(read)
    again.validate(full=True)
    assert_same(again, table)
    with fastpq.ParquetFile(sink.getvalue()) as file:
        batches = [row for batch in file.iter_batches(3) for row in batch.to_pylist()]
    assert repr(batches) == repr(read.to_pylist())


@given(tables(), options(), st.data())
@settings(PATIENT, max_examples=30)
def test_files_of_duckdb_and_for_duckdb(
    tmp_path_factory: pytest.TempPathFactory, table: pa.Table, options: dict[str, Any], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("duckdb")
    chosen = data.draw(encodings(table, ENCODINGS | {Type.FIXED_LEN_BYTE_ARRAY: ("PLAIN", "RLE_DICTIONARY")}))
    fastpq.write_table(table, folder / "ours.parquet", column_encoding=chosen, **options)
    with duckdb.connect() as connection:
        rows = connection.sql(f"SELECT count(*), count(c0) FROM '{folder}/ours.parquet'").fetchall()
        assert rows == [(table.num_rows, table.num_rows - table["c0"].null_count)]
        connection.sql(f"COPY (SELECT * FROM '{folder}/ours.parquet') TO '{folder}/theirs.parquet' (FORMAT parquet)")
    assert_same(pa.table(fastpq.read_table(folder / "theirs.parquet")), table)


@given(tables(), st.sampled_from(["uncompressed", "snappy", "zstd", "lz4"]), st.sampled_from([1, 5, 1000]))
@settings(PATIENT, max_examples=30)
def test_files_of_polars(table: pa.Table, codec: Any, row_group_size: int) -> None:
    if any(has_maps(field.type) for field in table.schema):
        return
    frame, sink = pl.from_arrow(table), io.BytesIO()
    assert isinstance(frame, pl.DataFrame)
    frame.write_parquet(sink, compression=codec, row_group_size=row_group_size)
    assert_same(pa.table(fastpq.read_table(sink.getvalue())), table)


@pytest.mark.parametrize("threads", [1, 2, 5, 64])
def test_row_groups_in_runs(threads: int) -> None:
    """The row groups of a nested column are read some after another into one output; how many depends on the threads."""
    random = np.random.default_rng(threads)
    rows = 5000
    words = [None if i % 7 == 0 else "w" * (i % 40) for i in range(rows)]
    table = pa.table(
        {
            "list": [None if i % 11 == 0 else random.integers(0, 9, i % 5).tolist() for i in range(rows)],
            "texts": [words[i : i + i % 4] for i in range(rows)],
            "struct": [None if i % 5 == 0 else {"a": i, "b": words[i]} for i in range(rows)],
            "empty": pa.array([[]] * rows, pa.list_(pa.int64())),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=301, data_page_size=500)
    for columns in (None, ["list"], ["texts"], ["struct.b"]):
        read = pa.table(fastpq.read_table(sink.getvalue(), columns, threads=threads))
        read.validate(full=True)
        assert_same(read, pq.ParquetFile(sink).read(columns))


@pytest.mark.parametrize(
    ("sizes", "parts", "runs"),
    [
        ([5] * 6, 1, [6]),
        ([5] * 6, 2, [3, 3]),
        ([5] * 6, 4, [2, 1, 2, 1]),
        ([5] * 6, 9, [1] * 6),
        ([10, 1, 1, 1], 3, [1, 3]),
        ([0, 0, 0], 2, [3]),
        ([1 << 30] * 4, 1, [1, 1, 1, 1]),       # offsets of lists are 32 bits wide
        ([], 3, []),
    ],
)
def test_runs_of_row_groups(sizes: list[int], parts: int, runs: list[int]) -> None:
    chunks: Any = [SimpleNamespace(num_values=size) for size in sizes]
    assert [stop - start for start, stop in nested_readings._runs([chunks], parts)] == runs


@pytest.mark.linux        # /proc/PID/status
@pytest.mark.parametrize("row_groups", [1, 400])
def test_claims_of_a_footer_reserve_no_memory(row_groups: int) -> None:
    """Each row group claims eight million values, and is the same few bytes."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"l": [[1, 2, 3]]}), sink, compression=None, store_schema=False)
    data = sink.getvalue()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = fmt.decode(fmt.FileMetaData, data[start:-8])[0]
    present(footer.row_groups[0].columns[0].meta_data).num_values = 8 << 20
    footer.row_groups, footer.num_rows = footer.row_groups * row_groups, row_groups
    forged = fmt.encode(footer)
    before = address_space()
    with pytest.raises((fastpq.FormatError, fastpq.LimitError), match=r"values early|max_allocation"):
        fastpq.read_table(data[:start] + forged + len(forged).to_bytes(4, "little") + b"PAR1", threads=1)
    assert address_space() - before < 1 << 30


def address_space() -> int:
    """The most bytes of address space that this process has had."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["VmPeak"].split()[0]) << 10


def test_projections_of_leaves() -> None:
    table = pa.table({"a": [{"b": 1, "c": [{"d": "x", "e": 1.5}, None]}, None], "n": [1, 2]})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    data = sink.getvalue()
    assert fastpq.read_table(data, ["a.b"]).to_pylist() == [{"a": {"b": 1}}, {"a": None}]
    assert fastpq.read_table(data, ["n", "a.c.list.element.e"]).to_pylist() == [
        {"n": 1, "a": {"c": [{"e": 1.5}, None]}},
        {"n": 2, "a": None},
    ]
    part = fastpq.read_table(data, [("a", "c")])["a"].type
    assert isinstance(part, StructType)
    assert part.fields[0].name == "c"


def test_columns_and_their_parts() -> None:
    dicts = [{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}, None]
    table = fastpq.read_table(written({"l": [[1, 2], None, [], [3]], "s": dicts}))
    lists, structs = table["l"], table["s"]
    assert isinstance(lists, ListColumn)
    assert isinstance(structs, StructColumn)
    assert lists.offsets.tolist() == [0, 2, 2, 2, 3]
    assert lists.elements.to_pylist() == [1, 2, 3]
    assert lists.null_count == 1
    assert lists.to_numpy().tolist() == [[1, 2], None, [], [3]]
    assert lists.slice(2).to_pylist() == [[], [3]]
    assert structs["x"].to_pylist() == [1, None, None, None]
    assert structs.slice(1, 3).to_pylist() == [None, {"x": None, "y": "b"}]
    assert table.equals(fastpq.read_table(written({"l": [[1, 2], None, [], [3]], "s": structs})))
    assert not lists.equals(fastpq.read_table(written({"l": [[1, 2], [], [], [3]]}))["l"])


def written(columns: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    fastpq.write_table(columns, sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [[1], 2]}, "value 1 is a int among lists"),
        ({"a": [{"x": 1}, [2]]}, "value 1 is a list among dicts"),
        ({"a": [{1: 1}]}, "must be a str"),
        ({"a": [{}]}, "no fields"),
    ],
)
def test_nested_objects_that_are_refused(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(fastpq.SchemaError, match=message):
        written(columns)


def test_leaves_that_disagree_are_refused(tmp_path: Path) -> None:
    """The levels of one leaf taken from another file of the same sizes."""
    first, second = (written({"s": [[{"x": 1, "y": 2}] * n, [{"x": 3, "y": 4}] * m]}) for n, m in ((1, 3), (3, 1)))
    with fastpq.ParquetFile(first) as file:
        chunk = file.metadata.row_group(0).column(0)
        start, length = chunk.byte_range
    assert len(first) == len(second)
    mixed = first[:start] + second[start : start + length] + first[start + length :]
    with pytest.raises(fastpq.FormatError, match="disagree"):
        fastpq.read_table(mixed)
