"""The embedded key service: its file, its versions, and who may open it."""

from __future__ import annotations

import base64
import copy
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

import fastpq
from fastpq.encryption import CryptoFactory, EncryptionConfiguration, Keyring, KmsConnectionConfig

CHEAP = 10
PASSPHRASE = "correct horse"
KEY = b"a key of 16 byte"
Members = dict[str, Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keyring.json"


@pytest.fixture
def keyring(path: Path) -> Keyring:
    made = Keyring.create(path, PASSPHRASE, scrypt_log_n=CHEAP)
    made.create_key("kf")
    made.create_key("kc", bits=128)
    return made


def test_wrapped_keys_come_back(path: Path, keyring: Keyring) -> None:
    wrapped = keyring.wrap_key(KEY, "kf")
    assert KEY not in base64.b64decode(wrapped.rpartition(":")[2])
    assert keyring.wrap_key(KEY, "kf") != wrapped
    for opened in (keyring, Keyring(path, PASSPHRASE), Keyring(str(path), PASSPHRASE.encode())):
        assert opened.key_ids == ["kc", "kf"]
        assert opened.unwrap_key(wrapped, "kf") == KEY


def test_the_file_as_its_description_says(path: Path, keyring: Keyring) -> None:
    """Opened by the package cryptography alone."""
    wrapped = keyring.wrap_key(KEY, "kf")
    content = json.loads(path.read_text())
    kdf = content["kdf"]
    scrypt = Scrypt(base64.b64decode(kdf["salt"]), length=32, n=2 ** kdf["log_n"], r=kdf["r"], p=kdf["p"])
    passphrase_key = AESGCM(scrypt.derive(PASSPHRASE.encode()))
    seal = base64.b64decode(content.pop("seal"))
    covered = json.dumps(content, separators=(",", ":"), sort_keys=True).encode()
    assert passphrase_key.decrypt(seal[:12], seal[12:], covered) == b""
    sealed = base64.b64decode(content["keys"]["kf"][0])
    master_key = passphrase_key.decrypt(sealed[:12], sealed[12:], b"kf:1")
    assert len(master_key) == 32
    prefix, version, text = wrapped.split(":")
    assert (prefix, version) == ("keyring", "v1")
    dek = base64.b64decode(text)
    assert AESGCM(master_key).decrypt(dek[:12], dek[12:], b"kf:1") == KEY


def test_versions(path: Path, keyring: Keyring) -> None:
    first = keyring.wrap_key(KEY, "kc")
    assert keyring.rotate_key("kc") == 2
    second = keyring.wrap_key(KEY, "kc")
    assert (first[:11], second[:11]) == ("keyring:v1:", "keyring:v2:")
    opened = Keyring(path, PASSPHRASE)
    assert [opened.unwrap_key(wrapped, "kc") for wrapped in (first, second)] == [KEY, KEY]
    with pytest.raises(fastpq.TagVerificationError):
        opened.unwrap_key(first.replace("v1", "v2"), "kc")
    with pytest.raises(fastpq.TagVerificationError):
        opened.unwrap_key(first, "kf")


def test_changes_by_others_are_seen(path: Path, keyring: Keyring) -> None:
    other = Keyring(path, PASSPHRASE)
    other.create_key("new")
    assert keyring.key_ids == ["kc", "kf", "new"]
    assert keyring.unwrap_key(other.wrap_key(KEY, "new"), "new") == KEY
    other.rotate_key("kf")
    assert keyring.wrap_key(KEY, "kf").startswith("keyring:v2:")
    keyring.create_key("newer")
    assert other.rotate_key("new") == 2
    assert Keyring(path, PASSPHRASE).key_ids == ["kc", "kf", "new", "newer"]


def test_only_its_owner_can_read_it(path: Path, keyring: Keyring) -> None:
    assert path.stat().st_mode & 0o777 == 0o600
    keyring.create_key("another")
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        Keyring.create(path, PASSPHRASE, scrypt_log_n=CHEAP)


def change(path: Path, alter: Callable[[Members], None]) -> None:
    content = json.loads(path.read_text())
    alter(content)
    path.write_text(json.dumps(content))


def swap(content: Members) -> None:
    keys = content["keys"]
    keys["kf"], keys["kc"] = keys["kc"], keys["kf"]


ALTERATIONS: dict[str, tuple[Callable[[Members], None], type[Exception], str]] = {
    "a key gone": (lambda content: content["keys"].pop("kc"), fastpq.KeyAccessError, "altered"),
    "a version again": (lambda content: content["keys"]["kc"].append(content["keys"]["kc"][0]), fastpq.KeyAccessError, "altered"),
    "keys swapped": (swap, fastpq.KeyAccessError, "altered"),
    "a member more": (lambda content: content.update(more=1), fastpq.KeyAccessError, "altered"),
    "another salt": (lambda content: content["kdf"].update(salt="AAAA"), fastpq.KeyAccessError, "altered"),
    "a seal cut off": (lambda content: content.update(seal=""), fastpq.KeyAccessError, "altered"),
    "no seal": (lambda content: content.pop("seal"), fastpq.FormatError, "seal"),
    "no keys": (lambda content: content.update(keys=[]), fastpq.FormatError, "keys"),
    "another format": (lambda content: content.update(format="x"), fastpq.FormatError, "format"),
    "another derivation": (lambda content: content["kdf"].update(name="md5"), fastpq.FormatError, "derivation"),
    "expensive": (lambda content: content["kdf"].update(log_n=40), fastpq.LimitError, "expensive"),
    "cheap": (lambda content: content["kdf"].update(log_n=1), fastpq.LimitError, "cheap"),
    "log_n as text": (lambda content: content["kdf"].update(log_n="10"), fastpq.LimitError, "cheap"),
    "large blocks": (lambda content: content["kdf"].update(r=1 << 30), fastpq.FormatError, "derivation"),
    "salt as a number": (lambda content: content["kdf"].update(salt=1), fastpq.FormatError, "derivation"),
}


@pytest.mark.parametrize("name", ALTERATIONS)
def test_altered_files(path: Path, keyring: Keyring, name: str) -> None:
    alter, kind, message = ALTERATIONS[name]
    wrapped = keyring.wrap_key(KEY, "kf")
    change(path, alter)
    with pytest.raises(kind, match=message):
        Keyring(path, PASSPHRASE)
    with pytest.raises(fastpq.ParquetError):
        keyring.unwrap_key(wrapped, "kf")


def test_another_passphrase(path: Path, keyring: Keyring) -> None:
    with pytest.raises(fastpq.KeyAccessError, match="the passphrase is wrong") as raised:
        Keyring(path, "incorrect horse")
    assert "horse" not in str(raised.value)


@pytest.mark.parametrize(
    "passphrase", [8, True, None, 3.5, ["correct horse"], memoryview(b"correct horse")], ids=lambda value: type(value).__name__
)
def test_passphrases_that_are_neither_text_nor_bytes(path: Path, passphrase: Any, keyring: Keyring, tmp_path: Path) -> None:
    """bytes(8) would be a passphrase of eight zeros."""
    with pytest.raises(TypeError, match="passphrase is text or bytes"):
        Keyring(path, passphrase)
    with pytest.raises(TypeError, match="passphrase is text or bytes"):
        Keyring.create(tmp_path / "new", passphrase, scrypt_log_n=CHEAP)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("passphrase", ["", b"", bytearray(), "x" * 65537, "ß" * 32769, "secret \ud800"])
def test_passphrases_of_wrong_lengths(path: Path, passphrase: Any, keyring: Keyring, tmp_path: Path) -> None:
    for use in (Keyring, lambda path, passphrase: Keyring.create(path, passphrase, scrypt_log_n=CHEAP)):
        with pytest.raises(ValueError, match="passphrase") as raised:
            use(path if use is Keyring else tmp_path / "new", passphrase)
        assert "secret" not in repr(raised.value)
        assert raised.value.__cause__ is None
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("passphrase", ["x", b"\0", "x" * 65536, bytearray(b"a passphrase to clear")])
def test_passphrases_of_allowed_lengths(passphrase: Any, tmp_path: Path) -> None:
    Keyring.create(tmp_path / "new", passphrase, scrypt_log_n=CHEAP).create_key("kf")
    assert Keyring(tmp_path / "new", passphrase).key_ids == ["kf"]


@pytest.mark.parametrize(
    "wrapped", ["", "kf", "keyring:v1", "keyring:v:QUJD", "keyring:v1:QUJD", "keyring:v²:QUJD", "vault:v1:QUJD"]
)
def test_wrapped_keys_that_are_none(keyring: Keyring, wrapped: str) -> None:
    with pytest.raises(fastpq.FormatError, match="wrapped"):
        keyring.unwrap_key(wrapped, "kf")


def test_what_is_not_there(path: Path, keyring: Keyring, tmp_path: Path) -> None:
    wrapped = keyring.wrap_key(KEY, "kf")
    for version in ("0", "2", "999999"):
        with pytest.raises(fastpq.KeyAccessError, match=f"no version {version}"):
            keyring.unwrap_key(wrapped.replace("v1", f"v{version}"), "kf")
    for call in (keyring.rotate_key, lambda name: keyring.wrap_key(KEY, name), lambda name: keyring.unwrap_key(wrapped, name)):
        with pytest.raises(fastpq.KeyAccessError, match="no master key 'unknown'"):
            call("unknown")
    for name in ("kf", ""):
        with pytest.raises(ValueError, match="already"):
            keyring.create_key(name)
    with pytest.raises(ValueError, match="not 100"):
        keyring.create_key("odd", bits=100)
    with pytest.raises(ValueError, match="scrypt_log_n"):
        Keyring.create(tmp_path / "other", PASSPHRASE, scrypt_log_n=30)
    assert Keyring(path, PASSPHRASE).key_ids == ["kc", "kf"]
    with pytest.raises(FileNotFoundError):
        Keyring(tmp_path / "nothing", PASSPHRASE)
    path.write_bytes(b"PAR1")
    with pytest.raises(fastpq.FormatError, match="JSON"):
        Keyring(path, PASSPHRASE)


def test_another_keyring_in_its_place(path: Path, keyring: Keyring, tmp_path: Path) -> None:
    Keyring.create(tmp_path / "other", PASSPHRASE, scrypt_log_n=CHEAP)
    os.replace(tmp_path / "other", path)
    with pytest.raises(fastpq.KeyAccessError, match="replaced"):
        keyring.wrap_key(KEY, "kf")


def test_it_cannot_be_copied_and_shows_nothing(keyring: Keyring) -> None:
    assert PASSPHRASE not in repr(keyring)
    for leave in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            leave(keyring)


ADD = """
import sys
from fastpq.encryption import Keyring
keyring = Keyring(sys.argv[1], "correct horse")
for number in range(5):
    keyring.create_key(f"{sys.argv[2]} {number}")
    keyring.rotate_key("kf")
"""


def test_processes_and_threads_lose_nothing(path: Path, keyring: Keyring) -> None:
    others = [subprocess.Popen([sys.executable, "-c", ADD, str(path), name]) for name in ("one", "two")]
    ready = threading.Barrier(4)

    def add(name: str) -> None:
        ready.wait()
        for number in range(5):
            keyring.create_key(f"{name} {number}")
            assert keyring.unwrap_key(keyring.wrap_key(KEY, "kf"), "kf") == KEY

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, "abcd"))
    assert [other.wait() for other in others] == [0, 0]
    assert len(Keyring(path, PASSPHRASE).key_ids) == 2 + 10 + 20
    assert keyring.wrap_key(KEY, "kf").startswith("keyring:v11:")


