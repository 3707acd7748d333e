"""Files made of files page by page: what strangers read of them, what stays as it was, and what hostile input does."""

from __future__ import annotations

import base64
import io
import itertools
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import fastpq
from fastpq import format as fmt
from tests.encryption.keys.peers import arrow_factory, managed_keys
from tests.encryption.module_walk import open_file
from tests.encryption.test_fixtures import manifest
from tests.encryption.test_matrix import (
    COLUMN_KEY,
    COLUMN_PATHS,
    FOOTER_KEY,
    MODES,
    PAGES,
    ROWS,
    Case,
    assert_true,
    encryption,
    truth,
)
from tests.interop.parquet_java import ParquetJava
from tests.narrowing import present
from tests.requirements import DATA, needs_data

CASES = [Case(*case) for case in itertools.product(MODES, ("snappy",), PAGES, (True, False))]
KEYS = fastpq.FileDecryptionProperties(
    FOOTER_KEY,
    dict.fromkeys(COLUMN_PATHS, COLUMN_KEY),
    allowed_algorithms=["AES_GCM_V1", "AES_GCM_CTR_V1"],
    allow_weaker_columns=True,      # in some of the cases all columns are under the footer key
)
OTHER = b"another file key"


def plain(case: Case) -> bytes:
    """A plaintext file with everything in it that a footer and indexes can tell."""
    out = io.BytesIO()
    fastpq.write_table(
        truth(),
        out,
        data_page_version=case.version,
        use_dictionary=case.dictionary,
        row_group_size=200,
        data_page_rows=60,
        bloom_filter=dict.fromkeys(("id", "name", *COLUMN_PATHS), True),
        sorting_columns=() if case.mode == "CTR, signed footer" else ["id"],    # which shows the order of encrypted values
        key_value_metadata={"who": "us"},
    )
    return out.getvalue()


