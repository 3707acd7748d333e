"""The walk of a reader through the code: functions and files from a call to its result, counted over a trace.

Functions of fastpq are listed in the order of their first calls, as a reader follows them. A move is a step to a function of
another file, a return a move to a file already left. Compiled functions are not traced: sys.setprofile sees calls of Python
functions alone.

python -m tools.walk            the counts of each job
python -m tools.walk JOB        the functions of one job
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

import fastpq

PACKAGE = Path(fastpq.__file__).parent
KEY = b"0123456789012345"
ROWS = 10_000


class Walk(NamedTuple):
    """Functions in the order of their first calls, each with its file."""

    functions: list[tuple[str, str]]

    @property
    def moves(self) -> list[str]:
        """The file of each move."""
        return [other for (one, _), (other, _) in pairwise(self.functions) if one != other]

    @property
    def files(self) -> int:
        """Number of files."""
        return len({file for file, _ in self.functions})

    @property
    def returns(self) -> int:
        """Number of moves to files already left."""
        return len(self.moves) - (self.files - 1)


def trace(work: Callable[[], object]) -> Walk:
    """The walk of some work; the first run, untraced, imports modules and fills caches."""
    work()
    found: dict[tuple[str, str], None] = {}

    def see(frame: FrameType, event: str, argument: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            name = frame.f_code.co_qualname if sys.version_info >= (3, 11) else frame.f_code.co_name
            if not name.endswith(("<module>", "<lambda>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")):
                found[str(path.relative_to(PACKAGE)), name] = None

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return Walk(list(found))


def jobs() -> dict[str, Callable[[], object]]:
    """Reads of a flat column, of lists of text and of an encrypted column, and a write of a flat column."""
    flat = {"a": np.arange(ROWS)}
    lists = {"a": [["some", "text"], [], None] * (ROWS // 3)}
    keys = fastpq.FileEncryptionProperties(KEY)
    opened = fastpq.FileDecryptionProperties(KEY)

    def file(data: Any, **options: Any) -> bytes:
        target = io.BytesIO()
        fastpq.write_table(data, target, **options)
        return target.getvalue()

    plain, nested, sealed = file(flat), file(lists), file(flat, encryption_properties=keys)
    return {
        "read-flat": lambda: fastpq.read_table(plain, threads=1),
        "read-list-of-strings": lambda: fastpq.read_table(nested, threads=1),
        "read-encrypted": lambda: fastpq.read_table(sealed, threads=1, decryption_properties=opened),
        "write-flat": lambda: fastpq.write_table(flat, io.BytesIO(), threads=1),
    }


def main() -> int:
    """Print the counts of all jobs, or the functions of one."""
    known = jobs()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", nargs="?", choices=sorted(known))
    wanted = parser.parse_args().job
    if wanted is not None:
        last = ""
        for file, name in trace(known[wanted]).functions:
            print(f"{'' if file == last else file:36} {name}")
            last = file
        return 0
    print(f"{'job':24}{'functions':>10}{'files':>8}{'moves':>8}{'returns':>8}")
    for name, work in known.items():
        walk = trace(work)
        print(f"{name:24}{len(walk.functions):10}{walk.files:8}{len(walk.moves):8}{walk.returns:8}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
