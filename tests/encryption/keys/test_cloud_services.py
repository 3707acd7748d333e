"""Clients of Google Cloud KMS and Azure Key Vault, against local servers that speak the services' protocols.

Google's and Azure's own client libraries stand between client and server.
"""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fastpq
from fastpq.encryption import AzureKmsClient, GoogleKmsClient, KmsClient, KmsConnectionConfig
from fastpq.encryption.keys.google_kms import crc32c
from tests.encryption.keys.test_services import KEY, assert_files_go_round
from tests.requirements import needs, peer

google_kms = peer("google.cloud.kms_v1", "google-cloud-kms")
azure_keys = peer("azure.keyvault.keys", "azure-keyvault-keys")
TOKEN = "a token for the vault"


# --- Google Cloud KMS ---


@pytest.fixture
def google() -> Iterator[Any]:
    needs(google_kms)
    from tests.encryption.keys.google_server import GoogleServer

    server = GoogleServer()
    yield server
    server.stop()


def google_config(server: Any, **options: Any) -> KmsConnectionConfig:
    from tests.encryption.keys.google_server import KEY_RING

    return KmsConnectionConfig(options.pop("ring", KEY_RING), kms_instance_url=server.url, **options)


def test_google(tmp_path: Path, google: Any) -> None:
    google.create_key("footer")
    assert_files_go_round(tmp_path, GoogleKmsClient, google_config(google), "footer", google.create_key("prices"))


def test_google_s_versions_and_its_own_client(google: Any) -> None:
    name = google.create_key("footer")
    client = GoogleKmsClient(google_config(google))
    first = client.wrap_key(KEY, "footer")
    google.create_key("footer")
    second = client.wrap_key(KEY, name)
    assert [base64.b64decode(wrapped)[3] for wrapped in (first, second)] == [1, 2]
    assert [client.unwrap_key(wrapped, "footer") for wrapped in (first, second)] == [KEY, KEY]
    theirs = client._client.encrypt(name=name, plaintext=KEY, retry=None)
    assert client.unwrap_key(base64.b64encode(theirs.ciphertext).decode(), name) == KEY
    assert isinstance(client, KmsClient)
    assert repr(client) == f"<GoogleKmsClient at 127.0.0.1:{google.port}>"


def test_google_binds_a_context(google: Any) -> None:
    google.create_key("footer")
    bound = GoogleKmsClient(google_config(google, custom_kms_conf={"additional_authenticated_data": "sales"}))
    wrapped = bound.wrap_key(KEY, "footer")
    assert bound.unwrap_key(wrapped, "footer") == KEY
    for other in (google_config(google), google_config(google, custom_kms_conf={"additional_authenticated_data": "other"})):
        with pytest.raises(fastpq.KeyAccessError, match="InvalidArgument: Decryption failed"):
            GoogleKmsClient(other).unwrap_key(wrapped, "footer")


def test_google_refuses_and_says_why(google: Any) -> None:
    import grpc

    name = google.create_key("footer")
    google.create_key("other")
    client = GoogleKmsClient(google_config(google))
    wrapped = client.wrap_key(KEY, "footer")
    with pytest.raises(fastpq.KeyAccessError, match=r"'unknown': NotFound: CryptoKey .* not found") as raised:
        client.wrap_key(KEY, "unknown")
    assert (raised.value.is_denied, raised.value.is_unavailable) == (True, False)
    with pytest.raises(fastpq.KeyAccessError, match="refused to decrypt with the key 'other': InvalidArgument"):
        client.unwrap_key(wrapped, "other")
    google.disabled_versions.add(f"{name}/cryptoKeyVersions/1")
    with pytest.raises(fastpq.KeyAccessError, match="not enabled, DISABLED") as raised:
        client.unwrap_key(wrapped, "footer")
    assert raised.value.is_denied
    google.keys[name][0] = None
    with pytest.raises(fastpq.KeyAccessError, match="not enabled, DESTROYED"):
        client.unwrap_key(wrapped, "footer")
    for status, denied, unavailable in (
        (grpc.StatusCode.PERMISSION_DENIED, True, False),
        (grpc.StatusCode.UNAUTHENTICATED, True, False),
        (grpc.StatusCode.UNAVAILABLE, False, True),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, False, True),
        (grpc.StatusCode.INTERNAL, False, True),
    ):
        google.refusal = (status, f"because of {base64.b64encode(KEY).decode()}")
        with pytest.raises(fastpq.KeyAccessError) as raised:
            client.wrap_key(KEY, "other")
        assert (raised.value.is_denied, raised.value.is_unavailable) == (denied, unavailable)
        assert "because" not in str(raised.value)       # the words hold the key


