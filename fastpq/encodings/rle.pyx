"""The RLE / bit-packing hybrid (Encodings.md, "Run Length Encoding / Bit-Packing Hybrid"), for levels, indices and booleans."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fastpq.encodings.status cimport BAD_RUN, TRUNCATED, raise_status
from fastpq.format.varint cimport write_varint

import numpy as np

cdef extern from "c/bitpack.h" nogil:
    void unpack_groups(const uint8_t* data, int64_t available, uint32_t* out, int64_t groups, int width) noexcept
    void pack_groups(const uint32_t* values, uint8_t* out, int64_t groups, int width) noexcept
    int64_t constant_groups(const uint32_t* values, int64_t groups) noexcept
    int64_t varied_groups(const uint32_t* values, int64_t groups) noexcept

cdef enum:
    LONGEST_RUN = 0x7FFFFFF8        # values of a run, in groups of eight; a header has 31 bits for the count
    LOOKAHEAD = 4096                # values unpacked to 32 bits in one step of hybrid_next_bytes
    GROUP = 32                      # values unpacked together: a whole number of bytes at any bit width


cdef int hybrid_start(HybridDecoder* decoder, const uint8_t* data, size_t size, int bit_width) noexcept nogil:
    memset(decoder, 0, sizeof(HybridDecoder))
    decoder.pos = data
    decoder.end = data + size
    decoder.bit_width = bit_width
    return BAD_RUN if bit_width < 0 or bit_width > 32 else 0


cdef int next_run(HybridDecoder* decoder) noexcept nogil:
    """Read the header of the next run; returns 0 or a negative Status."""
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
    if header >> 32 or header >> 1 == 0:        # a length beyond 31 bits, or an empty run
        return BAD_RUN
    available = decoder.end - decoder.pos
    if header & 1:
        size = <int64_t>(header >> 1) * width
        decoder.packed = decoder.pos
        decoder.packed_next = 0
        decoder.packed_count = <int64_t>(header >> 1) * 8
        if size > available:                # writers cut the padding of the last group
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
    """Move to the next run where the current run is used up; returns 0 or a negative Status."""
    cdef int status
    while decoder.rle_left == 0 and decoder.packed_next == decoder.packed_count:
        if decoder.bit_width == 0 and decoder.pos == decoder.end:
            decoder.rle_left = LONGEST_RUN      # values of no bits are zero; the stream may be empty
            decoder.rle_value = 0
            return 0
        status = next_run(decoder)
        if status < 0:
            return status
    return 0


cdef int64_t unpack(HybridDecoder* decoder, uint32_t* out, int64_t count) noexcept nogil:
    """Decode at most count values of the current bit-packed run; returns the number of values."""
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


cdef int64_t hybrid_next(HybridDecoder* decoder, uint32_t* out, int64_t count) noexcept nogil:
    cdef int64_t done = 0, run, i
    cdef int status
    while done < count:
        status = hybrid_ensure(decoder)
        if status < 0:
            return status
        if decoder.rle_left:
            run = min(decoder.rle_left, count - done)
            for i in range(run):
                out[done + i] = decoder.rle_value
            decoder.rle_left -= run
        else:
            run = unpack(decoder, out + done, count - done)
        done += run
    return count


cdef int64_t hybrid_next_bytes(HybridDecoder* decoder, uint8_t* out, int64_t count) noexcept nogil:
    cdef uint32_t values[LOOKAHEAD]
    cdef int64_t done = 0, run, i
    cdef int status
    while done < count:
        status = hybrid_ensure(decoder)
        if status < 0:
            return status
        if decoder.rle_left:
            run = min(decoder.rle_left, count - done)
            memset(out + done, <int>decoder.rle_value, <size_t>run)
            decoder.rle_left -= run
        else:
            run = unpack(decoder, values, min(count - done, <int64_t>LOOKAHEAD))
            for i in range(run):
                out[done + i] = <uint8_t>values[i]
        done += run
    return count


cdef int64_t hybrid_skip(HybridDecoder* decoder, int64_t count) noexcept nogil:
    cdef int64_t left = count, run
    cdef int status
    while left:
        status = hybrid_ensure(decoder)
        if status < 0:
            return status
        if decoder.rle_left:
            run = min(decoder.rle_left, left)
            decoder.rle_left -= run
        else:
            run = min(decoder.packed_count - decoder.packed_next, left)
            decoder.packed_next += run
        left -= run
    return count


cdef int64_t hybrid_bound(int64_t count, int bit_width) noexcept nogil:
    # Each group of eight values takes bit_width bytes packed, or at most as many as an RLE value; and at most two run headers.
    return (count // 8 + 1) * (bit_width + 2) + 16


cdef uint8_t* write_rle(const uint32_t* value, int64_t count, int bit_width, uint8_t* out) noexcept nogil:
    out = write_varint(out, <uint64_t>count << 1)
    memcpy(out, value, <size_t>(bit_width + 7) // 8)
    return out + (bit_width + 7) // 8


cdef uint8_t* write_packed(const uint32_t* values, int64_t count, int bit_width, uint8_t* out) noexcept nogil:
    """Write one bit-packed run; returns its end. Count is a multiple of 8 for all runs but the last of a stream."""
    cdef uint32_t group[GROUP]
    cdef uint8_t packed[4 * 32]
    cdef int64_t groups = count // GROUP, left = count % GROUP
    out = write_varint(out, <uint64_t>((count + 7) // 8) << 1 | 1)
    pack_groups(values, out, groups, bit_width)
    out += groups * 4 * bit_width
    if left:
        memset(group, 0, sizeof(group))
        memcpy(group, values + groups * GROUP, <size_t>left * sizeof(uint32_t))
        pack_groups(group, packed, 1, bit_width)
        memcpy(out, packed, <size_t>((left + 7) // 8 * bit_width))
        out += (left + 7) // 8 * bit_width
    return out


cdef int64_t hybrid_encode(const uint32_t* values, int64_t count, int bit_width, uint8_t* out) noexcept nogil:
    """Encode values as RLE runs of whole groups of eight where these are shorter than packed groups, else as packed runs."""
    cdef uint8_t* start = out
    cdef int64_t groups = count // 8, group = 0, packed = 0, same, repeats, worth
    if bit_width == 0:
        return write_varint(out, <uint64_t>count << 1) - start if count else 0
    worth = (2 + (bit_width + 7) // 8 + bit_width - 1) // bit_width
    while group < groups:
        group += varied_groups(values + 8 * group, groups - group)
        if group == groups:
            break
        same = constant_groups(values + 8 * group, min(groups - group, <int64_t>LONGEST_RUN // 8))
        if same >= worth:
            if group > packed:
                out = write_packed(values + 8 * packed, 8 * (group - packed), bit_width, out)
            repeats = 8 * same
            while 8 * group + repeats < count and values[8 * group + repeats] == values[8 * group] and group + same == groups:
                repeats += 1
            if 8 * group + repeats < count:
                repeats = 8 * same          # the run keeps whole groups; the values behind the last group are packed
            out = write_rle(values + 8 * group, repeats, bit_width, out)
            if 8 * group + repeats == count:
                return out - start
            packed = group + same
        group += same
    if count > 8 * packed:
        out = write_packed(values + 8 * packed, count - 8 * packed, bit_width, out)
    return out - start


def decode(const uint8_t[::1] data, int bit_width, Py_ssize_t count):
    """The first count values of a hybrid stream, as uint32.

    Raises:
        FormatError: the stream ends early or holds an invalid run.
    """
    cdef HybridDecoder decoder
    cdef uint32_t[::1] out = np.empty(max(count, 1), dtype=np.uint32)
    raise_status(hybrid_start(&decoder, &data[0] if data.shape[0] else NULL, <size_t>data.shape[0], bit_width), "hybrid")
    raise_status(hybrid_next(&decoder, &out[0], count), "hybrid")
    return np.asarray(out)[:count]


def encode(const uint32_t[::1] values, int bit_width):
    """The hybrid stream of values, each below 2 ** bit_width, as bytes."""
    if not 0 <= bit_width <= 32:
        raise ValueError(f"a bit width of {bit_width}")
    cdef uint8_t[::1] out = np.empty(hybrid_bound(values.shape[0], bit_width), dtype=np.uint8)
    size = hybrid_encode(&values[0] if values.shape[0] else NULL, values.shape[0], bit_width, &out[0])
    return np.asarray(out)[:size].tobytes()
