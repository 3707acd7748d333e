"""Levels written as runs: the same streams as those of arrays of levels."""

from __future__ import annotations

import numpy as np
import pytest

from fastpq._kernel_calls import decode_levels, encode_equal_levels, encode_levels, encode_list_levels


@pytest.mark.parametrize("level", [0, 1, 2, 3, 7, 255])
@pytest.mark.parametrize("count", [1, 7, 8, 9, 63, 64, 1000, 1 << 20])
def test_equal_levels(count: int, level: int) -> None:
    levels = np.full(count, level, np.uint8)
    maximum = max(level, 1)
    assert decode_levels(np.frombuffer(encode_equal_levels(count, level), np.uint8), count, maximum).tolist() == levels.tolist()


@pytest.mark.parametrize("length", [64, 72, 128, 136, 1536, 1 << 14])
@pytest.mark.parametrize("lists", [0, 1, 2, 500])
def test_lists_of_one_length(lists: int, length: int) -> None:
    levels = np.tile(np.array([0] + [1] * (length - 1), np.uint8), lists)
    stream = encode_list_levels(lists, length)
    assert len(stream) <= min(len(encode_levels(levels, 1)), lists * length // 8)
    assert decode_levels(np.frombuffer(stream, np.uint8), len(levels), 1).tolist() == levels.tolist()


@pytest.mark.parametrize("length", [0, 1, 8, 56, 65, 100])
def test_lists_that_are_not_runs(length: int) -> None:
    with pytest.raises(ValueError, match="1 lists of"):
        encode_list_levels(1, length)
