"""Nested columns of any shape: what fastpq writes others read, and what others write fastpq reads."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fastpq
from fastpq.table import ListColumn, StructColumn
from tests.interop.comparison import assert_same

LEAVES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.int32(): st.integers(-5, 5),
    pa.string(): st.text(max_size=20),
    pa.binary(): st.binary(max_size=20),
    pa.bool_(): st.booleans(),
    pa.float64(): st.floats(),
    pa.decimal128(12, 3): st.decimals(-(10**8), 10**8, places=3),
}


@st.composite
def types(draw: Any, depth: int = 5) -> pa.DataType:
    """An Arrow type, nested as deep as that."""
    kind = draw(st.sampled_from(["leaf", "list", "large list", "struct", "map"])) if depth else "leaf"
    if kind == "leaf":
        return draw(st.sampled_from(list(LEAVES)))
    if kind == "struct":
        children = draw(st.lists(st.tuples(types(depth=depth - 1), st.booleans()), min_size=1, max_size=3))
        return pa.struct([pa.field(f"f{i}", type_, nullable) for i, (type_, nullable) in enumerate(children)])
    if kind == "map":
        return pa.map_(draw(st.sampled_from([pa.int32(), pa.string()])), draw(types(depth=depth - 1)))
    element = pa.field("element", draw(types(depth=depth - 1)), draw(st.booleans()))
    return pa.list_(element) if kind == "list" else pa.large_list(element)


def values(type_: pa.DataType, nullable: bool) -> st.SearchStrategy[Any]:
    """Python values of an Arrow type."""
    if pa.types.is_struct(type_):
        found: st.SearchStrategy[Any] = st.fixed_dictionaries(
            {field.name: values(field.type, field.nullable) for field in type_}
        )
    elif pa.types.is_map(type_):
        pairs = st.tuples(values(type_.key_type, False), values(type_.item_type, True))
        found = st.lists(pairs, max_size=3, unique_by=lambda pair: pair[0])
    elif pa.types.is_nested(type_):
        found = st.lists(values(type_.value_type, type_.value_field.nullable), max_size=3)
    else:
        found = LEAVES[type_]
    return st.none() | found if nullable else found


@st.composite
def tables(draw: Any) -> pa.Table:
    """One or two columns of nested types."""
    rows = draw(st.integers(0, 12))
    fields, arrays = [], []
    for number in range(draw(st.integers(1, 2))):
        type_, nullable = draw(types()), draw(st.booleans())
        fields.append(pa.field(f"c{number}", type_, nullable))
        arrays.append(pa.array(draw(st.lists(values(type_, nullable), min_size=rows, max_size=rows)), type_))
    return pa.table(arrays, schema=pa.schema(fields))


OPTIONS = st.fixed_dictionaries(
    {
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "use_dictionary": st.booleans(),
        "compression": st.sampled_from(["none", "snappy", "zstd"]),
        "data_page_rows": st.sampled_from([1, 3, 1000]),
        "row_group_size": st.sampled_from([1, 5, 1000]),
        "threads": st.sampled_from([1, 2]),
    }
)
PATIENT = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def has_maps(type_: pa.DataType) -> bool:
    if pa.types.is_map(type_):
        return True
    return pa.types.is_nested(type_) and any(has_maps(type_.field(i).type) for i in range(type_.num_fields))


@given(tables(), OPTIONS)
@PATIENT
def test_written_files_are_read_by_others(table: pa.Table, options: dict[str, Any]) -> None:
    sink = io.BytesIO()
    fastpq.write_table(table, sink, **options)
    read = pq.read_table(sink)
    read.validate(full=True)
    assert_same(read, table)
    assert_same(pa.table(fastpq.read_table(sink.getvalue())), table)
    if not any(has_maps(field.type) for field in table.schema):     # Polars reads maps as lists of structs
        assert_same(pl.read_parquet(sink.getvalue()).to_arrow(), table)


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


@given(tables())
@settings(PATIENT, max_examples=40)
def test_files_of_duckdb_and_for_duckdb(tmp_path_factory: pytest.TempPathFactory, table: pa.Table) -> None:
    folder = tmp_path_factory.mktemp("duckdb")
    fastpq.write_table(table, folder / "ours.parquet")
    with duckdb.connect() as connection:
        rows = connection.sql(f"SELECT count(*), count(c0) FROM '{folder}/ours.parquet'").fetchall()
        assert rows == [(table.num_rows, table.num_rows - table["c0"].null_count)]
        connection.sql(f"COPY (SELECT * FROM '{folder}/ours.parquet') TO '{folder}/theirs.parquet' (FORMAT parquet)")
    assert_same(pa.table(fastpq.read_table(folder / "theirs.parquet")), table)


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
    assert fastpq.read_table(data, [("a", "c")])["a"].type.fields[0].name == "c"


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
        ({"a": [{1: 1}]}, "is not a str"),
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
