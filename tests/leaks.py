"""Leaks, counted in blocks of memory by the line that allocated them: a leak grows with repetitions, caches and pools do not."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from itertools import pairwise

# Repetitions of the runs that are compared. NumPy keeps freed memory for later arrays, some blocks more in each run whatever
# its length: growing runs have a falling share of these.
RUNS = (150, 300, 600)
# Blocks for each repetition that a line may keep. A leak of every fifth call keeps 0.2.
MOST_KEPT = 0.1


def leaking_lines(work: Callable[[], object]) -> list[str]:
    """Lines of which blocks of memory stay in proportion to the repetitions of some work, as tracemalloc describes them."""
    def repeat(times: int) -> tracemalloc.Snapshot:
        for _ in range(times):
            work()
        gc.collect()
        clear_type_cache()
        return tracemalloc.take_snapshot()

    tracemalloc.start()
    try:
        snapshots = [repeat(times) for times in (RUNS[0], *RUNS)]       # caches fill up in the first
    finally:
        tracemalloc.stop()
    kept = [
        {line.traceback for line in after.compare_to(before, "lineno") if line.count_diff > MOST_KEPT * times}
        for times, (before, after) in zip(RUNS, pairwise(snapshots), strict=True)
    ]
    return [str(line) for line in set.intersection(*kept)]


def clear_type_cache() -> None:
    """Frees 4,096 names of attributes, each kept until another takes its place: NumPy makes such names anew in every call."""
    if sys.version_info >= (3, 13):
        sys._clear_internal_caches()
    else:
        sys._clear_type_cache()
