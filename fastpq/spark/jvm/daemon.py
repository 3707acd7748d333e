"""The process from which Spark forks workers (``python -m fastpq.spark.jvm.daemon``): PySpark's daemon with fastpq's worker.

It loads the worker's modules before the first fork, so that all workers share their memory.
"""

from __future__ import annotations

import gc
import os
import socket

from pyspark import daemon
from pyspark.serializers import UTF8Deserializer, write_with_length

from fastpq.spark.jvm import worker


def run_worker(sock: socket.socket, authenticated: bool) -> int:
    """Run a worker on its connection to the JVM, until the JVM closes the connection.

    Args:
        sock: the connection.
        authenticated: whether the connection is trusted. If not, the JVM must send the secret that it shares with the daemon.

    Returns:
        1, which ends the process.
    """
    with sock.makefile("rwb", 0) as stream:
        if not authenticated:
            secret = UTF8Deserializer().loads(stream)  # type: ignore[no-untyped-call]
            is_ours = secret == os.environ["PYTHON_WORKER_FACTORY_SECRET"]
            write_with_length(b"ok" if is_ours else b"err", stream)  # type: ignore[no-untyped-call]
            if not is_ours:
                return 1
        worker.serve(sock)
    return 1


def main() -> None:
    """Run PySpark's daemon until the JVM ends."""
    daemon.worker = run_worker
    gc.collect()
    gc.freeze()     # the workers' garbage collections then leave shared pages unchanged
    daemon.manager()


if __name__ == "__main__":
    main()
