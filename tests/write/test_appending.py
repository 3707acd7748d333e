"""Rows appended to existing files: what strangers read of them, what stays as it was, and what interrupts an append."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.io import appended_file
from fastpq.metadata.file_metadata import decoded_footer
from tests.narrowing import present
from tests.requirements import DATA, needs_data

KEY, COLUMN_KEY = b"0" * 16, b"1" * 16
ROWS = 1000
IN_PLACE = pytest.mark.parametrize("in_place", [False, True])


def table(start: int = 0, stop: int = ROWS) -> dict[str, Any]:
    numbers = np.arange(start, stop)
    return {
        "id": numbers,
        "name": np.array([f"name {number % 7}" for number in numbers], object),
        "lasted": numbers.astype("m8[us]"),
        "price": numbers / 8,
    }


def nested(count: int) -> pa.Table:
    rows = [{"at": number, "tags": [{"k": str(number), "v": [number, None]}] if number % 3 else None} for number in range(count)]
    return pa.Table.from_pylist(rows)


@IN_PLACE
def test_strangers_read_all_rows(tmp_path: Path, in_place: bool) -> None:
    path = tmp_path / "a.parquet"
    fastpq.write_table(table(), path, row_group_size=300, bloom_filter={"name": True}, key_value_metadata={"who": "us"})
    before = path.read_bytes()
    first = decoded_footer(fastpq.read_metadata(path))
    fastpq.append_table(table(ROWS, ROWS + 5), path, in_place=in_place)
    with fastpq.ParquetWriter(path, append=True, in_place=in_place, key_value_metadata={"more": "yes"}) as writer:
        writer.write_batch(table(ROWS + 5, ROWS + 9))
        writer.write_batch(table(ROWS + 9, ROWS + 10))
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]
    expected = list(range(ROWS + 10))
    assert pq.read_table(path)["id"].to_pylist() == expected
    assert pq.read_table(path)["lasted"].to_pylist() == fastpq.read_table(path)["lasted"].to_pylist()
    assert pl.read_parquet(path)["id"].to_list() == expected
    assert present(duckdb.sql(f"select id from '{path}'")).fetchnumpy()["id"].tolist() == expected
    assert present(duckdb.sql(f"select id from '{path}' where id = 1007")).fetchall() == [(1007,)]
    assert fastpq.read_table(path, ["id"], filters=[("name", "==", "name 3")]).num_rows == sum(n % 7 == 3 for n in expected)
    metadata = fastpq.read_metadata(path)
    assert metadata.num_row_groups == 6
    assert metadata.key_value_metadata["who"] == "us"
    assert metadata.key_value_metadata["more"] == "yes"
    footer = decoded_footer(metadata)
    assert footer.row_groups[:4] == first.row_groups      # statistics, indexes and offsets are the old ones
    end = present(first.row_groups[-1].columns[-1].offset_index_offset)
    assert path.read_bytes()[:end] == before[:end]


@IN_PLACE
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"column_keys": {"id": COLUMN_KEY, "name": fastpq.encryption.ColumnEncryptionProperties(COLUMN_KEY, key_metadata=b"n")}},
        {
            "column_keys": {"id": COLUMN_KEY}, "plaintext_footer": True, "unlisted": "plaintext",
            "aad_prefix": b"prefix", "store_aad_prefix": False,
        },
        {"algorithm": "AES_GCM_CTR_V1", "aad_prefix": b"stored"},
    ],
)
def test_encrypted_files_keep_their_keys(tmp_path: Path, in_place: bool, options: dict[str, Any]) -> None:
    path = tmp_path / "a.parquet"
    keys = fastpq.FileEncryptionProperties(KEY, footer_key_metadata=b"kf", **options)
    fastpq.write_table(table(), path, encryption_properties=keys, row_group_size=400)
    opening: dict[str, Any] = {
        "decryption_properties": fastpq.FileDecryptionProperties(
            KEY,
            dict.fromkeys(options.get("column_keys", {}), COLUMN_KEY),
            aad_prefix=options.get("aad_prefix"),
            allowed_algorithms=["AES_GCM_V1", "AES_GCM_CTR_V1"],
        )
    }
    before = fastpq.inspect_encryption(path).files[0]
    with pytest.raises(fastpq.KeyAccessError):
        fastpq.append_table(table(), path, in_place=in_place)
    for start in (ROWS, ROWS + 100):
        fastpq.append_table(table(start, start + 100), path, in_place=in_place, **opening)
    assert fastpq.read_table(path, **opening)["id"].to_pylist() == list(range(ROWS + 200))
    after = fastpq.inspect_encryption(path).files[0]
    assert (after.algorithm, after.footer, after.footer_key, after.columns) == (
        before.algorithm, before.footer, before.footer_key, before.columns
    )
    with fastpq.ParquetFile(path, **opening) as file:
        for group in range(file.num_row_groups):
            assert file.metadata.row_group(group).column(0).is_encrypted
    if not options:
        import pyarrow.parquet.encryption as pe

        theirs = pq.read_table(path, decryption_properties=pe.create_decryption_properties(KEY))
        assert theirs["id"].to_pylist() == list(range(ROWS + 200))


def test_others_files_keep_their_schema(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    both = pa.concat_tables([nested(50), nested(20)])
    for options in ({}, {"version": "1.0", "use_compliant_nested_type": False}, {"data_page_version": "2.0"}):
        pq.write_table(nested(50), path, **options)
        schema = pq.read_schema(path)
        fastpq.append_table(nested(20), path)
        assert pq.read_table(path).to_pylist() == both.to_pylist()
        assert pq.read_schema(path).equals(schema)
        assert fastpq.read_table(path).num_rows == 70
    times = pa.table({"t": pa.array([1, None, 3], pa.timestamp("ns"))})
    pq.write_table(times, path, use_deprecated_int96_timestamps=True)
    fastpq.append_table(times, path)
    assert pq.read_table(path)["t"].to_pylist() == 2 * times["t"].to_pylist()


@needs_data
def test_real_files(tmp_path: Path) -> None:
    """A file's own rows appended to it are there twice, or the append is refused and the file stays as it was."""
    appended = refused = 0
    for source in sorted((DATA / "parquet-testing/data").glob("*.parquet")):
        path = tmp_path / source.name
        path.write_bytes(source.read_bytes())
        try:
            rows = fastpq.read_table(path)
            theirs = pq.read_table(path)
        except (fastpq.ParquetError, OSError, NotImplementedError, pa.ArrowInvalid):
            continue
        try:
            fastpq.append_table(rows, path)
        except fastpq.ParquetError:
            refused += 1
            assert path.read_bytes() == source.read_bytes()
            continue
        twice = pq.read_table(path).slice(len(theirs)).combine_chunks()
        assert repr(twice) == repr(theirs.combine_chunks()), path.name
        appended += 1
    assert appended > 40, (appended, refused)


