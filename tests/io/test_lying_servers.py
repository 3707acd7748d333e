"""Servers that answer with another range, another version or more bytes than were asked for."""

from __future__ import annotations

import gzip
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastpq
from fastpq import RemoteError, UnsupportedError
from fastpq.io import range_requests
from tests.io.object_stores import Store
from tests.io.range_server import answering

ROWS = 40_000
Answer = tuple[int, dict[str, str], bytes]      # status, headers, body


def parquet(seed: int) -> bytes:
    """A file of two columns of random bits: files of all seeds have the same size, and the same place for each page."""
    random = np.random.default_rng(seed)
    table = pa.table({"a": random.integers(0, 1 << 60, ROWS), "b": random.integers(0, 1 << 60, ROWS)})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="none", use_dictionary=False, write_statistics=False)
    return bytes(sink.getvalue())


class LyingServer:
    """A server of one file.

    Attributes:
        data: the file.
        lie: called with start, stop and size of the requested range, returns an answer in the place of the right one, or None.
        headers: further headers of the right answers.
        if_match: what the requests demanded.
        requests: number of requests for bytes.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.lie: Callable[[int, int, int], Answer | None] = lambda *_: None
        self.headers: dict[str, str] = {}
        self.if_match: list[str | None] = []
        self.seen: list[dict[str, str]] = []
        self.url = ""
        self.requests = 0

    def answer(self, handler: Any, with_body: bool) -> None:
        data, size = self.data, len(self.data)
        asked = handler.headers.get("Range")
        start, stop = 0, size
        if asked is not None:
            first, last = asked.removeprefix("bytes=").split("-")
            start, stop = (int(first), min(int(last) + 1, size)) if first else (max(0, size - int(last)), size)
        answer: Answer | None = None
        if with_body:
            self.requests += 1
            self.seen.append(dict(handler.headers))
            self.if_match.append(handler.headers.get("If-Match"))
            answer = self.lie(start, stop, size)
        demanded = handler.headers.get("If-Match")
        if answer is None and demanded is not None and demanded != self.headers.get("ETag"):
            answer = 412, {}, b""
        if answer is None:
            about = {"Content-Range": f"bytes {start}-{stop - 1}/{size}"} if asked else {}
            answer = 206 if asked else 200, {**about, **self.headers}, data[start:stop]
        status, headers, body = answer
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            if value:
                handler.send_header(name, value)
        handler.end_headers()
        with suppress(ConnectionError):
            if with_body:
                handler.wfile.write(body)


@pytest.fixture
def server() -> Iterator[LyingServer]:
    state = LyingServer(parquet(1))
    with answering(state.answer) as url:
        state.url = f"{url}/data.parquet"
        yield state


def ranged(data: bytes, start: int, stop: int, size: int | str) -> Answer:
    return 206, {"Content-Range": f"bytes {start}-{stop - 1}/{size}"}, data[start:stop]


LIES: dict[str, tuple[Callable[[bytes, int, int, int], Answer], str]] = {
    "shifted": (lambda data, start, stop, size: ranged(data, start - 8, stop - 8, size), "to a request for bytes"),
    "shorter": (lambda data, start, stop, size: ranged(data, start, stop - 8, size), "to a request for bytes"),
    "longer": (lambda data, start, stop, size: ranged(data, start - 8, stop, size), "to a request for bytes"),
    "other total": (lambda data, start, stop, size: ranged(data, start, stop, size + 1), "to a request for bytes"),
    "no Content-Range": (lambda data, start, stop, size: (206, {}, data[start:stop]), "Content-Range ''"),
    "no range": (lambda data, start, stop, size: (206, {"Content-Range": f"bytes */{size}"}, data[start:stop]), r"bytes \*/"),
    "not bytes": (lambda data, start, stop, size: (206, {"Content-Range": f"rows 1-2/{size}"}, data[start:stop]), "rows 1-2"),
    "more bytes than the range": (
        lambda data, start, stop, size: (*ranged(data, start, stop, size)[:2], data[start - 8 : stop]), "Content-Length of",
    ),
    "several ranges": (
        lambda data, start, stop, size: (206, {"Content-Type": "multipart/byteranges; boundary=x"}, b"--x--"), "several ranges",
    ),
    "another file of status 200": (lambda data, start, stop, size: (200, {}, data[:-8]), "status 200"),
    "no content": (lambda data, start, stop, size: (204, {"Content-Length": ""}, b""), "status 204"),
}


@pytest.mark.parametrize("name", LIES)
def test_another_answer_than_asked_for(server: LyingServer, name: str) -> None:
    lie, message = LIES[name]
    for columns in (["a"], None):       # one range, several at the same time
        server.lie = lambda *_: None
        with fastpq.ParquetFile(server.url) as file:
            server.lie = lambda start, stop, size: lie(server.data, start, stop, size)
            with pytest.raises(RemoteError, match=message) as caught:
                file.read(columns)
            assert caught.value.context["path"] == server.url


@pytest.mark.parametrize("name", [*LIES])
def test_another_answer_from_the_beginning(server: LyingServer, name: str) -> None:
    if name == "another file of status 200":        # the file that is read
        server.data += b"\0" * 8
    lie, _ = LIES[name]
    server.lie = lambda start, stop, size: lie(server.data, start, stop, size)
    if name == "another file of status 200":
        server.data = server.data[:-8] + server.data[-8:]
        assert fastpq.read_table(server.url).num_rows == ROWS
        return
    with pytest.raises(RemoteError):
        fastpq.read_table(server.url)


def test_bytes_of_another_column(server: LyingServer) -> None:
    """As in the issue: b's bytes for a's, with the right length and another Content-Range."""
    with fastpq.ParquetFile(server.url) as file:
        a, b = (file.metadata.row_group(0).column(column).byte_range for column in (0, 1))
        assert a[1] == b[1]
        server.lie = lambda start, stop, size: ranged(server.data, start - a[0] + b[0], stop - a[0] + b[0], size)
        asked, answered = f"bytes {a[0]}-{sum(a) - 1} of", f"'bytes {b[0]}-{sum(b) - 1}/"
        with pytest.raises(RemoteError, match=rf"{answered}.*{asked}"):
            file.read(["a"])


def test_the_whole_file_for_a_range(server: LyingServer) -> None:
    with fastpq.ParquetFile(server.url) as file:
        server.lie = lambda start, stop, size: (200, {}, server.data)
        before = server.requests
        whole = file.read()
        assert pa.table(whole).equals(pq.read_table(pa.BufferReader(server.data)))
        assert file.read(["a"]).num_rows == ROWS
        assert server.requests <= before + 2


def test_a_size_without_an_answer_to_head(server: LyingServer) -> None:
    """The size is told by Content-Range alone."""
    answer = server.answer

    def without_head(handler: Any, with_body: bool) -> None:
        if with_body:
            answer(handler, with_body)
        else:
            handler.send_error(405)

    with answering(without_head) as url:
        assert fastpq.read_table(f"{url}/data.parquet").num_rows == ROWS


@pytest.mark.parametrize("tells", ["ETag", "weak ETag", "Last-Modified"])
def test_an_object_replaced_during_a_read(server: LyingServer, tells: str) -> None:
    facts = {
        "ETag": ('"one"', '"two"'), "weak ETag": ('W/"one"', 'W/"two"'),
        "Last-Modified": ("Thu, 26 Nov 2026 10:00:00 GMT", "Thu, 26 Nov 2026 10:00:01 GMT"),
    }[tells]
    header = tells.removeprefix("weak ")
    server.headers = {header: facts[0]}
    with fastpq.ParquetFile(server.url) as file:
        assert file.read(["a"]).num_rows == ROWS
        server.data, server.headers = parquet(2), {header: facts[1]}
        assert file.metadata.num_rows == ROWS
        for columns in (["a"], None):
            with pytest.raises(RemoteError, match="the object changed while it was read: its "):
                file.read(columns)
        assert set(server.if_match[1:]) - {None} == ({'"one"'} if tells == "ETag" else set())
    assert fastpq.read_table(server.url).to_arrow().equals(pq.read_table(pa.BufferReader(server.data)))


def test_an_object_replaced_between_two_ranges(server: LyingServer) -> None:
    """Of two columns that are asked for at the same time, one comes from the other file."""
    server.headers = {"ETag": '"one"'}
    with fastpq.ParquetFile(server.url, properties=fastpq.ReaderProperties(coalesce_gap=0, coalesce_size=1)) as file:
        other, first = parquet(2), file.metadata.row_group(0).column(0).byte_range[0]

        def swap(start: int, stop: int, size: int) -> Answer | None:
            if start == first:
                return None
            server.headers, server.data = {"ETag": '"two"'}, other
            return None

        server.lie = swap
        with pytest.raises(RemoteError, match='the object changed while it was read: its version was "one" and is "two" now'):
            file.read()


def test_a_condition_that_the_server_does_not_understand(server: LyingServer) -> None:
    """A server behind a redirect may know another ETag: its answers without a condition decide."""
    server.headers = {"ETag": '"one"'}

    def refuse(start: int, stop: int, size: int) -> Answer | None:
        return (412, {}, b"") if server.if_match[-1] is not None else None

    server.lie = refuse
    with fastpq.ParquetFile(server.url) as file:
        for _ in range(3):
            assert file.read(["a"]).num_rows == ROWS
    assert sum(demanded is not None for demanded in server.if_match) == 1


def test_headers_of_the_caller_are_sent(server: LyingServer) -> None:
    options = {"headers": {"Authorization": "Bearer x"}}
    assert fastpq.read_table(server.url, storage_options=options).num_rows == ROWS
    assert {(seen.get("Authorization"), seen.get("Accept-Encoding")) for seen in server.seen} == {("Bearer x", "identity")}


def test_a_store_with_a_replaced_object(object_store: Store) -> None:
    filesystem = object_store.filesystem()
    path = f"{object_store.new_bucket()}/data.parquet"
    filesystem.pipe_file(path, parquet(1))
    with fastpq.ParquetFile(path, filesystem=filesystem) as file:
        assert pa.table(file.read(["a"])).column(0).equals(pq.read_table(pa.BufferReader(parquet(1))).column(0))
        filesystem.pipe_file(path, parquet(2))
        for columns in (["b"], None):
            with pytest.raises(RemoteError, match=r"the object changed while it was read: its version was .* now"):
                file.read(columns)
        filesystem.pipe_file(path, parquet(2)[:-100])
        with pytest.raises(RemoteError, match="the object changed while it was read"):
            file.read(["a"])


def test_an_empty_object_of_a_store(object_store: Store) -> None:
    """A request for the last bytes of an empty object is refused (416)."""
    filesystem = object_store.filesystem()
    path = f"{object_store.new_bucket()}/empty.parquet"
    filesystem.pipe_file(path, b"")
    with pytest.raises(fastpq.FormatError, match="it is empty"):
        fastpq.ParquetFile(path, filesystem=filesystem)


@pytest.mark.parametrize("errors", [OSError("[Errno 22] m"), PermissionError("no"), ValueError("invalid")], ids=type)
def test_a_store_that_refuses_a_request_for_the_end(
    errors: Exception, object_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fastpq.io import store_ranges

    filesystem = object_store.filesystem()
    path = f"{object_store.new_bucket()}/data.parquet"
    filesystem.pipe_file(path, parquet(1))
    for kind in (store_ranges.S3Ranges, store_ranges.GoogleRanges, store_ranges.AzureRanges):
        send = kind.send

        async def refuse(self: Any, request: Any, *rest: Any, send: Any = send) -> Any:
            if request.start is None:
                raise errors
            return await send(self, request, *rest)

        monkeypatch.setattr(kind, "send", refuse)
    assert fastpq.read_table(path, filesystem=filesystem).num_rows == ROWS


def test_headers_with_odd_sizes(server: LyingServer) -> None:
    with fastpq.ParquetFile(server.url) as file:
        capital: Callable[[int, int, int], str] = "Bytes {}-{}/{}".format
        server.lie = lambda start, stop, size: (206, {"Content-Range": capital(start, stop - 1, size)}, server.data[start:stop])
        assert file.read(["a"]).num_rows == ROWS        # units have no case (RFC 9110, 14.1)
        server.lie = lambda start, stop, size: ranged(server.data, start, stop, "9" * 5000)
        with pytest.raises(RemoteError, match="Content-Range"):
            file.read(["b"])


def test_a_directory_and_a_missing_object_of_a_store(object_store: Store) -> None:
    filesystem = object_store.filesystem()
    bucket = object_store.new_bucket()
    filesystem.pipe_file(f"{bucket}/folder/data.parquet", parquet(1))
    assert fastpq.read_table(f"{bucket}/folder", filesystem=filesystem).num_rows == ROWS
    with pytest.raises(FileNotFoundError):
        fastpq.ParquetFile(f"{bucket}/none.parquet", filesystem=filesystem)


def test_another_filesystem_with_a_replaced_object() -> None:
    """Its information is asked for after each round of requests."""
    filesystem = fsspec.filesystem("memory")
    filesystem.pipe_file("/replaced/x", parquet(1))
    with fastpq.ParquetFile("memory://replaced/x") as file:
        assert file.read().num_rows == ROWS
        filesystem.pipe_file("/replaced/x", parquet(2))
        with pytest.raises(RemoteError, match="the object changed while it was read: its last change was"):
            file.read()
    filesystem.rm("/replaced", recursive=True)


class VersionedFile:
    """A file object that tells its version as fsspec's (info), obstore's (meta) and smart_open's files (an attribute) do."""

    def __init__(self, data: bytes, how: str) -> None:
        self.data, self.how, self.place, self.version = data, how, 0, "one"

    def __getattr__(self, name: str) -> Any:
        about = {"size": len(self.data), "etag": self.version}
        answers = {"info": lambda: about, "meta": about, "version_id": self.version}
        if name == self.how:
            return answers[name]
        raise AttributeError(name)

    def seek(self, offset: int, whence: int = 0) -> int:
        self.place = offset + (len(self.data) if whence == os.SEEK_END else 0)
        return self.place

    def tell(self) -> int:
        return self.place

    def read(self, size: int = -1) -> bytes:
        part = self.data[self.place :][: size if size >= 0 else None]
        self.place += len(part)
        return part


