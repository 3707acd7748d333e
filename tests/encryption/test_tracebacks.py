"""Constructors and functions that refuse a key or passphrase keep it out of their tracebacks."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fastpq
from fastpq.cli import writing_options
from fastpq.cli.key_sources import KeySource
from fastpq.encryption import (
    ColumnEncryptionProperties,
    CryptoFactory,
    EncryptionConfiguration,
    Keyring,
    KmsConnectionConfig,
)
from fastpq.encryption.properties import ColumnPath
from fastpq.encryption.tracebacks import hides_arguments
from tests.own_code import is_own_code

KEY = b"0123456789abcdef"
PASSPHRASE = "0123456789abcdef passphrase"
SECRET = "123456789abcdef"
SPELLED_TWICE: dict[ColumnPath, Any] = {"a": KEY, ("a",): KEY}


def _open_with_another_passphrase(folder: Path) -> None:
    Keyring.create(folder / "keyring", "the true one", scrypt_log_n=10)
    Keyring(folder / "keyring", PASSPHRASE)


def _wrap(folder: Path) -> None:
    keyring = Keyring.create(folder / "keyring", "the true one", scrypt_log_n=10)
    keyring.create_key("master")
    keyring.wrap_key(KEY + b"g", "master")


def _wrap_with_an_unknown_master_key(folder: Path) -> None:
    Keyring.create(folder / "keyring", "the true one", scrypt_log_n=10).wrap_key(KEY, "master")


def _retrieve_a_key_of_17_bytes(folder: Path) -> None:
    keys = fastpq.FileEncryptionProperties(KEY, footer_key_metadata=b"name")
    fastpq.write_table({"x": [1]}, folder / "file.parquet", encryption_properties=keys)
    wrong_keys = fastpq.FileDecryptionProperties(key_retriever=lambda name: KEY + b"g")
    fastpq.read_table(folder / "file.parquet", decryption_properties=wrong_keys)


def _decryption_of_a_factory(folder: Path) -> None:
    factory = CryptoFactory(lambda config: Keyring(folder / "keyring", PASSPHRASE))
    factory.file_decryption_properties(KmsConnectionConfig(), column_keys=SPELLED_TWICE)


def _wrap_by_a_client_that_returns(value: Any) -> Callable[[Path], None]:
    class Client:
        def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> Any:
            return value

        def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> Any:
            return KEY + b"g"

    def make(folder: Path) -> None:
        factory = CryptoFactory(lambda config: Client())
        configuration = EncryptionConfiguration("footer", uniform_encryption=True, double_wrapping=False)
        keys = factory.file_encryption_properties(KmsConnectionConfig(), configuration)
        fastpq.write_table({"x": [1]}, folder / "file.parquet", encryption_properties=keys)
        fastpq.read_table(
            folder / "file.parquet", decryption_properties=factory.file_decryption_properties(KmsConnectionConfig())
        )

    return make


def _change_to_an_impossible_passphrase(folder: Path) -> None:
    Keyring.create(folder / "keyring", "the true one", scrypt_log_n=10).change_passphrase(PASSPHRASE + "\ud800")


def _secret_of_spark(folder: Path) -> None:
    keyservice = pytest.importorskip("fastpq.spark.keyservice")
    (folder / "passphrase").write_bytes(PASSPHRASE.encode() + b"\xff")
    (folder / "keyring").touch()
    options = (("path", str(folder / "keyring")), ("passphraseFile", str(folder / "passphrase")))
    keyservice.ServiceOptions("keyring", configuration=options).connection()


def _keys_from_a_descriptor(content: bytes) -> Callable[[Path], None]:
    def read(folder: Path) -> None:
        (folder / "keys").write_bytes(content)
        with open(folder / "keys", "rb") as file:
            KeySource(keys_fd=file.fileno()).decryption_of("file.parquet")

    return read


def _new_keys_in_the_environment(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FASTPQ_NEW_KEYS", json.dumps({"footer_key": KEY.decode()}))
        writing_options._new_keys(None)


def _refresh_a_token(folder: Path) -> None:
    KmsConnectionConfig().refresh_key_access_token(KEY)  # type: ignore[arg-type]


def _assign_a_token(folder: Path) -> None:
    KmsConnectionConfig().key_access_token = KEY  # type: ignore[assignment]


REFUSED: dict[str, Callable[[Path], object]] = {
    "a footer key of 17 bytes": lambda folder: fastpq.FileEncryptionProperties(KEY + b"g"),
    "a footer key in text": lambda folder: fastpq.FileEncryptionProperties(KEY.decode()),  # type: ignore[arg-type]
    "two spellings of a column": lambda folder: fastpq.FileEncryptionProperties(KEY, SPELLED_TWICE),
    "a column key of 17 bytes": lambda folder: fastpq.FileEncryptionProperties(KEY, {"a": KEY + b"g"}),
    "an unknown option value": lambda folder: fastpq.FileEncryptionProperties(KEY, algorithm="AES"),  # type: ignore[arg-type]
    "a column key": lambda folder: ColumnEncryptionProperties(KEY + b"g"),
    "a key for reading": lambda folder: fastpq.FileDecryptionProperties(KEY + b"g"),
    "column keys for reading": lambda folder: fastpq.FileDecryptionProperties(None, {"a": KEY + b"g"}),
    "the key of a retriever": _retrieve_a_key_of_17_bytes,
    "the keys of a factory": _decryption_of_a_factory,
    "a passphrase": _open_with_another_passphrase,
    "a passphrase at an impossible cost": lambda folder: Keyring.create(folder / "k", PASSPHRASE, scrypt_log_n=1),
    "a half of a surrogate pair": lambda folder: Keyring.create(folder / "k", PASSPHRASE + "\ud800", scrypt_log_n=10),
    "a new passphrase": _change_to_an_impossible_passphrase,
    "an access token": lambda folder: KmsConnectionConfig(key_access_token=KEY),  # type: ignore[arg-type]
    "an option of a client": lambda folder: KmsConnectionConfig(custom_kms_conf={"secret": KEY}),  # type: ignore[dict-item]
    "a connection with a token": lambda folder: KmsConnectionConfig(1, key_access_token=PASSPHRASE),  # type: ignore[arg-type]
    "a refreshed token": _refresh_a_token,
    "an assigned token": _assign_a_token,
    "a wrapped key that is no text": _wrap_by_a_client_that_returns(KEY + b"\xff"),
    "an unwrapped key of 17 bytes": _wrap_by_a_client_that_returns("wrapped"),
    "a passphrase for Spark": _secret_of_spark,
    "keys of the command that are no JSON": _keys_from_a_descriptor(PASSPHRASE.encode()),
    "keys of the command that are no text": _keys_from_a_descriptor(PASSPHRASE.encode() + b"\xff"),
    "keys of the command in digits": _keys_from_a_descriptor(json.dumps({"footer_key": KEY.decode() + "01"}).encode()),
    "new keys of the command": _new_keys_in_the_environment,
    "a key to wrap": _wrap,
    "a key to wrap with an unknown master key": _wrap_with_an_unknown_master_key,
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_holds_no_secret_in_our_frames(case: str, tmp_path: Path) -> None:
    with pytest.raises(Exception) as raised:
        REFUSED[case](tmp_path)
    assert not [text for text in _shown_by_error_trackers(raised.value) if SECRET in text]


def _shown_by_error_trackers(error: BaseException) -> list[str]:
    """Return the local variables in all frames of ours that belong to an error, and what each error holds."""
    pending: list[BaseException | None] = [error]
    shown, has_frames = [], False
    while pending:
        each = pending.pop()
        if each is None:
            continue
        pending += [each.__cause__, each.__context__, *(each.exceptions if isinstance(each, BaseExceptionGroup) else ())]
        shown += [repr(each), str(each), repr(each.args), repr(vars(each))]
        for frame, _ in traceback.walk_tb(each.__traceback__):
            if is_own_code(frame.f_code.co_filename):
                has_frames = True
                shown += [f"{frame.f_code.co_name}: {name} = {value!r}" for name, value in frame.f_locals.items()]
    assert has_frames
    return shown


def _fail_with_a_group(secret: str) -> None:
    try:
        _fail_behind_a_cause(secret)
    except RuntimeError as error:
        raise ExceptionGroup("several", [error]) from None


def _fail_behind_a_cause(secret: str) -> None:
    copy = secret + "!"
    try:
        raise LookupError(len(copy))
    except LookupError:
        raise RuntimeError from KeyError()


@pytest.mark.parametrize("fail", [_fail_with_a_group, _fail_behind_a_cause])
def test_contexts_behind_causes_and_groups_are_cleared(fail: Callable[[str], None]) -> None:
    with pytest.raises((RuntimeError, ExceptionGroup)) as raised:
        hides_arguments(fail)(SECRET)
    pending: list[BaseException | None] = [raised.value]
    shown = []
    while pending:
        error = pending.pop()
        if error is not None:
            pending += [error.__cause__, error.__context__, *(error.exceptions if isinstance(error, ExceptionGroup) else ())]
            shown += [repr(value) for frame, _ in traceback.walk_tb(error.__traceback__) for value in frame.f_locals.values()
                      if frame.f_code.co_name.startswith("_fail")]
    assert not [text for text in shown if SECRET in text]


def test_the_frame_of_the_caller_and_earlier_errors_keep_their_variables() -> None:
    @hides_arguments
    def refuse(secret: str) -> None:
        raise ValueError("refused")

    earlier = None
    try:
        variable = "of an earlier error"
        raise LookupError(variable)
    except LookupError as error:
        earlier = error
        with pytest.raises(ValueError, match="refused") as raised:
            refuse(SECRET)
    frames = [frame for frame, _ in traceback.walk_tb(raised.value.__traceback__)]
    assert frames[0].f_locals["variable"] == "of an earlier error"
    assert all(SECRET not in repr(value) for frame in frames[1:] for value in frame.f_locals.values())
    assert raised.value.__context__ is earlier


def _open_keyring(pipe: Path) -> None:
    Keyring(pipe, PASSPHRASE)


def _read_a_file_whose_material_is(pipe: Path) -> None:
    folder = pipe.parent
    keyring = Keyring.create(folder / "keyring", PASSPHRASE, scrypt_log_n=10)
    keyring.create_key("footer")
    factory, connection, path = CryptoFactory(lambda config: keyring), KmsConnectionConfig(), folder / "file.parquet"
    configuration = EncryptionConfiguration("footer", uniform_encryption=True, internal_key_material=False)
    keys = factory.file_encryption_properties(connection, configuration, path)
    fastpq.write_table({"x": [1]}, path, encryption_properties=keys)
    pipe.replace(folder / "_KEY_MATERIAL_FOR_file.parquet.json")
    fastpq.read_table(path, decryption_properties=factory.file_decryption_properties(connection, None, path))


def _take_a_passphrase_for_spark(pipe: Path) -> None:
    keyservice = pytest.importorskip("fastpq.spark.keyservice")
    keyservice.ServiceOptions("module:Client", token_file=str(pipe)).connection()


@pytest.mark.parametrize("read", [_open_keyring, _read_a_file_whose_material_is, _take_a_passphrase_for_spark, fastpq.read_table])
def test_a_pipe_is_refused_and_nobody_waits_for_it(read: Callable[[Path], object], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises((OSError, fastpq.KeyAccessError), match="A pipe cannot be read as a file"):
        read(tmp_path / "pipe")
