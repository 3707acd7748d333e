"""Smoke test of an installed fastpq: write and read with each codec, plaintext and encrypted; alterations are refused.

Needs the dependencies of the wheel alone. ``python -I tools/smoke.py`` keeps the source tree out of the import path.
"""

from __future__ import annotations

import importlib.metadata
import secrets
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fastpq

CODECS = ("uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4_raw", "lz4_hadoop")
ROWS = 20_000
SECRET = "price"
FOOTER_KEY, COLUMN_KEY = secrets.token_bytes(16), secrets.token_bytes(32)


def require(condition: bool, claim: str) -> None:
    """End the program unless the claim holds; assert would depend on the interpreter's options."""
    if not condition:
        raise SystemExit(f"smoke: not true: {claim}")


def check_installation() -> None:
    """The package comes from site-packages, and its version is the one in its metadata."""
    places = [Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")]
    folder = Path(fastpq.__file__).resolve().parent
    require(any(place in folder.parents for place in places), f"{folder} is in site-packages")
    require(fastpq.__version__ == importlib.metadata.version("fastpq"), "the version is the one in the metadata")
    require((folder / "py.typed").is_file(), "type checkers find the types")


def rows() -> dict[str, Any]:
    """A column of each kind of output: integers, floats with nulls, strings, lists, timestamps."""
    numbers = np.arange(ROWS)
    return {
        "id": numbers,
        SECRET: np.ma.masked_array(numbers / 8, mask=numbers % 7 == 0),
        "name": [f"item {number % 100}" for number in range(ROWS)],
        "tags": [[number, number + 1][: number % 3] for number in range(ROWS)],
        "at": np.datetime64("2026-01-01", "us") + numbers * np.timedelta64(1, "s"),
    }


def check_round_trip(table: fastpq.Table, written: dict[str, Any]) -> None:
    require(table.num_rows == ROWS, "all rows come back")
    require(np.array_equal(table["id"].to_numpy(), written["id"]), "integers come back")
    require(table[SECRET].to_pylist() == written[SECRET].tolist(), "floats and nulls come back")
    require(table["name"].to_pylist() == written["name"], "strings come back")
    require(table["tags"].to_pylist() == written["tags"], "lists come back")
    require(np.array_equal(table["at"].to_numpy(), written["at"]), "timestamps come back")


def check_codec(folder: Path, codec: str, written: dict[str, Any]) -> None:
    """A plaintext file, then an encrypted one with a key of its own for one column."""
    path = folder / f"{codec}.parquet"
    fastpq.write_table(written, path, compression=codec)
    check_round_trip(fastpq.read_table(path), written)
    keys = fastpq.FileEncryptionProperties(FOOTER_KEY, {SECRET: COLUMN_KEY})
    fastpq.write_table(written, path, compression=codec, encryption_properties=keys)
    check_round_trip(read_with_all_keys(path), written)


def all_keys() -> fastpq.FileDecryptionProperties:
    return fastpq.FileDecryptionProperties(FOOTER_KEY, {SECRET: COLUMN_KEY})


def check_refusals(path: Path) -> None:
    """A reader without the column's key, and one bit altered in the column's pages or in the footer."""
    some_keys = fastpq.FileDecryptionProperties(FOOTER_KEY)
    with fastpq.ParquetFile(path, decryption_properties=some_keys) as file:
        require(file.read(["id"]).num_rows == ROWS, "the footer key opens other columns")
        require(raises(fastpq.KeyAccessError, file.read, [SECRET]), "a column stays closed without its key")
    with fastpq.ParquetFile(path, decryption_properties=all_keys()) as file:
        start, length = file.metadata.row_group(0).column(1).byte_range
    sound = path.read_bytes()
    for place in (start + length // 2, len(sound) - 30):
        altered = bytearray(sound)
        altered[place] ^= 1
        refused = raises(fastpq.TagVerificationError, read_with_all_keys, bytes(altered))
        require(refused, f"a bit altered at byte {place} is refused")


def read_with_all_keys(source: Path | bytes) -> fastpq.Table:
    return fastpq.read_table(source, decryption_properties=all_keys())


def raises(kind: type[Exception], action: Callable[..., object], *arguments: object) -> bool:
    try:
        action(*arguments)
    except kind:
        return True
    return False


def crypto_libraries() -> list[str]:
    """The OpenSSL libraries in this process; on Linux alone."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    return sorted({line.split()[-1] for line in lines if "libcrypto" in line})


def main() -> None:
    check_installation()
    written = rows()
    with tempfile.TemporaryDirectory() as name:
        for codec in CODECS:
            check_codec(Path(name), codec, written)
        check_refusals(Path(name) / f"{CODECS[-1]}.parquet")
    print(f"smoke: fastpq {fastpq.__version__}, Python {sys.version.split()[0]}, {len(CODECS)} codecs: passed")
    for library in crypto_libraries():
        print(f"smoke: OpenSSL from {library}")


if __name__ == "__main__":
    main()
