"""BYTE_STREAM_SPLIT (Encodings.md, "Byte Stream Split")."""

from libc.stdint cimport int64_t, uint8_t

import numpy as np

from fastpq.encodings.status cimport BAD_LENGTH, raise_status

cdef extern from "c/byte_stream_split.h" nogil:
    void join_streams(const uint8_t* streams, int64_t stride, int64_t count, uint8_t* out, int64_t width) noexcept
    void split_values(const uint8_t* values, int64_t count, uint8_t* streams, int64_t width) noexcept


cdef int64_t split_decode(const uint8_t* data, int64_t size, int64_t values, int64_t start, int64_t count, size_t width,
                          uint8_t* out) noexcept nogil:
    # No padding is allowed, and with any the streams would not be where they are looked for.
    if size // <int64_t>width != values or size % <int64_t>width or start > values or count > values - start:
        return BAD_LENGTH
    join_streams(data + start, values, count, out, <int64_t>width)
    return count


cdef void split_encode(const uint8_t* values, int64_t count, size_t width, uint8_t* out) noexcept nogil:
    split_values(values, count, out, <int64_t>width)


def decode(const uint8_t[::1] data, dtype, Py_ssize_t values, Py_ssize_t start=0, count=None):
    """count values from start on (all that follow, without it) of a page that holds values of them.

    Raises:
        FormatError: the page does not have the size of its values.
    """
    cdef int64_t wanted = values - start if count is None else count, done
    if start < 0 or wanted < 0:
        raise ValueError(f"{wanted} values from {start} on")
    out = np.empty(wanted + 1, dtype=dtype)
    cdef size_t width = <size_t>out.dtype.itemsize
    cdef uint8_t[::1] target = out.view(np.uint8)
    with nogil:
        done = split_decode(&data[0] if data.shape[0] else NULL, data.shape[0], values, start, wanted, width, &target[0])
    raise_status(done, "BYTE_STREAM_SPLIT")
    return out[:wanted]


def encode(values):
    """The streams of a contiguous array, as bytes."""
    cdef const uint8_t[::1] source = np.ascontiguousarray(values).view(np.uint8)
    cdef int64_t count = len(values)
    cdef size_t width = <size_t>values.dtype.itemsize
    cdef uint8_t[::1] out = np.empty(count * <int64_t>width + 1, dtype=np.uint8)
    with nogil:
        split_encode(&source[0] if count else NULL, count, width, &out[0])
    return np.asarray(out)[:count * <int64_t>width].tobytes()
