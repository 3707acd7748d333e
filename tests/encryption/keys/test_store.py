"""Material files in folders where others may write too."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

import fastpq
from fastpq.encryption import EncryptionConfiguration, KmsConnectionConfig
from tests.encryption.keys.peers import MASTER_KEYS, NEW_MASTER_KEYS, factory

CONNECTION = KmsConnectionConfig()
EXTERNAL = EncryptionConfiguration("kf", uniform_encryption=True, internal_key_material=False)
LOCAL = fsspec.filesystem("file")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "shared"
    made.mkdir()
    return made


def plant(folder: Path, kind: str) -> Path:
    """A symbolic link in the place of the material file; returns its target."""
    target = folder.parent / "target"
    if kind == "file":
        target.write_bytes(b"precious")
    elif kind == "folder":
        target.mkdir()
    elif kind == "device":
        target = Path(os.devnull)
    (folder / "_KEY_MATERIAL_FOR_file.parquet.json").symlink_to(target)
    return target


@pytest.mark.parametrize("kind", ["file", "nothing", "folder", "device"])
@pytest.mark.parametrize("filesystem", [None, LOCAL], ids=["path", "fsspec"])
def test_key_material_is_not_written_through_a_planted_link(folder: Path, kind: str, filesystem: Any) -> None:
    path, target = folder / "file.parquet", plant(folder, kind)
    made = factory().file_encryption_properties(CONNECTION, EXTERNAL, path, filesystem)
    fastpq.write_table({"a": np.arange(3)}, path, encryption_properties=made)
    if kind == "file":
        assert target.read_bytes() == b"precious"
    elif kind == "folder":
        assert not list(target.iterdir())
    else:
        assert target.exists() == (kind == "device")
    material = folder / "_KEY_MATERIAL_FOR_file.parquet.json"
    assert not material.is_symlink()
    assert set(json.loads(material.read_text())) == {"footerKey"}
    assert sorted(found.name for found in folder.iterdir()) == [material.name, path.name]
    opened = factory().file_decryption_properties(CONNECTION, None, path, filesystem)
    assert fastpq.read_table(path, decryption_properties=opened).num_rows == 3


def test_rotation_replaces_a_link_by_a_file(folder: Path) -> None:
    """The link may lead to material of another folder, which stays as it is."""
    path = folder / "file.parquet"
    made = factory().file_encryption_properties(CONNECTION, EXTERNAL, path)
    fastpq.write_table({"a": np.arange(3)}, path, encryption_properties=made)
    material, elsewhere = folder / "_KEY_MATERIAL_FOR_file.parquet.json", folder.parent / "elsewhere.json"
    material.rename(elsewhere)
    before = elsewhere.read_bytes()
    material.symlink_to(elsewhere)
    factory(NEW_MASTER_KEYS, MASTER_KEYS).rotate_master_keys(CONNECTION, path)
    assert elsewhere.read_bytes() == before
    assert not material.is_symlink()
    opened = factory(NEW_MASTER_KEYS).file_decryption_properties(CONNECTION, None, path)
    assert fastpq.read_table(path, decryption_properties=opened).num_rows == 3


def test_rotation_keeps_the_permissions_of_a_material_file(folder: Path) -> None:
    path = folder / "file.parquet"
    factory().file_encryption_properties(CONNECTION, EXTERNAL, path)
    path.write_bytes(b"")
    material = folder / "_KEY_MATERIAL_FOR_file.parquet.json"
    material.chmod(0o640)
    factory().rotate_master_keys(CONNECTION, path)
    assert material.stat().st_mode & 0o777 == 0o640
