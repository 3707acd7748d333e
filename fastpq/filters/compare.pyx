# distutils: language = c
"""Comparisons of values of variable length with keys, byte by byte, for filters on text and bytes."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int8_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp

from fastpq.encodings.comparison cimport compare_byte_strings
from fastpq.encodings.views cimport Slice
from fastpq.arrays.slices cimport SLICE_BLOCK, SliceReader, raise_status

import numpy as np


cdef inline Slice slice_of(bytes value):
    return Slice(<const uint8_t*>PyBytes_AS_STRING(value), <size_t>PyBytes_GET_SIZE(value))


cdef inline bint begins_with(const Slice* value, const Slice* prefix) noexcept nogil:
    return value.size >= prefix.size and (prefix.size == 0 or memcmp(value.data, prefix.data, prefix.size) == 0)


cdef inline bint is_among(const Slice* value, const Slice* others, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t low = 0, high = size, middle
    cdef int order
    while low < high:
        middle = (low + high) // 2
        order = compare_byte_strings(others[middle], value[0])
        if order == 0:
            return True
        if order < 0:
            low = middle + 1
        else:
            high = middle
    return False


cdef struct Others:
    const Slice* slices
    Py_ssize_t count


cdef int8_t order_of(const Slice* value, const Others* others) noexcept nogil:
    return <int8_t>compare_byte_strings(value[0], others.slices[0])


cdef int8_t has_prefix(const Slice* value, const Others* others) noexcept nogil:
    return begins_with(value, others.slices)


cdef int8_t is_member(const Slice* value, const Others* others) noexcept nogil:
    return is_among(value, others.slices, others.count)


ctypedef int8_t (*Verdict)(const Slice* value, const Others* others) noexcept nogil


cdef judge(SliceReader values, Verdict verdict, list others):
    """Results (int8) of a comparison function, called with each value and all keys; ``others`` has the keys."""
    cdef Py_ssize_t size = len(others)
    cdef Slice* slices = <Slice*>malloc(max(size, 1) * sizeof(Slice))
    cdef Slice block[SLICE_BLOCK]
    cdef Others against = Others(slices, size)
    cdef int8_t[::1] out = np.empty(max(values.count, 1), np.int8)
    cdef int64_t done = 0, count, i, status = 0
    if slices == NULL:
        raise MemoryError
    try:
        for i in range(size):
            slices[i] = slice_of(others[i])
        with nogil:
            while done < values.count:
                count = min(<int64_t>SLICE_BLOCK, values.count - done)
                status = values.read(done, count, block)
                if status < 0:
                    break
                for i in range(count):
                    out[done + i] = verdict(&block[i], &against)
                done += count
        raise_status(status)
    finally:
        free(slices)
    return np.asarray(out)[:values.count]


def compare_values(SliceReader values not None, bytes other not None):
    """Compare each value with one key: -1 before, 0 equal to, 1 behind the key; undefined for nulls.

    Returns:
        Shape (values.count,), int8.

    Raises:
        FormatError: a value lies outside the reader's memory.
    """
    return judge(values, order_of, [other])


def begin_with(SliceReader values not None, bytes prefix not None):
    """Whether each value begins with a prefix; undefined for nulls.

    Returns:
        Shape (values.count,), bool.

    Raises:
        FormatError: a value lies outside the reader's memory.
    """
    return judge(values, has_prefix, [prefix]).view(np.bool_)


def are_among(SliceReader values not None, others not None):
    """Whether each value equals one of some keys; undefined for nulls.

    Args:
        values: the values.
        others: the keys, a sequence of bytes, ascending.

    Returns:
        Shape (values.count,), bool.

    Raises:
        FormatError: a value lies outside the reader's memory.
    """
    return judge(values, is_member, list(others)).view(np.bool_)
