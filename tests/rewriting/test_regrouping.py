"""sort_file and rechunk_file: what strangers read, which row groups are copied, and how rows are sorted in several runs."""

from __future__ import annotations

import io
import os
import struct
import tempfile
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.io.source_opening import open_source
from fastpq.metadata.footer import read_finished
from fastpq.read.file_reader import FileReader
from fastpq.read.open_file import OpenFile, ReadRequest
from tests.narrowing import present
from tests.requirements import needs_data
from tests.rewriting.verbs import assert_rows, real_files

ROWS = 3000
KEY = b"0" * 16
OPENING = fastpq.FileDecryptionProperties(KEY)


def rows() -> pa.Table:
    random = np.random.default_rng(1)
    return pa.table(
        {
            "id": random.permutation(ROWS),
            "maybe": [None if row % 5 == 0 else row % 11 for row in range(ROWS)],
            "text": [f"text {row % 50}" for row in random.integers(0, 1000, ROWS)],
            "list": [[{"a": row % 7, "b": None if row % 4 else f"b {row % 13}"}] * (row % 3) for row in range(ROWS)],
            "price": random.random(ROWS),
            "cents": [None if row % 9 == 0 else Decimal(row) / 100 for row in range(ROWS)],
        }
    )


@pytest.fixture(params=["pyarrow", "pyarrow, V2", "fastpq", "encrypted"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    path = tmp_path / "source.parquet"
    if request.param.startswith("pyarrow"):
        version = "2.0" if request.param.endswith("V2") else "1.0"
        pq.write_table(rows(), path, row_group_size=1000, data_page_version=version, compression="zstd")
        return path, {}
    if request.param == "fastpq":
        encodings = {"id": "DELTA_BINARY_PACKED"}
        fastpq.write_table(rows(), path, row_group_size=1000, bloom_filter={"text": True}, column_encoding=encodings)
        return path, {}
    fastpq.write_table(rows(), path, row_group_size=1000, encryption_properties=fastpq.FileEncryptionProperties(KEY))
    return path, {"decryption_properties": OPENING}


def assert_strangers_read(path: Path, table: pa.Table, options: dict[str, Any]) -> None:
    expected = table.to_pylist()
    assert pa.table(fastpq.read_table(path, **options)).to_pylist() == expected
    if options:
        out = io.BytesIO()
        fastpq.decrypt_file(path, out, OPENING)
        path.write_bytes(out.getvalue())
    assert pq.read_table(path).to_pylist() == expected
    assert pl.read_parquet(path).to_arrow().to_pylist() == expected
    assert present(duckdb.sql(f"select id from '{path}'")).fetchall() == [(row["id"],) for row in expected]
    assert fastpq.verify_file(path).is_sound


@pytest.mark.parametrize(
    "sizes", [{"row_group_size": 700}, {"row_group_size": 2000}, {"data_page_rows": 100}, {"row_group_bytes": 10_000}]
)
def test_rechunking(source: tuple[Path, dict[str, Any]], tmp_path: Path, sizes: dict[str, Any]) -> None:
    path, options = source
    target = tmp_path / "target.parquet"
    report = fastpq.rechunk_file(path, target, **sizes, **options)
    assert report.decoded_pages >= 14
    metadata = fastpq.read_metadata(target, **options)
    size = sizes.get("row_group_size", 1000)
    if "row_group_bytes" not in sizes:
        assert metadata.row_counts[:-1] == [size] * (ROWS // size - (ROWS % size == 0))
    else:
        assert metadata.num_row_groups > 3
    chunk = metadata.row_group(0).column(2)
    assert chunk.codec == fastpq.read_metadata(path, **options).row_group(0).column(2).codec
    assert_strangers_read(target, rows(), options)


def test_row_groups_of_the_right_size_are_copied(tmp_path: Path) -> None:
    path, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    with fastpq.ParquetWriter(path) as writer:
        for start, stop in ((0, 1000), (1000, 1400), (1400, 2000), (2000, 3000)):
            writer.write_table(rows()[start:stop])
    report = fastpq.rechunk_file(path, target, row_group_size=1000)
    assert (report.decoded_pages, report.copied_pages > report.decoded_pages) == (14, True)
    assert fastpq.read_metadata(target).row_counts == [1000, 1000, 1000]
    old, new = path.read_bytes(), target.read_bytes()
    for number, group in ((0, 0), (3, 2)):
        pairs = ((old, number), (new, group))
        chunks = [fastpq.read_metadata(each).row_group(index).column(0).byte_range for each, index in pairs]
        assert old[chunks[0][0] : sum(chunks[0])] == new[chunks[1][0] : sum(chunks[1])]
    assert_strangers_read(target, rows(), {})
    report = fastpq.rechunk_file(target, target, row_group_size=1000)
    assert report.decoded_pages == 0
    with pytest.raises(ValueError, match="size"):
        fastpq.rechunk_file(path, target)
    with pytest.raises(ValueError, match="row_group_size"):
        fastpq.rechunk_file(path, target, row_group_size=0)


ORDERS: list[tuple[list[Any], list[tuple[str, str]]]] = [
    (["id"], [("id", "ascending")]),
    ([fastpq.SortingColumn("text", descending=True), "id"], [("text", "descending"), ("id", "ascending")]),
    (["price"], [("price", "ascending")]),
]


@pytest.mark.parametrize(("by", "keys"), ORDERS)
@pytest.mark.parametrize("run_bytes", [1, 50_000, 1 << 30])
def test_sorting(
    source: tuple[Path, dict[str, Any]], tmp_path: Path, by: list[Any], keys: list[tuple[str, str]], run_bytes: int
) -> None:
    path, options = source
    target = tmp_path / "target.parquet"
    report = fastpq.sort_file(path, target, by, run_bytes=run_bytes, row_group_size=800, **options)
    assert report.decoded_pages >= 18
    metadata = fastpq.read_metadata(target, **options)
    assert metadata.row_counts == [800, 800, 800, 600]
    assert [column.column_idx for column in metadata.row_group(1).sorting_columns][:1] == [
        metadata.schema.names.index(keys[0][0]) if keys[0][0] != "price" else 5
    ]
    assert_strangers_read(target, rows().take(pc.sort_indices(rows(), keys)), options)


def test_sorting_is_stable_and_puts_nulls_in_their_place(tmp_path: Path) -> None:
    path, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(rows(), path, row_group_size=100)
    for nulls_first in (False, True):
        fastpq.sort_file(path, target, [fastpq.SortingColumn("maybe", nulls_first=nulls_first)], run_bytes=5000)
        expected = sorted(rows().to_pylist(), key=lambda row: ((row["maybe"] is None) != nulls_first, row["maybe"] or 0))
        assert pq.read_table(target).to_pylist() == expected
        assert fastpq.read_metadata(target).row_counts == [100] * 30


def test_sorted_files_are_copied(tmp_path: Path) -> None:
    path, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    table = rows().sort_by("id")
    pq.write_table(table, path, row_group_size=1000)
    report = fastpq.sort_file(path, target, ["id"])
    assert report.decoded_pages == 0
    assert [column.column_idx for column in fastpq.read_metadata(target).row_group(2).sorting_columns] == [0]
    assert_strangers_read(target, table, {})
    for wrong in (["nope"], ["id", "id"], ["list.list.element.a"]):
        with pytest.raises(fastpq.SchemaError):
            fastpq.sort_file(path, target, wrong)
    with pytest.raises(ValueError, match="no column"):
        fastpq.sort_file(path, target, [])


def test_temporary_files_of_encrypted_sources_are_encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    path = tmp_path / "a.parquet"
    table = rows().append_column("secret", pa.array(["SECRET"] * ROWS))
    fastpq.write_table(table, path, row_group_size=300, encryption_properties=fastpq.FileEncryptionProperties(KEY))
    files: list[Any] = []
    contents: list[bytes] = []
    make_file = tempfile.TemporaryFile

    def make(*arguments: Any, **options: Any) -> Any:
        files.append(make_file(*arguments, **options))
        return files[-1]

    def look(done: int, total: int) -> None:
        assert os.listdir(scratch) == []        # a killed process leaves nothing
        open_files = [each.fileno() for each in files if not each.closed]
        contents.extend(os.pread(file, os.fstat(file).st_size, 0) for file in open_files)

    monkeypatch.setattr("tempfile.TemporaryFile", make)
    fastpq.sort_file(path, path, ["id"], run_bytes=1, decryption_properties=OPENING, progress=look)
    assert len(contents) >= len(files) >= 10
    assert all(len(data) > 100 for data in contents)
    assert all(each.closed for each in files)
    assert not any(b"SECRET" in data for data in contents)
    assert os.listdir(scratch) == []
    assert fastpq.read_table(path, decryption_properties=OPENING)["id"].to_pylist() == list(range(ROWS))


@needs_data
def test_real_files(tmp_path: Path) -> None:
    compared = 0
    for path, theirs in real_files(5000):
        if len(theirs) < 2:
            continue
        target = tmp_path / path.name
        fastpq.rechunk_file(path, target, row_group_size=max(1, len(theirs) // 3))
        assert_rows(target, theirs)
        compared += 1
    assert compared > 20


@needs_data
def test_sorting_real_files(tmp_path: Path) -> None:
    """Files of many writers are sorted by their first column that has an order, as pyarrow sorts the rows that it reads."""
    compared = 0
    for path, theirs in real_files(5000):
        names = [
            field.name for field in theirs.schema
            if pa.types.is_integer(field.type) or pa.types.is_string(field.type) or pa.types.is_boolean(field.type)]
        if len(theirs) < 2 or not names or theirs.column_names.count(names[0]) > 1:
            continue
        target = tmp_path / path.name
        fastpq.sort_file(path, target, names[:1])
        assert_rows(target, theirs.take(pc.sort_indices(theirs, [(names[0], "ascending")])))
        compared += 1
    assert compared > 15


# days and nanoseconds of the day: also outside of all units, more than a day, and negative
STORED_TIMES = [
    (2_440_588, 5), (2_440_587, 86_400_000_000_005), (2_440_589, -1), (0, 0), (4_294_967_295, 7), (2_440_588, 4), (9, 9)]


def write_int96(path: Path, *, is_nested: bool) -> list[bytes | None]:
    """Write INT96 values by their bytes, and return them."""
    stored = [struct.pack("<qI", nanoseconds, day) for day, nanoseconds in STORED_TIMES] * 20
    values = [None if row % 9 == 0 else value for row, value in enumerate(stored)]
    times: Any = [{"time": value} for value in values] if is_nested else values
    out = io.BytesIO()
    kind = pa.struct([("time", pa.binary(12))]) if is_nested else pa.binary(12)
    options: dict[str, Any] = {"row_group_size": 30, "data_page_rows": 7, "write_statistics": ["id"], "arrow_schema": False}
    fastpq.write_table(pa.table({"id": range(len(values)), "at": pa.array(times, kind)}), out, **options)
    data = out.getvalue()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer, _ = fmt.decode(fmt.FileMetaData, data, start)
    footer.schema[-1].type, footer.schema[-1].type_length = fmt.Type.INT96, None
    for group in footer.row_groups:
        present(group.columns[1].meta_data).type = fmt.Type.INT96
    new_footer = fmt.encode(footer)
    path.write_bytes(data[:start] + new_footer + len(new_footer).to_bytes(4, "little") + b"PAR1")
    return values


def stored_int96(path: Path) -> list[bytes | None]:
    """Read INT96 values as their stored bytes, through a footer that calls them bytes."""
    with open_source(path) as source:
        metadata = read_finished(source, fastpq.ReaderProperties(), None)
        file = OpenFile(source, metadata, fastpq.ReaderProperties(), "views", "stored", 1)
        groups = [(group, None) for group in range(metadata.num_row_groups)]
        [column] = FileReader(file).read(ReadRequest(metadata.schema.columns[1:], groups), None, None).columns
    return [value["time"] if isinstance(value, dict) else value for value in column.to_pylist()]


@pytest.mark.parametrize("is_nested", [False, True])
def test_int96_keeps_its_bytes(tmp_path: Path, is_nested: bool) -> None:
    path, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    values = write_int96(path, is_nested=is_nested)
    assert stored_int96(path) == values
    ids = list(range(len(values)))
    fastpq.rechunk_file(path, target, row_group_size=47)
    assert stored_int96(target) == values
    by_id = fastpq.SortingColumn("id", descending=True)
    for run_bytes in (1, 1 << 20):
        fastpq.sort_file(path, target, [by_id], run_bytes=run_bytes)
        assert stored_int96(target) == values[::-1]
    fastpq.delete_rows(path, target, rows=[3, 40, 41])
    assert stored_int96(target) == [value for row, value in enumerate(values) if row not in (3, 40, 41)]
    assert pq.read_table(target)["id"].to_pylist() == [row for row in ids if row not in (3, 40, 41)]
    fastpq.sort_file(path, target, ["at.time" if is_nested else "at", by_id], run_bytes=3000)

    def instant(row: int) -> tuple[bool, int, int]:
        nanoseconds, day = struct.unpack("<qI", values[row] or bytes(12))
        return values[row] is None, day * 86_400 * 10**9 + nanoseconds, -row

    assert pq.read_table(target)["id"].to_pylist() == sorted(ids, key=instant)
    assert stored_int96(target) == [values[row] for row in sorted(ids, key=instant)]
    assert fastpq.read_metadata(target).row_group(0).sorting_columns == []
    fastpq.sort_file(path, target, ["id", "at.time" if is_nested else "at"])
    assert len(fastpq.read_metadata(target).row_group(0).sorting_columns) == 1


def test_int96_is_read_by_strangers(tmp_path: Path) -> None:
    path, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    times = pa.array([datetime(2000 + row % 60, 1, 1 + row % 28, row % 24) for row in range(ROWS)], pa.timestamp("us"))
    pq.write_table(pa.table({"id": range(ROWS), "at": times}), path, use_deprecated_int96_timestamps=True, row_group_size=1000)
    fastpq.sort_file(path, target, ["at"], row_group_size=800)
    expected = pq.read_table(path).sort_by([("at", "ascending"), ("id", "ascending")])["at"].to_pylist()
    assert pq.read_table(target)["at"].to_pylist() == expected
    assert pl.read_parquet(target)["at"].to_list() == expected
    assert [row[0] for row in present(duckdb.sql(f'''select "at" from '{target}' ''')).fetchall()] == expected
