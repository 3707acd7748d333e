"""The part of the transit HTTP API of HashiCorp Vault and OpenBao that wrapping keys needs, on a local port.

It stands for the products in the tests: paths, headers, members and errors are those of their documentation.
"""

from __future__ import annotations

import base64
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM


class Refusal(Exception):
    """An HTTP status and the message that goes with it."""


class TransitServer(ThreadingHTTPServer):
    """A transit engine at ``transit/`` and another at ``team/keys/``, of one namespace."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.tokens = {"root"}
        self.requests: list[str] = []       # path and members of each call
        self.namespace: str | None = None
        self.keys: dict[tuple[str, str], list[bytes]] = {}      # by mount point and name, versions from 1
        self._thread = threading.Thread(target=self.serve_forever)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def create_key(self, name: str, mount_point: str = "transit") -> None:
        """Make a key, or another version of it."""
        self.keys.setdefault((mount_point, name), []).append(os.urandom(32))

    def stop(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    server: TransitServer
    MOUNT_POINTS: ClassVar = ("transit", "team/keys")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append(f"POST {self.path} {' '.join(sorted(json.loads(body)))}")
        try:
            self._answer(200, {"data": self._operate(json.loads(body))})
        except Refusal as refusal:
            status, message = refusal.args
            self._answer(status, {"errors": [message]})

    def _operate(self, request: dict[str, str]) -> dict[str, Any]:
        if self.headers.get("X-Vault-Token") not in self.server.tokens:
            raise Refusal(403, "permission denied")
        if self.headers.get("X-Vault-Namespace") != self.server.namespace:
            raise Refusal(404, "no handler for route")
        mount_point, operation, name = self.path.removeprefix("/v1/").rsplit("/", 2)
        versions = self.server.keys.get((mount_point, name))
        if mount_point not in self.MOUNT_POINTS or operation not in ("encrypt", "decrypt"):
            raise Refusal(404, "unsupported path")
        if versions is None:
            raise Refusal(400, "encryption key not found")
        if operation == "encrypt":
            nonce = os.urandom(12)
            sealed = nonce + AESGCM(versions[-1]).encrypt(nonce, base64.b64decode(request["plaintext"]), None)
            return {"ciphertext": f"vault:v{len(versions)}:{base64.b64encode(sealed).decode()}", "key_version": len(versions)}
        prefix, version, text = request["ciphertext"].split(":")
        sealed = base64.b64decode(text)
        try:
            plain = AESGCM(versions[int(version[1:]) - 1]).decrypt(sealed[:12], sealed[12:], None)
        except (InvalidTag, IndexError):
            raise Refusal(400, "cipher: message authentication failed") from None
        assert prefix == "vault"
        return {"plaintext": base64.b64encode(plain).decode()}

    def _answer(self, status: int, members: dict[str, Any]) -> None:
        body = json.dumps(members).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Stay silent."""
