"""Servers that are overloaded, break off, stall, refuse, or know no ranges."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import ReaderProperties, RemoteError
from fastpq.io import location, range_requests
from tests.io.range_server import answering

ROWS = 40_000


class FaultyServer:
    """A server of one file.

    Attributes:
        faults: called with each request and its number, returns True where it has answered (wrongly) itself.
        requests: number of requests for bytes.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.faults: Callable[[Any, int], bool] = lambda *_: False
        self.requests = 0
        self.url = ""
        self._lock = threading.Lock()

    def answer(self, handler: Any, with_body: bool) -> None:
        with self._lock:
            self.requests += with_body
            number = self.requests
        if handler.path != "/data.parquet":
            handler.send_error(404)
            return
        if with_body and self.faults(handler, number):
            return
        self.send(handler, with_body)

    def span(self, handler: Any) -> tuple[int, int]:
        first, last = handler.headers["Range"].removeprefix("bytes=").split("-")
        size = len(self.data)
        return (int(first), min(int(last) + 1, size)) if first else (max(0, size - int(last)), size)

    def send(self, handler: Any, with_body: bool = True, *, most: int | None = None) -> None:
        """Answer rightly; with ``most`` only that many bytes, then hang up."""
        start, stop = self.span(handler) if handler.headers.get("Range") else (0, len(self.data))
        handler.send_response(206 if handler.headers.get("Range") else 200)
        handler.send_header("Content-Length", str(stop - start))
        handler.send_header("Accept-Ranges", "bytes")
        if handler.headers.get("Range"):
            handler.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(self.data)}")
        handler.end_headers()
        if with_body:
            handler.wfile.write(self.data[start:stop][:most])
            if most is not None:
                handler.wfile.flush()
                handler.connection.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.table({"id": np.arange(ROWS), "x": np.random.default_rng(1).random(ROWS)})