@IN_PLACE
def test_refused_rows_change_nothing(tmp_path: Path, in_place: bool) -> None:
    path = tmp_path / "a.parquet"
    fastpq.write_table(table(), path)
    before = path.read_bytes()
    wrong = {**table(0, 5), "lasted": np.arange(1, 6).astype("m8[ns]")}
    for rows in ({"id": [1]}, wrong, {**table(0, 5), "price": ["a"] * 5}, {**table(0, 5), "more": np.arange(5)}):
        with pytest.raises(fastpq.SchemaError):
            fastpq.append_table(rows, path, in_place=in_place)
        assert path.read_bytes() == before

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fastpq.append_table(table(0, 5), path, in_place=in_place, progress=interrupt)
    assert path.read_bytes() == before
    keys = fastpq.FileEncryptionProperties(KEY)
    new_only: list[dict[str, Any]] = [{"schema": {"a": int}}, {"if_none_match": "*"}, {"encryption_properties": keys}]
    for arguments in new_only:
        with pytest.raises(ValueError, match="new file"):
            fastpq.ParquetWriter(path, append=True, **arguments)
    with pytest.raises(ValueError, match="append=True"):
        fastpq.ParquetWriter(path, in_place=True)
    with pytest.raises(FileNotFoundError):
        fastpq.append_table(table(), tmp_path / "none.parquet")
    path.write_bytes(before[:-20])
    with pytest.raises(fastpq.FormatError):
        fastpq.append_table(table(), path, in_place=in_place)
    assert path.read_bytes() == before[:-20]


