"""A local HTTP server of one folder that counts range requests and answers as late as a test wants."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PIECE = 1 << 16
GUARD = 120.0       # seconds that a request waits at most for what it waits for: a last guard against a hang
_RANGE = re.compile(r"bytes=(\d*)-(\d*)$")


@dataclass
class RangeServer:
    """The requests that the server was asked.

    Attributes:
        folder: of the files.
        latency: seconds before each answer.
        url: of the folder.
        requests: number of those for data (GET).
        bytes_sent: by them, up to where the other side hung up.
        at_once: most requests that were open at the same time.
        ranges: first byte and length of each, in the order in which they came.
        gate: called with a range's first byte before its answer; returns when the answer may be sent.
    """

    folder: Path
    latency: float = 0.0
    url: str = ""
    requests: int = 0
    bytes_sent: int = 0
    at_once: int = 0
    ranges: list[tuple[int, int]] = field(default_factory=list)
    gate: Callable[[int], object] | None = None
    _open: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def reset(self) -> None:
        """Count from zero, answer at once."""
        with self._changed:
            self.requests = self.bytes_sent = self.at_once = 0
            self.ranges.clear()
            self.gate = None

    def wait_for(self, reached: Callable[[RangeServer], bool]) -> bool:
        """Wait until requests make a condition true; False where they did not within GUARD seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: reached(self), GUARD)

    def hold_until(self, count: int) -> None:
        """Answer ranges behind the first one only when so many requests have been open at the same time."""
        self.gate = lambda start: len(self.ranges) == 1 or self.wait_for(lambda state: state.at_once >= count)

    def answer(self, handler: BaseHTTPRequestHandler, with_body: bool) -> None:
        """One request."""
        path = self.folder / handler.path.lstrip("/")
        if not path.is_file():
            handler.send_error(404)
            return
        size = path.stat().st_size
        match = _RANGE.match(handler.headers.get("Range") or "")
        start, stop = 0, size
        if match is not None:
            first, last = match.groups()
            start = int(first) if first else max(0, size - int(last))
            stop = min(size, int(last) + 1) if first and last else size
        if start >= stop and size:
            handler.send_error(416)
            return
        if with_body:
            self._wait(start, stop - start)
        else:
            time.sleep(self.latency)
        handler.send_response(200 if match is None else 206)
        handler.send_header("Accept-Ranges", "bytes")
        handler.send_header("Last-Modified", formatdate(path.stat().st_mtime, usegmt=True))
        handler.send_header("Content-Length", str(stop - start))
        if match is not None:
            handler.send_header("Content-Range", f"bytes {start}-{stop - 1}/{size}")
        handler.end_headers()
        if with_body:
            self._send(handler, path, start, stop)

    def _send(self, handler: BaseHTTPRequestHandler, path: Path, start: int, stop: int) -> None:
        """The bytes, in pieces, until whoever asked for them has enough."""
        with path.open("rb") as file, suppress(BrokenPipeError, ConnectionResetError):
            file.seek(start)
            for begin in range(start, stop, PIECE):
                piece = file.read(min(PIECE, stop - begin))
                with self._changed:
                    self.bytes_sent += len(piece)
                handler.wfile.write(piece)

    def _wait(self, start: int, length: int) -> None:
        """Count a request, and keep it open for the latency and as long as the gate says."""
        with self._changed:
            self.requests += 1
            self.ranges.append((start, length))
            self._open += 1
            self.at_once = max(self.at_once, self._open)
            self._changed.notify_all()
        try:
            time.sleep(self.latency)
            if self.gate is not None:
                self.gate(start)
        finally:
            with self._changed:
                self._open -= 1


@contextmanager
def serving(folder: Path, latency: float = 0.0) -> Iterator[RangeServer]:
    """Serve a folder on a free local port."""
    state = RangeServer(folder, latency)
    with answering(state.answer) as state.url:
        yield state


@contextmanager
def answering(answer: Callable[[BaseHTTPRequestHandler, bool], None]) -> Iterator[str]:
    """The URL of a local server.

    Args:
        answer: called with the handler of a request, and whether the answer has a body (GET, not HEAD).
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def handle(self) -> None:
            with suppress(ConnectionResetError):        # of a client that ends
                super().handle()

        def do_GET(self) -> None:
            answer(self, True)

        def do_HEAD(self) -> None:
            answer(self, False)

        def log_message(self, *_: object) -> None:
            """Not on the screen."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
