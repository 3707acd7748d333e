"""AES and random bytes of a FIPS provider alone (``FASTPQ_AES=fips``), and refusal where there is none.

``FASTPQ_TEST_FIPS`` names a folder with a FIPS provider of OpenSSL (fips.so) and the file that ``openssl fipsinstall`` made for
it (fipsmodule.cnf); CONTRIBUTING.md says how to make one.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import fastpq
from fastpq.encryption import Keyring
from fastpq.encryption.evp import seal_with_nonce
from fastpq.encryption.keys.secret import passphrase_key
from tests.encryption.keys.test_keyring import CHEAP

ROOT = Path(__file__).parents[2]
PROVIDER = Path(os.environ.get("FASTPQ_TEST_FIPS", "/nowhere"))
needs_provider = pytest.mark.fips       # collected where there is a provider (tests/conftest.py)
KEY = b"sixteen bytes k!"
PASSPHRASE = "correct horse battery staple"
CONFIGURATION = """
config_diagnostics = 0
openssl_conf = start
{include}
[start]
providers = all
[all]
{providers}
[on]
activate = 1
"""


def run(code: str, folder: Path, providers: list[str], *arguments: object, modules: Path = PROVIDER) -> tuple[int, str]:
    """Exit code and output of a process under FASTPQ_AES=fips, with some of OpenSSL's providers active."""
    listed = "\n".join(f"{name} = {'fips_sect' if name == 'fips' else 'on'}" for name in providers)
    include = f".include {PROVIDER}/fipsmodule.cnf" if "fips" in providers else ""
    (folder / "openssl.cnf").write_text(CONFIGURATION.format(include=include, providers=listed))
    environment = os.environ | {
        "FASTPQ_AES": "fips",
        "OPENSSL_CONF": str(folder / "openssl.cnf"),
        "OPENSSL_MODULES": str(modules),
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


NO_KEY = """
import fastpq
from fastpq.encryption import AesKey, Keyring, aes_backend
from fastpq.encryption.keys.secret import random_key

fastpq.write_table({"a": [1]}, "/dev/null")     # plaintext needs no provider
uses = [
    lambda: AesKey(bytes(16)), aes_backend, lambda: random_key(128), lambda: Keyring.create("/nowhere/k", "secret"),
    lambda: fastpq.FileEncryptionProperties(bytes(16)), lambda: fastpq.FileDecryptionProperties(bytes(16)),
]
for use in [*uses, *uses]:      # the second time as the first
    try:
        use()
    except fastpq.UnsupportedError as error:
        print("refused" if "FIPS provider" in str(error) and "fipsinstall" in str(error) else error)
"""


def test_without_a_provider_every_key_is_refused(tmp_path: Path) -> None:
    assert run(NO_KEY, tmp_path, ["default"]) == (0, "refused\n" * 12)


@needs_provider
def test_an_altered_module_is_refused(tmp_path: Path) -> None:
    """Its checksum is not the one in the configuration."""
    data = bytearray((PROVIDER / "fips.so").read_bytes())
    place = data.index(b"OpenSSL FIPS Provider")
    data[place] ^= 1
    (tmp_path / "fips.so").write_bytes(data)
    assert run(NO_KEY, tmp_path, ["fips", "base"], modules=tmp_path) == (0, "refused\n" * 12)


WORK = """
import sys
sys.modules["cryptography"] = None      # its import fails: nothing of the package is called
import numpy as np
import fastpq
from fastpq.encryption import AesKey, Keyring, aes_backend
from fastpq.encryption.keys.secret import random_key

folder, key = sys.argv[1], b"sixteen bytes k!"
backend = aes_backend()
assert backend.cryptography is None and backend.crossover is None, backend
assert backend.evp.startswith("OpenSSL FIPS Provider"), backend
rows = np.random.default_rng(0).integers(0, 1 << 60, 200_000)
for algorithm in ("AES_GCM_V1", "AES_GCM_CTR_V1"):
    for plaintext_footer in (False, True):
        keys = fastpq.FileEncryptionProperties(key, algorithm=algorithm, plaintext_footer=plaintext_footer)
        path = f"{folder}/{algorithm}-{plaintext_footer}.parquet"
        fastpq.write_table({"a": rows}, path, encryption_properties=keys)
        opened = fastpq.FileDecryptionProperties(key, allowed_algorithms=[algorithm])
        assert (fastpq.read_table(path, decryption_properties=opened)["a"].to_numpy() == rows).all()
        data = bytearray(open(path, "rb").read())
        data[-12] ^= 1      # of a tag
        try:
            fastpq.read_table(bytes(data), decryption_properties=opened)
        except fastpq.TagVerificationError:
            print("altered")
for bits in (128, 192, 256):
    assert random_key(bits).bits == bits
ring = Keyring.create(f"{folder}/ring", "correct horse battery staple")
ring.create_key("k")
wrapped = ring.wrap_key(b"another 16 bytes", "k")
assert Keyring(f"{folder}/ring", "correct horse battery staple").unwrap_key(wrapped, "k") == b"another 16 bytes"
for use in (lambda: Keyring(f"{folder}/old", "correct horse battery staple"),
            lambda: Keyring.create(f"{folder}/other", "secret", scrypt_log_n=12)):
    try:
        use()
    except fastpq.UnsupportedError as error:
        print("scrypt" in str(error))
"""


@needs_provider
@pytest.mark.parametrize("providers", [["fips", "base"], ["default", "fips"]], ids=["alone", "beside the default provider"])
def test_files_and_keyrings_under_the_provider(tmp_path: Path, providers: list[str]) -> None:
    """Others read what the provider encrypted; it reads nothing that needs scrypt."""
    Keyring.create(tmp_path / "old", PASSPHRASE, scrypt_log_n=CHEAP)
    assert run(WORK, tmp_path, providers, tmp_path) == (0, "altered\n" * 4 + "True\n" * 2)
    for path in sorted(tmp_path.glob("*.parquet")):
        table = pq.read_table(path, decryption_properties=pe.create_decryption_properties(KEY))
        assert table.num_rows == 200_000
        opened = fastpq.FileDecryptionProperties(KEY, allowed_algorithms=["AES_GCM_V1", "AES_GCM_CTR_V1"])
        assert fastpq.read_table(path, decryption_properties=opened)["a"].to_numpy().tolist() == table["a"].to_pylist()
    assert Keyring(tmp_path / "ring", PASSPHRASE).key_ids == ["k"]


NONCES = """
from fastpq.encryption import AesKey
from fastpq.encryption.gcm import GcmModuleCipher
from fastpq.encryption.modules import ModuleType
import os
cipher = GcmModuleCipher(AesKey(b"sixteen bytes k!"), b"file")
drawn = [cipher.seal(ModuleType.FOOTER, -1, plain)[4:16] for plain in (b"", b"x", bytes(50_000)) for _ in range(2000)]
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, b"".join(cipher.seal(ModuleType.FOOTER, -1, b"")[4:16] for _ in range(300)))
    os._exit(0)
drawn += [cipher.seal(ModuleType.FOOTER, -1, b"")[4:16] for _ in range(300)]
child = os.read(reader, 3600)
os.wait()
drawn += [child[start:start + 12] for start in range(0, len(child), 12)]
bits = sum(int.from_bytes(nonce, "little").bit_count() for nonce in drawn) / 96 / len(drawn)
print(len(drawn), len(set(drawn)), abs(bits - 0.5) < 0.01)
"""


@needs_provider
def test_the_provider_makes_the_nonces(tmp_path: Path) -> None:
    assert run(NONCES, tmp_path, ["fips", "base"]) == (0, "6600 6600 True\n")


def test_the_key_of_a_passphrase_is_that_of_pbkdf2() -> None:
    """By the standard library, which has an implementation of its own."""
    salt, nonce = bytes(range(16)), bytes(12)
    derived = hashlib.pbkdf2_hmac("sha256", PASSPHRASE.encode(), salt, 600_000, 32)
    key = passphrase_key(PASSPHRASE.encode(), salt, 600_000)
    assert seal_with_nonce(key, nonce, b"aad", b"text", "evp") == AESGCM(derived).encrypt(nonce, b"text", b"aad")
    for least_salt, least_iterations in ((salt[:-1], 600_000), (salt, 999)):
        with pytest.raises(fastpq.CryptoError, match="derive a key"):
            passphrase_key(PASSPHRASE.encode(), least_salt, least_iterations)


@needs_provider
@pytest.mark.parametrize(
    ("member", "value", "error"),
    [
        ("iterations", 599_999, fastpq.LimitError), ("iterations", 1 << 60, fastpq.LimitError),
        ("iterations", True, fastpq.LimitError), ("iterations", "600000", fastpq.LimitError),
        ("iterations", 600_001, fastpq.KeyAccessError), ("salt", None, fastpq.FormatError),
        ("name", "pbkdf2", fastpq.FormatError),
    ],
)
def test_altered_derivations_of_a_keyring(tmp_path: Path, member: str, value: object, error: type[Exception]) -> None:
    code = f"from fastpq.encryption import Keyring; Keyring.create({str(tmp_path / 'ring')!r}, {PASSPHRASE!r})"
    assert run(code, tmp_path, ["fips", "base"]) == (0, "")
    content = json.loads((tmp_path / "ring").read_text())
    assert content["kdf"].keys() == {"name", "iterations", "salt"}
    content["kdf"][member] = value
    (tmp_path / "ring").write_text(json.dumps(content))
    with pytest.raises(error):
        Keyring(tmp_path / "ring", PASSPHRASE)


LATE = """
import os
del os.environ["FASTPQ_AES"]
import fastpq
from fastpq.encryption import AesKey, aes_backend
AesKey(bytes(16))
os.environ["FASTPQ_AES"] = "fips"
try:
    aes_backend()
except fastpq.UnsupportedError as error:
    print("too late" in str(error))
"""


def test_a_process_with_keys_in_other_hands_does_not_claim_to_be_under_a_provider(tmp_path: Path) -> None:
    assert run(LATE, tmp_path, ["default"]) == (0, "True\n")
