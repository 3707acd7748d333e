"""Kernels that find the unit of INT96 timestamps and convert them, held against Python integers."""

from __future__ import annotations

import numpy as np
import pytest

from fastpq.column.stored_values import int96_ticks, int96_units

EPOCH = 2_440_588
DAY = 86_400
INT64 = range(-(2**63), 2**63)
DTYPE = np.dtype([("nanoseconds", "<i8"), ("day", "<u4")])
EDGES = [
    (0, EPOCH), (DAY * 10**9 - 1, EPOCH), (-1, EPOCH), (2**63 - 1, EPOCH), (-(2**63), EPOCH), (0, 0), (0, 2**32 - 1),
    (0, EPOCH + 106_751), (0, EPOCH + 106_752), (85_636_854_775_807, EPOCH + 106_751), (85_636_854_775_808, EPOCH + 106_751),
    (0, EPOCH - 106_752), (763_145_224_191, EPOCH - 106_752), (763_145_224_192, EPOCH - 106_752), (0, EPOCH - 106_750),
    (2**63 - 1, 2**32 - 1), (-(2**63), 0), (1, EPOCH + 106_751_991), (0, EPOCH + 106_751_992), (0, EPOCH - 2_000_000),
]


def ticks_of(value: tuple[int, int], units: int) -> int:
    return (value[1] - EPOCH) * DAY * units + value[0] // (10**9 // units)


def units_of(values: list[tuple[int, int]]) -> int:
    return next(units for units in (10**9, 10**6, 10**3) if all(ticks_of(value, units) in INT64 for value in values))


def stored(values: list[tuple[int, int]]) -> np.ndarray:
    return np.array(values, DTYPE).view(np.uint8)


@pytest.mark.parametrize("value", EDGES)
def test_each_edge_has_the_finest_unit_and_the_exact_ticks(value: tuple[int, int]) -> None:
    units = int96_units(stored([value]), None)
    assert units == units_of([value])
    for coarser in (units, 1000):
        assert int96_ticks(stored([value]), None, coarser).view("<i8").tolist() == [ticks_of(value, coarser)]


def test_many_values_share_the_coarsest_unit_and_nulls_do_not_count() -> None:
    random = np.random.default_rng(0)
    for _ in range(200):
        values = [EDGES[place] for place in random.integers(0, len(EDGES), random.integers(1, 20))]
        valid = random.random(len(values)) < 0.6
        bits = np.packbits(valid, bitorder="little")
        units = int96_units(stored(values), bits)
        assert units == units_of([value for value, is_valid in zip(values, valid, strict=True) if is_valid])
        ticks = int96_ticks(stored(values), bits, units).view("<i8").tolist()
        assert [ticks[place] for place in np.flatnonzero(valid)] == [
            ticks_of(value, units) for value, is_valid in zip(values, valid, strict=True) if is_valid
        ]


def test_sizes_are_checked() -> None:
    empty = np.zeros(0, np.uint8)
    assert int96_units(empty, None) == 10**9
    assert len(int96_ticks(empty, None, 1000)) == 0
    for values, validity in ((np.zeros(13, np.uint8), None), (np.zeros(12 * 9, np.uint8), np.zeros(1, np.uint8))):
        with pytest.raises(ValueError, match="bytes"):
            int96_units(values, validity)
        with pytest.raises(ValueError, match="bytes"):
            int96_ticks(values, validity, 1000)
    with pytest.raises(ValueError, match="ticks a second"):
        int96_ticks(empty, None, 7)
