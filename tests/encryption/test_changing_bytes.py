"""Bytes of an encrypted file that another process changes while they are read: the value sealed, or an error."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from fastpq.encryption import FileEncryptionProperties
from fastpq.io.origin import StoredBytes
from fastpq.io.source_opening import open_source
from fastpq.options import MemoryMap

KEY = b"0123456789abcdef"
# One process alters a byte of the only page and writes it back as fast as possible; another decrypts the page again and again.
ALTERING = """
    import mmap, sys
    with open(sys.argv[1], "r+b") as file:
        data = mmap.mmap(file.fileno(), 0)
    place = len(data) // 2
    sealed = data[place]
    altered = sealed ^ 1
    print("ready", flush=True)
    while True:
        data[place] = altered; data[place] = sealed; data[place] = altered; data[place] = sealed
"""
READING = """
    import sys, time
    import numpy as np
    import fastpq
    from fastpq.encryption import FileDecryptionProperties, FileEncryptionProperties

    path, key, other = sys.argv[1], b"0123456789abcdef", b"fedcba9876543210"
    keys = FileDecryptionProperties(footer_key=key)
    new_keys = FileEncryptionProperties(footer_key=other)

    def read(where=path, keys=keys, **options):
        return fastpq.read_table(where, decryption_properties=keys, threads=1, **options)

    def encrypt_file():
        fastpq.encrypt_file(path, path + ".again", new_keys, decryption_properties=keys)
        return read(path + ".again", FileDecryptionProperties(footer_key=other))

    hows = {
        "read": read,
        "keep": lambda: read(memory_map="keep"),
        "buffer": lambda: read(np.memmap(path, np.uint8, "r")),
        "encrypt_file": encrypt_file,
    }
    right = refused = wrong = 0
    start = time.monotonic()
    # two seconds, and on a busy machine longer, until reads of either outcome were seen
    while time.monotonic() - start < (2 if right and refused else 30):
        try:
            table = hows[sys.argv[2]]()
        except fastpq.TagVerificationError:
            refused += 1
        else:
            same = bool((table["a"].to_numpy() == np.arange(2000)).all())
            right, wrong = right + same, wrong + (not same)
    print(right, refused, wrong)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "encrypted.parquet"
    keys = FileEncryptionProperties(footer_key=KEY)
    plain: dict[str, Any] = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    fastpq.write_table({"a": np.arange(2000)}, target, encryption_properties=keys, **plain)
    return target


@pytest.mark.parametrize("aes", ["auto", "evp"])
@pytest.mark.parametrize("how", ["read", "keep", "buffer", "encrypt_file"])
def test_altered_bytes_never_pass(how: str, aes: str, path: Path) -> None:
    altering = [sys.executable, "-c", textwrap.dedent(ALTERING), str(path)]
    reading = [sys.executable, "-c", textwrap.dedent(READING), str(path), how]
    with subprocess.Popen(altering, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            found = subprocess.check_output(reading, text=True, env={**os.environ, "FASTPQ_AES": aes})
        finally:
            process.kill()
    right, refused, wrong = map(int, found.split())
    assert wrong == 0, f"{wrong} of {right + refused + wrong} reads gave altered values"
    assert right
    assert refused


OPENED: dict[str, Callable[[Path], Any]] = {
    "path": lambda path: path,
    "bytearray": lambda path: bytearray(path.read_bytes()),
    "memmap": lambda path: np.memmap(path, np.uint8, "r+"),
    "file object": lambda path: io.FileIO(path),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("memory_map", [False, True, "keep"])
@pytest.mark.parametrize("kind", OPENED)
def test_bytes_to_be_authenticated_are_in_memory_of_the_reader(kind: str, memory_map: MemoryMap, path: Path) -> None:
    """A later change of the bytes of the file changes nothing that was read."""
    before, where = path.read_bytes(), OPENED[kind](path)
    with open_source(where, memory_map=memory_map) as source:
        held = [source.read(100, 1000), *source.read_ranges([(4, 10), (5000, 100)])]
        [walked] = source.walk([[(4, 5000), (9000, 1000)]], authentic=True)
        array = walked.read() if isinstance(walked, StoredBytes) else walked
    if kind == "bytearray":
        where[:] = bytes(len(where))
    else:
        np.memmap(path, np.uint8, "r+")[:] = 0
    assert [part.tobytes() for part in held] == [before[100:1100], before[4:14], before[5000:5100]]
    assert array.tobytes() == before[4:5004] + before[9000:10_000]
