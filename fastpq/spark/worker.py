"""What runs in a Python worker of Spark, which takes one task after another over one connection to the JVM."""

from __future__ import annotations

import gc
import os
import socket
import stat
from contextlib import suppress

from pyspark import TaskContext

INTERNET = (socket.AF_INET, socket.AF_INET6)

_kept = False


def keep_modules() -> None:
    """Keep what is loaded out of garbage collection, once in the life of a worker, when its first task has loaded everything.

    PySpark looks through every object after each task, which with the modules of pyarrow, pandas and fastpq takes 40 ms of a
    core that the query could use.
    """
    global _kept
    if not _kept and TaskContext.get() is not None:
        _kept = True
        gc.freeze()


def acknowledge() -> None:
    """Acknowledge what the JVM has sent already, where Linux would put that off for up to 40 ms.

    The JVM writes a task and then, apart, its input, and while the first is not acknowledged its kernel keeps a small second
    one back (Nagle's algorithm; ``TCP_QUICKACK`` in tcp(7)). So a task that is about to read its input calls this.
    """
    if TaskContext.get() is None or not hasattr(socket, "TCP_QUICKACK"):
        return
    with suppress(FileNotFoundError):           # without /proc the task waits
        # PySpark tells nobody which connection is its own
        for number in map(int, os.listdir("/proc/self/fd")):
            with suppress(OSError):             # closed meanwhile, as that of the listing is
                _acknowledge(number)


def _acknowledge(number: int) -> None:
    """Acknowledge what came to a file descriptor, if it is a connection's."""
    if stat.S_ISSOCK(os.fstat(number).st_mode):
        with socket.socket(fileno=os.dup(number)) as connection:
            if connection.family in INTERNET and connection.type == socket.SOCK_STREAM:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
