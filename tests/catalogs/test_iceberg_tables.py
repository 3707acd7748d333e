"""Whole encrypted tables of version 3: metadata, manifest lists and manifests as Iceberg encrypts them, read by PyIceberg."""

from __future__ import annotations

import copy
import gzip
import io
import json
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fastpq
from fastpq.catalogs.iceberg import (
    GcmStreamWriter,
    StandardKeyMetadata,
    TableKeys,
    open_encrypted_table,
    read_scan,
    write_data_file,
)
from fastpq.encryption import AuditLog
from tests.catalogs.iceberg_peers import RustMemoryKms, open_stream, seal_stream
from tests.catalogs.test_iceberg_scans import DATA, ROWS, append, same
from tests.own_code import is_own_code

MASTER = {"master": b"0123456789abcdef", "other": b"0123456789abcdeg"}
Change = Callable[[dict[str, Any]], object]


def local(location: str) -> Path:
    return Path(location.removeprefix("file://"))


class _Output:
    """An OutputFile of PyIceberg in memory."""

    def __init__(self) -> None:
        self.location, self.data = "memory", b""

    def create(self, overwrite: bool = False) -> Any:
        outer = self

        class Buffer(io.BytesIO):
            def close(self) -> None:
                outer.data = self.getvalue()
                super().close()

        return Buffer()


def encrypt_metadata(table: Any, kms: Any, change_metadata: Change = lambda metadata: None, **omitted: bool) -> str:
    """Encrypt the manifests and the manifest list of a table's newest snapshot, and return where the new metadata are.

    Args:
        table: a table of version 2 whose data files are encrypted.
        kms: the key service.
        change_metadata: changes the new metadata before they are written.
        omitted: ``manifest_keys`` leaves the key metadata of manifests out, and the manifests plaintext.
    """
    from pyiceberg.manifest import write_manifest_list

    snapshot, folder = table.current_snapshot(), local(table.location()) / "metadata"
    keys, manifests = TableKeys(kms, "master"), []
    for number, manifest in enumerate(snapshot.manifests(table.io)):
        path = folder / f"encrypted-manifest-{number}.avro"
        encrypted = copy.deepcopy(manifest)
        if omitted.get("manifest_keys"):
            path.write_bytes(local(manifest.manifest_path).read_bytes())
        else:
            with GcmStreamWriter(path, StandardKeyMetadata.generate()) as writer:
                writer.write(local(manifest.manifest_path).read_bytes())
            encrypted[14] = writer.key_metadata.to_bytes()
            assert encrypted.key_metadata == encrypted[14]
        encrypted[0], encrypted[1] = f"file://{path}", path.stat().st_size
        manifests.append(encrypted)
    output = _Output()
    with write_manifest_list(2, output, snapshot.snapshot_id, None, snapshot.sequence_number, "deflate") as list_writer:
        list_writer.add_manifests(manifests)
    with GcmStreamWriter(folder / "encrypted-list.avro", StandardKeyMetadata.generate()) as writer:
        writer.write(output.data)
    metadata = json.loads(local(table.metadata_location).read_text())
    newest = next(each for each in metadata["snapshots"] if each["snapshot-id"] == snapshot.snapshot_id)
    newest["manifest-list"] = f"file://{folder}/encrypted-list.avro"
    newest["key-id"] = keys.add_key_metadata(writer.key_metadata)
    metadata |= {"format-version": 3, "next-row-id": 0, "snapshots": [newest], "encryption-keys": keys.to_json()}
    metadata["properties"]["encryption.key-id"] = "master"
    metadata["snapshot-log"] = []
    change_metadata(metadata)
    path = folder / "v9.metadata.json"
    path.write_text(json.dumps(metadata))
    return f"file://{path}"


@pytest.fixture
def table(catalog: Any) -> Any:
    table = catalog.create_table("db.secret", schema=DATA.schema)
    append(table, write_data_file(DATA, table, encrypt=True))
    append(table, write_data_file(DATA.slice(0, 10), table, encrypt=True))
    return table


def load(location: str) -> Any:
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata(location)


