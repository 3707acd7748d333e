"""Encrypted files with external key material: it goes where the files go."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.encryption import (
    CryptoFactory,
    DecryptionConfiguration,
    EncryptionConfiguration,
    KmsClient,
    KmsConnectionConfig,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="folders are exchanged on Linux")


class Service(KmsClient):
    """A key service that keeps nothing secret."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        return base64.b64encode(key_bytes).decode()

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


FACTORY, CONNECTION = CryptoFactory(lambda config: Service()), KmsConnectionConfig()


def keys(path: str) -> fastpq.FileEncryptionProperties:
    configuration = EncryptionConfiguration(footer_key="k", uniform_encryption=True, internal_key_material=False)
    return FACTORY.file_encryption_properties(CONNECTION, configuration, path)


def keys_of_reader(path: str) -> fastpq.FileDecryptionProperties:
    return FACTORY.file_decryption_properties(CONNECTION, DecryptionConfiguration(), path)


def rows_in(root: Path) -> int:
    return fastpq.read_dataset(root, decryption_properties=keys_of_reader).num_rows


def pairs_below(root: Path) -> int:
    """The number of files, each with its key material."""
    names = {path.name for path in root.rglob("*") if path.is_file()}
    files = {name for name in names if name.endswith(".parquet")}
    assert names - files == {f"_KEY_MATERIAL_FOR_{name}.json" for name in files}
    return len(files)


def test_key_material_goes_with_the_files(tmp_path: Path) -> None:
    root = tmp_path / "d"
    behaviors: list[Any] = ["append", "delete_matching", "delete_matching", "overwrite", "append", "append"]
    for behavior, part, files in zip(behaviors, (0, 1, 0, 1, 1, 0), (1, 2, 2, 1, 2, 3), strict=True):
        fastpq.write_dataset(
            {"x": np.arange(3), "p": [part] * 3}, root, partition_by=["p"], encryption_properties=keys,
            existing_data_behavior=behavior)
        assert pairs_below(root) == files
        assert rows_in(root) == 3 * files
    report = fastpq.compact(root, encryption_properties=keys, decryption_properties=keys_of_reader)
    assert len(report.replaced_files) == 2
    assert pairs_below(root) == 2
    assert rows_in(root) == 9


def test_failures_leave_no_key_material(tmp_path: Path) -> None:
    root = tmp_path / "d"
    fastpq.write_dataset({"x": [1], "p": [0]}, root, partition_by=["p"], encryption_properties=keys)

    def stream() -> Any:
        yield {"x": [2], "p": [0]}
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        fastpq.write_dataset(
            stream(), root, partition_by=["p"], encryption_properties=keys, existing_data_behavior="overwrite")
    assert pairs_below(root) == rows_in(root) == 1
