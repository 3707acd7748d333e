"""The RLE / bit-packing hybrid (Encodings.md, "Run Length Encoding / Bit-Packing Hybrid"), for levels, indices and booleans."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fastpq.encodings.interface cimport PageValues, ValueDecoder, ValueEncoder, ValuesToEncode
from fastpq.encodings.status cimport BAD_LENGTH, BAD_RUN, TRUNCATED
from fastpq.format.varint cimport write_varint

import numpy as np

cdef extern from "c/bitpack.h" nogil:
    void unpack_groups(const uint8_t* data, int64_t available, uint32_t* out, int64_t groups, int width) noexcept
    void pack_groups(const uint32_t* values, uint8_t* out, int64_t groups, int width) noexcept
    int64_t constant_groups(const uint32_t* values, int64_t groups) noexcept
    int64_t varied_groups(const uint32_t* values, int64_t groups) noexcept

cdef enum:
    LONGEST_RUN = 0x7FFFFFF8        # values: a multiple of eight that fits the 31 bits in a run header
    LOOKAHEAD = 4096                # values that hybrid_next_bytes unpacks to 32 bits at a time
    LENGTH = 4                      # bytes in the length that comes before booleans
    GROUP = 32                      # values unpacked together, which fill whole bytes at every bit width


cdef int hybrid_start(HybridDecoder* decoder, const uint8_t* data, size_t size, int bit_width) noexcept nogil:
    memset(decoder, 0, sizeof(HybridDecoder))
    decoder.pos = data
    decoder.end = data + size
    decoder.bit_width = bit_width
    return BAD_RUN if bit_width < 0 or bit_width > 32 else 0


cdef int next_run(HybridDecoder* decoder) noexcept nogil:
    """Read the next run's header. Returns 0 or a negative Status."""
    cdef uint64_t header = 0
    cdef int shift = 0, width = decoder.bit_width, value_bytes = (width + 7) // 8
    cdef uint8_t byte
    cdef int64_t size, available
    while True:
        if decoder.pos == decoder.end:
            return TRUNCATED
        byte = decoder.pos[0]
        decoder.pos += 1
        header |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            return BAD_RUN
    if header >> 32 or header >> 1 == 0:        # a length with more than 31 bits, or an empty run
        return BAD_RUN
    available = decoder.end - decoder.pos
    if header & 1:
        size = <int64_t>(header >> 1) * width
        decoder.packed = decoder.pos
        decoder.packed_next = 0
        decoder.packed_count = <int64_t>(header >> 1) * 8
        if size > available:                # some writers leave out the last group's padding
            decoder.packed_count = available * 8 // width
            size = available
        decoder.pos += size
        return 0
    if available < value_bytes:
        return TRUNCATED
    decoder.rle_value = 0
    memcpy(&decoder.rle_value, decoder.pos, <size_t>value_bytes)
    decoder.pos += value_bytes
    decoder.rle_left = <int64_t>(header >> 1)
    if width < 32 and decoder.rle_value >> width:
        return BAD_RUN
    return 0


cdef int hybrid_ensure(HybridDecoder* decoder) noexcept nogil:
    cdef int status
    while decoder.rle_left == 0 and decoder.packed_next == decoder.packed_count:
        if decoder.bit_width == 0 and decoder.pos == decoder.end:
            decoder.rle_left = LONGEST_RUN      # values with no bits are zero, and their stream may be empty
            decoder.rle_value = 0
            return 0
        status = next_run(decoder)
        if status < 0:
            return status
    return 0


