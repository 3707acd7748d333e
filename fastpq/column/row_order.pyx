"""Rows compared and sorted by columns, in the order of statistics."""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

import numpy as np

from fastpq.column.input cimport ColumnInput
from fastpq.encodings.views cimport Slice
from fastpq.stats.statistics cimport compare_fixed, compare_slices, count_nans

cdef enum:
    RUN = 16            # rows of a run: sorted by insertion, then merged


cdef class SortKey:
    """One column to compare rows by; NaNs are equal to each other and larger than all numbers.

    Args:
        input: a column of at most one value a row. The key uses the input's scratch memory: no other call on the input is allowed
            while the key lives.
        order: a value of ``Order`` in fastpq.stats.statistics.
        descending: whether larger values come first; nulls_first alone places nulls.
        nulls_first: whether nulls come before all values.
    """

    cdef ColumnInput input
    cdef int order
    cdef bint descending
    cdef bint nulls_first
    cdef size_t width
    cdef const uint8_t* values
    cdef Slice* slices
    cdef object _places
    cdef object _nans
    cdef const int64_t* places          # index of each row's value; -1 for a null
    cdef const uint8_t* nans            # of each value; NULL without NaNs

    def __cinit__(self, ColumnInput input not None, int order, bint descending, bint nulls_first):
        self.input = input
        self.order = order
        self.descending = descending
        self.nulls_first = nulls_first
        self.width = input.stored_width
        with nogil:
            if input.variable:
                count = input.slices(0, input.rows, &self.slices)
            else:
                count = input.fixed(0, input.rows, &self.values)
        self._place()
        if not input.variable and count_nans(order, self.values, count):
            self._mark_nans(count)

    cdef int _place(self) except -1:
        cdef int64_t row, place = 0, here
        cdef int64_t[::1] places = np.empty(self.input.rows + 1, np.int64)
        with nogil:
            for row in range(self.input.rows):
                here = self.input.count_present(row, 1)
                places[row] = place if here else -1
                place += here
        self._places = places
        self.places = &places[0]
        return 0

    cdef int _mark_nans(self, int64_t count) except -1:
        cdef int64_t i
        cdef uint8_t[::1] nans = np.empty(count, np.uint8)
        with nogil:
            for i in range(count):
                nans[i] = count_nans(self.order, self.values + <size_t>i * self.width, 1) > 0
        self._nans = nans
        self.nans = &nans[0]
        return 0

    cdef int compare(self, int64_t left, int64_t right) noexcept nogil:
        cdef int64_t a = self.places[left], b = self.places[right]
        cdef int found
        if a < 0 or b < 0:
            found = (a >= 0) - (b >= 0)
            return found if self.nulls_first else -found
        if self.nans != NULL and (self.nans[a] or self.nans[b]):
            found = self.nans[a] - self.nans[b]
        elif self.input.variable:
            found = compare_slices(self.order, self.slices[a], self.slices[b])
        else:
            found = compare_fixed(
                self.order, self.values + <size_t>a * self.width, self.values + <size_t>b * self.width, self.width)
        return -found if self.descending else found


cdef int compare_rows(list keys, Py_ssize_t count, int64_t left, int64_t right) except? -2:
    cdef Py_ssize_t i
    cdef int found
    for i in range(count):
        found = (<SortKey>keys[i]).compare(left, right)
        if found:
            return found
    return 0


def first_unsorted(list keys not None, int64_t rows):
    """The first row smaller than the row before; -1 for sorted rows.

    Args:
        keys: SortKeys, the most important first.
        rows: number of rows of each key's input.
    """
    cdef Py_ssize_t count = len(keys)
    cdef int64_t row
    for row in range(1, rows):
        if compare_rows(keys, count, row - 1, row) > 0:
            return row
    return -1


def sorted_rows(list keys not None, int64_t rows):
    """Shape (rows,), int64: the numbers of the rows in sorted order; equal rows keep their order. Args: as first_unsorted."""
    cdef int64_t[::1] order = np.arange(rows + 1), room = np.empty(rows + 1, np.int64)
    cdef SortKey key
    # the least important key first: a pass keeps the order of equal rows from the pass before
    for key in reversed(keys):
        order, room = room, order
        with nogil:
            _merge_sort(key, rows, &room[0], &order[0])
    return np.asarray(order)[:rows]


cdef void _merge_sort(SortKey key, int64_t rows, int64_t* given, int64_t* out) noexcept nogil:
    """Sort given into out; the contents of given are lost."""
    cdef int64_t* source = given
    cdef int64_t* target = out
    cdef int64_t width = RUN, start = 0
    while start < rows:
        _insertion_sort(key, given + start, min(width, rows - start))
        start += width
    while width < rows:
        start = 0
        while start < rows:
            _merge(key, source, start, min(start + width, rows), min(start + 2 * width, rows), target)
            start += 2 * width
        source, target = target, source
        width *= 2
    if source != out:
        memcpy(out, source, <size_t>rows * sizeof(int64_t))


cdef void _insertion_sort(SortKey key, int64_t* rows, int64_t count) noexcept nogil:
    cdef int64_t i, j, row
    for i in range(1, count):
        row = rows[i]
        j = i
        while j > 0 and key.compare(rows[j - 1], row) > 0:
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = row


cdef void _merge(SortKey key, const int64_t* source, int64_t start, int64_t middle, int64_t stop, int64_t* target) noexcept nogil:
    cdef int64_t left = start, right = middle, i
    for i in range(start, stop):
        if left < middle and (right >= stop or key.compare(source[left], source[right]) <= 0):
            target[i] = source[left]
            left += 1
        else:
            target[i] = source[right]
            right += 1
