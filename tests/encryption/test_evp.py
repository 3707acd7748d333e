"""AES-GCM against NIST's known answers; keys that do not leak; counts, nonces, forks, threads."""

from __future__ import annotations

import copy
import ctypes
import gc
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fastpq.encryption import (
    AesKey,
    ColumnEncryptionProperties,
    FileDecryptionProperties,
    FileEncryptionProperties,
    aes_backend,
)
from fastpq.encryption.evp import open_with_nonce, seal_with_nonce
from fastpq.encryption.gcm import GcmModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.errors import CryptoError, TagVerificationError
from tests.encryption.vectors import flipped, known_answers
from tests.requirements import compiler

BACKENDS = ["evp", "cryptography"]
BITS = [128, 192, 256]
SECRET = b"the secret's key"
NONCE = slice(4, 16)
LARGE = 100_000


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("bits", BITS)
def test_encrypts_as_nist_says(bits: int, backend: str) -> None:
    cases = known_answers(f"gcmEncryptExtIV{bits}.rsp")
    assert len(cases) > 300
    for case in cases:
        assert case.plain is not None
        assert seal_with_nonce(AesKey(case.key), case.nonce, case.aad, case.plain, backend) == case.sealed


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("bits", BITS)
def test_decrypts_as_nist_says(bits: int, backend: str) -> None:
    cases = known_answers(f"gcmDecrypt{bits}.rsp")
    assert sum(case.plain is None for case in cases) > 100
    assert sum(case.plain is not None for case in cases) > 100
    for case in cases:
        assert open_with_nonce(AesKey(case.key), case.nonce, case.aad, case.sealed, backend) == case.plain


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 4095, 16384, 65537, 1 << 20])
def test_both_backends_give_the_same_bytes(bits: int, size: int) -> None:
    key, nonce, plain = AesKey(os.urandom(bits // 8)), os.urandom(12), os.urandom(size)
    sealed = seal_with_nonce(key, nonce, b"aad", plain, "evp")
    assert seal_with_nonce(key, nonce, b"aad", plain, "cryptography") == sealed
    for backend in BACKENDS:
        assert open_with_nonce(key, nonce, b"aad", sealed, backend) == plain
        assert open_with_nonce(key, nonce, b"aad", flipped(sealed, size // 2), backend) is None
        assert open_with_nonce(key, nonce, b"aae", sealed, backend) is None
        assert open_with_nonce(key, nonce, b"aad", sealed[:15], backend) is None


@pytest.mark.parametrize("size", [0, 1, 15, 17, 23, 25, 31, 33, 64])
def test_a_key_has_16_24_or_32_bytes(size: int) -> None:
    with pytest.raises(CryptoError, match=f"not {size}"):
        AesKey(bytes(size))


def test_a_key_is_a_copy() -> None:
    mine = bytearray(SECRET)
    key = AesKey(mine)
    mine[:] = bytes(16)
    expected = AESGCM(SECRET).encrypt(bytes(12), b"text", b"")
    assert all(seal_with_nonce(key, bytes(12), b"", b"text", backend) == expected for backend in BACKENDS)


HOLDERS: dict[str, Callable[[], object]] = {
    "key": lambda: AesKey(SECRET),
    "cipher": lambda: GcmModuleCipher(AesKey(SECRET), b"file"),
    "column": lambda: ColumnEncryptionProperties(SECRET),
    "encryption": lambda: FileEncryptionProperties(SECRET, {"a": SECRET}),
    "decryption": lambda: FileDecryptionProperties(SECRET, {"a": SECRET}),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_what_holds_a_key_does_not_give_it_away(name: str) -> None:
    holder = HOLDERS[name]()
    for shown in (repr(holder), str(holder), f"{holder}"):
        assert SECRET.decode() not in shown
        assert SECRET.hex() not in shown
    for take in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            take(holder)
    with pytest.raises(TypeError):
        memoryview(holder)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        vars(holder)
    assert not reaches_bytes(holder)


def reaches_bytes(root: object) -> bool:
    """Whether the key's bytes can be found from an object through what the garbage collector and attributes show."""
    seen: set[int] = set()
    left = [root]
    while left:
        item = left.pop()
        if id(item) in seen or isinstance(item, type):
            continue
        seen.add(id(item))
        if isinstance(item, (bytes, bytearray)) and SECRET in item:
            return True
        left += gc.get_referents(item)
        names = [name for name in dir(item) if not name.startswith("__")] if type(item).__module__ != "builtins" else []
        left += [value for name in names if not callable(value := getattr(item, name, None))]
    return False


def test_a_key_is_wiped_when_it_is_released() -> None:
    neighbours = [AesKey(bytes(16)) for _ in range(100)]        # they keep the memory mapped
    key = AesKey(SECRET)
    where, size = id(key), AesKey.__basicsize__
    assert SECRET in ctypes.string_at(where, size)
    del key
    assert SECRET not in ctypes.string_at(where, size)
    assert neighbours


def test_a_key_cannot_be_inherited_from() -> None:
    with pytest.raises(TypeError):
        type("Sub", (AesKey,), {})


def test_encryptions_are_counted_for_all_ciphers_of_a_key() -> None:
    key = AesKey(SECRET)
    one, other = GcmModuleCipher(key, b"one"), GcmModuleCipher(key, b"other", 1, 2)
    stored = one.seal(ModuleType.FOOTER, -1, b"text")
    other.seal(ModuleType.DATA_PAGE, 0, bytes(LARGE))
    assert key.operations == 2
    one.open(ModuleType.FOOTER, -1, stored)
    assert key.operations == 2


def test_a_key_is_refused_past_its_limit() -> None:
    key = AesKey(SECRET, operations=(1 << 32) - 2)
    one, other = GcmModuleCipher(key, b"one"), GcmModuleCipher(key, b"other")
    stored = one.seal(ModuleType.FOOTER, -1, b"text")
    other.seal(ModuleType.FOOTER, -1, bytes(LARGE))
    for _ in range(3):
        with pytest.raises(CryptoError, match=r"2\^32"):
            one.seal(ModuleType.FOOTER, -1, b"text")
        with pytest.raises(CryptoError, match=r"2\^32"):
            other.seal(ModuleType.FOOTER, -1, bytes(LARGE))
    assert key.operations == 1 << 32
    assert one.open(ModuleType.FOOTER, -1, stored) == b"text"


FAILING_GENERATOR = """
#include <openssl/evp.h>
#include <openssl/rand.h>
int EVP_RAND_generate(EVP_RAND_CTX* generator, unsigned char* out, size_t size, unsigned int strength, int resistance,
                      const unsigned char* addition, size_t addition_size) { return RESULT; }
int RAND_priv_bytes_ex(OSSL_LIB_CTX* library, unsigned char* out, size_t size, unsigned int strength) { return RESULT; }
"""
FAILING = """
from fastpq.encryption import AesKey
from fastpq.encryption.gcm import GcmModuleCipher
from fastpq.encryption.keys.secret import random_key
from fastpq.errors import CryptoError, TagVerificationError
for draw in (lambda: GcmModuleCipher(AesKey(bytes(16)), b"").seal(0, 0, b"text"), lambda: random_key(128)):
    try:
        print(draw())
    except CryptoError as error:
        print("refused")
"""


@pytest.mark.linux        # LD_PRELOAD
@pytest.mark.parametrize("result", [0, -1])
def test_a_generator_that_fails(tmp_path: Path, result: int) -> None:
    (tmp_path / "failing.c").write_text(FAILING_GENERATOR.replace("RESULT", str(result)))
    library = tmp_path / "failing.so"
    subprocess.run([compiler(), "-shared", "-fPIC", "-o", library, tmp_path / "failing.c"], check=True)
    preload = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(library)]))
    command = [sys.executable, "-c", FAILING]
    done = subprocess.run(command, env={**os.environ, "LD_PRELOAD": preload}, capture_output=True, text=True)
    assert done.stdout.split() == ["refused", "refused"]


def test_no_nonce_comes_twice() -> None:
    cipher = GcmModuleCipher(AesKey(SECRET), b"file")
    nonces = [cipher.seal(ModuleType.DATA_PAGE_HEADER, 0, b"")[NONCE] for _ in range(100_000)]
    assert len(set(nonces)) == len(nonces)
    ones = sum(int.from_bytes(nonce, "little").bit_count() for nonce in nonces)
    assert abs(ones / (96 * len(nonces)) - 0.5) < 0.001     # ten standard deviations are 0.0016


def test_threads_draw_their_own_nonces() -> None:
    key = AesKey(SECRET)

    def seal(number: int) -> list[bytes]:
        cipher = GcmModuleCipher(key, b"file", 0, number)
        return [cipher.seal(ModuleType.DATA_PAGE, page, bytes(5000)) for page in range(500)]

    with ThreadPoolExecutor(8) as pool:
        stored = list(pool.map(seal, range(8)))
    assert len({module[NONCE] for modules in stored for module in modules}) == 8 * 500
    assert key.operations == 8 * 500
    for number, modules in enumerate(stored):
        cipher = GcmModuleCipher(key, b"file", 0, number)
        opened = {cipher.open(ModuleType.DATA_PAGE, page, module) for page, module in enumerate(modules)}
        assert opened == {bytes(5000)}


def test_ciphers_take_over_the_contexts_of_earlier_ciphers() -> None:
    """There are more ciphers at once than a key keeps contexts for, and the last thing that each does is a refusal."""
    key, plain = AesKey(SECRET), b"text"
    for _ in range(3):
        ciphers = [GcmModuleCipher(key, b"file") for _ in range(10)]
        for cipher in ciphers:
            stored = cipher.seal(ModuleType.FOOTER, -1, plain)
            assert AESGCM(SECRET).decrypt(stored[NONCE], stored[NONCE.stop :], b"file\0") == plain
            assert cipher.open(ModuleType.FOOTER, -1, stored) == plain
            with pytest.raises(TagVerificationError):
                cipher.open(ModuleType.FOOTER, -1, flipped(stored, -1))


def test_threads_share_the_contexts_of_a_key() -> None:
    key = AesKey(SECRET)

    def seal_and_open(number: int) -> bool:
        plain, aad = number.to_bytes(2, "big") * 30, str(number).encode()
        stored = [GcmModuleCipher(key, aad, 0, number).seal(ModuleType.DATA_PAGE, page, plain) for page in range(200)]
        return all(
            GcmModuleCipher(key, aad, 0, number).open(ModuleType.DATA_PAGE, page, module) == plain
            for page, module in enumerate(stored)
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(seal_and_open, range(40)))


def test_processes_after_a_fork_do_not_repeat_nonces() -> None:
    cipher = GcmModuleCipher(AesKey(SECRET), b"file")
    cipher.seal(ModuleType.FOOTER, -1, b"")     # so that the pool holds nonces when the children inherit it
    drawn = [nonces_of_children(cipher, generations=2) for _ in range(3)]
    drawn.append(draw(cipher))
    together = [nonce for nonces in drawn for nonce in nonces]
    assert len(together) == 7 * 100
    assert len(set(together)) == len(together)


def draw(cipher: GcmModuleCipher) -> list[bytes]:
    return [cipher.seal(ModuleType.FOOTER, -1, b"")[NONCE] for _ in range(100)]


def nonces_of_children(cipher: GcmModuleCipher, generations: int) -> list[bytes]:
    """100 nonces from a child, and from its child, and so on."""
    if generations == 0:
        return []
    reader, writer = os.pipe()
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):     # other tests have left threads
        child = os.fork()
    if child == 0:
        try:
            below = nonces_of_children(cipher, generations - 1)
            with os.fdopen(writer, "wb") as out:
                out.write(b"".join(draw(cipher) + below))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as source:
        data = source.read()
    os.waitpid(child, 0)
    return [data[start : start + 12] for start in range(0, len(data), 12)]


# A program with two systems' ways to fork of which neither Python nor the C library knows.
RAW_FORK = """
import ctypes, os, platform, sys
from fastpq.encryption import AesKey
from fastpq.encryption.gcm import GcmModuleCipher
from fastpq.encryption.modules import ModuleType

libc = ctypes.CDLL(None, use_errno=True)
call = {"x86_64": (57,), "aarch64": (220, 17, 0, 0, 0, 0)}[platform.machine()]     # fork; clone, and SIGCHLD
cipher = GcmModuleCipher(AesKey(b"the secret's key"), b"file")

def draw(count):
    for _ in range(count):
        os.write(1, cipher.seal(ModuleType.FOOTER, -1, b"")[4:16])

def fork(generations):
    for _ in range(3):
        child = libc.syscall(*map(ctypes.c_long, call))
        if child == 0:
            draw(20)
            if generations > 1:
                fork(generations - 1)
            os._exit(0)
        assert child > 0
        assert os.waitpid(child, 0)[1] == 0
    draw(20)

draw(1)
fork(2)
"""


@pytest.mark.linux
def test_a_fork_that_the_c_library_knows_nothing_of_does_not_repeat_nonces() -> None:
    done = subprocess.run([sys.executable, "-c", RAW_FORK], capture_output=True, check=True)
    nonces = [done.stdout[start : start + 12] for start in range(0, len(done.stdout), 12)]
    assert len(nonces) == 1 + 20 + 3 * (20 + 20 + 3 * 20)
    assert len(set(nonces)) == len(nonces)


def test_a_cipher_is_refused_to_a_second_thread_at_the_same_time() -> None:
    cipher = GcmModuleCipher(AesKey(SECRET), b"file")
    plain = bytes(8 << 20)

    def seal(_: int) -> bytes | str:
        try:
            return cipher.seal(ModuleType.FOOTER, -1, plain)
        except CryptoError as error:
            return str(error)

    results: list[bytes | str] = []
    with ThreadPoolExecutor(4) as pool:
        for _ in range(1000):       # until two threads meet, at once unless the machine is very busy
            results += pool.map(seal, range(8))
            if any(isinstance(result, str) for result in results):
                break
    stored = [result for result in results if isinstance(result, bytes)]
    refusals = {result for result in results if isinstance(result, str)}
    assert stored
    assert refusals == {"a module cipher was used by two threads at the same time"}
    assert len({module[NONCE] for module in stored}) == len(stored)
    assert all(cipher.open(ModuleType.FOOTER, -1, module) == plain for module in stored)


@pytest.mark.parametrize("wanted", ["evp", "cryptography"])
def test_stored_modules_are_the_same_with_either_backend(wanted: str) -> None:
    """A process of its own for each, because a process chooses once."""
    tests = Path(__file__).with_name("test_gcm.py")
    done = run_python(wanted, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("wanted", "crossover"), [("evp", "None"), ("cryptography", "16384")])
def test_the_environment_chooses_the_backend(wanted: str, crossover: str) -> None:
    done = run_python(wanted, "-c", "from fastpq.encryption import aes_backend; print(aes_backend().crossover)")
    assert done.stdout.strip() == crossover, done.stderr


def test_an_unknown_backend_is_refused() -> None:
    done = run_python("aes-ni", "-c", "from fastpq.encryption import aes_backend; aes_backend()")
    assert done.returncode
    assert "FASTPQ_AES=aes-ni" in done.stderr


def run_python(wanted: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"FASTPQ_AES": wanted}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False)


def test_the_backend_is_described() -> None:
    backend = aes_backend()
    assert backend is aes_backend()
    assert backend.evp.startswith("OpenSSL 3") or backend.evp > "OpenSSL 3"
    assert backend.crossover is None or backend.crossover >= 16384