@pytest.mark.parametrize("member", ["ciphertext", "ciphertext_crc32c", "verified_plaintext_crc32c", "name"])
def test_google_s_damaged_answers_are_refused(google: Any, member: str) -> None:
    google.create_key("footer")
    client = GoogleKmsClient(google_config(google))

    def damage(answer: Any) -> None:
        value = getattr(answer, member)
        setattr(answer, member, {bytes: b"\0", str: "other", bool: False, int: 1}[type(value)])

    google.fault = damage
    with pytest.raises(fastpq.KeyAccessError, match="checksums differ") as raised:
        client.wrap_key(KEY, "footer")
    assert raised.value.is_unavailable


def test_google_s_damaged_plaintext_is_refused(google: Any) -> None:
    google.create_key("footer")
    client = GoogleKmsClient(google_config(google))
    wrapped = client.wrap_key(KEY, "footer")

    def damage(answer: Any) -> None:
        answer.plaintext = bytes(16)

    google.fault = damage
    with pytest.raises(fastpq.KeyAccessError, match="checksums differ"):
        client.unwrap_key(wrapped, "footer")


def test_names_that_lead_elsewhere_are_refused_by_google(google: Any) -> None:
    name = google.create_key("footer")
    client = GoogleKmsClient(google_config(google))
    sent = len(google.requests)
    for identifier in ("", "..", "a/b", f"{name}/cryptoKeyVersions/1", f"{name}\n", f"/{name}", "footer?x", f"{name}/../x"):
        with pytest.raises(fastpq.KeyAccessError, match="cannot be the name of a key"):
            client.wrap_key(KEY, identifier)
    with pytest.raises(fastpq.KeyAccessError, match="needs its key ring as kms_instance_id"):
        GoogleKmsClient(google_config(google, ring="")).wrap_key(KEY, "footer")
    assert len(google.requests) == sent


def test_google_s_configuration_is_checked(google: Any) -> None:
    for problem, config in (
        ("key ring", KmsConnectionConfig("europe-west1", kms_instance_url=google.url)),
        ("https://", KmsConnectionConfig(kms_instance_url="http://kms.example.com")),
        ("https://", KmsConnectionConfig(kms_instance_url="https://me:secret@kms.example.com")),
        ("custom_kms_conf", KmsConnectionConfig(custom_kms_conf={"region": "x"})),
        ("gets no credentials", KmsConnectionConfig(kms_instance_url=google.url, key_access_token="a token of Google")),
    ):
        with pytest.raises(fastpq.SchemaError, match=problem):
            GoogleKmsClient(config)
    over_tls = KmsConnectionConfig(kms_instance_url="https://127.0.0.1:9", key_access_token="a token of Google")
    client = GoogleKmsClient(over_tls)
    with pytest.raises(fastpq.KeyAccessError, match="did not answer a request to encrypt") as raised:
        client.wrap_key(KEY, "projects/a/locations/b/keyRings/c/cryptoKeys/d")
    assert raised.value.is_unavailable
    assert "a token" not in str(raised.value) + repr(raised.value) + repr(client)


def test_the_checksum_is_google_s() -> None:
    google_crc32c = pytest.importorskip("google_crc32c")
    for data in (b"", b"123456789", bytes(range(256))):
        assert crc32c(data) == google_crc32c.value(data)
    assert crc32c(b"123456789") == 0xE3069283      # RFC 3720 and every table of checksums


# --- Azure Key Vault ---


