"""Row ranges against sets of numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpq.index.page_locations import choose_pages, pages_of
from fastpq.index.ranges import RowRanges, cut_ranges
from fastpq.read.rows import ranges_of

ROWS = 40


def ranges(rows: set[int]) -> RowRanges:
    return RowRanges.every(ROWS).select(np.isin(np.arange(ROWS), list(rows)))


row_sets = st.sets(st.integers(0, ROWS - 1))


@given(row_sets, row_sets)
def test_sets(one: set[int], other: set[int]) -> None:
    left, right = ranges(one), ranges(other)
    assert left.rows().tolist() == sorted(one)
    assert left.count == len(one)
    assert (left | right) == ranges(one | other)
    assert (left & right) == ranges(one & other)
    assert ~left == ranges(set(range(ROWS)) - one)
    assert [row for start, stop in left for row in range(start, stop)] == sorted(one)


@given(row_sets, st.sets(st.integers(1, ROWS - 1)))
def test_parts(rows: set[int], cuts: set[int]) -> None:
    first_rows = np.array([0, *sorted(cuts)])
    ends = [*first_rows[1:].tolist(), ROWS]
    parts = [set(range(start, stop)) for start, stop in zip(first_rows.tolist(), ends, strict=True)]
    chosen = np.array([bool(part & rows) for part in parts])
    covered = set().union(*(part for part, kept in zip(parts, chosen, strict=True) if kept))
    assert RowRanges.of_parts(first_rows, chosen, ROWS) == ranges(covered)
    # pages of 1, 2, 3... bytes behind a dictionary page of 10
    sizes = np.arange(1, len(parts) + 1)
    locations = np.stack([np.cumsum(sizes) - sizes + 10, sizes, first_rows])
    assert pages_of(locations, ranges(rows)) == (int(chosen.sum()), int(sizes[chosen].sum()))
    found = choose_pages(locations, ranges(rows), 0, False)
    if found is None:
        assert chosen.all()
        return
    held, runs, directory, wanted = found
    assert held == ranges(covered)
    assert directory[:, 0].tolist() == np.flatnonzero(chosen).tolist()
    assert directory[:, 2].tolist() == [len(part) for part, kept in zip(parts, chosen, strict=True) if kept]
    assert sum(length for _, length in runs) == 10 + int(sizes[chosen].sum())
    assert all(start + length < later for (start, length), (later, _) in itertools.pairwise(runs))
    assert [sorted(covered)[row] for row in wanted.rows().tolist()] == sorted(rows)


@given(row_sets, st.data())
def test_select(rows: set[int], data: st.DataObject) -> None:
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), np.bool_)
    kept = {row for row, keep in zip(sorted(rows), mask.tolist(), strict=True) if keep}
    assert ranges(rows).select(mask) == ranges(kept)


def test_no_rows() -> None:
    assert RowRanges.every(0) == RowRanges.none(0) == ~RowRanges.every(0)
    assert RowRanges.none(5).count == 0
    assert RowRanges.every(5).is_every


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.99, 1])
@pytest.mark.parametrize("rows", [63, 64, 65, 128, 1000])
def test_masks_of_many_rows(rows: int, share: float) -> None:
    """Of all rows, and of ranges that begin at any place of the mask."""
    random = np.random.default_rng(rows)
    for bounds in ([[0, rows]], [[0, 1], [3, 40], [41, rows - 3]], [[5, rows - 20], [rows - 1, rows]]):
        base = RowRanges(np.array(bounds), rows)
        mask = random.random(base.count) < share
        chosen = base.select(mask)
        assert chosen.rows().tolist() == base.rows()[mask].tolist()
        assert chosen.count == mask.sum()
        assert (np.diff(chosen.bounds.reshape(-1)) > 0).all()
        # the same set by bits and by ranges
        again = RowRanges(chosen.bounds, rows)
        first_rows = np.arange(0, rows, 11)
        locations = np.stack([first_rows * 10, np.full(len(first_rows), 110), first_rows])
        assert pages_of(locations, chosen) == pages_of(locations, again)
        ways = [choose_pages(locations, each, 0, False) for each in (chosen, again)]
        assert repr(ways[0]) == repr(ways[1])
        assert ~chosen == ~again
        assert chosen & base == again
        assert chosen.select(np.arange(chosen.count) % 3 == 1).rows().tolist() == base.rows()[mask][1::3].tolist()


@given(st.sets(st.integers(0, 40)), st.data())
def test_ranges_within_others_and_cut(chosen: set[int], data: st.DataObject) -> None:
    wanted = sorted(chosen)
    rows = RowRanges(ranges_of(np.array(wanted, np.int64)), 41)
    assert rows.rows().tolist() == wanted
    covered = rows.merged(data.draw(st.integers(0, 5)))
    around = covered.rows().tolist()
    assert [around[place] for place in rows.within(covered).rows().tolist()] == wanted
    start = data.draw(st.integers(0, len(wanted)))
    stop = data.draw(st.integers(start, len(wanted)))
    assert RowRanges(cut_ranges(rows.bounds, start, stop), 41).rows().tolist() == wanted[start:stop]
