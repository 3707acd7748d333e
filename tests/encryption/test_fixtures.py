"""Encrypted files of other producers and of attackers, read whole: the right values, or the verdict of their manifest."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq.encryption.properties import ALGORITHMS
from tests.requirements import DATA, needs_data

pytestmark = needs_data


def manifest(folder: str) -> list[dict[str, Any]]:
    path = DATA / "encryption" / folder / "manifest.json"
    entries = json.loads(path.read_text()) if path.exists() else []
    return entries["files"] if isinstance(entries, dict) else entries


def read(path: Path, keys: fastpq.FileDecryptionProperties) -> pa.Table:
    with fastpq.ParquetFile(path, decryption_properties=keys, coerce_int96_timestamp_unit="us") as file:
        return pa.table(file.read())


# ---- files that are as they should be


@pytest.mark.parametrize("entry", manifest("fixtures"), ids=lambda entry: entry["name"])
def test_fixture(entry: dict[str, Any]) -> None:
    folder = DATA / "encryption/fixtures"
    is_ctr = entry["algorithm"] == "AES_GCM_CTR_V1"
    keys = fastpq.FileDecryptionProperties(
        bytes.fromhex(entry["keys"]["footer"]),
        {name: bytes.fromhex(key) for name, key in entry["keys"]["columns"].items()},
        aad_prefix=entry["aad_prefix"].encode() if entry["aad_prefix"] else None,
        allowed_algorithms=["AES_GCM_CTR_V1"] if is_ctr else ["AES_GCM_V1"],
        allow_duckdb_dialect=entry.get("duckdb_dialect", False),
    )
    table = read(folder / entry["file"], keys)
    truth = pq.read_table(folder / f"expected_{entry['table']}.parquet")
    assert table.select(truth.column_names).cast(truth.schema).equals(truth)
    if is_ctr:
        with pytest.raises(fastpq.CryptoError, match="allowed_algorithms"):
            read(folder / entry["file"], fastpq.FileDecryptionProperties(keys.footer_key))
    if entry.get("duckdb_dialect"):
        with pytest.raises(fastpq.UnsupportedError, match="allow_duckdb_dialect"):
            read(folder / entry["file"], fastpq.FileDecryptionProperties(keys.footer_key))


KEYS_128 = {b"kf": b"0123456789012345", b"kc1": b"1234567890123450", b"kc2": b"1234567890123451"}
KEYS_256 = {b"kf": b"01234567890123456789012345678901"} | {
    f"kc{number}".encode(): f"1234567890123456789012345678901{number + 1}".encode() for number in range(1, 9)
}
COLUMNS_OF_256 = ("double", "float", "boolean", "int32", "ba", "flba", "int64", "int96")     # by the number of their key
PARQUET_TESTING = sorted(
    path.relative_to(DATA / "parquet-testing/data").as_posix()
    for path in (DATA / "parquet-testing/data").rglob("*.encrypted")
)


@pytest.mark.parametrize("by", ["explicit keys", "key retriever"])
@pytest.mark.parametrize("name", [name for name in PARQUET_TESTING if "external_key_material" not in name])
def test_parquet_testing(name: str, by: str) -> None:
    """The values are those that the C++ and Java tests of these files compute."""
    keys = KEYS_256 if "aes256" in name else KEYS_128
    prefix = b"tester" if "aad" in name else None
    allowed: list[Literal["AES_GCM_V1", "AES_GCM_CTR_V1"]] = ["AES_GCM_CTR_V1"] if "_ctr" in name else ["AES_GCM_V1"]
    columns = {
        f"{kind}_field": keys[f"kc{number}".encode()]
        for number, kind in enumerate(COLUMNS_OF_256 if "aes256" in name else COLUMNS_OF_256[:2], 1)
    }
    if by == "explicit keys":
        properties = fastpq.FileDecryptionProperties(
            keys[b"kf"], columns, aad_prefix=prefix, allowed_algorithms=allowed, allow_weaker_columns="uniform" in name
        )
    else:
        properties = fastpq.FileDecryptionProperties(key_retriever=keys.get, aad_prefix=prefix, allowed_algorithms=allowed)
    table = read(DATA / "parquet-testing/data" / name, properties)
    if "bloom_filter" in name:      # of another test, by parquet-java
        with warnings.catch_warnings(action="ignore"):      # Polars calls its encryption unstable
            theirs = pl.ParquetDecryptionProperties(footer_key=keys[b"kf"], column_keys=columns)
            frame = pl.read_parquet(DATA / "parquet-testing/data" / name, columns=table.column_names, decryption=theirs)
        assert pl.DataFrame(pl.from_arrow(table)).equals(frame)
        return
    rows = np.arange(table.num_rows)
    assert table.num_rows == 50
    assert (table["float_field"].to_numpy() == rows.astype(np.float32) * np.float32(1.1)).all()
    assert (table["double_field"].to_numpy() == rows * 1.1111111).all()
    assert table["boolean_field"].to_pylist() == [row % 2 == 0 for row in rows]
    assert table["int32_field"].cast(pa.int32()).to_pylist() == rows.tolist()
    assert table["int64_field"].to_pylist() == [[row * 10**12, (row + 1) * 10**12] for row in range(0, 100, 2)]
    texts = [f"parquet{chr(48 + row // 100)}{chr(48 + row // 10 % 10)}{chr(48 + row % 10)}".encode() for row in range(50)]
    assert table["ba_field"].to_pylist() == [None if row % 2 else texts[row] for row in range(50)]


# ---- files that were tampered with


def forged(entry: dict[str, Any], **policies: Any) -> fastpq.FileDecryptionProperties:
    return fastpq.FileDecryptionProperties(
        bytes.fromhex(entry["footer_key"]),
        {path: bytes.fromhex(key) for path, key in entry["column_keys"].items()},
        aad_prefix=entry["aad_prefix"].encode() if entry["aad_prefix"] else None,
        verify_footer_signature=entry["verify_footer_signature"],
        **policies,
    )


# refused by who finds the keys, which explicit ones make unnecessary: see keys/test_peers.py
OF_THE_KEY_SERVICE = {"efk:key_metadata_not_json", "efk:kms_url_replaced_in_FCM"}


@pytest.mark.parametrize("entry", manifest("forged"), ids=lambda entry: entry["name"])
def test_forged_files_are_judged_rightly(entry: dict[str, Any]) -> None:
    path = DATA / "encryption/forged" / entry["file"]
    policies: dict[str, Any] = {"allowed_algorithms": ALGORITHMS} if entry["name"].startswith("ctr") else {}
    verdict = entry["verdict"]
    if entry["name"] in OF_THE_KEY_SERVICE or verdict in ("accept", "undetectable", "reject-if-index-read"):
        assert read(path, forged(entry, **policies)).num_rows > 0
        if verdict == "reject-if-index-read":
            with fastpq.ParquetFile(path, decryption_properties=forged(entry)) as file:
                refuses_an_index(file)
        return
    with pytest.raises(fastpq.ParquetError) as raised:
        read(path, forged(entry, **policies))
    for secret in (entry["footer_key"], *entry["column_keys"].values()):
        assert secret not in str(raised.value)
        assert repr(bytes.fromhex(secret)) not in str(raised.value)
    if verdict == "policy:allow_plaintext_files":
        assert "allow_plaintext_files" in str(raised.value)
        assert read(path, forged(entry, allow_plaintext_files=True)).num_rows > 0
    if verdict == "policy:allowed_algorithms":
        assert "allowed_algorithms" in str(raised.value)


def refuses_an_index(file: fastpq.ParquetFile) -> None:
    refusals = []
    for column in range(file.metadata.num_columns):
        try:
            file.offset_index(0, column)
        except fastpq.TagVerificationError as error:
            refusals.append(error.context["module"])
    assert refusals == ["OFFSET_INDEX"]