def test_files_with_a_keyring(tmp_path: Path, path: Path, keyring: Keyring) -> None:
    file = tmp_path / "file.parquet"
    config = KmsConnectionConfig()
    configuration = EncryptionConfiguration("kf", column_keys={"kc": ["b"]}, internal_key_material=False)
    keys = CryptoFactory(lambda config: keyring)
    made = keys.file_encryption_properties(config, configuration, file)
    fastpq.write_table({"a": np.arange(5), "b": np.arange(5)}, file, encryption_properties=made)
    keyring.rotate_key("kf")
    assert keys.rotate_master_keys(config, file) == [str(file)]
    opened = CryptoFactory(lambda config: Keyring(path, config.key_access_token)).file_decryption_properties(
        KmsConnectionConfig(key_access_token=PASSPHRASE), parquet_file_path=file
    )
    assert np.array_equal(fastpq.read_table(file, decryption_properties=opened)["b"].to_numpy(), np.arange(5))


def test_disabled_and_destroyed_versions(path: Path, keyring: Keyring) -> None:
    first = keyring.wrap_key(KEY, "kf")
    assert keyring.rotate_key("kf") == 2
    second = keyring.wrap_key(KEY, "kf")
    keyring.disable_version("kf", 1)
    other = Keyring(path, PASSPHRASE)
    for each in (keyring, other):
        with pytest.raises(fastpq.KeyAccessError, match="version 1 of the master key 'kf' is disabled") as caught:
            each.unwrap_key(first, "kf")
        assert caught.value.is_denied
        assert each.unwrap_key(second, "kf") == KEY
    other.enable_version("kf", 1)
    assert keyring.unwrap_key(first, "kf") == KEY
    with pytest.raises(ValueError, match="disable version 1"):
        keyring.destroy_version("kf", 1)
    keyring.disable_version("kf", 1)
    assert other.versions("kf") == {1: "disabled", 2: "enabled"}
    keyring.destroy_version("kf", 1)
    assert other.versions("kf") == {1: "destroyed", 2: "enabled"}
    with pytest.raises(fastpq.KeyAccessError, match="no master key 'ko'"):
        other.versions("ko")
    assert json.loads(path.read_text())["keys"]["kf"][0] is None
    for change in (keyring.enable_version, keyring.disable_version, keyring.destroy_version):
        with pytest.raises(fastpq.KeyAccessError, match="was destroyed"):
            change("kf", 1)
        for number in (0, 3, -1):
            with pytest.raises(fastpq.KeyAccessError, match="has no version"):
                change("kf", number)
    with pytest.raises(fastpq.KeyAccessError, match="was destroyed"):
        other.unwrap_key(first, "kf")
    assert other.unwrap_key(second, "kf") == KEY
    keyring.disable_version("kf", 2)
    with pytest.raises(fastpq.KeyAccessError, match="version 2 of the master key 'kf' is disabled"):
        other.wrap_key(KEY, "kf")       # an older version does not take its place
    with pytest.raises(ValueError, match=r"newest.*rotate the key first"):
        keyring.destroy_version("kf", 2)
    assert keyring.rotate_key("kf") == 3
    assert other.unwrap_key(other.wrap_key(KEY, "kf"), "kf") == KEY


