"""A file with external key material is overwritten: it is readable at every moment, also by pyarrow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import fastpq
from fastpq.encryption import CryptoFactory, EncryptionConfiguration, KmsConnectionConfig
from fastpq.encryption.keys.material import generation_of, parse_key_metadata
from fastpq.encryption.keys.store import MaterialFile, MaterialPath
from tests.encryption.keys.peers import MASTER_KEYS, NEW_MASTER_KEYS, arrow_factory, factory

CONNECTION = KmsConnectionConfig()
EXTERNAL = EncryptionConfiguration("kf", column_keys={"kc1": ["a"]}, internal_key_material=False)


def read_by_fastpq(path: Path, keys: CryptoFactory) -> list[int]:
    opened = keys.file_decryption_properties(CONNECTION, None, path)
    return fastpq.read_table(path, decryption_properties=opened)["a"].to_pylist()


def read_by_arrow(path: Path, master_keys: Any = MASTER_KEYS, instance: str = "") -> list[int]:
    opened = arrow_factory(master_keys).file_decryption_properties(
        pe.KmsConnectionConfig(kms_instance_id=instance), pe.DecryptionConfiguration(), str(path))
    with pq.ParquetFile(path, decryption_properties=opened) as file:
        values: list[int] = file.read()["a"].to_pylist()
        return values


def written(path: Path, keys: CryptoFactory, value: int) -> fastpq.FileEncryptionProperties:
    properties = keys.file_encryption_properties(CONNECTION, EXTERNAL, path)
    fastpq.write_table({"a": [value], "b": [value]}, path, encryption_properties=properties)
    return properties


def material(path: Path) -> dict[str, str]:
    entries: dict[str, str] = json.loads(path.with_name(f"_KEY_MATERIAL_FOR_{path.name}.json").read_text())
    return entries


@pytest.mark.parametrize("settles", [True, False])
def test_old_and_new_file_are_readable_at_each_moment(tmp_path: Path, settles: bool) -> None:
    path, keys = tmp_path / "file.parquet", factory()
    written(path, keys, 1)
    old = ""
    for value in (2, 3, 4):
        properties = keys.file_encryption_properties(CONNECTION, EXTERNAL, path)
        assert read_by_fastpq(path, keys) == read_by_arrow(path) == [value - 1]
        fastpq.write_table({"a": [value], "b": [value]}, path, encryption_properties=properties)
        assert read_by_fastpq(path, keys) == read_by_arrow(path) == [value]
        assert properties.footer_key_metadata is not None
        reference = parse_key_metadata(properties.footer_key_metadata)
        assert isinstance(reference, str)
        generation = generation_of(reference)
        if settles:
            MaterialFile(MaterialPath(path)).settle(generation, old)
            assert {*material(path)} == {"footerKey", f"footerKey{generation}", f"columnKey0{generation}"}
            assert material(path)["footerKey"] == material(path)[f"footerKey{generation}"]
            assert read_by_fastpq(path, keys) == read_by_arrow(path) == [value]
        old = generation


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path, keys = tmp_path / "file.parquet", factory()
    written(path, keys, 1)
    for _ in range(3):
        keys.file_encryption_properties(CONNECTION, EXTERNAL, path)
    assert read_by_fastpq(path, keys) == read_by_arrow(path) == [1]


def test_an_overwritten_file_is_rotated_by_both(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    for value in (1, 2):
        written(path, factory(), value)
    factory(NEW_MASTER_KEYS, MASTER_KEYS).rotate_master_keys(CONNECTION, path)
    assert read_by_fastpq(path, factory(NEW_MASTER_KEYS)) == read_by_arrow(path, NEW_MASTER_KEYS) == [2]
    both = arrow_factory(MASTER_KEYS, NEW_MASTER_KEYS)
    both.rotate_master_keys(pe.KmsConnectionConfig(), str(path))
    # pyarrow takes a footer key under another reference for a column's, and does not store the key service with it
    assert read_by_fastpq(path, factory()) == read_by_arrow(path, instance="DEFAULT") == [2]


def test_two_writers_keep_the_keys_of_both(tmp_path: Path) -> None:
    path, keys = tmp_path / "file.parquet", factory()
    written(path, keys, 1)
    both = [keys.file_encryption_properties(CONNECTION, EXTERNAL, path) for _ in range(2)]
    for value, properties in enumerate(both):
        fastpq.write_table({"a": [value], "b": [value]}, path, encryption_properties=properties)
        assert read_by_fastpq(path, keys) == read_by_arrow(path) == [value]


def test_nothing_but_key_material_is_copied_from_a_planted_link(tmp_path: Path) -> None:
    path, keys = tmp_path / "file.parquet", factory()
    written(path, keys, 1)
    secret = tmp_path / "secret.json"
    secret.write_text('{"password": "hunter2"}')
    place = path.with_name(f"_KEY_MATERIAL_FOR_{path.name}.json")
    place.unlink()
    place.symlink_to(secret)
    with pytest.raises(fastpq.FormatError) as caught:
        keys.file_encryption_properties(CONNECTION, EXTERNAL, path)
    assert "hunter2" not in str(caught.value)
    assert place.is_symlink()


def test_overwriting_on_another_filesystem() -> None:
    keys, memory = factory(), fsspec.filesystem("memory")
    path = "memory://overwritten/file.parquet"
    for value in (1, 2):
        properties = keys.file_encryption_properties(CONNECTION, EXTERNAL, path)
        fastpq.write_table({"a": [value]}, path, encryption_properties=properties)
        opened = keys.file_decryption_properties(CONNECTION, None, path)
        assert fastpq.read_table(path, decryption_properties=opened)["a"].to_pylist() == [value]
    memory.rm("/overwritten", recursive=True)
