"""Numbers that repeat, told from numbers that do not by a sample."""

from __future__ import annotations

import numpy as np
import pytest

from fastpq._kernel_calls import are_mostly_distinct

COUNT = 1 << 18
RANDOM = np.random.default_rng(3)


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.int64, np.float64, "datetime64[us]"])
def test_distinct_numbers(dtype: str) -> None:
    for values in (np.arange(COUNT), RANDOM.permutation(COUNT), RANDOM.integers(0, 1 << 30, COUNT)):
        assert are_mostly_distinct(values.astype(dtype))


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.int64, np.float64])
@pytest.mark.parametrize(
    "values",
    [
        np.zeros(COUNT),
        np.arange(COUNT) // 2,              # sorted, each value twice
        np.arange(COUNT) // 7,
        np.arange(COUNT) % 10_000,          # the same numbers again and again
        np.arange(COUNT) % (COUNT // 2),
        RANDOM.integers(0, COUNT // 3, COUNT),
        np.where(np.arange(COUNT) % 3, np.arange(COUNT), 0),        # one frequent value among distinct ones
    ],
    ids=["zeros", "pairs", "runs", "period", "twice", "random", "frequent"],
)
def test_repeated_numbers(values: np.ndarray, dtype: type) -> None:
    assert not are_mostly_distinct(values.astype(dtype))


@pytest.mark.parametrize(
    "values",
    [np.arange(1000), np.arange(0), np.arange(4 * COUNT), np.arange(COUNT, dtype=np.int16), np.arange(COUNT).astype("S16")],
    ids=["few", "none", "many", "int16", "texts"],
)
def test_what_is_not_sampled(values: np.ndarray) -> None:
    assert not are_mostly_distinct(values)
