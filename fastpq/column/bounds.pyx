"""Minimum and maximum of a column chunk, gathered page by page."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from fastpq.encodings.views cimport Slice
from fastpq.index.statistics cimport ORDER_NONE, min_max_fixed, min_max_slices


cdef class ChunkBounds:
    """Bounds of the values that a chunk holds, in the order of its column.

    Args:
        order: a value of ``Order`` in fastpq.index.statistics.
        width: bytes of a stored value, or 0 where values are of variable length.
    """

    def __cinit__(self, int order, size_t width):
        self.order = order if width <= WIDEST_BOUND else ORDER_NONE
        self.width = width

    def minimum(self):
        """The smallest value as PLAIN stores it (BYTE_ARRAY without its length), or None."""
        if not self.known:
            return None
        return self.smallest if self.width == 0 else PyBytes_FromStringAndSize(<char*>self.fixed, <Py_ssize_t>self.width)

    def maximum(self):
        """The largest value, likewise."""
        if not self.known:
            return None
        return self.largest if self.width == 0 else PyBytes_FromStringAndSize(
            <char*>self.fixed + self.width, <Py_ssize_t>self.width)

    cdef int observe_fixed(self, const uint8_t* values, int64_t count) except -1 nogil:
        cdef uint8_t* first = self.fixed
        cdef size_t width = self.width
        cdef uint8_t both[2 * WIDEST_BOUND]
        if self.order == ORDER_NONE or count == 0:
            return 0
        if min_max_fixed(self.order, values, count, width, first + 2 * width, first + 3 * width) <= 0:
            return 0
        if self.known:
            min_max_fixed(self.order, first, 4, width, both, both + width)
            memcpy(first, both, 2 * width)
        else:
            memcpy(first, first + 2 * width, 2 * width)
            self.known = True
        return 0

    cdef int observe_slices(self, const Slice* values, int64_t count) except -1 nogil:
        cdef Slice found[4]
        cdef Slice smallest, largest
        if self.order == ORDER_NONE or count == 0:
            return 0
        if min_max_slices(self.order, values, count, &smallest, &largest) <= 0:
            return 0
        with gil:
            if self.known:
                found[0] = slice_of(self.smallest)
                found[1] = slice_of(self.largest)
                found[2] = smallest
                found[3] = largest
                min_max_slices(self.order, found, 4, &smallest, &largest)
            low = PyBytes_FromStringAndSize(<const char*>smallest.data, <Py_ssize_t>smallest.size)
            high = PyBytes_FromStringAndSize(<const char*>largest.data, <Py_ssize_t>largest.size)
            self.smallest, self.largest, self.known = low, high, True
        return 0


cdef Slice slice_of(bytes value):
    cdef Slice result
    result.data = <const uint8_t*>PyBytes_AS_STRING(value)
    result.size = <size_t>PyBytes_GET_SIZE(value)
    return result