def test_an_encrypted_table_is_read(table: Any) -> None:
    kms = RustMemoryKms(MASTER)
    location = encrypt_metadata(table, kms)
    kms.calls = 0
    encrypted = load(location)
    with pytest.raises(ValueError, match=r"Avro|magic|objects|Obj"):      # PyIceberg alone
        list(encrypted.scan().plan_files())
    opened = open_encrypted_table(encrypted, kms, master_key_id="master")
    assert kms.calls == 0
    assert same(read_scan(opened.scan()), pa.concat_tables([DATA.slice(0, 10), DATA]))
    assert read_scan(opened.scan(row_filter="id < 5", selected_fields=("id",))).num_rows == 10
    assert kms.calls == 1
    assert len(opened.inspect.files()) == 2
    records: list[Any] = []
    read_scan(open_encrypted_table(encrypted, kms, audit=AuditLog(records.append)).scan())
    assert [(record.operation, record.key_id, Path(record.file).name) for record in records] == [
        ("unwrap", "master", "encrypted-list.avro")
    ]
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        pickle.dumps(opened.io)
    assert repr(encrypted.io) != repr(opened.io)
    path = local(location)
    path.with_suffix(".json.gz").write_bytes(b"")
    compressed = path.parent / "v9.gz.metadata.json"
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_scan(open_encrypted_table(load(f"file://{compressed}"), kms).scan()).num_rows == ROWS + 10


def test_the_lists_of_another_implementation(table: Any) -> None:
    """The manifest list as the package cryptography encrypts it, also without a length."""
    kms = RustMemoryKms(MASTER)
    location = encrypt_metadata(table, kms)
    path = local(table.location()) / "metadata" / "encrypted-list.avro"
    metadata = json.loads(local(location).read_text())
    keys = TableKeys.from_metadata(kms, metadata)
    opened = keys.open_key_metadata(metadata["snapshots"][0]["key-id"])
    key = opened.to_bytes()[2:18]
    assert opened.aad_prefix is not None
    path.write_bytes(seal_stream(open_stream(path.read_bytes(), key, opened.aad_prefix), key, opened.aad_prefix))
    assert read_scan(open_encrypted_table(load(location), kms).scan()).num_rows == ROWS + 10


REFUSED: dict[str, tuple[Change, type[fastpq.ParquetError]]] = {
    "no master key": (lambda metadata: metadata["properties"].clear(), fastpq.SchemaError),
    "another master key": (lambda metadata: metadata["properties"].update({"encryption.key-id": "other"}), fastpq.KeyAccessError),
    "no key of the snapshot": (lambda metadata: metadata["snapshots"][0].pop("key-id"), fastpq.KeyAccessError),
    "no entries": (lambda metadata: metadata.pop("encryption-keys"), fastpq.KeyAccessError),
    "the KEK as the snapshot's key": (
        lambda metadata: metadata["snapshots"][0].update({"key-id": metadata["encryption-keys"][0]["key-id"]}),
        fastpq.KeyAccessError,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_forged_metadata_are_refused(name: str, table: Any) -> None:
    kms, (change, error) = RustMemoryKms(MASTER), REFUSED[name]
    encrypted = load(encrypt_metadata(table, kms, change))
    with pytest.raises(error):
        read_scan(open_encrypted_table(encrypted, kms, master_key_id="master").scan())


def test_plaintext_manifests_are_refused(table: Any) -> None:
    kms = RustMemoryKms(MASTER)
    encrypted = open_encrypted_table(load(encrypt_metadata(table, kms, manifest_keys=True)), kms)
    with pytest.raises(fastpq.KeyAccessError, match="no key metadata"):
        read_scan(encrypted.scan())


@pytest.mark.parametrize("name", ["encrypted-list.avro", "encrypted-manifest-0.avro"])
@pytest.mark.parametrize("forgery", ["altered", "cut off", "plaintext"])
def test_forged_manifests_are_refused(name: str, forgery: str, table: Any) -> None:
    kms = RustMemoryKms(MASTER)
    encrypted = open_encrypted_table(load(encrypt_metadata(table, kms)), kms)
    path = local(table.location()) / "metadata" / name
    stored = path.read_bytes()
    plain = local(table.current_snapshot().manifest_list).read_bytes()
    path.write_bytes({"altered": stored[:-1] + bytes([stored[-1] ^ 1]), "cut off": stored[:-1], "plaintext": plain}[forgery])
    with pytest.raises(fastpq.CryptoError) as raised:
        read_scan(encrypted.scan())
    assert name in str(raised.value)
    error: BaseException | None = raised.value
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if is_own_code(frame.f_code.co_filename):
                assert "Record[" not in repr(frame.f_locals)
                assert "DataFile[" not in repr(frame.f_locals)
        error = error.__cause__ or error.__context__


def test_malformed_metadata_are_refused(table: Any) -> None:
    location = encrypt_metadata(table, RustMemoryKms(MASTER))
    encrypted = load(location)
    for text, message in (("[", "not JSON"), ("[]", "JSON object")):
        local(location).write_text(text)
        with pytest.raises(fastpq.FormatError, match=message):
            open_encrypted_table(encrypted, RustMemoryKms(MASTER))
