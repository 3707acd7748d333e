"""Writes in coroutines: the file of others' readers, errors, and cancelled writes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import AsyncParquetWriter
from tests.io.range_server import GUARD


async def write(path: Path, *tables: dict[str, Any], progress: Callable[[int, int], None] | None = None) -> None:
    async with AsyncParquetWriter(path, compression="zstd", progress=progress) as writer:
        for table in tables:
            await writer.write_batch(table)
        await writer.write_table({"number": np.arange(1000, 1100)})


def test_batches_and_tables(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    asyncio.run(write(path, *({"number": np.arange(start, start + 250)} for start in range(0, 1000, 250))))
    assert pq.read_table(path)["number"].to_pylist() == [*range(1100)]


def test_errors_leave_the_target(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"before")

    async def fail() -> None:
        async with AsyncParquetWriter(path) as writer:
            await writer.write_table({"a": [1]})
            raise KeyError("fail")

    with pytest.raises(KeyError):
        asyncio.run(fail())
    with pytest.raises(fastpq.SchemaError):
        asyncio.run(write(path, {"other": np.arange(3)}))
    assert path.read_bytes() == b"before"
    assert [*tmp_path.iterdir()] == [path]


def test_cancelled_writes_leave_the_target(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"before")
    begun, released = threading.Event(), threading.Event()

    def progress(done: int, total: int) -> None:
        begun.set()
        released.wait(GUARD)

    async def run() -> None:
        task = asyncio.ensure_future(write(path, progress=progress))
        assert await asyncio.to_thread(begun.wait, GUARD)
        task.cancel()
        asyncio.get_running_loop().call_soon(released.set)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert path.read_bytes() == b"before"
    assert [*tmp_path.iterdir()] == [path]


def test_a_write_that_took_too_long_and_then_others(tmp_path: Path) -> None:
    """The rows of a batch that only waits for more rows stay, and the file can still be closed."""
    path = tmp_path / "a.parquet"

    async def run() -> None:
        async with AsyncParquetWriter(path) as writer:
            task = asyncio.ensure_future(writer.write_batch({"number": np.arange(10)}))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await writer.write_batch({"number": np.arange(10, 20)})

    asyncio.run(run())
    assert pq.read_table(path)["number"].to_pylist()[-10:] == [*range(10, 20)]


def test_objects(moto_url: str) -> None:
    import s3fs

    client = {"endpoint_url": moto_url, "verify": False}
    filesystem = s3fs.S3FileSystem(key="test", secret="test", client_kwargs=client, skip_instance_cache=True)
    filesystem.mkdir("coroutines")

    async def run() -> None:
        async with AsyncParquetWriter("coroutines/a.parquet", filesystem=filesystem) as writer:
            await writer.write_table({"a": np.arange(5)})

    asyncio.run(run())
    with filesystem.open("coroutines/a.parquet") as file:
        assert pq.read_table(file)["a"].to_pylist() == [0, 1, 2, 3, 4]
