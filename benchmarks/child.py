"""One measurement in a process of its own: ``python -m benchmarks.child '{"task": ...}'`` prints its result as JSON."""

from __future__ import annotations

import gc
import inspect
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data import WIDE_COLUMNS, path_of
from benchmarks.equality import require_equal
from benchmarks.jobs import BY_NAME, FILE_SIZE, FLOOR, Job
from benchmarks.kernels import MODULE_SIZES
from benchmarks.peers import PEERS, Fastpq, Peer, Polars, PyArrow, environment
from benchmarks.processes import most_memory, process, status_bytes

MEMCPY_BYTES = 64 << 20
KERNEL_SECONDS = 0.2


def check(peer: Peer, job: Job, scale: float, scratch: Path) -> dict[str, Any]:
    """Run a job once, and compare the result with the values read by pyarrow.

    Raises:
        DifferenceError: the values differ.
    """
    path = path_of(job.data, scale)
    if job.kind == "footer":
        assert peer.open_footer(path) == WIDE_COLUMNS
        return {"rows": 0, "bytes": path.stat().st_size}
    if job.kind == "import":
        return {"rows": 0, "bytes": 0}
    if job.kind in {"read", "process"}:
        plain = path_of("lineitem", scale) if job.encrypted else path
        truth = pq.read_table(plain, columns=job.columns and list(job.columns))
        require_equal(peer.to_arrow(peer.read(path, job)), truth)
        return {"rows": truth.num_rows, "bytes": path.stat().st_size}
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        target = Path(folder) / "written.parquet"
        peer.write(peer.take(path, job), target, job)
        truth = pq.read_table(path)
        # pyarrow takes column keys only from a key service, and Polars writes no key metadata for a key service
        by_columns = isinstance(peer, Polars) and job.encrypted == "columns"
        reader = Fastpq(peer.threads) if by_columns else PyArrow(peer.threads)
        require_equal(reader.to_arrow(reader.read(target, replace(job, kind="read", columns=None))), truth)
        return {"rows": truth.num_rows, "bytes": target.stat().st_size}


def measure(peer: Peer, job: Job, scale: float, scratch: Path, runs: int) -> dict[str, Any]:
    """Seconds of several runs, without the first run, and the memory of a process that does the job, in bytes.

    The result of a run is freed before the next run. Memory is the growth of resident memory from before the first run to the
    highest of all runs; for a job that is a process, all resident memory.
    """
    path = path_of(job.data, scale)
    if job.is_process:
        program, variables = peer.program(path, job), environment(peer.threads)
        memory = most_memory(program, variables)
        return {"seconds": [process(program, variables).wall for _ in range(runs)], "memory": memory}
    if job.kind == "footer":
        return measured(lambda: peer.open_footer(path), runs)
    if job.kind == "read":
        return measured(lambda: peer.read(path, job), runs)
    table = peer.take(path, job)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        target = Path(folder) / "written.parquet"
        return measured(lambda: peer.write(table, target, job), runs, before=lambda: target.unlink(missing_ok=True))


def measured(action: Callable[[], Any], runs: int, before: Callable[[], Any] = lambda: None) -> dict[str, Any]:
    """Seconds and memory of several runs, as ``measure`` gives them."""
    gc.collect()
    resident = resident_memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")       # the highest memory from now on (proc(5))
    seconds = repeat(action, runs, before)
    return {"seconds": seconds, "memory": max(0, resident_memory("VmHWM") - resident)}


def resident_memory(name: str) -> int:
    return status_bytes(Path("/proc/self/status").read_text(), name)


def repeat(action: Callable[[], Any], runs: int, before: Callable[[], Any] = lambda: None) -> list[float]:
    seconds = []
    for _ in range(runs + 1):
        before()
        gc.collect()
        started = time.perf_counter()
        result = action()
        seconds.append(time.perf_counter() - started)
        del result
    return seconds[1:]


def kernel_grid() -> dict[str, Any]:
    """GB/s of every kernel, and of memcpy in the same process."""
    from benchmarks import kernels

    source = np.zeros(MEMCPY_BYTES, np.uint8)
    target = np.empty_like(source)
    rates = {"memcpy": MEMCPY_BYTES / shortest(lambda: np.copyto(target, source)) / 1e9}
    for grid in vars(kernels).values():
        if inspect.isgeneratorfunction(grid) and not inspect.signature(grid).parameters:
            for name, size, action in grid():
                rates[name] = size / shortest(action) / 1e9
    return {"gigabytes_per_second": rates | openssl_speed()}


def lookups() -> list[dict[str, Any]]:
    """Measurements of benchmarks.selective; failures are printed on standard error."""
    from benchmarks import selective

    found = selective.measure(
        selective.DEFAULT_RUNS, selective.DEFAULT_LATENCY, list(selective.PEERS), lambda line: print(line, file=sys.stderr)
    )
    return [asdict(lookup) for lookup in found]


def file_sizes(runs: int, scale: float, scratch: Path) -> list[dict[str, Any]]:
    """Measurements of benchmarks.file_size. A line about each table is printed on standard error."""
    from benchmarks import file_size

    records = file_size.measure(
        runs, scale, scratch, file_size.TABLES, file_size.WRITERS, lambda line: print(line, file=sys.stderr)
    )
    return [asdict(record) for record in records]


def openssl_speed() -> dict[str, float]:
    """GB/s of AES-128 by mode and module size, from ``openssl speed``, by processor time; empty without the command."""
    rates: dict[str, float] = {}
    command = shutil.which("openssl")
    for cipher in ("gcm", "ctr") if command else ():
        for size in MODULE_SIZES:
            options = ["-seconds", "1", "-bytes", str(size), "-evp", f"aes-128-{cipher}"]
            done = subprocess.run([str(command), "speed", "-mr", *options], capture_output=True, text=True, check=True)
            last = [line for line in done.stdout.splitlines() if line.startswith("+F:")][-1]
            rates[f"AES-{cipher.upper()} of openssl speed, {size} bytes"] = float(last.split(":")[-1]) / 1e9
    return rates


def shortest(action: Callable[[], Any]) -> float:
    """Shortest time of one call, among calls for KERNEL_SECONDS."""
    best = float("inf")
    deadline = time.perf_counter() + KERNEL_SECONDS
    while (started := time.perf_counter()) < deadline:
        action()
        best = min(best, time.perf_counter() - started)
    return best


def main() -> int:
    request = json.loads(sys.argv[1])
    if request["task"] == "kernels":
        result = kernel_grid()
    elif request["task"] == "selective":
        result = {"lookups": lookups()}
    elif request["task"] == FILE_SIZE:
        result = {"records": file_sizes(request["runs"], request["scale"], Path(request["scratch"]))}
    elif request["task"] == FLOOR:
        from benchmarks import floor

        result = asdict(floor.measure_lineitem(request["codec"], request["threads"], floor.TURNS, request["scale"]))
    else:
        pa.set_cpu_count(request["threads"])
        job = BY_NAME[request["job"]]
        peer = PEERS[request["peer"]](request["threads"])
        arguments = (peer, job, request["scale"], Path(request["scratch"]))
        result = check(*arguments) if request["task"] == "check" else measure(*arguments, request["runs"])
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
