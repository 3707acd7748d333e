"""PKMT1: byte for byte what Arrow and parquet-java store, and nothing else is taken for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fastpq import format as fmt
from fastpq.encryption import EncryptionConfiguration, KmsConnectionConfig
from fastpq.encryption.keys.material import (
    LARGEST_MATERIAL,
    KeyMaterial,
    parse_key_material,
    parse_key_metadata,
    parse_material_file,
    serialize_reference,
)
from fastpq.errors import FormatError, LimitError, ParquetError, UnsupportedError
from tests.encryption.keys.peers import MASTER_KEYS, factory
from tests.requirements import DATA, needs_data

FIXTURES = DATA / "encryption/fixtures"

DOUBLE: dict[str, Any] = {
    "keyMaterialType": "PKMT1",
    "internalStorage": True,
    "isFooterKey": True,
    "kmsInstanceID": "DEFAULT",
    "kmsInstanceURL": "DEFAULT",
    "masterKeyID": "kf",
    "wrappedDEK": "x" * 60,
    "doubleWrapping": True,
    "keyEncryptionKeyID": "p++219+WaoCIfE1TDaJbCQ==",
    "wrappedKEK": "anything",
}
SINGLE = {name: value for name, value in DOUBLE.items() if name not in ("keyEncryptionKeyID", "wrappedKEK")} | {
    "doubleWrapping": False
}


def dumped(members: dict[str, Any]) -> bytes:
    return json.dumps(members).encode()


def without(members: dict[str, Any], name: str) -> dict[str, Any]:
    return {own: value for own, value in members.items() if own != name}


def footer_key_metadata(name: str) -> bytes:
    data = (FIXTURES / f"{name}.parquet").read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - size : -8]
    if data[-4:] == b"PARE":
        metadata = fmt.decode(fmt.FileCryptoMetaData, footer)[0].key_metadata
    else:
        metadata = fmt.decode(fmt.FileMetaData, footer)[0].footer_signing_key_metadata
    assert metadata
    return metadata


@needs_data
@pytest.mark.parametrize("name", ["pa_ef_gcm", "pa_single", "pa_b256", "pa_uni_gcm", "pa_pf_gcm", "pa_external"])
def test_arrow_s_bytes(name: str) -> None:
    stored = footer_key_metadata(name)
    parsed = parse_key_metadata(stored)
    again = serialize_reference(parsed) if isinstance(parsed, str) else parsed.serialize(internal=True).encode()
    assert again == stored


@needs_data
@pytest.mark.parametrize("name", ["sp_ef_gcm", "sp_b256", "sp_external", "sp_pf_gcm"])
def test_parquet_java_s_members(name: str) -> None:
    stored = footer_key_metadata(name)
    parsed = parse_key_metadata(stored)
    again = serialize_reference(parsed) if isinstance(parsed, str) else parsed.serialize(internal=True).encode()
    assert json.loads(again) == json.loads(stored)


@needs_data
@pytest.mark.parametrize("name", ["pa_external", "sp_external"])
def test_material_files(name: str) -> None:
    stored = (FIXTURES / f"_KEY_MATERIAL_FOR_{name}.parquet.json").read_bytes()
    for text in parse_material_file(stored).values():
        again = parse_key_material(text).serialize(internal=False)
        assert json.loads(again) == json.loads(text)
        assert name != "pa_external" or again == text


def test_what_peers_tolerate_is_tolerated() -> None:
    members = dict(reversed(DOUBLE.items())) | {"unknown": [1, {"deep": None}]}
    parsed = parse_key_metadata(json.dumps(members, indent=3).encode())
    assert isinstance(parsed, KeyMaterial)
    assert parsed.kek_id is not None
    assert len(parsed.kek_id) == 16
    bare = parse_key_metadata(dumped(without(without(SINGLE, "kmsInstanceID"), "kmsInstanceURL")))
    assert isinstance(bare, KeyMaterial)
    assert (bare.kms_instance_id, bare.kek_id, bare.wrapped_kek) == (None, None, None)


MALFORMED: dict[str, tuple[bytes, type[ParquetError], str]] = {
    "empty": (b"", FormatError, "not JSON"),
    "an id of another scheme": (b"kf", FormatError, "not JSON"),
    "not UTF-8": (b'{"keyMaterialType":"\xff"}', FormatError, "not JSON"),
    "UTF-16": (json.dumps(SINGLE).encode("utf-16"), FormatError, "not JSON"),
    "cut": (dumped(SINGLE)[:-1], FormatError, "not JSON"),
    "two values": (dumped(SINGLE) * 2, FormatError, "not JSON"),
    "not a number": (b'{"x":NaN}', FormatError, "not JSON"),
    "too long a number": (b'{"x":' + b"9" * 5000 + b"}", FormatError, "not JSON"),
    "nested too deep": (b'{"x":' + b"[" * 60_000, FormatError, "not JSON"),
    "half a surrogate pair": (dumped(SINGLE | {"masterKeyID": "\ud800"}), FormatError, "not JSON"),
    "an array": (b"[1]", FormatError, "not a JSON object"),
    "null": (b"null", FormatError, "not a JSON object"),
    "a name twice": (dumped(SINGLE)[:-1] + b',"isFooterKey":false}', FormatError, "twice"),
    "a name twice, further in": (dumped(SINGLE)[:-1] + b',"x":{"y":1,"y":1}}', FormatError, "twice"),
    "no type": (dumped(without(SINGLE, "keyMaterialType")), FormatError, "keyMaterialType is missing"),
    "another type": (dumped(SINGLE | {"keyMaterialType": "PKMT2"}), UnsupportedError, "PKMT2"),
    "a long type": (dumped(SINGLE | {"keyMaterialType": "x" * 9999}), UnsupportedError, r"x{40}\.\.\.'"),
    "a type that is no text": (dumped(SINGLE | {"keyMaterialType": 1}), FormatError, "keyMaterialType is not text"),
    "no reference": (b'{"keyMaterialType":"PKMT1","internalStorage":false}', FormatError, "keyReference is missing"),
    "base64 without padding": (dumped(DOUBLE | {"keyEncryptionKeyID": "QUI"}), FormatError, "not base64"),
    "URL-safe base64": (dumped(DOUBLE | {"keyEncryptionKeyID": "p--219-WaoCIfE1TDaJbCQ=="}), FormatError, "not base64"),
    "base64 with bits left over": (dumped(DOUBLE | {"keyEncryptionKeyID": "QR=="}), FormatError, "not base64"),
    "base64 with a line break": (dumped(DOUBLE | {"keyEncryptionKeyID": "QUJD\n"}), FormatError, "not base64"),
    "base64 that is not ASCII": (dumped(DOUBLE | {"keyEncryptionKeyID": "QUJÄ"}), FormatError, "not base64"),
    "oversize": (dumped(SINGLE | {"x": "y" * LARGEST_MATERIAL}), LimitError, str(LARGEST_MATERIAL)),
    **{
        f"{name} {kind}": (dumped(members), FormatError, f"{name} is {message}")
        for name in ("internalStorage", "isFooterKey", "doubleWrapping")
        for kind, message, members in (
            ("missing", "missing", without(SINGLE, name)),
            ("as text", "not a boolean", SINGLE | {name: "true"}),
            ("as a number", "not a boolean", SINGLE | {name: 1}),
            ("null", "not a boolean", SINGLE | {name: None}),
        )
    },
    **{
        f"{name} {kind}": (dumped(members), FormatError, f"{name} is {message}")
        for name in ("masterKeyID", "wrappedDEK", "keyEncryptionKeyID", "wrappedKEK")
        for kind, message, members in (
            ("missing", "missing", without(DOUBLE, name)),
            ("as a number", "not text", DOUBLE | {name: 7}),
            ("empty", "not text", DOUBLE | {name: ""}),
        )
    },
    "kmsInstanceID as a number": (dumped(SINGLE | {"kmsInstanceID": 7}), FormatError, "kmsInstanceID is not text"),
    "kmsInstanceURL null": (dumped(SINGLE | {"kmsInstanceURL": None}), FormatError, "kmsInstanceURL is not text"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_key_metadata(name: str) -> None:
    data, kind, message = MALFORMED[name]
    with pytest.raises(kind, match=message) as raised:
        parse_key_metadata(data)
    assert type(raised.value) is kind
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"[]", "object"), (b'{"footerKey":{}}', "is not a string"), (b'{"a":"","a":""}', "twice"), (b"\x00", "JSON")],
)
def test_malformed_material_files(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parse_material_file(data)


@pytest.mark.parametrize("dek", ["QUJD", "not base64!", "A" * 56 + "===="])
def test_a_wrapped_data_key_of_another_size(dek: str) -> None:
    """The KEK is right, so this is the first thing that is wrong."""
    keys = factory(MASTER_KEYS)
    made = keys.file_encryption_properties(KmsConnectionConfig(), EncryptionConfiguration("kf", uniform_encryption=True))
    members = json.loads(made.footer_key_metadata or b"") | {"wrappedDEK": dek}
    retriever = keys.file_decryption_properties(KmsConnectionConfig()).key_retriever
    assert retriever is not None
    with pytest.raises(FormatError, match="wrapped"):
        retriever(dumped(members))
