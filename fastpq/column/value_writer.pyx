"""Encodes page values from their stored form, in any encoding without dictionary."""

cimport cython
from libc.stdint cimport int64_t, uint8_t

from fastpq.codecs.codec cimport Streams
from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.encodings.interface cimport BOOLEANS, BYTE_ARRAYS, FIXED_WIDTH
from fastpq.encodings.encoding_table cimport encoder_of
from fastpq.encodings.views cimport Slice


@cython.no_gc          # no instance can be part of a cycle
cdef class ValueWriter:
    """Encodes the values in pages.

    Args:
        encoding: the encoding's number. fastpq must write the encoding for the column type.
        variable: whether values are slices.
        boolean: whether values are booleans, one byte each.
        width: bytes of a fixed-width value.
    """

    def __cinit__(self, int encoding, bint variable, bint boolean, size_t width):
        self.encoding = encoding
        self.encoder = encoder_of(encoding)
        self.page.form = BYTE_ARRAYS if variable else BOOLEANS if boolean else FIXED_WIDTH
        self.page.width = width

    def __dealloc__(self):
        scratch_free(&self.encoding_memory)
        scratch_free(&self.slices)

    cdef int64_t bound(self, int64_t count, int64_t plain_size) noexcept nogil:
        self.page.count = count
        self.page.plain_size = plain_size
        return self.encoder.bound(&self.page)

    cdef int64_t write(self, const uint8_t* values, const Slice* slices, int64_t count, uint8_t* out) except -1 nogil:
        self.page.count = count
        self.page.values = values
        self.page.slices = slices
        if self.encoder.takes_slices and self.page.form == FIXED_WIDTH:
            self.page.slices = self._as_slices(values, count)
        if self.encoder.scratch:
            self.page.scratch = scratch_reserve(&self.encoding_memory, <size_t>count * self.encoder.scratch)
        return self.encoder.encode(&self.page, out)

    cdef Streams streams(self, int64_t size) noexcept nogil:
        cdef Streams one_stream
        one_stream.first = one_stream.each = 0
        return one_stream if self.encoder.streams == NULL else self.encoder.streams(&self.page, size)

    cdef const Slice* _as_slices(self, const uint8_t* values, int64_t count) except NULL nogil:
        cdef Slice* slices = <Slice*>scratch_reserve(&self.slices, <size_t>count * sizeof(Slice))
        cdef int64_t i
        for i in range(count):
            slices[i].data = values + <size_t>i * self.page.width
            slices[i].size = self.page.width
        return slices