@IN_PLACE
def test_one_of_two_appends_is_told(tmp_path: Path, in_place: bool) -> None:
    path = tmp_path / "a.parquet"
    fastpq.write_table(table(), path)
    with fastpq.ParquetWriter(path, append=True, in_place=in_place) as writer:
        writer.write_table(table(0, 3))
        with pytest.raises((BlockingIOError, fastpq.FormatError)):
            fastpq.append_table(table(0, 5), path)
    assert fastpq.read_table(path).num_rows == ROWS + 3
    writer = fastpq.ParquetWriter(path, append=True)
    writer.write_table(table(0, 5))
    fastpq.write_table(table(0, 7), path)       # a writer that takes no lock
    with pytest.raises(OSError, match="replaced") as caught:
        writer.close()
    assert caught.value.errno == errno.ESTALE
    assert fastpq.read_table(path).num_rows == 7
    fastpq.append_table(table(0, 5), path)      # the lock is free again
    assert fastpq.read_table(path).num_rows == 12


def test_lists_of_one_size(tmp_path: Path) -> None:
    """Lists of another size are refused: pyarrow could not read the file with them."""
    path, pairs = tmp_path / "a.parquet", pa.list_(pa.int64(), 2)
    nested = pa.struct([("p", pairs)])
    pq.write_table(pa.table({"x": pa.array([[1, 2]], pairs), "s": pa.array([{"p": [5, 6]}], nested)}), path)
    before = path.read_bytes()
    for wrong in ({"x": [[1]], "s": [{"p": [1, 2]}]}, {"x": [[1, 2]], "s": [{"p": [1, 2, 3]}]}):
        with pytest.raises(fastpq.SchemaError, match="2"):
            fastpq.append_table(pa.table(wrong), path)
    assert path.read_bytes() == before
    fastpq.append_table(pa.table({"x": [[3, 4], None], "s": [None, {"p": [7, 8]}]}), path)
    assert pq.read_table(path).to_pydict() == {"x": [[1, 2], [3, 4], None], "s": [{"p": [5, 6]}, None, {"p": [7, 8]}]}


def test_a_file_that_is_replaced_while_it_grows(tmp_path: Path) -> None:
    """Rows in a file that nobody can find again are not reported as written."""
    path = tmp_path / "a.parquet"
    for action in (lambda: fastpq.write_table(table(0, 7), path), lambda: os.unlink(path)):
        fastpq.write_table(table(), path)
        writer = fastpq.ParquetWriter(path, append=True, in_place=True)
        writer.write_table(table(0, 5))
        action()
        with pytest.raises(OSError, match="replaced or removed") as caught:
            writer.close()
        assert caught.value.errno == errno.ESTALE
    assert not path.exists()


