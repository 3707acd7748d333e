"""Minimum and maximum of a column chunk, gathered page by page."""

from libc.stdint cimport int64_t, uint8_t
from fastpq.encodings.views cimport Slice

cdef enum:
    WIDEST_BOUND = 64       # bytes of the widest fixed-width value that has an order


cdef class ChunkBounds:
    cdef int order
    cdef size_t width               # of fixed-width values; 0 for slices
    cdef readonly bint known        # a value was seen
    cdef uint8_t fixed[4 * WIDEST_BOUND]    # minimum, maximum, and room for those of a page
    cdef object smallest            # the same for slices, as bytes
    cdef object largest

    cdef int observe_fixed(self, const uint8_t* values, int64_t count) except -1 nogil
    cdef int observe_slices(self, const Slice* values, int64_t count) except -1 nogil
