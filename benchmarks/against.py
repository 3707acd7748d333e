"""Compare this source tree with another one: ``python -m benchmarks.against PATH`` runs jobs of tools/bench in both, in turns.

Each tree has a process for each job, and both use the packages of this interpreter. The other tree must be compiled. A pair is
one run in each process, one after the other, so a busy machine disturbs both alike. Processor time counts. The ratio is this
tree's time over the other's: the median of the pairs, and the interval that holds the true median with 95 % probability.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_PAIRS = 15
SCRATCH = Path("/dev/shm")
SERVE = "serve"             # first argument of a measuring process
SHORTEST = 0.1              # seconds: a shorter run is repeated, since the processor clock is coarse


def main(arguments: Sequence[str]) -> None:
    from benchmarks.jobs import JOBS, Job

    compared = [job for job in JOBS if not job.is_process]
    options = argparse.ArgumentParser("python -m benchmarks.against", description=str(__doc__))
    options.add_argument("tree", type=Path, help="root of the other source tree, compiled in place")
    all_names = ",".join(job.name for job in compared)
    options.add_argument("--jobs", default=all_names, help="names of jobs (default: all but processes)")
    options.add_argument("--pairs", type=int, default=DEFAULT_PAIRS, help="pairs for each job (default: %(default)s)")
    options.add_argument("--threads", type=int, default=1, help="threads of each run (default: %(default)s)")
    options.add_argument("--scale", type=float, default=1, help="TPC-H scale factor (default: %(default)s)")
    values = options.parse_args(arguments)
    by_name: dict[str, Job] = {job.name: job for job in compared}
    for name in values.jobs.split(","):
        if name not in by_name:
            options.error(f"there is no job {name!r}")
        with measurer(ROOT, name, values) as ours, measurer(values.tree.resolve(), name, values) as theirs:
            ratios = sorted(ours() / theirs() for _ in range(values.pairs))
        low, high = median_interval(ratios)
        print(f"{name:26} {statistics.median(ratios):.3f}  ({low:.3f} to {high:.3f})", flush=True)


def median_interval(ordered: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the median of sorted values, by the normal approximation of the sign test."""
    outside = max(0, round(len(ordered) / 2 - 0.98 * len(ordered) ** 0.5))
    return ordered[outside], ordered[-1 - outside]


@contextmanager
def measurer(tree: Path, job: str, values: argparse.Namespace) -> Iterator[Callable[[], float]]:
    """Start a process that imports fastpq from a tree. The yielded function runs the job and returns its processor seconds."""
    command = [sys.executable, __file__, SERVE, str(tree), job, str(values.scale), str(values.threads)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        requests, answers = process.stdin, process.stdout

        def measure() -> float:
            requests.write("run\n")
            requests.flush()
            return float(answers.readline())

        measure()       # the first run imports modules and touches memory
        yield measure
        requests.close()


def serve(tree: str, name: str, scale: float, threads: int) -> None:
    """Answer each line of standard input with the processor seconds of one run."""
    sys.path[0] = tree
    import fastpq

    if not Path(fastpq.__file__).is_relative_to(tree):
        raise SystemExit(f"fastpq was imported from {fastpq.__file__}, not from {tree}")
    sys.path[0] = str(ROOT)
    from benchmarks.data import path_of
    from benchmarks.jobs import BY_NAME
    from benchmarks.peers import Fastpq

    peer, job = Fastpq(threads), BY_NAME[name]
    path = path_of(job.data, scale)
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        target = Path(folder) / "written.parquet"
        table = peer.take(path, job) if job.kind == "write" else None

        def run() -> float:
            target.unlink(missing_ok=True)
            gc.collect()
            started = time.process_time()
            result: Any = None
            if job.kind == "write":
                peer.write(table, target, job)
            elif job.kind == "read":
                result = peer.read(path, job)
            else:
                peer.open_footer(path)
            seconds = time.process_time() - started
            del result
            return seconds

        repetitions = 1 + int(SHORTEST / max(run(), 1e-4))
        for _ in sys.stdin:
            print(statistics.fmean(run() for _ in range(repetitions)), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == [SERVE]:
        serve(sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5]))
    else:
        main(sys.argv[1:])
