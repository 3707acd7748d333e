"""PLAIN (Encodings.md, "Plain") of booleans and BYTE_ARRAY, and UTF-8 checks. Fixed-width values need no kernel but memcpy."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from fastpq.encodings.levels cimport bitmap_to_bytes, bytes_to_bitmap
from fastpq.encodings.status cimport BAD_UTF8, TRUNCATED, raise_status
from fastpq.encodings.views cimport Slice, View

cdef extern from "c/utf8.h" nogil:
    bint utf8_is_valid(const uint8_t* data, size_t size) noexcept

cdef extern from "c/strings.h" nogil:
    int64_t read_views(const uint8_t* data, uint64_t size, int64_t count, void* out, int32_t buffer, int64_t base) noexcept
    int64_t bytes_outside(const void* data, int64_t count) noexcept
    uint8_t* pack_outside(void* data, int64_t count, uint8_t* base, uint8_t* out) noexcept
    bint is_ascii(const uint8_t* data, uint64_t size) noexcept

cdef enum:
    SAMPLE = 1024           # first values, by which all are packed or left
    PACKED_SHARE = 8        # of the sample of packed values, those that are not inline take at most one part of as many


cdef int64_t plain_decode_booleans(const uint8_t* data, size_t size, int64_t bit_offset, int64_t count,
                                   uint8_t* out) noexcept nogil:
    if <uint64_t>(bit_offset + count + 7) // 8 > size:
        return TRUNCATED
    bitmap_to_bytes(data, bit_offset, count, out)
    return count


cdef int64_t plain_encode_booleans(const uint8_t* flags, int64_t count, uint8_t* out) noexcept nogil:
    bytes_to_bitmap(flags, count, out)
    return (count + 7) // 8


cdef int64_t plain_decode_views(const uint8_t* data, size_t size, int64_t count, View* out, int32_t buffer,
                                int64_t base) noexcept nogil:
    return read_views(data, size, count, out, buffer, base)


cdef uint8_t* pack_views(View* views, int64_t count, int64_t size, uint8_t* base, uint8_t* out) noexcept nogil:
    cdef int64_t first = min(count, <int64_t>SAMPLE)
    if count == 0 or bytes_outside(views, first) * PACKED_SHARE >= size * first // count:
        return NULL
    return pack_outside(views, count, base, out)


cdef int64_t plain_encode_slices(const Slice* values, int64_t count, uint8_t* out) noexcept nogil:
    cdef uint8_t* start = out
    cdef uint32_t size
    cdef int64_t i
    for i in range(count):
        size = <uint32_t>values[i].size
        memcpy(out, &size, 4)
        memcpy(out + 4, values[i].data, size)
        out += 4 + <size_t>size
    return out - start


cdef bint all_ascii(const uint8_t* data, size_t size) noexcept nogil:
    return is_ascii(data, size)


cdef int slices_check_utf8(const Slice* values, int64_t count, int64_t* where) noexcept nogil:
    cdef int64_t i
    for i in range(count):
        if not utf8_is_valid(values[i].data, values[i].size):
            where[0] = i
            return BAD_UTF8
    return 0


def decode_views(const uint8_t[::1] data, Py_ssize_t count, int buffer=0):
    """The first count BYTE_ARRAY values of a page, as (views of dtype V16 into data, bytes consumed).

    Raises:
        FormatError: the data end early or a length points outside the data.
    """
    out = np.zeros(max(count, 1), dtype="V16")
    cdef uint8_t[::1] views = out.view(np.uint8)
    consumed = raise_status(plain_decode_views(&data[0] if data.shape[0] else NULL, <size_t>data.shape[0], count,
                                               <View*>&views[0], buffer, 0), "PLAIN")
    return out[:count], consumed


def check_utf8(const uint8_t[::1] data):
    """Whether data are well-formed UTF-8."""
    return utf8_is_valid(&data[0] if data.shape[0] else NULL, <size_t>data.shape[0])
