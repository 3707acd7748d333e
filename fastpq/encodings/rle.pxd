"""The RLE / bit-packing hybrid (Encodings.md, "Run Length Encoding / Bit-Packing Hybrid"), for levels, indices and booleans."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t


# A resumable position in a hybrid stream; plain data, may be copied.
cdef struct HybridDecoder:
    const uint8_t* pos
    const uint8_t* end
    int bit_width
    uint32_t rle_value
    int64_t rle_left            # values left in the current RLE run
    const uint8_t* packed       # current bit-packed run: its first byte
    int64_t packed_next         # its next value
    int64_t packed_count        # its number of values (a multiple of 8; may be cut by the end of input)


# Starts a decoder at the header of a stream's first run; returns 0, or BAD_RUN for a bit width outside 0 to 32.
cdef int hybrid_start(HybridDecoder* decoder, const uint8_t* data, size_t size, int bit_width) noexcept nogil
# Moves to the next run where the current run is used up. Then rle_left or packed_count - packed_next is positive: the number of
# values left in the run. Returns 0 or a negative Status.
cdef int hybrid_ensure(HybridDecoder* decoder) noexcept nogil
# Decodes the next count values; returns count or a negative Status.
cdef int64_t hybrid_next(HybridDecoder* decoder, uint32_t* out, int64_t count) noexcept nogil
# Skips the next count values; returns count or a negative Status.
cdef int64_t hybrid_skip(HybridDecoder* decoder, int64_t count) noexcept nogil
# Decodes the next count values to one byte each, for bit_width <= 8 (levels, booleans); returns count or a negative Status.
cdef int64_t hybrid_next_bytes(HybridDecoder* decoder, uint8_t* out, int64_t count) noexcept nogil

# Greatest size of the encoded stream of count values, in bytes.
cdef int64_t hybrid_bound(int64_t count, int bit_width) noexcept nogil
# Encodes count values into out, a buffer of hybrid_bound(count, bit_width) bytes; returns the number of bytes written.
cdef int64_t hybrid_encode(const uint32_t* values, int64_t count, int bit_width, uint8_t* out) noexcept nogil
