"""Columns with less protection than the reader's keys expect, keys for columns that a file does not have, and their policies."""

from __future__ import annotations

import io
import struct
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import format as fmt
from fastpq.encryption import ColumnEncryptionProperties

FOOTER_KEY, KEY, OTHER = b"key of the foot.", b"key of one col. ", b"key of another.."
DATA = pa.table({
    "id": range(100), "ssn": [f"{row:09}" for row in range(100)], "point": [{"x": row, "y": [row]} for row in range(100)],
})
Keys = dict[Any, bytes]


def written(column_keys: dict[Any, Any] | None = None, table: pa.Table = DATA, **options: Any) -> bytes:
    out = io.BytesIO()
    unlisted = "plaintext" if column_keys else None
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, column_keys, **{"unlisted": unlisted, **options})
    fastpq.write_table(table, out, bloom_filter={"ssn": True} if "ssn" in table.column_names else {}, encryption_properties=keys)
    return out.getvalue()


def keys_of(column_keys: Keys, **policies: Any) -> fastpq.FileDecryptionProperties:
    return fastpq.FileDecryptionProperties(FOOTER_KEY, column_keys, **policies)


def assert_same(table: fastpq.Table, expected: pa.Table) -> None:
    assert pa.table(table).to_pydict() == expected.to_pydict()


PLAIN = {"ssn": (written({"id": KEY}), {"id": KEY, "ssn": OTHER}), "signed": (
    written({"id": KEY}, plaintext_footer=True), {"id": KEY, "ssn": OTHER})}
