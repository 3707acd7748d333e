"""Converts streams of levels to validity bitmaps (maximum level 1) or to bytes (any maximum level), and back.

A bit-packed run of one-bit levels is already a validity bitmap, so it is copied, never unpacked. Levels that follow a pattern are
written as runs, without an array of levels: all levels are equal if a column has no nulls. If all lists have the same length,
each list's repetition levels are a 0 and then ones. Other functions move values to where bits are set, and back.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fastpq.encodings.rle cimport (
    HybridDecoder, hybrid_encode, hybrid_ensure, hybrid_next_bytes, hybrid_skip, hybrid_start,
)
from fastpq.encodings.status cimport BAD_LEVEL, TRUNCATED
from fastpq.format.varint cimport write_varint

cdef extern from "c/bitmap.h" nogil:
    int64_t join_short_runs(const uint8_t** data, const uint8_t* end, uint8_t* bitmap, int64_t done, int64_t count) noexcept
    uint8_t reverse_bits(uint8_t byte) noexcept
    uint8_t largest_byte(const uint8_t* bytes, int64_t count) noexcept

cdef enum:
    LEVELS_AT_A_TIME = 4096         # levels that are widened to 32 bits together: whole bit-packed groups with eight levels each
    GROUP = 8                       # levels in a bit-packed group


cdef int64_t levels_to_bitmap(const uint8_t* data, size_t size, int64_t count, uint8_t* bitmap) noexcept nogil:
    cdef HybridDecoder decoder
    cdef int64_t done = 0, run
    cdef int status
    hybrid_start(&decoder, data, size, 1)
    memset(bitmap, 0, <size_t>(count + 7) // 8)
    while True:
        done = join_short_runs(&decoder.pos, decoder.end, bitmap, done, count)
        if done == count:
            return bitmap_count(bitmap, 0, count)
        status = hybrid_ensure(&decoder)
        if status < 0:
            return TRUNCATED if status == TRUNCATED else BAD_LEVEL
        if decoder.rle_left:
            run = min(decoder.rle_left, count - done)
            decoder.rle_left -= run
            if decoder.rle_value:
                bitmap_set_range(bitmap, done, run)
        else:
            run = min(decoder.packed_count, count - done)
            bitmap_merge(bitmap, done, decoder.packed, run)
            decoder.packed_next = decoder.packed_count
        done += run


cdef int64_t bit_packed_levels_to_bitmap(const uint8_t* data, size_t size, int64_t count, uint8_t* bitmap) noexcept nogil:
    cdef int64_t i, bytes = (count + 7) // 8
    if <size_t>bytes > size:
        return TRUNCATED
    for i in range(bytes):
        bitmap[i] = reverse_bits(data[i])
    if count & 7:
        bitmap[bytes - 1] &= <uint8_t>((1 << (count & 7)) - 1)
    return bitmap_count(bitmap, 0, count)


cdef int64_t bitmap_to_levels(const uint8_t* bitmap, int64_t bit_offset, int64_t count, uint8_t* out) noexcept nogil:
    cdef uint8_t* start = out
    cdef int64_t ones = bitmap_count(bitmap, bit_offset, count)
    if ones == 0 or ones == count:
        return constant_levels(count, ones > 0, out)
    out = write_varint(out, <uint64_t>((count + 7) // 8) << 1 | 1)
    memset(out, 0, <size_t>(count + 7) // 8)
    bitmap_copy(bitmap, bit_offset, count, out)
    return out + (count + 7) // 8 - start


cdef int64_t levels_bound(int64_t count) noexcept nogil:
    return (count + 7) // 8 + 8


cdef int level_width(int max_level) noexcept nogil:
    cdef int width = 0
    while max_level >> width:
        width += 1
    return width


cdef int64_t levels_to_bytes(const uint8_t* data, size_t size, int64_t count, int max_level, uint8_t* out) noexcept nogil:
    cdef HybridDecoder decoder
    cdef int64_t done
    hybrid_start(&decoder, data, size, level_width(max_level))
    done = hybrid_next_bytes(&decoder, out, count)
    if done < 0:
        return TRUNCATED if done == TRUNCATED else BAD_LEVEL
    return count if largest_byte(out, count) <= max_level else BAD_LEVEL


cdef int64_t levels_count(const uint8_t* data, size_t size, int64_t count, int max_level) noexcept nogil:
    cdef HybridDecoder decoder
    hybrid_start(&decoder, data, size, level_width(max_level))
    return hybrid_skip(&decoder, count)


cdef int64_t bit_packed_levels_to_bytes(const uint8_t* data, size_t size, int64_t count, int max_level,
                                        uint8_t* out) noexcept nogil:
    cdef int width = level_width(max_level)
    cdef int64_t i, first
    cdef uint32_t word
    if <size_t>((count * width + 7) // 8) > size:
        return TRUNCATED
    for i in range(count):
        # A level's first bit is its highest. A level has at most eight bits, so it is in at most two bytes.
        first = i * width
        word = <uint32_t>data[first >> 3] << 8
        if (first & 7) + width > 8:
            word |= data[(first >> 3) + 1]
        out[i] = <uint8_t>(word >> (16 - width - (first & 7)) & ((1 << width) - 1))
    return count if largest_byte(out, count) <= max_level else BAD_LEVEL


cdef int64_t bytes_to_levels(const uint8_t* levels, int64_t count, int max_level, uint8_t* out) noexcept nogil:
    cdef uint32_t values[LEVELS_AT_A_TIME]
    cdef int64_t done = 0, i, step
    cdef uint8_t* start = out
    while done < count:
        step = min(count - done, <int64_t>LEVELS_AT_A_TIME)
        for i in range(step):
            values[i] = levels[done + i]
        # All parts but the last have whole groups of eight levels. Their streams together are therefore one stream.
        out += hybrid_encode(values, step, level_width(max_level), out)
        done += step
    return out - start


cdef bint has_list_levels(int64_t length) noexcept nogil:
    return length >= SHORTEST_LIST and length % GROUP == 0


cdef int64_t list_levels(int64_t lists, int64_t length, uint8_t* out) noexcept nogil:
    cdef uint8_t* end = out
    cdef int64_t size, i
    if lists == 0:
        return 0
    end[0] = 1 << 1 | 1                         # one bit-packed group: a 0 for the first element, and seven ones
    end[1] = 0xFE
    end = write_varint(end + 2, <size_t>(length - GROUP) << 1)
    end[0] = 1
    size = end + 1 - out
    for i in range(1, lists):
        memcpy(out + i * size, out, <size_t>size)
    return lists * size


cdef int64_t put_length(uint8_t* out, int64_t prefix, int64_t size) noexcept nogil:
    """Write a level stream's length in prefix bytes (0 for V2 pages). Returns the stream's size with the length."""
    cdef uint32_t length = <uint32_t>size
    memcpy(out, &length, <size_t>prefix)
    return prefix + size
