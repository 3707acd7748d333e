"""Every verb: killed at each system call, with a full disk, with Ctrl-C, and with damaged input."""

from __future__ import annotations

import io
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastpq
from tests.faults.campaign import run_with_shim
from tests.rewriting.verbs import KEYS, ROWS, VERBS, Verb, write_source

WAYS = [*(f"{name}, in place" for name in VERBS), "split_file", "append_table", "append_table, in place"]
ALL_VERBS: dict[str, Verb] = VERBS | {
    "split_file": lambda source, target, **options: fastpq.split_file(source, f"{target}-{{number}}", rows=5000, **options),
}
PLAINTEXT_VERBS = [name for name in ALL_VERBS if name != "decrypt_file"]
DAMAGES = 30


@pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD and /proc are of Linux")
@pytest.mark.skipif(shutil.which("cc") is None, reason="the shim needs a C compiler")
@pytest.mark.parametrize("way", WAYS)
def test_each_system_call_fails(tmp_path: Path, way: str) -> None:
    """A kill, an error, a full disk and Ctrl-C at each system call leave the old file or the new one, and nothing beside it."""
    ran = run_with_shim(["--every-call", "--ways", way, "--scratch", str(tmp_path)])
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for end in ("SIGKILL", "raised", "interrupted", "0 failures"):
        assert end in ran.stdout


def damaged_copies(data: bytes) -> list[bytes]:
    """Copies of a file with one wrong bit each, and copies that are too short."""
    random = np.random.default_rng(3)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    places = [*random.integers(0, len(data), DAMAGES // 2), *random.integers(footer, len(data), DAMAGES // 2)]
    wrong_bytes = [(place, bytes([data[place] ^ (1 << int(random.integers(8)))])) for place in map(int, places)]
    copies = [data[:place] + wrong_byte + data[place + 1 :] for place, wrong_byte in wrong_bytes]
    return [*copies, data[: len(data) // 2], data[:-9], b"PAR1", b""]


@pytest.mark.parametrize(
    ("name", "is_encrypted"), [*((name, False) for name in PLAINTEXT_VERBS), *((name, True) for name in ALL_VERBS)])
def test_damaged_input(tmp_path: Path, name: str, is_encrypted: bool) -> None:
    """Damage raises a ParquetError and leaves the target as it is, or is outside of what the verb reads."""
    out = io.BytesIO()
    write_source(out, is_encrypted=is_encrypted)
    options: dict[str, Any] = {"decryption_properties": KEYS} if is_encrypted else {}
    target, refused = tmp_path / "target", 0
    for data in damaged_copies(out.getvalue()):
        source = tmp_path / "source"
        source.write_bytes(data)
        target.write_bytes(b"old")
        try:
            ALL_VERBS[name](source, target, **options)
        except fastpq.ParquetError:
            refused += 1
            assert target.read_bytes() == b"old"
        assert fastpq.unfinished_files(tmp_path) == []
        for path in tmp_path.glob("target-*"):      # the parts before the damage are whole
            assert 0 < fastpq.read_metadata(path, **options).num_rows <= ROWS
            path.unlink()
    assert refused > DAMAGES // 4


@pytest.mark.parametrize("name", PLAINTEXT_VERBS)
def test_an_interrupted_verb_changes_nothing(tmp_path: Path, name: str) -> None:
    """Ctrl-C between two row groups leaves the target as it is."""
    source, target = tmp_path / "source", tmp_path / "target"
    write_source(source)
    target.write_bytes(b"old")

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ALL_VERBS[name](source, target, progress=interrupt)
    assert target.read_bytes() == b"old"
    assert fastpq.unfinished_files(tmp_path) == []
