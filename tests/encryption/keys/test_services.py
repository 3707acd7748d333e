"""Clients of key services against what there is of each: moto's AWS KMS over HTTP, a local server that speaks the transit
API, and a SoftHSM2 token."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.encryption import (
    AwsKmsClient,
    AzureKmsClient,
    CryptoFactory,
    EncryptionConfiguration,
    GoogleKmsClient,
    KmsClient,
    KmsConnectionConfig,
    Pkcs11KmsClient,
    VaultKmsClient,
)
from tests.encryption.keys.softhsm import PIN, pkcs11, softhsm_token
from tests.encryption.keys.vault_server import TransitServer
from tests.requirements import needs, softhsm_library

KEY = b"a key of 16 byte"


def assert_files_go_round(tmp_path: Path, client: Any, config: KmsConnectionConfig, footer: str, column: str) -> None:
    """Both wrappings, internal and external, and a rotation, with this service."""
    for double in (True, False):
        for internal in (True, False):
            keys = CryptoFactory(client, timeout=60)     # a loaded machine takes 10 seconds to make boto3's client
            path = tmp_path / f"{double} {internal}.parquet"
            configuration = EncryptionConfiguration(
                footer, column_keys={column: ["b"]}, double_wrapping=double, internal_key_material=internal
            )
            made = keys.file_encryption_properties(config, configuration, path)
            fastpq.write_table({"a": np.arange(5), "b": np.arange(5)}, path, encryption_properties=made)
            if not internal:
                assert keys.rotate_master_keys(config, path, double_wrapping=not double) == [str(path)]
            opened = CryptoFactory(client, timeout=60).file_decryption_properties(config, None, path)
            assert np.array_equal(fastpq.read_table(path, decryption_properties=opened)["b"].to_numpy(), np.arange(5))


@pytest.mark.parametrize(
    ("client", "module", "package"),
    [
        (AwsKmsClient, "boto3", "boto3"),
        (AzureKmsClient, "azure.keyvault.keys", "azure-keyvault-keys"),
        (GoogleKmsClient, "google.cloud.kms_v1", "google-cloud-kms"),
        (VaultKmsClient, "hvac", "hvac"),
        (Pkcs11KmsClient, "pkcs11", "python-pkcs11"),
    ],
)
def test_a_missing_package_is_named(client: Any, module: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(fastpq.UnsupportedError, match=f"pip install {package}") as raised:
        client(KmsConnectionConfig())
    assert isinstance(raised.value.__cause__, ImportError)


def test_importing_fastpq_brings_none_of_them() -> None:
    packages = ("boto3", "hvac", "pkcs11", "google.cloud", "grpc", "azure", "requests")
    script = f"import sys, fastpq.encryption.keys; print([name for name in {packages} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# --- AWS KMS ---


@pytest.fixture
def aws(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """boto3's own client, to make keys with."""
    import boto3

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    client = boto3.client("kms", region_name="eu-west-1", endpoint_url=moto_url)
    yield client
    client.close()


@pytest.fixture
def aws_config(moto_url: str) -> KmsConnectionConfig:
    return KmsConnectionConfig("eu-west-1", kms_instance_url=moto_url)


def test_aws(tmp_path: Path, aws: Any, aws_config: KmsConnectionConfig) -> None:
    footer, column = (aws.create_key()["KeyMetadata"] for _ in range(2))
    aws.create_alias(AliasName=f"alias/{footer['KeyId']}", TargetKeyId=footer["KeyId"])
    assert_files_go_round(tmp_path, AwsKmsClient, aws_config, f"alias/{footer['KeyId']}", column["Arn"])


def test_what_aws_wraps_is_its_own_ciphertext(aws: Any, aws_config: KmsConnectionConfig) -> None:
    identifier = aws.create_key()["KeyMetadata"]["KeyId"]
    client = AwsKmsClient(aws_config)
    wrapped = client.wrap_key(KEY, identifier)
    assert aws.decrypt(CiphertextBlob=base64.b64decode(wrapped))["Plaintext"] == KEY
    theirs = aws.encrypt(KeyId=identifier, Plaintext=KEY)["CiphertextBlob"]
    assert client.unwrap_key(base64.b64encode(theirs).decode(), identifier) == KEY
    assert isinstance(client, KmsClient)
    assert repr(client) == f"<AwsKmsClient at {aws_config.kms_instance_url}>"


