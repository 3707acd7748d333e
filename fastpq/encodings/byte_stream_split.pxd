"""BYTE_STREAM_SPLIT (Encodings.md, "Byte Stream Split"): the first bytes of all values, then the second bytes, and so on."""

from libc.stdint cimport int64_t, uint8_t


# Decodes the values [start, start + count), of width bytes each, from a page of size bytes. Returns count, or BAD_LENGTH where
# the page's size is no whole number of values, or TRUNCATED.
cdef int64_t split_decode(const uint8_t* data, int64_t size, int64_t start, int64_t count, size_t width,
                          uint8_t* out) noexcept nogil
# Writes count * width bytes to out.
cdef void split_encode(const uint8_t* values, int64_t count, size_t width, uint8_t* out) noexcept nogil