def test_a_torn_tail_is_cut_back(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    fastpq.write_table(table(), path)
    before = path.read_bytes()
    fastpq.append_table(table(ROWS, ROWS + 50), path, in_place=True)
    after = path.read_bytes()
    assert after[: len(before)] == before
    assert fastpq.recover_table(path, cut_back=True).table.num_rows == ROWS + 50
    assert path.read_bytes() == after
    for size in range(len(before) + 1, len(after), 97):
        path.write_bytes(after[:size])
        with pytest.raises(fastpq.FormatError):
            fastpq.read_table(path)
        recovered = fastpq.recover_table(path, cut_back=True)
        assert (recovered.table.num_rows, recovered.report.found_by) == (ROWS, "footer")
        assert path.read_bytes() == before
    with fastpq.ParquetWriter(tmp_path / "new", checkpoint_every=1, row_group_size=100) as writer:
        writer.write_table(table())
    whole = (tmp_path / "new").read_bytes()
    path.write_bytes(whole[:-30])
    with pytest.raises(fastpq.FormatError, match="no complete footer"):
        fastpq.recover_table(path, cut_back=True)
    assert path.read_bytes() == whole[:-30]


@pytest.mark.parametrize("way", ["kernel", "reading"])
def test_ways_of_copying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.setattr(appended_file, "_clone", lambda *_: False)
    if way == "reading":
        monkeypatch.delattr(os, "copy_file_range", raising=False)
    path = tmp_path / "a.parquet"
    fastpq.write_table(table(), path)
    fastpq.append_table(table(ROWS, ROWS + 50), path)
    assert pq.read_table(path)["id"].to_pylist() == list(range(ROWS + 50))


def test_remote_files(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    fastpq.write_table(table(), path)
    import fsspec

    memory = fsspec.filesystem("memory")
    fastpq.write_table(table(), "memory://appended/a.parquet")
    fastpq.append_table(table(ROWS, ROWS + 50), "memory://appended/a.parquet")
    assert fastpq.read_table("memory://appended/a.parquet")["id"].to_pylist() == list(range(ROWS + 50))
    with pytest.raises(fastpq.SchemaError, match="in_place"):
        fastpq.append_table(table(), "memory://appended/a.parquet", in_place=True)
    with pytest.raises(fastpq.SchemaError, match="path"):
        fastpq.append_table(table(), path.read_bytes())
    memory.rm("/appended", recursive=True)


def test_statements_about_all_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    frame = pd.DataFrame({"a": [1, 2, 3], "c": pd.Categorical(["x", "y", "x"])}, index=pd.RangeIndex(5, 11, 2, name="n"))
    geo = {"version": "1.1.0", "columns": {"g": {"encoding": "WKB", "bbox": [0, 0, 1, 1], "geometry_types": ["Point"]}}}
    entries = {"geo": json.dumps(geo), "hoodie_max_record_key": "z"}
    fastpq.write_table(frame, path, key_value_metadata=entries, arrow_schema=True)
    fastpq.append_table(pd.DataFrame({"a": [4], "c": pd.Categorical(["z"])}), path)
    read = fastpq.read_pandas(path)
    assert read.index.equals(pd.RangeIndex(5, 13, 2, name="n"))
    assert read["c"].tolist() == ["x", "y", "x", "z"]
    theirs = pq.read_table(path).to_pandas()
    assert theirs.index.equals(read.index)
    assert theirs["c"].tolist() == ["x", "y", "x", "z"]
    metadata = fastpq.read_metadata(path).key_value_metadata
    assert "hoodie_max_record_key" not in metadata
    assert json.loads(present(metadata["geo"]))["columns"]["g"] == {"encoding": "WKB", "geometry_types": []}
    with_calendar = {"org.apache.spark.legacyDateTime": "", "org.apache.spark.version": "3.0.0"}
    fastpq.write_table({"d": np.array(["2020-01-01"], "M8[D]")}, path, key_value_metadata=with_calendar)
    with pytest.raises(fastpq.UnsupportedError, match="calendar"):
        fastpq.append_table({"d": np.array(["2020-01-01"], "M8[D]")}, path)


def test_the_order_of_floats_stays(tmp_path: Path) -> None:
    for order in ("type", "total"):
        path = tmp_path / f"{order}.parquet"
        fastpq.write_table({"f": [1.0, float("nan")]}, path, float_order=order)
        fastpq.append_table({"f": [float("nan")]}, path, float_order="type")
        fastpq.append_table({"f": [5.0]}, path, float_order="total")
        footer = decoded_footer(fastpq.read_metadata(path))
        name = "IEEE_754_TOTAL_ORDER" if order == "total" else "TYPE_ORDER"
        assert getattr(present(footer.column_orders)[0], name) is not None
        groups = [present(group.columns[0].meta_data) for group in footer.row_groups]
        assert [present(group.statistics).min_value is not None for group in groups] == [True, order == "total", True]
        assert fastpq.read_table(path, filters=[("f", "==", 5)]).num_rows == 1


def test_metadata_files_follow(tmp_path: Path) -> None:
    fastpq.write_dataset({"p": [1, 1, 2], "v": [1, 2, 3]}, tmp_path, partition_by=["p"], write_metadata_file=True)
    path = next((tmp_path / "p=1").glob("*.parquet"))
    fastpq.append_table({"v": np.array([7])}, path)
    whole = pq.read_metadata(tmp_path / "_metadata")
    assert whole.num_rows == 4
    assert sorted(fastpq.read_dataset(tmp_path)["v"].to_pylist()) == [1, 2, 3, 7]


def test_appending_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    fastpq.write_table(table(), path)
    with fastpq.ParquetWriter(path, append=True):
        pass
    fastpq.append_table(table(0, 0), path)
    assert pq.read_table(path).num_rows == ROWS
    with fastpq.ParquetWriter(path, {"id": "int64"}):
        pass
    fastpq.append_table({"id": np.arange(9)}, path)
    assert pq.read_table(path)["id"].to_pylist() == list(range(9))
