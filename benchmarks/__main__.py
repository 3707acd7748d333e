"""``tools/bench``: measures fastpq and its peers, each measurement in its own process."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from benchmarks import equal_work, floor, report, shapes
from benchmarks.data import path_of
from benchmarks.jobs import (
    BY_NAME,
    ENCODINGS,
    EQUAL_WORK,
    FILE_SIZE,
    FLOOR,
    KERNELS,
    OVERHEAD,
    REWRITING,
    SELECTIVE,
    SHAPES,
    SPARK,
    Job,
)
from benchmarks.peers import PEERS, environment
from benchmarks.results import Record, Results
from tools import command_lines

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
    """Parse the command line, with lists split."""
    parser = command_lines.bench()
    options = parser.parse_args(arguments)
    options.jobs = options.jobs.split(",")
    options.peers = options.peers.split(",")
    options.threads = sorted({int(count) for count in options.threads.split(",")})
    for kind, names, choices in (("job", options.jobs, command_lines.BENCH_JOBS), ("peer", options.peers, PEERS)):
        if unknown := set(names) - set(choices):
            parser.error(f"no {kind} {unknown.pop()!r}")
    if SPARK in options.jobs and len(options.jobs) > 1:
        parser.error(f"the job {SPARK} stands alone")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    if options.spark:
        from benchmarks.spark import main as measure_spark

        return measure_spark(options.scale, options.runs, options.scratch, Console(width=None if sys.stdout.isatty() else 130))
    if SPARK in options.jobs:
        from benchmarks.spark_bars import main as measure_bars

        return measure_bars(options.scale, options.runs, options.scratch, Console(width=None if sys.stdout.isatty() else 130))
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
        elif name == EQUAL_WORK:
            measured = equal_work.measure_all(peers, options.threads, options.runs, options.scale, options.scratch, "", print)
            results.equal_work = [asdict(record) for record in measured]
        elif name == FILE_SIZE:
            request = {"task": FILE_SIZE, "runs": options.runs, "scale": options.scale, "scratch": str(options.scratch)}
            results.file_size = in_child(request, 1)["records"]
        elif name == FLOOR:
            requests = [{"codec": codec, "threads": count} for codec in floor.CODECS for count in options.threads]
            results.floor = [
                in_child({"task": FLOOR, "scale": options.scale, **request}, request["threads"]) for request in requests
            ]
        elif name == OVERHEAD:
            command = [sys.executable, "-m", "benchmarks.overhead", "--scale", str(options.scale)]
            subprocess.run([*command, "--scratch", str(options.scratch)], check=True)
        elif name == REWRITING:
            command = [sys.executable, "-m", "benchmarks.rewriting", "--runs", str(options.runs)]
            subprocess.run([*command, "--scratch", str(options.scratch)], check=True)
        elif name == SHAPES:
            shape_records, failures = shapes.measure_all("", peers, options.threads, options.runs)
            results.shapes = [asdict(record) for record in shape_records]
            console.print(*failures, sep="\n")
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
