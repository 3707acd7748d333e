"""DELTA_BINARY_PACKED (Encodings.md, "Delta Encoding"): integers of 32 or 64 bits, sums modulo their width."""

from libc.stdint cimport int64_t, uint8_t, uint64_t


# A resumable position in a stream; plain data, may be copied.
cdef struct DeltaDecoder:
    const uint8_t* pos              # behind the miniblock in which the decoder stands
    const uint8_t* end
    int64_t left                    # values that are not decoded yet
    bint at_first                   # the next one is the first value, which the header holds
    uint64_t last                   # the value before the next, or the first one
    uint64_t least                  # delta of the block
    int64_t miniblock_size          # values in a miniblock
    int64_t miniblocks              # in a block
    int64_t miniblock               # the one in which the decoder stands
    const uint8_t* widths           # of the block's miniblocks
    const uint8_t* packed           # values of the miniblock
    int width
    int64_t next                    # of them

# Reads the header; returns 0 or a negative Status (TRUNCATED, BAD_RUN, BAD_LENGTH).
cdef int delta_start(DeltaDecoder* decoder, const uint8_t* data, size_t size) noexcept nogil
# The next count values, of 4 or 8 bytes; returns count or a negative Status (TRUNCATED where the stream holds fewer).
cdef int64_t delta_next(DeltaDecoder* decoder, uint8_t* out, int64_t count, size_t width) noexcept nogil
# First byte behind the stream, of which decoder is the start; NULL where the stream is broken.
cdef const uint8_t* delta_end(const DeltaDecoder* decoder) noexcept nogil

# Most bytes that delta_encode writes, and the bytes that it wrote, of count values of 4 or 8 bytes.
cdef int64_t delta_bound(int64_t count, size_t width) noexcept nogil
cdef int64_t delta_encode(const uint8_t* values, int64_t count, size_t width, uint8_t* out) noexcept nogil
