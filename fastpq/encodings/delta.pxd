"""DELTA_BINARY_PACKED (Encodings.md, "Delta Encoding"): 32-bit or 64-bit integers as differences, modulo 2^32 or 2^64."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from fastpq.encodings.interface cimport ValueDecoder, ValueEncoder

cdef void delta_decoder(ValueDecoder* decoder) noexcept
cdef void delta_encoder(ValueEncoder* encoder) noexcept


# A position in a stream, where decoding continues. It is plain data, so a copy is a second position.
cdef struct DeltaDecoder:
    const uint8_t* pos              # where the current miniblock ends
    const uint8_t* end              # where the page ends
    int64_t remaining               # how many values are still to decode
    bint at_first                   # whether the next value is the first one, which the header holds
    uint64_t last                   # the value decoded last; the first value while at_first
    uint64_t least                  # smallest difference in the current block
    int64_t miniblock_size          # values in a miniblock
    int64_t miniblocks              # miniblocks in a block
    int64_t miniblock               # the current miniblock's index in its block
    const uint8_t* widths           # a byte for each miniblock in the block: its bit width
    const uint8_t* packed           # where the current miniblock starts
    int width                       # bit width of a difference in the current miniblock
    int64_t next                    # the next value's index in the current miniblock

# Reads the header. Returns 0 or a negative Status (TRUNCATED, BAD_RUN, BAD_LENGTH).
cdef int delta_start(DeltaDecoder* decoder, const uint8_t* data, size_t size) noexcept nogil
# Decodes the next count values, which have 4 or 8 bytes. Returns count or a negative Status (TRUNCATED if the stream has fewer).
cdef int64_t delta_next(DeltaDecoder* decoder, uint8_t* out, int64_t count, size_t width) noexcept nogil
# Returns the first byte behind the stream, or NULL if the stream is broken. The decoder must be at the first value.
cdef const uint8_t* delta_end(const DeltaDecoder* decoder) noexcept nogil

# Returns how many bytes a stream with count values can have at most. width is 4 or 8.
cdef int64_t delta_bound(int64_t count, size_t width) noexcept nogil
# Encodes count values into out, which has room for delta_bound(count, width) bytes. Returns how many bytes it wrote.
cdef int64_t delta_encode(const uint8_t* values, int64_t count, size_t width, uint8_t* out) noexcept nogil
