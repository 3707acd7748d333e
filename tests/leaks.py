"""Leaks, counted in blocks of memory by the line that allocated them: a leak grows with repetitions, caches and pools do not."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

REPETITIONS = 300


def leaking_lines(work: Callable[[], object]) -> list[str]:
    """Lines of which a block of memory stays for each repetition of some work, as tracemalloc describes them."""
    def repeat() -> tracemalloc.Snapshot:
        for _ in range(REPETITIONS):
            work()
        gc.collect()
        return tracemalloc.take_snapshot()

    tracemalloc.start()
    try:
        before, after = repeat(), repeat()      # caches fill up in the first
    finally:
        tracemalloc.stop()
    return [str(line) for line in after.compare_to(before, "lineno") if line.count_diff > 0.9 * REPETITIONS]
