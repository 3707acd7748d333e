"""The command over HTTP: how many requests and bytes it takes to look into a file."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import fastpq
from tests.cli.running import Runner, items

MOST_TAIL = 1 << 20     # bytes that a first request may take


class Server(ThreadingHTTPServer):
    """Serves one file, with ranges, and records the requests.

    Args:
        data: the file.

    Attributes:
        requests: method and Range of each request, in order.
        sent: bytes of all bodies.
    """

    daemon_threads = True

    def __init__(self, data: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.data, self.sent = data, 0
        self.requests: list[tuple[str, str | None]] = []


class Handler(BaseHTTPRequestHandler):
    """Answers requests of the server's file."""

    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: Any) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def answer(self, *, with_body: bool) -> None:
        data, size, text = self.server.data, len(self.server.data), self.headers.get("Range")
        self.server.requests.append((self.command, text))
        start, stop = 0, size
        if text is not None:
            first, _, last = text.removeprefix("bytes=").partition("-")
            start, stop = (max(0, size - int(last)), size) if not first else (int(first), min(int(last or size - 1) + 1, size))
        self.send_response(200 if text is None else 206)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", '"one"')
        self.send_header("Content-Length", str(stop - start))
        if text is not None:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{size}")
        self.end_headers()
        if with_body:
            self.wfile.write(data[start:stop])
            self.server.sent += stop - start


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of a file of some megabytes."""
    fastpq.write_table(items(400_000), tmp_path / "x.parquet", compression=None, row_group_size=50_000)
    with Server((tmp_path / "x.parquet").read_bytes()) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.mark.parametrize("line", ["meta {url}", "schema {url}", "inspect {url}", "layout {url} -o {target}", "columns {url}"])
def test_looking_takes_two_requests_and_no_download(line: str, server: Server, command: Runner, tmp_path: Path) -> None:
    url, target = f"http://127.0.0.1:{server.server_port}/x.parquet", str(tmp_path / "x.html")
    result = command(*line.format(url=url, target=target).split())
    assert result.code == 0, result.err
    assert len(server.requests) <= 2, server.requests
    assert server.sent <= min(MOST_TAIL, len(server.data) // 4)


def test_a_column_takes_its_bytes_alone(server: Server, command: Runner) -> None:
    url = f"http://127.0.0.1:{server.server_port}/x.parquet"
    result = command("stats", url, "-c", "name")
    assert result.code == 0, result.err
    assert server.sent < len(server.data) // 3
