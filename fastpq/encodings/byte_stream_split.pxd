"""BYTE_STREAM_SPLIT (Encodings.md, "Byte Stream Split")."""

from libc.stdint cimport int64_t, uint8_t


# The values [start, start + count) of a page of size bytes, of width bytes each. Returns count, or BAD_LENGTH where the page's
# size is no whole number of values, or TRUNCATED.
cdef int64_t split_decode(const uint8_t* data, int64_t size, int64_t start, int64_t count, size_t width,
                          uint8_t* out) noexcept nogil
# count * width bytes.
cdef void split_encode(const uint8_t* values, int64_t count, size_t width, uint8_t* out) noexcept nogil
