"""PLAIN (Encodings.md, "Plain"). Fixed-width values need no kernel: they are memcpy."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from fastpq.encodings.views cimport Slice, View

cdef int64_t plain_decode_booleans(const uint8_t* data, size_t size, int64_t bit_offset, int64_t count,
                                   uint8_t* out) noexcept nogil
cdef int64_t plain_encode_booleans(const uint8_t* flags, int64_t count, uint8_t* out) noexcept nogil

# count BYTE_ARRAY values -> views into a buffer numbered buffer, of which data[0] is byte base. Returns the bytes consumed or a
# negative Status (TRUNCATED, BAD_LENGTH; a buffer whose offsets pass 2^31 - 1 is the caller's to prevent).
cdef int64_t plain_decode_views(const uint8_t* data, size_t size, int64_t count, View* out, int32_t buffer,
                                int64_t base) noexcept nogil
# Values with their lengths before them; returns the bytes written.
cdef int64_t plain_encode_slices(const Slice* values, int64_t count, uint8_t* out) noexcept nogil

# 0, or BAD_UTF8 with the index of the first bad value in *where. all_ascii looks at raw bytes.
cdef bint all_ascii(const uint8_t* data, size_t size) noexcept nogil
cdef int slices_check_utf8(const Slice* values, int64_t count, int64_t* where) noexcept nogil
