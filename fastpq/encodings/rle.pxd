"""The RLE / bit-packing hybrid (Encodings.md, "Run Length Encoding / Bit-Packing Hybrid"), for levels, indices and booleans."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from fastpq.encodings.interface cimport PageValues, ValueDecoder, ValueEncoder

# Fill the decoder and the encoder for booleans.
cdef void rle_decoder(ValueDecoder* decoder) noexcept
cdef void rle_encoder(ValueEncoder* encoder) noexcept


# A position in a hybrid stream, where decoding continues. It is plain data, so a copy is a second position.
cdef struct HybridDecoder:
    const uint8_t* pos
    const uint8_t* end
    int bit_width
    uint32_t rle_value
    int64_t rle_left            # how many values the current RLE run still has
    const uint8_t* packed       # where the current bit-packed run starts
    int64_t packed_next         # the next value's index in this run
    int64_t packed_count        # how many values this run has: a multiple of 8, or fewer at the input's end


# Starts a decoder at the first run in a stream. Returns 0, or BAD_RUN if the bit width is not from 0 to 32.
cdef int hybrid_start(HybridDecoder* decoder, const uint8_t* data, size_t size, int bit_width) noexcept nogil
# Moves to the next run if the current one has no more values. Afterwards either rle_left or packed_count - packed_next is
# positive, and is how many values the run still has. Returns 0 or a negative Status.
cdef int hybrid_ensure(HybridDecoder* decoder) noexcept nogil
# Decodes the next count values. Returns count or a negative Status.
cdef int64_t hybrid_next(HybridDecoder* decoder, uint32_t* out, int64_t count) noexcept nogil
# Skips the next count values. Returns count or a negative Status.
cdef int64_t hybrid_skip(HybridDecoder* decoder, int64_t count) noexcept nogil
# Like hybrid_next, but decodes to one byte a value. For levels and booleans, whose bit_width is at most 8.
cdef int64_t hybrid_next_bytes(HybridDecoder* decoder, uint8_t* out, int64_t count) noexcept nogil


cdef inline HybridDecoder* hybrid_of(PageValues* page) noexcept nogil:
    """Return the decoder for a page with booleans or dictionary indices."""
    return <HybridDecoder*>page.state


# Returns how many bytes a stream with count values can have at most.
cdef int64_t hybrid_bound(int64_t count, int bit_width) noexcept nogil
# Encodes count values into out, which has room for hybrid_bound(count, bit_width) bytes. Returns how many bytes it wrote.
cdef int64_t hybrid_encode(const uint32_t* values, int64_t count, int bit_width, uint8_t* out) noexcept nogil
