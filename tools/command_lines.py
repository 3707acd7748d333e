"""The arguments of each command in tools/. With them, a help is printed and a mistake is told before anything is installed.

python3 -m tools.command_lines COMMAND --help       the help of tools/COMMAND, with the standard library alone
python3 -m tools.command_lines COMMAND ARGUMENT ... exit code 2 and a message if tools/COMMAND does not know the arguments
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.jobs import (
    ENCODINGS,
    EQUAL_WORK,
    FILE_SIZE,
    FLOOR,
    JOBS,
    KERNELS,
    OVERHEAD,
    PEER_NAMES,
    REWRITING,
    SELECTIVE,
    SHAPES,
    SPARK,
)
from tools import checks

SHARED_MEMORY = Path("/dev/shm")
DEMO_SCALE = 0.1
DEFAULT_RUNS = 5        # of a measurement

DEMO = "fastpq on real data: TPC-H lineitem to NumPy, to an encrypted file, and back, checked by Polars and pyarrow."
BENCH = """Measures fastpq and its peers on files in the page cache.

The job equal-work has the same input and the same result for all libraries: Arrow tables or NumPy arrays. In the other jobs, each
library reads into its own in-memory table, and writes from it. Every measurement runs in its own process. The result of each peer
is compared with pyarrow's before timing. A peer with another result is reported and not timed.
"""
FUZZ = """Mutates files, encoded streams, variants, geometries, Arrow schemas or keys, and reads them in child processes with
bounded memory and time.

A table or a typed error is right. A crash, a hang, another exception, unbounded memory, a table that Arrow refuses, or another
value than the original's is a finding, and its bytes are saved. --campaign takes the targets in turns and adds every run to a
ledger. The next campaign goes on behind the last number.
"""
RELEASE = """Builds the files of a release, checks them and tries them out: an sdist, and a wheel for each Python.

The sdist is built from a clean copy of the files known to git. Wheels are built from the unpacked sdist. The contents of both are
compared with the list of files, twine checks the metadata, auditwheel puts OpenSSL into the wheels, and tools/smoke.py runs in an
environment that has the wheel and its dependencies alone. The tests that cibuildwheel runs on each wheel run on the first one.
"""

# What tools/fuzz can do with a mutation; tests/corrupt/targets.py has a function for each.
FUZZ_TARGETS = (
    "paths", "read", "nested", "select", "rewrite", "kernel", "codecs", "variant", "wkb", "arrow_schema", "key_material",
    "keyring",
)
FUZZ_BUILDS = ("release", "debug", "guided")
USUAL_JOBS = (EQUAL_WORK, *(job.name for job in JOBS), SELECTIVE, KERNELS, ENCODINGS)
ONLY_BY_NAME = (FILE_SIZE, FLOOR, OVERHEAD, REWRITING, SHAPES, SPARK)
BENCH_JOBS = (*USUAL_JOBS, *ONLY_BY_NAME)


def parser_of(command: str, description: str) -> argparse.ArgumentParser:
    """Return a parser without arguments."""
    layout = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(prog=f"tools/{command}", description=description, formatter_class=layout)


def demo() -> argparse.ArgumentParser:
    parser = parser_of("demo", DEMO)
    parser.add_argument("--spark", action="store_true", help="the pipeline on Spark instead (needs a JDK 17)")
    scale = "TPC-H scale factor, with --spark (default: %(default)s)"
    parser.add_argument("--scale", type=float, default=DEMO_SCALE, help=scale)
    return parser


def bench() -> argparse.ArgumentParser:
    parser = parser_of("bench", BENCH)
    jobs = f"any of {', '.join(BENCH_JOBS)} (default: all but {', '.join(ONLY_BY_NAME[:-1])} and {ONLY_BY_NAME[-1]})"
    parser.add_argument("--jobs", default=",".join(USUAL_JOBS), help=jobs)
    parser.add_argument("--peers", default=",".join(PEER_NAMES), help=f"any of {', '.join(PEER_NAMES)} (default: all)")
    parser.add_argument("--threads", default=f"1,{os.cpu_count()}", help="numbers of threads (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=DEFAULT_RUNS, help="the shortest counts (default: %(default)s)")
    parser.add_argument("--scale", type=float, default=1, help="TPC-H scale factor (default: %(default)s)")
    scratch = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else Path("benchmarks")
    parser.add_argument("--scratch", type=Path, default=scratch, help="where writers write (default: %(default)s)")
    parser.add_argument("--publish", action="store_true", help="only put the saved results into docs and README")
    parser.add_argument("--spark", action="store_true", help="only fastpq.spark beside Spark's native source (needs a JDK 17)")
    return parser


def fuzz() -> argparse.ArgumentParser:
    parser = parser_of("fuzz", FUZZ)
    parser.add_argument("--count", type=int, default=20_000, help="mutations (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="other seeds, other mutations (default: %(default)s)")
    target = "what is done with them; may be repeated (default: read; in a campaign, all)"
    parser.add_argument("--target", choices=FUZZ_TARGETS, action="append", help=target)
    parser.add_argument("--corpus", type=Path, help="folder with files to mutate (default: pyarrow's and the test data)")
    parser.add_argument("--workers", type=int, default=2, help="child processes (default: %(default)s)")
    parser.add_argument("--time-limit", type=float, default=10, help="processor seconds for a mutation (default: %(default)s)")
    parser.add_argument("--memory", type=int, default=2048, help="MiB by which a child may grow (default: %(default)s)")
    parser.add_argument("--save", type=Path, default=Path("build/fuzz"), help="folder for reproducers (default: %(default)s)")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="only read one reproducer, in this process")
    parser.add_argument("--number", type=int, help="only do the mutation with this number, in this process")
    parser.add_argument("--campaign", action="store_true", help="take targets in turns, and keep a ledger")
    parser.add_argument("--seconds", type=float, default=3600, help="duration of a campaign (default: %(default)s)")
    build = "what a campaign runs: this tree; a copy with sanitizers; or one with coverage, for Atheris (default: %(default)s)"
    parser.add_argument("--build", choices=FUZZ_BUILDS, default="release", help=build)
    folder = "where a campaign keeps its ledger and seeds (default: %(default)s)"
    parser.add_argument("--folder", type=Path, default=Path("build/campaign"), help=folder)
    parser.add_argument("--summary", action="store_true", help="only add up the ledger")
    parser.add_argument("--built", action="store_true", help=argparse.SUPPRESS)     # this is the copy
    return parser


def release() -> argparse.ArgumentParser:
    parser = parser_of("release", RELEASE)
    parser.add_argument("--check", action="store_true", help="one wheel, for the running Python, from the tree as it is")
    parser.add_argument("--python", action="append", type=Path, metavar="PATH", help="build for this Python (repeatable)")
    parser.add_argument("--version", help="version to release, which version.py and the changelog must name, with a date")
    out = "folder for the files, whose older ones are removed (default: dist; build/release/dist with --check)"
    parser.add_argument("--out", type=Path, help=out)
    return parser


COMMANDS = {"demo": demo, "test": checks.parser, "bench": bench, "fuzz": fuzz, "release": release}


def check(command: str, arguments: Sequence[str]) -> None:
    """Print the help if it is asked for, and end the process if a command does not know its arguments."""
    if command == "test" and arguments[:1] != ["fast"]:
        checks.parse(arguments)
    elif command != "test" or {"-h", "--help"} & {*arguments}:      # what follows "fast" is for pytest
        COMMANDS[command]().parse_args(arguments)


if __name__ == "__main__":
    check(sys.argv[1], sys.argv[2:])
