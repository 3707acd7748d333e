"""BYTE_STREAM_SPLIT (Encodings.md, "Byte Stream Split"): the first bytes of all values, then the second bytes, and so on."""

from libc.stdint cimport int64_t, uint8_t

import numpy as np

from fastpq.encodings.status cimport BAD_LENGTH, TRUNCATED, raise_status

cdef extern from "c/byte_stream_split.h" nogil:
    void join_streams(const uint8_t* streams, int64_t stride, int64_t count, uint8_t* out, int64_t width) noexcept
    void split_values(const uint8_t* values, int64_t count, uint8_t* streams, int64_t width) noexcept


cdef int64_t split_decode(const uint8_t* data, int64_t size, int64_t start, int64_t count, size_t width,
                          uint8_t* out) noexcept nogil:
    cdef int64_t values
    if width == 0 or size % <int64_t>width:
        return BAD_LENGTH       # the start of each stream follows from the page's size: padding would shift the streams
    values = size // <int64_t>width
    if start > values or count > values - start:
        return TRUNCATED
    join_streams(data + start, values, count, out, <int64_t>width)
    return count


cdef void split_encode(const uint8_t* values, int64_t count, size_t width, uint8_t* out) noexcept nogil:
    split_values(values, count, out, <int64_t>width)


def decode(const uint8_t[::1] data, dtype, Py_ssize_t start, Py_ssize_t count):
    """The values [start, start + count) of a page, as an array of a dtype.

    Raises:
        FormatError: the page is no whole number of values, or holds fewer than start + count.
    """
    cdef int64_t done
    if start < 0 or count < 0:
        raise ValueError(f"{count} values from {start} on")
    out = np.empty(count + 1, dtype=dtype)
    cdef uint8_t[::1] target = out.view(np.uint8)
    cdef size_t width = <size_t>out.dtype.itemsize
    with nogil:
        done = split_decode(&data[0] if data.shape[0] else NULL, data.shape[0], start, count, width, &target[0])
    raise_status(done, "BYTE_STREAM_SPLIT")
    return out[:count]


def encode(values):
    """The byte streams of a contiguous array's values, one behind the other, as bytes."""
    cdef const uint8_t[::1] source = np.ascontiguousarray(values).view(np.uint8)
    cdef int64_t count = len(values)
    cdef size_t width = <size_t>values.dtype.itemsize
    cdef uint8_t[::1] out = np.empty(count * <int64_t>width + 1, dtype=np.uint8)
    with nogil:
        split_encode(&source[0] if count else NULL, count, width, &out[0])
    return np.asarray(out)[:count * <int64_t>width].tobytes()