def test_aws_refuses(aws: Any, aws_config: KmsConnectionConfig) -> None:
    identifier = aws.create_key()["KeyMetadata"]["KeyId"]
    client = AwsKmsClient(aws_config)
    wrapped = client.wrap_key(KEY, identifier)
    with pytest.raises(fastpq.KeyAccessError, match=r"refused to encrypt with the key 'no-such-key': NotFoundException"):
        client.wrap_key(KEY, "no-such-key")
    other = aws.create_key()["KeyMetadata"]["KeyId"]
    with pytest.raises(fastpq.KeyAccessError, match="AccessDeniedException"):
        client.unwrap_key(wrapped, other)
    with pytest.raises(fastpq.KeyAccessError, match="refused to decrypt"):
        client.unwrap_key("AAAA" + wrapped[4:], identifier)
    with pytest.raises(fastpq.FormatError, match="base64"):
        client.unwrap_key("no base64", identifier)


def test_aws_binds_a_context(tmp_path: Path, aws: Any, aws_config: KmsConnectionConfig) -> None:
    identifier = aws.create_key()["KeyMetadata"]["KeyId"]

    def client(**context: str) -> AwsKmsClient:
        custom = {"encryption_context": json.dumps(context)} if context else None
        return AwsKmsClient(
            KmsConnectionConfig("eu-west-1", kms_instance_url=aws_config.kms_instance_url, custom_kms_conf=custom)
        )

    bound = client(table="sales", stage="test")
    wrapped = bound.wrap_key(KEY, identifier)
    ciphertext = base64.b64decode(wrapped)
    context = {"stage": "test", "table": "sales"}
    assert bound.unwrap_key(wrapped, identifier) == KEY
    assert aws.decrypt(CiphertextBlob=ciphertext, EncryptionContext=context)["Plaintext"] == KEY
    for other in (client(), client(table="sales"), client(table="sales", stage="production")):
        with pytest.raises(fastpq.KeyAccessError, match="InvalidCiphertext"):
            other.unwrap_key(wrapped, identifier)
    for malformed in ("sales", "[]", "{}", '{"table": 1}', '{"table": "a", "table": "b"}'):
        custom = {"encryption_context": malformed}
        with pytest.raises(fastpq.SchemaError, match="encryption_context"):
            AwsKmsClient(KmsConnectionConfig("eu-west-1", custom_kms_conf=custom))
    with_context = KmsConnectionConfig(
        "eu-west-1", kms_instance_url=aws_config.kms_instance_url, custom_kms_conf={"encryption_context": '{"table": "sales"}'}
    )
    assert_files_go_round(tmp_path, AwsKmsClient, with_context, identifier, identifier)


