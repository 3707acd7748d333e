"""Reads of a file outside of the page cache, beside pyarrow and Polars: ``python -m benchmarks.cold``.

Before each read the file leaves the page cache of the operating system (but not a disk's caches).
Printed are medians of elapsed seconds, of readers in turns, and their ratios to the better peer. Tables are compared first. Works
on Linux, with the benchmarks' data on a disk.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.data import path_of
from benchmarks.equality import require_equal
from benchmarks.jobs import NUMERIC, STRINGS, Job
from benchmarks.peers import PEERS, environment

READERS = ("fastpq", "pyarrow", "polars")
JOBS = {"all": None, "numeric": NUMERIC, "strings": STRINGS, "one column": ("l_comment",)}


def forget(path: Path) -> None:
    """Take a file out of the page cache."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)        # changed pages stay in the cache
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def measure(job: Job, path: Path, threads: int, rounds: int) -> dict[str, float]:
    """Median of elapsed seconds by reader."""
    reads = {name: partial(PEERS[name](threads).read, path, job) for name in READERS}
    truth = pq.read_table(path, columns=list(job.columns) if job.columns else None)
    for name, read in reads.items():
        require_equal(PEERS[name](threads).to_arrow(read()), truth)
    seconds: dict[str, list[float]] = {name: [] for name in READERS}
    for _ in range(rounds):
        for name, read in reads.items():
            forget(path)
            started = time.perf_counter()
            read()
            seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(found) for name, found in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cold", description=__doc__)
    parser.add_argument("--scale", type=float, default=1, help="TPC-H scale factor (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of a read (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=9, help="reads of a reader (default: %(default)s)")
    options = parser.parse_args()
    os.environ.update(environment(options.threads))     # before Polars is imported
    path = path_of("lineitem", options.scale)
    print(f"{path.name}, not in the page cache, {options.threads} threads; seconds, and fastpq's as a ratio to the better peer")
    for name, columns in JOBS.items():
        found = measure(Job("cold", "read", columns=columns), path, options.threads, options.rounds)
        ratio = found["fastpq"] / min(found[peer] for peer in READERS[1:])
        print(f"{name:12} " + "  ".join(f"{reader} {found[reader]:.3f}" for reader in READERS) + f"  {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