cdef int64_t unpack(HybridDecoder* decoder, uint32_t* out, int64_t count) noexcept nogil:
    """Decode at most count values in the current bit-packed run. Returns how many."""
    cdef uint8_t padded[4 * 32 + 32]
    cdef uint32_t group[GROUP]
    cdef int width = decoder.bit_width
    cdef int64_t position = decoder.packed_next, size = (decoder.packed_count * width + 7) // 8
    cdef int64_t first, skip, groups, room
    count = min(count, decoder.packed_count - position)
    if width == 0:
        memset(out, 0, <size_t>count * sizeof(uint32_t))
        decoder.packed_next += count
        return count
    skip = position & 7
    first = (position - skip) // 8 * width
    groups = count // GROUP if skip == 0 else 0
    if groups:
        unpack_groups(decoder.packed + first, size - first, out, groups, width)
        count = groups * GROUP
    else:
        count = min(count, GROUP - skip)
        room = min(size - first, <int64_t>(4 * width))
        memcpy(padded, decoder.packed + first, <size_t>room)
        memset(padded + room, 0, sizeof(padded) - <size_t>room)
        unpack_groups(padded, sizeof(padded), group, 1, width)
        memcpy(out, group + skip, <size_t>count * sizeof(uint32_t))
    decoder.packed_next += count
    return count


cdef fused Number:
    uint8_t
    uint32_t


cdef inline int64_t next_numbers(HybridDecoder* decoder, Number* out, int64_t count) noexcept nogil:
    """Decode the next count values to bytes or 32-bit numbers. Returns count or a negative Status."""
    cdef uint32_t values[LOOKAHEAD]
    cdef Number value
    cdef int64_t done = 0, run, i
    cdef int status
    while done < count:
        status = hybrid_ensure(decoder)
        if status < 0:
            return status
        if decoder.rle_left:
            run = min(decoder.rle_left, count - done)
            value = <Number>decoder.rle_value       # a local variable, because out might overlap the decoder for all C knows
            for i in range(run):
                out[done + i] = value
            decoder.rle_left -= run
        elif Number is uint32_t:
            run = unpack(decoder, out + done, count - done)
        else:
            run = unpack(decoder, values, min(count - done, <int64_t>LOOKAHEAD))
            for i in range(run):
                out[done + i] = <uint8_t>values[i]
        done += run
    return count


cdef int64_t hybrid_next(HybridDecoder* decoder, uint32_t* out, int64_t count) noexcept nogil:
    return next_numbers(decoder, out, count)


cdef int64_t hybrid_next_bytes(HybridDecoder* decoder, uint8_t* out, int64_t count) noexcept nogil:
    return next_numbers(decoder, out, count)


cdef int64_t hybrid_skip(HybridDecoder* decoder, int64_t count) noexcept nogil:
    cdef int64_t remaining = count, run
    cdef int status
    while remaining:
        status = hybrid_ensure(decoder)
        if status < 0:
            return status
        if decoder.rle_left:
            run = min(decoder.rle_left, remaining)
            decoder.rle_left -= run
        else:
            run = min(decoder.packed_count - decoder.packed_next, remaining)
            decoder.packed_next += run
        remaining -= run
    return count


