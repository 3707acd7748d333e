"""Calls of compiled kernels that fastpq itself makes from compiled code alone. Tests and benchmarks make them from Python.

The calls that fastpq.verify makes are in fastpq.verify.page_kernels, and have their names here too.
setup.py builds this file as fastpq._kernel_calls, so that the tests can run on wheels too.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

import numpy as np

from fastpq.arrays.slices cimport SLICE_BLOCK, SliceReader
from fastpq.encodings.delta cimport DeltaDecoder, delta_end, delta_start
from fastpq.encodings.dictionary cimport seldom_repeats
from fastpq.encodings.encoding_table cimport encoder_of
from fastpq.encodings.interface cimport BYTE_ARRAYS, FIXED_WIDTH, ValueEncoder, ValuesToEncode
from fastpq.encodings.levels cimport (
    bit_packed_levels_to_bitmap, bitmap_count, bitmap_merge, bitmap_pick, bitmap_stretch, bitmap_to_levels, bytes_to_levels,
    compact, constant_levels, expand, has_list_levels, level_width, levels_bound, levels_to_bitmap, list_levels,
)
from fastpq.encodings.plain cimport utf8_is_valid
from fastpq.encodings.rle cimport hybrid_bound
from fastpq.encodings.status cimport TRUNCATED, raise_status
from fastpq.encodings.views cimport Slice
from fastpq.format.page_header cimport PAGE_HEADER_TRUNCATED, PageHeader, read_page_header
from fastpq.index.bloom_filter cimport SplitBlockBloomFilter

from fastpq.format import Encoding
from fastpq.verify import page_kernels
from fastpq.verify.page_kernels import (
    decode_byte_arrays, decode_hybrid, decode_levels, min_max, min_max_of,     # no-cython-lint
)

cdef dict WIDTHS = {Encoding.ALP: (4, 8), Encoding.DELTA_BINARY_PACKED: (4, 8)}     # bytes of a value, where they are limited


cdef const uint8_t* start_of(const uint8_t[::1] data) noexcept:
    return &data[0] if data.shape[0] else <const uint8_t*>b""


cdef int check_width(int encoding, size_t width) except -1:
    if width not in WIDTHS.get(encoding, (width,)):
        raise ValueError(f"{Encoding(encoding).name} values have 4 or 8 bytes, not {width}")
    return 0


def decode_numbers(int encoding, const uint8_t[::1] data, dtype, int64_t start, int64_t count, int64_t step=0, entries=None):
    """Return the fixed-width values [start, start + count) in a page, as ``fastpq.verify.page_kernels.decode_numbers`` does."""
    check_width(encoding, np.dtype(dtype).itemsize)
    return page_kernels.decode_numbers(encoding, data, dtype, start, count, step, entries)


def encode_numbers(int encoding, values):
    """Return an array's fixed-width values as an encoded page, as bytes."""
    cdef const ValueEncoder* encoder = encoder_of(encoding)
    cdef ValuesToEncode page
    cdef const uint8_t[::1] source = np.ascontiguousarray(values).view(np.uint8)
    cdef int64_t size
    memset(&page, 0, sizeof(ValuesToEncode))
    page.form = FIXED_WIDTH
    page.width = <size_t>values.dtype.itemsize
    page.count, page.plain_size = len(values), source.shape[0]
    page.values = start_of(source)
    check_width(encoding, page.width)
    cdef uint8_t[::1] out = np.empty(encoder.bound(&page) + 1, dtype=np.uint8)
    with nogil:
        size = encoder.encode(&page, &out[0])
    return np.asarray(out)[:size].tobytes()


def encode_byte_arrays(int encoding, const uint8_t[::1] data, const int64_t[::1] offsets):
    """Return the page that holds the values data[offsets[i]:offsets[i + 1]], as bytes.

    Args:
        encoding: the encoding's number.
        data: all values' bytes.
        offsets: where each value starts in data, then where the last value ends.
    """
    cdef const ValueEncoder* encoder = encoder_of(encoding)
    cdef ValuesToEncode page
    cdef int64_t count = offsets.shape[0] - 1, i, size
    cdef uint8_t[::1] slices = np.empty((count + 1) * <int64_t>sizeof(Slice), np.uint8)
    cdef uint8_t[::1] scratch = np.empty(count * <int64_t>encoder.scratch + 1, np.uint8)
    cdef Slice* values = <Slice*>&slices[0]
    for i in range(count):
        if not 0 <= offsets[i] <= offsets[i + 1] <= data.shape[0]:
            raise ValueError(f"value {i} lies outside the data")
        values[i].data = start_of(data) + offsets[i]
        values[i].size = <size_t>(offsets[i + 1] - offsets[i])
    memset(&page, 0, sizeof(ValuesToEncode))
    page.form = BYTE_ARRAYS
    page.count, page.plain_size = count, 4 * count + data.shape[0]
    page.slices = values
    page.scratch = &scratch[0]
    cdef uint8_t[::1] out = np.empty(encoder.bound(&page) + 1, dtype=np.uint8)
    with nogil:
        size = encoder.encode(&page, &out[0])
    return np.asarray(out)[:size].tobytes()


