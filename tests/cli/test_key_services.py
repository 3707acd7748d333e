"""The command's options for key services."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import fastpq
from fastpq.cli.failures import failure_of
from fastpq.cli.key_sources import CLIENTS
from fastpq.encryption import KmsConnectionConfig, VaultKmsClient, keys
from fastpq.encryption.decryptor import NO_COLUMN_KEY
from fastpq.encryption.keyed_decryptor import NO_SIGNING_KEY
from tests.cli.running import Runner

CALLS: list[float] = []


class SlowClient:
    """A service that takes an hour."""

    def __init__(self, config: Any) -> None:
        pass

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        time.sleep(3600)
        return ""

    unwrap_key: Any = wrap_key


class DownClient(SlowClient):
    """A service that does not answer."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        CALLS.append(time.monotonic())
        raise ConnectionError

    unwrap_key: Any = wrap_key


def test_messages_about_keys_have_the_words_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VAULT_ADDR", raising=False)
    errors: list[fastpq.ParquetError] = [fastpq.KeyAccessError(NO_COLUMN_KEY), fastpq.KeyAccessError(NO_SIGNING_KEY)]
    for connection in (KmsConnectionConfig(), KmsConnectionConfig("https://vault.example.com")):
        with pytest.raises(fastpq.SchemaError) as caught:
            VaultKmsClient(connection)
        errors.append(caught.value)
    messages = [failure_of(error).message for error in errors]
    assert messages[0].endswith("there is no key for it")
    assert "--allow unsigned-footers reads" in messages[1]
    assert "Vault needs FASTPQ_KMS_URL" in messages[2]
    assert "FASTPQ_KMS_URL has the address of Vault" in messages[3]
    for name in ("kms_instance", "verify_footer", "readable_columns", "on_missing_key"):
        assert name not in str(messages)


def test_a_slow_service_is_given_up(command: Runner, in_examples: Path, tmp_path: Path) -> None:
    target = str(tmp_path / "x.parquet")
    start = time.monotonic()
    for arguments in (
        ("encrypt", "items.parquet", "-o", target, "--footer-key", "kf"),
        ("keys", "test", "kf"),
    ):
        code, _, err = command(*arguments, "--kms", "tests.cli.test_key_services:SlowClient", "--kms-timeout", "0.2")
        assert (code, "did not answer in time" in err) == (4, True)
    assert time.monotonic() - start < 10


def test_the_number_of_attempts(
    command: Runner, in_examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ("encrypt", "items.parquet", "-o", str(tmp_path / "x.parquet"), "--footer-key", "kf")
    service = ("--kms", "tests.cli.test_key_services:DownClient")
    CALLS.clear()
    assert command(*line, *service, "--kms-attempts", "1").code == 4
    assert len(CALLS) == 1
    monkeypatch.setenv("FASTPQ_KMS_ATTEMPTS", "2")
    code, _, err = command(*line, *service)
    assert (code, "(2 attempts)" in err, len(CALLS)) == (4, True, 3)


@pytest.mark.parametrize("arguments", [("--kms-timeout", "0"), ("--kms-attempts", "0")])
def test_limits_that_are_none(command: Runner, in_examples: Path, arguments: tuple[str, str]) -> None:
    code, _, err = command("head", "items.parquet", *arguments)
    assert (code, arguments[0] in err) == (2, True)


def test_each_word_names_a_client() -> None:
    assert all(hasattr(keys, name) for name in CLIENTS.values())
