"""Encoding of page values, from stored form."""

from libc.stdint cimport int64_t, uint8_t
from fastpq.column.scratch cimport Scratch
from fastpq.encodings.views cimport Slice


cdef class ValueWriter:
    cdef readonly int encoding
    cdef bint variable
    cdef bint boolean
    cdef size_t width
    cdef Scratch flags
    cdef Scratch lengths
    cdef Scratch slices

    # Most bytes of count encoded values; plain_size is their size in PLAIN form.
    cdef int64_t bound(self, int64_t count, int64_t plain_size) noexcept nogil
    # Encodes count values, or slices of a column of variable length; returns the number of bytes written.
    cdef int64_t write(self, const uint8_t* values, const Slice* slices, int64_t count, uint8_t* out) except -1 nogil
    cdef int64_t _write_booleans(self, const uint8_t* values, int64_t count, uint8_t* out) except -1 nogil
    cdef const Slice* _as_slices(self, const uint8_t* values, int64_t count) except NULL nogil
