"""RowRanges: sets of rows of a row group, as ascending ranges."""

from libc.stdint cimport int64_t, uint8_t

from fastpq.encodings.levels cimport bitmap_count, bitmap_count_runs, bitmap_runs, bytes_to_bitmap

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Flags = NDArray[np.bool_]


cdef class RowRanges:
    """A set of rows out of num_rows: ascending ranges with gaps between.

    Args:
        bounds: shape (n, 2), int64: the first row of each range and the row after its last.
        num_rows: number of rows to choose from.
    """

    def __init__(self, bounds, int64_t num_rows):
        self.bounds = np.ascontiguousarray(bounds)
        self.view = self.bounds
        if self.view.shape[1] != 2:
            raise ValueError(f"ranges of shape {self.bounds.shape}, not (n, 2)")
        self.num_rows = num_rows
        self.counted = -1

    @classmethod
    def every(cls, int64_t num_rows):
        """All rows."""
        return cls(np.array([[0, num_rows]], np.int64) if num_rows > 0 else np.empty((0, 2), np.int64), num_rows)

    @classmethod
    def none(cls, int64_t num_rows):
        """No row."""
        return cls(np.empty((0, 2), np.int64), num_rows)

    @classmethod
    def of_parts(cls, const int64_t[::1] first_rows, chosen, int64_t num_rows):
        """The rows of the chosen parts; all rows are divided into parts, for example pages.

        Args:
            first_rows: ascending, the first row of each part; the first part begins with row 0.
            chosen: whether each part is chosen, bool.
            num_rows: rows in all.
        """
        cdef const uint8_t[::1] flags = chosen.view(np.uint8)
        cdef int64_t parts = first_rows.shape[0], part
        cdef Growing made = Growing(parts)
        if flags.shape[0] != parts:
            raise ValueError(f"{flags.shape[0]} choices for {parts} parts")
        for part in range(parts):
            if flags[part]:
                made.add(first_rows[part], first_rows[part + 1] if part + 1 < parts else num_rows)
        return made.ranges(num_rows)

    @property
    def count(self):
        """Number of rows in the ranges."""
        return self._count()

    @property
    def is_every(self):
        """Whether the ranges hold all num_rows rows."""
        return self._count() == self.num_rows

    def __or__(RowRanges self, RowRanges other not None):
        cdef int64_t mine = self.view.shape[0], theirs = other.view.shape[0], i = 0, j = 0
        cdef Growing made = Growing(mine + theirs)
        while i < mine or j < theirs:
            if j == theirs or i < mine and self.view[i, 0] <= other.view[j, 0]:
                made.add(self.view[i, 0], self.view[i, 1])
                i += 1
            else:
                made.add(other.view[j, 0], other.view[j, 1])
                j += 1
        return made.ranges(self.num_rows)

    def __and__(RowRanges self, RowRanges other not None):
        cdef int64_t mine = self.view.shape[0], theirs = other.view.shape[0], i = 0, j = 0
        cdef Growing made = Growing(mine + theirs)
        while i < mine and j < theirs:
            made.add(max(self.view[i, 0], other.view[j, 0]), min(self.view[i, 1], other.view[j, 1]))
            if self.view[i, 1] < other.view[j, 1]:
                i += 1
            else:
                j += 1
        return made.ranges(self.num_rows)

    def __invert__(self):
        cdef int64_t count = self.view.shape[0], end = 0, i
        cdef Growing made = Growing(count + 1)
        for i in range(count):
            made.add(end, self.view[i, 0])
            end = self.view[i, 1]
        made.add(end, self.num_rows)
        return made.ranges(self.num_rows)

    def select(self, mask):
        """The rows for which a mask is true; the mask has one entry for each row in the ranges."""
        cdef const uint8_t[::1] flags = np.ascontiguousarray(mask, np.bool_).view(np.uint8)
        cdef int64_t count = self._count(), runs = 0, place = 0, i, length
        cdef uint8_t[::1] bits
        cdef int64_t[:, ::1] out
        cdef int64_t* places
        cdef RowRanges chosen
        if flags.shape[0] != count:
            raise ValueError(f"a mask of {flags.shape[0]} rows for {count}")
        if count == 0:
            return RowRanges.none(self.num_rows)
        bits = np.empty((count + 7) // 8, np.uint8)
        with nogil:
            bytes_to_bitmap(&flags[0], count, &bits[0])
            for i in range(self.view.shape[0]):
                length = self.view[i, 1] - self.view[i, 0]
                runs += bitmap_count_runs(&bits[0], place, length)
                place += length
        bounds = np.empty((runs, 2), np.int64)
        if runs:
            out = bounds
            places = &out[0, 0]
            place = 0
            with nogil:
                for i in range(self.view.shape[0]):
                    length = self.view[i, 1] - self.view[i, 0]
                    places += bitmap_runs(&bits[0], place, length, self.view[i, 0], places)
                    place += length
        chosen = RowRanges(bounds, self.num_rows)
        chosen.counted = bitmap_count(&bits[0], 0, count)
        return chosen

    def contain(self, rows):
        """Whether each of some rows is in the ranges."""
        following = np.searchsorted(self.bounds[:, 1], rows, side="right")
        return np.append(self.bounds[:, 0], self.num_rows)[following] <= rows

    def within(self, RowRanges covered not None):
        """Bounds of the ranges in new row numbers: the position of each row among the rows of ``covered``.

        Raises:
            ValueError: a range is not within one of covered.
        """
        cdef int64_t count = self.view.shape[0], others = covered.view.shape[0], before = 0, i, j = 0
        counted = np.empty((count, 2), np.int64)
        cdef int64_t[:, ::1] out = counted
        for i in range(count):
            while j < others and covered.view[j, 1] <= self.view[i, 0]:
                before += covered.view[j, 1] - covered.view[j, 0]
                j += 1
            if j == others or self.view[i, 0] < covered.view[j, 0] or self.view[i, 1] > covered.view[j, 1]:
                raise ValueError(f"rows {self.view[i, 0]} to {self.view[i, 1]} are not all among the others")
            out[i, 0] = self.view[i, 0] - covered.view[j, 0] + before
            out[i, 1] = self.view[i, 1] - covered.view[j, 0] + before
        return counted

    def merged(self, int64_t gap):
        """The ranges, with gaps of at most gap rows filled."""
        cdef int64_t i
        cdef Growing made = Growing(self.view.shape[0], gap)
        if self.view.shape[0] < 2:
            return self
        for i in range(self.view.shape[0]):
            made.add(self.view[i, 0], self.view[i, 1])
        return made.ranges(self.num_rows)

    def rows(self):
        """The row numbers, ascending."""
        numbers = np.empty(self._count(), np.int64)
        cdef int64_t[::1] out = numbers
        cdef int64_t place = 0, i, row
        for i in range(self.view.shape[0]):
            for row in range(self.view[i, 0], self.view[i, 1]):
                out[place] = row
                place += 1
        return numbers

    def __iter__(self):
        for start, stop in self.bounds.tolist():
            yield start, stop

    def __eq__(self, other):
        return (
            isinstance(other, RowRanges)
            and self.num_rows == other.num_rows
            and np.array_equal(self.bounds, other.bounds)
        )

    def __repr__(self):
        return f"<RowRanges {self.bounds.tolist()} of {self.num_rows}>"

    cdef int64_t _count(self) noexcept:
        cdef int64_t count = 0, i
        if self.counted < 0:
            for i in range(self.view.shape[0]):
                count += self.view[i, 1] - self.view[i, 0]
            self.counted = count
        return self.counted


cdef class Growing:
    """A builder of RowRanges from ranges in ascending order; joins ranges at most gap rows apart, and skips empty ones."""

    def __cinit__(self, int64_t expected, int64_t gap=0):
        self.bounds = np.empty((max(expected, 1), 2), np.int64)
        self.view = self.bounds
        self.size = 0
        self.gap = gap

    cdef int add(self, int64_t start, int64_t stop) except -1:
        if start >= stop:
            return 0
        if self.size and start <= self.view[self.size - 1, 1] + self.gap:
            self.view[self.size - 1, 1] = max(stop, self.view[self.size - 1, 1])
            return 0
        if self.size == self.view.shape[0]:
            self.bounds = np.concatenate([self.bounds, np.empty_like(self.bounds)])
            self.view = self.bounds
        self.view[self.size, 0] = start
        self.view[self.size, 1] = stop
        self.size += 1
        return 0

    cdef RowRanges ranges(self, int64_t num_rows):
        return RowRanges(self.bounds[:self.size], num_rows)


def cut_ranges(const int64_t[:, ::1] bounds, int64_t start, int64_t stop):
    """Cut ranges to their rows number start to stop - 1, counted over all ranges; returns bounds.

    Args:
        bounds: shape (n, 2), int64: ascending ranges.
        start, stop: at most the number of rows in the ranges.
    """
    cdef int64_t count = bounds.shape[0], begun = 0, size = 0, i, first, last
    cut = np.empty((count, 2), np.int64)
    cdef int64_t[:, ::1] out = cut
    for i in range(count):
        first = bounds[i, 0] + max(start - begun, 0)
        last = min(bounds[i, 1], bounds[i, 0] + stop - begun)
        begun += bounds[i, 1] - bounds[i, 0]
        if first < last:
            out[size, 0] = first
            out[size, 1] = last
            size += 1
    return cut[:size]
