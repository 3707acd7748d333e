"""Trials of interrupted writes: each forks a child, arms a fault of the shim at a random system call, and checks the files.

A write killed at any system call, or whose system call fails, leaves old or new files, and nothing that cannot be listed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.faults.ways import FAULTY, WAYS, TornError, Way

SHIM = Path(__file__).with_name("shim.c")
ROOT = Path(__file__).parents[2]

DONE, RAISED, OTHER, INTERRUPTED = 0, 3, 4, 5       # exit codes of a child
COUNTING, FAIL, SHORT_WRITE, KILL_BEFORE, KILL_AFTER, FULL_DISK, INTERRUPT = range(7)      # enum Fault of shim.c

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)
ERRORS = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EMFILE)


class Fault(NamedTuple):
    """What happens, at which of the calls, and the signal or the error number."""

    kind: int
    at: int
    number: int


@dataclass
class Result:
    """Outcomes of the trials of a way, by kind of fault, and descriptions of failures."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def built(folder: Path) -> Path:
    """The compiled shim.

    Raises:
        FileNotFoundError: there is no C compiler.
    """
    library = folder / "shim.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", str(library), str(SHIM), "-ldl"]
    subprocess.run(command, check=True)
    return library


def run_with_shim(
    arguments: list[str], capture: bool = True, seconds: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m tests.faults`` with the shim, and capture its output or let it appear.

    Raises:
        TimeoutExpired: the trials take more seconds.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LD_PRELOAD": str(built(Path(folder))), "FASTPQ_FAULTS": "1"}
        command = [sys.executable, "-m", "tests.faults", *arguments]
        return subprocess.run(command, env=environment, cwd=ROOT, check=False, capture_output=capture, text=True, timeout=seconds)


def chosen(draw: random.Random, kills: bool, calls: int) -> Fault:
    at = draw.randint(1, calls)
    if kills:
        return Fault(draw.choice((KILL_BEFORE, KILL_AFTER)), at, draw.choice(SIGNALS))
    kind = draw.choice((FAIL, FAIL, SHORT_WRITE, FULL_DISK))
    return Fault(kind, at, errno.ENOSPC if kind == FULL_DISK else draw.choice(ERRORS))


def forked(way: Way, fault: Fault, shim: ctypes.CDLL) -> tuple[int, int]:
    """Write in a child with a fault; returns the child's exit code, negative for a signal, and its number of calls."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        code = OTHER
        try:
            for number in (signal.SIGTERM, signal.SIGHUP):      # nohup ignores the latter, and a child would wait for its end
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            if way.named:
                del os.O_TMPFILE
            shim.fault_arm(os.fsencode(way.folder), fault.kind, ctypes.c_long(fault.at), fault.number)
            try:
                way.write()
                code = DONE
            except OSError:
                code = RAISED
            except KeyboardInterrupt:
                code = INTERRUPTED
            os.write(theirs, str(shim.fault_calls()).encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(theirs)
    _, status = os.waitpid(child, 0)
    with os.fdopen(ours, "rb") as told:
        calls = int(told.read() or 0)
    return os.waitstatus_to_exitcode(status), calls


def trials(name: str, count: int, kills: bool, seed: int, scratch: Path) -> Result:
    """Interrupt a way of writing at random calls.

    Args:
        name: the way, of WAYS or FAULTY.
        count: number of trials.
        kills: signals that end the process; else errors of system calls.
        seed: other seeds, other moments.
        scratch: folder for the files.
    """
    draw, result = random.Random(f"{seed} {name} {kills}"), Result()
    calls = _trial(name, Fault(COUNTING, 0, 0), scratch, result)
    for _ in range(count):
        _trial(name, chosen(draw, kills, calls), scratch, result)
    return result


def every_call(name: str, scratch: Path) -> Result:
    """Interrupt a way of writing at each of its calls, in each way that ends it: kills, errors, a full disk and Ctrl-C.

    Args:
        name: the way, of WAYS or FAULTY.
        scratch: folder for the files.
    """
    result = Result()
    calls = _trial(name, Fault(COUNTING, 0, 0), scratch, result)
    for at in range(1, calls + 1):
        for kind, number in (
            (KILL_AFTER, signal.SIGKILL),       # of a write the first half
            (FAIL, errno.EIO),
            (FULL_DISK, errno.ENOSPC),
            (INTERRUPT, signal.SIGINT),
        ):
            _trial(name, Fault(kind, at, number), scratch, result)
    return result


def _trial(name: str, fault: Fault, scratch: Path, result: Result) -> int:
    """Write once with a fault, and check what is left. Return the number of the write's calls."""
    folder = scratch / "trial"
    folder.mkdir(parents=True)
    way = (WAYS | FAULTY)[name](folder)
    way.prepare()
    code, calls = forked(way, fault, ctypes.CDLL(None))
    is_counting = fault.kind == COUNTING
    try:
        if code == OTHER or (code < 0 and -code != fault.number) or (is_counting and (code or not calls)):
            raise TornError(f"the child ended with {code}")
        way.check(code == DONE, code == RAISED)
        if code == INTERRUPTED:
            way.leftovers(killed=False)
    except Exception as error:
        result.failures.append(f"{name}, {fault}: {type(error).__name__}: {error}")
    if not is_counting:
        result.outcomes[_end(code)] += 1
    shutil.rmtree(folder)
    return calls


def _end(code: int) -> str:
    """How a child with an exit code ended."""
    if code < 0:
        return signal.Signals(-code).name
    return {DONE: "done", RAISED: "raised", INTERRUPTED: "interrupted"}.get(code, "other")
