"""Keys of Iceberg tables: key metadata, encrypted streams and the chain of keys, against other implementations and attackers."""

from __future__ import annotations

import contextlib
import copy
import gc
import io
import json
import os
import pickle
import struct
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fastpq
from fastpq.catalogs.iceberg import EncryptedKey, GcmStreamReader, GcmStreamWriter, StandardKeyMetadata, TableKeys
from fastpq.catalogs.iceberg.key_chain import KEK_LIFETIME, bytes_of_wrapped_key, data_key_bits, text_of_wrapped_key
from fastpq.encryption import AesKey, AuditLog, AuditRecord, Keyring
from fastpq.encryption.sealing import open_bytes, seal_bytes
from tests.catalogs.iceberg_peers import BLOCK, RustMemoryKms, datum_of_key_metadata, open_stream, seal_stream
from tests.own_code import is_own_code
from tests.requirements import DATA, is_there, needs_data, peer

KEY = b"0123456789abcdef"
PREFIX = b"prefix of a file"


def metadata_of(stored: bytes, key: bytes = KEY, prefix: bytes | None = PREFIX) -> StandardKeyMetadata:
    return StandardKeyMetadata(key, aad_prefix=prefix, file_length=len(stored))


# ---- key metadata

LONGER = KEY + KEY[:8]
VECTORS = [
    # the bytes, spelled out by the Avro specification
    (KEY, None, None, b"\x01\x20" + KEY + b"\x00\x00"),
    (KEY, b"", 0, b"\x01\x20" + KEY + b"\x02\x00\x02\x00"),
    (KEY * 2, b"ab", 300, b"\x01\x40" + KEY * 2 + b"\x02\x04ab\x02\xd8\x04"),
    (LONGER, PREFIX, (1 << 63) - 1, b"\x01\x30" + LONGER + b"\x02\x20" + PREFIX + b"\x02\xfe" + b"\xff" * 8 + b"\x01"),
]


@pytest.mark.parametrize(("key", "prefix", "length", "encoded"), VECTORS)
def test_key_metadata_both_ways(key: bytes, prefix: bytes | None, length: int | None, encoded: bytes) -> None:
    metadata = StandardKeyMetadata(key, aad_prefix=prefix, file_length=length)
    assert metadata.to_bytes() == encoded
    for data in (encoded, bytearray(encoded), memoryview(encoded)):
        decoded = StandardKeyMetadata.from_bytes(data)
        assert decoded.encryption_key.matches(AesKey(key))
        assert (decoded.aad_prefix, decoded.file_length) == (prefix, length)


@pytest.mark.parametrize(("key", "prefix", "length", "encoded"), VECTORS)
def test_an_avro_writer_gives_the_same_key_metadata(key: bytes, prefix: bytes | None, length: int | None, encoded: bytes) -> None:
    if not is_there(peer("pyiceberg")):
        pytest.skip("needs pyiceberg (pip install pyiceberg)")
    assert datum_of_key_metadata(key, prefix, length) == encoded


def test_generated_key_metadata_differ() -> None:
    first, second = StandardKeyMetadata.generate(), StandardKeyMetadata.generate()
    assert first.aad_prefix is not None
    assert len(first.aad_prefix) == 16
    assert first.aad_prefix != second.aad_prefix
    assert not first.encryption_key.matches(second.encryption_key)
    assert StandardKeyMetadata.generate(key_bits=256).encryption_key.bits == 256
    with_length = first.with_file_length(7)
    assert (with_length.aad_prefix, with_length.file_length) == (first.aad_prefix, 7)
    assert with_length.encryption_key.matches(first.encryption_key)


