"""Datasets in coroutines: equal to those of threads in results, requests and errors; many files at once, and cancelled reads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import AsyncParquetDataset, aread_table
from fastpq.aio.reader_tasks import MOST_THREADS
from fastpq.datasets.opened_files import REMOTE_FILES
from tests.aio.test_async_files import Hold, shown
from tests.io.object_stores import Store
from tests.io.range_server import GUARD, RangeServer, serving
from tests.requirements import needs, peer

needs(peer("greenlet"))
FILES, ROWS = 24, 500
KEY = bytes(range(16))


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RangeServer]:
    """Files of pyarrow, in partitions and with other types."""
    folder = tmp_path_factory.mktemp("datasets")
    for number in range(FILES):
        place = folder / f"year={2000 + number % 3}"
        place.mkdir(exist_ok=True)
        ids = pa.array(np.arange(number * ROWS, (number + 1) * ROWS), pa.int32() if number % 2 else pa.int64())
        table = pa.table({"id": ids, "name": [f"item {number}"] * ROWS, "tags": [[str(row)] * (row % 3) for row in range(ROWS)]})
        pq.write_table(table, place / f"{number:02}.parquet", row_group_size=200, write_page_index=True)
    with serving(folder) as state:
        yield state


@pytest.fixture
def server(shared_server: RangeServer) -> RangeServer:
    shared_server.reset()
    return shared_server


@pytest.fixture
def urls(server: RangeServer) -> list[str]:
    return [f"{server.url}/{path.relative_to(server.folder)}" for path in sorted(server.folder.rglob("*.parquet"))]


CALLS: dict[str, Callable[[Any], Any]] = {
    "all": lambda dataset: dataset.read(),
    "columns": lambda dataset: dataset.read(["tags", "year"]),
    "partitions": lambda dataset: dataset.read(["id"], filters=[("year", "==", 2001)]),
    "filters": lambda dataset: dataset.read(["name"], filters=[("id", ">=", 1_990), ("id", "<", 2_010)]),
    "nothing": lambda dataset: dataset.read(filters=[("id", "<", 0)]),
    "head": lambda dataset: dataset.head(700, ["id"]),
    "tail": lambda dataset: dataset.tail(700, ["id"]),
    "take": lambda dataset: dataset.take([11_999, 3, 3, -1], ["id", "tags"]),
    "sample": lambda dataset: dataset.sample(10, seed=1),
    "count": lambda dataset: dataset.count([("name", "==", "item 7")]),
    "min_max": lambda dataset: dataset.min_max("id"),
    "null_count": lambda dataset: dataset.null_count("name"),
    "to_pandas": lambda dataset: dataset.to_pandas(["id", "name"]),
    "explain": lambda dataset: dataset.explain([("id", "==", 77)]),
}


@pytest.mark.parametrize("name", CALLS)
def test_same_results_and_requests_as_in_threads(server: RangeServer, urls: list[str], name: str) -> None:
    expected, ranges = shown(CALLS[name](fastpq.ParquetDataset(urls))), sorted(server.ranges)
    server.reset()

    async def call() -> str:
        async with AsyncParquetDataset(urls) as dataset:
            return shown(await CALLS[name](dataset))

    assert asyncio.run(call()) == expected
    assert sorted(server.ranges) == ranges


def test_same_batches_and_requests_as_in_threads(server: RangeServer, urls: list[str]) -> None:
    expected = [shown(table) for table in fastpq.ParquetDataset(urls).iter_batches(1_100)]
    ranges = sorted(server.ranges)
    server.reset()

    async def read() -> list[str]:
        async with AsyncParquetDataset(urls) as dataset, aclosing(dataset.iter_batches(1_100)) as batches:
            return [shown(table) async for table in batches]

    assert asyncio.run(read()) == expected
    assert sorted(server.ranges) == ranges


def test_many_files_are_opened_and_read_at_once(server: RangeServer, urls: list[str]) -> None:
    """The requests of REMOTE_FILES files wait at the same time, and only a few threads run."""
    most_threads = 0

    async def run() -> None:
        nonlocal most_threads
        hold = Hold(server, REMOTE_FILES)
        opening = asyncio.ensure_future(AsyncParquetDataset(urls)._open())
        await asyncio.wait_for(hold.begun.wait(), GUARD)
        hold.release()
        dataset = await opening
        await dataset.read()        # of the ends of the files, which are small
        hold = Hold(server, REMOTE_FILES)
        reading = asyncio.ensure_future(dataset.read())
        await asyncio.wait_for(hold.begun.wait(), GUARD)
        most_threads = sum(thread.name.startswith("fastpq") for thread in threading.enumerate())
        hold.release()
        assert (await reading).num_rows == FILES * ROWS
        await dataset.close()

    asyncio.run(run())
    assert 1 <= most_threads <= MOST_THREADS + 1


@pytest.mark.parametrize("name", ["open", "read", "batches", "table"])
def test_a_cancelled_read_ends_while_the_server_waits(server: RangeServer, urls: list[str], name: str) -> None:
    async def run() -> int:
        async with AsyncParquetDataset(urls) as dataset:
            await dataset.read()        # of the ends of the files, which are small. The next read requests them again
            hold = Hold(server)
            calls: dict[str, Callable[[], Any]] = {
                "open": lambda: AsyncParquetDataset(urls)._open(),
                "read": dataset.read,
                "batches": lambda: anext(aiter(dataset.iter_batches())),
                "table": lambda: aread_table(urls),
            }
            task = asyncio.ensure_future(calls[name]())
            await asyncio.wait_for(hold.begun.wait(), GUARD)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, GUARD)
            hold.release()
            return (await dataset.read(["id"])).num_rows

    assert asyncio.run(run()) == FILES * ROWS


def test_an_early_end_closes_the_files(urls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[fastpq.ParquetFile] = []
    begin = fastpq.ParquetFile.__init__

    def noting(file: Any, *arguments: Any, **options: Any) -> None:
        begin(file, *arguments, **options)
        opened.append(file)

    monkeypatch.setattr(fastpq.ParquetFile, "__init__", noting)

    async def run() -> None:
        async with AsyncParquetDataset(urls) as dataset:
            async with aclosing(dataset.iter_batches(100)) as batches:
                await anext(batches)
                assert not all(file.closed for file in opened)
            assert repr(dataset) == f"<AsyncParquetDataset, {FILES} files>"
        assert dataset.closed
        with pytest.raises(ValueError, match="closed"):
            await dataset.read()

    asyncio.run(run())
    assert len(opened) >= FILES
    assert all(file.closed for file in opened)


def test_a_filesystem_in_the_loop_of_the_caller(urls: list[str]) -> None:
    async def run() -> int:
        filesystem = fsspec.filesystem("http", asynchronous=True, skip_instance_cache=True)
        session = await filesystem.set_session()
        try:
            async with AsyncParquetDataset(urls, filesystem=filesystem) as dataset:
                assert dataset.schema.names == ("id", "name", "tags", "year")
                assert dataset.partition_names == ["year"]
                rows = (await dataset.read(["id"])).num_rows
            return rows + (await aread_table(urls, ["id"], filesystem=filesystem)).num_rows
        finally:
            await session.close()

    assert asyncio.run(run()) == 2 * FILES * ROWS


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_filesystem_of_another_loop(urls: list[str], is_closed: bool) -> None:
    """aiohttp raises a RuntimeError that does not say what to do."""
    filesystem = fsspec.filesystem("http", asynchronous=True, skip_instance_cache=True)

    async def begin() -> None:
        session = await filesystem.set_session()
        assert (await aread_table(urls[0], filesystem=filesystem)).num_rows == ROWS
        if is_closed:
            await session.close()

    first = asyncio.new_event_loop()
    first.run_until_complete(begin())
    for where in (urls[0], urls):
        with pytest.raises(fastpq.UnsupportedError, match="make one for each event loop"):
            asyncio.run(aread_table(where, filesystem=filesystem))
    first.run_until_complete(filesystem._session.close())
    first.close()


def test_a_filesystem_that_cancels_its_request_does_not_cancel_the_caller(urls: list[str]) -> None:
    filesystem = fsspec.filesystem("http", skip_instance_cache=True)
    count = 0

    async def cancel(*arguments: Any, **options: Any) -> bytes:
        nonlocal count
        count += 1
        raise asyncio.CancelledError

    filesystem._cat_file = cancel

    async def run() -> None:
        for where in (urls[0], urls):
            with pytest.raises(fastpq.RemoteError, match="cancelled the request"):
                await aread_table(where, filesystem=filesystem)
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelled()

    asyncio.run(run())
    assert count >= 2


def test_local_folders_and_keys(tmp_path: Path) -> None:
    keys = fastpq.FileEncryptionProperties(KEY)
    rows = np.arange(4000)
    fastpq.write_dataset({"id": rows, "part": rows % 4}, tmp_path / "secret", partition_by=["part"], encryption_properties=keys)

    async def run() -> list[int]:
        opening = fastpq.FileDecryptionProperties(KEY)
        async with AsyncParquetDataset(tmp_path / "secret", decryption_properties=opening) as dataset:
            tables = [await dataset.read(["id"], filters=[("part", "==", 2)])]
        tables.append(await aread_table(tmp_path / "secret", ["id"], decryption_properties=opening))
        with pytest.raises(fastpq.KeyAccessError):
            await aread_table(tmp_path / "secret")
        return [table.num_rows for table in tables]

    assert asyncio.run(run()) == [1000, 4000]


def test_folders_in_object_stores(object_store: Store) -> None:
    filesystem = object_store.filesystem()
    place = f"{object_store.new_bucket(filesystem)}/shop"
    rows = np.arange(3000)
    fastpq.write_dataset({"id": rows, "part": rows % 3}, place, partition_by=["part"], filesystem=filesystem)

    async def run() -> int:
        async with AsyncParquetDataset(place, filesystem=filesystem) as dataset:
            assert await dataset.count([("part", "==", 1)]) == 1000
        return (await aread_table(f"{place}/part=*/*.parquet", filesystem=filesystem)).num_rows

    assert asyncio.run(run()) == 3000


def test_errors(urls: list[str], tmp_path: Path) -> None:
    wrong: dict[str, Any] = {"wrong": 1}

    async def run() -> None:
        dataset = AsyncParquetDataset(urls)
        assert repr(dataset) == "<AsyncParquetDataset, not open>"
        with pytest.raises(ValueError, match="not open"):
            await dataset.read()
        await dataset
        assert len(dataset.files) == FILES
        with pytest.raises(fastpq.SchemaError, match="nothing"):
            await dataset.read(["nothing"])
        await dataset.close()
        with pytest.raises(FileNotFoundError):
            await AsyncParquetDataset(tmp_path)
        with pytest.raises(FileNotFoundError):
            await AsyncParquetDataset([*urls, f"{urls[0]}-missing"])
        with pytest.raises(TypeError, match="unknown options: wrong"):
            await AsyncParquetDataset(urls, **wrong)

    asyncio.run(run())
