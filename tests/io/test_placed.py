"""Paths on a given filesystem, URLs with options, and timeouts: of every reader and writer that takes a path."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow.fs
import pytest
import s3fs
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem

import fastpq
from fastpq.io.location import RemotePath, placed
from tests.io.range_server import serving

DATA = {"a": np.arange(6), "b": np.arange(6) % 2}
READS: dict[str, Callable[..., int]] = {
    "read_table": lambda where, **options: fastpq.read_table(where, **options).num_rows,
    "read_pandas": lambda where, **options: len(fastpq.read_pandas(where, **options)),
    "read_dataset": lambda where, **options: fastpq.read_dataset(where, **options).num_rows,
    "read_metadata": lambda where, **options: fastpq.read_metadata(where, **options).num_rows,
    "read_schema": lambda where, **options: 3 * len(fastpq.read_schema(where, **options)),
    "ParquetFile": lambda where, **options: fastpq.ParquetFile(where, **options).num_rows,
    "ParquetDataset": lambda where, **options: fastpq.ParquetDataset(where, **options).num_rows,
}


def writer(where: Any, **options: Any) -> None:
    with fastpq.ParquetWriter(where, **options) as file:
        file.write_table(DATA)


WRITES: dict[str, Callable[..., Any]] = {
    "write_table": lambda where, **options: fastpq.write_table(DATA, where, **options), "ParquetWriter": writer,
}


def in_memory(folder: Path, moto_url: str) -> tuple[Any, str]:
    return fsspec.filesystem("memory"), f"/{uuid.uuid4().hex}"


def below_a_directory(folder: Path, moto_url: str) -> tuple[Any, str]:
    return DirFileSystem(str(folder), LocalFileSystem()), "inner"


def of_arrow(folder: Path, moto_url: str) -> tuple[Any, str]:
    return pyarrow.fs.SubTreeFileSystem(str(folder), pyarrow.fs.LocalFileSystem()), "inner"


def wrapped_twice(folder: Path, moto_url: str) -> tuple[Any, str]:
    return pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(fsspec.filesystem("memory"))), f"/{uuid.uuid4().hex}"


def local(folder: Path, moto_url: str) -> tuple[Any, str]:
    return LocalFileSystem(), str(folder / "inner")


def local_of_arrow(folder: Path, moto_url: str) -> tuple[Any, str]:
    return pyarrow.fs.LocalFileSystem(), str(folder / "inner")


def s3_of_arrow(folder: Path, moto_url: str) -> tuple[Any, str]:
    bucket = f"bucket-{uuid.uuid4().hex}"
    s3fs.S3FileSystem(key="test", secret="test", endpoint_url=moto_url, skip_instance_cache=True).mkdir(bucket)
    host = moto_url.removeprefix("http://")
    made = pyarrow.fs.S3FileSystem(access_key="test", secret_key="test", endpoint_override=host, scheme="http")
    return made, f"{bucket}/inner"


MADE = [in_memory, below_a_directory, of_arrow, wrapped_twice, local, local_of_arrow, s3_of_arrow]


@pytest.mark.parametrize("make", MADE)
def test_on_a_filesystem(make: Callable[..., tuple[Any, str]], tmp_path: Path, moto_url: str) -> None:
    filesystem, folder = make(tmp_path, moto_url)
    if hasattr(filesystem, "makedirs"):
        filesystem.makedirs(folder, exist_ok=True)
    else:
        filesystem.create_dir(folder)
    for name, write in WRITES.items():
        write(f"{folder}/{name}.parquet", filesystem=filesystem)
    for read in READS.values():
        assert read(f"{folder}/write_table.parquet", filesystem=filesystem) == 6
    for name in ("read_table", "read_pandas", "read_dataset", "ParquetDataset"):
        assert READS[name](folder, filesystem=filesystem) == 12
        assert READS[name]([f"{folder}/{other}.parquet" for other in WRITES], filesystem=filesystem) == 12
        assert READS[name](f"{folder}/*rite*.parquet", filesystem=filesystem) == 12
    written = fastpq.write_dataset(DATA, f"{folder}/parts", partition_by=["b"], filesystem=filesystem)
    assert len(written) == 2
    found = fastpq.read_table(f"{folder}/parts", filters=[("b", "==", 1)], filesystem=filesystem)
    assert found["a"].to_pylist() == [1, 3, 5]


@pytest.mark.parametrize("make", [s3_of_arrow, of_arrow])
def test_a_failed_write_leaves_the_old_file_of_arrow(make: Callable[..., tuple[Any, str]], tmp_path: Path, moto_url: str) -> None:
    filesystem, folder = make(tmp_path, moto_url)
    filesystem.create_dir(folder)
    fastpq.write_table(DATA, f"{folder}/a", filesystem=filesystem)
    with pytest.raises(fastpq.SchemaError), fastpq.ParquetWriter(f"{folder}/a", filesystem=filesystem) as file:
        file.write_table(DATA)
        file.write_table({"other": [1]})
    assert fastpq.read_table(f"{folder}/a", filesystem=filesystem).num_rows == 6


def test_storage_options(moto_url: str) -> None:
    bucket = f"bucket-{uuid.uuid4().hex}"
    options = {"key": "test", "secret": "test", "client_kwargs": {"endpoint_url": moto_url}}
    s3fs.S3FileSystem(**options).mkdir(bucket)
    for name, write in WRITES.items():
        write(f"s3://{bucket}/{name}.parquet", storage_options=options, timeout=50)
    for read in READS.values():
        assert read(f"s3://{bucket}/write_table.parquet", storage_options=options, timeout=50) == 6
    assert len(fastpq.write_dataset(DATA, f"s3://{bucket}/d", partition_by=["b"], storage_options=options)) == 2
    assert fastpq.read_dataset([f"s3://{bucket}/d"], storage_options=options).num_rows == 6
    waits = placed(f"s3://{bucket}", storage_options=options, timeout=50).fs.config_kwargs
    assert waits == {"connect_timeout": 50, "read_timeout": 50}
    kept = placed(f"s3://{bucket}", storage_options={"config_kwargs": {"read_timeout": 7}}, timeout=50).fs.config_kwargs
    assert kept == {"connect_timeout": 50, "read_timeout": 7}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_timeout(read: Callable[..., int], tmp_path: Path) -> None:
    fastpq.write_table(DATA, tmp_path / "a.parquet")
    once = fastpq.ReaderProperties(max_attempts=1)
    with serving(tmp_path) as server:
        assert read(f"{server.url}/a.parquet", timeout=30.0, properties=once) == 6
        assert read(f"{server.url}/a.parquet", storage_options={"headers": {"x": "y"}}, properties=once) == 6
        server.latency = 1.5
        kept = {"properties": once, "timeout": 0.2}
        with pytest.raises(fastpq.RemoteError, match="no answer in time"):
            read(f"{server.url}/a.parquet", **kept)


def test_a_name_for_messages_has_no_secrets(moto_url: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"memory://none/x") as caught:
        fastpq.read_table("memory://user:secret@none/x?key=secret", storage_options={})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("where", "options", "kind", "message"),
    [
        ("a", {"storage_options": {"key": "k"}}, ValueError, "a is a local path"),
        ("memory://a", {"storage_options": ["key"]}, TypeError, "mapping of names to values"),
        ("a", {"filesystem": "s3"}, TypeError, "pyarrow.fs or obstore.store, not str$"),
        ("a", {"filesystem": {"secret": "s"}}, TypeError, "or obstore.store, not dict$"),     # options may hold secrets
        ("a", {"filesystem": LocalFileSystem}, TypeError, "pyarrow.fs or obstore.store"),
        ("a", {"filesystem": LocalFileSystem(), "storage_options": {"k": 1}}, ValueError, "has its own"),
        ("a", {"filesystem": LocalFileSystem(), "timeout": 1}, ValueError, "has its own"),
        ("memory://a", {"timeout": 1}, fastpq.UnsupportedError, "option of the filesystem for memory://"),
        ("http://a", {"timeout": 0}, ValueError, "positive number of seconds, not 0"),
        ("http://a", {"timeout": float("nan")}, ValueError, "positive number of seconds"),
        ("http://a", {"timeout": "1"}, TypeError, "a number of seconds, not '1'"),
        (b"PAR1", {"filesystem": LocalFileSystem()}, fastpq.SchemaError, "go with a path or a URL, not with a bytes"),
        (RemotePath(None, "x"), {"timeout": 1}, fastpq.SchemaError, "not with a RemotePath"),
    ],
)
def test_wrong_calls(where: Any, options: Any, kind: type[Exception], message: str) -> None:
    for call in [*READS.values(), *WRITES.values()]:
        with pytest.raises(kind, match=message):
            call(where, **options)
