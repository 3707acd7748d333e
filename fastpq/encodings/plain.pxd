"""PLAIN (Encodings.md, "Plain"): the stored form in memory, behind a length for BYTE_ARRAY. Also UTF-8 checks."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from fastpq.encodings.interface cimport ValueDecoder, ValueEncoder
from fastpq.encodings.views cimport Slice, View

cdef void plain_decoder(ValueDecoder* decoder) noexcept
cdef void plain_encoder(ValueEncoder* encoder) noexcept

cdef extern from "c/strings.h" nogil:
    # Decodes count BYTE_ARRAY values to views (View) into the buffer with number `buffer`. The byte data[0] has the offset `base`
    # in this buffer. Returns how many bytes it read, or a negative Status (TRUNCATED, BAD_LENGTH). The caller makes sure that
    # offsets in the buffer stay below 2^31.
    int64_t read_views(const uint8_t* data, uint64_t size, int64_t count, void* out, int32_t buffer, int64_t base) noexcept
    # Returns whether all bytes are below 0x80.
    bint is_ascii(const uint8_t* data, uint64_t size) noexcept

cdef extern from "c/utf8.h" nogil:
    uint64_t utf8_high_bits(const uint8_t* data, size_t size) noexcept
    bint utf8_is_valid(const uint8_t* data, size_t size) noexcept

# Encodes count BYTE_ARRAY values, each behind its length in four bytes. Returns how many bytes it wrote.
cdef int64_t plain_encode_slices(const Slice* values, int64_t count, uint8_t* out) noexcept nogil

# Returns the index of the first value that is not valid UTF-8, or -1. Text that is all ASCII takes one fast pass.
cdef int64_t invalid_utf8_place(const Slice* values, int64_t count) noexcept nogil

# Saves memory if almost all values are inline in their views: moves the others to out, without gaps, and makes the views point
# there. Offsets count from base. The values have size bytes in all. They are at out or behind it, in the same order as the views.
# Returns the address behind the last moved value. Returns NULL if many values are long, because then it moves nothing.
cdef uint8_t* pack_views(View* views, int64_t count, int64_t size, uint8_t* base, uint8_t* out) noexcept nogil
