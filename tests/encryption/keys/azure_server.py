"""The part of Azure Key Vault's REST API that wrapping keys needs, over HTTPS on a local port.

Paths, members, statuses and the challenge for a token are those of the service's reference. The package cryptography does
RSA-OAEP-256 and AES key wrap.
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import os
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap
from cryptography.x509.oid import NameOID

HOST = "team.vault.localhost"
OAEP = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)


class Refusal(Exception):
    """A HTTP status, a code and a message."""


class AzureServer(ThreadingHTTPServer):
    """A vault. A version's key is an RSA key, or bytes for AES in a Managed HSM.

    Attributes:
        keys: versions by key name, by version name.
        disabled_versions: version names.
        tokens: access tokens that are valid.
        refusal: what each call gets, or None.
        answer: what each call gets in the place of the right answer, or None.
        requests: method and path of each call that had a token.
    """

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.keys: dict[str, dict[str, rsa.RSAPrivateKey | bytes]] = {}
        self.disabled_versions: set[str] = set()
        self.tokens = {"a token for the vault"}
        self.refusal: Refusal | None = None
        self.answer: Any = None
        self.requests: list[str] = []
        self.certificate = folder / "certificate.pem"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(make_certificate(self.certificate))
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self._thread = threading.Thread(target=self.serve_forever)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.server_port}"

    def create_key(self, name: str, aes_key: bytes | None = None) -> str:
        """Make a key, or another version, which is then the newest. Return the version's name."""
        version = os.urandom(16).hex()
        key = rsa.generate_private_key(65537, 2048) if aes_key is None else aes_key
        self.keys.setdefault(name, {})[version] = key
        return version

    def stop(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    server: AzureServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def log_message(self, format: str, *arguments: Any) -> None:
        pass

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        authority = f"https://{HOST.partition('.')[2]}:{self.server.server_port}"
        if self.headers.get("Authorization", "").removeprefix("Bearer ") not in self.server.tokens:
            challenge = f'Bearer authorization="https://login.localhost/tenant", resource="{authority}"'
            self._answer(401, {"error": {"code": "Unauthorized", "message": "no valid token"}}, challenge)
            return
        self.server.requests.append(f"{self.command} {urlsplit(self.path).path}")
        try:
            self._answer(200, self._operate(json.loads(body) if body else {}))
        except Refusal as refusal:
            status, code, message = refusal.args
            self._answer(status, {"error": {"code": code, "message": message}})

    def _operate(self, body: dict[str, Any]) -> dict[str, Any]:
        server = self.server
        if server.refusal is not None:
            raise server.refusal
        if server.answer is not None:
            return cast("dict[str, Any]", server.answer)
        parts = urlsplit(self.path).path.strip("/").split("/")
        versions = server.keys.get(parts[1])
        if parts[0] != "keys" or not versions:
            raise Refusal(404, "KeyNotFound", f"A key with (name/id) {parts[1]} was not found in this key vault.")
        version = parts[2] if len(parts) > 2 and parts[2] else list(versions)[-1]
        if version not in versions:
            raise Refusal(404, "KeyNotFound", f"A key with (name/id) {parts[1]}/{version} was not found in this key vault.")
        if version in server.disabled_versions:
            raise Refusal(403, "Forbidden", "Operation is not allowed on a disabled key.")
        identifier = f"{server.url}/keys/{parts[1]}/{version}"
        if self.command == "GET":
            return {"key": _json_web_key(versions[version], identifier), "attributes": {"enabled": True}}
        value = _decode(body["value"])
        result = _calculate(parts[3], body["alg"], versions[version], value)
        return {"kid": identifier, "value": _encode(result)}

    def _answer(self, status: int, content: dict[str, Any], challenge: str | None = None) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if challenge is not None:
            self.send_header("WWW-Authenticate", challenge)
        self.end_headers()
        self.wfile.write(data)


def _calculate(operation: str, algorithm: str, key: rsa.RSAPrivateKey | bytes, value: bytes) -> bytes:
    if isinstance(key, bytes):
        if algorithm != f"A{len(key) * 8}KW":
            raise Refusal(400, "BadParameter", f"Key and operation {algorithm} do not match")
        try:
            return aes_key_wrap(key, value) if operation == "wrapkey" else aes_key_unwrap(key, value)
        except InvalidUnwrap:
            raise Refusal(400, "BadParameter", "The parameter is incorrect.") from None
    if algorithm != "RSA-OAEP-256":
        raise Refusal(400, "BadParameter", f"Key and operation {algorithm} do not match")
    try:
        return key.public_key().encrypt(value, OAEP) if operation == "wrapkey" else key.decrypt(value, OAEP)
    except ValueError:
        raise Refusal(400, "BadParameter", "The parameter is incorrect.") from None


def _json_web_key(key: rsa.RSAPrivateKey | bytes, identifier: str) -> dict[str, Any]:
    operations = ["wrapKey", "unwrapKey"]
    if isinstance(key, bytes):
        return {"kid": identifier, "kty": "oct-HSM", "key_ops": operations}
    numbers = key.public_key().public_numbers()
    return {
        "kid": identifier,
        "kty": "RSA",
        "key_ops": operations,
        "n": _encode(numbers.n.to_bytes(256, "big")),
        "e": _encode(numbers.e.to_bytes(3, "big")),
    }


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def make_certificate(path: Path) -> Path:
    """Write a certificate of our own for HOST, with its private key, and return the path of the file that has both."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName(HOST), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    both = path.with_name("server.pem")
    pkcs8 = serialization.PrivateFormat.PKCS8
    private_key = key.private_bytes(serialization.Encoding.PEM, pkcs8, serialization.NoEncryption())
    both.write_bytes(private_key + path.read_bytes())
    return both
