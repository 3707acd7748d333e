"""What the servers of tests that stand for object stores have in common: answers, ranges, and a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit


@dataclass
class StoredObject:
    """An object, with a version of its own."""

    body: bytes
    version: int
    metadata: Mapping[str, str] = field(default_factory=dict)
    made: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def date(self) -> str:
        return format_datetime(self.made, usegmt=True)


class Refused(Exception):
    """An answer of an error: status, code, message."""


class StoreHandler(BaseHTTPRequestHandler):
    """One request, under a lock; ``respond`` of the store's own handler answers."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    buckets: dict[str, dict[str, StoredObject]]
    lock: threading.Lock
    versions = iter(range(1_000_001, 1 << 60))

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def serve(self) -> None:
        parts = urlsplit(self.path)
        self.query = dict(parse_qsl(parts.query, keep_blank_values=True))
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.lock:
            try:
                self.respond(unquote(parts.path), parts.path)
            except Refused as refused:
                self.refuse(*refused.args)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve       # noqa: N815 - names of http.server

    def respond(self, path: str, raw: str) -> None:
        raise NotImplementedError

    def refuse(self, status: int, code: str, message: str = "") -> None:
        raise NotImplementedError

    def answer(self, status: int, headers: Mapping[str, Any] | None = None, body: bytes = b"", size: int | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, str(value))
        self.send_header("Content-Length", str(len(body) if size is None else size))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_object(self, found: StoredObject, headers: Mapping[str, Any]) -> None:
        """An object, or the range of it that is asked for."""
        asked = self.headers.get("x-ms-range") or self.headers.get("Range")
        if self.command == "HEAD" or asked is None:
            self.answer(200, headers, found.body, len(found.body))
            return
        first, _, last = asked.removeprefix("bytes=").partition("-")
        start = int(first) if first else len(found.body) - int(last)
        end = min(int(last or len(found.body)), len(found.body) - 1) if first else len(found.body) - 1
        if start >= len(found.body):
            raise Refused(416, "InvalidRange")
        body = found.body[start : end + 1]
        self.answer(206, {**headers, "Content-Range": f"bytes {start}-{end}/{len(found.body)}"}, body)

    def bucket(self, name: str) -> dict[str, StoredObject]:
        if name not in self.buckets:
            raise Refused(404, "ContainerNotFound", name)
        return self.buckets[name]

    def new(self, body: bytes, metadata: Mapping[str, str]) -> StoredObject:
        return StoredObject(body, next(self.versions), metadata)

    def log_message(self, *_: Any) -> None:
        pass


def page_of(
    names: list[str], prefix: str, delimiter: str, after: str, size: int
) -> tuple[list[str], list[str], str]:
    """A page of a listing: names, common prefixes, and where the next page begins ("" without one)."""
    found: list[str] = []
    prefixes: list[str] = []
    for name in sorted(names):
        if not name.startswith(prefix):
            continue
        cut = name.find(delimiter, len(prefix)) if delimiter else -1
        entry = name if cut < 0 else name[: cut + len(delimiter)]
        if entry <= after or entry in prefixes:
            continue
        if len(found) + len(prefixes) == size:
            return found, prefixes, max([*found, *prefixes])
        (found if cut < 0 else prefixes).append(entry)
    return found, prefixes, ""


@contextmanager
def serving(handler: type[StoreHandler], **attributes: Any) -> Iterator[str]:
    """Run a server with an empty store; the URL of the server."""
    own = type("Handler", (handler,), {"buckets": {}, "lock": threading.Lock(), **attributes})
    server = ThreadingHTTPServer(("127.0.0.1", 0), own)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
