"""Daemons of PySpark and of fastpq's jar, forked from one process with loaded modules: each would load the modules for seconds.

Spark starts ``PYSPARK_PYTHON -m pyspark.daemon WORKER`` for each kind of worker, and for each environment of workers. The
interpreter of the tests (preloaded_python) is a relay then: it gives its arguments, environment and standard streams to a process
with the modules of the workers (``python -m tests.spark.daemon DESCRIPTOR MODULE ...``), whose fork becomes the daemon. In
test_jvm_session.py and test_example.py workers load the modules, as those of users do.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("numpy", "pyarrow", "pyarrow.parquet", "pandas", "fsspec", "fastpq.spark")
JVM_DAEMON = "fastpq.spark.jvm.daemon"
DAEMONS = ("pyspark.daemon", JVM_DAEMON, "pyspark.sql.streaming.python_streaming_source_runner")     # programs that are forked
WORKERS = ("pyspark.worker", "fastpq.spark.jvm.worker", *(
    f"pyspark.sql.worker.{name}" for name in (
        "create_data_source", "lookup_data_sources", "plan_data_source_read", "write_into_data_source",
        "commit_data_source_write", "python_streaming_sink_runner",
    )
))
KEY_SERVICE = "tests.spark.kms"
STORES = ("s3fs", "adlfs", "gcsfs")
JVM = "FASTPQ_TEST_JVM"             # the process that Spark runs in, for its workers: the daemon's parent is another one

COMM = Path("/proc/self/comm")      # the name of this process, which its forks inherit

# Its arguments are the path of the socket and those of Python; it ends with the daemon and its workers.
RELAY = f"""
import json, os, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
environment = {{**os.environ, "{JVM}": str(os.getppid())}}
message = json.dumps([sys.argv[2:], environment, os.getcwd()]).encode()
socket.send_fds(connection, [len(message).to_bytes(8, "little")], [0, 1, 2])
connection.sendall(message)
for number in (0, 1, 2):
    os.close(number)
connection.recv(1)
"""


@contextmanager
def preloaded_python(folder: Path, *modules: str) -> Iterator[str]:
    """An interpreter for PYSPARK_PYTHON, whose daemons have PySpark's workers, fastpq and more modules loaded.

    Spark has no setting for the daemons that plan: ``spark.python.daemon.module`` is for tasks alone. Spark puts an archive of
    PySpark before the installed package: each daemon would compile its modules, and each worker would read its table of contents
    nineteen times.

    Args:
        folder: a folder for the interpreter.
        modules: the modules.
    """
    relay, path = folder / "relay.py", folder / "python"
    relay.write_text(RELAY)
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as listener:     # paths of sockets have 107 bytes
        place = Path(short) / "daemons"
        listener.bind(os.fspath(place))
        listener.listen(64)         # daemons that Spark starts while modules are loaded wait
        write_script(path, f"{shlex.quote(sys.executable)} -I -S {shlex.quote(str(relay))} {shlex.quote(str(place))}")
        command = [sys.executable, "-m", "tests.spark.daemon", str(listener.fileno()), *modules]
        with subprocess.Popen(command, cwd=ROOT, pass_fds=[listener.fileno()], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL):
            listener.close()        # a relay ends with an error if the process has ended
            yield str(path)         # then its standard input ends, and so does the process


def write_script(path: Path, relay: str) -> None:
    """Write the interpreter: a relay for DAEMONS, else Python."""
    python = shlex.quote(sys.executable)
    path.write_text(
        f"""#!/bin/sh
export PYTHONPATH={shlex.quote(str(ROOT))}
case "$2" in
    {" | ".join(DAEMONS)})
        shift
        exec {relay} "$@" ;;
esac
exec {python} "$@"
"""
    )
    path.chmod(0o755)


def serve(listener: socket.socket) -> None:
    """Fork a process for each relay, which becomes a daemon of PySpark, until standard input ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            become_daemon(connection)
        connection.close()


def become_daemon(relay: socket.socket) -> None:
    """Run a daemon with arguments, environment and standard streams of a relay; raises SystemExit."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, streams, _, _ = socket.recv_fds(relay, 8, 3)
    with relay.makefile("rb") as stream:
        arguments, environment, folder = json.loads(stream.read(int.from_bytes(size, "little")))
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = arguments
    if arguments[0] == JVM_DAEMON and COMM.exists():
        COMM.write_text(name_of(int(environment[JVM])))
    runpy.run_module(arguments[0], run_name="__main__")
    raise SystemExit


def name_of(jvm: int) -> str:
    """The name of the daemon of a JVM and of its workers, as /proc/PID/comm has it."""
    return f"fastpq-{jvm}"


def jvm_workers(jvm: int) -> list[int]:
    """Process ids of the workers of fastpq's jar in a JVM."""
    parents = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            name, _, numbers = Path(f"/proc/{entry}/stat").read_text().partition("(")[2].rpartition(") ")
            if name == name_of(jvm):
                parents[int(entry)] = int(numbers.split()[1])
    return [process for process, parent in parents.items() if parent in parents]


def load_descriptions_of_s3() -> None:
    """Let botocore load what a client of S3 needs: each process with a client would parse it, for 0.1 s."""
    from botocore.session import get_session

    from tests.io.object_stores import parse_models_once

    parse_models_once()
    get_session().create_client("s3", region_name="us-east-1", aws_access_key_id="none", aws_secret_access_key="none")


def main() -> None:
    """Load modules, and serve relays at a listening socket, given by its descriptor."""
    listener = socket.socket(fileno=int(sys.argv[1]))
    for name in (*PACKAGES, *WORKERS, *sys.argv[2:]):
        import_module(name)
    if "s3fs" in sys.argv:
        load_descriptions_of_s3()
    gc.collect()
    gc.freeze()     # the collection after each task leaves the modules, and the pages that workers share, alone
    serve(listener)


if __name__ == "__main__":
    main()