@pytest.fixture
def azure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    needs(azure_keys)
    from tests.encryption.keys.azure_server import HOST, AzureServer

    look_up = socket.getaddrinfo

    def local_look_up(host: Any, *arguments: Any, **options: Any) -> Any:
        return look_up("127.0.0.1" if host == HOST else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", local_look_up)
    server = AzureServer(tmp_path)
    yield server
    server.stop()


def azure_config(server: Any, *, token: str = TOKEN, **options: str) -> KmsConnectionConfig:
    custom = {"ca_cert": str(server.certificate), **options}
    return KmsConnectionConfig(kms_instance_url=server.url, key_access_token=token, custom_kms_conf=custom)


def test_azure(tmp_path: Path, azure: Any) -> None:
    for name in ("footer", "prices"):
        azure.create_key(name)
    assert_files_go_round(tmp_path, AzureKmsClient, azure_config(azure), "footer", "prices")


def test_azure_s_versions(azure: Any) -> None:
    first_version = azure.create_key("footer")
    client = AzureKmsClient(azure_config(azure))
    first = client.wrap_key(KEY, "footer")
    second_version = azure.create_key("footer")
    second = client.wrap_key(KEY, "footer")
    assert first.startswith(f"azure:RSA-OAEP-256:{first_version}:")
    assert second.startswith(f"azure:RSA-OAEP-256:{second_version}:")
    assert [client.unwrap_key(wrapped, "footer") for wrapped in (first, second)] == [KEY, KEY]
    azure.requests.clear()
    assert client.unwrap_key(first, "footer") == KEY
    client.wrap_key(KEY, "footer")
    assert azure.requests == [f"POST /keys/footer/{first_version}/unwrapkey", "POST /keys/footer//wrapkey"]
    assert isinstance(client, KmsClient)
    assert repr(client) == f"<AzureKmsClient at {azure.url}>"


def test_azure_wraps_as_its_description_says(azure: Any) -> None:
    from tests.encryption.keys.azure_server import OAEP

    version = azure.create_key("footer")
    wrapped = AzureKmsClient(azure_config(azure)).wrap_key(KEY, "footer")
    private_key = azure.keys["footer"][version]
    assert private_key.decrypt(base64.b64decode(wrapped.rpartition(":")[2]), OAEP) == KEY


@pytest.mark.parametrize("size", [16, 32])
def test_azure_s_aes_keys(azure: Any, size: int) -> None:
    from cryptography.hazmat.primitives.keywrap import aes_key_unwrap

    master_key = bytes(range(size))
    azure.create_key("hsm", master_key)
    client = AzureKmsClient(azure_config(azure, algorithm=f"A{size * 8}KW"))
    wrapped = client.wrap_key(KEY, "hsm")
    assert aes_key_unwrap(master_key, base64.b64decode(wrapped.rpartition(":")[2])) == KEY
    assert client.unwrap_key(wrapped, "hsm") == KEY


def test_a_reader_of_aes_keys_refuses_what_a_public_key_wrapped(azure: Any) -> None:
    azure.create_key("footer")
    wrapped = AzureKmsClient(azure_config(azure)).wrap_key(KEY, "footer")
    with pytest.raises(fastpq.KeyAccessError, match="wrapped by RSA-OAEP-256, and this client accepts A256KW"):
        AzureKmsClient(azure_config(azure, algorithm="A256KW")).unwrap_key(wrapped, "footer")


def test_azure_refuses_and_says_why(azure: Any) -> None:
    version = azure.create_key("footer")
    azure.create_key("other")
    client = AzureKmsClient(azure_config(azure))
    wrapped = client.wrap_key(KEY, "footer")
    with pytest.raises(fastpq.KeyAccessError, match=r"'unknown': 404: \(KeyNotFound\) A key with") as raised:
        client.wrap_key(KEY, "unknown")
    assert raised.value.is_denied
    with pytest.raises(fastpq.KeyAccessError, match="'other': 404"):
        client.unwrap_key(wrapped, "other")
    with pytest.raises(fastpq.KeyAccessError, match="'footer': 400") as raised:
        client.unwrap_key(f"azure:RSA-OAEP-256:{version}:{base64.b64encode(bytes(256)).decode()}", "footer")
    assert (raised.value.is_denied, raised.value.is_unavailable) == (False, False)
    azure.disabled_versions.add(version)
    with pytest.raises(fastpq.KeyAccessError, match=r"403: .*disabled key") as raised:
        client.unwrap_key(wrapped, "footer")
    assert raised.value.is_denied
    with pytest.raises(fastpq.KeyAccessError, match="401"):
        AzureKmsClient(azure_config(azure, token="another token")).wrap_key(KEY, "footer")


@pytest.mark.parametrize(("status", "unavailable"), [(429, True), (503, True), (400, False)])
def test_azure_is_down(azure: Any, status: int, unavailable: bool) -> None:
    from tests.encryption.keys.azure_server import Refusal

    azure.create_key("footer")
    client = AzureKmsClient(azure_config(azure))
    wrapped = client.wrap_key(KEY, "footer")
    azure.refusal = Refusal(status, "Trouble", f"{wrapped.rpartition(':')[2]}")
    with pytest.raises(fastpq.KeyAccessError) as raised:
        client.unwrap_key(wrapped, "footer")
    assert raised.value.is_unavailable == unavailable
    assert str(raised.value).endswith(f"'footer': {status}")       # the words hold the wrapped key
    assert raised.value.__cause__.response is None  # type: ignore[union-attr]
    unreachable = KmsConnectionConfig(kms_instance_url="https://127.0.0.1:9", key_access_token=TOKEN)
    with pytest.raises(fastpq.KeyAccessError, match="could not be asked to wrap: ServiceRequestError") as raised:
        AzureKmsClient(unreachable).wrap_key(KEY, "footer")
    assert raised.value.is_unavailable


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"value": "AAAA"}, "did not say which version"),
        ({"value": "AAAA", "kid": "https://a/keys/other/1"}, "did not say which version"),
        ({"value": "AAAA", "kid": "https://a/keys/footer/1:2"}, "did not say which version"),
        ({"kid": "https://a/keys/footer/1"}, "has no value"),
        ({"kid": "https://a/keys/footer/1", "value": "a key?"}, "has no value"),
        (["value"], "is not a JSON object"),
    ],
)
def test_azure_s_wrong_answers_are_refused(azure: Any, answer: Any, problem: str) -> None:
    azure.create_key("footer")
    azure.answer = answer
    with pytest.raises(fastpq.KeyAccessError, match=problem):
        AzureKmsClient(azure_config(azure)).wrap_key(KEY, "footer")


