"""Properties: which key belongs to which column, and what is refused."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.encryption import AesKey, ColumnEncryptionProperties, FileDecryptionProperties, FileEncryptionProperties
from fastpq.encryption.encryptor import open_file_encryptor
from fastpq.encryption.properties import ColumnPath, PathMap
from fastpq.errors import CryptoError, SchemaError

FOOTER_KEY = b"the footer's key"
KEY = b"the column's key, of twenty-four"[:24]
PATHS = [("id",), ("point", "x"), ("point", "y"), ("list", "list", "element"), ("dot.ted",), ("pointed",)]


@pytest.mark.parametrize(
    ("listed", "covered"),
    [
        ("id", {("id",)}),
        (("id",), {("id",)}),
        ("point.x", {("point", "x")}),
        (("point", "x"), {("point", "x")}),
        ("point", {("point", "x"), ("point", "y")}),
        (("point",), {("point", "x"), ("point", "y")}),
        ("list", {("list", "list", "element")}),
        ("list.list", {("list", "list", "element")}),
        ("dot.ted", {("dot.ted",)}),
        (("dot.ted",), {("dot.ted",)}),
        (("dot", "ted"), set()),
        ("dot", set()),
        ("poin", set()),
        ("point.", set()),
        ("", set()),
        ((), set()),
    ],
)
def test_paths(listed: Any, covered: set[tuple[str, ...]]) -> None:
    entries = PathMap({listed: 1})
    assert {path for path in PATHS if entries.find(path) == 1} == covered
    assert bool(entries.unknown_paths(PATHS)) == (not covered)


def test_the_longest_path_holds() -> None:
    mixed: dict[ColumnPath, int] = {"point": 1, ("point", "x"): 2}
    entries = PathMap(mixed)
    assert [entries.find(path) for path in PATHS[:3]] == [None, 2, 1]


def test_one_path_in_two_spellings_is_refused() -> None:
    twice: dict[ColumnPath, bytes] = {"point.x": KEY, ("point", "x"): KEY}
    with pytest.raises(SchemaError, match=r"point\.x"):
        FileDecryptionProperties(FOOTER_KEY, twice)


def test_a_path_that_the_schema_does_not_have() -> None:
    unknown: dict[ColumnPath, bytes] = {"id": KEY, "pointt": KEY, ("point", "z"): KEY}
    keys = FileEncryptionProperties(FOOTER_KEY, unknown)
    with pytest.raises(SchemaError, match=r"point\.z, pointt$"):
        open_file_encryptor(keys, PATHS)


def encrypted(keys: FileEncryptionProperties) -> dict[str, bool]:
    """Whether each encrypted column has a key of its own."""
    columns = {".".join(path): keys.column(path) for path in PATHS[:3]}
    return {name: column.key is not None for name, column in columns.items() if column is not None}


def test_which_columns_are_encrypted() -> None:
    everything = {"id": False, "point.x": False, "point.y": False}
    assert encrypted(FileEncryptionProperties(FOOTER_KEY)) == everything
    assert encrypted(FileEncryptionProperties(FOOTER_KEY, {})) == everything
    assert encrypted(FileEncryptionProperties(FOOTER_KEY, unlisted="plaintext")) == {}
    assert encrypted(FileEncryptionProperties(FOOTER_KEY, {"point": KEY})) == {"id": False, "point.x": True, "point.y": True}
    mixed: dict[str, bytes | ColumnEncryptionProperties] = {"id": ColumnEncryptionProperties(), "point.x": KEY}
    assert encrypted(FileEncryptionProperties(FOOTER_KEY, mixed, unlisted="plaintext")) == {"id": False, "point.x": True}


def test_a_key_object_is_shared() -> None:
    key = AesKey(KEY)
    keys = FileEncryptionProperties(key, {"id": key, "point": ColumnEncryptionProperties(key)})
    assert keys.footer_key is key
    assert all(column is not None and column.key is key for column in map(keys.column, PATHS[:3]))


@pytest.mark.parametrize("size", [0, 15, 17, 33])
def test_key_sizes(size: int) -> None:
    key = bytes(size)
    for make in (FileEncryptionProperties, FileDecryptionProperties, ColumnEncryptionProperties):
        with pytest.raises(CryptoError, match=f"not {size}"):
            make(key)
    for properties in (FileEncryptionProperties, FileDecryptionProperties):
        with pytest.raises(CryptoError, match=f"not {size}"):
            properties(FOOTER_KEY, {"id": key})


def test_what_makes_no_sense_is_refused() -> None:
    wrong: Any = "AES_CBC"
    with pytest.raises(ValueError, match="algorithm"):
        FileEncryptionProperties(FOOTER_KEY, algorithm=wrong)
    with pytest.raises(ValueError, match="unlisted"):
        FileEncryptionProperties(FOOTER_KEY, unlisted=wrong)
    with pytest.raises(ValueError, match="encrypt_unlisted"):
        FileEncryptionProperties(FOOTER_KEY, encrypt_unlisted=wrong)
    with pytest.raises(ValueError, match="cannot differ"):
        FileEncryptionProperties(FOOTER_KEY, encrypt_unlisted="plaintext", unlisted="raise")
    with pytest.raises(ValueError, match="v2_layout"):
        FileEncryptionProperties(FOOTER_KEY, v2_layout=wrong)
    with pytest.raises(ValueError, match="store_aad_prefix"):
        FileEncryptionProperties(FOOTER_KEY, store_aad_prefix=False)
    with pytest.raises(TypeError, match="aad_prefix"):
        FileEncryptionProperties(FOOTER_KEY, aad_prefix=wrong)
    refused: list[Any] = [[], [wrong], "AES_GCM_V1", ["AES_GCM_V1", wrong]]
    for algorithms in refused:
        with pytest.raises(ValueError, match="allowed_algorithms"):
            FileDecryptionProperties(FOOTER_KEY, allowed_algorithms=algorithms)
    with pytest.raises(TypeError, match="unexpected keyword"):
        FileDecryptionProperties(FOOTER_KEY, check_nothing=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="24 or 32 bytes, not"):
        FileEncryptionProperties(wrong)
    with pytest.raises(ValueError, match="footer_key_metadata"):
        ColumnEncryptionProperties(key_metadata=b"id")


@pytest.mark.parametrize(
    ("make", "option", "value"),
    [
        *((FileEncryptionProperties, option, "False") for option in ("plaintext_footer", "store_aad_prefix")),
        *(
            (FileDecryptionProperties, option, "False")
            for option in ("allow_plaintext_files", "verify_footer_signature", "allow_duckdb_dialect")
        ),
        (FileEncryptionProperties, "footer_key_metadata", "id"),
        (ColumnEncryptionProperties, "key_metadata", "id"),
        (FileEncryptionProperties, "column_keys", [("id", KEY)]),
        (FileEncryptionProperties, "column_keys", {1: KEY}),
        (FileEncryptionProperties, "column_keys", {("point", 1): KEY}),
        (FileEncryptionProperties, "column_keys", {"id": None}),      # not the footer key: a lookup that found nothing
        (FileDecryptionProperties, "column_keys", {"id": None}),
        (FileDecryptionProperties, "key_retriever", {b"id": KEY}),
    ],
)
def test_options_of_another_type(make: Any, option: str, value: Any) -> None:
    """A text is no switch: that of ``"False"`` would open a policy, or a footer."""
    with pytest.raises(TypeError):
        make(FOOTER_KEY, **{option: value})


def test_properties_of_another_kind() -> None:
    encrypted = io.BytesIO()
    fastpq.write_table({"a": np.arange(3)}, encrypted, encryption_properties=FileEncryptionProperties(FOOTER_KEY))
    wrong: Any
    for wrong in (FOOTER_KEY, {"footer_key": FOOTER_KEY}, FileEncryptionProperties(FOOTER_KEY)):
        with pytest.raises(TypeError, match="FileDecryptionProperties"):
            fastpq.read_table(encrypted.getvalue(), decryption_properties=wrong)
    for wrong in (FOOTER_KEY, {"footer_key": FOOTER_KEY}, FileDecryptionProperties(FOOTER_KEY)):
        with pytest.raises(TypeError, match="FileEncryptionProperties"):
            fastpq.write_table({"a": np.arange(3)}, io.BytesIO(), encryption_properties=wrong)


def test_too_many_columns_to_encrypt() -> None:
    paths = [(f"c{index}",) for index in range(32769)]
    with pytest.raises(CryptoError, match="32768"):
        open_file_encryptor(FileEncryptionProperties(FOOTER_KEY), paths)
    open_file_encryptor(FileEncryptionProperties(FOOTER_KEY, {"c5": KEY}, unlisted="plaintext"), paths)
