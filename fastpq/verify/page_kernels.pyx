"""Calls of the compiled decoders and comparisons for whole pages, whose values stay as they are stored."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

import numpy as np

from fastpq.encodings.encoding_table cimport decoder_of
from fastpq.encodings.interface cimport BYTE_ARRAYS, FIXED_WIDTH, PageValues, ValueDecoder
from fastpq.encodings.levels cimport bit_packed_levels_to_bytes, levels_to_bytes
from fastpq.encodings.rle cimport HybridDecoder, hybrid_next, hybrid_start
from fastpq.encodings.status cimport raise_status
from fastpq.encodings.views cimport Slice
from fastpq.stats.statistics cimport ORDER_NONE, min_max_fixed, min_max_slices, order_width

from fastpq.format import Encoding


cdef const uint8_t* start_of(const uint8_t[::1] data) noexcept:
    return &data[0] if data.shape[0] else <const uint8_t*>b""


def decode_numbers(int encoding, const uint8_t[::1] data, dtype, int64_t start, int64_t count, int64_t step=0, entries=None):
    """Return the fixed-width values [start, start + count) in a page.

    Args:
        encoding: the encoding's number.
        data: the encoded values.
        dtype: the values' dtype. Its size must be one that the encoding has.
        start, count: the values.
        step: how many values one call of the decoder decodes; 0 for all.
        entries: the dictionary, for a dictionary encoding.

    Raises:
        FormatError: the page is broken, or it holds fewer values.
    """
    cdef const ValueDecoder* decoder = decoder_of(encoding)
    cdef PageValues page
    cdef int64_t done = 0, part
    cdef const uint8_t[::1] dictionary
    if start < 0 or count < 0:
        raise ValueError(f"start and count must not be negative: {start}, {count}")
    name = Encoding(encoding).name
    out = np.empty(count + 1, dtype=dtype)
    cdef uint8_t[::1] target = out.view(np.uint8)
    memset(&page, 0, sizeof(PageValues))
    page.form = FIXED_WIDTH
    page.width = <size_t>out.dtype.itemsize
    page.data, page.size = start_of(data), data.shape[0]
    if entries is not None:
        dictionary = np.ascontiguousarray(entries, dtype).view(np.uint8)
        page.entries.data, page.entries.count, page.entries.width = start_of(dictionary), len(entries), page.width
    raise_status(decoder.start(&page), name)
    if start:
        raise_status(decoder.skip(&page, start), name)
    while True:
        page.position = start + done
        part = min(step or count, count - done)
        with nogil:
            part = decoder.next(&page, part, &target[done * <int64_t>page.width])
        done += raise_status(part, name)
        if done == count:
            return out[:count]


def decode_byte_arrays(int encoding, const uint8_t[::1] data, int64_t count, bytes previous=b"", int32_t buffer=0):
    """Return the first count BYTE_ARRAY values in a page, as views (dtype V16).

    Args:
        encoding: the encoding's number.
        data: the encoded values.
        count: how many values to decode.
        previous: the last value in the page before, if the encoding shares prefixes across pages.
        buffer: the buffer number in the views.

    Returns:
        The views, the bytes that they point into, and how many bytes were stored for the values.

    Raises:
        FormatError: the data end early, or a length or a prefix is too large.
    """
    cdef const ValueDecoder* decoder = decoder_of(encoding)
    cdef PageValues page
    cdef int64_t done
    name = Encoding(encoding).name
    views = np.zeros(max(count, 1), dtype="V16")
    cdef uint8_t[::1] out = views.view(np.uint8)
    cdef uint8_t[::1] scratch = np.empty(max(count, 1) * <int64_t>decoder.scratch + 1, np.uint8)
    cdef uint8_t[::1] made              # the bytes of values that are not in data
    memset(&page, 0, sizeof(PageValues))
    page.form = BYTE_ARRAYS
    page.data = page.base = start_of(data)
    page.size = data.shape[0]
    page.scratch = &scratch[0]
    page.buffer = buffer
    page.previous.data, page.previous.size = <const uint8_t*>previous, <size_t>len(previous)
    raise_status(decoder.start(&page), name)
    memory = np.asarray(data)
    if decoder.measure != NULL:
        done = raise_status(decoder.measure(&page, count), name)
        made = np.empty(done + 1, np.uint8)
        page.base = page.memory = &made[0]
        memory = np.asarray(made)[:done]
    with nogil:
        done = decoder.next(&page, count, &out[0])
    raise_status(done, name)
    return views[:count], memory, page.bytes.size


def decode_hybrid(const uint8_t[::1] data, int bit_width, Py_ssize_t count):
    """Return the first count values in a hybrid stream, as uint32.

    Raises:
        FormatError: the stream ends early, or holds an invalid run.
    """
    cdef HybridDecoder decoder
    cdef uint32_t[::1] out = np.empty(max(count, 1), dtype=np.uint32)
    raise_status(hybrid_start(&decoder, &data[0] if data.shape[0] else NULL, <size_t>data.shape[0], bit_width), "hybrid")
    raise_status(hybrid_next(&decoder, &out[0], count), "hybrid")
    return np.asarray(out)[:count]


def decode_levels(const uint8_t[::1] data, Py_ssize_t count, int max_level, bint bit_packed=False):
    """Return the first count levels in a stream, as uint8.

    Args:
        data: the stream.
        count: how many levels to decode.
        max_level: the column's maximum level.
        bit_packed: whether the levels have the deprecated bit-packed encoding, not RLE.

    Raises:
        FormatError: the stream ends early, or holds a level above max_level.
    """
    cdef uint8_t[::1] out = np.empty(count + 1, dtype=np.uint8)
    cdef const uint8_t* first = &data[0] if data.shape[0] else NULL
    if bit_packed:
        status = bit_packed_levels_to_bytes(first, <size_t>data.shape[0], count, max_level, &out[0])
    else:
        status = levels_to_bytes(first, <size_t>data.shape[0], count, max_level, &out[0])
    raise_status(status, "levels")
    return np.asarray(out)[:count]


def min_max(int order, const uint8_t[::1] values not None, Py_ssize_t width=0):
    """Return the minimum and maximum of fixed-width values.

    Args:
        order: an Order.
        values: uint8, the values one after another, as in PLAIN (booleans: one byte each).
        width: bytes per value. It matters only for ORDER_BYTES and ORDER_SIGNED_BYTES.

    Returns:
        (number of values that are not NaN, minimum, maximum). The bounds are None if the number is 0.

    Raises:
        ValueError: the bytes in values are not a multiple of the width.
    """
    cdef size_t size = order_width(order) or max(width, 0)
    if order == ORDER_NONE or size == 0 or values.shape[0] == 0:
        return 0, None, None
    if <size_t>values.shape[0] % size:
        raise ValueError(f"{values.shape[0]} bytes are not values of {size} bytes")
    cdef bytearray minimum = bytearray(size), maximum = bytearray(size)
    cdef uint8_t[::1] low = minimum, high = maximum
    cdef int64_t count
    with nogil:
        count = min_max_fixed(order, &values[0], values.shape[0] // <Py_ssize_t>size, size, &low[0], &high[0])
    if count == 0:
        return 0, None, None
    return count, bytes(minimum), bytes(maximum)


def min_max_of(int order, list values not None):
    """Return the minimum and maximum of variable-length values.

    Args:
        order: ORDER_BYTES or ORDER_SIGNED_BYTES.
        values: list of bytes.

    Returns:
        As min_max does.
    """
    cdef Py_ssize_t size = len(values), i
    cdef Slice* slices = <Slice*>malloc(max(size, 1) * sizeof(Slice))
    cdef Slice minimum, maximum
    if slices == NULL:
        raise MemoryError
    try:
        for i in range(size):
            slices[i] = Slice(<const uint8_t*>PyBytes_AS_STRING(values[i]), <size_t>PyBytes_GET_SIZE(values[i]))
        if min_max_slices(order, slices, size, &minimum, &maximum) == 0:
            return 0, None, None
        return size, minimum.data[:minimum.size], maximum.data[:maximum.size]
    finally:
        free(slices)
