"""Counts and bounds of written data pages, for statistics and the page index."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from fastpq.column.scratch cimport Scratch
from fastpq.encodings.views cimport Slice
from fastpq.arrays.memory cimport GrowingBuffer

cdef enum:
    WIDEST_BOUND = 64       # bytes of the widest fixed-width value with bounds


cdef struct PageRecord:
    int64_t size                # stored, header included
    int64_t rows
    int64_t entries             # values, nulls and empty lists included
    int64_t present             # values, nulls left out
    int64_t nans
    int64_t unencoded           # bytes of the values of a BYTE_ARRAY column
    int64_t smallest_size       # bytes of the smallest value, -1 for a page without bounds; the largest value stands behind it
    int64_t largest_size


cdef class PageLog:
    cdef int order
    cdef bint total_order           # of floats: IEEE 754 total order
    cdef size_t width               # of fixed-width values; 0 for slices
    cdef GrowingBuffer records      # a PageRecord for each page
    cdef GrowingBuffer bounds       # of each page: the smallest value, then the largest
    cdef GrowingBuffer histograms   # of each page: the counts of all repetition levels, then of all definition levels
    cdef GrowingBuffer stamps       # for each code of a dictionary, the number of the last page with the code, from 1
    cdef Scratch distinct

    cdef PageRecord* page(self, int64_t index) noexcept nogil
    cdef PageRecord* last(self) noexcept nogil
    cdef int64_t count(self) noexcept nogil         # of the pages
    # Begins the next page; the values are observed by one of the next three.
    cdef int add(self, int64_t rows, int64_t entries, int64_t present) except -1 nogil
    cdef int observe_fixed(self, const uint8_t* values, int64_t count) except -1 nogil
    cdef int observe_slices(self, const Slice* values, int64_t count) except -1 nogil
    # The same for count codes of a dictionary of size slices at present.
    cdef int observe_codes(self, const uint32_t* codes, int64_t count, const Slice* dictionary,
                           int64_t size) except -1 nogil
    # Counts each level up to max_level among the entries of the last page.
    cdef int observe_levels(self, const uint8_t* levels, int64_t entries, int max_level) except -1 nogil
    cdef list _bounds(self, bint largest)
    cdef int _add_bounds(self, const void* smallest, size_t smallest_size, const void* largest,
                         size_t largest_size) except -1 nogil
