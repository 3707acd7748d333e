"""Decodes column chunks into the caller's memory."""

from libc.stdint cimport int64_t, uint8_t
from fastpq.column.column_output cimport ColumnOutput, Output
from fastpq.column.page cimport Page, PageReader
from fastpq.column.scratch cimport Scratch
from fastpq.column.value_reader cimport ValueReader


cdef class ChunkReader:
    cdef PageReader pages
    cdef Output output
    cdef Page page
    cdef readonly int64_t remaining     # values in the chunk that were not read yet
    cdef int64_t page_rows              # rows in the page
    cdef int64_t page_row               # rows in the page that were read or skipped
    cdef int64_t page_nulls
    cdef ValueReader values
    cdef bint defers_values             # whether whole pages may be read into the output, because values look alike in both
    cdef size_t width
    cdef Scratch bitmap
    cdef Scratch part
    cdef Scratch dense
    cdef Scratch chosen                 # bits: the chosen rows
    cdef Scratch valid                  # bits: the chosen values among the non-null ones, then the chosen rows' validity

    # These two are for a ChunkRun. begin checks that an output has count rows at an offset. read_chunk decodes one chunk, which
    # has size bytes from position base on.
    cdef int begin(self, ColumnOutput output, int64_t offset, int64_t count) except -1
    cdef int64_t read_chunk(self, ColumnOutput output, int64_t offset, int64_t base, int64_t size, bint expect_dictionary,
                            int64_t num_values) except -1 nogil

    cdef int _check(self, ColumnOutput output, int64_t offset, int64_t count) except -1
    cdef int _attach(self, Output output) except -1
    cdef int64_t _decode(self, ColumnOutput output, int64_t offset, int64_t count, const int64_t[:, ::1] ranges,
                         const uint8_t* bits) except -1
    cdef int64_t _read(self, ColumnOutput output, int64_t offset, int64_t count) except -1 nogil
    cdef int64_t _read_ranges(self, ColumnOutput output, int64_t offset, const int64_t[:, ::1] ranges) except -1 nogil
    cdef const uint8_t* _bits_of(self, const int64_t* ranges, int64_t count) except NULL nogil
    cdef int64_t _read_bits(self, ColumnOutput output, int64_t offset, const uint8_t* bits, int64_t count) except -1 nogil
    cdef int64_t _read_mixed(self, ColumnOutput output, int64_t offset, const uint8_t* bits, int64_t place,
                             int64_t count) except -1 nogil
    cdef int64_t _chosen(self, ColumnOutput output, int64_t offset, const uint8_t* bits, int64_t place, int64_t rows,
                         int64_t kept) except -1 nogil
    cdef int _skip(self, int64_t count) except -1 nogil
    cdef int64_t _pass(self, int64_t count) except -1 nogil
    cdef int64_t _rows(self, ColumnOutput output, int64_t offset, int64_t count) except -1 nogil
    cdef int64_t _expand(self, const uint8_t* bits, int64_t count, uint8_t* out) except -1 nogil
    cdef int _load_page(self, int64_t at_once=*) except -1 nogil
    cdef int _open_page(self) except -1 nogil
    cdef int _load_levels(self) except -1 nogil
    cdef const uint8_t* _bits(self, int64_t count) except NULL nogil
