"""``tools/fuzz``: mutates real files, encoded streams, variants, geometries or Arrow schemas and reads them in child processes
with bounded memory and time.

A table or a typed error is right; a crash, a hang, another exception or unbounded memory is a finding; its bytes are
saved.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.corrupt import campaign
from tests.corrupt.mutate import mutate
from tests.corrupt.targets import FUZZED, TARGETS, samples_for

REPRODUCERS = Path("build/fuzz")
SHOWN = 5
MIB = 1 << 20


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tools/fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=20_000, help="mutations (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="other seeds, other mutations (default: %(default)s)")
    parser.add_argument("--target", choices=FUZZED, default="read", help="what is done with them (default: %(default)s)")
    parser.add_argument("--corpus", type=Path, help="folder of files to mutate (default: pyarrow's and the test data)")
    parser.add_argument("--workers", type=int, default=2, help="child processes (default: %(default)s)")
    parser.add_argument("--time-limit", type=float, default=10, help="processor seconds for a mutation (default: %(default)s)")
    parser.add_argument("--memory", type=int, default=2048, help="MiB by which a child may grow (default: %(default)s)")
    parser.add_argument("--save", type=Path, default=REPRODUCERS, help="folder for reproducers (default: %(default)s)")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="only read one reproducer, in this process")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    if options.replay:
        TARGETS[options.target](options.replay.read_bytes(), int(options.replay.stem.split("-")[-1]))
        return 0
    settings = campaign.Settings(
        count=options.count,
        seed=options.seed,
        corpus=options.corpus,
        workers=options.workers,
        time_limit=options.time_limit,
        memory=options.memory * MIB,
        target=options.target,
    )
    started = time.monotonic()
    findings = campaign.run(settings)
    seconds = time.monotonic() - started
    outcomes = ", ".join(f"{name} {count}" for name, count in findings.outcomes.most_common())
    print(f"fuzz: {options.target}, {options.count} mutations, seed {options.seed}, {seconds:.0f} s: {outcomes}")
    samples = samples_for(options.target, options.corpus) if findings.failures else []
    for place, (index, outcome, detail) in enumerate(sorted(findings.failures)):
        what, data = mutate(samples, options.seed, index)
        options.save.mkdir(parents=True, exist_ok=True)
        path = options.save / f"{options.target}-seed{options.seed}-{index}"
        path.write_bytes(data)
        if place < SHOWN:
            print(f"\n{outcome}: {what}\n  tools/fuzz --target {options.target} --replay {path}\n{detail[-1500:]}")
    if findings.failures:
        print(f"\nfuzz: {len(findings.failures)} findings in {options.save}")
    return 1 if findings.failures else 0


if __name__ == "__main__":
    sys.exit(main())
