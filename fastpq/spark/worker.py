"""What runs in a Python worker of Spark, which takes one task after another over one connection to the JVM."""

from __future__ import annotations

import ctypes
import gc
import os
import socket
from contextlib import suppress

from pyspark import TaskContext

_kept = False


def keep_modules() -> None:
    """Keep what is loaded out of garbage collection, once in the life of a worker, when its first task has loaded everything.

    PySpark looks through every object after each task, which with the modules of pyarrow, pandas and fastpq takes 40 ms of a
    core that the query could use.
    """
    global _kept
    if not _kept and TaskContext.get() is not None:
        _kept = True
        gc.collect()
        gc.freeze()


def acknowledge() -> None:
    """Acknowledge what the JVM has sent already, where Linux would put that off for up to 40 ms.

    The JVM writes a task and then, apart, its input, and while the first is not acknowledged its kernel keeps a small second
    one back (Nagle's algorithm; ``TCP_QUICKACK`` in tcp(7)). So a task that is about to read its input calls this.
    """
    if TaskContext.get() is None or not hasattr(socket, "TCP_QUICKACK"):
        return
    numbers: list[str] = []
    with suppress(OSError):     # without /proc the task waits
        numbers = os.listdir("/proc/self/fd")
    # PySpark tells nobody which connection is its own; what is none refuses the option. A socket object of Python's would
    # apply the default timeout of this process to the connection.
    yes, set_option = ctypes.c_int(1), ctypes.CDLL(None).setsockopt
    for number in numbers:
        set_option(int(number), socket.IPPROTO_TCP, socket.TCP_QUICKACK, ctypes.byref(yes), ctypes.sizeof(yes))