def test_azure_s_arguments_are_checked(azure: Any) -> None:
    for problem, config in (
        ("needs kms_instance_url", KmsConnectionConfig()),
        ("has the form", KmsConnectionConfig(kms_instance_url="http://team.vault.azure.net")),
        ("has the form", KmsConnectionConfig(kms_instance_url="https://team.vault.azure.net/keys/a")),
        ("has the form", KmsConnectionConfig(kms_instance_url="https://me:secret@team.vault.azure.net")),
        ("algorithm", azure_config(azure, algorithm="RSA1_5")),
        ("custom_kms_conf", azure_config(azure, verify="no")),
    ):
        with pytest.raises(fastpq.SchemaError, match=problem):
            AzureKmsClient(config)
    client = AzureKmsClient(azure_config(azure))
    azure.create_key("footer")
    for identifier in ("", "..", "a/b", "a?b", "https://elsewhere/keys/footer", "footer\n"):
        with pytest.raises(fastpq.KeyAccessError, match="cannot be the name of a key"):
            client.wrap_key(KEY, identifier)
    for malformed in ("", "azure:", "azure:RSA1_5:a:AAAA", "vault:v1:AAAA", "azure:RSA-OAEP-256:../x:AAAA", "azure:A256KW::AAAA"):
        with pytest.raises(fastpq.FormatError, match="not wrapped by Azure"):
            client.unwrap_key(malformed, "footer")
    assert azure.requests == []


def test_azure_s_token_goes_to_nobody_else(azure: Any) -> None:
    """A server whose challenge names another domain gets no token, and one without a certificate gets no request."""
    azure.create_key("footer")
    config = KmsConnectionConfig(kms_instance_url=azure.url, key_access_token=TOKEN)
    with pytest.raises(fastpq.KeyAccessError, match="could not be asked to wrap"):
        AzureKmsClient(config).wrap_key(KEY, "footer")
    assert azure.requests == []
