"""Rotation of master keys: peers read what fastpq rotated and the other way round, and nothing is lost on the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import fastpq
from fastpq.encryption import EncryptionConfiguration, KmsConnectionConfig
from tests.encryption.keys.peers import MASTER_KEYS, NEW_MASTER_KEYS, arrow_factory, factory, key_list, managed_keys
from tests.encryption.test_exchange import ROWS, assert_expected, columns, expected, lines
from tests.interop.parquet_java import ParquetJava

CONNECTION = KmsConnectionConfig()
BY_COLUMN = {"kc1": ["price"], "kc2": ["name"]}
JAVA_OPTIONS = "footer.key=kf column.keys=kc1:price;kc2:name key.material.store.internally=false"
ROOT = Path(__file__).parents[3]


def write(path: Path, double: bool = True, bits: int = 128) -> None:
    configuration = EncryptionConfiguration(
        "kf", column_keys=BY_COLUMN, internal_key_material=False, double_wrapping=double, data_key_length_bits=bits
    )
    keys = factory().file_encryption_properties(CONNECTION, configuration, path)
    fastpq.write_table(columns(), path, encryption_properties=keys)


def write_with_arrow(path: Path) -> None:
    configuration = pe.EncryptionConfiguration("kf", column_keys=BY_COLUMN, internal_key_material=False)
    keys = arrow_factory().file_encryption_properties(pe.KmsConnectionConfig(), configuration, str(path))
    pq.write_table(expected(), path, encryption_properties=keys)


def read(path: Path, master_keys: Any = NEW_MASTER_KEYS) -> fastpq.Table:
    keys = factory(master_keys).file_decryption_properties(CONNECTION, None, path)
    return fastpq.read_table(path, decryption_properties=keys)


def read_with_arrow(path: Path) -> Any:
    keys = arrow_factory(NEW_MASTER_KEYS).file_decryption_properties(
        pe.KmsConnectionConfig(), pe.DecryptionConfiguration(), str(path)
    )
    return pq.read_table(path, decryption_properties=keys)


def rotate(path: Path, **options: Any) -> list[str]:
    return factory(NEW_MASTER_KEYS, MASTER_KEYS).rotate_master_keys(CONNECTION, path, **options)


def material_of(path: Path) -> dict[str, dict[str, Any]]:
    stored = json.loads((path.parent / f"_KEY_MATERIAL_FOR_{path.name}.json").read_text())
    return {reference: json.loads(text) for reference, text in stored.items()}


@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("rotated", [True, False])
def test_pyarrow_reads_what_fastpq_rotated(tmp_path: Path, written: bool, rotated: bool) -> None:
    path = tmp_path / "file.parquet"
    write(path, double=written)
    before, content = material_of(path), path.read_bytes()
    assert rotate(path, double_wrapping=rotated) == [str(path)]
    after = material_of(path)
    assert path.read_bytes() == content
    assert after.keys() == before.keys() == {"footerKey", "columnKey0", "columnKey1"}
    assert all(entry["doubleWrapping"] == rotated for entry in after.values())
    assert all(after[name]["wrappedDEK"] != before[name]["wrappedDEK"] for name in after)
    assert_expected(read_with_arrow(path))
    assert_expected(read(path))
    with pytest.raises(fastpq.KeyAccessError):
        read(path, MASTER_KEYS)


def test_keks_are_as_long_as_the_data_keys(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    write(path, double=False, bits=256)
    rotate(path)
    assert_expected(read(path))
    wrapped = material_of(path)["footerKey"]["wrappedKEK"]
    assert len(wrapped) == 80       # base64 of nonce, 32 bytes and tag


def test_peers_read_what_fastpq_rotated_of_each(tmp_path: Path, parquet_java: ParquetJava) -> None:
    paths = [tmp_path / f"{name}.parquet" for name in ("arrow", "fastpq", "java")]
    write_with_arrow(paths[0])
    write(paths[1])
    managed_keys(parquet_java, "write", paths[2], str(ROWS), options=JAVA_OPTIONS)
    assert (tmp_path / "._KEY_MATERIAL_FOR_java.parquet.json.crc").exists()     # or there is nothing to remove
    assert rotate(tmp_path) == [str(path) for path in paths]
    for path in paths:
        assert_expected(read_with_arrow(path))
        assert_expected(read(path))
    assert managed_keys(parquet_java, "read", *paths, wrapping=NEW_MASTER_KEYS) == lines() * 3


def test_fastpq_reads_what_pyarrow_rotated(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    write(path)
    arrow_factory(NEW_MASTER_KEYS, MASTER_KEYS).rotate_master_keys(pe.KmsConnectionConfig(), str(path))
    assert_expected(read(path))


def test_fastpq_reads_what_parquet_java_rotated(tmp_path: Path, parquet_java: ParquetJava) -> None:
    path = tmp_path / "file.parquet"
    write(path)
    managed_keys(parquet_java, "rotate", tmp_path, options=JAVA_OPTIONS, wrapping=NEW_MASTER_KEYS, unwrapping=MASTER_KEYS)
    assert_expected(read(path))
    before = material_of(path)
    factory(MASTER_KEYS, NEW_MASTER_KEYS).rotate_master_keys(CONNECTION, path)
    assert material_of(path) != before
    assert_expected(read(path, MASTER_KEYS))


def test_folders(tmp_path: Path) -> None:
    visible = [tmp_path / "year=1" / "a.parquet", tmp_path / "year=2" / "b.parquet", tmp_path / "c.parquet"]
    for path in visible:
        path.parent.mkdir(exist_ok=True)
        write(path)
    for hidden in ("_SUCCESS", ".part.crc", "_temporary/0/part.parquet"):
        (tmp_path / hidden).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / hidden).write_bytes(b"")
    assert sorted(rotate(tmp_path)) == sorted(map(str, visible))
    for path in visible:
        assert_expected(read(path))
    footers = [material_of(path)["footerKey"] for path in visible]
    assert len({footer["keyEncryptionKeyID"] for footer in footers}) == 1      # one new KEK for a master key


def test_files_without_a_material_file_stop_a_rotation_before_it_begins(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    before = material_of(tmp_path / "a.parquet")
    for name in "bcdef":
        fastpq.write_table({"a": np.arange(3)}, tmp_path / f"{name}.parquet")
    with pytest.raises(fastpq.SchemaError, match=r"no key material file for b\.parquet, c\.parquet, d\.parquet, \.\.\.:"):
        rotate(tmp_path)
    assert material_of(tmp_path / "a.parquet") == before
    with pytest.raises(fastpq.SchemaError, match=r"no key material file for b\.parquet:"):
        rotate(tmp_path / "b.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(fastpq.SchemaError, match="no files"):
        rotate(tmp_path / "empty")


def test_new_files_do_not_get_keks_that_old_versions_wrapped(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    write(path)
    wrapping = dict(MASTER_KEYS)
    keys = factory(wrapping, MASTER_KEYS)
    uniform = EncryptionConfiguration("kf", uniform_encryption=True)
    first = keys.file_encryption_properties(CONNECTION, uniform).footer_key_metadata
    wrapping.update(NEW_MASTER_KEYS)
    keys.rotate_master_keys(CONNECTION, path)
    second = keys.file_encryption_properties(CONNECTION, uniform).footer_key_metadata
    assert first is not None
    assert second is not None
    assert json.loads(first)["wrappedKEK"] != json.loads(second)["wrappedKEK"]
    retriever = factory(NEW_MASTER_KEYS).file_decryption_properties(CONNECTION).key_retriever
    assert retriever is not None
    assert retriever(second)
    with pytest.raises(fastpq.KeyAccessError):
        retriever(first)


def test_a_service_that_fails_on_the_way(tmp_path: Path) -> None:
    for name in "ab":
        write(tmp_path / f"{name}.parquet")
    stored = json.loads((tmp_path / "_KEY_MATERIAL_FOR_b.parquet.json").read_text())
    broken = json.loads(stored["columnKey1"]) | {"masterKeyID": "unknown"}
    (tmp_path / "_KEY_MATERIAL_FOR_b.parquet.json").write_text(json.dumps(stored | {"columnKey1": json.dumps(broken)}))
    before = material_of(tmp_path / "b.parquet")
    with pytest.raises(fastpq.KeyAccessError, match=r"'unknown'.*b\.parquet"):
        rotate(tmp_path)
    assert_expected(read(tmp_path / "a.parquet"))
    assert material_of(tmp_path / "b.parquet") == before


def test_a_rotation_that_a_peer_did_not_finish(tmp_path: Path, parquet_java: ParquetJava) -> None:
    """parquet-java and Arrow save under another name, delete, and rename: between the last two only the former is there."""
    path = tmp_path / "file.parquet"
    write(path)
    stored = tmp_path / "_KEY_MATERIAL_FOR_file.parquet.json"
    interrupted = tmp_path / "_TMP_KEY_MATERIAL_FOR_file.parquet.json"
    stored.rename(interrupted)
    assert_expected(read(path, MASTER_KEYS))
    rotate(path)
    assert stored.exists()
    assert not interrupted.exists()
    assert_expected(read(path))
    assert managed_keys(parquet_java, "read", path, wrapping=NEW_MASTER_KEYS) == lines()


KILLED = """
import base64, os, sys
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from fastpq.encryption import CryptoFactory, KmsConnectionConfig

