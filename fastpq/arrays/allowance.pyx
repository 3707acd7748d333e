"""Bytes that the results of a read may take in memory (``ReaderProperties.max_allocation``).

A page kept by views counts from before its decompression until its last view is gone.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport INT64_MAX, int64_t, uint8_t

cimport cython

from contextlib import contextmanager

import numpy as np

from fastpq.arrays import memory
from fastpq.errors import LimitError

cdef cython.pymutex lock            # over the counts of all allowances


class AllocationError(LimitError):
    """The values of a read take more memory than ``max_allocation``; the bytes of the file may be sound."""


cdef class Allowance:
    """A bound of bytes, shared by the threads of a read.

    Args:
        limit: most bytes.

    Attributes:
        limit: most bytes.
        taken: bytes in use.
    """

    def __cinit__(self, limit):
        self.limit = min(limit, INT64_MAX)

    @property
    def taken(self):
        return self._taken

    def check(self, size):
        """Raise AllocationError if size more bytes are over the limit."""
        with self.reserved(size):
            pass

    def hold(self, array):
        """A read-only view of an array, counted until its last view is gone.

        Args:
            array: uint8, shape (n,).

        Raises:
            AllocationError: the array is over the limit.
        """
        if not array.shape[0]:
            return array
        self.take(array.shape[0])
        return counted(self, array, array.shape[0])

    @contextmanager
    def reserved(self, size):
        """Count size bytes inside a with statement.

        Raises:
            AllocationError: the bytes are over the limit.
        """
        self.keep(size)
        try:
            yield
        finally:
            self.give(size)

    def keep(self, size):
        """Count size bytes to the end of the read.

        Raises:
            AllocationError: the bytes are over the limit.
        """
        if size > self.limit:       # a forged count may be outside of 64 bits
            raise self._over(size)
        self.take(size)

    def _over(self, size):
        return AllocationError(f"the values take {size} bytes, over max_allocation ({self.limit})")

    cdef int take(self, int64_t size) except -1:
        cdef int64_t before
        cdef bint fits
        with lock:
            before = self._taken
            fits = size <= self.limit - before
            if fits:
                self._taken = before + size
        if not fits:
            raise self._over(<object>before + size)
        return 0

    cdef void give(self, int64_t size) noexcept:
        with lock:
            self._taken -= size

    cdef object empty(self, int64_t size, uint8_t** data):
        cdef uint8_t[::1] room
        self.take(size)
        try:
            room = memory.empty(size + 1)       # one byte more: an empty array has no address
        except MemoryError:
            self.give(size)
            raise
        data[0] = &room[0]
        return counted(self, room, size)


cdef object counted(Allowance allowance, const uint8_t[::1] room, int64_t size):
    """The first size bytes as a read-only array; the bytes are counted already."""
    cdef Counted owner = Counted.__new__(Counted)
    owner.allowance = allowance
    owner.size = size
    owner.room = room
    return np.frombuffer(owner, np.uint8)


@cython.no_gc
cdef class Counted:
    """Bytes of an array as a buffer; the last array to view the buffer gives the bytes back to their allowance."""

    cdef Allowance allowance
    cdef int64_t size
    cdef const uint8_t[::1] room

    def __dealloc__(self):
        if self.allowance is not None:
            self.allowance.give(self.size)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        PyBuffer_FillInfo(buffer, self, <void*>&self.room[0], <Py_ssize_t>self.size, 1, flags)
