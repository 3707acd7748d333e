"""Decodes column chunks that belong to nested columns."""

from libc.stdint cimport int64_t, uint8_t

from fastpq.column.assembly cimport NestedOutput
from fastpq.column.chunk_reader cimport ChunkReader
from fastpq.column.scratch cimport Scratch


cdef class NestedReader(ChunkReader):
    cdef Scratch definition         # the page's levels, a byte an entry
    cdef Scratch repetition
    cdef Scratch slot_bits
    cdef bint has_begun             # whether a row has begun
    cdef int64_t _read_chosen_rows(self, NestedOutput output, const int64_t[:, ::1] ranges, int64_t count) except -1
    cdef int64_t _read_rows(self, NestedOutput output, int64_t count, bint skip) except -1 nogil
    cdef int _entries(self, NestedOutput output, int64_t count) except -1 nogil
    cdef int _skip_entries(self, int64_t count, bint more) except -1 nogil
    cdef int _check_rows(self, int64_t count) except -1 nogil
    cdef int _decode_levels(self, bint repetition, uint8_t* out, int64_t count) except -1 nogil


cdef class StructLeafReader(NestedReader):
    cdef int lowest_level           # the lowest definition level so far; the caller begins with the leaf's highest
