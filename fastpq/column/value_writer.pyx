"""Encoding of page values, from stored form, in any encoding without dictionary."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from fastpq.column.scratch cimport scratch_free, scratch_reserve
from fastpq.encodings.alp cimport alp_bound, alp_encode
from fastpq.encodings.byte_stream_split cimport split_encode
from fastpq.encodings.delta cimport delta_bound, delta_encode
from fastpq.encodings.delta_strings cimport (
    delta_lengths_bound, delta_lengths_encode, delta_strings_bound, delta_strings_encode,
)
from fastpq.encodings.numbers cimport (
    ALP, BYTE_STREAM_SPLIT, DELTA_BINARY_PACKED, DELTA_BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY, RLE,
)
from fastpq.encodings.plain cimport plain_encode_booleans, plain_encode_slices
from fastpq.encodings.rle cimport hybrid_bound, hybrid_encode
from fastpq.encodings.views cimport Slice


cdef class ValueWriter:
    """Encodes the values of pages.

    Args:
        encoding: number of an encoding allowed for the column's type.
        variable: whether values are slices.
        boolean: whether values are booleans, a byte each.
        width: bytes of a fixed-width value.
    """

    def __cinit__(self, int encoding, bint variable, bint boolean, size_t width):
        self.encoding = encoding
        self.variable = variable
        self.boolean = boolean
        self.width = width

    def __dealloc__(self):
        scratch_free(&self.flags)
        scratch_free(&self.lengths)
        scratch_free(&self.slices)

    cdef int64_t bound(self, int64_t count, int64_t plain_size) noexcept nogil:
        if self.encoding == RLE:
            return 4 + hybrid_bound(count, 1)
        if self.encoding == DELTA_BINARY_PACKED:
            return delta_bound(count, self.width)
        if self.encoding == ALP:
            return alp_bound(count, self.width)
        if self.encoding == DELTA_LENGTH_BYTE_ARRAY:
            return delta_lengths_bound(count, plain_size)
        if self.encoding == DELTA_BYTE_ARRAY:
            return delta_strings_bound(count, plain_size)
        return plain_size + 1

    cdef int64_t write(self, const uint8_t* values, const Slice* slices, int64_t count, uint8_t* out) except -1 nogil:
        cdef int32_t* lengths
        if self.boolean:
            return self._write_booleans(values, count, out)
        if self.encoding == DELTA_BINARY_PACKED:
            return delta_encode(values, count, self.width, out)
        if self.encoding == ALP:
            return alp_encode(values, count, self.width, out)
        if self.encoding == BYTE_STREAM_SPLIT:
            split_encode(values, count, self.width, out)
            return count * <int64_t>self.width
        if self.encoding == DELTA_LENGTH_BYTE_ARRAY or self.encoding == DELTA_BYTE_ARRAY:
            lengths = <int32_t*>scratch_reserve(&self.lengths, <size_t>count * 2 * sizeof(int32_t))
            if self.encoding == DELTA_LENGTH_BYTE_ARRAY:
                return delta_lengths_encode(slices, count, lengths, out)
            return delta_strings_encode(slices if self.variable else self._as_slices(values, count), count, lengths, out)
        if self.variable:
            return plain_encode_slices(slices, count, out)
        memcpy(out, values, <size_t>count * self.width)
        return count * <int64_t>self.width

    cdef int64_t _write_booleans(self, const uint8_t* values, int64_t count, uint8_t* out) except -1 nogil:
        cdef uint32_t* flags
        cdef uint32_t size
        cdef int64_t i
        if self.encoding != RLE:
            return plain_encode_booleans(values, count, out)
        flags = <uint32_t*>scratch_reserve(&self.flags, <size_t>count * sizeof(uint32_t))
        for i in range(count):
            flags[i] = values[i] != 0
        size = <uint32_t>hybrid_encode(flags, count, 1, out + 4)
        memcpy(out, &size, 4)
        return 4 + <int64_t>size

    cdef const Slice* _as_slices(self, const uint8_t* values, int64_t count) except NULL nogil:
        cdef Slice* slices = <Slice*>scratch_reserve(&self.slices, <size_t>count * sizeof(Slice))
        cdef int64_t i
        for i in range(count):
            slices[i].data = values + <size_t>i * self.width
            slices[i].size = self.width
        return slices
