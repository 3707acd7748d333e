"""Cost of encryption: encrypted files beside the same files in plaintext. ``tools/bench --jobs overhead``.

A pair is one call with a plaintext file and one with an encrypted file, one after the other in one process, so a busy machine
disturbs both alike. Processor time counts. The overhead is the median of the pairs, with the interval that holds the true median
with 95 % probability.

The last column is the time that OpenSSL alone needs for all modules of the file. A reader verifies no CRC-32 of an encrypted
page, so the overhead may be less than this.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

import fastpq
from benchmarks.against import SHORTEST, median_interval
from benchmarks.data import path_of
from benchmarks.peers import ROW_GROUP_SIZE
from fastpq.encryption import AesKey, ColumnEncryptionProperties
from fastpq.encryption.gcm import GcmModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.encryption.variants import CtrModuleCipher

FOOTER_KEY = b"0123456789012345"
FEWEST_PAIRS = 9
GCM: Literal["AES_GCM_V1"] = "AES_GCM_V1"
CTR: Literal["AES_GCM_CTR_V1"] = "AES_GCM_CTR_V1"
HEADER_SIZE = 30            # in bytes: about what a page header has


class Case(NamedTuple):
    """Files to compare.

    Attributes:
        name: what the files have in common.
        table: returns the values.
        options: options of the writer.
        threads: threads of the writer and the reader.
        algorithm: the encryption algorithm.
        keys_by_column: whether each column has a key of its own.
    """

    name: str
    table: Callable[[], Any]
    options: dict[str, Any]
    threads: int = 1
    algorithm: Literal["AES_GCM_V1", "AES_GCM_CTR_V1"] = GCM
    keys_by_column: bool = False


def cases(scale: float) -> Iterator[Case]:
    """Return the cases with the goals in docs/pages/performance.md."""

    def lineitem() -> fastpq.Table:
        return fastpq.read_table(path_of("lineitem", scale))

    def wide() -> dict[str, Any]:
        return {f"column_{number}": np.arange(10_000) for number in range(500)}

    def tiny() -> dict[str, Any]:
        return {"id": np.arange(20), "price": np.linspace(0, 1, 20), "name": np.array([f"name {n}" for n in range(20)], "T")}

    for codec in ("snappy", "zstd", "none"):
        options = {"compression": codec, "row_group_size": ROW_GROUP_SIZE}
        for threads in (1, 2):
            yield Case(f"lineitem, {codec}", lineitem, options, threads)
    yield Case("lineitem, snappy, CTR", lineitem, {"compression": "snappy", "row_group_size": ROW_GROUP_SIZE}, algorithm=CTR)
    pages = {"compression": "snappy", "row_group_size": ROW_GROUP_SIZE, "data_page_size": 8192}
    yield Case("lineitem, pages with 8 KB", lineitem, pages)
    yield Case("500 columns, 500 keys", wide, {"compression": "snappy"}, keys_by_column=True)
    yield Case("3 columns, 20 rows", tiny, {"compression": "snappy"})


def properties(case: Case, names: Sequence[str]) -> tuple[fastpq.FileEncryptionProperties, fastpq.FileDecryptionProperties]:
    """Return the properties to write and to read the encrypted file."""
    keys = {name: number.to_bytes(16, "big") for number, name in enumerate(names, 1)} if case.keys_by_column else {}
    columns = {name: ColumnEncryptionProperties(key) for name, key in keys.items()}
    writing = fastpq.FileEncryptionProperties(FOOTER_KEY, columns or None, algorithm=case.algorithm)
    return writing, fastpq.FileDecryptionProperties(FOOTER_KEY, keys or None, allowed_algorithms=[case.algorithm])


class Overhead(NamedTuple):
    """Encrypted time over plaintext time, minus 1.

    Attributes:
        median: median of the pairs.
        low, high: interval of the median.
        openssl: time of OpenSSL alone over the plaintext time.
    """

    median: float
    low: float
    high: float
    openssl: float

    def __str__(self) -> str:
        return f"{self.median:+7.1%} ({self.low:+.1%} to {self.high:+.1%}) {self.openssl:8.1%}"


def measure(case: Case, folder: Path, pairs: int) -> Iterator[tuple[str, Overhead]]:
    """Measure writing, then reading."""
    table = case.table()
    plain_path, sealed_path = folder / "plain.parquet", folder / "sealed.parquet"
    fastpq.write_table(table, plain_path, **case.options)
    encryption, decryption = properties(case, fastpq.ParquetFile(plain_path).schema.names)
    writing: dict[str, Any] = {**case.options, "threads": case.threads}
    write_plain = partial(fastpq.write_table, table, plain_path, **writing)
    write_sealed = partial(fastpq.write_table, table, sealed_path, encryption_properties=encryption, **writing)
    yield "write", _compared(case, write_plain, write_sealed, sealed_path, decryption, pairs)
    del table
    read_plain = partial(fastpq.read_table, plain_path, threads=case.threads)
    read_sealed = partial(fastpq.read_table, sealed_path, threads=case.threads, decryption_properties=decryption)
    yield "read", _compared(case, read_plain, read_sealed, sealed_path, decryption, pairs)


def _compared(
    case: Case,
    plain: Callable[[], Any],
    sealed: Callable[[], Any],
    path: Path,
    decryption: fastpq.FileDecryptionProperties,
    pairs: int,
) -> Overhead:
    repetitions = 1 + int(SHORTEST / max(seconds_of(plain, 1), 1e-5))
    seconds_of(sealed, 1)
    plain_seconds, ratios = [], []
    for number in range(pairs):
        # the second call of a pair finds warmer caches, so the two take turns in being the first
        order = (plain, sealed) if number % 2 else (sealed, plain)
        by_call = {call: seconds_of(call, repetitions) for call in order}
        plain_seconds.append(by_call[plain])
        ratios.append(by_call[sealed] / by_call[plain] - 1)
    low, high = median_interval(sorted(ratios))
    openssl = openssl_seconds(path, decryption, case.algorithm) / statistics.median(plain_seconds)
    return Overhead(statistics.median(ratios), low, high, openssl)


def seconds_of(call: Callable[[], Any], repetitions: int) -> float:
    """Return the processor seconds of a call, the mean of some repetitions."""
    gc.collect()
    started = time.process_time()
    for _ in range(repetitions):
        call()
    return (time.process_time() - started) / repetitions


def openssl_seconds(path: Path, decryption: fastpq.FileDecryptionProperties, algorithm: str) -> float:
    """Return the least processor seconds to open modules with the sizes of a file's pages and page headers."""
    sizes: list[int] = []
    with fastpq.ParquetFile(path, decryption_properties=decryption) as file:
        for row_group in range(file.num_row_groups):
            for column in file.schema.names:
                index = file.offset_index(row_group, column)
                assert index is not None
                sizes += index.sizes.tolist()
    key = AesKey(FOOTER_KEY)
    cipher = (GcmModuleCipher if algorithm == GCM else CtrModuleCipher)(key, b"file")
    page, out = bytes(max(sizes)), bytearray(max(sizes) + 64)
    bodies = {size: cipher.seal(ModuleType.DATA_PAGE, 0, page[:size]) for size in set(sizes)}
    header = cipher.seal(ModuleType.DATA_PAGE_HEADER, 0, page[:HEADER_SIZE])

    def open_all() -> None:
        for size in sizes:
            cipher.open_to(ModuleType.DATA_PAGE_HEADER, 0, header, out)
            cipher.open_to(ModuleType.DATA_PAGE, 0, bodies[size], out)

    repetitions = 1 + int(SHORTEST / max(seconds_of(open_all, 1), 1e-5))
    return min(seconds_of(open_all, repetitions) for _ in range(3))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--scale", type=float, default=1, help="TPC-H scale factor (default: %(default)s)")
    pairs = f"pairs for each figure, at least {FEWEST_PAIRS} (default: %(default)s)"
    parser.add_argument("--pairs", type=int, default=11, help=pairs)
    parser.add_argument("--only", default="", help="only cases that have this text in the name")
    parser.add_argument("--scratch", default="/dev/shm", help="where files are written (default: %(default)s)")
    options = parser.parse_args()
    if options.pairs < FEWEST_PAIRS:
        parser.error(f"--pairs must be at least {FEWEST_PAIRS}")
    print(f"{'':28} {'threads':>7} {'':5} overhead, and its interval    OpenSSL alone")
    for case in cases(options.scale):
        if options.only not in case.name:
            continue
        with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
            for kind, overhead in measure(case, Path(folder), options.pairs):
                print(f"{case.name:28} {case.threads:7} {kind:5} {overhead}", flush=True)


if __name__ == "__main__":
    main()