cdef int64_t hybrid_bound(int64_t count, int bit_width) noexcept nogil:
    # Eight values take bit_width bytes if they are packed, or the bytes for one RLE value. There are at most two run headers.
    return (count // 8 + 1) * (bit_width + 2) + 16


cdef uint8_t* write_rle(const uint32_t* value, int64_t count, int bit_width, uint8_t* out) noexcept nogil:
    out = write_varint(out, <uint64_t>count << 1)
    memcpy(out, value, <size_t>(bit_width + 7) // 8)
    return out + (bit_width + 7) // 8


cdef uint8_t* write_packed(const uint32_t* values, int64_t count, int bit_width, uint8_t* out) noexcept nogil:
    """Write one bit-packed run, and return where it ends. count must be a multiple of 8, except for a stream's last run."""
    cdef uint32_t group[GROUP]
    cdef uint8_t packed[4 * 32]
    cdef int64_t groups = count // GROUP, remaining = count % GROUP
    out = write_varint(out, <uint64_t>((count + 7) // 8) << 1 | 1)
    pack_groups(values, out, groups, bit_width)
    out += groups * 4 * bit_width
    if remaining:
        memset(group, 0, sizeof(group))
        memcpy(group, values + groups * GROUP, <size_t>remaining * sizeof(uint32_t))
        pack_groups(group, packed, 1, bit_width)
        memcpy(out, packed, <size_t>((remaining + 7) // 8 * bit_width))
        out += (remaining + 7) // 8 * bit_width
    return out


cdef int64_t hybrid_encode(const uint32_t* values, int64_t count, int bit_width, uint8_t* out) noexcept nogil:
    """Encode values in groups of eight. Groups with equal values become RLE runs where this is shorter. Others are bit-packed."""
    cdef uint8_t* start = out
    cdef int64_t groups = count // 8, group = 0, packed = 0, equal_groups, repeats, shortest_run
    if bit_width == 0:
        return write_varint(out, <uint64_t>count << 1) - start if count else 0
    shortest_run = (2 + (bit_width + 7) // 8 + bit_width - 1) // bit_width
    while group < groups:
        group += varied_groups(values + 8 * group, groups - group)
        if group == groups:
            break
        equal_groups = constant_groups(values + 8 * group, min(groups - group, <int64_t>LONGEST_RUN // 8))
        if equal_groups >= shortest_run:
            if group > packed:
                out = write_packed(values + 8 * packed, 8 * (group - packed), bit_width, out)
            repeats = 8 * equal_groups
            while (group + equal_groups == groups and 8 * group + repeats < count
                    and values[8 * group + repeats] == values[8 * group]):
                repeats += 1
            if 8 * group + repeats < count:
                repeats = 8 * equal_groups          # only whole groups, because the values behind the last group are packed
            out = write_rle(values + 8 * group, repeats, bit_width, out)
            if 8 * group + repeats == count:
                return out - start
            packed = group + equal_groups
        group += equal_groups
    if count > 8 * packed:
        out = write_packed(values + 8 * packed, count - 8 * packed, bit_width, out)
    return out - start


cdef void rle_decoder(ValueDecoder* decoder) noexcept:
    decoder.start = start
    decoder.next = next_values
    decoder.skip = skip_values
    decoder.state_size = sizeof(HybridDecoder)


cdef int64_t start(PageValues* page) noexcept nogil:
    cdef uint32_t size
    if page.size < LENGTH:
        return TRUNCATED
    memcpy(&size, page.data, LENGTH)
    if size > page.size - LENGTH:
        return BAD_LENGTH
    return hybrid_start(hybrid_of(page), page.data + LENGTH, size, 1)


cdef int64_t next_values(PageValues* page, int64_t count, uint8_t* out) noexcept nogil:
    return hybrid_next_bytes(hybrid_of(page), out, count)


cdef int64_t skip_values(PageValues* page, int64_t count) noexcept nogil:
    return hybrid_skip(hybrid_of(page), count)


cdef void rle_encoder(ValueEncoder* encoder) noexcept:
    encoder.bound = bound
    encoder.encode = encode_values
    encoder.scratch = sizeof(uint32_t)


cdef int64_t bound(const ValuesToEncode* values) noexcept nogil:
    return LENGTH + hybrid_bound(values.count, 1)


cdef int64_t encode_values(const ValuesToEncode* values, uint8_t* out) noexcept nogil:
    cdef uint32_t* flags = <uint32_t*>values.scratch
    cdef uint32_t size
    cdef int64_t i
    for i in range(values.count):
        flags[i] = values.values[i] != 0
    size = <uint32_t>hybrid_encode(flags, values.count, 1, out + LENGTH)
    memcpy(out, &size, LENGTH)
    return LENGTH + <int64_t>size


def encode(const uint32_t[::1] values, int bit_width):
    """Return the hybrid stream for values that are below 2 ** bit_width, as bytes."""
    if not 0 <= bit_width <= 32:
        raise ValueError(f"bit_width must be from 0 to 32, not {bit_width}")
    cdef uint8_t[::1] out = np.empty(hybrid_bound(values.shape[0], bit_width), dtype=np.uint8)
    size = hybrid_encode(&values[0] if values.shape[0] else NULL, values.shape[0], bit_width, &out[0])
    return np.asarray(out)[:size].tobytes()
