"""Detection of memory leaks by source line: a leak grows with the repetitions of some work, caches and pools do not."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from itertools import pairwise

# Repetitions in each of the compared runs. NumPy keeps freed memory for later arrays, some blocks more after each run of any
# length; the share of these blocks falls with longer runs.
RUNS = (150, 300, 600)
# Most blocks kept by a line without a leak, per repetition. A leak in every fifth repetition keeps 0.2.
MOST_KEPT = 0.1


def leaking_lines(work: Callable[[], object]) -> list[str]:
    """Source lines, as described by tracemalloc, with allocated blocks of memory in proportion to the repetitions of work."""
    def repeat(times: int) -> tracemalloc.Snapshot:
        for _ in range(times):
            work()
        gc.collect()
        clear_type_cache()
        return tracemalloc.take_snapshot()

    tracemalloc.start()
    try:
        snapshots = [repeat(times) for times in (RUNS[0], *RUNS)]       # the first run fills caches
    finally:
        tracemalloc.stop()
    kept = [
        {line.traceback for line in after.compare_to(before, "lineno") if line.count_diff > MOST_KEPT * times}
        for times, (before, after) in zip(RUNS, pairwise(snapshots), strict=True)
    ]
    return [str(line) for line in set.intersection(*kept)]


def clear_type_cache() -> None:
    """Clear the interpreter's cache of 4,096 attribute names. NumPy makes new names in every call, and the cache keeps some."""
    if sys.version_info >= (3, 13):
        sys._clear_internal_caches()
    else:
        sys._clear_type_cache()
