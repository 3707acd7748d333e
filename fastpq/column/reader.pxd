"""The way of a column chunk from stored pages into the caller's memory."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from fastpq.column.page cimport Page, PageReader
from fastpq.column.scratch cimport Scratch
from fastpq.encodings.rle cimport HybridDecoder
from fastpq.encodings.views cimport View


cdef class Output:
    cdef readonly list buffers          # what views point into
    cdef readonly int64_t width
    cdef int32_t add_buffer(self, object buffer) except -1


cdef class ColumnOutput(Output):
    cdef readonly object values         # uint8, rows * width bytes
    cdef readonly object validity       # uint8 bitmap of rows bits, or None
    cdef readonly int64_t rows
    cdef uint8_t* data
    cdef uint8_t* bits


cdef class ChunkReader:
    cdef PageReader pages
    cdef Output output
    cdef Page page
    cdef readonly int64_t remaining     # values of the chunk that are not read yet
    cdef int64_t page_rows              # rows of the page, of which page_row were read
    cdef int64_t page_row
    cdef int64_t page_nulls
    cdef int64_t page_value             # values (not nulls) read
    cdef const uint8_t* cursor          # the next PLAIN value
    cdef int64_t cursor_size
    cdef HybridDecoder hybrid
    cdef int32_t page_buffer            # number of the buffer that PLAIN views point into
    cdef int conversion
    cdef size_t stored_width
    cdef size_t width
    cdef int64_t units
    cdef bint text
    cdef object dictionary_owner
    cdef int64_t dictionary_size        # number of values, or -1 without a dictionary page
    cdef Scratch dictionary
    cdef Scratch bitmap
    cdef Scratch part
    cdef Scratch dense
    cdef Scratch views

    cdef int _attach(self, Output output) except -1
    cdef int64_t _read(self, ColumnOutput output, int64_t offset, int64_t count) except -1 nogil
    cdef int64_t _rows(self, ColumnOutput output, int64_t offset, int64_t count) except -1 nogil
    cdef int _load_page(self) except -1 nogil
    cdef int _load_levels(self) except -1 nogil
    cdef int _load_values(self) except -1 nogil
    cdef int _load_dictionary(self) except -1
    cdef const uint8_t* _bits(self, int64_t count) except NULL nogil
    cdef int _values(self, uint8_t* out, int64_t count) except -1 nogil
    cdef int64_t _plain(self, uint8_t* out, int64_t count) except? -100 nogil
    cdef int _check_text(self, const View* views, int64_t count, const uint8_t* buffer) except -1 nogil
    cdef int _raise(self, int64_t status, const char* what) except -1 nogil