def merged(*sources: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    fastpq.merge_files(sources, out, **options)
    return out.getvalue()


def encrypted(source: Any, keys: fastpq.FileEncryptionProperties, **options: Any) -> bytes:
    out = io.BytesIO()
    fastpq.encrypt_file(source, out, keys, **options)
    return out.getvalue()


def decrypted(source: Any, keys: fastpq.FileDecryptionProperties = KEYS) -> bytes:
    out = io.BytesIO()
    fastpq.decrypt_file(source, out, keys)
    return out.getvalue()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[Case, Path]:
    """Of each case a file that was encrypted after it was written."""
    folder = tmp_path_factory.mktemp("rewritten")
    paths = {case: folder / f"{number}.parquet" for number, case in enumerate(CASES)}
    for case, path in paths.items():
        fastpq.encrypt_file(plain(case), path, encryption(case))
    return paths


def test_pyarrow_reads(files: dict[Case, Path]) -> None:
    keys = arrow_factory()
    for case, path in files.items():
        if case.pages != "2.0 java":
            properties = keys.file_decryption_properties(pe.KmsConnectionConfig(), pe.DecryptionConfiguration())
            assert_true(pq.read_table(path, decryption_properties=properties))


def test_polars_reads(files: dict[Case, Path]) -> None:
    for case, path in files.items():
        if case.mode in ("uniform", "by column", "everything", "prefix") and case.pages != "2.0 java":
            columns = dict.fromkeys(COLUMN_PATHS, COLUMN_KEY) if "columns" in MODES[case.mode] else {}
            with warnings.catch_warnings(action="ignore"):      # Polars calls its encryption unstable
                keys = pl.ParquetDecryptionProperties(
                    footer_key=FOOTER_KEY, column_keys=columns, aad_prefix=MODES[case.mode].get("aad_prefix")
                )
                assert_true(pl.read_parquet(path, decryption=keys).to_arrow())


def test_parquet_java_reads(files: dict[Case, Path], parquet_java: ParquetJava, tmp_path: Path) -> None:
    pq.write_table(truth(), tmp_path / "plain.parquet")
    cases = [case for case in CASES if case.pages != "2.0" and (case.dictionary or case.mode == "by column")]
    paths = [tmp_path / "plain.parquet", *(files[case] for case in cases)]
    digests = managed_keys(parquet_java, "digest", *paths).splitlines()
    assert digests[0].split()[0] == str(ROWS)
    assert [case.name for case, digest in zip(cases, digests[1:], strict=True) if digest != digests[0]] == []


def test_nothing_is_lost(files: dict[Case, Path]) -> None:
    """A decrypted file is, byte for byte, what copying makes of the one that was encrypted; every module is as it should be."""
    for case, path in files.items():
        before = plain(case)
        copy = merged(before)
        assert decrypted(path) == copy
        assert decrypted(encrypted(path, fastpq.FileEncryptionProperties(OTHER), decryption_properties=KEYS),
                         fastpq.FileDecryptionProperties(OTHER)) == copy
        assert open_file(path.read_bytes(), KEYS).walk() > 50
        if case.mode != "CTR, signed footer":
            whole = before, copy
    before, copy = whole
    old, new = open_file(before, None).metadata, open_file(copy, None).metadata
    assert (new.schema, new.key_value_metadata, new.created_by) == (old.schema, old.key_value_metadata, old.created_by)
    for one, other in zip(old.row_groups, new.row_groups, strict=True):
        assert other.sorting_columns == one.sorting_columns == [
            fmt.SortingColumn(column_idx=0, descending=False, nulls_first=False)
        ]
        for chunk, copied in zip(one.columns, other.columns, strict=True):
            stored, rewritten = present(chunk.meta_data), present(copied.meta_data)
            assert rewritten.statistics == stored.statistics is not None
            assert rewritten.size_statistics == stored.size_statistics


def test_indexes_lead_to_the_pages(files: dict[Case, Path]) -> None:
    for path in files.values():
        with fastpq.ParquetFile(path, decryption_properties=KEYS) as file:
            for column in ("id", "name", *COLUMN_PATHS):
                assert present(file.offset_index(1, column)).num_pages == 2
                assert present(file.column_index(1, column)).num_pages == 2
                assert file.bloom_filter(1, column) is not None
            found = file.read(["id"], filters=[("id", ">", 250), ("name", "==", "name 3")])
            assert found["id"].to_pylist() == [row for row in range(251, ROWS) if row % 7 == 3]


def test_in_its_own_place_with_fresh_nonces(tmp_path: Path) -> None:
    path, keys = tmp_path / "a.parquet", fastpq.FileEncryptionProperties(FOOTER_KEY)
    path.write_bytes(plain(CASES[0]))
    seen: set[bytes] = set()
    for _ in range(3):
        fastpq.encrypt_file(path, path, keys, decryption_properties=KEYS if seen else None)
        data = path.read_bytes()
        found = {data[place + 4 : place + 16] for place in starts(data)}
        assert len(found) == 82
        assert not seen & found
        seen |= found
    assert_true(fastpq.read_table(path, decryption_properties=KEYS))
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]


def starts(data: bytes) -> list[int]:
    """Where the page modules of a file begin."""
    found = []
    with fastpq.ParquetFile(data, decryption_properties=KEYS) as file:
        for group, column in itertools.product(range(2), range(6)):
            start, size = file.metadata.row_group(group).column(column).byte_range
            end = start + size
            while start < end:
                found.append(start)
                start += 4 + int.from_bytes(data[start : start + 4], "little")
    return found


