"""DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY (Encodings.md, "Delta-length byte array" and "Delta Strings")."""

# "lengths" in these names is DELTA_LENGTH_BYTE_ARRAY, "strings" is DELTA_BYTE_ARRAY.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from fastpq.encodings.delta cimport DeltaDecoder
from fastpq.encodings.views cimport Slice, View


# Resumable positions; plain data, may be copied.
cdef struct DeltaLengths:
    DeltaDecoder lengths
    const uint8_t* data             # bytes of the values, one value behind the other
    uint64_t size                   # of data, in bytes
    uint64_t position               # of the next value in data

cdef struct DeltaStrings:
    DeltaDecoder prefixes
    DeltaLengths suffixes

# Start a decoder before the first value of a page; return 0 or a negative Status.
cdef int delta_lengths_start(DeltaLengths* decoder, const uint8_t* data, size_t size) noexcept nogil
cdef int delta_strings_start(DeltaStrings* decoder, const uint8_t* data, size_t size) noexcept nogil

# Decodes the next count values to views into buffer number `buffer`; decoder.data[0] is byte `base` of the buffer. Returns count
# or a negative Status.
cdef int64_t delta_lengths_next(DeltaLengths* decoder, View* out, int64_t count, int32_t buffer, int64_t base) noexcept nogil

# Decodes the lengths of the prefixes and suffixes of the next count values; the value before has `previous` bytes. Returns the
# memory required by delta_strings_next in bytes, or a negative Status.
cdef int64_t delta_strings_measure(DeltaStrings* decoder, int64_t count, int64_t previous, int32_t* prefixes,
                                   int32_t* suffixes) noexcept nogil
# Decodes the next count values, measured before, to `memory` and to views into buffer number `buffer`, the number of memory.
# previous is the value before the first.
cdef void delta_strings_next(DeltaStrings* decoder, int64_t count, const uint8_t* previous, const int32_t* prefixes,
                             const int32_t* suffixes, View* out, uint8_t* memory, int32_t buffer) noexcept nogil
# Measures and decodes the next count values, all of width bytes, to out. previous is the value before the first, or empty.
# lengths has room for 2 * count numbers. Returns count or a negative Status (BAD_LENGTH for a value of another width).
cdef int64_t delta_strings_next_fixed(DeltaStrings* decoder, int64_t count, Slice previous, int32_t* lengths, size_t width,
                                      uint8_t* out) noexcept nogil

# The bounds are the greatest size of the encoded page of count values of total bytes, in bytes. The encoders write count values
# to out and return the number of bytes written; lengths is scratch memory for count numbers (2 * count for strings).
cdef int64_t delta_lengths_bound(int64_t count, int64_t total) noexcept nogil
cdef int64_t delta_lengths_encode(const Slice* values, int64_t count, int32_t* lengths, uint8_t* out) noexcept nogil
cdef int64_t delta_strings_bound(int64_t count, int64_t total) noexcept nogil
cdef int64_t delta_strings_encode(const Slice* values, int64_t count, int32_t* lengths, uint8_t* out) noexcept nogil
