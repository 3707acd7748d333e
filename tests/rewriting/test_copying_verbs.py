"""project_file, recompress_file, strip_file and evolve_file: what strangers read, what stays, and what interrupts them."""

from __future__ import annotations

import io
from collections.abc import Callable
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
from fastpq.encryption.keys import CryptoFactory, EncryptionConfiguration, KmsConnectionConfig
from fastpq.encryption.keys.keyring import Keyring
from fastpq.metadata.file_metadata import decoded_footer
from tests.narrowing import present
from tests.requirements import DATA, needs_data

KEY, COLUMN_KEY = b"0" * 16, b"1" * 16
ROWS = 1000
PROJECTED = ["d", "s.y", "l", "m", "c", "id"]


def rows() -> pa.Table:
    return pa.table(
        {
            "id": np.arange(ROWS),
            "s": [{"x": row, "y": str(row)} for row in range(ROWS)],
            "m": pa.array([[("k", row)] for row in range(ROWS)], pa.map_(pa.string(), pa.int64())),
            "c": pa.array(["u", "v"] * (ROWS // 2)).dictionary_encode(),
            "l": [[{"p": row, "q": None}] * (row % 3) for row in range(ROWS)],
            "d": pa.array(np.arange(ROWS), pa.duration("us")),
        }
    )


def files(folder: Path) -> list[Path]:
    """Files by two writers, in both page versions, with and without indexes."""
    paths = [folder / f"{number}.parquet" for number in range(3)]
    pq.write_table(rows(), paths[0], row_group_size=300, write_page_index=True, data_page_size=1000)
    pq.write_table(rows(), paths[1], data_page_version="2.0", compression="zstd", row_group_size=400)
    options: dict[str, Any] = {"row_group_size": 300, "data_page_rows": 50, "key_value_metadata": {"who": "us"}}
    fastpq.write_table(rows(), paths[2], arrow_schema=True, bloom_filter={"c": True}, sorting_columns=["id"], **options)
    return paths


def verbs() -> dict[str, Callable[..., fastpq.RewritingReport]]:
    return {
        "project": lambda source, target, **options: fastpq.project_file(source, target, PROJECTED, **options),
        "recompress": lambda source, target, **options: fastpq.recompress_file(source, target, "gzip", **options),
        "strip": lambda source, target, **options: fastpq.strip_file(source, target, key_values=False, **options),
        "evolve": lambda source, target, **options: fastpq.evolve_file(source, target, names={"id": "number"}, **options),
    }


EACH_VERB = pytest.mark.parametrize("verb", verbs().values(), ids=verbs().keys())


def expected(name: str) -> pa.Table:
    table = rows()
    if name == "project":
        parts = table.column("s").combine_chunks().field("y")
        table = table.set_column(1, "s", pa.StructArray.from_arrays([parts], ["y"]))
        return table.select(["d", "s", "l", "m", "c", "id"])
    return table.rename_columns(["number", *table.column_names[1:]]) if name == "evolve" else table


@pytest.mark.parametrize("name", verbs())
def test_strangers_read(tmp_path: Path, name: str) -> None:
    target = tmp_path / "target.parquet"
    table = expected(name)
    for source in files(tmp_path):
        report = verbs()[name](source, target)
        theirs = pq.read_table(target)
        assert theirs.to_pylist() == table.to_pylist(), source
        assert theirs.schema.remove_metadata().equals(table.schema), source
        assert pl.read_parquet(target, columns=table.column_names[-1:]).height == ROWS
        assert present(duckdb.sql(f"select sum(s.y::int) from '{target}'")).fetchall() == [(ROWS * (ROWS - 1) // 2,)]
        assert pa.table(fastpq.read_table(target)).to_pylist() == table.to_pylist()
        assert report.copied_pages + report.changed_pages > 10
        assert report.decoded_pages == 0
        assert (report.copied_pages == 0) == (name in ("recompress", "strip"))


def test_copied_pages_are_the_same_bytes(tmp_path: Path) -> None:
    for source in files(tmp_path):
        fastpq.project_file(source, tmp_path / "target.parquet", ["c", "id"])
        old, new = source.read_bytes(), (tmp_path / "target.parquet").read_bytes()
        with fastpq.ParquetFile(old) as one, fastpq.ParquetFile(new) as other:
            for group in range(one.num_row_groups):
                for path in ("id", "c"):
                    chunks = [file.metadata.row_group(group).column(file.schema.column(path).index) for file in (one, other)]
                    start, size = chunks[0].byte_range
                    begin, length = chunks[1].byte_range
                    assert old[start : start + size] == new[begin : begin + length]
                    indexes = [file.offset_index(group, path) for file in (one, other)]
                    assert (indexes[0] is None) == (indexes[1] is None)
                    if indexes[0] is not None and indexes[1] is not None:
                        assert (indexes[0].offsets - start).tolist() == (indexes[1].offsets - begin).tolist()


@EACH_VERB
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"column_keys": {"id": COLUMN_KEY, "c": COLUMN_KEY}, "footer_key_metadata": b"kf"},
        {
            "column_keys": {"id": COLUMN_KEY}, "plaintext_footer": True, "unlisted": "plaintext",
            "aad_prefix": b"p", "store_aad_prefix": False,
        },
        {"algorithm": "AES_GCM_CTR_V1"},
    ],
)
def test_encrypted_files_keep_their_keys(tmp_path: Path, verb: Callable[..., Any], options: dict[str, Any]) -> None:
    path, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    keys = fastpq.FileEncryptionProperties(KEY, **options)
    fastpq.write_table(rows(), path, row_group_size=300, encryption_properties=keys, bloom_filter={"id": True})
    column_keys = dict.fromkeys(options.get("column_keys", {}), COLUMN_KEY)
    opening = fastpq.FileDecryptionProperties(
        KEY,
        {**column_keys, **({"number": COLUMN_KEY} if "id" in column_keys else {})},
        aad_prefix=options.get("aad_prefix"),
        allowed_algorithms=["AES_GCM_V1", "AES_GCM_CTR_V1"],
        allow_missing_columns=True,
    )
    with pytest.raises((fastpq.KeyAccessError, fastpq.SchemaError)):
        verb(path, target)
    assert not target.exists()
    verb(path, target, decryption_properties=opening)
    name = "number" if "number" in fastpq.read_schema(target, decryption_properties=opening).names else "id"
    read = fastpq.read_table(target, decryption_properties=opening)
    assert read[name].to_pylist() == list(range(ROWS))
    before, after = (fastpq.inspect_encryption(place).files[0] for place in (path, target))
    assert (after.algorithm, after.footer, after.footer_key) == (before.algorithm, before.footer, before.footer_key)
    with fastpq.ParquetFile(target, decryption_properties=opening) as file:
        assert file.metadata.row_group(1).column(file.schema.column(name).index).is_encrypted
        old = fastpq.read_metadata(path, decryption_properties=opening)
        assert file.metadata.encryption_algorithm != old.encryption_algorithm
    verb(path, path, decryption_properties=opening, encryption_properties=fastpq.FileEncryptionProperties(COLUMN_KEY))
    assert fastpq.read_table(path, decryption_properties=fastpq.FileDecryptionProperties(COLUMN_KEY)).num_rows == ROWS


def test_key_material_beside_the_file(tmp_path: Path) -> None:
    keyring = Keyring.create(tmp_path / "keyring", "secret", scrypt_log_n=10)
    keyring.create_key("k")
    factory, connection = CryptoFactory(lambda _: keyring), KmsConnectionConfig()
    configuration = EncryptionConfiguration("k", uniform_encryption=True, internal_key_material=False)
    path, target = tmp_path / "a.parquet", tmp_path / "deeper" / "b.parquet"
    target.parent.mkdir()
    keys = factory.file_encryption_properties(connection, configuration, path)
    fastpq.write_table(rows(), path, encryption_properties=keys)
    opening = factory.file_decryption_properties(connection, parquet_file_path=path)
    for place in (target, path):
        fastpq.recompress_file(path, place, "zstd", decryption_properties=opening)
        keys_of_place = factory.file_decryption_properties(connection, parquet_file_path=place)
        assert fastpq.read_table(place, decryption_properties=keys_of_place).num_rows == ROWS


@EACH_VERB
def test_an_interrupted_verb_changes_nothing(tmp_path: Path, verb: Callable[..., Any]) -> None:
    path = files(tmp_path)[2]
    before = path.read_bytes()
    calls: list[tuple[int, int]] = []
    verb(path, tmp_path / "target", progress=lambda done, total: calls.append((done, total)))
    assert calls == [(300, ROWS), (600, ROWS), (900, ROWS), (ROWS, ROWS)]

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verb(path, path, progress=interrupt)
    assert path.read_bytes() == before
    for damage in (before[:-30], before[:200] + bytes([before[200] ^ 1]) + before[201:]):
        path.write_bytes(damage)
        with pytest.raises(fastpq.ParquetError):
            verb(path, path)
        assert path.read_bytes() == damage


@needs_data
@pytest.mark.parametrize("name", ["recompress", "strip", "evolve", "project"])
def test_real_files(tmp_path: Path, name: str) -> None:
    """pyarrow reads of a rewritten file what it reads of the old one."""
    compared = 0
    for path in sorted((DATA / "parquet-testing/data").glob("*.parquet")):
        target = tmp_path / path.name
        try:
            theirs = pq.read_table(path)
            schema = fastpq.read_schema(path)
        except (OSError, NotImplementedError, pa.ArrowInvalid, fastpq.ParquetError):
            continue
        if path.name == "overflow_i16_page_cnt.parquet" or "corrupt" in path.name:
            continue
        order = list(reversed(schema.names))
        renamed = {column: f"{column} 2" for column in schema.names if schema.names.count(column) == 1}
        if name == "recompress":
            fastpq.recompress_file(path, target, "zstd", compression_level=3)
        elif name == "strip":
            fastpq.strip_file(path, target, key_values=False)
        elif name == "evolve":
            fastpq.evolve_file(path, target, names=renamed)
        else:
            fastpq.project_file(path, target, order)
        read = pq.read_table(target)
        if name == "evolve":
            theirs = theirs.rename_columns([renamed.get(column, column) for column in theirs.column_names])
        elif name == "project" and len(set(order)) == len(order):
            theirs = theirs.select(order)
        assert read.column_names == theirs.column_names
        for one, other in zip(read.columns, theirs.columns, strict=True):       # their types have the names of columns in maps
            assert str(one.combine_chunks()) == str(other.combine_chunks()), path.name
        compared += 1
    assert compared > 45


def test_recompressing(tmp_path: Path) -> None:
    target = tmp_path / "target.parquet"
    for source in files(tmp_path):
        for codec in ("none", "snappy", "zstd", "lz4", "brotli", "gzip"):
            fastpq.recompress_file(source, target, codec)
            chunk = pq.ParquetFile(target).metadata.row_group(0).column(0)
            assert chunk.compression == {"none": "UNCOMPRESSED"}.get(codec, codec.upper())
            assert pq.read_table(target).to_pylist() == rows().to_pylist()
        report = fastpq.recompress_file(source, target, {"id": "gzip"})
        assert (report.copied_pages > 0, report.changed_pages > 0) == (True, True)
        with pytest.raises(fastpq.SchemaError):
            fastpq.recompress_file(source, target, "bzip2")
        with pytest.raises(fastpq.SchemaError, match="nope"):
            fastpq.recompress_file(source, target, {"nope": "gzip"})


def test_stripping(tmp_path: Path) -> None:
    source, target = files(tmp_path)[2], tmp_path / "target.parquet"
    fastpq.strip_file(source, target)
    footer = decoded_footer(fastpq.read_metadata(target))
    assert footer.key_value_metadata is None
    for group in footer.row_groups:
        for chunk in group.columns:
            metadata = present(chunk.meta_data)
            assert chunk.offset_index_offset is chunk.column_index_offset is metadata.bloom_filter_offset is None
            assert metadata.statistics is None
            assert metadata.size_statistics is None
    report = fastpq.strip_file(source, target, page_index=False, bloom_filters=False, key_values=["who"])
    assert [entry.key for entry in report.dropped_metadata] == ["who"]
    with fastpq.ParquetFile(target) as file:
        assert file.offset_index(0, "id") is not None
        assert file.column_index(0, "id") is None
        assert file.bloom_filter(0, "c") is not None
        assert file.metadata.key_value_metadata.keys() == {"ARROW:schema"}
    assert b"us" not in (pq.read_schema(target).metadata or {}).values()
    with pytest.raises(TypeError):
        fastpq.strip_file(source, target, key_values="who")


def test_projecting(tmp_path: Path) -> None:
    source, target = files(tmp_path)[2], tmp_path / "target.parquet"
    fastpq.project_file(source, target, ["c", "id"])
    footer = decoded_footer(fastpq.read_metadata(target))
    assert [column.column_idx for column in present(footer.row_groups[0].sorting_columns)] == [1]
    assert fastpq.read_table(target, filters=[("id", "==", 7)])["c"].to_pylist() == ["v"]
    for columns in ([], ["nope"], ["m.key_value.key"]):
        with pytest.raises(fastpq.SchemaError):
            fastpq.project_file(source, target, columns)
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]}, index=pd.Index([7, 8], name="i"))
    fastpq.write_table(frame, source)
    fastpq.project_file(source, target, ["b", "i"])
    for read in (fastpq.read_pandas(target), pq.read_table(target).to_pandas(), pd.read_parquet(target)):
        pd.testing.assert_frame_equal(read, frame[["b"]])


