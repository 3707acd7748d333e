"""DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY (Encodings.md, "Delta-length byte array" and "Delta Strings")."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from fastpq.encodings.delta cimport DeltaDecoder
from fastpq.encodings.views cimport Slice, View


# Resumable positions; plain data, may be copied.
cdef struct DeltaLengths:
    DeltaDecoder lengths
    const uint8_t* data             # values one behind the other
    uint64_t size
    uint64_t position               # of the next one

cdef struct DeltaStrings:
    DeltaDecoder prefixes
    DeltaLengths suffixes

# Read the headers; return 0 or a negative Status.
cdef int delta_lengths_start(DeltaLengths* decoder, const uint8_t* data, size_t size) noexcept nogil
cdef int delta_strings_start(DeltaStrings* decoder, const uint8_t* data, size_t size) noexcept nogil

# The next count values as views into a buffer numbered buffer, of which decoder.data[0] is byte base. Returns count or a negative
# Status.
cdef int64_t delta_lengths_next(DeltaLengths* decoder, View* out, int64_t count, int32_t buffer, int64_t base) noexcept nogil

# Two steps, between which the caller takes memory: the lengths of the next count values, which follow a value of `previous`
# bytes, and the size of that memory (or a negative Status); then views into it, by the same lengths.
cdef int64_t delta_strings_measure(DeltaStrings* decoder, int64_t count, int64_t previous, int32_t* prefixes,
                                   int32_t* suffixes) noexcept nogil
cdef void delta_strings_next(DeltaStrings* decoder, int64_t count, const uint8_t* previous, const int32_t* prefixes,
                             const int32_t* suffixes, View* out, uint8_t* memory, int32_t buffer) noexcept nogil
# The same for values that must all be of width bytes; previous is the value before them, or of no bytes. lengths has room for
# 2 * count. Returns count or a negative Status.
cdef int64_t delta_strings_next_fixed(DeltaStrings* decoder, int64_t count, Slice previous, int32_t* lengths, size_t width,
                                      uint8_t* out) noexcept nogil

# Most bytes that the encoders write for count values of total bytes; lengths has room for count (2 * count for strings).
cdef int64_t delta_lengths_bound(int64_t count, int64_t total) noexcept nogil
cdef int64_t delta_lengths_encode(const Slice* values, int64_t count, int32_t* lengths, uint8_t* out) noexcept nogil
cdef int64_t delta_strings_bound(int64_t count, int64_t total) noexcept nogil
cdef int64_t delta_strings_encode(const Slice* values, int64_t count, int32_t* lengths, uint8_t* out) noexcept nogil
