"""VARIANT and FILE columns of files: what others wrote, and what they make of ours."""

from __future__ import annotations

import datetime
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastpq
from fastpq.errors import FormatError, SchemaError
from fastpq.file_reference import FileReference, file_column
from fastpq.schema.nested_types import Field, ListType
from fastpq.schema.types import ColumnType, String, Type
from fastpq.variant import Variant, VariantColumn
from tests.narrowing import present
from tests.requirements import DATA, peer
from tests.variant import reference

duckdb = peer("duckdb")

CASES = DATA / "parquet-testing/shredded_variant"
STRING = ColumnType(Type.BYTE_ARRAY, logical=String())
ROWS: list[Any] = [
    {"id": 1, "name": "one", "tags": ["a", "b"], "more": {"x": 1.5, "y": None}},
    None,
    {"id": 2, "tags": [], "more": {"x": "no number"}, "extra": True},
    {"id": "three", "tags": [1, None]},
    "no object",
    [1, 2],
    {},
]
SCHEMAS: list[Any] = [
    None,
    "infer",
    {"id": ColumnType(Type.INT64), "name": STRING},
    {"tags": [STRING], "more": {"x": ColumnType(Type.DOUBLE)}, "id": None},
    [ColumnType(Type.INT32)],
]


def cases() -> list[Any]:
    path = CASES / "cases.json"
    found = json.loads(path.read_text()) if path.exists() else []
    return [pytest.param(case, id=str(case["case_number"])) for case in found if "parquet_file" in case]


@pytest.mark.parametrize("case", cases())
def test_cases_of_parquet_testing(case: dict[str, Any]) -> None:
    """Byte by byte what parquet-java and Iceberg make of them; again after we have written them."""
    path = CASES / case["parquet_file"]
    if "error_message" in case:
        with pytest.raises(FormatError):
            fastpq.read_table(path)["var"].to_pylist()
        return
    table = fastpq.read_table(path)
    sink = io.BytesIO()
    fastpq.write_table(table, sink)
    expected = case.get("variant_files") or [case["variant_file"]]
    for found in (table, fastpq.read_table(sink.getvalue()), in_batches(path)):
        stored = found["var"]
        assert isinstance(stored, fastpq.StructColumn)
        column = VariantColumn.of(stored)
        assert len(expected) == len(column)
        for row, name in enumerate(expected):
            assert column[row] == (None if name is None else Variant(*reference.split((CASES / name).read_bytes())))


def in_batches(path: Path) -> fastpq.Table:
    with fastpq.ParquetFile(path) as file:
        return fastpq.Table.concat(list(file.iter_batches(1)))


@pytest.mark.parametrize("schema", SCHEMAS)
def test_duckdb_reads_what_we_write(tmp_path: Path, schema: Any) -> None:
    path = tmp_path / "v.parquet"
    fastpq.write_table({"v": VariantColumn.from_pylist(ROWS), "i": np.arange(len(ROWS))}, path, shred={"v": schema})
    assert fastpq.read_table(path)["v"].to_pylist() == ROWS
    with duckdb.connect() as connection:
        found = connection.sql(f"SELECT v FROM read_parquet('{path}') ORDER BY i").fetchall()
    assert [row for (row,) in found] == ROWS


@pytest.mark.parametrize("shredding", ["", "(shredding {v: 'struct(id bigint, tags varchar[])'})"])
def test_we_read_what_duckdb_writes(tmp_path: Path, shredding: str) -> None:
    path = tmp_path / "v.parquet"
    with duckdb.connect() as connection:
        connection.sql(
            "COPY (SELECT {'id': i, 'tags': ['t' || i, NULL], 'zeta': {'b': i / 2, 'a': DATE '2020-01-01'}}::VARIANT AS v "
            f"FROM range(20) t(i)) TO '{path}' {shredding}"
        )
    day = datetime.date(2020, 1, 1)
    expected = [{"id": i, "tags": [f"t{i}", None], "zeta": {"b": i / 2, "a": day}} for i in range(20)]
    column = fastpq.read_table(path)["v"]
    assert column.to_pylist() == expected
    assert column.slice(3, 5).to_pylist() == expected[3:5]
    if shredding:
        ids = fastpq.read_table(path, ["v.typed_value.id.typed_value"])["v"]
        assert [row["typed_value"]["id"]["typed_value"] for row in ids.to_pylist()] == list(range(20))