@needs_data
def test_what_others_encrypted(tmp_path: Path) -> None:
    """Decrypted, and under a key of ours: pages V2 in both layouts, AES-CTR, DuckDB's dialect, bloom filters of parquet-java."""
    folder = DATA / "encryption/fixtures"
    for entry in manifest("fixtures"):
        keys = fastpq.FileDecryptionProperties(
            bytes.fromhex(entry["keys"]["footer"]),
            {name: bytes.fromhex(key) for name, key in entry["keys"]["columns"].items()},
            aad_prefix=entry["aad_prefix"].encode() if entry["aad_prefix"] else None,
            allowed_algorithms=[entry["algorithm"]],
            allow_duckdb_dialect=entry.get("duckdb_dialect", False),
        )
        expected = pq.read_table(folder / f"expected_{entry['table']}.parquet")
        path, data = tmp_path / "plain.parquet", (folder / entry["file"]).read_bytes()
        fastpq.decrypt_file(data, path, keys)
        assert pq.read_table(path).select(expected.column_names).cast(expected.schema).equals(expected), entry["name"]
        again = encrypted(data, fastpq.FileEncryptionProperties(OTHER), decryption_properties=keys)
        found = pq.read_table(io.BytesIO(again), decryption_properties=pe.create_decryption_properties(OTHER))
        assert found.select(expected.column_names).cast(expected.schema).equals(expected), entry["name"]


@needs_data
def test_real_files(tmp_path: Path) -> None:
    """Nested, deprecated and odd: encrypted and decrypted they are the file that copying makes, and read as before."""
    keys = fastpq.FileEncryptionProperties(OTHER)
    compared = 0
    for path in sorted((DATA / "parquet-testing/data").glob("*.parquet")):
        if path.name == "overflow_i16_page_cnt.parquet" or "corrupt" in path.name:
            continue
        copy = merged(path)
        assert decrypted(encrypted(path, keys), fastpq.FileDecryptionProperties(OTHER)) == copy, path.name
        try:
            theirs = pq.read_table(path)
        except (OSError, NotImplementedError, pa.ArrowInvalid):
            continue
        assert repr(pq.read_table(io.BytesIO(copy))) == repr(theirs), path.name
        compared += 1
    assert compared > 50


def test_merging(tmp_path: Path) -> None:
    one, two = plain(CASES[0]), encrypted(plain(CASES[0]), encryption(CASES[0]))
    path = tmp_path / "both.parquet"
    keys = {one: None, two: KEYS}
    fastpq.merge_files([one, two, one], path, encryption_properties=encryption(CASES[0]), decryption_properties=keys.get)
    with fastpq.ParquetFile(path, decryption_properties=KEYS) as file:
        assert (file.metadata.num_rows, file.num_row_groups) == (3 * ROWS, 6)
        for part in range(3):
            assert_true(file.read(row_groups=[2 * part, 2 * part + 1]))
        assert file.read(["id"], filters=[("id", "==", 77)]).num_rows == 3
    copy = merged(one, one)
    assert pq.ParquetFile(io.BytesIO(copy)).read().num_rows == 2 * ROWS
    other = io.BytesIO()
    fastpq.write_table({"id": [1]}, other)
    with pytest.raises(fastpq.SchemaError, match="different schemas"):
        merged(one, other)
    with pytest.raises(fastpq.SchemaError, match="no files"):
        merged()
    theirs = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(copy)), theirs)
    with pytest.raises(fastpq.SchemaError, match="different"):
        merged(one, theirs)


@pytest.mark.parametrize("keys", [None, fastpq.FileEncryptionProperties(FOOTER_KEY, plaintext_footer=True)])
def test_a_file_that_is_cut_off_is_not_made_whole(keys: fastpq.FileEncryptionProperties | None) -> None:
    """Behind a checkpoint, whose footer is genuine: as the first source or behind others."""
    out = io.BytesIO()
    options: dict[str, Any] = {"row_group_size": 10, "checkpoint_every": 2, "encryption_properties": keys}
    with fastpq.ParquetWriter(out, **options) as writer:
        writer.write_table({"id": range(60)})
    whole = out.getvalue()
    cut = whole[: whole.index(b"PAR1", 4) + 4]
    opened = {} if keys is None else {"decryption_properties": fastpq.FileDecryptionProperties(FOOTER_KEY)}
    assert fastpq.read_table(merged(whole, whole, **opened)).num_rows == 120
    for sources in ((cut,), (whole, cut)):
        with pytest.raises(fastpq.FormatError, match="not finished"):
            merged(*sources, **opened)
    with pytest.raises(fastpq.FormatError, match="not finished"):
        encrypted(cut, fastpq.FileEncryptionProperties(OTHER), **opened)


