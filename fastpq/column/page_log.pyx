"""Counts and bounds for written data pages. Statistics and the page index are made from them."""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport INT64_MAX, INT64_MIN, SIZE_MAX, int16_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

import numpy as np

from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.column.stored_values cimport integers_to_decimals
from fastpq.encodings.views cimport Slice
from fastpq.stats.statistics cimport (
    ORDER_BYTES, ORDER_INT64, ORDER_NONE, ORDER_SIGNED_BYTES, min_max_fixed, min_max_slices,
)
from fastpq.arrays.memory cimport GrowingBuffer

from fastpq.stats.statistics import extreme
from fastpq.stats.total_order import total_extreme

cdef enum:
    LONGEST_CODE_POINT = 4          # bytes in UTF-8
    LAST_ASCII = 0x7F               # the next code point has two bytes
    # A code point with a first byte in this range has three bytes, and so has the next code point.
    LEAST_LEAD_OF_THREE = 0xE1
    LAST_LEAD_OF_THREE = 0xEC


@cython.no_gc          # no instance can be part of a cycle
cdef class PageLog:
    """Counts and bounds for the data pages in one chunk.

    Args:
        order: a value of ``Order`` in fastpq.stats.statistics.
        width: bytes of a stored value; 0 for variable-length values.
        total_order: whether floats are in IEEE 754 total order. A zero bound then has the right sign. A page whose values are all
            NaN has NaN as its bounds.
        truncation: variable-length bounds will be cut to this many bytes. Longer bounds need not be kept whole.
    """

    def __cinit__(self, int order, size_t width, bint total_order=False, size_t truncation=SIZE_MAX // 2):
        self.total_order = total_order
        self.truncation = truncation
        self.order = order if width <= WIDEST_BOUND else ORDER_NONE
        self.width = width
        self.records = GrowingBuffer()
        self.bounds = GrowingBuffer()
        self.histograms = GrowingBuffer()
        self.last_pages = GrowingBuffer()

    def __dealloc__(self):
        scratch_free(&self.distinct)

    @property
    def minima(self):
        """Each page's smallest value in PLAIN form (BYTE_ARRAY without its length), or None."""
        return self._bounds(False)

    @property
    def maxima(self):
        """Each page's largest value, likewise."""
        return self._bounds(True)

    cdef list _bounds(self, bint largest):
        cdef list values = []
        cdef const char* bound = <const char*>self.bounds.data
        cdef PageRecord* page = self.page(0)
        cdef int64_t _
        for _ in range(self.count()):
            if page.smallest_size < 0:
                values.append(None)
            else:
                if largest:
                    values.append(PyBytes_FromStringAndSize(bound + page.smallest_size, <Py_ssize_t>page.largest_size))
                else:
                    values.append(PyBytes_FromStringAndSize(bound, <Py_ssize_t>page.smallest_size))
                bound += page.smallest_size + page.largest_size
            page += 1
        return values

    def minimum(self):
        """Return the chunk's smallest value, or None."""
        return total_extreme(self.minima, -1) if self.total_order else extreme(self.order, self.minima, -1)

    def maximum(self):
        """Return the chunk's largest value, or None."""
        return total_extreme(self.maxima, 1) if self.total_order else extreme(self.order, self.maxima, 1)

    def counts(self):
        """Return six lists with a number for each page.

        They are the stored sizes, rows, entries, entries without a value, NaNs, and bytes in BYTE_ARRAY values.
        """
        cdef PageRecord* pages = self.page(0)
        cdef int64_t count = self.count()
        return (
            [pages[i].size for i in range(count)], [pages[i].rows for i in range(count)],
            [pages[i].entries for i in range(count)], [pages[i].entries - pages[i].present for i in range(count)],
            [pages[i].nans for i in range(count)], [pages[i].unencoded for i in range(count)],
        )

    def level_counts(self):
        """Return for each page a count for each repetition level, then for each definition level.

        Returns:
            int64, shape (pages * levels,).
        """
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
        cdef int64_t numbers = 0        # values that are not NaN, or all values with bounds
        if self.order != ORDER_NONE and count:
            numbers = min_max_fixed(self.order, values, count, self.width, smallest, largest)
            page.nans = count - numbers
            if self.total_order and (numbers == 0 or is_zero(smallest, self.width) or is_zero(largest, self.width)):
                total_bounds(values, count, self.width, numbers > 0, smallest, largest)
                numbers = count
        return self._add_bounds(smallest, self.width, largest, self.width) if numbers > 0 else 0

    cdef int observe_integers(self, const uint8_t* integers, int64_t count) except -1 nogil:
        cdef int64_t bounds[2]
        cdef uint8_t stored_bounds[16]
        if self.order == ORDER_NONE or count == 0:
            return 0
        min_max_fixed(ORDER_INT64, integers, count, sizeof(int64_t), <uint8_t*>&bounds[0], <uint8_t*>&bounds[1])
        integers_to_decimals(<const uint8_t*>bounds, 2, stored_bounds, self.width)
        return self._add_bounds(stored_bounds, self.width, stored_bounds + self.width, self.width)

    cdef int observe_slices(self, const Slice* values, int64_t count) except -1 nogil:
        cdef Slice smallest, largest
        if min_max_slices(self.order, values, count, &smallest, &largest) <= 0:
            return 0
        if self.order == ORDER_BYTES:       # a decimal's prefixes are not bounds for it
            smallest.size = prefix_size(smallest, self.truncation)
            if has_successor(largest.data, min(largest.size, self.truncation)):
                largest.size = prefix_size(largest, self.truncation)
        return self._add_bounds(smallest.data, smallest.size, largest.data, largest.size)

    cdef int observe_codes(self, const uint32_t* codes, int64_t count, const Slice* dictionary,
                           int64_t size) except -1 nogil:
        cdef size_t room = <size_t>size * sizeof(uint32_t), old_size = self.last_pages.size
        cdef uint32_t page_number = <uint32_t>self.count()
        cdef uint32_t* last_pages
        cdef Slice* distinct
        cdef int64_t distinct_count = 0, i
        if self.order != ORDER_BYTES and self.order != ORDER_SIGNED_BYTES:
            return self.observe_slices(NULL, 0)
        if room > old_size:
            memset(self.last_pages.room(room - old_size), 0, room - old_size)
            self.last_pages.size = room
        last_pages = <uint32_t*>self.last_pages.data
        distinct = <Slice*>scratch_reserve(&self.distinct, <size_t>min(count, size) * sizeof(Slice))
        for i in range(count):
            if last_pages[codes[i]] != page_number:
                last_pages[codes[i]] = page_number
                distinct[distinct_count] = dictionary[codes[i]]
                distinct_count += 1
        return self.observe_slices(distinct, distinct_count)

    cdef int observe_constant_levels(self, int64_t entries, int level) except -1 nogil:
        cdef size_t size = <size_t>(level + 1) * sizeof(int64_t)
        cdef int64_t* counts = <int64_t*>self.histograms.room(size)
        memset(counts, 0, size)
        counts[level] = entries
        self.histograms.size += size
        return 0

    cdef int observe_list_levels(self, int64_t lists, int64_t entries) except -1 nogil:
        self.observe_constant_levels(entries - lists, 1)
        (<int64_t*>(self.histograms.data + self.histograms.size) - 2)[0] = lists
        return 0

    cdef int observe_levels(self, const uint8_t* levels, int64_t entries, int max_level) except -1 nogil:
        cdef size_t size = <size_t>(max_level + 1) * sizeof(int64_t)
        cdef int64_t* counts = <int64_t*>self.histograms.room(size)
        cdef int64_t i, rest = entries
        cdef int32_t equal
        cdef int level
        for level in range(max_level):      # for few levels, a pass each in vector code is faster than a count table
            equal = 0
            for i in range(entries):
                equal += levels[i] == level
            counts[level] = equal
            rest -= equal
        counts[max_level] = rest
        self.histograms.size += size
        return 0


cdef inline size_t prefix_size(Slice value, size_t truncation) noexcept nogil:
    """Return how many first bytes to keep, so that truncation cuts them like the whole value.

    That is some bytes more than truncation, and no part of a code point at the end.
    """
    cdef size_t size = truncation + 2 * LONGEST_CODE_POINT
    if value.size <= size:
        return value.size
    while size > truncation + LONGEST_CODE_POINT and value.data[size] & 0xC0 == 0x80:       # a UTF-8 continuation byte
        size -= 1
    return size


cdef inline bint has_successor(const uint8_t* prefix, size_t size) noexcept nogil:
    """Return whether a prefix surely has a successor with the same length: an upper bound for all values with this prefix."""
    cdef size_t i
    for i in range(size):
        if prefix[i] < LAST_ASCII:
            return True
        if LEAST_LEAD_OF_THREE <= prefix[i] <= LAST_LEAD_OF_THREE and i + 3 <= size:
            return True
    return False


cdef inline int64_t total_key(const uint8_t* value, size_t width) noexcept nogil:
    """Return an integer for a float, so that integers compare as the floats do in IEEE 754 total order.

    It is the float's bits without the sign, inverted if the sign is set.
    """
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
    """Set the bounds in total order: over the numbers among floats, or over the NaNs. At least one such value exists."""
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
