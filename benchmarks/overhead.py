"""Cost of encryption in reading and writing lineitem: ``python -m benchmarks.overhead``.

All modes take turns in one process with one thread. The least processor time of each counts, to lessen disturbance by other
programs on the machine. The last lines are the profile: the time to open modules of the same sizes alone, and the time of the
pages' CRC-32, absent from encrypted pages.
"""

from __future__ import annotations

import argparse
import gc
import secrets
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import fastpq
from benchmarks import keys
from benchmarks.data import path_of
from benchmarks.jobs import Job
from benchmarks.peers import ROW_GROUP_SIZE
from fastpq.codecs.checksum import crc32
from fastpq.encryption import AesKey
from fastpq.encryption.gcm import GcmModuleCipher
from fastpq.encryption.modules import ModuleType
from fastpq.encryption.variants import CtrModuleCipher

MODES = {
    "plaintext": Job("plaintext", "write"),
    "GCM": Job("GCM", "write", encrypted="uniform"),
    "CTR": Job("CTR", "write", encrypted="uniform", algorithm="AES_GCM_CTR_V1"),
    "GCM, two columns": Job("GCM, two columns", "write", encrypted="columns"),
}


def least(seconds: dict[str, float], name: str, action: Callable[[], Any]) -> None:
    gc.collect()
    started = time.process_time()
    action()
    seconds[name] = min(seconds.get(name, float("inf")), time.process_time() - started)


def measure(source: Path, folder: Path, runs: int) -> tuple[dict[str, float], dict[str, float]]:
    """Least processor seconds of writing and of reading, by mode."""
    table = fastpq.read_table(source)
    writing: dict[str, float] = {}
    reading: dict[str, float] = {}
    for _ in range(runs + 1):       # the first run starts cold, and is never the least
        for name, job in MODES.items():
            path = folder / f"{name}.parquet"
            options: dict[str, Any] = {
                "encryption_properties": keys.for_fastpq_to_write(job), "threads": 1, "row_group_size": ROW_GROUP_SIZE
            }
            least(writing, name, partial(fastpq.write_table, table, path, **options))
            decryption = keys.for_fastpq_to_read(job)
            least(
                reading,
                name,
                partial(fastpq.read_table, path, threads=1, decryption_properties=decryption),
            )
    return writing, reading


def open_all(cipher: GcmModuleCipher | CtrModuleCipher, modules: list[bytes], out: bytearray) -> None:
    for module in modules:
        cipher.open_to(ModuleType.DATA_PAGE, 0, module, out)


def measure_parts(path: Path, runs: int) -> dict[str, float]:
    """Processor seconds to open modules of the sizes of a file's pages, and seconds of their CRC-32."""
    sizes: list[int] = []
    with fastpq.ParquetFile(path, decryption_properties=keys.for_fastpq_to_read(MODES["GCM"])) as file:
        for row_group in range(file.num_row_groups):
            for column in file.schema.names:
                index = file.offset_index(row_group, column)
                assert index is not None
                sizes += index.sizes.tolist()
    key, page = AesKey(bytes(16)), secrets.token_bytes(max(sizes))
    out = bytearray(max(sizes) + 64)
    seconds: dict[str, float] = {}
    for name, cipher in (("GCM", GcmModuleCipher(key, b"file")), ("CTR", CtrModuleCipher(key, b"file"))):
        modules = {size: cipher.seal_body(ModuleType.DATA_PAGE, 0, page[:size], 0) for size in set(sizes)}
        for _ in range(runs + 1):
            least(seconds, name, partial(open_all, cipher, [modules[size] for size in sizes], out))
    for _ in range(runs + 1):
        least(seconds, "CRC-32", lambda: [crc32(memoryview(page)[:size]) for size in sizes])
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--scale", type=float, default=1, help="TPC-H scale factor (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=7, help="the shortest counts (default: %(default)s)")
    parser.add_argument("--scratch", default="/dev/shm", help="where files are written (default: %(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        writing, reading = measure(path_of("lineitem", options.scale), Path(folder), options.runs)
        parts = measure_parts(Path(folder) / "GCM.parquet", options.runs)
    print(f"{'':20} {'write':>8} {'':>7} {'read':>8}")
    for name in MODES:
        ratios = [seconds[name] / seconds["plaintext"] - 1 for seconds in (writing, reading)]
        print(f"{name:20} {writing[name]:7.3f}s {ratios[0]:+6.1%} {reading[name]:7.3f}s {ratios[1]:+6.1%}")
    for name, taken in parts.items():
        ratios = [taken / seconds["plaintext"] for seconds in (writing, reading)]
        print(f"{name + ' alone':20} {taken:7.3f}s {ratios[0]:+6.1%} {taken:7.3f}s {ratios[1]:+6.1%}")


if __name__ == "__main__":
    main()
