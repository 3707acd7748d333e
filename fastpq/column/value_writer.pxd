"""Encodes page values from their stored form."""

from libc.stdint cimport int64_t, uint8_t
from fastpq.codecs.codec cimport Streams
from fastpq.column.scratch cimport Scratch
from fastpq.encodings.interface cimport ValueEncoder, ValuesToEncode
from fastpq.encodings.views cimport Slice


cdef class ValueWriter:
    cdef readonly int encoding
    cdef const ValueEncoder* encoder
    cdef ValuesToEncode page
    cdef Scratch encoding_memory        # ValuesToEncode.scratch
    cdef Scratch slices                 # fixed-width values as slices

    # Returns how many bytes count encoded values can have at most. plain_size is their size in PLAIN form.
    cdef int64_t bound(self, int64_t count, int64_t plain_size) noexcept nogil
    # Encodes count values, or slices for a variable-length column. Returns how many bytes it wrote.
    cdef int64_t write(self, const uint8_t* values, const Slice* slices, int64_t count, uint8_t* out) except -1 nogil
    # Returns the streams in the size bytes that write encoded last.
    cdef Streams streams(self, int64_t size) noexcept nogil
    cdef const Slice* _as_slices(self, const uint8_t* values, int64_t count) except NULL nogil
