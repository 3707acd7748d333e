"""Set-up of Python workers; a worker of Spark runs one task after another over one connection to the JVM."""

from __future__ import annotations

import ctypes
import gc
import os
import socket
from contextlib import suppress

from pyspark import TaskContext

_kept = False


def keep_modules() -> None:
    """Exempt all present objects from garbage collection, once in a worker's life, after the first task has loaded all modules.

    PySpark collects garbage after each task. With the modules of pyarrow, pandas and fastpq loaded, each collection takes 40 ms
    of a core.
    """
    global _kept
    if not _kept and TaskContext.get() is not None:
        _kept = True
        gc.collect()
        gc.freeze()


def acknowledge() -> None:
    """Send TCP acknowledgements at once for data already received from the JVM; Linux may delay them by up to 40 ms.

    The JVM writes a task first and its input separately. Until the task is acknowledged, the JVM's kernel holds back a small
    input (Nagle's algorithm; ``TCP_QUICKACK`` in tcp(7)). Call this in a task before its input is read.
    """
    if TaskContext.get() is None or not hasattr(socket, "TCP_QUICKACK"):
        return
    numbers: list[str] = []
    with suppress(OSError):     # without /proc the task waits for the delayed acknowledgement
        numbers = os.listdir("/proc/self/fd")
    # PySpark does not reveal its connection: try all descriptors, non-sockets refuse the option. A Python socket object would
    # apply this process's default timeout to the connection.
    yes, set_option = ctypes.c_int(1), ctypes.CDLL(None).setsockopt
    for number in numbers:
        set_option(int(number), socket.IPPROTO_TCP, socket.TCP_QUICKACK, ctypes.byref(yes), ctypes.sizeof(yes))
