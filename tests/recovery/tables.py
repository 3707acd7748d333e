"""What the tests of recovery write."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa

ROWS = 2500
GROUP = 500
FOOTER_KEY = b"0123456789abcdef"
SECRET_KEY = b"fedcba9876543210"


@lru_cache
def written() -> pa.Table:
    """Columns of every shape, no two rows alike."""
    numbers = np.arange(ROWS)
    return pa.table(
        {
            "number": numbers,
            "text": [None if i % 7 == 0 else f"text {i % 40}" for i in range(ROWS)],
            "list": [None if i % 11 == 0 else [i, i + 1, i + 2][: i % 4] for i in range(ROWS)],
            "pair": [{"left": i, "right": str(i)} for i in range(ROWS)],
            "real": np.random.default_rng(1).random(ROWS),
        }
    )
