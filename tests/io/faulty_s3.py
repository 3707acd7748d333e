"""A proxy before moto's S3 server: cuts clients off at any request, loses answers, keeps conditions on completed uploads."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

REFUSED = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>PreconditionFailed</Code><Message>At least one of the '
    b"pre-conditions you specified did not hold</Message><Condition>If-None-Match</Condition></Error>"
)
HOP = {"connection", "transfer-encoding", "content-length", "date", "server"}


@dataclass
class Proxy:
    """A running proxy.

    Attributes:
        url: its URL.
        requests: method and path of each request since ``reset``.
        trouble: called with the number of a request, before it is passed on and after; True cuts the client off.
    """

    target: str
    url: str = ""
    requests: list[str] = field(default_factory=list)
    trouble: Callable[[int, str], bool] = lambda number, moment: False
    is_cut: bool = False
    only_once: bool = False
    lock: Any = field(default_factory=threading.RLock)

    def reset(self) -> None:
        """Forget the requests, and pass on all to come."""
        with self.lock:
            self.requests, self.is_cut, self.only_once = [], False, False
            self.trouble = lambda number, moment: False

    def cut(self, number: int, moment: str) -> None:
        """Cut clients off for good before or after request number: for the store, the same as the death of its client."""
        self.reset()
        self.trouble = lambda found, when: (found, when) == (number, moment)

    def lose(self, number: int) -> None:
        """Lose the answer to one request."""
        self.cut(number, "after")
        self.only_once = True


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    proxy: Proxy

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def pass_on(self) -> None:
        proxy = self.proxy
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = self._chunks()
        with proxy.lock:
            if proxy.is_cut:
                self._drop()
                return
            proxy.requests.append(f"{self.command} {self.path}")
            number = len(proxy.requests) - 1
            if self._is_troubled(number, "before"):
                return
            status, headers, answer = self._refused() or self._forward(body)
            if self._is_troubled(number, "after"):
                return
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in HOP:
                self.send_header(name, value)
        length = {name.lower(): value for name, value in headers}.get("content-length", "0")
        self.send_header("Content-Length", length if self.command == "HEAD" else str(len(answer)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = pass_on     # noqa: N815 - names of http.server

    def log_message(self, *_: Any) -> None:
        pass

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _is_troubled(self, number: int, moment: str) -> bool:
        if not self.proxy.trouble(number, moment):
            return False
        self.proxy.is_cut = not self.proxy.only_once
        self.proxy.trouble = lambda number, moment: False
        self._drop()
        return True

    def _drop(self) -> None:
        self.close_connection = True
        self.connection.close()

    def _refused(self) -> tuple[int, list[tuple[str, str]], bytes] | None:
        """The refusal of a completed upload whose condition does not hold: moto looks at the conditions of PUT alone."""
        none_match, match = self.headers.get("If-None-Match"), self.headers.get("If-Match")
        if self.command != "POST" or "uploadId=" not in self.path or (none_match, match) == (None, None):
            return None
        path = urlsplit(self.path).path
        status, headers, _ = self._send("HEAD", path, {"Host": self.headers["Host"]}, b"")
        etag = {name.lower(): value for name, value in headers}.get("etag")
        fits = status == 404 if none_match is not None else etag is not None and etag.strip('"') == str(match).strip('"')
        return None if fits else (412, [("Content-Type", "application/xml")], REFUSED)

    def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        headers = {name: value for name, value in self.headers.items() if name.lower() != "transfer-encoding"}
        if body or "Content-Length" in headers:
            headers["Content-Length"] = str(len(body))
        return self._send(self.command, self.path, headers, body)

    def _send(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(urlsplit(self.proxy.target).netloc)
        try:
            connection.request(method, path, body or None, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


@contextmanager
def faulty(target: str) -> Iterator[Proxy]:
    """Start a proxy before a server."""
    proxy = Proxy(target)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": proxy}))
    server.daemon_threads = True
    proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
