"""Secrets in options: refused by name and by value, and names of keys and places let through."""

from __future__ import annotations

import base64
import random
from collections.abc import Callable

import pytest

import fastpq
from fastpq.spark.options import read_options, write_options
from fastpq.spark.refusals import is_secret_option, looks_like_key
from tests.spark.conftest import CLIENT

SERVICE = {"kms.client": CLIENT}
FORMS: dict[str, Callable[[bytes], str]] = {
    "hex": bytes.hex,
    "HEX": lambda key: key.hex().upper(),
    "0x": lambda key: "0x" + key.hex(),
    "0X": lambda key: "0X" + key.hex().upper(),
    "pairs": lambda key: key.hex(":"),
    "padded": lambda key: base64.b64encode(key).decode(),
    "unpadded": lambda key: base64.b64encode(key).decode().rstrip("="),
    "url-safe": lambda key: base64.urlsafe_b64encode(key).decode(),
    "url-safe unpadded": lambda key: base64.urlsafe_b64encode(key).decode().rstrip("="),
    "with space around": lambda key: f" {base64.b64encode(key).decode()}\n",
}
NAMES = [
    "kf", "footer", "customer-footer-key-2024", "my_footer_master_key_1", "prod-customer-data-master-key-01",
    "CustomerDataFooterKeyA", "tenant_42_pii_master_key_v2_2024", "FooterKeyProdEuWest1Customer2024",
    "customer-encryption-k-Q", "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
    "1234abcd-12ab-34cd-56ef-1234567890ab", "alias/prod-customer-key", "mrk-1234abcd12ab34cd56ef1234567890ab",
    "projects/p/locations/eu/keyRings/r/cryptoKeys/k",
]


@pytest.mark.parametrize("size", [16, 24, 32])
@pytest.mark.parametrize("form", FORMS)
def test_keys_of_every_size_and_form(form: str, size: int) -> None:
    """Random keys, and the keys of examples: of one character, of ascending ones."""
    drawn = random.Random(size)
    keys = [drawn.randbytes(size) for _ in range(20)]
    keys += [b"\0" * size, b"\xff" * size, b"k" * size, b"x" * size, bytes(range(size)), (b"0123456789012345" * 2)[:size]]
    for key in keys:
        text = FORMS[form](key)
        assert looks_like_key(text), text
        for options in (
            {"parquet.encryption.footer.key": text},
            {"parquet.encryption.uniform.key": text},
            {"kms.conf.anything": text},
            {"kms.instance.id": text},
            {"kms.trusted.keys": text},
        ):
            with pytest.raises(fastpq.SchemaError, match="looks like a key") as raised:
                write_options({"path": "p", **SERVICE, **options})
            assert text.strip() not in str(raised.value)
    listed = FORMS[form](keys[0]).strip()
    if ":" not in listed:
        with pytest.raises(fastpq.SchemaError, match="looks like a key"):
            write_options({"path": "p", **SERVICE, "parquet.encryption.footer.key": "kf",
                           "parquet.encryption.column.keys": f"kc:a;{listed}:b,c"})


def test_few_random_keys_pass_for_names() -> None:
    drawn = random.Random(15)
    for size in (16, 24, 32):
        texts = [base64.urlsafe_b64encode(drawn.randbytes(size)).decode().rstrip("=") for _ in range(10_000)]
        assert sum(not looks_like_key(text) for text in texts) < 30


@pytest.mark.parametrize("name", NAMES)
def test_names_of_master_keys(name: str) -> None:
    options = {"parquet.encryption.uniform.key": name, "kms.conf.label": name, "kms.trusted.keys": name}
    assert write_options({"path": "p", **SERVICE, **options}).encryption is not None


SECRETS = [
    "token", "kms.conf.token", "kms.conf.authToken", "kms.conf.usertoken", "kms.conf.pin", "kms.conf.userPin",
    "kms.conf.userpin", "kms.conf.passwd", "kms.conf.pwd", "kms.conf.password", "kms.conf.api_key", "kms.conf.apiKey",
    "kms.conf.apikey", "kms.conf.API-KEY", "kms.conf.private_key", "kms.conf.privateKey", "private_key", "kms.conf.secret",
    "kms.conf.client_secret", "kms.conf.key", "kms.conf.credentials", "parquet.encryption.key.access.token",
    "parquet.encryption.key.list", "kms.conf.aws_secret_access_key", "kms.conf.aws_session_token", "kms.conf.jwt",
    "kms.conf.token_value", "footer_key", "column_keys", "decryption_properties",
]
PLACES = [
    "kms.conf.token_label", "kms.conf.profile_name", "kms.conf.namespace", "kms.conf.mount_point", "kms.conf.library",
    "kms.conf.ca_cert", "kms.conf.passphraseFile", "kms.conf.passphrasefile", "kms.conf.token.path", "kms.conf.access_key_id",
    "kms.conf.secret_name", "kms.token.file", "kms.conf.path", "parquet.encryption.data.key.length.bits",
    "parquet.encryption.footer.key", "kms.conf.mapping", "parquet.encryption.key.material.store.internally",
    "kms.conf.spinning",
]


def test_names_of_options() -> None:
    assert [name for name in SECRETS if not is_secret_option(name)] == []
    assert [name for name in PLACES if is_secret_option(name)] == []
    for name in SECRETS:
        with pytest.raises(fastpq.SchemaError, match="would carry a secret") as raised:
            read_options({"path": "p", **SERVICE, name: "hunter2"})
        assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("name", ["kms.instance.url", "kms.conf.proxy", "path", "basePath"])
@pytest.mark.parametrize(
    "value",
    [
        "https://user:hunter2@kms.example", "https://:hunter2@kms.example/a", "s3a://AKIA0:hunter2/x+y@bucket/t",
        "https://kms.example/v1?token=hunter2", "abfss://c@a.dfs.core.windows.net/t?sv=1&sig=hunter2",
        "https://b.s3.amazonaws.com/t?X-Amz-Signature=hunter2", "hvs.hunter2hunter2hunter2hunter2",
        "eyJhbGciOi.eyJzdWIiOi.hunter2", "-----BEGIN RSA PRIVATE KEY-----\nhunter2", "proxy=http://u:hunter2@p:80",
    ],
)
def test_passwords_and_tokens_in_values(name: str, value: str) -> None:
    with pytest.raises(fastpq.SchemaError, match="holds a secret") as raised:
        read_options({"path": "p", **SERVICE, name: value})
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    "options",
    [
        {"kms.instance.url": "https://kms.example:8200/v1"},
        {"kms.instance.url": "https://kms.example/keys?region=eu"},
        {"path": "abfss://container@account.dfs.core.windows.net/t"},
        {"path": "s3://bucket/key=5/user@example/12:30"},
        {"path": "0123456789abcdef0123456789abcdef"},       # a table named by a hash
        {"path": "/Users/alice/Data1/TabQ"},
        {"paths": '["http://a/b", "http://c/d@e:f"]'},
        {"kms.conf.ca_cert": "-----BEGIN CERTIFICATE-----"},
        {"kms.token.file": "/run/secrets/kms/tokeQ"},
    ],
)
def test_values_without_secrets(options: dict[str, str]) -> None:
    read_options({"path": "p", **SERVICE, **options})
