"""Counts and bounds of written data pages, for statistics and the page index."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, INT64_MIN, int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

import numpy as np

from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.encodings.views cimport Slice
from fastpq.stats.statistics cimport ORDER_BYTES, ORDER_NONE, ORDER_SIGNED_BYTES, min_max_fixed, min_max_slices
from fastpq.arrays.memory cimport GrowingBuffer

from fastpq.stats.statistics import extreme
from fastpq.stats.total_order import total_extreme

cdef enum:
    LEVELS = 256


cdef class PageLog:
    """Counts and bounds of the data pages of one chunk, in the order of the column.

    Args:
        order: a value of ``Order`` in fastpq.stats.statistics.
        width: bytes of a stored value; 0 for values of variable length.
        total_order: whether floats are in IEEE 754 total order: bounds are exact in the sign of zero, and bounds of NaNs if all
            values are NaN.
    """

    def __cinit__(self, int order, size_t width, bint total_order=False):
        self.total_order = total_order
        self.order = order if width <= WIDEST_BOUND else ORDER_NONE
        self.width = width
        self.records = GrowingBuffer()
        self.bounds = GrowingBuffer()
        self.histograms = GrowingBuffer()
        self.stamps = GrowingBuffer()

    def __dealloc__(self):
        scratch_free(&self.distinct)

    @property
    def minima(self):
        """Of each page the smallest value in PLAIN form (BYTE_ARRAY without length), or None."""
        return self._bounds(False)

    @property
    def maxima(self):
        """The largest values, likewise."""
        return self._bounds(True)

    cdef list _bounds(self, bint largest):
        cdef list found = []
        cdef const char* bound = <const char*>self.bounds.data
        cdef PageRecord* page = self.page(0)
        cdef int64_t _
        for _ in range(self.count()):
            if page.smallest_size < 0:
                found.append(None)
            else:
                if largest:
                    found.append(PyBytes_FromStringAndSize(bound + page.smallest_size, <Py_ssize_t>page.largest_size))
                else:
                    found.append(PyBytes_FromStringAndSize(bound, <Py_ssize_t>page.smallest_size))
                bound += page.smallest_size + page.largest_size
            page += 1
        return found

    def minimum(self):
        """The smallest value of the chunk, or None."""
        return total_extreme(self.minima, -1) if self.total_order else extreme(self.order, self.minima, -1)

    def maximum(self):
        """The largest value, likewise."""
        return total_extreme(self.maxima, 1) if self.total_order else extreme(self.order, self.maxima, 1)

    def counts(self):
        """Six lists, an entry a page: stored size, rows, entries, entries without value, NaNs, bytes of BYTE_ARRAY values."""
        cdef list sizes = [], rows = [], entries = [], nulls = [], nans = [], unencoded = []
        cdef PageRecord* page = self.page(0)
        cdef int64_t _
        for _ in range(self.count()):
            sizes.append(page.size)
            rows.append(page.rows)
            entries.append(page.entries)
            nulls.append(page.entries - page.present)
            nans.append(page.nans)
            unencoded.append(page.unencoded)
            page += 1
        return sizes, rows, entries, nulls, nans, unencoded

    def level_counts(self):
        """Shape (pages * levels,), int64: of each page the counts of all repetition levels, then of all definition levels."""
        return np.array(self.histograms.array(np.int64))

    cdef PageRecord* page(self, int64_t index) noexcept nogil:
        return <PageRecord*>self.records.data + index

    cdef PageRecord* last(self) noexcept nogil:
        return <PageRecord*>(self.records.data + self.records.size) - 1

    cdef int64_t count(self) noexcept nogil:
        return <int64_t>(self.records.size // sizeof(PageRecord))

    cdef int add(self, int64_t rows, int64_t entries, int64_t present) except -1 nogil:
        cdef PageRecord* page = <PageRecord*>self.records.room(sizeof(PageRecord))
        memset(page, 0, sizeof(PageRecord))
        page.smallest_size = -1
        page.rows = rows
        page.entries = entries
        page.present = present
        self.records.size += sizeof(PageRecord)
        return 0

    cdef int _add_bounds(self, const void* smallest, size_t smallest_size, const void* largest,
                         size_t largest_size) except -1 nogil:
        cdef PageRecord* page = self.last()
        cdef uint8_t* place = self.bounds.room(smallest_size + largest_size)
        if smallest_size:       # an empty value may have no address
            memcpy(place, smallest, smallest_size)
        if largest_size:
            memcpy(place + smallest_size, largest, largest_size)
        self.bounds.size += smallest_size + largest_size
        page.smallest_size, page.largest_size = <int64_t>smallest_size, <int64_t>largest_size
        return 0

    cdef int observe_fixed(self, const uint8_t* values, int64_t count) except -1 nogil:
        cdef uint8_t smallest[WIDEST_BOUND]
        cdef uint8_t largest[WIDEST_BOUND]
        cdef PageRecord* page = self.last()
        cdef int64_t found = 0
        if self.order != ORDER_NONE and count:
            found = min_max_fixed(self.order, values, count, self.width, smallest, largest)
            page.nans = count - found
            if self.total_order and (found == 0 or is_zero(smallest, self.width) or is_zero(largest, self.width)):
                total_bounds(values, count, self.width, found > 0, smallest, largest)
                found = count
        return self._add_bounds(smallest, self.width, largest, self.width) if found > 0 else 0

    cdef int observe_slices(self, const Slice* values, int64_t count) except -1 nogil:
        cdef Slice smallest, largest
        if min_max_slices(self.order, values, count, &smallest, &largest) <= 0:
            return 0
        return self._add_bounds(smallest.data, smallest.size, largest.data, largest.size)

    cdef int observe_codes(self, const uint32_t* codes, int64_t count, const Slice* dictionary,
                           int64_t size) except -1 nogil:
        cdef size_t room = <size_t>size * sizeof(uint32_t), known = self.stamps.size
        cdef uint32_t stamp = <uint32_t>self.count()
        cdef uint32_t* stamps
        cdef Slice* distinct
        cdef int64_t found = 0, i
        if self.order != ORDER_BYTES and self.order != ORDER_SIGNED_BYTES:
            return self.observe_slices(NULL, 0)
        if room > known:
            memset(self.stamps.room(room - known), 0, room - known)
            self.stamps.size = room
        stamps = <uint32_t*>self.stamps.data
        distinct = <Slice*>scratch_reserve(&self.distinct, <size_t>min(count, size) * sizeof(Slice))
        for i in range(count):
            if stamps[codes[i]] != stamp:
                stamps[codes[i]] = stamp
                distinct[found] = dictionary[codes[i]]
                found += 1
        return self.observe_slices(distinct, found)

    cdef int observe_levels(self, const uint8_t* levels, int64_t entries, int max_level) except -1 nogil:
        cdef int64_t[LEVELS] seen
        cdef size_t size = <size_t>(max_level + 1) * sizeof(int64_t)
        cdef int64_t* counts = <int64_t*>self.histograms.room(size)
        cdef int64_t i
        memset(seen, 0, sizeof(seen))
        for i in range(entries):
            seen[levels[i]] += 1
        for i in range(max_level + 1):
            counts[i] = seen[i]
        self.histograms.size += size
        return 0


cdef inline int64_t total_key(const uint8_t* value, size_t width) noexcept nogil:
    """A number for a float, in IEEE 754 total order: the bits without the sign, inverted if the sign is set."""
    cdef int16_t half
    cdef int32_t single
    cdef int64_t bits
    if width == 2:
        memcpy(&half, value, 2)
        return half if half >= 0 else ~<int64_t>(half & 0x7FFF)
    if width == 4:
        memcpy(&single, value, 4)
        return single if single >= 0 else ~<int64_t>(single & 0x7FFFFFFF)
    memcpy(&bits, value, 8)
    return bits if bits >= 0 else ~(bits & INT64_MAX)


cdef inline bint is_zero(const uint8_t* value, size_t width) noexcept nogil:
    cdef int64_t key = total_key(value, width)
    return key == 0 or key == -1


cdef inline int64_t infinity_key(size_t width) noexcept nogil:
    return 0x7C00 if width == 2 else 0x7F800000 if width == 4 else 0x7FF0000000000000


cdef void total_bounds(const uint8_t* values, int64_t count, size_t width, bint numbers, uint8_t* minimum,
                       uint8_t* maximum) noexcept nogil:
    """The bounds in total order of the numbers among floats, or of the NaNs; at least one value is of the kind."""
    cdef int64_t low = INT64_MAX, high = INT64_MIN, infinity = infinity_key(width), key, _
    cdef const uint8_t* value = values
    for _ in range(count):
        key = total_key(value, width)
        if ((key if key >= 0 else ~key) <= infinity) == numbers:
            if key < low:
                low = key
                memcpy(minimum, value, width)
            if key > high:
                high = key
                memcpy(maximum, value, width)
        value += width
