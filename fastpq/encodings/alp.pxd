"""ALP (AlpEncoding.md), a preview encoding: floats and doubles as bit-packed decimal integers, inexact values stored whole."""

from libc.stdint cimport int64_t, uint8_t


# Decodes the values [start, start + count), of 4 or 8 bytes each, from a page of size bytes. Returns count or a negative Status:
# TRUNCATED where the page ends early or holds fewer values, BAD_RUN for an exponent, factor, width, mode or vector size out of
# range, BAD_LENGTH for contradictory offsets, counts or positions.
cdef int64_t alp_decode(const uint8_t* data, int64_t size, int64_t start, int64_t count, size_t width,
                        uint8_t* out) noexcept nogil

# Greatest size of the encoded page of count values of 4 or 8 bytes, in bytes.
cdef int64_t alp_bound(int64_t count, size_t width) noexcept nogil
# Encodes count values into out, a buffer of alp_bound(count, width) bytes; returns the number of bytes written.
cdef int64_t alp_encode(const uint8_t* values, int64_t count, size_t width, uint8_t* out) noexcept nogil