WHOLE = VECTORS[2][3]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        *((WHOLE[:size], "empty|end inside|ends outside") for size in range(len(WHOLE))),
        (WHOLE + b"\0", "1 bytes follow"),
        (b"\x02" + WHOLE[1:], "version 2"),
        (b"\x01\x22" + KEY + b"g\0\0", "16, 24 or 32 bytes, not 17"),
        (b"\x01\x1f" + KEY + b"\0\0", "ends outside"),                 # a negative length
        (b"\x01\x20" + KEY + b"\x04\0", "branch 2"),
        (b"\x01\x20" + KEY + b"\x00\x02\x01", "negative"),
        (b"\x01" + b"\xff" * 10 + b"\x01", "longer than 10 bytes"),
        (b"\x01" + b"\xff" * 9 + b"\x7f", "64 bits"),
        (b"\x01\x20" + KEY + bytes(1 << 16), "at most 65536"),
    ],
)
def test_malformed_key_metadata_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(fastpq.ParquetError, match=message) as raised:
        StandardKeyMetadata.from_bytes(data)
    assert "123456789abcdef" not in str(raised.value)


def test_every_altered_byte_gives_a_typed_error_or_other_metadata() -> None:
    for place in range(len(WHOLE)):
        for byte in range(256):
            data = WHOLE[:place] + bytes([byte]) + WHOLE[place + 1 :]
            with contextlib.suppress(fastpq.ParquetError):
                assert StandardKeyMetadata.from_bytes(data).to_bytes() == data


