"""``tools/bench``: measures fastpq and its peers, from a file in the page cache to the library's own in-memory table.

Every measurement runs in its own process. Each peer's result is compared with pyarrow's before timing; a peer with a different
result is reported and not timed. Writers start from their own in-memory table and write to the scratch folder.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import report
from benchmarks.data import path_of
from benchmarks.jobs import BY_NAME, ENCODINGS, JOBS, KERNELS, SELECTIVE, Job
from benchmarks.peers import PEERS, environment
from benchmarks.results import Record, Results

SHARED_MEMORY = Path("/dev/shm")
DEFAULT_RUNS = 5
TIMEOUT = 1800  # seconds for one measurement


class MeasurementError(Exception):
    """A child process failed; the message is the last line of its standard error."""


def in_child(request: dict[str, Any], threads: int) -> dict[str, Any]:
    """Run one measurement in a child process; returns the JSON printed by the child."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.child", json.dumps(request)],
        capture_output=True,
        text=True,
        env=environment(threads),
        timeout=TIMEOUT,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise MeasurementError(lines[-1] if lines else f"ended with {done.returncode}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def run_job(job: Job, peers: list[str], threads: list[int], options: argparse.Namespace, results: Results) -> None:
    console = Console(stderr=True)
    path_of(job.data, options.scale)
    for name in peers:
        peer = PEERS[name]
        if not peer.does(job):
            continue
        request = {"job": job.name, "peer": name, "runs": options.runs}
        request |= {"scale": options.scale, "scratch": str(options.scratch)}
        try:
            facts = in_child({**request, "task": "check", "threads": max(threads)}, max(threads))
            for count in threads if peer.parallel else [1]:
                measured = in_child({**request, "task": "measure", "threads": count}, count)
                record = Record(job.name, name, count, measured["seconds"], facts["rows"], facts["bytes"], measured["memory"])
                results.add(record)
                console.print(f"{job.name}: {name}, {count} threads: {record.best:.3f} s")
        except MeasurementError as error:
            results.refused[f"{job.name} {name}"] = str(error)
            console.print(f"{job.name}: {name}: {error}", style="red", markup=False)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tools/bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [job.name for job in JOBS]
    own = [SELECTIVE, KERNELS, ENCODINGS]
    parser.add_argument("--jobs", default=",".join([*names, *own]), help=f"any of {', '.join([*names, *own])}")
    parser.add_argument("--peers", default=",".join(PEERS), help=f"any of {', '.join(PEERS)}")
    parser.add_argument("--threads", default=f"1,{os.cpu_count()}", help="numbers of threads (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=DEFAULT_RUNS, help="the shortest counts (default: %(default)s)")
    parser.add_argument("--scale", type=float, default=1, help="TPC-H scale factor (default: %(default)s)")
    scratch = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else Path(__file__).parent
    parser.add_argument("--scratch", type=Path, default=scratch, help="where writers write (default: %(default)s)")
    parser.add_argument("--publish", action="store_true", help="only put the saved results into docs and README")
    parser.add_argument("--spark", action="store_true", help="only fastpq.spark beside Spark's native source (needs a JDK 17)")
    options = parser.parse_args(arguments)
    options.jobs = options.jobs.split(",")
    options.peers = options.peers.split(",")
    options.threads = sorted({int(count) for count in options.threads.split(",")})
    for kind, chosen, known in (("job", options.jobs, {*names, *own}), ("peer", options.peers, set(PEERS))):
        if unknown := set(chosen) - known:
            parser.error(f"no {kind} {unknown.pop()!r}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    if options.spark:
        from benchmarks.spark import main as measure_spark

        return measure_spark(options.scale, options.runs, options.scratch, Console(width=None if sys.stdout.isatty() else 130))
    results = Results.load(options.scale)
    console = Console(width=None if sys.stdout.isatty() else 130)
    if options.publish:
        report.publish(results)
        return 0
    versions = {name: PEERS[name].installed() for name in options.peers}
    results.versions.update({name: version for name, version in versions.items() if version})
    peers = [name for name in options.peers if versions[name]]
    for name in options.jobs:
        if name == KERNELS:
            results.kernels = in_child({"task": "kernels"}, 1)["gigabytes_per_second"]
        elif name == ENCODINGS:     # prints its grid itself
            subprocess.run([sys.executable, "-m", "benchmarks.encodings", "--runs", str(options.runs)], check=True)
        elif name == SELECTIVE:
            results.selective = in_child({"task": "selective"}, max(options.threads))["lookups"]
        else:
            run_job(BY_NAME[name], peers, options.threads, options, results)
        saved = results.save()
    report.print_tables(results, console)
    picture = report.draw(results)
    console.print(f"saved: {saved}" + (f", {picture}" if picture else ""))
    return 1 if any(what.split()[1] == report.OURS for what in results.refused) else 0


if __name__ == "__main__":
    sys.exit(main())
