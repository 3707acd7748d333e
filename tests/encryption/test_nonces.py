"""Nonces of ten million modules under one key, from two processes with many threads each, and of the files they write; and
what is left of a key in the memory of a process that is done with it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import fastpq
from fastpq.encryption import AesKey
from fastpq.encryption.gcm import GcmModuleCipher
from fastpq.encryption.modules import ModuleType
from tests.encryption.keys.test_factory import occurrences

ROOT = Path(__file__).parents[2]
KEY = b"the same for all"
PROCESSES, THREADS = 2, 8
MODULES = 10_000_000
BATCH = 62_500
EMPTY_MODULE = 32       # stored bytes: length, nonce and tag
NONCE = slice(4, 16)

Nonces = npt.NDArray[np.uint8]


def sealed(cipher: GcmModuleCipher, count: int) -> Nonces:
    """The nonces of count modules, shape (count, 12)."""
    seal = cipher.seal
    stored = b"".join([seal(ModuleType.FOOTER, 0, b"") for _ in range(count)])
    return np.frombuffer(stored, np.uint8).reshape(count, EMPTY_MODULE)[:, NONCE].copy()


def nonces_of_threads() -> Nonces:
    key = AesKey(KEY)

    def seal(number: int) -> list[Nonces]:
        cipher = GcmModuleCipher(key, b"file", 0, number)
        return [sealed(cipher, BATCH) for _ in range(MODULES // (PROCESSES * THREADS * BATCH))]

    with ThreadPoolExecutor(THREADS) as pool:
        drawn = [nonces for batches in pool.map(seal, range(THREADS)) for nonces in batches]
    assert key.operations == MODULES // PROCESSES
    return np.concatenate(drawn)


def nonces_of_files() -> Nonces:
    """Of files that threads write at the same time: pages of one row, whose modules follow each other."""
    keys = fastpq.FileEncryptionProperties(KEY)

    def write(number: int) -> Nonces:
        out = io.BytesIO()
        fastpq.write_table(
            {"a": np.full(2_000, number), "b": np.arange(2_000.0)}, out, use_dictionary=False, data_page_rows=1,
            encryption_properties=keys,
        )
        return nonces_within(out.getvalue())

    with ThreadPoolExecutor(THREADS) as pool:
        return np.concatenate(list(pool.map(write, range(THREADS))))


def nonces_within(data: bytes) -> Nonces:
    """Of all pages of a file: after the magic, modules stand one behind the other."""
    with fastpq.ParquetFile(data, decryption_properties=fastpq.FileDecryptionProperties(KEY)) as file:
        group = file.metadata.row_group(0)
        spans = [group.column(column).byte_range for column in range(2)]
    found = []
    for start, size in spans:
        position = start
        while position < start + size:
            found.append(data[position + 4 : position + 16])
            position += 4 + int.from_bytes(data[position : position + 4], "little")
        assert position == start + size
    assert len(found) == 2 * 2 * 2_000
    return np.frombuffer(b"".join(found), np.uint8).reshape(-1, 12)


@pytest.mark.slow
def test_no_nonce_comes_twice_in_ten_million_modules(tmp_path: Path) -> None:
    code = "import sys, numpy; from tests.encryption.test_nonces import *; numpy.save(sys.argv[1], {})"
    calls = [f"{call}()" for call in ("nonces_of_threads", "nonces_of_files") for _ in range(PROCESSES)]
    paths = [tmp_path / f"{number}.npy" for number in range(len(calls))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [
        subprocess.Popen([sys.executable, "-c", code.format(call), str(path)], env=environment)
        for call, path in zip(calls, paths, strict=True)
    ]
    assert [process.wait() for process in running] == [0] * len(calls)
    nonces = np.concatenate([np.load(path) for path in paths])
    assert len(nonces) == MODULES + PROCESSES * THREADS * 8_000
    # all differ already in their first eight bytes: by chance two do not once in some hundred thousand runs
    starts = np.sort(np.ascontiguousarray(nonces[:, :8]).view(np.uint64).ravel())
    assert (starts[1:] != starts[:-1]).all()
    ends = np.ascontiguousarray(nonces[:, 8:]).view(np.uint32).ravel()
    assert len(np.unique(ends)) > 0.998 * len(ends)      # nor do they only count up in one part


# The key comes as its complement, so that the only copies of it are those that the library is given and makes.
CHILD = """
import gc, sys
import numpy as np
import fastpq
from fastpq.encryption import AesKey

def use(path, held):
    secret = bytearray(byte ^ 255 for byte in bytes.fromhex(sys.argv[1]))
    key = AesKey(secret)
    for place in range(len(secret)):
        secret[place] = 0
    for algorithm in ("AES_GCM_V1", "AES_GCM_CTR_V1"):
        for plaintext_footer in (False, True):
            encryption = fastpq.FileEncryptionProperties(key, {"a": key}, algorithm=algorithm, plaintext_footer=plaintext_footer)
            rows = np.random.default_rng(0).integers(0, 1 << 60, 50_000)
            fastpq.write_table({"a": rows, "b": rows}, path, encryption_properties=encryption)
            decryption = fastpq.FileDecryptionProperties(key, {"a": key}, allowed_algorithms=[algorithm])
            assert fastpq.read_table(path, decryption_properties=decryption).num_rows == 50_000
            try:
                fastpq.read_table(path, decryption_properties=fastpq.FileDecryptionProperties(key, {"a": bytes(16)},
                                                                                              allowed_algorithms=[algorithm]))
            except fastpq.CryptoError:
                pass
    return key if held else None

held = use(sys.argv[2], sys.argv[3] == "hold")
gc.collect()
print("done", flush=True)
sys.stdin.read()
"""


@pytest.mark.linux        # /proc/PID/mem
@pytest.mark.parametrize("backend", ["evp", "cryptography"])
@pytest.mark.parametrize("held", ["release", "hold"])
def test_memory_holds_no_key_after_use(tmp_path: Path, held: str, backend: str) -> None:
    key = os.urandom(32)
    complement = bytes(byte ^ 255 for byte in key).hex()
    command = [sys.executable, "-c", CHILD, complement, str(tmp_path / "file.parquet"), held]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FASTPQ_AES": backend}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"done\n"
        # half of the key as well: it stands like that at the head of a key schedule
        found = occurrences(process.pid, key), occurrences(process.pid, key[:16])
        process.kill()
    if held == "hold":
        assert min(found) > 0       # the scan finds what is there
    else:
        assert found == (0, 0)
