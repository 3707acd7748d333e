"""``python -m tests.faults``: kills writers and lets their system calls fail at random moments, for each way of writing."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.faults import campaign
from tests.faults.ways import FAULTY, WAYS


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--trials", type=int, default=300, help="kills, and errors, for each way (default: %(default)s)")
    parser.add_argument("--every-call", action="store_true", help="no random moments, but each call in turn")
    parser.add_argument("--seed", type=int, default=1, help="other seeds, other moments (default: %(default)s)")
    parser.add_argument("--ways", nargs="*", default=[*WAYS], choices=[*WAYS, *FAULTY], metavar="WAY", help=", ".join(WAYS))
    parser.add_argument("--scratch", type=Path, help="folder on the filesystem to try (default: for temporary files)")
    options = parser.parse_args(arguments)
    if "FASTPQ_FAULTS" not in os.environ:
        return campaign.run_with_shim([*arguments], capture=False).returncode
    failures = []
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        for name in options.ways if options.every_call else ():
            result = campaign.every_call(name, Path(scratch).resolve())
            failures += result.failures
            ends = ", ".join(f"{end} {count}" for end, count in sorted(result.outcomes.items()))
            print(f"{name}: {ends}; {len(result.failures)} failures", flush=True)
        for name in () if options.every_call else options.ways:
            for kills in (True, False):
                result = campaign.trials(name, options.trials, kills, options.seed, Path(scratch).resolve())
                failures += result.failures
                ends = ", ".join(f"{end} {count}" for end, count in sorted(result.outcomes.items()))
                what = "kills" if kills else "errors"
                print(f"{name}: {options.trials} {what}: {ends}; {len(result.failures)} failures", flush=True)
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
