# distutils: language = c
"""Compares stored values with the values in a filter: byte strings with one value, byte by byte, and any with a table of keys.

A key is a value that an ``in`` condition lists. A table of keys tells for each stored value whether it is a key.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int8_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp

from fastpq.encodings.comparison cimport compare_byte_strings
from fastpq.encodings.views cimport Slice
from fastpq.arrays.slices cimport SLICE_BLOCK, SliceReader, raise_status

import secrets

import numpy as np

cdef extern from "c/key_table.h" nogil:
    ctypedef struct key_table:
        pass

    ctypedef struct byte_slice:
        pass

    ctypedef struct slice_table:
        slice_slot* slots

    ctypedef struct slice_slot:
        pass

    int key_table_build(key_table* table, const uint8_t* keys, int64_t count, size_t width, uint64_t seed)
    void key_table_find(const key_table* table, const uint8_t* values, int64_t count, size_t width, uint8_t* is_key)
    void key_table_free(key_table* table)
    int slice_table_build(slice_table* table, const byte_slice* keys, int64_t count, uint64_t seed)
    void slice_table_find(const slice_table* table, const byte_slice* values, int64_t count, uint8_t* is_key)

cdef enum:
    MOST_KEYS = 0x7FFFFFFF      # largest number of keys in a BytesTable, in which key numbers have 32 bits


cdef inline Slice slice_of(bytes value):
    return Slice(<const uint8_t*>PyBytes_AS_STRING(value), <size_t>PyBytes_GET_SIZE(value))


cdef inline bint begins_with(const Slice* value, const Slice* prefix) noexcept nogil:
    return value.size >= prefix.size and (prefix.size == 0 or memcmp(value.data, prefix.data, prefix.size) == 0)


cdef int8_t order_of(const Slice* value, const Slice* key) noexcept nogil:
    return <int8_t>compare_byte_strings(value[0], key[0])


cdef int8_t has_prefix(const Slice* value, const Slice* key) noexcept nogil:
    return begins_with(value, key)


ctypedef int8_t (*Comparison)(const Slice* value, const Slice* key) noexcept nogil


cdef compare_each(SliceReader values, Comparison comparison, bytes key):
    """Call `comparison` with each value and the key. Return the results as int8: an order (-1, 0, 1) or a truth value."""
    cdef Slice key_slice = slice_of(key)
    cdef Slice block[SLICE_BLOCK]
    cdef int8_t[::1] out = np.empty(max(values.count, 1), np.int8)
    cdef int64_t done = 0, count, i, status = 0
    with nogil:
        while done < values.count:
            count = min(<int64_t>SLICE_BLOCK, values.count - done)
            status = values.read(done, count, block)
            if status < 0:
                break
            for i in range(count):
                out[done + i] = comparison(&block[i], &key_slice)
            done += count
    raise_status(status)
    return np.asarray(out)[:values.count]


def compare_values(SliceReader values not None, bytes other not None):
    """Compare each value with one other byte string.

    Returns:
        Shape (values.count,), int8: -1 if the value comes before the other, 0 if both are equal, 1 if it comes after the other.
        The results for nulls are arbitrary.

    Raises:
        FormatError: a value lies outside the reader's memory.
    """
    return compare_each(values, order_of, other)


def begin_with(SliceReader values not None, bytes prefix not None):
    """Return whether each value begins with a prefix.

    Returns:
        Shape (values.count,), bool. The results for nulls are arbitrary.

    Raises:
        FormatError: a value lies outside the reader's memory.
    """
    return compare_each(values, has_prefix, prefix).view(np.bool_)


cdef class NumberTable:
    """A table of numbers with 1, 2, 4 or 8 bytes. Two numbers are equal if their bits are equal.

    Args:
        keys: distinct numbers that ascend, as signed or as unsigned numbers: shape (n,), uint8, uint16, uint32 or uint64,
            contiguous.
    """

    cdef key_table table
    cdef size_t width

    def __init__(self, keys):
        cdef const uint8_t[::1] data = keys.view(np.uint8)
        cdef int64_t count = len(keys)
        cdef uint64_t seed = secrets.randbits(64)
        cdef int status = 0
        if keys.dtype.kind != "u" or keys.ndim != 1:
            raise ValueError(f"keys of {keys.dtype} are not unsigned numbers")
        self.width = keys.dtype.itemsize
        key_table_free(&self.table)
        if count:
            with nogil:
                status = key_table_build(&self.table, &data[0], count, self.width, seed)
        if status != 0:
            raise MemoryError

    def __dealloc__(self):
        key_table_free(&self.table)

    def are_keys(self, values):
        """Return whether each value is a key.

        Args:
            values: shape (n,), contiguous, with items as wide as the keys.

        Returns:
            Shape (n,), bool.
        """
        cdef const uint8_t[::1] data = values.view(np.uint8)
        cdef int64_t count = len(values)
        cdef uint8_t[::1] is_key = np.empty(count, np.uint8)
        if <size_t>data.shape[0] != <size_t>count * self.width:
            raise ValueError(f"values of {values.dtype} where {self.width} bytes are expected")
        if count:
            with nogil:
                key_table_find(&self.table, &data[0], count, self.width, &is_key[0])
        return np.asarray(is_key).view(np.bool_)


cdef class BytesTable:
    """A table of byte strings.

    Args:
        keys: distinct byte strings.
    """

    cdef list keys
    cdef Slice* slices
    cdef slice_table table

    def __init__(self, keys):
        cdef Py_ssize_t count = len(keys), i
        cdef uint64_t seed = secrets.randbits(64)
        cdef int status
        if count > MOST_KEYS:
            raise ValueError(f"{count} keys are more than {MOST_KEYS}")
        if self.slices != NULL:
            raise RuntimeError("the table is already built")
        self.keys = list(keys)
        self.slices = <Slice*>malloc(max(count, 1) * sizeof(Slice))
        if self.slices == NULL:
            raise MemoryError
        for i in range(count):
            self.slices[i] = slice_of(self.keys[i])
        with nogil:
            status = slice_table_build(&self.table, <const byte_slice*>self.slices, count, seed)
        if status != 0:
            raise MemoryError

    def __dealloc__(self):
        free(self.table.slots)
        free(self.slices)

    def are_keys(self, SliceReader values not None):
        """Return whether each variable-length value is a key. The result is False for nulls.

        Returns:
            Shape (values.count,), bool.

        Raises:
            FormatError: a value lies outside the reader's memory.
        """
        cdef Slice block[SLICE_BLOCK]
        cdef uint8_t[::1] is_key = np.empty(max(values.count, 1), np.uint8)
        cdef int64_t done = 0, count, status = 0
        with nogil:
            while done < values.count:
                count = min(<int64_t>SLICE_BLOCK, values.count - done)
                status = values.read(done, count, block)
                if status < 0:
                    break
                slice_table_find(&self.table, <const byte_slice*>block, count, &is_key[done])
                done += count
        raise_status(status)
        return np.asarray(is_key)[:values.count].view(np.bool_)

    def are_fixed_keys(self, values):
        """Return whether each fixed-width value is a key.

        Args:
            values: shape (n,), in a void dtype, contiguous.

        Returns:
            Shape (n,), bool.
        """
        cdef int64_t total = len(values), done = 0, count, i
        cdef size_t width = values.dtype.itemsize
        cdef const uint8_t[::1] data = np.frombuffer(values, np.uint8) if total and width else np.zeros(1, np.uint8)
        cdef Slice block[SLICE_BLOCK]
        cdef uint8_t[::1] is_key = np.empty(max(total, 1), np.uint8)
        with nogil:
            while done < total:
                count = min(<int64_t>SLICE_BLOCK, total - done)
                for i in range(count):
                    block[i] = Slice(&data[0] + <size_t>(done + i) * width, width)
                slice_table_find(&self.table, <const byte_slice*>block, count, &is_key[done])
                done += count
        return np.asarray(is_key)[:total].view(np.bool_)
