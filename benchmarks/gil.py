"""Share of a scan during which Python's GIL is held: ``python -m benchmarks.gil``.

A second process looks at the memory of the scanning one, as py-spy does: some thousand times a second it reads the word by which
CPython marks the GIL as taken. Neither the interpreter nor fastpq takes part, so that other packages are measured alike. The word
is found by its values while the scanning process computes in Python and while it waits. Works on Linux.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import random
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import fastpq
from benchmarks import keys
from benchmarks.data import path_of
from benchmarks.jobs import Job

PAUSE = 100e-6          # seconds between two looks, on average; far below the time of a job
LOOKS = 30              # at all of the interpreter's state, for each state of the GIL
LARGEST_STATE = 4 << 20     # bytes looked at from the begin of the interpreter's state
NUMBERS = ["l_orderkey", "l_partkey", "l_suppkey", "l_quantity", "l_extendedprice", "l_discount", "l_tax", "l_shipdate"]
STRINGS = ["l_comment", "l_shipinstruct", "l_shipmode"]


class Scanner:
    """A child process that does one job after the other, as told, and waits between them without the GIL."""

    def __init__(self, options: argparse.Namespace, folder: str) -> None:
        command = [sys.executable, "-m", "benchmarks.gil", "--child", folder, "--scale", str(options.scale)]
        command += ["--threads", str(options.threads), "--seconds", str(options.seconds)]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._orders, self._answers = self._child.stdin, self._child.stdout
        start = int(self._answers.readline())
        self._memory = os.open(f"/proc/{self._child.pid}/mem", os.O_RDONLY)
        self._word = self._find(start)

    def share(self, job: str) -> tuple[float, int]:
        """The share of looks during a job with the GIL taken, and the number of looks."""
        taken = list(self._during(job, lambda: os.pread(self._memory, 4, self._word) != bytes(4)))
        return sum(taken) / len(taken), len(taken)

    def _during(self, job: str, look: Callable[[], Any]) -> Iterator[Any]:
        """The results of looks at random moments of a job."""
        self._orders.write(job.encode() + b"\n")
        if self._answers.readline() != b"begun\n":
            raise RuntimeError(f"the child does not begin {job!r}")
        while not select.select([self._answers], [], [], random.uniform(0, 2 * PAUSE))[0]:
            yield look()
        if self._answers.readline() != b"done\n":
            raise RuntimeError(f"the child does not end {job!r}")

    def _find(self, start: int) -> int:
        """The address of the word that is 1 in all looks while Python computes, and 0 in all while it waits."""
        size = min(LARGEST_STATE, self._end_of_mapping(start) - start)
        snapshot = partial(os.pread, self._memory, size, start)
        candidates = np.ones(size // 4, bool)
        for _ in range(2):
            for state in list(self._during("compute", snapshot))[1:-1]:
                candidates &= np.frombuffer(state, np.int32, len(candidates)) == 1
            for _ in range(LOOKS):
                time.sleep(PAUSE)
                candidates &= np.frombuffer(snapshot(), np.int32, len(candidates)) == 0
        found = np.flatnonzero(candidates)
        if len(found) != 1:
            raise RuntimeError(f"{len(found)} words of the interpreter's state behave as the GIL, not one")
        return start + 4 * int(found[0])

    def _end_of_mapping(self, address: int) -> int:
        for line in Path(f"/proc/{self._child.pid}/maps").read_text().splitlines():
            first, last = (int(part, 16) for part in line.split()[0].split("-"))
            if first <= address < last:
                return last
        raise RuntimeError("the interpreter's state is not mapped")

    def stop(self) -> None:
        self._orders.close()
        self._child.wait()
        os.close(self._memory)


@contextmanager
def scanner(options: argparse.Namespace) -> Iterator[Scanner]:
    with tempfile.TemporaryDirectory() as folder:
        made = Scanner(options, folder)
        try:
            yield made
        finally:
            made.stop()


# ---- the child


def jobs(folder: Path, scale: float, threads: int) -> dict[str, Callable[[], Any]]:
    """The jobs by name; files are written to folder."""
    source = path_of("lineitem", scale)
    table = fastpq.read_table(source)
    found: dict[str, Callable[[], Any]] = {
        "read snappy": partial(fastpq.read_table, source, threads=threads),
        "read snappy, numbers": partial(fastpq.read_table, source, columns=NUMBERS, threads=threads),
        "read snappy, strings": partial(fastpq.read_table, source, columns=STRINGS, threads=threads),
    }
    for codec in ("zstd", "gzip", "lz4", "none"):
        path = folder / f"{codec}.parquet"
        fastpq.write_table(table, path, compression=codec, use_dictionary=codec != "none")
        found[f"read {codec}"] = partial(fastpq.read_table, path, threads=threads)
    mode = Job("GCM", "write", encrypted="uniform")
    sealed = folder / "sealed.parquet"
    fastpq.write_table(table, sealed, encryption_properties=keys.for_fastpq_to_write(mode))
    found["read encrypted"] = lambda: fastpq.read_table(
        sealed, threads=threads, decryption_properties=keys.for_fastpq_to_read(mode))
    for codec in ("snappy", "zstd"):
        found[f"write {codec}"] = partial(
            fastpq.write_table, table, folder / "written.parquet", compression=codec, threads=threads)
    return found


def serve(options: argparse.Namespace) -> None:
    """Do the jobs named in the lines of standard input."""
    state = ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime")
    print(ctypes.addressof(state), flush=True)
    known: dict[str, Callable[[], Any]] = {"compute": lambda: sum(range(1000))}
    for line in sys.stdin:
        name = line.strip()
        if name not in known:
            known |= jobs(Path(options.child), options.scale, options.threads)
            known[name]()       # the first run starts cold
        seconds = 0.05 if name == "compute" else options.seconds
        print("begun", flush=True)
        started = time.perf_counter()
        while time.perf_counter() - started < seconds:
            known[name]()
        print("done", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gil", description="share of a scan with the GIL held")
    parser.add_argument("--scale", type=float, default=1, help="scale factor of lineitem (default: 1)")
    parser.add_argument("--threads", type=int, default=1, help="threads of a job (default: 1)")
    parser.add_argument("--seconds", type=float, default=3, help="least seconds of a job (default: 3)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        serve(options)
        return
    print(f"lineitem {options.scale:g}, {options.threads} threads: share of the time with the GIL held")
    with scanner(options) as child:
        for job in ("read snappy", "read snappy, numbers", "read snappy, strings", "read zstd", "read gzip", "read lz4",
                    "read none", "read encrypted", "write snappy", "write zstd"):
            share, looks = child.share(job)
            print(f"{job:22} {share:6.1%}   ({looks} looks)", flush=True)


if __name__ == "__main__":
    main()
