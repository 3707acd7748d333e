"""DELTA_BINARY_PACKED (Encodings.md, "Delta Encoding"): integers of 32 or 64 bits, summed modulo 2^32 or 2^64."""

from libc.stdint cimport int64_t, uint8_t, uint64_t


# A resumable position in a stream; plain data, may be copied.
cdef struct DeltaDecoder:
    const uint8_t* pos              # end of the current miniblock
    const uint8_t* end              # end of the page
    int64_t left                    # values not decoded yet
    bint at_first                   # the next value is the first value, held by the header
    uint64_t last                   # the value before the next; the first value while at_first
    uint64_t least                  # least delta of the current block
    int64_t miniblock_size          # values in a miniblock
    int64_t miniblocks              # miniblocks in a block
    int64_t miniblock               # number of the current miniblock in its block
    const uint8_t* widths           # bit widths of the block's miniblocks, one byte each
    const uint8_t* packed           # first byte of the current miniblock
    int width                       # bits of a delta of the current miniblock
    int64_t next                    # number of the next value in the current miniblock

# Reads the header; returns 0 or a negative Status (TRUNCATED, BAD_RUN, BAD_LENGTH).
cdef int delta_start(DeltaDecoder* decoder, const uint8_t* data, size_t size) noexcept nogil
# Decodes the next count values, of 4 or 8 bytes; returns count or a negative Status (TRUNCATED where the stream holds fewer).
cdef int64_t delta_next(DeltaDecoder* decoder, uint8_t* out, int64_t count, size_t width) noexcept nogil
# First byte behind the stream of a decoder just started; NULL where the stream is broken.
cdef const uint8_t* delta_end(const DeltaDecoder* decoder) noexcept nogil

# Greatest size of the encoded stream of count values of 4 or 8 bytes, in bytes.
cdef int64_t delta_bound(int64_t count, size_t width) noexcept nogil
# Encodes count values into out, a buffer of delta_bound(count, width) bytes; returns the number of bytes written.
cdef int64_t delta_encode(const uint8_t* values, int64_t count, size_t width, uint8_t* out) noexcept nogil