@pytest.fixture
def server(table: pa.Table) -> Iterator[FaultyServer]:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="none", use_dictionary=False)
    state = FaultyServer(sink.getvalue().to_pybytes())

    with answering(state.answer) as url:
        state.url = f"{url}/data.parquet"
        yield state


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waits between requests are noted, not made; other threads of the process wait as ever."""
    waits: list[float] = []
    monkeypatch.setattr("fastpq.io.waiting.time", SimpleNamespace(**{**vars(time), "sleep": waits.append}))
    return waits


def statuses(status: int, **headers: str) -> Callable[[Any, int], bool]:
    """Two refusals for each answer."""

    def refuse(handler: Any, number: int) -> bool:
        if number % 3 == 0:
            return False
        handler.send_response(status)
        handler.send_header("Content-Length", "0")
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        return True

    return refuse


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_overloaded_servers_are_asked_again(server: FaultyServer, table: pa.Table, status: int) -> None:
    server.faults = statuses(status)
    assert fastpq.read_table(server.url).to_arrow().equals(table)
    assert server.requests > 3


def test_waits_grow_or_are_those_of_the_server(server: FaultyServer, no_waits: list[float]) -> None:
    server.faults = statuses(503, Retry_After="7")
    fastpq.read_table(server.url)
    assert no_waits[:2] == [7.0, 7.0]
    no_waits.clear()
    server.faults = lambda handler, _: statuses(503)(handler, 1)
    with fastpq.ParquetFile(_tail_alone(server), properties=ReaderProperties(max_attempts=4)) as file, pytest.raises(
        RemoteError, match=r"status 503 after 4 attempts \[path http"
    ):
        file.read()
    assert [0.05 * 2**n <= wait <= 0.15 * 2**n for n, wait in enumerate(no_waits)] == [True] * 3


def _tail_alone(server: FaultyServer) -> str:
    """The URL, where the footer comes before the faults."""
    faults, server.faults = server.faults, lambda *_: False
    first = server.requests
    server.faults = lambda handler, number: number > first + 1 and faults(handler, number)
    return server.url


@pytest.mark.parametrize("bytes_sent", [0, 1, 10_000])
def test_answers_that_break_off(server: FaultyServer, table: pa.Table, bytes_sent: int) -> None:
    def break_off(handler: Any, number: int) -> bool:
        if number % 2 == 0:
            return False
        server.send(handler, most=bytes_sent)
        return True

    server.faults = break_off
    assert fastpq.read_table(server.url).to_arrow().equals(table)


def test_answers_that_stall(server: FaultyServer, table: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(location, "STALL_SECONDS", 0.5)
    released = threading.Event()

    def stall(handler: Any, number: int) -> bool:
        if number % 2 == 0:
            return False
        handler.send_response(206)
        start, stop = server.span(handler)
        handler.send_header("Content-Length", str(stop - start))
        handler.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(server.data)}")
        handler.end_headers()
        handler.wfile.write(b"x" * 10)
        released.wait(60)
        return True

    server.faults = stall
    assert fastpq.read_table(server.url).to_arrow().equals(table)
    released.set()


def test_a_connection_that_is_refused() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for read in (fastpq.read_table, fastpq.ParquetDataset):
        with pytest.raises(RemoteError, match=r"no connection to the server \(.*\) after 5 attempts") as caught:
            read(f"http://127.0.0.1:{port}/x.parquet")
        assert not isinstance(caught.value, FileNotFoundError)
        assert isinstance(caught.value, OSError)
        assert caught.value.__cause__ is not None


def test_a_file_that_is_missing(server: FaultyServer) -> None:
    with pytest.raises(FileNotFoundError, match=r"http://.*/none"):
        fastpq.read_table("http://user:secret@" + server.url.removeprefix("http://").replace("data.parquet", "none"))


def test_refusals_are_not_repeated(server: FaultyServer) -> None:
    server.faults = lambda handler, _: statuses(403)(handler, 1)
    with fastpq.ParquetFile(_tail_alone(server)) as file:
        before = server.requests
        with pytest.raises(RemoteError, match="status 403"):
            file.read(["id"])
        assert server.requests == before + 1


def test_a_server_without_ranges(server: FaultyServer, table: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole file comes once, is kept, and read."""

    def whole(handler: Any, _: int) -> bool:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(server.data)))
        handler.end_headers()
        handler.wfile.write(server.data)
        return True

    server.faults = whole
    with fastpq.ParquetFile(server.url) as file:
        assert file.read().to_arrow().equals(table)
        assert file.read(["id"]).num_rows == ROWS
        assert server.requests == 1
    monkeypatch.setattr(range_requests, "MOST_KEPT", 1000)
    with pytest.raises(fastpq.UnsupportedError, match=r"sends the whole file of .* download the file"):
        fastpq.read_table(server.url)


def test_ranges_are_of_the_file_and_not_of_a_compressed_form(server: FaultyServer, table: pa.Table) -> None:
    seen: set[str] = set()

    def note(handler: Any, _: int) -> bool:
        seen.add(handler.headers["Accept-Encoding"])
        return False

    server.faults = note
    assert fastpq.read_table(server.url).to_arrow().equals(table)
    assert seen == {"identity"}


def test_a_truncated_file_stays_a_broken_file(server: FaultyServer, tmp_path: Path) -> None:
    start = time.monotonic()
    with fastpq.ParquetFile(server.url) as file:
        server.data = server.data[:1000]
        with pytest.raises((fastpq.FormatError, RemoteError)):
            file.read()
    assert time.monotonic() - start < 60


def test_a_wrong_call_asks_for_no_more_bytes(server: FaultyServer) -> None:
    """The look for a directory of the name would get the whole file over HTTP."""
    for read in (fastpq.read_table, fastpq.read_pandas):
        before = server.requests
        with pytest.raises(fastpq.SchemaError, match="no column 'none'"):
            read(server.url, ["none"])
        assert server.requests == before + 1