@pytest.mark.parametrize("how", ["info", "meta", "version_id"])
def test_a_file_object_that_tells_another_version(how: str) -> None:
    where = VersionedFile(parquet(1), how)
    with fastpq.ParquetFile(where) as file:
        assert file.read(["a"]).num_rows == ROWS
        where.data, where.version = parquet(2), "two"
        with pytest.raises(RemoteError, match="the object changed while it was read: its version was one and is two now"):
            file.read(["a"])


class Endless:
    """A body without an end.

    Attributes:
        sent: bytes taken by the other side.
    """

    def __init__(self, headers: dict[str, str], piece: bytes, status: int) -> None:
        self.headers, self.piece, self.status = headers, piece, status
        self.sent = 0
        self.ended = threading.Event()

    def answer(self, handler: Any, with_body: bool) -> None:
        self.ended.clear()
        handler.close_connection = True
        handler.send_response(self.status)
        start_stop = (handler.headers.get("Range") or "bytes=0-9").removeprefix("bytes=")
        for name, value in self.headers.items():
            handler.send_header(name, value.replace("RANGE", f"0-{start_stop.partition('-')[2]}"))
        handler.end_headers()
        with suppress(ConnectionError):
            while with_body and self.sent < 1 << 30:
                handler.wfile.write(self.piece)
                self.sent += len(self.piece)
        self.ended.set()