def delta_size(const uint8_t[::1] data):
    """Return how many bytes the DELTA_BINARY_PACKED stream at the start of data has.

    Raises:
        FormatError: the stream is broken.
    """
    cdef DeltaDecoder decoder
    cdef const uint8_t* first = &data[0] if data.shape[0] else NULL
    cdef const uint8_t* end
    raise_status(delta_start(&decoder, first, <size_t>data.shape[0]), "DELTA_BINARY_PACKED")
    end = delta_end(&decoder)
    return raise_status(TRUNCATED if end == NULL else end - first, "DELTA_BINARY_PACKED")


def encode_levels(const uint8_t[::1] levels, int max_level):
    """Return the hybrid stream for levels up to max_level, as bytes."""
    cdef Py_ssize_t count = levels.shape[0]
    cdef uint8_t[::1] out = np.empty(hybrid_bound(count, level_width(max_level)) + 16, dtype=np.uint8)
    size = bytes_to_levels(&levels[0] if count else NULL, count, max_level, &out[0])
    return np.asarray(out)[:size].tobytes()


def decode_flat_levels(const uint8_t[::1] data, Py_ssize_t count, bint bit_packed=False):
    """Return a flat column's first count definition levels as a bitmap (uint8, LSB first), and how many levels are 1.

    Args:
        data: the stream.
        count: how many levels to decode.
        bit_packed: whether the encoding is BIT_PACKED, not RLE.

    Raises:
        FormatError: the stream ends early, or holds a level above 1.
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


def encode_flat_levels(const uint8_t[::1] bitmap, Py_ssize_t offset, Py_ssize_t count):
    """Return the hybrid stream for the bits [offset, offset + count) in a bitmap, as bytes."""
    if offset < 0 or count < 1 or (offset + count + 7) // 8 > bitmap.shape[0]:
        raise ValueError(f"{count} bits from bit {offset} on, in a bitmap with {8 * bitmap.shape[0]}")
    cdef uint8_t[::1] out = np.empty(levels_bound(count), dtype=np.uint8)
    size = bitmap_to_levels(&bitmap[0], offset, count, &out[0])
    return np.asarray(out)[:size].tobytes()


def spread(const uint8_t[::1] bitmap, Py_ssize_t count, dense):
    """Return an array with count values: the dense values, in order, where the bitmap has set bits, and zero elsewhere."""
    cdef const uint8_t[::1] values = np.ascontiguousarray(dense).view(np.uint8)
    if count < 1 or (count + 7) // 8 > bitmap.shape[0] or bitmap_count(&bitmap[0], 0, count) != len(dense):
        raise ValueError(f"{len(dense)} values for {count} bits")
    out = np.empty(count, dtype=dense.dtype)
    cdef uint8_t[::1] target = out.view(np.uint8)
    expand(&bitmap[0], count, &values[0] if values.shape[0] else NULL, &target[0], <size_t>dense.dtype.itemsize)
    return out


def pick(const uint8_t[::1] bitmap, Py_ssize_t offset, values):
    """Return the values whose bits are set in a bitmap, where values[0] has the bit at offset."""
    count = len(values)
    cdef const uint8_t[::1] source = np.ascontiguousarray(values).view(np.uint8)
    if offset < 0 or count < 1 or (offset + count + 7) // 8 > bitmap.shape[0]:
        raise ValueError(f"{count} bits from bit {offset} on, in a bitmap with {8 * bitmap.shape[0]}")
    out = np.empty(count, dtype=values.dtype)
    cdef uint8_t[::1] target = out.view(np.uint8)
    done = compact(&bitmap[0], offset, count, &source[0], &target[0], <size_t>values.dtype.itemsize)
    return out[:done]


def stretches(const uint8_t[::1] bitmap, Py_ssize_t offset, Py_ssize_t count, int64_t least_clear, int64_t least_set):
    """Cut count bits into stretches. Return each stretch's bit count and kind (``Stretch``), in order."""
    cdef int kind
    if offset < 0 or count < 1 or (offset + count + 7) // 8 > bitmap.shape[0]:
        raise ValueError(f"{count} bits from bit {offset} on, in a bitmap with {8 * bitmap.shape[0]}")
    cuts = []
    while count:
        size = bitmap_stretch(&bitmap[0], offset, count, least_clear, least_set, &kind)
        cuts.append((size, kind))
        offset += size
        count -= size
    return cuts


