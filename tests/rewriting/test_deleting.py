"""delete_rows: what strangers read of the rest, which bytes are copied, and that nothing is left of deleted values."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.rewriting.stored_entries import with_blanks
from fastpq.schema.types import ColumnType, Integer, Type
from fastpq.schema.types import Decimal as Decimal_
from tests.narrowing import present
from tests.requirements import needs_data
from tests.rewriting.verbs import assert_rows, real_files

ROWS = 3000
DELETED = [777, 1500]
SECRET_NUMBER = 7_777_777_777_777
KEY = b"0" * 16
WRITERS: dict[str, dict[str, Any]] = {
    "pyarrow": {"data_page_size": 500, "max_rows_per_page": 100, "write_page_index": True, "compression": "none"},
    "pyarrow, V2": {"data_page_size": 500, "max_rows_per_page": 100, "data_page_version": "2.0", "compression": "zstd"},
    "pyarrow, plain": {"max_rows_per_page": 100, "use_dictionary": False, "compression": "gzip"},
    "fastpq": {"data_page_rows": 100, "bloom_filter": {"key": True, "id": True, "list": True}, "compression": "none"},
    "fastpq, V2": {"data_page_rows": 100, "data_page_version": "2.0"},
    "fastpq, total order": {"data_page_rows": 100, "float_order": "total", "encoding": "auto"},
}
EACH_WRITER = pytest.mark.parametrize("writer", WRITERS)


def rows() -> pa.Table:
    random = np.random.default_rng(1)
    return pa.table(
        {
            "id": [SECRET_NUMBER if row in DELETED else row for row in range(ROWS)],
            "key": [f"SECRET {row}" if row in DELETED else f"key {row % 50}" for row in range(ROWS)],
            "maybe": [None if row % 5 == 0 else row % 11 for row in range(ROWS)],
            "list": [[{"a": row % 7, "b": "HIDDEN" if row in DELETED else f"b {row % 13}"}] * (row % 3) for row in range(ROWS)],
            "price": [1e300 if row in DELETED else value for row, value in enumerate(random.random(ROWS).tolist())],
            "flag": random.random(ROWS) > 0.5,
        }
    )


def write(path: Path, writer: str) -> None:
    if writer.startswith("pyarrow"):
        pq.write_table(rows(), path, row_group_size=1000, **WRITERS[writer])
    else:
        fastpq.write_table(rows(), path, row_group_size=1000, **WRITERS[writer])


def rest() -> pa.Table:
    return rows().filter(pa.array(~np.isin(np.arange(ROWS), DELETED)))


def assert_nothing_is_left(data: bytes) -> None:
    """Uncompressed, no byte of a deleted value is in the file; neither its hashes in bloom filters."""
    out = io.BytesIO()
    fastpq.recompress_file(data, out, "none")
    for plain in (data, out.getvalue()):
        for value in (b"SECRET", b"HIDDEN", SECRET_NUMBER.to_bytes(8, "little"), np.float64(1e300).tobytes()):
            assert value not in plain
    with fastpq.ParquetFile(data) as file:
        for group in range(file.num_row_groups):
            for name, value in (("id", SECRET_NUMBER.to_bytes(8, "little")), ("key", f"SECRET {DELETED[0]}".encode())):
                bloom_filter = file.bloom_filter(group, name)
                assert bloom_filter is None or not bloom_filter.might_contain(value)


@EACH_WRITER
@pytest.mark.parametrize("by_filter", [True, False])
def test_strangers_read_the_rest(tmp_path: Path, writer: str, by_filter: bool) -> None:
    source, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    write(source, writer)
    if by_filter:
        report = fastpq.delete_rows(source, target, [("id", "==", SECRET_NUMBER)])
    else:
        report = fastpq.delete_rows(source, target, rows=DELETED)
    expected = rest().to_pylist()
    assert pa.table(fastpq.read_table(target)).to_pylist() == expected
    assert pq.read_table(target).to_pylist() == expected
    assert pl.read_parquet(target).to_arrow().to_pylist() == expected
    total = sum(row["id"] for row in expected)
    assert present(duckdb.sql(f"select count(*), sum(id) from '{target}'")).fetchall() == [(len(expected), total)]
    assert present(duckdb.sql(f"select id from '{target}' where id = 1501")).fetchall() == [(1501,)]
    assert fastpq.read_table(target, filters=[("id", "==", 1501)])["key"].to_pylist() == ["key 1"]
    assert fastpq.read_table(target, filters=[("key", "==", "key 7")]).num_rows == sum(row["key"] == "key 7" for row in expected)
    assert report.decoded_pages < 60     # a nested V1 chunk without an index is decoded whole
    assert report.copied_pages > report.decoded_pages
    fastpq.verify_file(target)
    assert_nothing_is_left(target.read_bytes())


def test_other_pages_are_the_same_bytes(tmp_path: Path) -> None:
    source, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    write(source, "fastpq")
    fastpq.delete_rows(source, target, rows=DELETED)
    old, new = source.read_bytes(), target.read_bytes()
    with fastpq.ParquetFile(old) as one, fastpq.ParquetFile(new) as other:
        for group, name in ((group, name) for group in range(3) for name in ("id", "key", "maybe", "price")):
            pages = [present(file.offset_index(group, name)) for file in (one, other)]
            stored = [
                {data[start : start + size] for start, size in zip(index.offsets.tolist(), index.sizes.tolist(), strict=True)}
                for data, index in zip((old, new), pages, strict=True)
            ]
            assert len(stored[0] - stored[1]) <= 1     # the page with the deleted row
            assert present(other.column_index(group, name)).num_pages == pages[1].num_pages


@pytest.mark.parametrize("options", [{}, {"column_keys": {"key": KEY[::-1]}}, {"plaintext_footer": True}])
def test_encrypted_files(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "a.parquet"
    keys = fastpq.FileEncryptionProperties(KEY, **options)
    settings: dict[str, Any] = {"row_group_size": 1000, "data_page_rows": 100, "encryption_properties": keys}
    fastpq.write_table(rows(), path, compression="none", bloom_filter={"key": True}, **settings)
    opening = fastpq.FileDecryptionProperties(KEY, options.get("column_keys"))
    report = fastpq.delete_rows(path, path, rows=DELETED, decryption_properties=opening)
    assert report.copied_pages > 100
    assert pa.table(fastpq.read_table(path, decryption_properties=opening)).to_pylist() == rest().to_pylist()
    out = io.BytesIO()
    fastpq.decrypt_file(path, out, opening)
    assert_nothing_is_left(out.getvalue())


def test_whole_row_groups(tmp_path: Path) -> None:
    source, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    write(source, "fastpq")
    report = fastpq.delete_rows(source, target, rows=range(1000, 2000))
    assert (report.decoded_pages, fastpq.read_metadata(target).num_row_groups) == (0, 2)
    assert pq.read_table(target).num_rows == 2000
    assert fastpq.delete_rows(source, target, [("id", "<", 0)]).decoded_pages == 0
    assert pq.read_table(target).to_pylist() == rows().to_pylist()
    fastpq.delete_rows(source, target, [("id", ">=", 0)])
    assert pq.read_table(target).num_rows == 0
    fastpq.delete_rows(source, target, rows=[row for row in range(ROWS) if row % 2])
    assert pq.read_table(target).to_pylist() == rows().to_pylist()[::2]
    fastpq.delete_rows(source, target, rows=range(50, 2950))
    assert pq.read_table(target)["id"].to_pylist() == [*range(50), *range(2950, 3000)]


def test_metadata_with_values(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    geo = {"version": "1.1.0", "columns": {"key": {"encoding": "WKB", "bbox": [0, 0, 1, 1]}}}
    fastpq.write_table(rows(), path, key_value_metadata={"geo": json.dumps(geo), "hoodie_max_record_key": "SECRET 777"})
    report = fastpq.delete_rows(path, path, rows=DELETED)
    assert {entry.key for entry in report.dropped_metadata} >= {"geo", "hoodie_max_record_key"}
    assert_nothing_is_left(path.read_bytes())


def test_dictionaries_keep_different_entries(tmp_path: Path) -> None:
    """Blanks differ from each other and from all other entries, because readers may look for equal ones."""
    path = tmp_path / "a.parquet"
    names = ["", " ", "x", *(f"only {number}" for number in range(5)), "y"] * 1 + ["x", "y", "", " "] * 250
    table = pa.table({"name": names, "small": pa.array([number % 256 for number in range(len(names))], pa.uint8())})
    fastpq.write_table(table, path, data_page_rows=10, compression="none")
    deleted = list(range(3, 8))
    fastpq.delete_rows(path, path, rows=deleted)
    assert b"only" not in path.read_bytes()
    left = [name for row, name in enumerate(names) if row not in deleted]
    assert pq.read_table(path, read_dictionary=["name"])["name"].to_pylist() == left
    assert fastpq.read_table(path, strings="dictionary")["name"].to_pylist() == left
    assert fastpq.read_pandas(path)["name"].tolist() == left


def test_refusals_and_interruptions(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write(path, "fastpq")
    before = path.read_bytes()
    with pytest.raises(ValueError, match="filters or rows"):
        fastpq.delete_rows(path, path)
    with pytest.raises(ValueError, match="filters or rows"):
        fastpq.delete_rows(path, path, [("id", "==", 1)], rows=[1])
    for wrong in ([-1], [ROWS]):
        with pytest.raises(fastpq.SchemaError, match="no row"):
            fastpq.delete_rows(path, path, rows=wrong)
    with pytest.raises(fastpq.SchemaError):
        fastpq.delete_rows(path, path, [("nope", "==", 1)])

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fastpq.delete_rows(path, path, rows=DELETED, progress=interrupt)
    assert path.read_bytes() == before
    damaged = before[:300] + bytes([before[300] ^ 1]) + before[301:]
    path.write_bytes(damaged)
    with pytest.raises(fastpq.ParquetError):
        fastpq.delete_rows(path, path, rows=[0])
    assert path.read_bytes() == damaged


@needs_data
def test_real_files(tmp_path: Path) -> None:
    compared = 0
    for path, theirs in real_files():
        if len(theirs) < 3:
            continue
        target = tmp_path / path.name
        try:
            fastpq.delete_rows(path, target, rows=[0, len(theirs) - 1])
        except fastpq.UnsupportedError:
            continue
        assert_rows(target, theirs.slice(1, len(theirs) - 2))
        compared += 1
    assert compared > 30


def test_a_large_dictionary_with_few_entries_left(tmp_path: Path) -> None:
    """Blanks are short, however many there are."""
    texts, path = [f"secret {row}" for row in range(20_000)], tmp_path / "a.parquet"
    pages: dict[str, Any] = {"data_page_size": 500, "write_batch_size": 100, "write_page_index": True, "compression": "none"}
    pq.write_table(pa.table({"s": texts}), path, dictionary_pagesize_limit=1 << 24, **pages)
    report = fastpq.delete_rows(path, tmp_path / "b.parquet", rows=range(19_000))
    assert report.copied_pages > 0
    assert pq.read_table(tmp_path / "b.parquet")["s"].to_pylist() == texts[19_000:]
    assert (tmp_path / "b.parquet").stat().st_size < path.stat().st_size
    assert fastpq.verify_file(tmp_path / "b.parquet").is_sound


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("values", [
    pa.array(["SECRET"] * 5 + [None] * 10, pa.string()),
    pa.array([5] * 5 + [None] * 10, pa.int64()),
    pa.array([["SECRET"]] * 5 + [[]] * 5 + [None] * 5, pa.list_(pa.string())),
], ids=["text", "number", "list"])
def test_pages_of_nulls_keep_their_dictionary(version: str, values: pa.Array) -> None:
    """A page of nulls is dictionary-encoded too: without a dictionary page, pyarrow refuses the chunk."""
    source, target = io.BytesIO(), io.BytesIO()
    pq.write_table(pa.table({"v": values}), source, data_page_size=1, write_batch_size=5, compression="none",
                   data_page_version=version)
    fastpq.delete_rows(source.getvalue(), target, rows=range(5))
    assert pq.read_table(target)["v"].to_pylist() == values[5:].to_pylist()
    assert pl.read_parquet(target.getvalue())["v"].to_list() == values[5:].to_pylist()
    assert not fastpq.verify_file(target.getvalue()).violations
    assert b"SECRET" not in target.getvalue()


@pytest.mark.parametrize("digits", [1, 3, 15, 30])
@pytest.mark.parametrize("as_integer", [False, True])
def test_blanks_of_decimals_are_decimals(digits: int, as_integer: bool) -> None:
    """Readers check the digits of all entries of a dictionary: a blank may not have more than the type."""
    most = min(10**digits - 1, 40)
    values = [Decimal(number) for number in [*range(-most, most + 1), *([most] * 80)]]
    source, target = io.BytesIO(), io.BytesIO()
    pq.write_table(pa.table({"v": pa.array(values, pa.decimal128(digits, 0))}), source, data_page_size=1, write_batch_size=9,
                   store_decimal_as_integer=as_integer)
    stop = len(values) - 80
    fastpq.delete_rows(source.getvalue(), target, rows=range(stop))
    assert pq.read_table(target)["v"].to_pylist() == values[stop:]
    assert fastpq.read_table(target.getvalue())["v"].to_pylist() == values[stop:]
    assert not fastpq.verify_file(target.getvalue()).violations


@pytest.mark.parametrize(("type_", "numbers", "order"), [
    (ColumnType(Type.BYTE_ARRAY, logical=Decimal_(3, 0)), range(-500, 501), "big"),
    (ColumnType(Type.FIXED_LEN_BYTE_ARRAY, length=2, logical=Decimal_(3, 0)), range(500), "big"),
    (ColumnType(Type.INT32, logical=Integer(8, True)), range(-128, 128), "little"),
])
def test_blanks_are_values_of_the_type(type_: ColumnType, numbers: range, order: Literal["big", "little"]) -> None:
    width = {Type.BYTE_ARRAY: 0, Type.FIXED_LEN_BYTE_ARRAY: 2, Type.INT32: 4}[type_.physical]
    entries = [number.to_bytes(width or 2, order, signed=True) for number in numbers]
    plain = b"".join(entry if width else len(entry).to_bytes(4, "little") + entry for entry in entries)
    is_used = np.zeros(len(entries), np.bool_)
    is_used[7] = True
    blanked = with_blanks(plain, is_used, width, type_)
    position, new_numbers = 0, []
    for _ in entries:
        size = width or int.from_bytes(blanked[position : position + 4], "little")
        position += 0 if width else 4
        new_numbers.append(int.from_bytes(blanked[position : position + size], order, signed=True))
        position += size
    assert position == len(blanked)
    assert new_numbers[7] == numbers[7]
    assert all(-128 <= number < 128 if type_.physical == Type.INT32 else abs(number) < 1000 for number in new_numbers)
