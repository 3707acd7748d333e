"""Idle memory between reads, and its worth: ``python -m benchmarks.idle_memory``.

A process reads a file again and again, and drops each table before the next read. Printed for each limit of fastpq's idle memory,
and for pyarrow and Polars:

- processor seconds of a read after the first;
- kept: growth of the resident memory from before the first read until the last table is gone;
- reclaimable: the part of ``kept`` that the operating system may take back at any time;
- peak: growth of the resident memory at its highest.

The cases take turns, each in a process of its own; printed are medians. All readers' tables are compared first. Works on Linux.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from benchmarks.data import path_of
from benchmarks.equality import require_equal
from benchmarks.jobs import NUMERIC, STRINGS, Job
from benchmarks.peers import PEERS, environment
from benchmarks.processes import status_bytes

DEFAULT = "default"
LIMITS = ("0", "64", "256", "512", "1024", "2048", DEFAULT)     # MiB
COLUMNS = {"all": None, "numeric": NUMERIC, "strings": STRINGS}
PEERS_BESIDE = ("pyarrow", "polars")


class Usage(NamedTuple):
    """Processor time and memory of the repeated reads of one process.

    Attributes:
        processor: seconds of a read after the first.
        kept: bytes of resident memory after the last table is gone, beyond the bytes before the first read.
        reclaimable: bytes of ``kept`` that the operating system may take back at any time.
        peak: most bytes of resident memory, beyond the bytes before the first read.
    """

    processor: float
    kept: float
    reclaimable: float
    peak: float


def repeated_reads(name: str, limit: str, path: Path, job: Job, threads: int, reads: int) -> Usage:
    """Read a file several times in this process, after a first read that is not timed."""
    peer = PEERS[name](threads)
    gc.collect()
    if name == "fastpq" and limit != DEFAULT:
        import fastpq.memory

        fastpq.memory.set_idle_limit(int(limit) << 20)
    peer.open_footer(path)      # imports the library
    before = status_bytes(Path("/proc/self/status").read_text(), "VmRSS")
    peer.read(path, job)
    started = time.process_time()
    for _ in range(reads):
        peer.read(path, job)
    processor = (time.process_time() - started) / reads
    gc.collect()
    status = Path("/proc/self/status").read_text()
    reclaimable = status_bytes(Path("/proc/self/smaps_rollup").read_text(), "LazyFree")
    kept, peak = (status_bytes(status, field) - before for field in ("VmRSS", "VmHWM"))
    return Usage(processor, kept, reclaimable, peak)


def check(path: Path, job: Job, threads: int) -> None:
    """Compare the tables of all readers.

    Raises:
        DifferenceError: the tables differ.
    """
    columns = list(job.columns) if job.columns else None
    truth = pq.read_table(path, columns=columns)
    for name in ("fastpq", *PEERS_BESIDE):
        peer = PEERS[name](threads)
        require_equal(peer.to_arrow(peer.read(path, job)), truth)


def measure(cases: list[tuple[str, str]], options: argparse.Namespace) -> dict[tuple[str, str], Usage]:
    """Medians of several rounds, by reader and limit."""
    found: dict[tuple[str, str], list[Usage]] = {case: [] for case in cases}
    for _ in range(options.rounds):
        for reader, limit in cases:
            command = [sys.executable, "-m", "benchmarks.idle_memory", "--child", reader, "--limits", limit]
            for name in ("data", "columns", "scale", "threads", "reads"):
                command += [f"--{name}", str(getattr(options, name))]
            done = subprocess.run(command, env=environment(options.threads), stdout=subprocess.PIPE, text=True, check=True)
            found[reader, limit].append(Usage(**json.loads(done.stdout)))
    return {
        case: Usage(*(statistics.median(values) for values in zip(*usages, strict=True))) for case, usages in found.items()
    }


def options_of_the_command() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.idle_memory", description=__doc__)
    parser.add_argument("--data", default="lineitem", help="file: lineitem, snappy, zstd, plain or nulls (default: %(default)s)")
    parser.add_argument("--columns", choices=COLUMNS, default="all", help="columns to read (default: %(default)s)")
    parser.add_argument("--scale", type=float, default=1, help="TPC-H scale factor (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="threads of a read (default: %(default)s)")
    parser.add_argument("--reads", type=int, default=5, help="timed reads of a process (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="processes of a case (default: %(default)s)")
    parser.add_argument("--limits", default=",".join(LIMITS), help="limits in MiB (default: %(default)s)")
    parser.add_argument("--child", choices=("fastpq", *PEERS_BESIDE), help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    options = options_of_the_command()
    path = path_of(options.data, options.scale)
    job = Job("idle-memory", "read", data=options.data, columns=COLUMNS[options.columns])
    if options.child:
        usage = repeated_reads(options.child, options.limits, path, job, options.threads, options.reads)
        print(json.dumps(usage._asdict()))
        return
    check(path, job, options.threads)
    cases = [("fastpq", limit) for limit in options.limits.split(",")] + [(name, "") for name in PEERS_BESIDE]
    found = measure(cases, options)
    least = min(usage.processor for (name, _), usage in found.items() if name == "fastpq")
    print(f"{path.name}, columns: {options.columns}, {options.threads} threads; sizes in MiB")
    print(f"{'reader':8} {'limit':>8} {'processor':>10} {'ratio':>6} {'kept':>6} {'reclaimable':>12} {'peak':>6}")
    for (name, limit), usage in found.items():
        kept, reclaimable, peak = (round(size / (1 << 20)) for size in usage[1:])
        print(f"{name:8} {limit:>8} {usage.processor:9.3f}s {usage.processor / least:6.2f} {kept:6} {reclaimable:12} {peak:6}")


if __name__ == "__main__":
    main()