def pick_of_bitmap(const uint8_t[::1] source, int64_t offset, const uint8_t[::1] mask, int64_t mask_offset, int64_t count):
    """Return a bitmap (uint8) with the bits in source at which a mask has set bits, and how many bits it has.

    Both source and mask have count bits, from offset and from mask_offset on.
    """
    if min(offset, mask_offset) < 0 or count < 1 or (offset + count + 7) // 8 > source.shape[0] \
            or (mask_offset + count + 7) // 8 > mask.shape[0]:
        raise ValueError(f"{count} bits from {offset} and {mask_offset} on, in bitmaps with {8 * source.shape[0]} and "
                         f"{8 * mask.shape[0]}")
    cdef uint8_t[::1] out = np.empty((count + 7) // 8, np.uint8)
    picked = bitmap_pick(&source[0], offset, &mask[0], mask_offset, count, &out[0])
    return np.asarray(out)[:(picked + 7) // 8], picked


def merge_validity(uint8_t[::1] target, Py_ssize_t offset, const uint8_t[::1] source, Py_ssize_t count):
    """OR the first count bits in source into target, from bit offset on."""
    if offset < 0 or count < 1 or (offset + count + 7) // 8 > target.shape[0] or (count + 7) // 8 > source.shape[0]:
        raise ValueError(f"{count} bits from bit {offset} on, in a bitmap with {8 * target.shape[0]}")
    bitmap_merge(&target[0], offset, &source[0], count)


def encode_equal_levels(int64_t count, uint8_t level):
    """Return the stream for count equal levels."""
    cdef uint8_t[16] out
    return (<char*>out)[:constant_levels(count, level, out)]


def encode_list_levels(int64_t lists, int64_t length):
    """Return the stream for the repetition levels of lists with this many elements each."""
    if lists < 0 or not has_list_levels(length):
        raise ValueError(f"{lists} lists of {length} elements")
    cdef bytearray room = bytearray(16 * max(lists, 1))
    cdef uint8_t[::1] out = room
    return bytes(room[:list_levels(lists, length, &out[0])])


def check_utf8(const uint8_t[::1] data):
    """Return whether data are well-formed UTF-8."""
    return utf8_is_valid(&data[0] if data.shape[0] else NULL, <size_t>data.shape[0])


def are_mostly_distinct(values):
    """Return whether an array of 4-byte or 8-byte numbers repeats almost no value. False for fewer than 65,536 numbers."""
    cdef const uint8_t[::1] data = np.ascontiguousarray(values).view(np.uint8)
    return seldom_repeats(&data[0], len(values), <size_t>values.dtype.itemsize) if len(values) else False


def parse_page_header(const uint8_t[::1] data):
    """Return the header at the start of `data` as a dict, and its length.

    Raises:
        ValueError: the header is not valid, or the data end inside it.
    """
    cdef PageHeader header
    cdef int64_t walked = 0
    size = read_page_header(&data[0] if data.shape[0] else NULL, <size_t>data.shape[0], &header, &walked)
    if size < 0:
        raise ValueError("truncated" if size == PAGE_HEADER_TRUNCATED else "invalid")
    return header, size


def insert_slices(SplitBlockBloomFilter bloom_filter not None, SliceReader values not None):
    """Insert variable-length values into a bloom filter. Nulls are skipped.

    Args:
        bloom_filter: the filter.
        values: a reader that gives the values.

    Raises:
        FormatError: a value lies outside the reader's memory.
        ValueError: the filter was read from a file.
    """
    cdef Slice slices[SLICE_BLOCK]
    cdef int64_t done = 0, count, status = 0
    bloom_filter._check_writable()
    with nogil:
        while done < values.count and status >= 0:
            count = min(<int64_t>SLICE_BLOCK, values.count - done)
            status = values.read(done, count, slices)
            if status >= 0:
                bloom_filter.insert_slices(slices, count)
            done += count
    raise_status(status, "values")
