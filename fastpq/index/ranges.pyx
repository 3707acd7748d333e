"""RowRanges: a set of row numbers within a row group, as ascending ranges or as a bitmap."""

from libc.stdint cimport int64_t, uint8_t

from fastpq.encodings.levels cimport (
    bitmap_copy, bitmap_count, bitmap_count_runs, bitmap_merge, bitmap_runs, bytes_to_bitmap,
)

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Flags = NDArray[np.bool_]

cdef enum:
    ROWS_A_RANGE = 128      # a range takes as much memory as the bits of this many rows


cdef class RowRanges:
    """A set of rows out of num_rows: ascending ranges with gaps between them.

    Args:
        bounds: shape (n, 2), int64: the first row of each range and the row after its last.
        num_rows: number of rows to choose from.

    Attributes:
        bits: a bitmap (uint8) with num_rows bits, LSB first, if there are many short ranges. Otherwise None.
    """

    def __init__(self, bounds, int64_t num_rows):
        self.known = np.ascontiguousarray(bounds)
        if self.known.shape[1] != 2:
            raise ValueError(f"ranges of shape {self.known.shape}, not (n, 2)")
        self.bits = None
        self.num_rows = num_rows
        self.counted = -1

    @staticmethod
    cdef RowRanges of_bits(object bits, int64_t num_rows):
        """Return the rows whose bits are set in a bitmap. Its padding bits must be clear."""
        cdef RowRanges made = RowRanges.__new__(RowRanges)
        made.bits = bits
        made.num_rows = num_rows
        made.counted = -1
        return made

    @property
    def bounds(self):
        """Shape (n, 2), int64: the first row of each range and the row after its last. A bitmap computes it anew on each call."""
        cdef const uint8_t[::1] bits
        cdef int64_t[:, ::1] out
        if self.bits is None:
            return self.known
        bits = self.bits
        if self.num_rows == 0:
            return np.empty((0, 2), np.int64)
        found = np.empty((bitmap_count_runs(&bits[0], 0, self.num_rows), 2), np.int64)
        out = found
        if out.shape[0]:
            bitmap_runs(&bits[0], 0, self.num_rows, 0, &out[0, 0])
        return found

    @classmethod
    def every(cls, int64_t num_rows):
        """Return the set that has all rows."""
        return cls(np.array([[0, num_rows]], np.int64) if num_rows > 0 else np.empty((0, 2), np.int64), num_rows)

    @classmethod
    def none(cls, int64_t num_rows):
        """Return the set that has no row."""
        return cls(np.empty((0, 2), np.int64), num_rows)

    @classmethod
    def of_parts(cls, const int64_t[::1] first_rows, chosen, int64_t num_rows):
        """Return the rows in the chosen parts. All rows are divided into parts, for example into pages.

        Args:
            first_rows: the first row of each part, ascending. The first part begins with row 0.
            chosen: whether each part is chosen, bool.
            num_rows: number of rows in all parts.
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
        return self.count_rows()

    @property
    def is_every(self):
        """Whether the ranges hold all num_rows rows."""
        return self.count_rows() == self.num_rows

    def __or__(RowRanges self, RowRanges other not None):
        cdef const int64_t[:, ::1] ours = self.bounds, others = other.bounds
        cdef int64_t mine = ours.shape[0], theirs = others.shape[0], i = 0, j = 0
        cdef Growing made = Growing(mine + theirs)
        while i < mine or j < theirs:
            if j == theirs or i < mine and ours[i, 0] <= others[j, 0]:
                made.add(ours[i, 0], ours[i, 1])
                i += 1
            else:
                made.add(others[j, 0], others[j, 1])
                j += 1
        return made.ranges(self.num_rows)

    def __and__(RowRanges self, RowRanges other not None):
        cdef const int64_t[:, ::1] ours = self.bounds, others = other.bounds
        cdef int64_t mine = ours.shape[0], theirs = others.shape[0], i = 0, j = 0
        cdef Growing made = Growing(mine + theirs)
        while i < mine and j < theirs:
            made.add(max(ours[i, 0], others[j, 0]), min(ours[i, 1], others[j, 1]))
            if ours[i, 1] < others[j, 1]:
                i += 1
            else:
                j += 1
        return made.ranges(self.num_rows)

    def __invert__(self):
        cdef const int64_t[:, ::1] view = self.bounds
        cdef int64_t count = view.shape[0], end = 0, i
        cdef Growing made = Growing(count + 1)
        for i in range(count):
            made.add(end, view[i, 0])
            end = view[i, 1]
        made.add(end, self.num_rows)
        return made.ranges(self.num_rows)

    def select(self, mask):
        """Return the rows for which a mask is true. The mask has one entry for each row in the ranges."""
        cdef const uint8_t[::1] flags = np.ascontiguousarray(mask, np.bool_).view(np.uint8)
        cdef const int64_t[:, ::1] view = self.bounds
        cdef int64_t count = self.count_rows(), runs = 0, place = 0, i, length
        cdef uint8_t[::1] bits
        cdef RowRanges chosen
        if flags.shape[0] != count:
            raise ValueError(f"a mask of {flags.shape[0]} rows for {count}")
        if count == 0:
            return RowRanges.none(self.num_rows)
        packed = np.empty((count + 7) // 8, np.uint8)
        bits = packed
        with nogil:
            bytes_to_bitmap(&flags[0], count, &bits[0])
            for i in range(view.shape[0]):
                length = view[i, 1] - view[i, 0]
                runs += bitmap_count_runs(&bits[0], place, length)
                place += length
        if runs <= self.num_rows // ROWS_A_RANGE:
            chosen = RowRanges(selected_ranges(view, bits, runs), self.num_rows)
        elif count == self.num_rows:
            chosen = RowRanges.of_bits(packed, self.num_rows)
        else:
            chosen = RowRanges.of_bits(spread_bits(view, bits, self.num_rows), self.num_rows)
        chosen.counted = bitmap_count(&bits[0], 0, count)
        return chosen

    def contain(self, rows):
        """Return for each given row whether it is in the ranges."""
        bounds = self.bounds
        following = np.searchsorted(bounds[:, 1], rows, side="right")
        return np.append(bounds[:, 0], self.num_rows)[following] <= rows

    def within(self, RowRanges covered not None):
        """Return the same rows, numbered by their positions among the rows in ``covered``.

        Raises:
            ValueError: a range is not within a single range of ``covered``.
        """
        cdef const int64_t[:, ::1] view = self.bounds, around = covered.bounds
        cdef int64_t count = view.shape[0], before = 0, i, j = 0
        counted = np.empty((count, 2), np.int64)
        cdef int64_t[:, ::1] out = counted
        for i in range(count):
            while j < around.shape[0] and around[j, 1] <= view[i, 0]:
                before += around[j, 1] - around[j, 0]
                j += 1
            if j == around.shape[0] or view[i, 0] < around[j, 0] or view[i, 1] > around[j, 1]:
                raise ValueError(f"rows {view[i, 0]} to {view[i, 1]} are not all among the others")
            out[i, 0] = view[i, 0] - around[j, 0] + before
            out[i, 1] = view[i, 1] - around[j, 0] + before
        return RowRanges(counted, covered.count_rows())

    cdef RowRanges cut_out(self, RowRanges covered):
        """Return what ``within`` returns, for a set that is a bitmap. All its rows must be in covered."""
        cdef const int64_t[:, ::1] around = covered.bounds
        cdef const uint8_t[::1] bits = self.bits
        cdef int64_t i, place = 0, length, total = covered.count_rows(), longest = 0
        cdef uint8_t[::1] out, part
        cdef RowRanges made
        for i in range(around.shape[0]):
            longest = max(longest, around[i, 1] - around[i, 0])
        packed = np.zeros((total + 7) // 8, np.uint8)
        out, part = packed, np.empty((longest + 7) // 8, np.uint8)
        with nogil:
            for i in range(around.shape[0]):
                length = around[i, 1] - around[i, 0]
                bitmap_copy(&bits[0], around[i, 0], length, &part[0])
                bitmap_merge(&out[0], place, &part[0], length)
                place += length
        made = RowRanges.of_bits(packed, total)
        made.counted = self.counted
        return made

    def merged(self, int64_t gap):
        """Return the ranges with all gaps filled that have at most ``gap`` rows."""
        cdef const int64_t[:, ::1] view = self.bounds
        cdef int64_t i
        cdef Growing made = Growing(view.shape[0], gap)
        if view.shape[0] < 2:
            return self
        for i in range(view.shape[0]):
            made.add(view[i, 0], view[i, 1])
        return made.ranges(self.num_rows)

    def rows(self):
        """Return the row numbers, ascending."""
        numbers = np.empty(self.count_rows(), np.int64)
        cdef const int64_t[:, ::1] view = self.bounds
        cdef int64_t[::1] out = numbers
        cdef int64_t place = 0, i, row
        for i in range(view.shape[0]):
            for row in range(view[i, 0], view[i, 1]):
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

    cdef int64_t count_rows(self) except -1:
        cdef const int64_t[:, ::1] view
        cdef const uint8_t[::1] bits
        cdef int64_t count = 0, i
        if self.counted < 0:
            if self.bits is None:
                view = self.known
                for i in range(view.shape[0]):
                    count += view[i, 1] - view[i, 0]
            elif self.num_rows:
                bits = self.bits
                count = bitmap_count(&bits[0], 0, self.num_rows)
            self.counted = count
        return self.counted


cdef object selected_ranges(const int64_t[:, ::1] base, const uint8_t[::1] bits, int64_t runs):
    """Return the bounds of the rows whose bits are set. The bits stand for the rows in the ranges ``base``, in order."""
    bounds = np.empty((runs, 2), np.int64)
    cdef int64_t[:, ::1] out = bounds
    cdef int64_t* places
    cdef int64_t i, length, place = 0
    if runs:
        places = &out[0, 0]
        with nogil:
            for i in range(base.shape[0]):
                length = base[i, 1] - base[i, 0]
                places += bitmap_runs(&bits[0], place, length, base[i, 0], places)
                place += length
    return bounds


cdef object spread_bits(const int64_t[:, ::1] base, const uint8_t[::1] bits, int64_t num_rows):
    """Return a bitmap with num_rows bits. It has the given bits at the rows in the ranges ``base``, in order, and 0 elsewhere."""
    spread = np.zeros((num_rows + 7) // 8, np.uint8)
    cdef uint8_t[::1] out = spread, part = np.empty((num_rows + 7) // 8, np.uint8)
    cdef int64_t i, length, place = 0
    with nogil:
        for i in range(base.shape[0]):
            length = base[i, 1] - base[i, 0]
            bitmap_copy(&bits[0], place, length, &part[0])
            bitmap_merge(&out[0], base[i, 0], &part[0], length)
            place += length
    return spread


cdef class Growing:
    """A builder that makes RowRanges from ascending ranges. It joins ranges at most gap rows apart, and skips empty ones."""

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
    """Cut ranges to their rows number start to stop - 1, counted over all ranges, and return them as bounds.

    Args:
        bounds: shape (n, 2), int64: ascending ranges.
        start, stop: row counts, at most the number of rows in the ranges.
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