def test_evolving(tmp_path: Path) -> None:
    source, target = files(tmp_path)[2], tmp_path / "target.parquet"
    report = fastpq.evolve_file(source, target, names={"s.y": "text", "id": "c2"}, field_ids={"id": 7, "s": 8})
    assert [entry.key for entry in report.dropped_metadata] == ["ARROW:schema"]
    schema = fastpq.read_schema(target)
    assert schema.names[:2] == ("c2", "s")
    assert (schema.root.children[0].field_id, schema.root.children[1].field_id) == (7, 8)
    assert pq.read_table(target)["s"].to_pylist()[3] == {"x": 3, "text": "3"}
    assert pq.read_schema(target).field("c2").metadata[b"PARQUET:field_id"] == b"7"
    fastpq.evolve_file(target, target, field_ids={"c2": None})
    assert fastpq.read_schema(target).root.children[0].field_id is None
    for names in ({"nope": "x"}, {"id": "c"}):
        with pytest.raises(fastpq.SchemaError):
            fastpq.evolve_file(source, target, names=names)
    out = io.BytesIO()
    fastpq.evolve_file(source.read_bytes(), out, names={"id": "n"})
    assert pq.read_table(io.BytesIO(out.getvalue())).column_names[0] == "n"


def test_metadata_files_follow(tmp_path: Path) -> None:
    fastpq.write_dataset({"p": [1, 1, 2], "v": [1, 2, 3]}, tmp_path, partition_by=["p"], write_metadata_file=True)
    path = next((tmp_path / "p=1").glob("*.parquet"))
    fastpq.recompress_file(path, path, "zstd")
    assert pq.ParquetFile(tmp_path / "_metadata").metadata.row_group(0).column(0).compression == "ZSTD"
    fastpq.evolve_file(path, path, names={"v": "w"})
    assert not (tmp_path / "_metadata").exists()


