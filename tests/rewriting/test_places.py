"""filesystem=, storage_options= and timeout= of functions from files to files, of recovery and of uploads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fsspec
import pyarrow.fs
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import fastpq
from tests.io.range_server import serving

KEY = b"k" * 16
SEALING, OPENING = fastpq.FileEncryptionProperties(KEY), fastpq.FileDecryptionProperties(KEY)
ROWS = {"a": [1, 2, 3]}


@pytest.fixture
def memory() -> Any:
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    fastpq.write_table(ROWS, "/plain", filesystem=filesystem)
    return filesystem


def test_files_to_files_on_a_filesystem(memory: MemoryFileSystem) -> None:
    fastpq.encrypt_file("/plain", "/sealed", SEALING, filesystem=memory)
    assert memory.cat_file("/sealed")[:4] == b"PARE"
    fastpq.decrypt_file("/sealed", "/open", OPENING, filesystem=memory)
    asked: list[Any] = []

    def keys_of(where: Any) -> fastpq.FileDecryptionProperties | None:
        asked.append(where)
        return OPENING if where == "/sealed" else None

    for progress in (None, lambda done, total: None):
        sources = iter(["/sealed", "/plain", memory.cat_file("/open")])
        fastpq.merge_files(sources, "/all", decryption_properties=keys_of, filesystem=memory, progress=progress)
        assert fastpq.read_table("/all", filesystem=memory)["a"].to_pylist() == ROWS["a"] * 3
    assert asked[:2] == ["/sealed", "/plain"]       # sources as given


def test_on_a_filesystem_of_pyarrow(tmp_path: Path) -> None:
    filesystem = pyarrow.fs.SubTreeFileSystem(str(tmp_path), pyarrow.fs.LocalFileSystem())
    fastpq.write_table(ROWS, tmp_path / "x")
    fastpq.encrypt_file("x", "y", SEALING, filesystem=filesystem)
    assert fastpq.read_table(tmp_path / "y", decryption_properties=OPENING)["a"].to_pylist() == ROWS["a"]


def test_options_are_for_the_urls(tmp_path: Path, memory: MemoryFileSystem) -> None:
    fastpq.encrypt_file("memory://plain", tmp_path / "sealed", SEALING, storage_options={})
    with serving(tmp_path) as server:
        fastpq.decrypt_file(f"{server.url}/sealed", tmp_path / "open", OPENING, timeout=5.0)
        assert fastpq.recover_table(f"{server.url}/open", timeout=5.0).table["a"].to_pylist() == ROWS["a"]
    with pytest.raises(ValueError, match="storage_options are for URLs"):
        fastpq.decrypt_file(tmp_path / "sealed", tmp_path / "x", OPENING, storage_options={"anon": True})
    with pytest.raises(TypeError, match="timeout must be a number of seconds"):
        fastpq.merge_files([tmp_path / "open"], tmp_path / "x", timeout="5")  # type: ignore[arg-type]
    assert not (tmp_path / "x").exists()


def test_recovery(memory: MemoryFileSystem) -> None:
    fastpq.write_table(ROWS, "/sibling", filesystem=memory)
    memory.pipe_file("/cut", memory.cat_file("/plain")[:-20])
    found = fastpq.recover_table("/cut", sibling="/sibling", filesystem=memory)
    assert found.table["a"].to_pylist() == ROWS["a"]
    assert fastpq.recover_table("memory://plain", storage_options={}).report.is_whole


def test_uploads() -> None:
    pytest.importorskip("s3fs")
    with pytest.raises(OSError, match=r"127\.0\.0\.1:9"):
        options: dict[str, Any] = {"key": "k", "secret": "s", "endpoint_url": "http://127.0.0.1:9"}
        options["config_kwargs"] = {"retries": {"max_attempts": 0}}
        fastpq.abort_uploads("s3://bucket/x", storage_options=options, timeout=1.0)
    with pytest.raises(fastpq.UnsupportedError, match=r"in S3 \(s3://\.\.\.\) and Google's store"):
        fastpq.abort_uploads("/x", filesystem=fsspec.filesystem("memory"))
