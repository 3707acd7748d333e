"""PySpark's daemon of workers, which loads modules before its first fork: each of a thousand workers would load these anew.

``python -m tests.spark.daemon MODULE,... WORKER``, or ``python -m tests.spark.daemon MODULE,... fastpq.spark.jvm.daemon WORKER``
for the daemon of the jar. Sessions whose workers load the modules, as those of users do, are those of test_jvm_session.py and
test_example.py.
"""

from __future__ import annotations

import gc
import shlex
import sys
from importlib import import_module
from pathlib import Path

from pyspark import daemon

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("numpy", "pyarrow", "pyarrow.parquet", "fsspec")
JAR_DAEMON = "fastpq.spark.jvm.daemon"
KEY_SERVICE = "tests.spark.kms"
STORES = ("s3fs", "adlfs", "gcsfs")


def python_with(folder: Path, *modules: str) -> str:
    """Write an interpreter for PYSPARK_PYTHON, whose daemons have loaded modules.

    Spark has no setting for the daemons that plan: ``spark.python.daemon.module`` is for tasks alone. Spark puts an archive of
    PySpark before the installed package: each daemon would compile its modules, and each worker would read its table of contents
    nineteen times.

    Args:
        folder: a folder for the interpreter.
        modules: the modules.
    """
    path, python = folder / "python", shlex.quote(sys.executable)
    path.write_text(
        f"""#!/bin/sh
export PYTHONPATH={shlex.quote(str(ROOT))}
if [ "$2" = pyspark.daemon ]; then
    shift 2
    exec {python} -m tests.spark.daemon {",".join(modules)} "$@"
elif [ "$2" = {JAR_DAEMON} ]; then
    shift
    exec {python} -m tests.spark.daemon {",".join(modules)} "$@"
fi
exec {python} "$@"
"""
    )
    path.chmod(0o755)
    return str(path)


def main() -> None:
    """Load the modules that a worker needs, and the module of the worker; then run PySpark's daemon."""
    modules, worker = sys.argv.pop(1).split(","), sys.argv[1]
    if worker == "pyspark.sql.worker.lookup_data_sources":      # once in a session, and without a source
        modules = []
    elif worker == "pyspark.worker":        # whose tasks alone need pandas
        modules.append("pandas")
    for name in (*modules, worker):
        import_module(name)
    if worker == JAR_DAEMON:
        import_module(sys.argv.pop(1)).main()
    gc.collect()
    gc.freeze()     # the collection after each task leaves the modules, and the pages that workers share, alone
    daemon.manager()


if __name__ == "__main__":
    main()
