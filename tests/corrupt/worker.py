"""The child process: reads ranges of mutations from standard input, and answers each range with one line of JSON."""

from __future__ import annotations

import faulthandler
import gc
import json
import mmap
import os
import re
import resource
import signal
import sys
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import fastpq
from tests.corrupt.targets import TARGETS, mutation_of, samples_for

MOST_DETAILS = 20       # findings of one range that are told in full


def limit_memory(more: int, *, hard: bool = True) -> None:
    """Let the address space grow by so many bytes from here, and no more; the address sanitizer's does anyway."""
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    bound = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound if hard else resource.getrlimit(resource.RLIMIT_AS)[1]))


def outcome(target: str, mutated: Any, index: int) -> tuple[str, str]:
    """What came of one mutation: "ok", the name of a typed error, or "unexpected" with the traceback."""
    try:
        TARGETS[target](mutated, index)
    except fastpq.ParquetError as error:
        return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == fastpq.errors.__name__), ""
    except BaseException:       # whatever it is, it is the finding
        return "unexpected", traceback.format_exc()
    return "ok", ""


def main() -> None:
    request = json.loads(sys.argv[1])
    faulthandler.enable()
    target, seed, seconds = request["target"], request["seed"], request["time_limit"]
    samples = samples_for(target, Path(request["corpus"]) if request["corpus"] else None)
    make = mutation_of(target)
    with open(request["progress"], "r+b") as file:
        progress = mmap.mmap(file.fileno(), 8)      # the number at work, for the parent, should this process die
    limit_memory(request["memory"])
    gc.collect()
    gc.freeze()     # the samples live as long as the process: no collection visits them again
    print(json.dumps({"samples": len(samples)}), flush=True)
    for line in sys.stdin:
        start, stop = map(int, line.split())
        outcomes, kinds, failures = Counter[str](), Counter[str](), list[tuple[int, str, str]]()
        for index in range(start, stop):
            progress[:] = index.to_bytes(8, "little")
            signal.setitimer(signal.ITIMER_PROF, seconds)       # SIGPROF ends the process
            what, mutated = make(samples, seed, index)
            found, detail = outcome(target, mutated, index)
            signal.setitimer(signal.ITIMER_PROF, 0)
            outcomes[found] += 1
            kinds[kind_of(what)] += 1
            if found == "unexpected":
                failures.append((index, found, detail if len(failures) < MOST_DETAILS else ""))
        print(json.dumps({"outcomes": outcomes, "kinds": kinds, "failures": failures}), flush=True)


def kind_of(what: str) -> str:
    """The first mutation in "sample: mutation, mutation", without the field's name."""
    found = re.match("[a-z_ ]+", what.rpartition(": ")[2])
    return found[0].strip() if found else "other"


if __name__ == "__main__":
    main()