@pytest.mark.parametrize("status", [200, 206])
@pytest.mark.parametrize("kind", ["plain", "of 2 GB", "gzip"])
def test_answers_without_an_end(status: int, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_requests, "MOST_KEPT", 8 << 20)
    headers, piece = {"Connection": "close"}, b"PAR1" * (1 << 14)
    if kind == "of 2 GB":
        headers["Content-Length"] = str(2 << 30)
    if kind == "gzip":
        headers["Content-Encoding"] = "gzip"
        piece = gzip.compress(bytes(1 << 26))
    if status == 206:
        headers["Content-Range"] = f"bytes {1_000_000 - 65_536}-{999_999}/1000000"
    endless = Endless(headers, piece, status)
    with answering(endless.answer) as url:
        with pytest.raises((RemoteError, UnsupportedError)) as caught:
            fastpq.read_table(f"{url}/data.parquet")
        assert endless.ended.wait(60)
    assert caught.value.context["path"].startswith("http")
    # what the cap allows, and what the buffers of two sockets hold
    assert endless.sent < ((8 << 20) if status == 200 and kind == "plain" else 0) + (16 << 20)


def test_a_redirect_loop() -> None:
    def loop(handler: Any, with_body: bool) -> None:
        handler.send_response(302)
        handler.send_header("Location", "/data.parquet")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    with answering(loop) as url, pytest.raises(RemoteError, match=r"the server redirects without an end .*\[path http"):
        fastpq.read_table(f"{url}/data.parquet")
