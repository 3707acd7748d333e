"""The child process: reads numbers of mutations from standard input, answers each with one line of JSON."""

from __future__ import annotations

import faulthandler
import json
import resource
import signal
import sys
import traceback
from pathlib import Path

import fastpq
from tests.corrupt.mutate import mutate
from tests.corrupt.targets import TARGETS, samples_for


def limit_memory(more: int) -> None:
    """Let the address space grow by so many bytes from here, and no more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    bound = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))


def outcome(target: str, data: bytes, index: int) -> dict[str, str]:
    """What came of one mutation: "ok", the name of a typed error, or "unexpected" with the traceback."""
    try:
        TARGETS[target](data, index)
    except fastpq.ParquetError as error:
        return {"outcome": type(error).__name__}
    except BaseException:       # whatever it is, it is the finding
        return {"outcome": "unexpected", "detail": traceback.format_exc()}
    return {"outcome": "ok"}


def main() -> None:
    request = json.loads(sys.argv[1])
    faulthandler.enable()
    samples = samples_for(request["target"], Path(request["corpus"]) if request["corpus"] else None)
    limit_memory(request["memory"])
    print(json.dumps({"outcome": "ready", "samples": len(samples)}), flush=True)
    for line in sys.stdin:
        index = int(line)
        signal.setitimer(signal.ITIMER_PROF, request["time_limit"])     # SIGPROF ends the process
        _, data = mutate(samples, request["seed"], index)
        answer = outcome(request["target"], data, index)
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
