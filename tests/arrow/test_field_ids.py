"""Field ids (PARQUET:field_id): written, read, kept, and used to choose columns."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.types import FieldId

KEY = b"PARQUET:field_id"


def field(name: str, type_: Any, number: int, nullable: bool = True) -> pa.Field:
    return pa.field(name, type_, nullable, {KEY: str(number)})


SCHEMA = pa.schema([
    field("id", pa.int64(), 1),
    field("text", pa.string(), 2),
    field("list", pa.list_(field("element", pa.int32(), 4)), 3),
    field("struct", pa.struct([field("x", pa.float64(), 6), field("y", pa.list_(field("element", pa.string(), 8)), 7)]), 5),
    field("map", pa.map_(field("key", pa.string(), 10, False), field("value", pa.int64(), 11)), 9),
    pa.field("none", pa.bool_()),
])
ROWS = [
    {"id": 1, "text": "a", "list": [1, None], "struct": {"x": 0.5, "y": ["b"]}, "map": [("k", 1)], "none": True},
    {"id": 2, "text": None, "list": None, "struct": None, "map": [], "none": None}]
TABLE = pa.Table.from_pylist(ROWS, SCHEMA)
PATHS = {
    "id": 1, "text": 2, "list": 3, "list.list.element": 4, "struct": 5, "struct.x": 6, "struct.y": 7,
    "struct.y.list.element": 8, "map": 9, "map.key_value.key": 10, "map.key_value.value": 11}


def written(data: Any, **options: Any) -> bytes:
    target = io.BytesIO()
    fastpq.write_table(data, target, **options)
    return target.getvalue()


def theirs(**options: Any) -> bytes:
    target = io.BytesIO()
    pq.write_table(TABLE, target, **options)
    return target.getvalue()


def stored_ids(raw: Any) -> dict[str, int]:
    with fastpq.ParquetFile(raw) as file:
        return {".".join(node.path): node.field_id for node in file.schema.nodes() if node.field_id is not None}


def ids_of(fields: Any, prefix: str = "") -> dict[str, int]:
    """Return the ids in Arrow fields, by path."""
    ids = {}
    for each in fields:
        path = prefix + each.name
        if KEY in (each.metadata or {}):
            ids[path] = int(each.metadata[KEY])
        if pa.types.is_map(each.type):
            ids |= ids_of([each.type.key_field, each.type.item_field], path + ".")
        elif each.type.num_fields:
            ids |= ids_of([each.type.field(number) for number in range(each.type.num_fields)], path + ".")
    return ids


ARROW_IDS = ids_of(SCHEMA)


def duckdb_ids(path: Path) -> dict[str, int]:
    rows = duckdb.execute(f"select name, field_id from parquet_schema('{path}') where field_id is not null").fetchall()
    return dict(rows)


def test_ids_are_written(tmp_path: Path) -> None:
    raw = written(TABLE)
    assert stored_ids(raw) == PATHS
    assert ids_of(pq.read_schema(pa.BufferReader(raw))) == ARROW_IDS
    path = tmp_path / "x.parquet"
    path.write_bytes(raw)
    assert duckdb_ids(path)["text"] == 2
    assert fastpq.read_table(raw).to_pylist() == fastpq.read_table(theirs()).to_pylist()


def test_option(tmp_path: Path) -> None:
    plain = fastpq.read_table(theirs(), arrow_schema=False)
    assert stored_ids(written(plain)) == {}
    assert stored_ids(written(plain, field_ids=PATHS)) == PATHS
    assert stored_ids(written({"a": [1]}, field_ids={"a": 7})) == {"a": 7}
    assert stored_ids(written(TABLE, field_ids={"id": 100})) == {**PATHS, "id": 100}
    assert stored_ids(written({"a": [1]}, schema=fastpq.ParquetSchema.of([("a", fastpq.types.ColumnType(
        fastpq.types.Type.INT64), True)]), field_ids={"a": 7})) == {"a": 7}
    with fastpq.ParquetWriter(tmp_path / "x", field_ids={"a": 3}) as writer:
        writer.write_table({"a": [1]})
        writer.write_table({"a": [2]})
    assert stored_ids(tmp_path / "x") == {"a": 3}
    fastpq.write_dataset({"a": [1], "p": [1]}, tmp_path / "d", partition_by=["p"], field_ids={"a": 3})
    (part,) = (tmp_path / "d").rglob("*.parquet")
    assert stored_ids(part) == {"a": 3}
    for wrong, message in (({"b": 1}, "'b'"), ({"a": 1 << 31}, "32-bit"), ({"a": "1"}, "32-bit")):
        with pytest.raises(fastpq.SchemaError, match=message):
            written({"a": [1]}, field_ids=wrong)
    with pytest.raises(fastpq.SchemaError, match="occurs twice"):
        written({"a": [1], "b": [1]}, field_ids={"a": 1, "b": 1})


@pytest.mark.parametrize("store_schema", [True, False])
def test_ids_are_read_and_kept(tmp_path: Path, store_schema: bool) -> None:
    raw = theirs(store_schema=store_schema)
    (tmp_path / "d").mkdir()
    path = tmp_path / "d" / "x.parquet"
    path.write_bytes(raw)
    for where in (raw, path, tmp_path / "d"):
        table = fastpq.read_table(where)
        if where != tmp_path / "d":
            assert ids_of(pa.table(table).schema) == ARROW_IDS
        assert pa.table(table).to_pylist() == TABLE.to_pylist()
        assert stored_ids(written(table)) == PATHS
        assert stored_ids(written(table.select(["struct", "id"]))) == {
            name: number for name, number in PATHS.items() if name.startswith(("struct", "id"))}
    part = fastpq.read_table(raw, ["struct.y", "map"])
    kept = {name: number for name, number in PATHS.items() if name.startswith(("struct.y", "map"))}
    assert stored_ids(written(part)) == {**kept, "struct": 5}
    with fastpq.ParquetFile(path) as file:
        assert ids_of(pa.RecordBatchReader.from_stream(file).schema) == ARROW_IDS
    assert stored_ids(written(fastpq.read_table(raw, arrow_schema=False))) == {}


def test_a_table_with_ids_alone_needs_no_arrow_schema() -> None:
    raw = written(fastpq.read_table(written({"a": [1], "b": ["c"]}, field_ids={"a": 1, "b": 2})))
    assert stored_ids(raw) == {"a": 1, "b": 2}
    with fastpq.ParquetFile(raw) as file:
        assert file.metadata.key_value_bytes == 0


def test_rewriting_keeps_ids(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(theirs())
    fastpq.merge_files([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    assert stored_ids(tmp_path / "c") == PATHS


def test_columns_are_chosen_by_id() -> None:
    raw = theirs()
    by_name = fastpq.read_table(raw, ["text", "struct.x"])
    assert fastpq.read_table(raw, [FieldId(2), FieldId(6)]).to_pylist() == by_name.to_pylist()
    with fastpq.ParquetFile(raw) as file:
        assert file.schema.column(FieldId(11)).name == "map.key_value.value"
        assert file.min_max(FieldId(1)) == (1, 2)
        with pytest.raises(fastpq.SchemaError, match="0 columns have the field id 99"):
            file.read([FieldId(99)])
