"""Set-up of Python workers; a worker of Spark runs one task after another over one connection to the JVM."""

from __future__ import annotations

import gc

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
