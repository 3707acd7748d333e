"""Counts and bounds for written data pages. Statistics and the page index are made from them."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from fastpq.column.scratch cimport Scratch
from fastpq.encodings.views cimport Slice
from fastpq.arrays.memory cimport GrowingBuffer

cdef enum:
    WIDEST_BOUND = 64       # bytes: wider fixed-width values have no bounds


cdef struct PageRecord:
    int64_t size                # stored bytes, with the header
    int64_t rows
    int64_t entries             # values, nulls and empty lists
    int64_t present             # values that are not null
    int64_t nans
    int64_t unencoded           # bytes in BYTE_ARRAY values
    int64_t smallest_size       # bytes in the smallest value, which the largest follows in PageLog.bounds; -1 without bounds
    int64_t largest_size


cdef class PageLog:
    cdef int order
    cdef bint total_order           # whether floats are in IEEE 754 total order
    cdef size_t width               # bytes of a fixed-width value; 0 for slices
    cdef size_t truncation          # longest bound that is written, in bytes
    cdef GrowingBuffer records      # a PageRecord for each page
    cdef GrowingBuffer bounds       # for each page the smallest value, then the largest
    cdef GrowingBuffer histograms   # for each page a count for each repetition level, then for each definition level
    cdef GrowingBuffer last_pages   # for each code in a dictionary the last page that has it, counted from 1
    cdef Scratch distinct

    cdef PageRecord* page(self, int64_t index) noexcept nogil
    cdef PageRecord* last(self) noexcept nogil
    cdef int64_t count(self) noexcept nogil         # how many pages there are
    # Begins the next page. One of the next four functions then observes its values.
    cdef int add(self, int64_t rows, int64_t entries, int64_t present) except -1 nogil
    cdef int observe_fixed(self, const uint8_t* values, int64_t count) except -1 nogil
    # The integers are decimals, which have self.width bytes when they are stored.
    cdef int observe_integers(self, const uint8_t* integers, int64_t count) except -1 nogil
    cdef int observe_slices(self, const Slice* values, int64_t count) except -1 nogil
    # Like observe_slices, for codes in a dictionary, which has size slices so far.
    cdef int observe_codes(self, const uint32_t* codes, int64_t count, const Slice* dictionary,
                           int64_t size) except -1 nogil
    # Counts how often the last page has each level up to max_level.
    cdef int observe_levels(self, const uint8_t* levels, int64_t entries, int max_level) except -1 nogil
    # The same for levels that are all equal to `level`, and for the repetition levels of lists that have no list below.
    cdef int observe_constant_levels(self, int64_t entries, int level) except -1 nogil
    cdef int observe_list_levels(self, int64_t lists, int64_t entries) except -1 nogil
    cdef list _bounds(self, bint largest)
    cdef int _add_bounds(self, const void* smallest, size_t smallest_size, const void* largest,
                         size_t largest_size) except -1 nogil