UNDER_FOOTER_KEY = {
    "uniform": (written(), {"ssn": OTHER}),
    "listed": (written({"id": KEY, "ssn": ColumnEncryptionProperties()}), {"id": KEY, "ssn": OTHER}),
    "signed": (written({"ssn": ColumnEncryptionProperties()}, plaintext_footer=True), {"ssn": OTHER}),
}
USES: dict[str, Callable[[Any, fastpq.FileDecryptionProperties], Any]] = {
    "read": lambda data, keys: fastpq.read_table(data, ["ssn"], decryption_properties=keys),
    "read everything": lambda data, keys: fastpq.read_table(data, decryption_properties=keys),
    "filter": lambda data, keys: fastpq.read_table(data, ["id"], filters=("ssn", "==", "000000007"), decryption_properties=keys),
    "null for losses": lambda data, keys: fastpq.read_table(data, ["ssn"], on_error="null", decryption_properties=keys),
    "bounds": lambda data, keys: fastpq.ParquetFile(data, decryption_properties=keys).min_max("ssn"),
    "statistics": lambda data, keys: fastpq.read_metadata(data, decryption_properties=keys).row_group(0).column(1).statistics,
    "index": lambda data, keys: fastpq.ParquetFile(data, decryption_properties=keys).column_index(0, "ssn"),
    "bloom filter": lambda data, keys: fastpq.ParquetFile(data, decryption_properties=keys).bloom_filter(0, "ssn"),
    "encrypt": lambda data, keys: fastpq.encrypt_file(
        data, io.BytesIO(), fastpq.FileEncryptionProperties(KEY), decryption_properties=keys),
    "decrypt": lambda data, keys: fastpq.decrypt_file(data, io.BytesIO(), keys),
    "recover": lambda data, keys: fastpq.recover_table(data, decryption_properties=keys),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", PLAIN)
def test_a_plaintext_column_is_refused(name: str, use: str) -> None:
    data, keys = PLAIN[name]
    with pytest.raises(fastpq.CryptoError, match=r"plaintext.*allow_weaker_columns.*column ssn"):
        USES[use](data, keys_of(keys))
    USES[use](data, keys_of(keys, allow_weaker_columns=True))


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", UNDER_FOOTER_KEY)
def test_a_column_under_the_footer_key_is_refused(name: str, use: str) -> None:
    data, keys = UNDER_FOOTER_KEY[name]
    with pytest.raises(fastpq.CryptoError, match=r"footer key.*allow_weaker_columns.*column ssn"):
        USES[use](data, keys_of(keys))
    USES[use](data, keys_of(keys, allow_weaker_columns=True))


@pytest.mark.parametrize("name", [*PLAIN, *UNDER_FOOTER_KEY])
def test_other_columns_are_read(name: str) -> None:
    data, keys = {**PLAIN, **UNDER_FOOTER_KEY}[name]
    table = fastpq.read_table(data, ["id", "point"], decryption_properties=keys_of(keys))
    assert_same(table, DATA.select(["id", "point"]))


def test_peers_read_a_plaintext_column_for_a_key() -> None:
    """Polars, with the same keys, notices nothing: why the policy is fastpq's own."""
    data, keys = PLAIN["ssn"]
    with warnings.catch_warnings(action="ignore"):      # Polars calls its encryption unstable
        theirs = pl.ParquetDecryptionProperties(footer_key=FOOTER_KEY, column_keys=keys)
        assert pl.read_parquet(data, decryption=theirs)["ssn"].to_list() == DATA["ssn"].to_pylist()


def test_the_footer_key_as_the_column_s_key() -> None:
    """Whoever has the column's key is whom the column is under: one key for all is no weaker column."""
    for data in (written(), written({"ssn": ColumnEncryptionProperties()}, unlisted="footer_key")):
        table = fastpq.read_table(data, decryption_properties=keys_of({"ssn": FOOTER_KEY, "point.x": FOOTER_KEY}))
        assert_same(table, DATA)
    retrieved = fastpq.FileDecryptionProperties(column_keys={"ssn": FOOTER_KEY}, key_retriever={b"f": FOOTER_KEY}.get)
    assert fastpq.read_table(written(footer_key_metadata=b"f"), decryption_properties=retrieved).num_rows == 100
    with pytest.raises(fastpq.CryptoError, match="footer key"):
        fastpq.read_table(written(), decryption_properties=keys_of({"ssn": FOOTER_KEY[:-1] + b"!"}))


def test_a_group_s_key_is_for_all_its_leaves() -> None:
    whole = written({"point": KEY})
    assert_same(fastpq.read_table(whole, decryption_properties=keys_of({"point": KEY})), DATA)
    assert fastpq.read_table(whole, decryption_properties=keys_of({"point.y": KEY, "point.x": KEY})).num_rows == 100
    part = written({"point.y": KEY})
    assert fastpq.read_table(part, decryption_properties=keys_of({"point.y": KEY})).num_rows == 100
    with pytest.raises(fastpq.CryptoError, match=r"plaintext.*column point\.x"):
        fastpq.read_table(part, decryption_properties=keys_of({"point": KEY}))


def test_a_key_retriever_names_no_columns() -> None:
    vault = {b"foot": FOOTER_KEY, b"col": KEY}
    data = written({"id": ColumnEncryptionProperties(KEY, key_metadata=b"col")}, footer_key_metadata=b"foot")
    keys = fastpq.FileDecryptionProperties(key_retriever=vault.get)
    assert_same(fastpq.read_table(data, decryption_properties=keys), DATA)
    both = fastpq.FileDecryptionProperties(column_keys={"ssn": OTHER}, key_retriever=vault.get)
    with pytest.raises(fastpq.CryptoError, match=r"plaintext.*column ssn"):
        fastpq.read_table(data, decryption_properties=both)


def test_a_column_that_says_to_be_another() -> None:
    """Whoever has the footer key and one column's key could pass off values under that key as those of another column."""
    data = bytearray(written({"id": KEY, "ssn": OTHER}, plaintext_footer=True))
    start = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
    footer, _ = fmt.decode(fmt.FileMetaData, bytes(data[start:-36]))
    crypto = footer.row_groups[0].columns[1].crypto_metadata
    assert crypto is not None
    assert crypto.ENCRYPTION_WITH_COLUMN_KEY is not None
    crypto.ENCRYPTION_WITH_COLUMN_KEY.path_in_schema = ["id"]
    encoded = fmt.encode(footer)
    forged = bytes(data[:start]) + encoded + bytes(28) + struct.pack("<I", len(encoded) + 28) + b"PAR1"
    keys = keys_of({"id": KEY, "ssn": OTHER}, verify_footer_signature=False)
    with pytest.raises(fastpq.FormatError, match=r"name another one, id .*column ssn"):
        fastpq.read_table(forged, ["ssn"], decryption_properties=keys)
    assert fastpq.read_table(forged, ["id"], decryption_properties=keys).num_rows == 100


# ---- keys for columns that are not there


@pytest.mark.parametrize("path", ["sns", ("point", "z"), ("point.x",), "id.x", ""])
def test_a_key_for_a_missing_column_is_refused(path: Any) -> None:
    data = written({"ssn": KEY})
    for encrypted in (data, written({"ssn": KEY}, plaintext_footer=True)):
        with pytest.raises(fastpq.SchemaError, match=r"keys for columns that the file does not have.*allow_missing_columns"):
            fastpq.read_table(encrypted, ["id"], decryption_properties=keys_of({"ssn": KEY, path: OTHER}))
        with pytest.raises(fastpq.SchemaError, match="allow_missing_columns"):
            fastpq.read_metadata(encrypted, decryption_properties=keys_of({path: OTHER}))
    table = fastpq.read_table(data, decryption_properties=keys_of({"ssn": KEY, path: OTHER}, allow_missing_columns=True))
    assert_same(table, DATA)
    out = io.BytesIO()
    pq.write_table(DATA, out)
    with pytest.raises(fastpq.SchemaError, match="allow_missing_columns"):
        fastpq.read_table(out, decryption_properties=keys_of({path: OTHER}, allow_plaintext_files=True))


def test_an_admitted_plaintext_file_may_have_plaintext_columns(tmp_path: Path) -> None:
    pq.write_table(DATA, tmp_path / "plain.parquet")
    keys = keys_of({"ssn": KEY}, allow_plaintext_files=True)
    assert_same(fastpq.read_table(tmp_path / "plain.parquet", decryption_properties=keys), DATA)


def test_datasets_of_files_that_differ(tmp_path: Path) -> None:
    """A key is for a column of one of the files, at least."""
    (tmp_path / "1.parquet").write_bytes(written({"ssn": KEY}))
    (tmp_path / "2.parquet").write_bytes(written({"id": OTHER}, DATA.select(["id"])))
    keys = keys_of({"ssn": KEY, "id": OTHER}, allow_weaker_columns=True)
    for given in (keys, lambda path: keys_of({"ssn": KEY, "id": OTHER}, allow_weaker_columns=True)):
        table = fastpq.read_dataset(tmp_path, decryption_properties=given)
        assert (table.num_rows, table["ssn"].null_count) == (200, 100)
    with pytest.raises(fastpq.CryptoError, match=r"plaintext.*column id"):
        fastpq.read_dataset(tmp_path, decryption_properties=keys_of({"ssn": KEY, "id": OTHER}))
    with pytest.raises(fastpq.SchemaError, match=r"no file.*sns"):
        fastpq.read_dataset(tmp_path, decryption_properties=keys_of({"ssn": KEY, "id": OTHER, "sns": OTHER}))
    with pytest.raises(fastpq.SchemaError, match=r"no file.*sns"):
        fastpq.ParquetDataset(tmp_path, decryption_properties=lambda path: keys_of({"ssn": KEY, "sns": KEY}))
    open_keys = keys_of({"ssn": KEY, "id": OTHER, "sns": OTHER}, allow_weaker_columns=True, allow_missing_columns=True)
    assert fastpq.read_dataset(tmp_path, decryption_properties=open_keys).num_rows == 200


@pytest.mark.parametrize("policy", ["allow_weaker_columns", "allow_missing_columns"])
def test_policies_are_switches(policy: str) -> None:
    with pytest.raises(TypeError, match=policy):
        keys_of({}, **{policy: "no"})
