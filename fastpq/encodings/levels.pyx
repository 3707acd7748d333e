"""Definition and repetition levels: encoded streams <-> validity bitmaps (maximum level 1) or bytes (any maximum level).

Values without nulls are spread to the set bits of a bitmap, and collected from the set bits. Bit-packed runs of one-bit levels
are validity bitmaps already: the runs are copied, never unpacked.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

import numpy as np

from fastpq.encodings.rle cimport (
    HybridDecoder, hybrid_bound, hybrid_encode, hybrid_ensure, hybrid_next_bytes, hybrid_skip,
    hybrid_start,
)
from fastpq.encodings.status cimport BAD_LEVEL, TRUNCATED, raise_status
from fastpq.format.varint cimport write_varint

cdef extern from "c/bitmap.h" nogil:
    int64_t count_bits(const uint8_t* bitmap, int64_t offset, int64_t count) noexcept
    void merge_bits(uint8_t* target, int64_t offset, const uint8_t* source, int64_t count) noexcept
    int64_t join_short_runs(const uint8_t** data, const uint8_t* end, uint8_t* bitmap, int64_t done, int64_t count) noexcept
    void set_bits(uint8_t* target, int64_t offset, int64_t count) noexcept
    void bits_to_bytes(const uint8_t* bitmap, int64_t offset, int64_t count, uint8_t* out) noexcept
    void bytes_to_bits(const uint8_t* flags, int64_t count, uint8_t* bitmap) noexcept
    int64_t count_runs(const uint8_t* bitmap, int64_t offset, int64_t count) noexcept
    int64_t find_runs(const uint8_t* bitmap, int64_t offset, int64_t count, int64_t first, int64_t* places) noexcept
    int64_t first_stretch(const uint8_t* bitmap, int64_t offset, int64_t count, int64_t least_clear, int64_t least_set,
                          int* kind) noexcept
    int64_t pick_bits(const uint8_t* source, int64_t offset, const uint8_t* mask, int64_t mask_offset, int64_t count,
                      uint8_t* out) noexcept
    uint8_t reverse_bits(uint8_t byte) noexcept
    uint8_t largest_byte(const uint8_t* bytes, int64_t count) noexcept
    void expand_values(const uint8_t* bitmap, int64_t count, const uint8_t* dense, uint8_t* out, size_t width) noexcept
    int64_t compact_values(const uint8_t* bitmap, int64_t offset, int64_t count, const uint8_t* values, uint8_t* out,
                           size_t width) noexcept
    void copy_bits(const uint8_t* source, int64_t offset, int64_t count, uint8_t* out) noexcept

cdef enum:
    LEVELS_AT_A_TIME = 4096         # levels widened to 32 bits at a time; a multiple of the eight of a bit-packed group


cdef int64_t levels_to_bitmap(const uint8_t* data, size_t size, int64_t count, uint8_t* bitmap) noexcept nogil:
    cdef HybridDecoder decoder
    cdef int64_t done = 0, run
    cdef int status
    hybrid_start(&decoder, data, size, 1)
    memset(bitmap, 0, <size_t>(count + 7) // 8)
    while True:
        done = join_short_runs(&decoder.pos, decoder.end, bitmap, done, count)
        if done == count:
            return count_bits(bitmap, 0, count)
        status = hybrid_ensure(&decoder)
        if status < 0:
            return TRUNCATED if status == TRUNCATED else BAD_LEVEL
        if decoder.rle_left:
            run = min(decoder.rle_left, count - done)
            decoder.rle_left -= run
            if decoder.rle_value:
                set_bits(bitmap, done, run)
        else:
            run = min(decoder.packed_count, count - done)
            merge_bits(bitmap, done, decoder.packed, run)
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
    return count_bits(bitmap, 0, count)


cdef int64_t bitmap_to_levels(const uint8_t* bitmap, int64_t bit_offset, int64_t count, uint8_t* out) noexcept nogil:
    cdef uint8_t* start = out
    cdef int64_t ones = count_bits(bitmap, bit_offset, count)
    if ones == 0 or ones == count:
        out = write_varint(out, <uint64_t>count << 1)
        out[0] = 1 if ones else 0
        return out + 1 - start
    out = write_varint(out, <uint64_t>((count + 7) // 8) << 1 | 1)
    memset(out, 0, <size_t>(count + 7) // 8)
    copy_bits(bitmap, bit_offset, count, out)
    return out + (count + 7) // 8 - start


cdef int64_t levels_all_valid(int64_t count, uint8_t* out) noexcept nogil:
    cdef uint8_t* start = out
    out = write_varint(out, <uint64_t>count << 1)
    out[0] = 1
    return out + 1 - start


cdef int64_t levels_bound(int64_t count) noexcept nogil:
    return (count + 7) // 8 + 8


cdef int64_t bitmap_count(const uint8_t* bitmap, int64_t bit_offset, int64_t count) noexcept nogil:
    return count_bits(bitmap, bit_offset, count)


cdef void bitmap_merge(uint8_t* target, int64_t bit_offset, const uint8_t* source, int64_t count) noexcept nogil:
    merge_bits(target, bit_offset, source, count)


cdef void bitmap_set_range(uint8_t* target, int64_t bit_offset, int64_t count) noexcept nogil:
    set_bits(target, bit_offset, count)


cdef void bitmap_to_bytes(const uint8_t* bitmap, int64_t bit_offset, int64_t count, uint8_t* out) noexcept nogil:
    bits_to_bytes(bitmap, bit_offset, count, out)


cdef void bytes_to_bitmap(const uint8_t* flags, int64_t count, uint8_t* bitmap) noexcept nogil:
    bytes_to_bits(flags, count, bitmap)


cdef int64_t bitmap_count_runs(const uint8_t* bitmap, int64_t bit_offset, int64_t count) noexcept nogil:
    return count_runs(bitmap, bit_offset, count)


cdef int64_t bitmap_runs(const uint8_t* bitmap, int64_t bit_offset, int64_t count, int64_t first, int64_t* places) noexcept nogil:
    return find_runs(bitmap, bit_offset, count, first, places)


cdef void bitmap_copy(const uint8_t* source, int64_t bit_offset, int64_t count, uint8_t* out) noexcept nogil:
    copy_bits(source, bit_offset, count, out)


cdef int64_t bitmap_stretch(const uint8_t* bitmap, int64_t bit_offset, int64_t count, int64_t least_clear, int64_t least_set,
                            int* kind) noexcept nogil:
    return first_stretch(bitmap, bit_offset, count, least_clear, least_set, kind)


cdef int64_t bitmap_pick(const uint8_t* source, int64_t bit_offset, const uint8_t* mask, int64_t mask_offset, int64_t count,
                         uint8_t* out) noexcept nogil:
    return pick_bits(source, bit_offset, mask, mask_offset, count, out)


cdef void expand(const uint8_t* bitmap, int64_t count, const uint8_t* dense, uint8_t* out, size_t width) noexcept nogil:
    expand_values(bitmap, count, dense, out, width)


cdef int64_t compact(const uint8_t* bitmap, int64_t bit_offset, int64_t count, const uint8_t* values, uint8_t* out,
                     size_t width) noexcept nogil:
    return compact_values(bitmap, bit_offset, count, values, out, width)


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
        # The first bit of a level is its highest; a level of at most eight bits spans at most two bytes.
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
        # All parts but the last are whole groups of eight, so their streams concatenate to one stream.
        out += hybrid_encode(values, step, level_width(max_level), out)
        done += step
    return out - start


def decode_bytes(const uint8_t[::1] data, Py_ssize_t count, int max_level, bint bit_packed=False):
    """The first count levels of a stream, as uint8.

    Args:
        data: the stream.
        count: number of levels to decode.
        max_level: the column's maximum level.
        bit_packed: whether the encoding is BIT_PACKED; else RLE.

    Raises:
        FormatError: the stream ends early or holds a higher level.
    """
    cdef uint8_t[::1] out = np.empty(count + 1, dtype=np.uint8)
    cdef const uint8_t* first = &data[0] if data.shape[0] else NULL
    if bit_packed:
        status = bit_packed_levels_to_bytes(first, <size_t>data.shape[0], count, max_level, &out[0])
    else:
        status = levels_to_bytes(first, <size_t>data.shape[0], count, max_level, &out[0])
    raise_status(status, "levels")
    return np.asarray(out)[:count]


def encode_bytes(const uint8_t[::1] levels, int max_level):
    """The hybrid stream of levels, each at most max_level, as bytes."""
    cdef Py_ssize_t count = levels.shape[0]
    cdef uint8_t[::1] out = np.empty(hybrid_bound(count, level_width(max_level)) + 16, dtype=np.uint8)
    size = bytes_to_levels(&levels[0] if count else NULL, count, max_level, &out[0])
    return np.asarray(out)[:size].tobytes()


def decode(const uint8_t[::1] data, Py_ssize_t count, bint bit_packed=False):
    """The first count definition levels of a flat column, as a bitmap (uint8, LSB first), and the number of ones.

    Args:
        data: the stream.
        count: number of levels to decode.
        bit_packed: whether the encoding is BIT_PACKED; else RLE.

    Raises:
        FormatError: the stream ends early or holds a level above 1.
    """
    cdef uint8_t[::1] bitmap = np.empty((count + 7) // 8 + 1, dtype=np.uint8)
    cdef const uint8_t* first = &data[0] if data.shape[0] else NULL
    cdef int64_t ones
    if bit_packed:
        ones = bit_packed_levels_to_bitmap(first, <size_t>data.shape[0], count, &bitmap[0])
    else:
        ones = levels_to_bitmap(first, <size_t>data.shape[0], count, &bitmap[0])
    raise_status(ones, "definition levels")
    return np.asarray(bitmap)[:(count + 7) // 8], ones


def encode(const uint8_t[::1] bitmap, Py_ssize_t offset, Py_ssize_t count):
    """The hybrid stream of the bits [offset, offset + count) of a bitmap, as bytes."""
    if offset < 0 or count < 1 or (offset + count + 7) // 8 > bitmap.shape[0]:
        raise ValueError(f"{count} bits at {offset} of {8 * bitmap.shape[0]}")
    cdef uint8_t[::1] out = np.empty(levels_bound(count), dtype=np.uint8)
    size = bitmap_to_levels(&bitmap[0], offset, count, &out[0])
    return np.asarray(out)[:size].tobytes()


def spread(const uint8_t[::1] bitmap, Py_ssize_t count, dense):
    """An array of count values: the dense values at the set bits of a bitmap, in order, and zero elsewhere."""
    cdef const uint8_t[::1] values = np.ascontiguousarray(dense).view(np.uint8)
    if count < 1 or (count + 7) // 8 > bitmap.shape[0] or count_bits(&bitmap[0], 0, count) != len(dense):
        raise ValueError(f"{len(dense)} values for {count} bits")
    out = np.empty(count, dtype=dense.dtype)
    cdef uint8_t[::1] target = out.view(np.uint8)
    expand(&bitmap[0], count, &values[0] if values.shape[0] else NULL, &target[0], <size_t>dense.dtype.itemsize)
    return out


def pick(const uint8_t[::1] bitmap, Py_ssize_t offset, values):
    """The values at the set bits of a bitmap; the bit of values[0] is bit offset."""
    count = len(values)
    cdef const uint8_t[::1] source = np.ascontiguousarray(values).view(np.uint8)
    if offset < 0 or count < 1 or (offset + count + 7) // 8 > bitmap.shape[0]:
        raise ValueError(f"{count} bits at {offset} of {8 * bitmap.shape[0]}")
    out = np.empty(count, dtype=values.dtype)
    cdef uint8_t[::1] target = out.view(np.uint8)
    done = compact(&bitmap[0], offset, count, &source[0], &target[0], <size_t>values.dtype.itemsize)
    return out[:done]


def stretches(const uint8_t[::1] bitmap, Py_ssize_t offset, Py_ssize_t count, int64_t least_clear, int64_t least_set):
    """The stretches of count bits, in order: for each its number of bits and its kind (``Stretch``)."""
    cdef int kind
    if offset < 0 or count < 1 or (offset + count + 7) // 8 > bitmap.shape[0]:
        raise ValueError(f"{count} bits at {offset} of {8 * bitmap.shape[0]}")
    found = []
    while count:
        size = first_stretch(&bitmap[0], offset, count, least_clear, least_set, &kind)
        found.append((size, kind))
        offset += size
        count -= size
    return found


def pick_of_bitmap(const uint8_t[::1] source, int64_t offset, const uint8_t[::1] mask, int64_t mask_offset, int64_t count):
    """The bits of source, from offset on, at the set bits among count bits of a mask: a bitmap (uint8), and their number."""
    if min(offset, mask_offset) < 0 or count < 1 or (offset + count + 7) // 8 > source.shape[0] \
            or (mask_offset + count + 7) // 8 > mask.shape[0]:
        raise ValueError(f"{count} bits at {offset} and {mask_offset} of {8 * source.shape[0]} and {8 * mask.shape[0]}")
    cdef uint8_t[::1] out = np.empty((count + 7) // 8, np.uint8)
    picked = pick_bits(&source[0], offset, &mask[0], mask_offset, count, &out[0])
    return np.asarray(out)[:(picked + 7) // 8], picked


def merge_validity(uint8_t[::1] target, Py_ssize_t offset, const uint8_t[::1] source, Py_ssize_t count):
    """OR count bits of source into target at bit offset."""
    if offset < 0 or count < 1 or (offset + count + 7) // 8 > target.shape[0] or (count + 7) // 8 > source.shape[0]:
        raise ValueError(f"{count} bits at {offset} of {8 * target.shape[0]}")
    bitmap_merge(&target[0], offset, &source[0], count)