def test_aws_is_not_there(aws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    client = AwsKmsClient(KmsConnectionConfig("eu-west-1", kms_instance_url="http://127.0.0.1:9"))
    with pytest.raises(fastpq.KeyAccessError, match="could not be asked to encrypt: EndpointConnectionError"):
        client.wrap_key(KEY, "any")


# --- Vault and OpenBao ---


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> Iterator[TransitServer]:
    for name in ("VAULT_ADDR", "VAULT_TOKEN", "VAULT_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    server = TransitServer()
    server.create_key("footer")
    server.create_key("prices")
    yield server
    server.stop()


def vault_config(server: TransitServer, **options: Any) -> KmsConnectionConfig:
    return KmsConnectionConfig(kms_instance_url=server.url, **{"key_access_token": "root", **options})


def test_vault(tmp_path: Path, vault: TransitServer) -> None:
    assert_files_go_round(tmp_path, VaultKmsClient, vault_config(vault), "footer", "prices")


def test_vault_s_versions_and_mount_points(vault: TransitServer) -> None:
    vault.create_key("other", "team/keys")
    vault.namespace = "tenant"
    config = vault_config(vault, custom_kms_conf={"mount_point": "team/keys", "namespace": "tenant"})
    client = VaultKmsClient(config)
    first = client.wrap_key(KEY, "other")
    assert first.startswith("vault:v1:")
    vault.create_key("other", "team/keys")
    assert client.wrap_key(KEY, "other").startswith("vault:v2:")
    assert client.unwrap_key(first, "other") == KEY
    assert isinstance(client, KmsClient)
    with pytest.raises(fastpq.KeyAccessError, match="InvalidPath"):
        VaultKmsClient(vault_config(vault)).wrap_key(KEY, "footer")


def test_vault_s_tokens(vault: TransitServer, monkeypatch: pytest.MonkeyPatch) -> None:
    config = vault_config(vault, key_access_token="hvs.expired")
    client = VaultKmsClient(config)
    with pytest.raises(fastpq.KeyAccessError, match=r"did not encrypt with the key 'footer': Forbidden") as raised:
        client.wrap_key(KEY, "footer")
    assert "hvs" not in str(raised.value) + repr(client)
    config.refresh_key_access_token("root")
    wrapped = client.wrap_key(KEY, "footer")
    vault.tokens = {"from the environment"}
    monkeypatch.setenv("VAULT_TOKEN", "from the environment")
    monkeypatch.setenv("VAULT_ADDR", vault.url)
    assert VaultKmsClient(KmsConnectionConfig()).unwrap_key(wrapped, "footer") == KEY


def test_vault_s_address_is_needed(vault: TransitServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The token does not go to port 8200 of this machine, nor to VAULT_ADDR if the caller names another server."""
    for url in ("", "DEFAULT"):
        with pytest.raises(fastpq.SchemaError, match="needs kms_instance_url, or the environment variable VAULT_ADDR"):
            VaultKmsClient(KmsConnectionConfig(kms_instance_url=url, key_access_token="root"))
    monkeypatch.setenv("VAULT_ADDR", vault.url)
    with pytest.raises(fastpq.SchemaError, match="the address of Vault is kms_instance_url"):
        VaultKmsClient(KmsConnectionConfig("https://vault.example.com", key_access_token="root"))


def test_vault_refuses(vault: TransitServer) -> None:
    client = VaultKmsClient(vault_config(vault))
    wrapped = client.wrap_key(KEY, "footer")
    with pytest.raises(fastpq.KeyAccessError, match="InvalidRequest"):
        client.unwrap_key(wrapped, "prices")
    with pytest.raises(fastpq.KeyAccessError, match="InvalidRequest"):
        client.wrap_key(KEY, "unknown")
    for name in ("../sys/seal", "..", "."):
        with pytest.raises(fastpq.KeyAccessError, match="cannot be the name of a transit key"):
            client.wrap_key(KEY, name)
    unreachable = VaultKmsClient(KmsConnectionConfig(kms_instance_url="http://127.0.0.1:9", key_access_token="root"))
    with pytest.raises(fastpq.KeyAccessError, match="ConnectionError"):
        unreachable.wrap_key(KEY, "footer")


@pytest.mark.parametrize(
    ("client", "options"),
    [
        (AwsKmsClient, {"profile": "me"}),
        (VaultKmsClient, {"name_space": "tenant"}),
        (VaultKmsClient, {"ca_cert": ""}),      # which requests would take for no verification at all
        (Pkcs11KmsClient, {"library": "/lib.so", "token_label": "a", "pin": "0000"}),
    ],
)
def test_options_of_clients_are_known_and_not_empty(client: Any, options: dict[str, str]) -> None:
    if client is Pkcs11KmsClient:
        needs(pkcs11)
    with pytest.raises(fastpq.SchemaError, match="custom_kms_conf"):
        client(KmsConnectionConfig(custom_kms_conf=options))


# --- PKCS#11 ---


@pytest.fixture(scope="session")        # a process loads the library, with its configuration, once
def token(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KmsConnectionConfig]:
    """A new SoftHSM2 token."""
    needs(pkcs11)
    library = softhsm_library()
    with softhsm_token(tmp_path_factory.mktemp("tokens"), library) as config:
        yield config


def test_pkcs11(tmp_path: Path, token: KmsConnectionConfig) -> None:
    assert_files_go_round(tmp_path, Pkcs11KmsClient, token, "footer", "prices")


def test_pkcs11_s_versions(token: KmsConnectionConfig) -> None:
    custom = token.custom_kms_conf
    open_token = pkcs11.lib(custom["library"]).get_token(token_label="fastpq")
    with open_token.open(user_pin=PIN, rw=True) as session:
        session.generate_key(pkcs11.KeyType.AES, 128, label="rotated", id=b"\x01", store=True)
    client = Pkcs11KmsClient(token)
    first = client.wrap_key(KEY, "rotated")
    with open_token.open(user_pin=PIN, rw=True) as session:
        session.generate_key(pkcs11.KeyType.AES, 256, label="rotated", id=b"\x02", store=True)
        second = client.wrap_key(KEY, "rotated")       # within the application's own login
    assert (first[:10], second[:10]) == ("pkcs11:01:", "pkcs11:02:")
    assert [client.unwrap_key(wrapped, "rotated") for wrapped in (first, second)] == [KEY, KEY]
    assert isinstance(client, KmsClient)


def test_pkcs11_wraps_as_its_description_says(token: KmsConnectionConfig) -> None:
    """With a master key that is known, opened by the package cryptography."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    custom = token.custom_kms_conf
    known = bytes(range(32))
    with pkcs11.lib(custom["library"]).get_token(token_label="fastpq").open(user_pin=PIN, rw=True) as session:
        session.create_object(
            {
                pkcs11.Attribute.CLASS: pkcs11.ObjectClass.SECRET_KEY,
                pkcs11.Attribute.KEY_TYPE: pkcs11.KeyType.AES,
                pkcs11.Attribute.LABEL: "known",
                pkcs11.Attribute.ID: b"\x07",
                pkcs11.Attribute.VALUE: known,
                pkcs11.Attribute.ENCRYPT: True,
                pkcs11.Attribute.DECRYPT: True,
                pkcs11.Attribute.TOKEN: True,
            }
        )
    sealed = base64.b64decode(Pkcs11KmsClient(token).wrap_key(KEY, "known").removeprefix("pkcs11:07:"))
    assert AESGCM(known).decrypt(sealed[:12], sealed[12:], b"known") == KEY


def test_pkcs11_in_many_threads(token: KmsConnectionConfig) -> None:
    clients = [Pkcs11KmsClient(token) for _ in range(4)]

    def go_round(number: int) -> bytes:
        client = clients[number % 4]
        return client.unwrap_key(client.wrap_key(KEY, "footer"), "footer")

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(go_round, range(40))) == [KEY] * 40


def test_pkcs11_refuses(token: KmsConnectionConfig) -> None:
    client = Pkcs11KmsClient(token)
    wrapped = client.wrap_key(KEY, "footer")
    with pytest.raises(fastpq.KeyAccessError, match="failed with the key 'prices'"):
        client.unwrap_key(wrapped, "prices")
    with pytest.raises(fastpq.KeyAccessError, match="has no AES key 'unknown'"):
        client.wrap_key(KEY, "unknown")
    with pytest.raises(fastpq.KeyAccessError, match="no version 'ff'"):
        client.unwrap_key(wrapped.replace("pkcs11:01", "pkcs11:ff"), "footer")
    for malformed in ("", "pkcs11:01", "vault:v1:QUJD", "pkcs11:01:QUJD", "pkcs11:01:" + "A" * 84):
        with pytest.raises(fastpq.FormatError, match="wrapped"):
            client.unwrap_key(malformed, "footer")
    wrong = KmsConnectionConfig(key_access_token="0000", custom_kms_conf=token.custom_kms_conf)
    with pytest.raises(fastpq.KeyAccessError, match="PinIncorrect") as raised:
        Pkcs11KmsClient(wrong).wrap_key(KEY, "footer")
    assert "0000" not in str(raised.value)


def test_pkcs11_needs_its_options(token: KmsConnectionConfig) -> None:
    library = token.custom_kms_conf["library"]
    with pytest.raises(fastpq.SchemaError, match="library and token_label"):
        Pkcs11KmsClient(KmsConnectionConfig(custom_kms_conf={"library": library}))
    for custom in ({"library": library, "token_label": "none"}, {"library": "/nowhere.so", "token_label": "fastpq"}):
        with pytest.raises(fastpq.KeyAccessError, match="no PKCS#11 token"):
            Pkcs11KmsClient(KmsConnectionConfig(custom_kms_conf=custom))