def test_widening(tmp_path: Path) -> None:
    """Columns get wider types. Other columns are the same bytes."""
    table = pa.table(
        {
            "i8": pa.array([None if row % 7 == 0 else row % 100 - 50 for row in range(ROWS)], pa.int8()),
            "u32": pa.array([4_000_000_000 + row for row in range(ROWS)], pa.uint32()),
            "i32": pa.array(range(ROWS), pa.int32()),
            "f32": pa.array([row / 8 for row in range(ROWS)], pa.float32()),
            "f16": pa.array(np.arange(ROWS, dtype=np.float16)),
            "list": pa.array([[{"a": row, "b": str(row)}] * (row % 3) for row in range(ROWS)],
                             pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())]))),
            "text": [str(row) for row in range(ROWS)],
        }
    )
    types = {"i8": "int64", "u32": "int64", "i32": np.int64, "f32": "float64", "f16": pa.float64()}
    types["list.list.element.a"] = "int64"
    source, target = tmp_path / "source.parquet", tmp_path / "target.parquet"
    keys, opening = fastpq.FileEncryptionProperties(KEY), fastpq.FileDecryptionProperties(KEY)
    expected = table.to_pylist()
    for number in range(3):
        options: dict[str, Any] = {"decryption_properties": opening} if number == 2 else {}
        if number == 0:
            pq.write_table(table, source, row_group_size=300, sorting_columns=[pq.SortingColumn(2)])
        else:
            more: dict[str, Any] = {"encryption_properties": keys} if number == 2 else {"bloom_filter": {"i32": True}}
            encodings = {"i32": "DELTA_BINARY_PACKED", "f32": "BYTE_STREAM_SPLIT"}
            fastpq.write_table(table, source, row_group_size=300, arrow_schema=True, column_encoding=encodings, **more)
        report = fastpq.evolve_file(source, target, types=types, names={"i32": "number"}, **options)
        assert report.decoded_pages == 24
        assert report.copied_pages > 0
        if number == 2:
            fastpq.decrypt_file(target, target, opening)
        read = pq.read_table(target)
        assert read.schema.types[:5] == [pa.int64()] * 3 + [pa.float64()] * 2
        assert read.rename_columns(table.column_names).to_pylist() == expected
        assert pl.read_parquet(target).to_arrow().rename_columns(table.column_names).to_pylist() == expected
        sums = present(duckdb.sql(f"select sum(number), sum(u32), sum(f32) from '{target}'")).fetchall()
        assert sums == [(sum(range(ROWS)), sum(row["u32"] for row in expected), sum(row["f32"] for row in expected))]
        assert fastpq.verify_file(target).is_sound
        assert fastpq.read_table(target, filters=[("number", "==", 77)])["text"].to_pylist() == ["77"]
        if number == 0:
            assert [each.column_idx for each in fastpq.read_metadata(target).row_group(0).sorting_columns] == [2]
    for wrong in ({"text": "int64"}, {"i32": "int8"}, {"u32": "float64"}, {"nope": "int64"}, {"list": "int64"}):
        with pytest.raises(fastpq.SchemaError):
            fastpq.evolve_file(source, target, types=wrong, decryption_properties=opening)


def test_widening_frames_of_pandas(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    frame = pd.DataFrame({"a": np.arange(5, dtype=np.int32), "b": np.arange(5, dtype=np.float32)})
    frame.to_parquet(path)
    fastpq.evolve_file(path, path, types={"a": "int64", "b": "float64"})
    wide = frame.astype({"a": np.int64, "b": np.float64})
    for read in (fastpq.read_pandas(path), pd.read_parquet(path)):
        pd.testing.assert_frame_equal(read, wide)
    assert pq.read_schema(path).types == [pa.int64(), pa.float64()]
    assert pl.read_parquet(path).schema == {"a": pl.Int64, "b": pl.Float64}
