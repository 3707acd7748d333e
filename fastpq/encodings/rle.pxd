"""The RLE / bit-packing hybrid (Encodings.md, "Run Length Encoding / Bit-Packing Hybrid")."""

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


cdef int hybrid_start(HybridDecoder* decoder, const uint8_t* data, size_t size, int bit_width) noexcept nogil
# stands in a run that has values left: rle_left of them, or packed_count - packed_next; returns 0 or a negative Status
cdef int hybrid_ensure(HybridDecoder* decoder) noexcept nogil
# count values into out; returns count or a negative Status
cdef int64_t hybrid_next(HybridDecoder* decoder, uint32_t* out, int64_t count) noexcept nogil
# passes over count values; returns count or a negative Status
cdef int64_t hybrid_skip(HybridDecoder* decoder, int64_t count) noexcept nogil
# RLE booleans and other one-byte outputs (bit_width <= 8); returns count or a negative Status
cdef int64_t hybrid_next_bytes(HybridDecoder* decoder, uint8_t* out, int64_t count) noexcept nogil

# most bytes that hybrid_encode writes
cdef int64_t hybrid_bound(int64_t count, int bit_width) noexcept nogil
# returns the bytes written into out, which holds hybrid_bound(count, bit_width)
cdef int64_t hybrid_encode(const uint32_t* values, int64_t count, int bit_width, uint8_t* out) noexcept nogil
