"""Run-end encoded arrays and unions of Arrow: the values as pyarrow says them, in files that pyarrow, DuckDB and Polars read."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.arrow import import_column
from fastpq.errors import SchemaError
from tests.arrow.arrow_producer import Field, Producer, Values

RUN_VALUES: dict[str, pa.Array] = {
    "numbers": pa.array([1, None, 3, 4], pa.int64()),
    "small": pa.array([1, None, 3, 4], pa.uint8()),
    "booleans": pa.array([True, None, False, True]),
    "text": pa.array(["one", None, "a text of more than twelve bytes", ""]),
    "views": pa.array(["one", None, "a text of more than twelve bytes", ""], pa.string_view()),
    "codes": pa.array(["x", None, "y", "x"]).dictionary_encode(),
    "moments": pa.array([1, None, 3, 4], pa.timestamp("us", "Europe/Berlin")),
    "durations": pa.array([1, None, 3, 4], pa.duration("ms")),
    "decimals": pa.array([1, None, 3, 4], pa.decimal128(9, 2)),
    "lists": pa.array([[1, 2], None, [], [3]]),
    "structs": pa.array([{"a": 1}, None, {"a": None}, {"a": 4}]),
    "nothing": pa.nulls(4),
}


def read_back(values: Any) -> pa.ChunkedArray:
    """The column as pyarrow reads it from a file of ours, after a look at our own reading."""
    sink = io.BytesIO()
    fastpq.write_table(pa.table({"a": values}), sink)
    found = pq.read_table(sink)["a"]
    assert pa.table(fastpq.read_table(sink.getvalue()))["a"].to_pylist() == found.to_pylist()
    return found


@pytest.mark.parametrize("name", RUN_VALUES)
@pytest.mark.parametrize("ends", [pa.int16(), pa.int32(), pa.int64()])
def test_runs_are_expanded(name: str, ends: pa.DataType) -> None:
    values = RUN_VALUES[name]
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 7, 8], ends), values)
    wanted = [values[place].as_py() for place in (0, 0, 1, 2, 2, 2, 2, 3)]
    found = read_back(runs)
    assert found.type == values.type
    assert found.to_pylist() == wanted
    for start in range(8):
        for length in (0, 1, 3, 8 - start):
            assert read_back(runs.slice(start, length)).to_pylist() == wanted[start : start + length]


def test_runs_in_batches_and_within_lists_and_structs() -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 5], pa.int32()), pa.array(["x", None]))
    assert read_back(pa.chunked_array([runs, runs.slice(1, 2)])).to_pylist() == ["x", "x", None, None, None, "x", None]
    lists = pa.ListArray.from_arrays([0, 1, 1, 4], runs)
    assert read_back(lists).to_pylist() == [["x"], [], ["x", None, None]]
    structs = pa.StructArray.from_arrays([runs, pa.array(range(5))], ["r", "n"])
    assert read_back(structs.slice(1)).to_pylist() == structs.slice(1).to_pylist()
    stream = pa.RecordBatchReader.from_batches(pa.schema([("a", runs.type)]), [pa.record_batch({"a": runs})] * 3)
    sink = io.BytesIO()
    fastpq.write_table(stream, sink)
    assert pq.read_table(sink)["a"].to_pylist() == runs.to_pylist() * 3


def test_a_schema_of_runs() -> None:
    sink = io.BytesIO()
    schema = pa.schema([("a", pa.run_end_encoded(pa.int32(), pa.float32()))])
    fastpq.write_table({"a": np.array([1.5, 2.5])}, sink, schema=schema)
    assert pq.read_table(sink)["a"].type == pa.float32()


def unions() -> dict[str, pa.Array]:
    numbers, texts = pa.array([1, 2, None, 4]), pa.array(["x", "y", "z", None])
    lists = pa.array([[1], [], None, [2, 3]])
    codes = pa.array([0, 1, 0, 1], pa.int8())
    places = pa.array([0, 0, 1, 1], pa.int32())
    coded, none = texts.dictionary_encode(), pa.array([], pa.dictionary(pa.int8(), pa.string()))
    return {
        "sparse": pa.UnionArray.from_sparse(codes, [numbers, texts], ["n", "t"]),
        "of three": pa.UnionArray.from_sparse(
            pa.array([9, 3, 9, 5], pa.int8()), [numbers, texts, lists], ["n", "t", "l"], [9, 3, 5]
        ),
        "dense": pa.UnionArray.from_dense(codes, pa.array([0, 0, 2, 3], pa.int32()), [numbers, texts], ["n", "t"]),
        "unused": pa.UnionArray.from_dense(codes, places, [numbers, texts, lists[:0], none], ["n", "t", "l", "d"]),
        "codes": pa.UnionArray.from_dense(codes, pa.array([0, 1, 1, 0], pa.int32()), [coded, numbers], ["t", "n"]),
    }


@pytest.mark.parametrize("name", unions())
def test_unions_are_structs_of_code_and_members(name: str) -> None:
    union = unions()[name]
    names = [union.type.field(number).name for number in range(union.type.num_fields)]
    codes = {code: place for place, code in enumerate(union.type.type_codes)}

    expected = [
        {"type_id": code} | {each: value if place == codes[code] else None for place, each in enumerate(names)}
        for code, value in zip(union.type_codes.to_pylist(), union.to_pylist(), strict=True)
    ]
    for start, stop in ((0, 4), (1, 4), (1, 3), (4, 4)):
        found = read_back(union.slice(start, stop - start))
        assert found.to_pylist() == expected[start:stop]
        assert [field.name for field in found.type] == ["type_id", *names]
        assert found.type.field("type_id").type == pa.int8()
    both = read_back(pa.chunked_array([union, union.slice(2)]))
    assert both.to_pylist() == expected + expected[2:]


@pytest.mark.parametrize("name", unions())
def test_to_arrow_restores_unions(name: str) -> None:
    """By the ARROW:schema of a file, in tables, columns, lists and structs; alone on request, since few consumers read unions."""
    union = unions()[name]
    for part in (union, union.slice(1, 2), union.slice(4), pa.chunked_array([union, union.slice(2)])):
        table = fastpq.read_table(written(pa.table({"u": part})))
        restored = table.to_arrow()
        restored.validate(full=True)
        assert restored["u"].type == union.type
        assert restored["u"].to_pylist() == part.to_pylist() == table["u"].to_arrow().to_pylist()
        assert fastpq.read_table(written(table)).to_arrow().equals(restored)
        assert pa.types.is_struct(pa.table(table)["u"].type)
        assert pl.DataFrame(table)["u"].dtype == pl.read_parquet(written(table))["u"].dtype
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 4], pa.int32()), union)
    inside = pa.table({"l": lists, "s": pa.StructArray.from_arrays([union.slice(0, 2)], ["u"])})
    restored = fastpq.read_table(written(inside)).to_arrow()
    assert restored.schema.types == inside.schema.types
    assert restored.to_pylist() == inside.to_pylist()


def test_structs_that_are_no_unions_any_more() -> None:
    table = fastpq.read_table(written(pa.table({"u": unions()["sparse"]})))
    column = table["u"]
    assert isinstance(column, fastpq.StructColumn)
    for codes, nulls in ((np.array([0, 1, 7, 0], np.int8), 0), (np.array([0, 1, 1, 0], np.int8), 1)):
        validity = np.array([0b1101], np.uint8) if nulls else None
        children = (column.children[0]._with(values=codes), *column.children[1:])
        assert pa.types.is_struct(column._with(children=children, validity=validity, null_count=nulls).to_arrow().type)


def written(table: Any) -> io.BytesIO:
    file = io.BytesIO()
    fastpq.write_table(table, file)
    return io.BytesIO(file.getvalue())


def test_other_readers_take_the_struct_of_a_union(tmp_path: Path) -> None:
    path = tmp_path / "union.parquet"
    fastpq.write_table(pa.table({"u": unions()["sparse"]}), path)
    truth = pq.read_table(path)["u"].to_pylist()
    assert [row[0] for row in duckdb.connect().execute(f"SELECT u FROM '{path}'").fetchall()] == truth
    assert pl.read_parquet(path)["u"].to_list() == truth


def test_members_need_names_of_their_own() -> None:
    for names in (["n", "n"], ["n", "type_id"]):
        union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1]), pa.array(["x"])], names)
        with pytest.raises(SchemaError, match=r"members .* need different names.*column a"):
            fastpq.write_table(pa.table({"a": union}), io.BytesIO())


def runs_of(ends: bytes, *, length: int, count: int = 2, offset: int = 0) -> Producer:
    field = Field(b"+r", children=[Field(b"i", b"run_ends", flags=0), Field(b"i", b"values")])
    children = [Values(count, [None, ends]), Values(count, [None, struct.pack("=2i", 7, 8)])]
    return Producer(field, Values(length, [], offset=offset, children=children))


def union_of(text: bytes, codes: bytes, places: bytes | None = None) -> Producer:
    field = Field(text, children=[Field(b"i", b"n"), Field(b"i", b"m")])
    buffers: list[bytes | None] = [codes] if places is None else [codes, places]
    child = Values(2, [None, struct.pack("=2i", 7, 8)])
    return Producer(field, Values(2, buffers, children=[child, child]))


BROKEN = {
    "descending run ends": lambda: runs_of(struct.pack("=2i", 3, 2), length=2),
    "equal run ends": lambda: runs_of(struct.pack("=2i", 2, 2), length=2),
    "a run end of zero": lambda: runs_of(struct.pack("=2i", 0, 2), length=2),
    "run ends before the last value": lambda: runs_of(struct.pack("=2i", 1, 2), length=3),
    "run ends before the last value behind an offset": lambda: runs_of(struct.pack("=2i", 1, 2), length=2, offset=1),
    "no run": lambda: runs_of(b"", length=1, count=0),
    "a code of no member": lambda: union_of(b"+us:0,1", bytes([0, 2])),
    "a negative code": lambda: union_of(b"+us:0,1", bytes([0, 255])),
    "a code too few": lambda: union_of(b"+us:0", bytes([0, 0])),
    "one code twice": lambda: union_of(b"+us:1,1", bytes([1, 1])),
    "codes that are no numbers": lambda: union_of(b"+us:a,b", bytes([0, 0])),
    "a buffer too few": lambda: union_of(b"+ud:0,1", bytes([0, 1])),
    "a place behind the values": lambda: union_of(b"+ud:0,1", bytes([0, 1]), struct.pack("=2i", 0, 2)),
    "a negative place": lambda: union_of(b"+ud:0,1", bytes([0, 1]), struct.pack("=2i", -1, 0)),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_producers_are_refused_and_released(case: str) -> None:
    producer = BROKEN[case]()
    with pytest.raises(SchemaError):
        import_column(producer)
    assert producer.schemas == 1


def test_sound_producers_are_taken() -> None:
    assert import_column(runs_of(struct.pack("=2i", 1, 3), length=2, offset=1)).to_pylist() == [8, 8]
    found = import_column(union_of(b"+ud:0,1", bytes([0, 1]), struct.pack("=2i", 1, 0))).to_pylist()
    assert found == [{"type_id": 0, "n": 8, "m": None}, {"type_id": 1, "n": None, "m": 7}]