class Kms:
    keys = [dict(entry.split(":") for entry in sys.argv[place].split(",")) for place in (3, 4)]

    def wrap_key(self, key, name):
        sealed = AESGCM(bytes.fromhex(self.keys[0][name])).encrypt(bytes(12), key, name.encode())
        return base64.b64encode(bytes(12) + sealed).decode()

    def unwrap_key(self, wrapped, name):
        sealed = base64.b64decode(wrapped)
        return AESGCM(bytes.fromhex(self.keys[1][name])).decrypt(sealed[:12], sealed[12:], name.encode())

left = int(sys.argv[2])

def counted(call):
    def at(*arguments, **options):
        global left
        left -= 1
        if left < 0:
            os._exit(9)
        return call(*arguments, **options)
    return at

for name in ("open", "fsync", "replace", "unlink"):
    setattr(os, name, counted(getattr(os, name)))
CryptoFactory(lambda config: Kms()).rotate_master_keys(KmsConnectionConfig(), sys.argv[1])
"""


def test_a_rotation_killed_at_any_step_leaves_a_readable_dataset(tmp_path: Path) -> None:
    """The process ends without any clean-up before its first, second, ... call that changes a file."""
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path in paths:
        write(path)
    originals = {path: path.read_bytes() for path in tmp_path.iterdir()}
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    outcomes = []
    for steps in range(100):
        for path in tmp_path.iterdir():
            path.unlink()
        for path, content in originals.items():
            path.write_bytes(content)
        command = [sys.executable, "-c", KILLED, str(tmp_path), str(steps), key_list(NEW_MASTER_KEYS), key_list(MASTER_KEYS)]
        done = subprocess.run(command, env=environment, check=False)
        assert done.returncode in (0, 9)
        rotated = 0
        for path in paths:
            changed = material_of(path) != json_of(originals[tmp_path / f"_KEY_MATERIAL_FOR_{path.name}.json"])
            assert_expected(read(path, NEW_MASTER_KEYS if changed else MASTER_KEYS))
            rotated += changed
        outcomes.append(rotated)
        if done.returncode == 0:
            break
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {0, 1, 2}


def json_of(data: bytes) -> dict[str, dict[str, Any]]:
    return {reference: json.loads(text) for reference, text in json.loads(data).items()}
