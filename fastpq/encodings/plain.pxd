"""PLAIN (Encodings.md, "Plain") of booleans and BYTE_ARRAY, and UTF-8 checks. Fixed-width values need no kernel but memcpy."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from fastpq.encodings.views cimport Slice, View

# Decodes count booleans from bit_offset on, one byte each; returns count or TRUNCATED.
cdef int64_t plain_decode_booleans(const uint8_t* data, size_t size, int64_t bit_offset, int64_t count,
                                   uint8_t* out) noexcept nogil
# Encodes count booleans of one byte each as bits, LSB first; returns the number of bytes written.
cdef int64_t plain_encode_booleans(const uint8_t* flags, int64_t count, uint8_t* out) noexcept nogil

# Decodes count BYTE_ARRAY values to views into buffer number `buffer`; data[0] is byte `base` of the buffer. Returns the bytes
# consumed or a negative Status (TRUNCATED, BAD_LENGTH). The caller keeps offsets in the buffer below 2^31.
cdef int64_t plain_decode_views(const uint8_t* data, size_t size, int64_t count, View* out, int32_t buffer,
                                int64_t base) noexcept nogil
# Encodes count BYTE_ARRAY values, each behind its length of four bytes; returns the number of bytes written.
cdef int64_t plain_encode_slices(const Slice* values, int64_t count, uint8_t* out) noexcept nogil

# Where hardly a value is too long for its view: moves the long ones to out, one behind the other, and lets the views point there.
# Offsets count from base; the values, size bytes in all, stand at out or behind, in the order of the views. Returns the address
# behind the last one; NULL where many values are long, and none is moved.
cdef uint8_t* pack_views(View* views, int64_t count, int64_t size, uint8_t* base, uint8_t* out) noexcept nogil

# Whether all bytes are below 0x80.
cdef bint all_ascii(const uint8_t* data, size_t size) noexcept nogil
# Returns 0, or BAD_UTF8 with the index of the first value of invalid UTF-8 in *where.
cdef int slices_check_utf8(const Slice* values, int64_t count, int64_t* where) noexcept nogil
