"""Decoding of page values, from any encoding into memory form."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from fastpq.arrays.allowance cimport Counted
from fastpq.column.page cimport Page, PageReader
from fastpq.column.scratch cimport Scratch
from fastpq.column.stored_values cimport ValueChecks
from fastpq.encodings.delta cimport DeltaDecoder
from fastpq.encodings.delta_strings cimport DeltaLengths, DeltaStrings
from fastpq.encodings.rle cimport HybridDecoder
from fastpq.encodings.views cimport View


cdef class ValueReader:
    cdef PageReader pages
    cdef list buffers                   # of the output; targets of views
    cdef object physical
    cdef int conversion
    cdef bint variable
    cdef size_t stored_width
    cdef size_t width
    cdef int64_t units
    cdef bint fits_microseconds         # whether the INT96 values last found out of range fit microseconds
    cdef bint text
    cdef ValueChecks checks
    cdef uint64_t encodings             # a bit for each encoding that is read for the type
    cdef int encoding                   # of the page
    cdef int64_t count                  # values of the page, nulls left out
    cdef int64_t done                   # values already decoded
    cdef bint deferred                  # the PLAIN values of the page are still in the file
    cdef const uint8_t* cursor          # the next PLAIN value
    cdef int64_t cursor_size
    cdef HybridDecoder hybrid
    cdef DeltaDecoder delta
    cdef DeltaLengths lengths
    cdef DeltaStrings strings
    cdef int32_t page_buffer            # number of the buffer for views into the page
    cdef Counted extended               # of the pages, if the array is among the buffers and may hold the next page too
    cdef int32_t extended_buffer        # number of the array
    cdef const uint8_t* base            # first byte of the buffer of the views decoded last
    cdef object dictionary_owner
    cdef int64_t dictionary_size        # number of values, or -1 without a dictionary page
    cdef int64_t ordinal                # of the next data page, if no page is left out
    cdef int64_t previous_size
    cdef Scratch previous               # the last DELTA_BYTE_ARRAY value
    cdef Scratch dictionary
    cdef Scratch stored
    cdef Scratch views
    cdef Scratch sizes
    cdef Scratch passed                 # values decoded in vain, or before a choice

    # Forgets the chunk, before the first page of another one.
    cdef void restart(self) noexcept nogil
    # Makes views point into buffers of a list from now on.
    cdef int attach(self, list buffers) except -1
    # Moves to the first of count values of a data page.
    cdef int load(self, const Page* page, int64_t count) except -1 nogil
    cdef int load_dictionary(self, const Page* page) except -1 nogil
    # Decodes the next count values to out, without gaps for nulls.
    cdef int read(self, uint8_t* out, int64_t count) except -1 nogil
    # Passes over the next count values, and decodes to out the kept values at the set bits among count bits, from bit offset on.
    cdef int read_chosen(self, uint8_t* out, const uint8_t* bits, int64_t offset, int64_t count, int64_t kept) except -1 nogil
    # Passes over the next count values, decoded only where the next value is found by them.
    cdef int skip(self, int64_t count) except -1 nogil

    # Checks count decoded values: no decimal has more digits than the column's type, and no time is outside a day.
    cdef int check_values(self, const uint8_t* values, int64_t count) except -1 nogil

    cdef int _load_deferred(self) except -1 nogil
    cdef int64_t _start(self) except? -100 nogil
    cdef int64_t _start_indices(self) noexcept nogil
    cdef int64_t _start_booleans(self) noexcept nogil
    cdef int64_t _skip(self, int64_t count) except? -100 nogil
    cdef int64_t _skip_plain(self, int64_t count) noexcept nogil
    cdef int64_t _decode(self, uint8_t* out, int64_t count) except? -100 nogil
    cdef int64_t _fixed(self, uint8_t* out, int64_t count) except? -100 nogil
    cdef int64_t _stored(self, uint8_t* out, int64_t count) except? -100 nogil
    cdef int64_t _fixed_strings(self, uint8_t* out, int64_t count) except? -100 nogil
    cdef int64_t _variable(self, uint8_t* out, int64_t count) except? -100 nogil
    cdef int64_t _string_views(self, View* views, int64_t count, const uint8_t** base) except? -100 nogil
    cdef uint8_t* _string_memory(self, int64_t size) except NULL nogil
    cdef int _keep(self, const uint8_t* value, int64_t size) except -1 nogil
    cdef int32_t _add_buffer(self, object buffer) except -1
    cdef int32_t _retained_buffer(self) except -1 nogil
    cdef int _fail(self, int64_t status, const char* what) except -1 nogil