@pytest.mark.parametrize("schema", [None, {"id": ColumnType(Type.INT64)}])
def test_arrow_knows_them_as_its_extension_type(schema: Any) -> None:
    struct = VariantColumn.from_pylist(ROWS).to_struct(schema)
    table = pa.table(fastpq.Table({"v": struct}))
    metadata = table.schema.field("v").metadata
    assert metadata is None or metadata[b"ARROW:extension:name"] == b"arrow.parquet.variant"
    assert metadata is not None or table.schema.field("v").type.extension_name == "arrow.parquet.variant"
    sink = io.BytesIO()
    fastpq.write_table(table, sink)
    assert fastpq.read_table(sink.getvalue())["v"].to_pylist() == ROWS


def test_variants_inside_lists_and_structs() -> None:
    inner = VariantColumn.from_pylist([1, "two", {"three": 3}, None]).to_struct()
    lists = fastpq.ListColumn(
        ListType(Field("element", inner.type)), np.array([0, 2, 2, 4], np.int32), inner
    )
    sink = io.BytesIO()
    fastpq.write_table({"lists": lists}, sink)
    assert fastpq.read_table(sink.getvalue())["lists"].to_pylist() == [[1, "two"], [], [{"three": 3}, None]]


def test_one_schema_for_all_tables_of_a_file() -> None:
    sink = io.BytesIO()
    with fastpq.ParquetWriter(sink, shred={"v": "infer"}) as writer:
        for rows in ([{"a": i} for i in range(50)], [{"a": "text", "b": 1}]):
            writer.write_table({"v": VariantColumn.from_pylist(rows)})
    table = fastpq.read_table(sink.getvalue())
    assert table["v"].to_pylist() == [{"a": i} for i in range(50)] + [{"a": "text", "b": 1}]
    assert "v.typed_value.a.typed_value" in [column.name for column in fastpq.read_schema(sink.getvalue())]


def test_shredding_of_what_is_no_variant() -> None:
    with pytest.raises(SchemaError, match="only variants can be shredded"):
        fastpq.write_table({"x": np.arange(3)}, io.BytesIO(), shred={"x": "infer"})
    with pytest.raises(SchemaError, match="not a shredding schema"):
        fastpq.write_table({"x": np.arange(3)}, io.BytesIO(), shred={"x": 7})  # type: ignore[dict-item]


FILES = [
    FileReference(uri="s3://bucket/a.png", content_type="image/png", checksum="CRC32:00000000"),
    None,
    FileReference(inline=b"\x00\x01", size=2),
    FileReference(offset=4, size=10),
    FileReference(),
]


def test_file_references(tmp_path: Path) -> None:
    """DuckDB, which does not know the annotation, finds the fields; pyarrow 26 refuses such groups."""
    path = tmp_path / "f.parquet"
    sink = io.BytesIO()
    fastpq.write_table({"f": file_column(FILES)}, sink)
    path.write_bytes(sink.getvalue())
    assert fastpq.read_table(sink.getvalue())["f"].to_pylist() == FILES
    assert present(fastpq.read_schema(sink.getvalue()).root.children[0].element.logicalType).FILE is not None
    with duckdb.connect() as connection:
        theirs = [row for (row,) in connection.sql(f"SELECT f FROM read_parquet('{path}')").fetchall()]
    assert [None if row is None else FileReference(**row) for row in theirs] == FILES
    some = fastpq.read_table(sink.getvalue(), ["f.uri"])["f"].to_pylist()
    assert some[0] == {"uri": "s3://bucket/a.png"}
    fewer = file_column(FILES[:2], ["uri", "content_type", "checksum"])
    assert [field.name for field in fewer.type.fields] == ["uri", "content_type", "checksum"]
    with pytest.raises(SchemaError, match="other fields"):
        file_column(FILES, ["uri"])
    with pytest.raises(SchemaError, match="not colour"):
        file_column(FILES, ["colour"])
