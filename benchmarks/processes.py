"""Programs run as processes of their own, and what they took."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import NamedTuple


class Run(NamedTuple):
    """One run of a program.

    Attributes:
        wall: seconds from its start to its end.
        processor: seconds of processor time.
    """

    wall: float
    processor: float


def process(program: str, environment: Mapping[str, str]) -> Run:
    """Run a Python program in a process of its own.

    Raises:
        RuntimeError: the program failed.
    """
    started = time.perf_counter()
    number = os.posix_spawn(sys.executable, [sys.executable, "-c", program], environment)
    _, status, usage = os.wait4(number, 0)
    wall = time.perf_counter() - started
    if status:
        raise RuntimeError(f"{program!r} ended with status {status}")
    return Run(wall, usage.ru_utime + usage.ru_stime)


def most_memory(program: str, environment: Mapping[str, str]) -> int:
    """The most resident memory of a program run, in bytes.

    The program tells, for the system counts the memory of the starting process too (ru_maxrss after vfork).
    """
    status = program + "; print(open('/proc/self/status').read())"
    done = subprocess.run([sys.executable, "-c", status], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return status_bytes(done.stdout, "VmHWM")


def status_bytes(status: str, name: str) -> int:
    """Bytes of a line of /proc/PID/status: VmRSS, or VmHWM for the highest."""
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(f"{name}:")) << 10
