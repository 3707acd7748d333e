"""Data files of Iceberg tables that fastpq writes: what they say about themselves, and what iceberg-rust and PyIceberg read."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.catalogs.iceberg import StandardKeyMetadata, read_scan, write_data_file
from tests.catalogs.test_iceberg_scans import DATA, ROWS, append, same
from tests.own_code import is_own_code
from tests.pinned import pinned_python, run_pinned
from tests.requirements import peer

# iceberg-rust, by its binding for Python. It needs this DataFusion.
RUST = ("pyiceberg==0.12.0", "pyiceberg-core==0.11.0", "datafusion==54.1.0", "pyarrow==26.0.1", "sqlalchemy==2.*")
RUST_READER = """
import json, sys
from datafusion import SessionContext
from pyiceberg.catalog.sql import SqlCatalog
uri, warehouse, name = sys.argv[1:]
table = SqlCatalog("tests", uri=uri, warehouse=warehouse).load_table(name)
context = SessionContext()
context.register_table("t", table)
queries = [
    "SELECT count(*), sum(id), min(text), max(money), count(text) FROM t",
    "SELECT count(*), sum(id) FROM t WHERE id >= 100 AND id < 110",
    "SELECT count(*), sum(id) FROM t WHERE text = 'text 7'",
    "SELECT count(*) FROM t WHERE moment >= TIMESTAMP '2020-02-01T00:00:00' AND flag",
    "SELECT count(*) FROM t WHERE id < 0",
]
print(json.dumps([[str(column[0]) for column in context.sql(query).to_pydict().values()] for query in queries]))
"""
FLAT = ["id", "text", "real", "money", "moment", "utc", "day", "flag", "raw"]


def path_of(data_file: Any) -> Path:
    return Path(data_file.file_path.removeprefix("file://"))


@pytest.mark.slow
@pytest.mark.parametrize("bits", [128, 256])
def test_iceberg_rust_reads_encrypted_files(bits: int, catalog: Any, tmp_path: Path) -> None:
    table = catalog.create_table("db.rust", schema=DATA.select(FLAT).schema)
    key_metadata = StandardKeyMetadata.generate(key_bits=bits)
    rows = DATA.select(FLAT)
    append(
        table,
        write_data_file(rows, table, key_metadata=key_metadata, row_group_size=1000, data_page_size=4000),
        write_data_file(rows.slice(0, 100), table, encrypt=True, data_page_version="2.0", compression="snappy"),
    )
    python = pinned_python("iceberg-rust", *RUST)
    output = run_pinned(python, RUST_READER, f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse", "db.rust")
    ids, texts = [*range(ROWS), *range(100)], DATA["text"].to_pylist()
    sevens = [row for row in ids if texts[row] == "text 7"]
    late = [row for row in ids if row >= 31 * 24 and row % 2 == 0]
    assert json.loads(output) == [
        [str(len(ids)), str(sum(ids)), "text 0", "29.99", str(sum(texts[row] is not None for row in ids))],
        ["10", str(sum(range(100, 110)))],
        [str(len(sevens)), str(sum(sevens))],
        [str(len(late))],
        ["0"],
    ]


@pytest.mark.parametrize("data_page_version", ["1.0", "2.0"])
def test_pyarrow_reads_encrypted_files(data_page_version: Any, catalog: Any) -> None:
    pe = pytest.importorskip("pyarrow.parquet.encryption")
    table = catalog.create_table("db.secret", schema=DATA.schema)
    data_file = write_data_file(DATA, table, encrypt=True, data_page_version=data_page_version)
    encoded = data_file.key_metadata
    keys = pe.create_decryption_properties(encoded[2:18], aad_prefix=encoded[20:36])
    with pq.ParquetFile(path_of(data_file), decryption_properties=keys) as file:
        assert repr(file.read().to_pydict()) == repr(DATA.to_pydict())
        ids = {field.name: int(field.metadata[b"PARQUET:field_id"]) for field in file.schema_arrow}
        assert ids == {field.name: field.field_id for field in table.schema().fields}
        nested = file.schema_arrow.field("struct").type
        assert [int(field.metadata[b"PARQUET:field_id"]) for field in nested] == [14, 15]
        assert int(file.schema_arrow.field("map").type.item_field.metadata[b"PARQUET:field_id"]) == 17


def test_a_data_file_says_what_pyiceberg_says(catalog: Any) -> None:
    """Counts and bounds of a file are those that PyIceberg computes for the same rows."""
    ours, theirs = (catalog.create_table(f"db.{name}", schema=DATA.schema) for name in ("ours", "theirs"))
    theirs.append(DATA)
    expected = next(iter(theirs.scan().plan_files())).file
    data_file = write_data_file(DATA, ours, row_group_size=1000)
    assert data_file.record_count == ROWS
    assert data_file.file_size_in_bytes == path_of(data_file).stat().st_size
    assert data_file.key_metadata is None
    assert data_file.value_counts == expected.value_counts
    null_counts = {field_id: data_file.null_value_counts.get(field_id) for field_id in expected.null_value_counts}
    assert null_counts == expected.null_value_counts
    assert data_file.nan_value_counts == {3: 6}
    for bounds, other_bounds in (
        (data_file.lower_bounds, expected.lower_bounds), (data_file.upper_bounds, expected.upper_bounds),
    ):
        assert {field_id: bounds.get(field_id) for field_id in other_bounds} == other_bounds
    assert data_file.column_sizes.keys() == expected.column_sizes.keys()
    assert len(data_file.split_offsets) == 3
    assert data_file.split_offsets == sorted(data_file.split_offsets)
    by_duckdb = peer("duckdb").sql(f"SELECT count(*), sum(id), max(text) FROM read_parquet('{path_of(data_file)}')").fetchall()
    assert by_duckdb == [(ROWS, sum(range(ROWS)), "text 99")]
    append(ours, data_file)
    assert same(read_scan(ours.scan()), DATA)
    assert repr(ours.scan().to_arrow().to_pydict()) == repr(DATA.to_pydict())
    for row_filter in ("id < 10", "text = 'text 5'", "money > 29.90", "day = '2020-01-03' and id > 2000"):
        assert same(read_scan(ours.scan(row_filter=row_filter)), theirs.scan(row_filter=row_filter).to_arrow())


def test_bounds_of_long_texts(catalog: Any) -> None:
    table = catalog.create_table("db.long", schema=pa.schema({"text": pa.string(), "raw": pa.binary()}))
    rows = {"text": ["b" * 20, "z" * 15 + "é" * 9], "raw": [b"\x01" * 20, b"\xff" * 20]}
    data_file = write_data_file(pa.table(rows), table)
    assert data_file.lower_bounds == {1: b"b" * 16, 2: b"\x01" * 16}
    assert data_file.upper_bounds == {1: ("z" * 15 + "ê").encode()}     # no text of 16 bytes is above 0xff
    empty = write_data_file(pa.table({"text": pa.array([], pa.string()), "raw": pa.array([], pa.binary())}), table)
    assert (empty.record_count, empty.lower_bounds, empty.value_counts) in [(0, {}, {1: 0, 2: 0}), (0, {}, {})]
    nulls = write_data_file(pa.table({"text": pa.array([None, None], pa.string()), "raw": pa.array([None, b"a"])}), table)
    assert (nulls.lower_bounds, nulls.null_value_counts) == ({2: b"a"}, {1: 2, 2: 1})


def test_rows_take_the_types_of_the_table(catalog: Any) -> None:
    from pyiceberg.schema import Schema
    from pyiceberg.types import IntegerType, LongType, NestedField, StringType, TimestampType

    schema = Schema(
        NestedField(1, "id", LongType(), required=True), NestedField(2, "n", IntegerType()), NestedField(5, "s", StringType()),
        NestedField(7, "t", TimestampType()),
    )
    table = catalog.create_table("db.types", schema=schema)
    rows = {"s": ["a", "b"], "t": np.array([1, 2], "M8[ms]"), "n": np.array([1, 2], np.int8), "id": np.array([3, 4], np.int32)}
    data_file = write_data_file(rows, table)
    parquet_schema = fastpq.read_schema(path_of(data_file))
    assert str(parquet_schema).splitlines()[1:5] == [
        "  required int64 id = 1;", "  optional int32 n = 2;", "  optional binary s (STRING) = 3;",
        "  optional int64 t (TIMESTAMP(MICROS,false)) = 4;",
    ]
    append(table, data_file)
    assert table.scan().to_arrow().to_pydict()["id"] == [3, 4]
    for change, message in (
        ({"n": np.array([1, 2**40])}, "n"), ({"id": np.ma.masked_equal([1, 2], 2)}, "nulls"), ({"more": [1, 2]}, "too many"),
    ):
        with pytest.raises(fastpq.SchemaError, match=message):
            write_data_file({**rows, **change}, table)
    with pytest.raises(fastpq.SchemaError, match="missing"):
        write_data_file({"id": [1]}, table)
    with pytest.raises(FileExistsError):
        write_data_file(rows, table, data_file.file_path)


def test_partitions(catalog: Any) -> None:
    from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform

    table = catalog.create_table("db.parts", schema=DATA.select(["id", "text", "moment"]).schema)
    with table.update_spec() as update:
        update.add_field("text", IdentityTransform())
        update.add_field("moment", DayTransform())
        update.add_field("id", BucketTransform(1))
    rows = DATA.select(["id", "text", "moment"]).slice(1, 1)
    data_file = write_data_file(rows, table, encrypt=True)
    assert list(data_file.partition) == ["text 1", 18262, 0]
    assert "text=text+1/moment_day=2020-01-01" in data_file.file_path
    append(table, data_file)
    assert same(read_scan(table.scan(row_filter="text = 'text 1' and moment < '2020-01-02T00:00:00'")), rows)
    assert read_scan(table.scan(row_filter="text = 'text 2'")).num_rows == 0
    with pytest.raises(fastpq.SchemaError, match="one partition"):
        write_data_file(DATA.select(["id", "text", "moment"]).slice(1, 2), table)


def test_keys_of_data_files(catalog: Any) -> None:
    table = catalog.create_table("db.keys", schema=DATA.select(["id"]).schema, properties={"encryption.data-key-length": "32"})
    first, second = (write_data_file(DATA.select(["id"]), table, encrypt=True) for _ in range(2))
    keys = [StandardKeyMetadata.from_bytes(data_file.key_metadata) for data_file in (first, second)]
    assert keys[0].encryption_key.bits == 256
    assert not keys[0].encryption_key.matches(keys[1].encryption_key)
    assert keys[0].aad_prefix != keys[1].aad_prefix
    with pytest.raises(ValueError, match="older file"):
        write_data_file(DATA.select(["id"]), table, key_metadata=first.key_metadata)
    with pytest.raises(ValueError, match="not encrypted"):
        write_data_file(DATA.select(["id"]), table, key_metadata=StandardKeyMetadata.generate(), encrypt=False)


def test_a_table_behind_another_file_io(catalog: Any) -> None:
    """A FileIO that is not PyIceberg's own gets every path."""
    from pyiceberg.io.pyarrow import PyArrowFileIO

    class Wrapped(PyArrowFileIO):  # type: ignore[misc]
        paths: list[str] = []

        def new_input(self, location: str) -> Any:
            self.paths.append(location)
            return super().new_input(location)

        def new_output(self, location: str) -> Any:
            self.paths.append(location)
            return super().new_output(location)

    table = catalog.create_table("db.io", schema=DATA.schema)
    table.io = Wrapped()
    data_file = write_data_file(DATA, table, encrypt=True)
    append(table, data_file)
    Wrapped.paths.clear()
    assert same(read_scan(table.scan()), DATA)
    assert data_file.file_path in Wrapped.paths


def test_a_traceback_shows_no_key(catalog: Any) -> None:
    import traceback

    table = catalog.create_table("db.keys", schema=DATA.select(["id"]).schema)
    key = b"0123456789abcdef"
    encoded = StandardKeyMetadata(key).to_bytes()
    with pytest.raises(fastpq.SchemaError) as raised:
        write_data_file({"id": ["text"]}, table, key_metadata=encoded)
    error: BaseException | None = raised.value
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if is_own_code(frame.f_code.co_filename):
                assert "0123456789abcdef" not in repr(frame.f_locals)
        error = error.__cause__ or error.__context__
    assert "0123456789abcdef" not in str(raised.value) + io.StringIO(repr(StandardKeyMetadata(key))).getvalue()
