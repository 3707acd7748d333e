"""Columns that column_keys does not name: encrypted, plaintext or refused, in files, datasets and with a key service."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import fastpq
from fastpq.encryption import EncryptionConfiguration, KmsConnectionConfig
from tests.encryption.keys.peers import arrow_factory, factory

FOOTER_KEY, PRICE_KEY = b"key of the foot.", b"key of one col. "
ROWS = np.arange(500)
DATA: dict[str, Any] = {"id": ROWS, "price": ROWS / 4, "note": ROWS + (1 << 40)}
IN_CLEAR = np.array(DATA["note"]).tobytes()       # the stored form of an unlisted column, uncompressed and PLAIN
READING = fastpq.FileDecryptionProperties(FOOTER_KEY, {"price": PRICE_KEY})
WAYS: dict[str, Callable[[Path, Any], Any]] = {
    "write_table": lambda folder, keys: fastpq.write_table(DATA, folder / "a.parquet", encryption_properties=keys),
    "encrypt_file": lambda folder, keys: fastpq.encrypt_file(plain(), folder / "a.parquet", keys),
    "merge_files": lambda folder, keys: fastpq.merge_files([plain(), plain()], folder / "a.parquet", encryption_properties=keys),
    "write_dataset": lambda folder, keys: fastpq.write_dataset(DATA, folder, encryption_properties=keys),
    "function of a path": lambda folder, keys: fastpq.write_dataset(DATA, folder, encryption_properties=lambda path: keys),
}


def plain() -> bytes:
    out = io.BytesIO()
    fastpq.write_table(DATA, out, compression="none", use_dictionary=False)
    return out.getvalue()


def properties(**options: Any) -> fastpq.FileEncryptionProperties:
    return fastpq.FileEncryptionProperties(FOOTER_KEY, {"price": PRICE_KEY}, **options)


def protection(path: Any) -> dict[str, str]:
    """How each column of a file is encrypted, as its footer says."""
    group = fastpq.read_metadata(path, decryption_properties=READING).row_group(0)
    words = {}
    for place, name in enumerate(DATA):
        crypto = group.column(place).chunk.crypto_metadata
        words[name] = "plain" if crypto is None else "footer" if crypto.ENCRYPTION_WITH_FOOTER_KEY is not None else "own"
    return words


@pytest.mark.parametrize("way", WAYS)
def test_an_encrypted_footer_closes_all_columns(tmp_path: Path, way: str) -> None:
    WAYS[way](tmp_path, properties())
    (path,) = tmp_path.rglob("*.parquet")
    assert protection(path) == {"id": "footer", "price": "own", "note": "footer"}
    assert fastpq.read_table(path, ["note"], decryption_properties=fastpq.FileDecryptionProperties(FOOTER_KEY)).num_rows >= 500


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("options", "hint"), [({"plaintext_footer": True}, 'unlisted="footer_key"'), ({"unlisted": "raise"}, 'unlisted="raise"')]
)
def test_unlisted_columns_are_refused(tmp_path: Path, way: str, options: dict[str, Any], hint: str) -> None:
    with pytest.raises(fastpq.SchemaError, match=f"without a key of their own: id, note.*{hint}"):
        WAYS[way](tmp_path, properties(**options))
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize("way", WAYS)
def test_no_unlisted_byte_is_readable(tmp_path: Path, way: str) -> None:
    def bytes_with(**options: Any) -> bytes:
        keys = properties(**options)
        if way == "write_table":
            fastpq.write_table(DATA, tmp_path / "a.parquet", encryption_properties=keys, compression="none", use_dictionary=False)
        else:
            WAYS[way](tmp_path, keys)
        (path,) = tmp_path.rglob("*.parquet")
        data = path.read_bytes()
        path.unlink()
        return data

    assert IN_CLEAR not in bytes_with()
    assert IN_CLEAR not in bytes_with(plaintext_footer=True, unlisted="footer_key")
    if way in ("write_table", "encrypt_file"):
        assert IN_CLEAR in bytes_with(unlisted="plaintext")
        assert IN_CLEAR in bytes_with(plaintext_footer=True, unlisted="plaintext")


def test_complete_lists_need_no_word() -> None:
    keys: dict[Any, bytes] = {"id": PRICE_KEY, ("price",): PRICE_KEY, "note": PRICE_KEY}
    for options in ({"plaintext_footer": True}, {"unlisted": "raise"}):
        complete, out = fastpq.FileEncryptionProperties(FOOTER_KEY, keys, **options), io.BytesIO()
        fastpq.write_table(DATA, out, encryption_properties=complete)
        assert IN_CLEAR not in out.getvalue()
        opening = fastpq.FileDecryptionProperties(FOOTER_KEY, keys)
        assert fastpq.read_table(out.getvalue(), decryption_properties=opening)["note"].to_pylist() == DATA["note"].tolist()


def test_one_key_for_a_signed_file() -> None:
    out = io.BytesIO()
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, plaintext_footer=True)
    fastpq.write_table(DATA, out, encryption_properties=keys)
    assert keys.unlisted == "footer_key"
    opening = fastpq.FileDecryptionProperties(FOOTER_KEY)
    assert fastpq.read_table(out.getvalue(), decryption_properties=opening)["note"].to_numpy().tolist() == DATA["note"].tolist()
    with pytest.raises(fastpq.SchemaError, match="id, price, note"):
        refusing = fastpq.FileEncryptionProperties(FOOTER_KEY, unlisted="raise")
        fastpq.write_table(DATA, io.BytesIO(), encryption_properties=refusing)


def test_many_names_are_cut() -> None:
    many = {f"column{number}": ROWS for number in range(50)}
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, {"column0": PRICE_KEY}, plaintext_footer=True)
    with pytest.raises(fastpq.SchemaError, match="column20 and 29 more"):
        fastpq.write_table(many, io.BytesIO(), encryption_properties=keys)


def test_the_other_name() -> None:
    assert properties(encrypt_unlisted="plaintext").unlisted == "plaintext"
    assert properties(unlisted="plaintext").encrypt_unlisted == "plaintext"
    assert properties(encrypt_unlisted="raise", unlisted="raise").unlisted == "raise"
    assert "others refused" in repr(properties(plaintext_footer=True))


@pytest.mark.parametrize(
    ("options", "unlisted"),
    [
        ({}, "footer_key"),
        ({"unlisted": "plaintext"}, "plaintext"),
        ({"complete_columns": True}, "footer_key"),
        ({"complete_columns": False}, "plaintext"),
        ({"complete_columns": True, "unlisted": "footer_key"}, "footer_key"),
        ({"unlisted": "raise"}, "raise"),
        ({"plaintext_footer": True}, None),
        ({"plaintext_footer": True, "complete_columns": False}, "plaintext"),
        ({"plaintext_footer": True, "complete_columns": True}, "footer_key"),
        ({"uniform_encryption": True, "column_keys": {}, "plaintext_footer": True}, "footer_key"),
    ],
)
def test_a_key_service(options: dict[str, Any], unlisted: str | None) -> None:
    configuration = EncryptionConfiguration("kf", **{"column_keys": {"kc1": ["price"]}, **options})
    made = factory().file_encryption_properties(KmsConnectionConfig(), configuration)
    assert made.unlisted == unlisted
    same = dataclasses.replace(configuration)
    assert factory().file_encryption_properties(KmsConnectionConfig(), same).unlisted == unlisted


@pytest.mark.parametrize("options", [{}, {"plaintext_footer": True, "unlisted": "footer_key"}])
def test_pyarrow_reads_closed_columns(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "a.parquet"
    configuration = EncryptionConfiguration("kf", column_keys={"kc1": ["price"]}, **options)
    fastpq.write_table(
        DATA, path, encryption_properties=factory().file_encryption_properties(KmsConnectionConfig(), configuration)
    )
    theirs = arrow_factory().file_decryption_properties(pe.KmsConnectionConfig(), pe.DecryptionConfiguration())
    table = pq.read_table(path, decryption_properties=theirs)
    assert table["note"].to_pylist() == DATA["note"].tolist()
    assert table["price"].to_pylist() == DATA["price"].tolist()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("options", [{"unlisted": "raise"}, {"unlisted": "footer_key"}, {"unlisted": "plaintext"}, {}])
@pytest.mark.parametrize("signed", [False, True])
def test_plaintext_columns_stay_readable(tmp_path: Path, way: str, options: dict[str, Any], signed: bool) -> None:
    names = ["id", "note"] if options.get("unlisted") == "raise" or (signed and not options) else ["note"]
    WAYS[way](tmp_path, properties(plaintext_columns=names, plaintext_footer=signed, **options))
    (path,) = tmp_path.rglob("*.parquet")
    rest = "footer" if options.get("unlisted", "footer_key") == "footer_key" else "plain"
    assert protection(path) == {"id": "plain" if "id" in names else rest, "price": "own", "note": "plain"}
    only_footer = pe.create_decryption_properties(FOOTER_KEY, check_footer_integrity=False) if signed else None
    if only_footer is not None:     # pyarrow reads such a column without the other keys
        assert pq.read_table(path, columns=["note"], decryption_properties=only_footer)["note"][0].as_py() == 1 << 40


def test_the_longest_path_decides_between_a_key_and_plaintext() -> None:
    keys = fastpq.FileEncryptionProperties(
        FOOTER_KEY, {"a": PRICE_KEY, "b.c": PRICE_KEY}, plaintext_columns=[("a", "x"), "b"], unlisted="raise"
    )
    own = [path for path in (("a", "x"), ("a", "y"), ("b", "c"), ("b", "d"), ("a", "x", "z")) if keys.column(path) is not None]
    assert own == [("a", "y"), ("b", "c")]
    with pytest.raises(fastpq.SchemaError, match=r"id.*a key in column_keys, or name them in plaintext_columns"):
        keys.column(("id",))


def test_plaintext_columns_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(fastpq.SchemaError, match="plaintext_columns that the schema does not have: nite"):
        fastpq.write_table(DATA, tmp_path / "a.parquet", encryption_properties=properties(plaintext_columns=["nite"]))
    for both in ("price", ("price",)):
        with pytest.raises(fastpq.SchemaError, match="both in column_keys and in plaintext_columns: price"):
            properties(plaintext_columns=[both])
    for wrong in ("note", b"note", 5, [5]):
        with pytest.raises(TypeError):
            properties(plaintext_columns=wrong)
        with pytest.raises(TypeError):
            EncryptionConfiguration("footer", {"prices": ["price"]}, plaintext_columns=wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="plaintext_columns needs column_keys"):
        EncryptionConfiguration("footer", uniform_encryption=True, plaintext_columns=["note"])


def test_plaintext_columns_with_a_key_service(tmp_path: Path) -> None:
    configuration = EncryptionConfiguration(
        "kf", {"kc1": ["price"]}, unlisted="raise", plaintext_columns=["id", ("note",)]
    )
    keys = factory().file_encryption_properties(KmsConnectionConfig(), configuration)
    fastpq.write_table(DATA, tmp_path / "a.parquet", encryption_properties=keys)
    reading = factory().file_decryption_properties(KmsConnectionConfig())
    group = fastpq.read_metadata(tmp_path / "a.parquet", decryption_properties=reading).row_group(0)
    assert [group.column(place).chunk.crypto_metadata is None for place in range(3)] == [True, False, True]
    with pytest.raises(fastpq.SchemaError, match="without a key of their own: note"):
        fastpq.write_table(
            DATA,
            tmp_path / "a.parquet",
            encryption_properties=factory().file_encryption_properties(
                KmsConnectionConfig(), dataclasses.replace(configuration, plaintext_columns=["id"])
            ),
        )
