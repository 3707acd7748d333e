"""ALP (AlpEncoding.md), a preview: floats and doubles as decimal integers, bit-packed, with exceptions."""

from libc.stdint cimport int64_t, uint8_t


# The values [start, start + count) of a page of size bytes, of 4 or 8 bytes each. Returns count or a negative Status (TRUNCATED
# where the page ends early or holds fewer values, BAD_RUN for an exponent, factor, width, mode or vector size out of range,
# BAD_LENGTH for offsets, counts and positions that contradict each other).
cdef int64_t alp_decode(const uint8_t* data, int64_t size, int64_t start, int64_t count, size_t width,
                        uint8_t* out) noexcept nogil

# Most bytes that alp_encode writes, and the bytes that it wrote, of count values of 4 or 8 bytes.
cdef int64_t alp_bound(int64_t count, size_t width) noexcept nogil
cdef int64_t alp_encode(const uint8_t* values, int64_t count, size_t width, uint8_t* out) noexcept nogil