@pytest.mark.parametrize("plaintext_footer", [False, True])
def test_categories_do_not_come_into_an_encrypted_file_s_footer(plaintext_footer: bool) -> None:
    frame = pd.DataFrame({"kind": pd.Categorical(["hidden b", "hidden a"] * 5), "id": range(10)})
    out = io.BytesIO()
    fastpq.write_table(frame, out, arrow_schema=True, compression="none")
    data = encrypted(out.getvalue(), fastpq.FileEncryptionProperties(OTHER, plaintext_footer=plaintext_footer))
    keys = fastpq.FileDecryptionProperties(OTHER)
    told = fastpq.read_metadata(data, decryption_properties=keys).key_value_metadata
    assert sorted(told) == ["ARROW:schema", "pandas"]
    assert "hidden" not in present(told["pandas"])
    assert b"hidden" not in base64.b64decode(present(told["ARROW:schema"]))
    read = fastpq.read_pandas(data, decryption_properties=keys)
    assert read["kind"].astype(str).tolist() == ["hidden b", "hidden a"] * 5
    assert pa.types.is_dictionary(pa.table(fastpq.read_table(data, decryption_properties=keys)).schema.field("kind").type)


def test_chunks_in_other_files_are_not_copied(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "part.parquet")
    metadata = pq.read_metadata(tmp_path / "part.parquet")
    metadata.set_file_path("part.parquet")
    metadata.write_metadata_file(tmp_path / "_metadata")
    assert fastpq.read_table(tmp_path / "_metadata")["id"].to_pylist() == [1, 2]
    with pytest.raises(fastpq.UnsupportedError, match="another file"):
        fastpq.merge_files([tmp_path / "_metadata"], tmp_path / "copy.parquet")


def test_altered_bytes_get_no_new_tag(tmp_path: Path) -> None:
    """Neither of what a tag covers nor of what a CRC-32 does; and the target stays as it was."""
    path = tmp_path / "target.parquet"
    path.write_bytes(b"as it was")
    options: dict[str, Any] = {"decryption_properties": KEYS}
    case = Case("everything", "snappy", "2.0 java", True)
    for data, error, keys in (
        (encrypted(plain(case), encryption(case)), (fastpq.CryptoError, fastpq.FormatError), options),
        (plain(case), (fastpq.FormatError, fastpq.UnsupportedError), {}),      # a page type of no page
    ):
        with fastpq.ParquetFile(data, **keys) as file:
            start, size = file.metadata.row_group(1).column(2).byte_range
        refusals = 0
        for place in range(start, start + size, 7):
            altered = bytearray(data)
            altered[place] ^= 1 << place % 8
            refused = False
            try:
                fastpq.encrypt_file(bytes(altered), path, fastpq.FileEncryptionProperties(OTHER), **keys)
            except error:
                refused = True
            assert refused is (path.read_bytes() == b"as it was")
            refusals += refused
            path.write_bytes(b"as it was")
        assert refusals > 0.9 * size / 7      # some bits of a plaintext header tell nothing
        assert not keys or refusals == len(range(0, size, 7))
    assert [file.name for file in tmp_path.iterdir()] == ["target.parquet"]


def test_without_keys(tmp_path: Path) -> None:
    data = encrypted(plain(CASES[0]), encryption(Case("signed footer", "snappy", "1.0", True)))
    for keys in (None, fastpq.FileDecryptionProperties(FOOTER_KEY)):
        with pytest.raises(fastpq.KeyAccessError, match="price"):
            fastpq.encrypt_file(data, tmp_path / "a", fastpq.FileEncryptionProperties(OTHER), decryption_properties=keys)
    with pytest.raises(fastpq.CryptoError, match="not encrypted"):
        fastpq.decrypt_file(plain(CASES[0]), tmp_path / "a", KEYS)
    with pytest.raises(fastpq.SchemaError, match="nothing"):
        fastpq.encrypt_file(plain(CASES[0]), tmp_path / "a", fastpq.FileEncryptionProperties(OTHER, {"nothing": OTHER}))
    assert list(tmp_path.iterdir()) == []
