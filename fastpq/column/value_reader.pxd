"""Decodes page values from any encoding to their form in memory."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from fastpq.arrays.allowance cimport Counted
from fastpq.column.page cimport Page, PageReader
from fastpq.column.scratch cimport Scratch
from fastpq.column.stored_values cimport ValueChecks
from fastpq.encodings.interface cimport PageValues, ValueDecoder
from fastpq.encodings.views cimport View


cdef class ValueReader:
    cdef PageReader pages
    cdef list buffers                   # the output's buffers, which views point into
    cdef object physical
    cdef int conversion
    cdef bint variable
    cdef size_t stored_width
    cdef size_t width
    cdef int64_t units
    cdef bint fits_microseconds         # whether the INT96 values that were out of range fit microseconds
    cdef bint text
    cdef ValueChecks checks
    cdef uint64_t encodings             # a bit for each encoding that fastpq reads for the type
    cdef const ValueDecoder* decoder    # for the page's encoding
    cdef PageValues page                # the page's values, and where the next one is
    cdef int64_t count                  # values in the page, without nulls
    cdef bint deferred                  # whether the page's PLAIN values are still in the file
    cdef Counted extended               # PageReader.extended, if its array is among the buffers
    cdef int32_t extended_buffer        # this array's buffer number
    cdef object dictionary_owner        # the array that views in the dictionary point into
    cdef int64_t dictionary_size        # how many values the dictionary has; -1 without a dictionary page
    cdef int64_t ordinal                # the next data page's number, if no page is skipped
    cdef Scratch previous               # the last value decoded, where the next one may share a prefix with it
    cdef Scratch dictionary
    cdef Scratch stored
    cdef Scratch views
    cdef Scratch decoding               # PageValues.scratch
    cdef Scratch passed                 # values that are dropped, or chosen from

    # Forgets the chunk. This must come before another chunk's first page.
    cdef void restart(self) noexcept nogil
    # Makes all further views point into the buffers in a list.
    cdef int attach(self, list buffers) except -1
    # Moves to the first value in a data page with count values.
    cdef int load(self, const Page* page, int64_t count) except -1 nogil
    cdef int load_dictionary(self, const Page* page) except -1 nogil
    # Decodes the next count values to out. There are no gaps for nulls.
    cdef int read(self, uint8_t* out, int64_t count) except -1 nogil
    # Passes over the next count values, and decodes to out those at the set bits among count bits, from bit offset on. There are
    # `chosen` set bits.
    cdef int read_chosen(self, uint8_t* out, const uint8_t* bits, int64_t offset, int64_t count,
                         int64_t chosen) except -1 nogil
    # Passes over the next count values. They are decoded only if later values depend on them.
    cdef int skip(self, int64_t count) except -1 nogil

    # Checks that no decimal among count values has too many digits, and that no time of day is outside a day.
    cdef int check_values(self, const uint8_t* values, int64_t count) except -1 nogil

    cdef int _load_deferred(self) except -1 nogil
    cdef void _open(self, const Page* page, int64_t count) noexcept nogil
    cdef int _decode_dictionary(self, const Page* page) except -1 nogil
    cdef void _use_entries(self, const uint8_t* data, size_t width) noexcept nogil
    cdef int64_t _decode(self, uint8_t* out, int64_t count) except? -100 nogil
    cdef int64_t _fixed(self, uint8_t* out, int64_t count) except? -100 nogil
    cdef int64_t _stored(self, uint8_t* out, int64_t count) except? -100 nogil
    cdef int64_t _variable(self, uint8_t* out, int64_t count) except? -100 nogil
    cdef int64_t _next_views(self, View* views, int64_t count) except? -100 nogil
    cdef int _reserve_scratch(self, int64_t count) except -1 nogil
    cdef int _reserve_memory(self, int64_t size) except -1 nogil
    cdef int _keep(self, const uint8_t* value, int64_t size) except -1 nogil
    cdef int32_t _add_buffer(self, object buffer) except -1
    cdef int32_t _retained_buffer(self) except -1 nogil
    cdef int _fail(self, int64_t status, const char* what) except -1 nogil