def test_a_cache_outlives_a_disabled_version(tmp_path: Path, keyring: Keyring) -> None:
    """The docs say so, and what ends it."""
    file, connection = tmp_path / "file.parquet", KmsConnectionConfig()
    factory = CryptoFactory(lambda config: keyring)
    made = factory.file_encryption_properties(connection, EncryptionConfiguration("kf", uniform_encryption=True))
    fastpq.write_table({"a": np.arange(5)}, file, encryption_properties=made)
    fastpq.read_table(file, decryption_properties=factory.file_decryption_properties(connection))
    keyring.rotate_key("kf")
    keyring.disable_version("kf", 1)
    fastpq.read_table(file, decryption_properties=factory.file_decryption_properties(connection))
    factory.remove_cache_entries_for_all_tokens()
    with pytest.raises(fastpq.KeyAccessError, match="disabled"):
        fastpq.read_table(file, decryption_properties=factory.file_decryption_properties(connection))


def test_the_seal_covers_disabled_versions(path: Path, keyring: Keyring) -> None:
    keyring.rotate_key("kf")
    keyring.disable_version("kf", 1)
    content = json.loads(path.read_text())
    del content["disabled"]
    path.write_text(json.dumps(content))
    with pytest.raises(fastpq.KeyAccessError, match="altered"):
        Keyring(path, PASSPHRASE)


