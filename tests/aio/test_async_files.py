"""Reads in coroutines: equal to those of threads in results, requests and errors; many at once, and cancelled ones."""

from __future__ import annotations

import asyncio
import contextvars
import os
import shutil
import subprocess
import sys
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
from fastpq import AsyncParquetFile, aread_table
from fastpq.aio.reader_tasks import MOST_THREADS
from tests.io.object_stores import Store
from tests.io.range_server import GUARD, RangeServer, serving
from tests.requirements import needs, peer

obstore = peer("obstore")
needs(peer("greenlet"))
ROWS, GROUP = 12_000, 2_000
KEY = bytes(range(16))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of pyarrow with page indexes, and the same rows encrypted."""
    folder = tmp_path_factory.mktemp("async")
    table = pa.table({
        "id": np.arange(ROWS),
        "price": np.random.default_rng(5).random(ROWS),
        "name": [f"item {i % 500}" for i in range(ROWS)],
        "tags": pa.array([[str(i)] * (i % 3) for i in range(ROWS)]),
    })
    pq.write_table(table, folder / "plain.parquet", row_group_size=GROUP, write_page_index=True, max_rows_per_page=200)
    fastpq.write_table(table, folder / "encrypted.parquet", encryption_properties=fastpq.FileEncryptionProperties(KEY))
    return folder


@pytest.fixture(scope="module")
def shared_server(folder: Path) -> Iterator[RangeServer]:
    with serving(folder) as state:
        yield state


@pytest.fixture
def server(shared_server: RangeServer) -> RangeServer:
    shared_server.reset()
    return shared_server


@pytest.fixture
def url(server: RangeServer) -> str:
    return f"{server.url}/plain.parquet"


CALLS: dict[str, Callable[[Any], Any]] = {
    "all": lambda file: file.read(),
    "columns": lambda file: file.read(["tags", "id"]),
    "groups": lambda file: file.read(row_groups=[3, 1]),
    "ranges": lambda file: file.read(["price"], row_ranges=[(5, 50), (5_000, 5_001)]),
    "filters": lambda file: file.read(["name"], filters=[("id", ">=", 1_990), ("id", "<", 2_010)]),
    "nothing": lambda file: file.read(filters=[("id", "<", 0)]),
    "text": lambda file: file.read(["id"], filters=[("name", "==", "item 77")]),
    "take": lambda file: file.take([11_999, 3, 3, -1], ["id", "tags"]),
    "head": lambda file: file.head(10),
    "tail": lambda file: file.tail(10, ["id"]),
    "sample": lambda file: file.sample(10, seed=1),
    "count": lambda file: file.count([("price", "<", 0.5)]),
    "min_max": lambda file: file.min_max("price"),
    "explain": lambda file: file.explain([("id", "==", 77)]),
    "to_pandas": lambda file: file.to_pandas(["id", "name"]),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "two threads": {"threads": 2},
    "many parts": {"properties": fastpq.ReaderProperties(coalesce_size=1 << 13), "strings": "offsets"},
}


def shown(result: Any) -> str:
    """A result as text, with all rows and digits."""
    if isinstance(result, fastpq.Table):
        return repr(pa.table(result).to_pydict())
    return repr(result.to_dict()) if hasattr(result, "to_dict") else repr(result)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("name", CALLS)
def test_same_results_and_requests_as_in_threads(server: RangeServer, url: str, name: str, options: dict[str, Any]) -> None:
    with fastpq.ParquetFile(url, **options) as file:
        expected, ranges = shown(CALLS[name](file)), sorted(server.ranges)
    server.reset()

    async def call() -> tuple[str, int]:
        async with AsyncParquetFile(url, **options) as file:
            return shown(await CALLS[name](file)), file.io.requests

    assert asyncio.run(call()) == (expected, len(ranges))
    assert sorted(server.ranges) == ranges


@pytest.mark.parametrize("filters", [None, [("price", "<", 0.1)]])
def test_same_batches_and_requests_as_in_threads(server: RangeServer, url: str, filters: Any) -> None:
    with fastpq.ParquetFile(url) as file:
        expected, ranges = [shown(table) for table in file.iter_batches(1_400, filters=filters)], sorted(server.ranges)
    server.reset()

    async def read() -> list[str]:
        async with AsyncParquetFile(url) as file, aclosing(file.iter_batches(1_400, filters=filters)) as batches:
            return [shown(table) async for table in batches]

    assert asyncio.run(read()) == expected
    assert sorted(server.ranges) == ranges


def test_a_loop_over_batches_that_ends_early(url: str) -> None:
    async def read() -> tuple[int, int]:
        async with AsyncParquetFile(url) as file:
            async with aclosing(file.iter_batches(100)) as batches:
                first = await anext(batches)
            return first.num_rows, (await file.read(["id"])).num_rows

    assert asyncio.run(read()) == (100, ROWS)


def test_a_thousand_lookups_take_few_threads(url: str) -> None:
    most_threads = 0

    async def lookup(number: int) -> bool:
        nonlocal most_threads
        table = await aread_table(url, ["id"], filters=[("id", "==", number)])
        most_threads = max(most_threads, sum(thread.name.startswith("fastpq") for thread in threading.enumerate()))
        return bool(table["id"].to_pylist() == [number])

    async def lookups() -> list[bool]:
        return await asyncio.gather(*(lookup(number * 11) for number in range(1000)))

    assert all(asyncio.run(lookups()))
    assert 1 <= most_threads <= MOST_THREADS + 1


class Hold:
    """Holds up the answers of a server, from the next request on, until they are released.

    Attributes:
        begun: set when as many requests wait as a test wants.
    """

    def __init__(self, server: RangeServer, count: int = 1) -> None:
        self.begun = asyncio.Event()
        self._released = threading.Event()
        self._left = count
        self._loop = asyncio.get_running_loop()
        server.gate = self._wait

    def release(self) -> None:
        self._released.set()

    def _wait(self, _: int) -> None:
        self._left -= 1
        if self._left == 0:
            self._loop.call_soon_threadsafe(self.begun.set)
        if self._left >= 0:
            self._released.wait(GUARD)


def test_reads_go_on_while_many_others_wait(server: RangeServer, url: str) -> None:
    async def run() -> None:
        count = 4 * MOST_THREADS
        async with AsyncParquetFile(url) as file:
            hold = Hold(server, count)
            stalled_reads = [asyncio.ensure_future(file.read(["price"], row_groups=[0])) for _ in range(count)]
            await asyncio.wait_for(hold.begun.wait(), GUARD)
            table = await asyncio.wait_for(file.read(["id"], row_groups=[2]), GUARD)
            assert table["id"].to_numpy()[0] == 2 * GROUP
            assert not any(read.done() for read in stalled_reads)
            hold.release()
            assert [table.num_rows for table in await asyncio.gather(*stalled_reads)] == [GROUP] * count

    asyncio.run(run())


@pytest.mark.parametrize("name", ["read", "open", "batches", "filters", "parts"])
def test_a_cancelled_read_ends_while_the_server_waits(server: RangeServer, url: str, name: str) -> None:
    async def run() -> int:
        parts = fastpq.ReaderProperties(coalesce_size=1 << 13)
        async with AsyncParquetFile(url) as file, AsyncParquetFile(url, properties=parts) as parted_file:
            hold = Hold(server)
            calls: dict[str, Callable[[], Any]] = {
                "read": lambda: file.read(["price"]),
                "open": lambda: aread_table(url),
                "batches": lambda: anext(aiter(file.iter_batches())),
                "filters": lambda: file.read(["id"], filters=[("price", "<", 0.5)]),
                "parts": parted_file.read,
            }
            task = asyncio.ensure_future(calls[name]())
            await asyncio.wait_for(hold.begun.wait(), GUARD)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, GUARD)
            hold.release()
            return (await file.read(["price"])).num_rows

    assert asyncio.run(run()) == ROWS


def test_time_limits(server: RangeServer, url: str) -> None:
    async def run() -> None:
        hold = Hold(server)
        try:
            async with asyncio.timeout(0.2):
                await aread_table(url)
        finally:
            hold.release()

    with pytest.raises(TimeoutError):
        asyncio.run(run())


def test_a_filesystem_in_the_loop_of_the_caller(url: str) -> None:
    async def run() -> int:
        filesystem = fsspec.filesystem("http", asynchronous=True, skip_instance_cache=True)
        session = await filesystem.set_session()
        try:
            with pytest.raises(fastpq.UnsupportedError, match="needs an event loop"):
                await asyncio.to_thread(fastpq.read_table, url, filesystem=filesystem)
            return (await aread_table(url, ["id"], filesystem=filesystem)).num_rows
        finally:
            await session.close()

    assert asyncio.run(run()) == ROWS


def test_object_stores(object_store: Store) -> None:
    filesystem = object_store.filesystem()
    place = f"{object_store.new_bucket(filesystem)}/a.parquet"
    fastpq.write_table({"id": np.arange(ROWS)}, place, filesystem=filesystem)
    numbers = range(0, ROWS, 1_999)

    async def run() -> list[Any]:
        reads = (aread_table(place, ["id"], filters=[("id", "==", number)], filesystem=filesystem) for number in numbers)
        return await asyncio.gather(*reads)

    assert [table["id"].to_pylist() for table in asyncio.run(run())] == [[number] for number in numbers]


def test_stores_of_obstore(folder: Path) -> None:
    needs(obstore)
    from obstore.store import LocalStore

    store, filters = LocalStore(folder), [("id", "==", 8_234)]
    expected = shown(fastpq.read_table(folder / "plain.parquet", filters=filters))
    assert shown(fastpq.read_table("plain.parquet", filters=filters, filesystem=store)) == expected
    assert shown(asyncio.run(aread_table("plain.parquet", filters=filters, filesystem=store))) == expected
    with pytest.raises(FileNotFoundError):
        asyncio.run(aread_table("missing.parquet", filesystem=store))


def test_folders_in_stores_of_obstore(folder: Path) -> None:
    needs(obstore)
    from obstore.store import MemoryStore

    store = MemoryStore()
    fastpq.write_table({"a": np.arange(10)}, "shop/one.parquet", filesystem=store)
    fastpq.write_table({"a": np.arange(10, 30)}, "shop/two.parquet", filesystem=store)
    stored = obstore.get(store, "shop/one.parquet").bytes().to_bytes()
    assert pq.read_table(pa.BufferReader(stored))["a"].to_pylist() == [*range(10)]
    assert fastpq.read_table("shop", filesystem=store)["a"].to_pylist() == [*range(30)]


def test_an_object_that_obstore_replaced_meanwhile(folder: Path) -> None:
    needs(obstore)
    from obstore.store import MemoryStore

    store, data = MemoryStore(), (folder / "plain.parquet").read_bytes()
    obstore.put(store, "a.parquet", data)

    async def run() -> None:
        async with AsyncParquetFile("a.parquet", filesystem=store) as file:
            obstore.put(store, "a.parquet", data)
            await file.read(["price"])

    with pytest.raises(fastpq.RemoteError, match="the object changed while it was read"):
        asyncio.run(run())


def test_encrypted_files_and_local_files(server: RangeServer, folder: Path) -> None:
    async def count_rows(where: Any) -> int:
        keys = fastpq.FileDecryptionProperties(KEY)
        return (await aread_table(where, ["name"], decryption_properties=keys)).num_rows

    path = folder / "encrypted.parquet"
    for where in (f"{server.url}/{path.name}", path, path.read_bytes()):
        assert asyncio.run(count_rows(where)) == ROWS
    with pytest.raises(fastpq.KeyAccessError):
        asyncio.run(aread_table(f"{server.url}/{path.name}"))


def test_chunks_in_files_beside(folder: Path, tmp_path: Path) -> None:
    """Reads that open the file beside at the same time, in one thread, do not wait for each other."""
    shutil.copy(folder / "plain.parquet", tmp_path / "part.parquet")
    metadata = pq.read_metadata(tmp_path / "part.parquet")
    metadata.set_file_path("part.parquet")
    metadata.write_metadata_file(tmp_path / "all.parquet")
    with serving(tmp_path, 0.01) as server:

        async def run() -> list[int]:
            async with AsyncParquetFile(f"{server.url}/all.parquet") as file:
                return [table.num_rows for table in await asyncio.gather(*(file.read(["id"]) for _ in range(10)))]

        assert asyncio.run(run()) == [ROWS] * 10


def test_errors(server: RangeServer, url: str, folder: Path) -> None:
    async def run() -> None:
        with pytest.raises(FileNotFoundError):
            await aread_table(f"{server.url}/missing.parquet")
        with pytest.raises(fastpq.FormatError, match="not a Parquet file"):
            await aread_table(b"no file at all")
        with pytest.raises(TypeError, match="unknown options: wrong"):
            await aread_table(folder / "plain.parquet", wrong=1)      # type: ignore[call-arg]
        file = AsyncParquetFile(url)
        assert file.closed
        assert repr(file) == "<AsyncParquetFile, not open>"
        with pytest.raises(ValueError, match="not open"):
            await file.read()
        await file
        assert (file.num_rows, file.num_row_groups, file.schema.names[0]) == (ROWS, ROWS // GROUP, "id")
        assert file.metadata.num_rows == ROWS
        with pytest.raises(fastpq.SchemaError, match="nothing"):
            await file.read(["nothing"])
        await file.close()
        assert file.closed
        with pytest.raises(ValueError, match="is closed"):
            await file.read()

    asyncio.run(run())


def test_a_stop_iteration_of_the_caller_ends_the_read(url: str) -> None:
    """No future of asyncio takes a StopIteration, and the read waited for ever."""

    def progress(done: int, total: int) -> None:
        raise StopIteration

    async def run() -> None:
        async with AsyncParquetFile(url) as file:
            with pytest.raises(RuntimeError, match="StopIteration"):
                await asyncio.wait_for(file.read(progress=progress), GUARD)

    asyncio.run(run())


def test_the_context_of_the_caller(folder: Path) -> None:
    variable = contextvars.ContextVar[str]("variable")
    values = []

    async def run() -> None:
        variable.set("of the caller")
        await aread_table(folder / "plain.parquet", progress=lambda done, total: values.append(variable.get()))

    asyncio.run(run())
    assert {*values} == {"of the caller"}


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="needs fork")
def test_a_forked_process(folder: Path) -> None:
    program = f"""
import asyncio, os, fastpq
read = lambda: asyncio.run(fastpq.aread_table({str(folder / "plain.parquet")!r})).num_rows
before = read()
child = os.fork()
if child == 0:
    os._exit(0 if read() == before else 1)
print(os.waitpid(child, 0)[1])
"""
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "0\n"


def test_without_greenlet() -> None:
    program = """
import sys
sys.modules["greenlet"] = None
import asyncio, fastpq
try:
    asyncio.run(fastpq.aread_table("nowhere"))
except fastpq.UnsupportedError as error:
    print(error)
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "asynchronous reads need the package greenlet (pip install greenlet)\n"
