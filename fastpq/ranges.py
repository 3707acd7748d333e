"""Rows of a row group, as ranges."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Flags = NDArray[np.bool_]


class RowRanges:
    """A set of rows out of num_rows: ascending ranges that neither overlap nor touch.

    Args:
        bounds: shape (n, 2), int64: the first row of each range and the one after its last.
        num_rows: how many rows there are to choose from.
    """

    __slots__ = ("bounds", "num_rows")

    def __init__(self, bounds: Int64s, num_rows: int) -> None:
        self.bounds = bounds
        self.num_rows = num_rows

    @classmethod
    def every(cls, num_rows: int) -> RowRanges:
        """All rows."""
        return cls(np.array([[0, num_rows]][: min(num_rows, 1)], np.int64).reshape(-1, 2), num_rows)

    @classmethod
    def none(cls, num_rows: int) -> RowRanges:
        """No row."""
        return cls(np.empty((0, 2), np.int64), num_rows)

    @classmethod
    def of_parts(cls, first_rows: Int64s, chosen: Flags, num_rows: int) -> RowRanges:
        """The rows of some of the parts into which all rows are cut.

        Args:
            first_rows: ascending, the first row of each part; the first part begins with row 0.
            chosen: which parts.
            num_rows: rows in all.
        """
        edges = np.flatnonzero(np.diff(chosen, prepend=False, append=False))
        return cls(np.append(first_rows, num_rows)[edges].reshape(-1, 2), num_rows)

    @property
    def count(self) -> int:
        """How many rows there are in the ranges."""
        return int((self.bounds[:, 1] - self.bounds[:, 0]).sum())

    @property
    def is_every(self) -> bool:
        """Whether no row is left out."""
        if not self.num_rows:
            return True
        return len(self.bounds) == 1 and bool(self.bounds[0, 1] - self.bounds[0, 0] == self.num_rows)

    def __or__(self, other: RowRanges) -> RowRanges:
        if not len(other.bounds) or self.is_every:
            return self
        if not len(self.bounds) or other.is_every:
            return other
        bounds = np.concatenate([self.bounds, other.bounds])
        bounds = bounds[np.argsort(bounds[:, 0], kind="stable")]
        ends = np.maximum.accumulate(bounds[:, 1])
        starts_anew = np.ones(len(bounds), np.bool_)
        starts_anew[1:] = bounds[1:, 0] > ends[:-1]
        first = np.flatnonzero(starts_anew)
        last = np.append(first[1:], len(bounds))[: len(first)] - 1
        return RowRanges(np.stack([bounds[first, 0], ends[last]], axis=1), self.num_rows)

    def __and__(self, other: RowRanges) -> RowRanges:
        if not len(self.bounds) or other.is_every:
            return self
        if not len(other.bounds) or self.is_every:
            return other
        return ~(~self | ~other)

    def __invert__(self) -> RowRanges:
        edges = np.concatenate([[0], self.bounds.reshape(-1), [self.num_rows]]).astype(np.int64).reshape(-1, 2)
        return RowRanges(edges[edges[:, 0] < edges[:, 1]], self.num_rows)

    def overlapping(self, first_rows: Int64s) -> Flags:
        """Which of the parts into which all rows are cut hold rows of the ranges; first_rows as in of_parts."""
        ends = np.append(first_rows[1:], self.num_rows)
        # The first range that ends after a part begins must begin before the part ends.
        following = np.searchsorted(self.bounds[:, 1], first_rows, side="right")
        starts = np.append(self.bounds[:, 0], self.num_rows)
        return np.asarray(starts[following] < ends)

    def select(self, mask: Flags) -> RowRanges:
        """The rows of the ranges, taken one after another, for which a mask is true."""
        rows = self.rows()[mask]
        first = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
        last = np.append(first[1:], len(rows))[: len(first)] - 1
        return RowRanges(np.stack([rows[first], rows[last] + 1], axis=1), self.num_rows)

    def contain(self, rows: Int64s) -> Flags:
        """Which of some rows are in the ranges."""
        following = np.searchsorted(self.bounds[:, 1], rows, side="right")
        return np.asarray(np.append(self.bounds[:, 0], self.num_rows)[following] <= rows)

    def within(self, covered: RowRanges) -> Int64s:
        """The ranges counted among the rows of other ranges, taken one after another, which hold all of these."""
        lengths = covered.bounds[:, 1] - covered.bounds[:, 0]
        shifts = np.cumsum(lengths) - lengths - covered.bounds[:, 0]
        holding = np.searchsorted(covered.bounds[:, 1], self.bounds[:, 0], side="right")
        return np.ascontiguousarray(self.bounds + shifts[holding, None])

    def merged(self, gap: int) -> RowRanges:
        """The ranges with gaps of at most so many rows filled."""
        if len(self.bounds) < 2:
            return self
        apart = self.bounds[1:, 0] - self.bounds[:-1, 1] > gap
        first, last = np.append(True, apart), np.append(apart, True)
        return RowRanges(np.stack([self.bounds[first, 0], self.bounds[last, 1]], axis=1), self.num_rows)

    def rows(self) -> Int64s:
        """The row numbers, ascending."""
        lengths = self.bounds[:, 1] - self.bounds[:, 0]
        before = np.cumsum(lengths) - lengths
        return np.repeat(self.bounds[:, 0] - before, lengths) + np.arange(int(lengths.sum()))

    def __iter__(self) -> Iterator[tuple[int, int]]:
        yield from self.bounds.tolist()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RowRanges)
            and self.num_rows == other.num_rows
            and np.array_equal(self.bounds, other.bounds)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<RowRanges {self.bounds.tolist()} of {self.num_rows}>"


def cut_ranges(bounds: Int64s, start: int, stop: int) -> Int64s:
    """Those rows of ranges that are number start to stop - 1 among them all, as ranges.

    Args:
        bounds: shape (n, 2), int64: ascending ranges.
        start, stop: at most as many as there are rows.
    """
    ends = np.cumsum(bounds[:, 1] - bounds[:, 0])
    starts = ends - (bounds[:, 1] - bounds[:, 0])
    first, last = np.searchsorted(ends, start, side="right"), np.searchsorted(starts, stop, side="left")
    cut = bounds[first:last].copy()
    if len(cut):
        cut[0, 0] += start - starts[first]
        cut[-1, 1] -= ends[last - 1] - stop
    return cut