@pytest.mark.parametrize(
    "arguments", [{"aad_prefix": "text"}, {"file_length": -1}, {"file_length": True}, {"file_length": 1 << 63}]
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        StandardKeyMetadata(KEY, **arguments)
    _check_frames(raised.value)


def test_key_metadata_do_not_show_or_lend_their_key() -> None:
    metadata = StandardKeyMetadata(KEY, aad_prefix=PREFIX)
    assert "123456789abcdef" not in repr(metadata) + str(metadata)
    for use in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            use(metadata)


def _check_frames(error: BaseException) -> None:
    """Our frames in a traceback hold no key."""
    chain: BaseException | None = error
    while chain is not None:
        for frame, _ in traceback.walk_tb(chain.__traceback__):
            if is_own_code(frame.f_code.co_filename):
                shown = repr(frame.f_locals).encode() + b"".join(
                    bytes(value) for value in frame.f_locals.values() if isinstance(value, bytes | bytearray | memoryview)
                )
                assert b"123456789abcdef" not in shown, frame.f_code.co_name
        chain = chain.__cause__ or chain.__context__


@pytest.mark.parametrize(
    "call",
    [
        lambda: StandardKeyMetadata(KEY + b"g"),
        lambda: StandardKeyMetadata.from_bytes(WHOLE + b"\0"),
        lambda: StandardKeyMetadata.from_bytes(b"\x01\x22" + KEY + b"g\0\0"),
        lambda: GcmStreamReader(seal_stream(b"x", KEY, PREFIX), StandardKeyMetadata(KEY).to_bytes()),
        lambda: GcmStreamReader(bytes(8), metadata_of(bytes(8)).to_bytes()),
        lambda: GcmStreamReader(seal_stream(b"x", b"another key.....", PREFIX), metadata_of(bytes(37))).read(),
        lambda: GcmStreamWriter(io.BytesIO(), StandardKeyMetadata(KEY, file_length=1)),
    ],
)
def test_a_refusal_holds_no_key_in_our_frames(call: Any) -> None:
    with pytest.raises((fastpq.ParquetError, ValueError)) as raised:
        call()
    _check_frames(raised.value)
    assert "123456789abcdef" not in str(raised.value)


# ---- bytes that are not modules


@pytest.mark.parametrize("size", [0, 1, 100, 16_384, 1 << 20])
def test_sealed_bytes(size: int) -> None:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    key, plain = AesKey(KEY), os.urandom(size)
    sealed = seal_bytes(key, bytearray(plain), b"aad")
    assert len(sealed) == size + 28
    assert AESGCM(KEY).decrypt(sealed[:12], sealed[12:], b"aad") == plain
    assert open_bytes(key, memoryview(sealed), b"aad") == plain
    assert key.operations == 1
    for altered in (sealed[:-1], sealed + b"\0", bytes([sealed[0] ^ 1]) + sealed[1:]):
        with pytest.raises(fastpq.ParquetError):
            open_bytes(key, altered, b"aad")
    with pytest.raises(fastpq.TagVerificationError):
        open_bytes(key, sealed, b"")


# ---- AGS1 streams

SIZES = [0, 1, 1000, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 12_345]


@pytest.mark.parametrize("size", SIZES)
def test_streams_both_ways(size: int, tmp_path: Path) -> None:
    plain = os.urandom(size)
    with GcmStreamWriter(tmp_path / "stream", StandardKeyMetadata(KEY, aad_prefix=PREFIX)) as writer:
        for start in range(0, size, 300_000):
            assert writer.write(memoryview(plain)[start : start + 300_000]) == min(300_000, size - start)
        assert writer.tell() == size
    stored = (tmp_path / "stream").read_bytes()
    assert open_stream(stored, KEY, PREFIX) == plain
    assert len(stored) == 8 + size + 28 * max(1, -(-size // BLOCK))
    assert writer.key_metadata.file_length == len(stored)
    with GcmStreamReader(tmp_path / "stream", writer.key_metadata) as reader:
        assert reader.size == size
        assert reader.read() == plain
    foreign = seal_stream(plain, KEY, PREFIX)
    with GcmStreamReader(foreign, metadata_of(foreign).to_bytes()) as reader:
        assert reader.read() == plain


def test_seeking_and_reading_in_parts() -> None:
    plain = os.urandom(2 * BLOCK + 12_345)
    stored = seal_stream(plain, KEY, PREFIX)
    reader, expected = GcmStreamReader(io.BytesIO(stored), metadata_of(stored)), io.BytesIO(plain)
    for offset, whence, size in [
        (0, 0, 10), (BLOCK - 5, 0, 10), (-7, 2, 100), (-20, 1, 3), (5, 1, BLOCK), (BLOCK, 0, 2 * BLOCK), (len(plain) + 9, 0, 5),
        (3, 0, -1),
    ]:
        assert reader.seek(offset, whence) == expected.seek(offset, whence)
        assert reader.read(size) == expected.read(size)
        assert reader.tell() == expected.tell()
    reader.seek(BLOCK - 3)
    assert reader.read1() == plain[BLOCK - 3 : BLOCK]
    buffer = bytearray(10)
    assert reader.readinto(buffer) == 10
    assert buffer == plain[BLOCK : BLOCK + 10]
    reader.seek(-4, 2)
    assert reader.readinto(buffer) == 4
    with pytest.raises(ValueError, match="before the beginning"):
        reader.seek(-1)
    with pytest.raises(ValueError, match="whence"):
        reader.seek(0, 3)
    assert reader.readable()
    assert reader.seekable()
    assert io.BufferedReader(GcmStreamReader(stored, metadata_of(stored))).read(9) == plain[:9]
    reader.close()
    with pytest.raises(ValueError, match="closed"):
        reader.read()


def forgeries() -> dict[str, bytes]:
    plain = bytes(2 * BLOCK + 100)
    good, other = seal_stream(plain, KEY, PREFIX), seal_stream(plain, KEY, b"another file....")
    stored = BLOCK + 28
    first, second, rest = good[8 : 8 + stored], good[8 + stored : 8 + 2 * stored], good[8 + 2 * stored :]
    return {
        "cut off after a block": good[: 8 + 2 * stored],
        "cut off inside a block": good[:-1],
        "lengthened": good + bytes(28),
        "no block": good[:8],
        "empty": b"",
        "blocks exchanged": good[:8] + second + first + rest,
        "a block of another file": good[:8] + first + other[8 + stored : 8 + 2 * stored] + rest,
        "another file": other,
        "a flipped bit": good[:-1] + bytes([good[-1] ^ 1]),
        "another magic": b"AGS2" + good[4:],
        "another block length": good[:4] + struct.pack("<i", 1 << 19) + good[8:],
        "plaintext": plain,
    }


@pytest.mark.parametrize("name", forgeries())
def test_forged_streams_are_refused(name: str) -> None:
    good, forged = seal_stream(bytes(2 * BLOCK + 100), KEY, PREFIX), forgeries()[name]
    with pytest.raises(fastpq.ParquetError):
        GcmStreamReader(forged, metadata_of(good)).read()
    if name != "cut off after a block":     # the one that nobody can tell without the length
        with pytest.raises(fastpq.ParquetError):
            GcmStreamReader(forged, StandardKeyMetadata(KEY, aad_prefix=PREFIX), require_length=False).read()


def test_every_altered_byte_of_a_stream_is_noticed() -> None:
    stored = seal_stream(b"a short stream", KEY, PREFIX)
    for place in range(len(stored)):
        altered = stored[:place] + bytes([stored[place] ^ 0x40]) + stored[place + 1 :]
        with pytest.raises(fastpq.ParquetError):
            GcmStreamReader(altered, metadata_of(stored)).read()
    for size in range(len(stored)):
        for metadata in (metadata_of(stored), metadata_of(stored[:size])):
            with pytest.raises(fastpq.ParquetError):
                GcmStreamReader(stored[:size], metadata).read()


def test_a_stream_without_its_length() -> None:
    stored = seal_stream(b"plain", KEY, PREFIX)
    metadata = StandardKeyMetadata(KEY, aad_prefix=PREFIX)
    with pytest.raises(fastpq.CryptoError, match="require_length=False"):
        GcmStreamReader(stored, metadata)
    assert GcmStreamReader(stored, metadata, require_length=False).read() == b"plain"


def test_an_empty_stream_is_authenticated() -> None:
    stored = seal_stream(b"", KEY, PREFIX)
    assert GcmStreamReader(stored, metadata_of(stored)).read() == b""
    with pytest.raises(fastpq.TagVerificationError):
        GcmStreamReader(stored, metadata_of(stored, b"another key.....")).read()


def test_an_unfinished_stream_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "stream"
    with pytest.raises(RuntimeError), GcmStreamWriter(path, StandardKeyMetadata.generate()) as writer:
        writer.write(b"x")
        raise RuntimeError
    assert writer.closed
    writer = GcmStreamWriter(path, StandardKeyMetadata.generate())
    writer.write(b"x")
    del writer
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_a_stream_into_a_file_object() -> None:
    out = io.BytesIO()
    with GcmStreamWriter(out, StandardKeyMetadata(KEY, aad_prefix=PREFIX)) as writer:
        writer.write(b"plain")
    assert open_stream(out.getvalue(), KEY, PREFIX) == b"plain"
    with pytest.raises(ValueError, match="older file"):
        GcmStreamWriter(io.BytesIO(), writer.key_metadata)


# ---- the chain of keys


def table_metadata() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((DATA / "iceberg/TableMetadataV3ValidEncryption.json").read_text())
    return loaded


@needs_data
def test_the_chain_of_keys_of_iceberg_rust() -> None:
    table, kms = table_metadata(), RustMemoryKms({"master-1": bytes(range(16))})
    keys = TableKeys.from_metadata(kms, table, master_key_id="master-1")
    metadata = keys.open_key_metadata(table["snapshots"][0]["key-id"])
    keys.open_key_metadata(table["snapshots"][0]["key-id"])
    assert kms.calls == 1
    path = DATA / "iceberg/manifest-list-v3-encrypted.avro"
    with pytest.raises(fastpq.CryptoError, match="require_length"):
        GcmStreamReader(path, metadata)
    with GcmStreamReader(path, metadata, require_length=False) as reader:
        plain = reader.read()
    assert plain[:4] == b"Obj\x01"
    assert keys.to_json() == table["encryption-keys"]
    assert b"avro.schema" in plain


def _set(entry: int, **members: Any) -> Callable[[dict[str, Any]], object]:
    by_name = {name.replace("_", "-"): value for name, value in members.items()}
    return lambda table: table["encryption-keys"][entry].update(by_name)


ALTERED: dict[str, tuple[Callable[[dict[str, Any]], object], type[fastpq.ParquetError]]] = {
    "another timestamp": (_set(0, properties={"KEY_TIMESTAMP": "1781172301704"}), fastpq.TagVerificationError),
    "a timestamp with a zero": (_set(0, properties={"KEY_TIMESTAMP": "01781172301703"}), fastpq.TagVerificationError),
    "no number": (_set(0, properties={"KEY_TIMESTAMP": "a"}), fastpq.FormatError),
    "no timestamp": (_set(0, properties=None), fastpq.FormatError),
    "another master key": (_set(0, encrypted_by_id="master-2"), fastpq.KeyAccessError),
    "key metadata under the master key": (_set(1, encrypted_by_id="master-1"), fastpq.KeyAccessError),
    "key metadata under themselves": (_set(1, encrypted_by_id="1fb95f04-7f98-4b1f-a08f-e810cfb907ff"), fastpq.KeyAccessError),
    "no KEK": (lambda table: table["encryption-keys"].pop(0), fastpq.KeyAccessError),
    "no key metadata": (lambda table: table["encryption-keys"].pop(1), fastpq.KeyAccessError),
    "two KEKs": (lambda table: table["encryption-keys"].append(table["encryption-keys"][0]), fastpq.FormatError),
    "not base64": (_set(1, encrypted_key_metadata="not base64"), fastpq.FormatError),
    "too short": (_set(1, encrypted_key_metadata="AAAA"), fastpq.FormatError),
    "no name": (_set(1, encrypted_by_id=None), fastpq.FormatError),
    "no property": (lambda table: table["properties"].clear(), fastpq.SchemaError),
    "another property": (lambda table: table["properties"].update({"encryption.key-id": "master-2"}), fastpq.KeyAccessError),
}


@needs_data
@pytest.mark.parametrize("name", ALTERED)
def test_altered_table_metadata_are_refused(name: str) -> None:
    table, (change, error) = table_metadata(), ALTERED[name]
    change(table)
    kms = RustMemoryKms({"master-1": bytes(range(16)), "master-2": bytes(16)})
    with pytest.raises(error):
        TableKeys.from_metadata(kms, table, master_key_id="master-1").open_key_metadata(table["snapshots"][0]["key-id"])


def test_new_entries_open_again(tmp_path: Path) -> None:
    keyring = Keyring.create(tmp_path / "keyring", "passphrase", scrypt_log_n=10)
    keyring.create_key("table-key")
    keys = TableKeys(keyring, "table-key")
    metadata = StandardKeyMetadata.generate().with_file_length(12)
    ids = [keys.add_key_metadata(metadata) for _ in range(2)]
    table = {"properties": {"encryption.key-id": "table-key"}, "encryption-keys": json.loads(json.dumps(keys.to_json()))}
    assert len(table["encryption-keys"]) == 3       # one KEK
    kek = next(entry for entry in keys.encryption_keys.values() if entry.encrypted_by_id == "table-key")
    assert kek.encrypted_key_metadata.startswith(b"keyring:v")      # text of the client itself
    opened = TableKeys.from_metadata(keyring, table).open_key_metadata(ids[1])
    assert opened.to_bytes() == metadata.to_bytes()
    with pytest.raises(ValueError, match="length"):
        keys.add_key_metadata(StandardKeyMetadata.generate())
    keyring.create_key("newer-key")
    newer = {**table, "properties": {"encryption.key-id": "newer-key"}}
    with pytest.raises(fastpq.KeyAccessError, match="not the table's master key"):
        TableKeys.from_metadata(keyring, newer).open_key_metadata(ids[0])
    both = TableKeys.from_metadata(keyring, newer, trusted_master_keys=["table-key"])
    assert both.open_key_metadata(ids[0]).to_bytes() == metadata.to_bytes()
    newest = both.add_key_metadata(metadata)
    assert both.encryption_keys[both.encryption_keys[newest].encrypted_by_id].encrypted_by_id == "newer-key"


def test_each_use_of_a_kek_is_recorded() -> None:
    records: list[AuditRecord] = []
    kms, log = RustMemoryKms({"master": KEY}), AuditLog(records.append)
    keys = TableKeys(kms, "master", audit=log)
    key_id = keys.add_key_metadata(metadata_of(b""), file="list-1")
    keys.add_key_metadata(metadata_of(b""), file="list-2")
    TableKeys(kms, "master", keys.encryption_keys.values(), audit=log).open_key_metadata(key_id, file="list-1")
    with pytest.raises(fastpq.KeyAccessError):
        TableKeys(kms, "other", keys.encryption_keys.values(), audit=log).open_key_metadata(key_id, file="list-1")
    assert [(record.operation, record.file, record.key_id, record.client, record.outcome) for record in records] == [
        ("wrap", "list-1", "master", "RustMemoryKms", "ok"),
        ("cached", "list-2", "master", None, "ok"),
        ("unwrap", "list-1", "master", "RustMemoryKms", "ok"),
        ("unwrap", "list-1", "master", None, "failed"),
    ]
    assert KEY.decode() not in repr(records)

    def refuse(record: AuditRecord) -> None:
        raise OSError("the disk is full")

    strict = TableKeys(kms, "master", keys.encryption_keys.values(), audit=AuditLog(refuse, mandatory=True))
    with pytest.raises(fastpq.KeyAccessError):
        strict.open_key_metadata(key_id)
    with pytest.raises(TypeError, match="audit"):
        TableKeys(kms, "master", audit=print)  # type: ignore[arg-type]


def test_an_old_kek_encrypts_no_further_keys() -> None:
    kms = RustMemoryKms({"master": KEY})
    keys = TableKeys(kms, "master")
    keys.add_key_metadata(metadata_of(b""))
    kek = next(iter(keys.encryption_keys.values()))
    old = str(int(time.time() * 1000) - int(KEK_LIFETIME.total_seconds() * 1000) - 1000)
    aged = EncryptedKey(kek.key_id, kek.encrypted_key_metadata, kek.encrypted_by_id, {"KEY_TIMESTAMP": old})
    keys = TableKeys(kms, "master", [aged])
    keys.add_key_metadata(metadata_of(b""))
    assert len(keys.encryption_keys) == 3
    assert "123456789abcdef" not in repr(keys) + repr(keys.encryption_keys)
    with pytest.raises(TypeError, match="cannot be copied"):
        pickle.dumps(keys)


def test_the_key_service_refuses() -> None:
    class Refusing(RustMemoryKms):
        def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
            raise ValueError(f"no {KEY.decode()} for you")

    keys = TableKeys(RustMemoryKms({"master": KEY}), "master")
    key_id = keys.add_key_metadata(metadata_of(b""))
    refusing = TableKeys(Refusing({}), "master", keys.encryption_keys.values())
    with pytest.raises(fastpq.KeyAccessError) as raised:
        refusing.open_key_metadata(key_id)
    _check_frames(raised.value)
    with pytest.raises(TypeError, match="wrap_key"):
        TableKeys(object(), "master")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="name"):
        TableKeys(RustMemoryKms({}), "")


@pytest.mark.parametrize("stored", [bytes(range(100, 144)), b"vault:v1:abc+/=", b"AAAA", bytes(range(256))])
def test_wrapped_keys_as_text_and_bytes(stored: bytes) -> None:
    assert bytes_of_wrapped_key(text_of_wrapped_key(stored)) == (stored if stored != b"AAAA" else bytes(3))


@pytest.mark.parametrize("text", ["vault:v1:abc+/=", "AAAA", "cHJpbnRhYmxl", "keyring:v1:AA=="])
def test_texts_of_clients_survive(text: str) -> None:
    assert text_of_wrapped_key(bytes_of_wrapped_key(text)) == text


@pytest.mark.parametrize("text", ["", "with space", "ümlaut"])
def test_texts_that_cannot_be_stored(text: str) -> None:
    with pytest.raises(fastpq.CryptoError, match="cannot be stored"):
        bytes_of_wrapped_key(text)


def test_data_key_length() -> None:
    assert data_key_bits({}) == 128
    assert data_key_bits({"encryption.data-key-length": "32"}) == 256
    with pytest.raises(fastpq.SchemaError, match="16, 24 or 32"):
        data_key_bits({"encryption.data-key-length": "17"})
