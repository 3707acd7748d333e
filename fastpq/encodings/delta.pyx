"""DELTA_BINARY_PACKED (Encodings.md, "Delta Encoding"): integers as bit-packed differences between neighbours.

A stream is a header, which has the first value, and then blocks. A block has its smallest difference and some miniblocks. Each
miniblock has its own bit width.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fastpq.encodings.interface cimport PageValues, ValueDecoder, ValueEncoder, ValuesToEncode
from fastpq.encodings.status cimport BAD_LENGTH, BAD_RUN, TRUNCATED
from fastpq.format.varint cimport write_varint

cdef extern from "c/bitpack.h" nogil:
    int SLACK "FASTPQ_UNPACK64_SLACK"
    void unpack_groups64(const uint8_t* data, uint64_t* out, int64_t groups, int width) noexcept
    void pack_groups(const uint32_t* values, uint8_t* out, int64_t groups, int width) noexcept
    void pack_groups64(const uint64_t* values, uint8_t* out, int64_t groups, int width) noexcept

cdef extern from "c/delta.h" nogil:
    uint32_t decode_deltas32(const uint8_t* data, int64_t available, int64_t groups, int width, uint32_t least, uint32_t last,
                             uint8_t* out) noexcept
    uint64_t decode_deltas64(const uint8_t* data, int64_t available, int64_t groups, int width, uint64_t least, uint64_t last,
                             uint8_t* out) noexcept
    int WIDE_FROM "FASTPQ_WIDE_FROM"
    uint64_t decode_wide_deltas64(const uint8_t* data, int64_t groups, int width, uint64_t least, uint64_t last,
                                  uint8_t* out) noexcept
    ctypedef struct delta_block:
        const uint8_t* widths
        int64_t miniblocks, size
        const uint8_t* pos "in"
        const uint8_t* end
        uint64_t least, last
    int64_t sum_miniblocks(delta_block* block, int64_t count, size_t width, uint8_t* out) noexcept
    uint32_t progression32(int64_t count, uint32_t least, uint32_t last, uint8_t* out) noexcept
    uint64_t progression64(int64_t count, uint64_t least, uint64_t last, uint8_t* out) noexcept
    uint32_t sum_deltas32(const uint32_t* deltas, int64_t count, uint32_t least, uint32_t last, uint8_t* out) noexcept
    uint64_t sum_wide_deltas64(const uint64_t* deltas, int64_t count, uint64_t least, uint64_t last, uint8_t* out) noexcept
    int64_t differences32(const uint8_t* values, int64_t count, int64_t room, uint32_t* deltas) noexcept
    int64_t differences64(const uint8_t* values, int64_t count, int64_t room, uint64_t* deltas) noexcept
    uint64_t bits_of32(const uint32_t* values, int64_t count) noexcept
    uint64_t bits_of64(const uint64_t* values, int64_t count) noexcept
    void narrow64(const uint64_t* values, int64_t count, uint32_t* out) noexcept
    int width_of(uint64_t bits) noexcept

cdef enum:
    GROUP = 32                  # values packed together, which fill whole bytes at every bit width
    LARGEST_BLOCK = 0x7FFFFFFF  # values
    WIDEST = 64                 # most bits in a difference
    # The sizes of written blocks, in values. parquet-java and Arrow use the same sizes, so every reader knows them.
    BLOCK = 128
    MINIBLOCKS = 4
    MINIBLOCK = BLOCK // MINIBLOCKS
    HEADER_BOUND = 2 + 1 + 10 + 10      # bytes: the varints for block size, miniblock count, value count and first value
    PASSED = 4096               # values decoded at a time to pass over them


cdef int read_varint(const uint8_t** pos, const uint8_t* end, uint64_t* value) noexcept nogil:
    cdef int shift = 0
    cdef uint8_t byte
    value[0] = 0
    while shift < 64:
        if pos[0] == end:
            return TRUNCATED
        byte = pos[0][0]
        pos[0] += 1
        value[0] |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            return 0
        shift += 7
    return BAD_RUN


cdef inline uint64_t from_zigzag(uint64_t value) noexcept nogil:
    return (value >> 1) ^ (0 - (value & 1))


cdef int delta_start(DeltaDecoder* decoder, const uint8_t* data, size_t size) noexcept nogil:
    cdef uint64_t block, miniblocks, count, first
    cdef const uint8_t* pos = data
    cdef const uint8_t* end = data + size
    cdef int status
    memset(decoder, 0, sizeof(DeltaDecoder))
    status = read_varint(&pos, end, &block)
    status = read_varint(&pos, end, &miniblocks) if status == 0 else status
    status = read_varint(&pos, end, &count) if status == 0 else status
    status = read_varint(&pos, end, &first) if status == 0 else status
    if status < 0:
        return status
    if block == 0 or block % 128 or block > LARGEST_BLOCK or miniblocks == 0 or block % miniblocks:
        return BAD_RUN
    if block // miniblocks % GROUP:
        return BAD_RUN
    if count >> 62:
        return BAD_LENGTH
    decoder.pos = pos
    decoder.end = end
    decoder.remaining = <int64_t>count
    decoder.at_first = True
    decoder.last = from_zigzag(first)
    decoder.miniblocks = <int64_t>miniblocks
    decoder.miniblock_size = <int64_t>(block // miniblocks)
    # The decoder is placed at the end of a block, so that the first difference opens the first block.
    decoder.miniblock = decoder.miniblocks - 1
    decoder.next = decoder.miniblock_size
    return 0


cdef int next_miniblock(DeltaDecoder* decoder) noexcept nogil:
    """Move to the first value in the next miniblock, which must exist. Returns 0 or a negative Status."""
    cdef uint64_t least
    cdef int64_t size, least_size
    cdef int status
    decoder.miniblock += 1
    if decoder.miniblock == decoder.miniblocks:
        status = read_varint(&decoder.pos, decoder.end, &least)
        if status < 0:
            return status
        if decoder.miniblocks > decoder.end - decoder.pos:
            return TRUNCATED
        decoder.least = from_zigzag(least)
        decoder.widths = decoder.pos
        decoder.pos += decoder.miniblocks
        decoder.miniblock = 0
    # A width is checked only here, because unused miniblocks may have any width. Old writers used 33 bits and more for INT32
    # (ARROW-17465, arrow-go 1027). Their sums are right modulo 2^32.
    decoder.width = decoder.widths[decoder.miniblock]
    if decoder.width > WIDEST:
        return BAD_RUN
    size = decoder.miniblock_size // 8 * decoder.width
    if size > decoder.end - decoder.pos:        # at the page's end, padding may be missing
        least_size = (min(decoder.remaining, decoder.miniblock_size) * decoder.width + 7) // 8
        if least_size > decoder.end - decoder.pos:
            return TRUNCATED
        size = decoder.end - decoder.pos
    decoder.packed = decoder.pos
    decoder.pos += size
    decoder.next = 0
    return 0


cdef const uint8_t* delta_end(const DeltaDecoder* decoder) noexcept nogil:
    cdef DeltaDecoder ahead = decoder[0]
    if ahead.at_first and ahead.remaining:
        ahead.remaining -= 1
    while ahead.remaining > 0:
        if next_miniblock(&ahead) < 0:
            return NULL
        ahead.remaining -= ahead.miniblock_size
    return ahead.pos


cdef int64_t delta_next(DeltaDecoder* decoder, uint8_t* out, int64_t count, size_t width) noexcept nogil:
    cdef int64_t done = 0, run
    cdef int status
    if count > decoder.remaining:
        return TRUNCATED
    if count and decoder.at_first:
        memcpy(out, &decoder.last, width)
        decoder.at_first = False
        decoder.remaining -= 1
        done = 1
    while done < count:
        if decoder.next == decoder.miniblock_size:
            status = next_miniblock(decoder)
            if status < 0:
                return status
        run = sum_whole(decoder, out + <size_t>done * width, count - done, width) if decoder.next == 0 else 0
        if run == 0:
            run = min(count - done, decoder.miniblock_size - decoder.next)
            if decoder.width == 0:
                sum_constant(decoder, out + <size_t>done * width, run, width)
            else:
                run = sum_packed(decoder, out + <size_t>done * width, run, width)
            decoder.next += run
        decoder.remaining -= run
        done += run
    return count


cdef inline int64_t sum_whole(DeltaDecoder* decoder, uint8_t* out, int64_t count, size_t width) noexcept nogil:
    """Decode whole miniblocks with the vector loop in c/delta.h. Returns how many values it decoded, perhaps 0.

    The loop stops at the block's end, before a miniblock that is too wide for it, and near the page's end.
    """
    cdef delta_block block
    cdef int64_t miniblocks
    block.widths = decoder.widths + decoder.miniblock
    block.miniblocks = decoder.miniblocks - decoder.miniblock
    block.size = decoder.miniblock_size
    block.pos = decoder.packed
    block.end = decoder.end
    block.least = decoder.least
    block.last = decoder.last
    miniblocks = sum_miniblocks(&block, count, width, out)
    if miniblocks == 0:
        return 0
    decoder.last = block.last
    decoder.pos = block.pos
    decoder.miniblock += miniblocks - 1
    decoder.next = decoder.miniblock_size
    return miniblocks * decoder.miniblock_size


cdef inline void sum_constant(DeltaDecoder* decoder, uint8_t* out, int64_t count, size_t width) noexcept nogil:
    if width == 8:
        decoder.last = progression64(count, decoder.least, decoder.last, out)
    else:
        decoder.last = progression32(count, <uint32_t>decoder.least, <uint32_t>decoder.last, out)


cdef inline int64_t sum_packed(DeltaDecoder* decoder, uint8_t* out, int64_t count, size_t width) noexcept nogil:
    """Decode at most count values in the current miniblock: whole groups, or a part of one group. Returns how many."""
    cdef int64_t groups = count // GROUP
    cdef const uint8_t* packed = decoder.packed + decoder.next // 8 * decoder.width
    cdef int64_t size = groups * 4 * decoder.width
    if decoder.next % GROUP or groups == 0 or decoder.pos - packed < size:
        return sum_some(decoder, out, count, width)
    if width == 8 and decoder.width >= WIDE_FROM and decoder.end - packed >= size + SLACK:
        decoder.last = decode_wide_deltas64(packed, groups, decoder.width, decoder.least, decoder.last, out)
        return groups * GROUP
    if decoder.width > 32:
        return sum_some(decoder, out, count, width)
    if width == 8:
        decoder.last = decode_deltas64(packed, decoder.end - packed, groups, decoder.width, decoder.least, decoder.last, out)
    else:
        decoder.last = decode_deltas32(packed, decoder.end - packed, groups, decoder.width, <uint32_t>decoder.least,
                                       <uint32_t>decoder.last, out)
    return groups * GROUP


cdef int64_t sum_some(DeltaDecoder* decoder, uint8_t* out, int64_t count, size_t width) noexcept nogil:
    """Decode at most count values in the current group. Returns how many."""
    cdef uint8_t padded[4 * 64 + 16]
    cdef uint64_t deltas[32]
    cdef uint32_t narrow[32]
    cdef int64_t skip = decoder.next % GROUP, group_size = 4 * decoder.width
    cdef const uint8_t* packed = decoder.packed + (decoder.next - skip) // 8 * decoder.width
    if decoder.end - packed < group_size + SLACK:
        memset(padded, 0, sizeof(padded))
        memcpy(padded, packed, <size_t>min(decoder.pos - packed, group_size))
        packed = padded
    unpack_groups64(packed, deltas, 1, decoder.width)
    count = min(count, GROUP - skip)
    if width == 8:
        decoder.last = sum_wide_deltas64(deltas + skip, count, decoder.least, decoder.last, out)
    else:
        narrow64(deltas, GROUP, narrow)
        decoder.last = sum_deltas32(narrow + skip, count, <uint32_t>decoder.least, <uint32_t>decoder.last, out)
    return count


cdef int64_t delta_bound(int64_t count, size_t width) noexcept nogil:
    return HEADER_BOUND + (count // BLOCK + 1) * (10 + MINIBLOCKS + BLOCK * <int64_t>width)


cdef inline uint8_t* write_zigzag(uint8_t* out, int64_t value) noexcept nogil:
    return write_varint(out, (<uint64_t>value << 1) ^ (0 - (<uint64_t>value >> 63)))


cdef inline int64_t value_at(const uint8_t* values, int64_t i, size_t width) noexcept nogil:
    cdef int64_t wide
    cdef int32_t narrow
    if width == 8:
        memcpy(&wide, values + 8 * i, 8)
        return wide
    memcpy(&narrow, values + 4 * i, 4)
    return narrow


cdef int64_t delta_encode(const uint8_t* values, int64_t count, size_t width, uint8_t* out) noexcept nogil:
    cdef uint8_t* start = out
    cdef int64_t i = 1
    out = write_varint(out, BLOCK)
    out = write_varint(out, MINIBLOCKS)
    out = write_varint(out, <uint64_t>count)
    out = write_zigzag(out, value_at(values, 0, width) if count else 0)
    while i < count:
        out = write_block(values + <size_t>i * width, min(count - i, <int64_t>BLOCK), width, out)
        i += BLOCK
    return out - start


cdef uint8_t* write_block(const uint8_t* values, int64_t count, size_t width, uint8_t* out) noexcept nogil:
    """Write a block with count values to out, and return where it ends. values[-1] is the value before the block."""
    cdef uint64_t deltas[BLOCK]
    cdef uint32_t narrow[BLOCK]
    cdef uint8_t* widths
    cdef int64_t least, i
    cdef int bits
    if width == 8:
        least = differences64(values, count, BLOCK, deltas)
        narrow64(deltas, BLOCK, narrow)
    else:
        least = differences32(values, count, BLOCK, narrow)
    out = write_zigzag(out, least)
    widths = out
    memset(widths, 0, MINIBLOCKS)
    out += MINIBLOCKS
    for i in range((count + MINIBLOCK - 1) // MINIBLOCK):
        bits = width_of(bits_of64(deltas + i * MINIBLOCK, MINIBLOCK) if width == 8 else
                        bits_of32(narrow + i * MINIBLOCK, MINIBLOCK))
        widths[i] = <uint8_t>bits
        if bits > 32:
            pack_groups64(deltas + i * MINIBLOCK, out, MINIBLOCK // GROUP, bits)
        elif bits:
            pack_groups(narrow + i * MINIBLOCK, out, MINIBLOCK // GROUP, bits)
        out += MINIBLOCK // 8 * bits
    return out


cdef void delta_decoder(ValueDecoder* decoder) noexcept:
    decoder.start = start
    decoder.next = next_values
    decoder.skip = skip_values
    decoder.state_size = sizeof(DeltaDecoder)


cdef int64_t start(PageValues* page) noexcept nogil:
    return delta_start(<DeltaDecoder*>page.state, page.data, <size_t>page.size)


cdef int64_t next_values(PageValues* page, int64_t count, uint8_t* out) noexcept nogil:
    return delta_next(<DeltaDecoder*>page.state, out, count, page.width)


cdef int64_t skip_values(PageValues* page, int64_t count) noexcept nogil:
    """Pass over values by decoding them, because each value depends on the value before it."""
    cdef uint64_t passed[PASSED]
    cdef int64_t remaining = count, some, status
    while remaining:
        some = min(remaining, <int64_t>PASSED)
        status = delta_next(<DeltaDecoder*>page.state, <uint8_t*>passed, some, page.width)
        if status < 0:
            return status
        remaining -= some
    return count


cdef void delta_encoder(ValueEncoder* encoder) noexcept:
    encoder.bound = bound
    encoder.encode = encode_values


cdef int64_t bound(const ValuesToEncode* values) noexcept nogil:
    return delta_bound(values.count, values.width)


cdef int64_t encode_values(const ValuesToEncode* values, uint8_t* out) noexcept nogil:
    return delta_encode(values.values, values.count, values.width, out)
