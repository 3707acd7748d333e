"""Pickles of files, datasets and metadata: opened again in another process, without keys."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import FileDecryptionProperties, FileEncryptionProperties
from fastpq.metadata.file_metadata import decryptor_of
from tests.io.range_server import serving

ROWS = {"a": [1, 2, 3], "b": ["x", None, "z"]}
FOOTER_KEY, COLUMN_KEY = b"f" * 16, b"c" * 16
KEYS = FileDecryptionProperties(FOOTER_KEY)


def elsewhere(pickled: bytes, expression: str) -> str:
    """The value of an expression over the unpickled object, in another process and another directory."""
    code = f"import pickle, sys; it = pickle.load(sys.stdin.buffer); print({expression})"
    done = subprocess.run([sys.executable, "-c", code], input=pickled, capture_output=True, check=True, cwd="/")
    return done.stdout.decode().strip()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fastpq.write_table(ROWS, tmp_path / "x.parquet", key_value_metadata={"k": "v"})
    return tmp_path / "x.parquet"


def encrypted(path: Path, *, plaintext_footer: bool = False) -> Path:
    keys = FileEncryptionProperties(FOOTER_KEY, plaintext_footer=plaintext_footer)
    fastpq.write_table(ROWS, path, encryption_properties=keys)
    return path


def test_metadata(path: Path, tmp_path: Path) -> None:
    metadata = fastpq.read_metadata(path)
    again = pickle.loads(pickle.dumps(metadata))
    assert again == metadata
    assert hash(again) == hash(metadata)
    assert again.row_group(0).column(1).metadata == metadata.row_group(0).column(1).metadata
    fastpq.write_table(ROWS | {"a": [1, 2, 4]}, tmp_path / "y", key_value_metadata={"k": "v"})
    other = fastpq.read_metadata(tmp_path / "y")
    assert again != other
    assert again != 5
    assert elsewhere(pickle.dumps((metadata, other)), "[m.num_rows for m in it], it[0] == it[1]") == "[3, 3] False"


def test_hashes_of_metadata_differ_by_schema() -> None:
    hashes = set()
    for schema in ({"a": "i4"}, {"a": "f4"}, {"b": "i4"}):
        with fastpq.ParquetWriter(sink := io.BytesIO(), schema=schema):
            pass
        hashes.add(hash(fastpq.read_metadata(sink.getvalue())))
    assert len(hashes) == 3


def test_metadata_as_pyarrow_does(path: Path) -> None:
    pq.write_table(pq.read_table(path), path)
    theirs, ours = (pickle.loads(pickle.dumps(read(path))) for read in (pq.read_metadata, fastpq.read_metadata))
    assert (ours.num_rows, ours.num_columns, ours.created_by) == (theirs.num_rows, theirs.num_columns, theirs.created_by)


def test_metadata_without_keys(tmp_path: Path) -> None:
    signed = encrypted(tmp_path / "signed", plaintext_footer=True)
    closed = fastpq.read_metadata(signed)
    again = pickle.loads(pickle.dumps(closed))
    assert again == closed
    assert again.row_group(0).column(0).is_encrypted
    chunk = again.row_group(0).column(0)
    with pytest.raises(fastpq.KeyAccessError):
        decryptor_of(again).chunk_cipher(chunk.chunk, 0, 0)
    for path in (signed, encrypted(tmp_path / "sealed")):
        with pytest.raises(fastpq.UnsupportedError, match=r"neither keys.*read_metadata\(path, decryption_properties"):
            pickle.dumps(fastpq.read_metadata(path, decryption_properties=KEYS))


def test_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    for where in ("x.parquet", path, f"file://{path}"):
        with fastpq.ParquetFile(where, strings="offsets", threads=1, properties=fastpq.ReaderProperties(max_attempts=2)) as file:
            pickled = pickle.dumps(file)
        assert elsewhere(pickled, "{n: c.to_pylist() for n, c in it.read().items()}") == str(ROWS)
        again = pickle.loads(pickled)
        assert again._file.strings == "offsets"
        assert again._options["properties"].max_attempts == 2
        again.close()
    with pytest.raises(ValueError, match="is closed"):
        pickle.dumps(file)


def test_remote_file(path: Path) -> None:
    with serving(path.parent) as server, fastpq.ParquetFile(f"{server.url}/x.parquet", timeout=5.0) as file:
        assert elsewhere(pickle.dumps(file), "{n: c.to_pylist() for n, c in it.read().items()}") == str(ROWS)
    filesystem = fsspec.filesystem("file")
    assert pickle.loads(pickle.dumps(fastpq.ParquetFile(str(path), filesystem=filesystem))).num_rows == 3


@pytest.mark.parametrize("opened", [io.BytesIO, bytes, bytearray, memoryview])
def test_no_place(path: Path, opened: Any) -> None:
    with (
        fastpq.ParquetFile(opened(path.read_bytes())) as file,
        pytest.raises(fastpq.UnsupportedError, match=r"opens the file by its place: open a path or a URL"),
    ):
        pickle.dumps(file)


def test_keys(tmp_path: Path) -> None:
    path = encrypted(tmp_path / "x.parquet")
    for opened in (
        fastpq.ParquetFile(path, decryption_properties=KEYS),
        fastpq.ParquetDataset(path, decryption_properties=KEYS),
        fastpq.ParquetDataset(path, decryption_properties=lambda _: KEYS),
    ):
        with pytest.raises(fastpq.UnsupportedError, match=r"keys never enter a pickle: pass the path"):
            pickle.dumps(opened)


def test_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fastpq.write_dataset(ROWS | {"p": [1, 1, 2]}, tmp_path / "d", partition_by=["p"])
    monkeypatch.chdir(tmp_path)
    dataset = fastpq.ParquetDataset("d", filters=("p", "<", 3), threads=1)
    pickled = pickle.dumps(dataset)
    assert elsewhere(pickled, "it.read(['a', 'p'], filters=('p', '==', 2)).to_pylist()") == str([{"a": 3, "p": 2}])
    again = pickle.loads(pickled)
    assert again.files == dataset.files
    assert again.schema == dataset.schema
    assert again.read() == dataset.read()
