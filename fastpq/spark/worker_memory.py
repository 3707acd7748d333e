"""Set up Python workers. A Spark worker runs one task after another over one JVM connection."""

from __future__ import annotations

import gc

from pyspark import TaskContext

_is_frozen = False


def keep_modules() -> None:
    """Exempt all present objects from garbage collection, once per worker, after its first task has loaded all modules.

    PySpark collects garbage after each task. With the modules of pyarrow, pandas and fastpq loaded, each collection takes 40 ms
    on one core.
    """
    global _is_frozen
    if not _is_frozen and TaskContext.get() is not None:
        _is_frozen = True
        gc.collect()
        gc.freeze()