def test_a_changed_passphrase(path: Path, keyring: Keyring) -> None:
    wrapped, before = keyring.wrap_key(KEY, "kf"), Keyring(path, PASSPHRASE)
    keyring.change_passphrase("another horse")
    assert keyring.unwrap_key(wrapped, "kf") == Keyring(path, b"another horse").unwrap_key(wrapped, "kf") == KEY
    with pytest.raises(fastpq.KeyAccessError, match="does not open"):
        Keyring(path, PASSPHRASE)
    with pytest.raises(fastpq.KeyAccessError, match=r"replaced .* or its passphrase was changed: open it again"):
        before.unwrap_key(wrapped, "kf")
    for wrong, error in (("", ValueError), (7, TypeError)):
        with pytest.raises(error):
            keyring.change_passphrase(wrong)        # type: ignore[arg-type]
    assert Keyring(path, "another horse").key_ids == ["kc", "kf"]
    keyring.rotate_key("kf")
    assert Keyring(path, "another horse").unwrap_key(wrapped, "kf") == KEY
    assert oct(path.stat().st_mode & 0o777) == "0o600"


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_a_file_that_others_can_read(path: Path, keyring: Keyring, mode: int) -> None:
    path.chmod(mode)
    with pytest.warns(UserWarning, match=f"others can read the keyring .* \\(mode {mode:o}\\)"):
        Keyring(path, PASSPHRASE)
