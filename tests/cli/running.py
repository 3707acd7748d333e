"""Runs the command in this process, and makes the files that its examples name."""

from __future__ import annotations

import base64
import io
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastpq
from fastpq.cli.program import run_command
from fastpq.encryption import CryptoFactory, EncryptionConfiguration, Keyring, KmsConnectionConfig

PASSPHRASE = "open sesame"
FOOTER_KEY, PRICE_KEY = b"0123456789012345", b"1234567890123450"


class Result(NamedTuple):
    """What a run printed and returned."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Runner:
    """Calls the command with arguments.

    Args:
        monkeypatch: restores streams and variables.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        monkeypatch.setenv("COLUMNS", "100")
        monkeypatch.delenv("FASTPQ_KEYS", raising=False)

    def __call__(self, *arguments: str, stdin: bytes = b"") -> Result:
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        with self._patch.context() as patch:
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            code = run_command([*arguments])
        texts = [stream.buffer.getvalue().decode("utf-8", "replace") for stream in (out, err)]
        return Result(code, *texts)

    def binary(self, *arguments: str) -> bytes:
        """Run the command and return what it printed, as bytes."""
        out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
        with self._patch.context() as patch:
            patch.setattr(sys, "stdout", out)
            assert run_command([*arguments]) == 0
        return out.buffer.getvalue()


def keys_as_json(footer: bytes = FOOTER_KEY, **columns: bytes) -> str:
    """Return keys as the environment variable FASTPQ_KEYS has them."""
    members = {name: base64.b64encode(key).decode() for name, key in columns.items()}
    return json.dumps({"footer_key": "hex:" + footer.hex(), "column_keys": members})


def items(rows: int = 100_000) -> dict[str, Any]:
    """Return columns of the files in the examples."""
    random = np.random.default_rng(1)
    return {
        "id": np.arange(rows),
        "price": np.round(random.random(rows) * 100, 2),
        "name": np.array(["a", "bb", "ccc", "dddd"])[random.integers(0, 4, rows)],
        "user": random.integers(0, 10**12, rows),
        "day": np.array("2024-01-01", "M8[D]") + np.arange(rows) // 1000,
    }


def write_example_files(folder: Path) -> None:
    """Make the files that the examples of the verbs name."""
    table = items()
    options: Any = {"compression": "zstd", "row_group_size": 50_000, "key_value_metadata": {"owner": "sales"}}
    fastpq.write_table(table, folder / "items.parquet", bloom_filter={"user": True}, **options)
    (folder / "folder").mkdir()
    for part in range(2):
        piece = {name: values[part * 500 : part * 500 + 500] for name, values in table.items()}
        fastpq.write_table(piece, folder / "folder" / f"part-{part}.parquet")
    changed = {**table, "price": table["price"].copy()}
    changed["price"][[5, 70_000]] += [1, 1e-12]
    fastpq.write_table(changed, folder / "changed.parquet", **options)
    fastpq.write_table(table, folder / "growing.parquet")
    whole = (folder / "items.parquet").read_bytes()
    (folder / "damaged.parquet").write_bytes(whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:])
    (folder / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (folder / "rows.jsonl").write_text('{"a": 1, "b": ["x"]}\n{"a": null, "b": []}\n')
    _write_sealed_files(folder, table)
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, {"price": PRICE_KEY})
    fastpq.write_table(table, folder / "secret.parquet", encryption_properties=keys)


def _write_sealed_files(folder: Path, table: dict[str, Any]) -> None:
    """Make a keyring, a file under its keys, and a folder with a file whose wrapped keys lie beside it."""
    keyring = Keyring.create(folder / "keyring.json", PASSPHRASE, scrypt_log_n=10)
    for name in ("kf", "kc", "kn"):
        keyring.create_key(name)
    factory, connection = CryptoFactory(lambda _: keyring), KmsConnectionConfig()
    for path, is_internal in ((folder / "sealed.parquet", True), (folder / "external" / "x.parquet", False)):
        path.parent.mkdir(exist_ok=True)
        configuration = EncryptionConfiguration("kf", uniform_encryption=True, internal_key_material=is_internal)
        keys = factory.file_encryption_properties(connection, configuration, path)
        fastpq.write_table(table, path, encryption_properties=keys)
    _write_folders(folder, factory)


def _write_folders(folder: Path, factory: CryptoFactory) -> None:
    """Make the folders whose keys verbs change: plain, sealed and old."""
    configuration = EncryptionConfiguration("kf", {"kc": ["price"]}, unlisted="footer_key")
    for name, table_id in (("plain", None), ("sealed", "items"), ("old", None)):
        keys = factory.dataset_encryption_properties(KmsConnectionConfig(), configuration, table_id=table_id)
        for part in range(2):
            path = folder / name / f"part-{part}.parquet"
            path.parent.mkdir(exist_ok=True)
            fastpq.write_table(items(500), path, encryption_properties=None if name == "plain" else keys(path))
