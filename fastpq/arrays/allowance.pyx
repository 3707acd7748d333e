"""Bytes that the results of a read may take in memory (``ReaderProperties.max_allocation``).

A page kept by views counts from before its decompression until its last view is gone.
"""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t

cimport cython
cimport numpy as cnp

from fastpq.arrays.memory cimport block_give, block_take

from contextlib import contextmanager

from fastpq.errors import LimitError

cnp.import_array()

cdef extern from "c/blocks.h" nogil:
    size_t block_drop(void* data, size_t size)

cdef enum:
    SMALLEST_DROPPED = 4 << 20      # bytes of a page; less is soon taken by the pages behind it, and costs more to clear anew

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
        cdef Counted owner = Counted.__new__(Counted)
        if not array.shape[0]:
            return array
        self.take(array.shape[0])
        owner.allowance = self
        owner.size = owner.touched = array.shape[0]
        owner.room = array
        return counted(owner, <void*>&owner.room[0])

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

    cdef int64_t try_take(self, int64_t size) noexcept nogil:
        cdef int64_t in_use = -1
        with lock:
            if size <= self.limit - self._taken:
                self._taken += size
            else:
                in_use = self._taken
        return in_use

    cdef int take(self, int64_t size) except -1:
        cdef int64_t in_use = self.try_take(size)
        if in_use >= 0:
            raise self._over(<object>in_use + size)
        return 0

    cdef void give(self, int64_t size) noexcept nogil:
        with lock:
            self._taken -= size

    cdef object empty(self, int64_t size, uint8_t** data, int64_t room=0):
        cdef Counted owner = Counted.__new__(Counted)
        self.take(size)
        owner.allowance = self
        owner.size = owner.touched = size
        owner.block = block_take(<size_t>max(size, room) + 1, &owner.capacity)  # one byte more: an empty array has no address
        if owner.block == NULL and room > size:
            owner.block = block_take(<size_t>size + 1, &owner.capacity)
        if owner.block == NULL:
            raise MemoryError(f"no memory for {size} bytes")
        data[0] = <uint8_t*>owner.block
        return counted(owner, owner.block)

    cdef uint8_t* extend(self, Counted owner, int64_t size) noexcept nogil:
        cdef uint8_t* data = <uint8_t*>owner.block + owner.size
        cdef int64_t grown = max(owner.size + size - owner.touched, <int64_t>0)
        if <size_t>(owner.size + size) >= owner.capacity or grown and self.try_take(grown) >= 0:
            return NULL
        owner.touched += grown
        owner.size += size
        owner.shape[0] = owner.size
        return data

    cdef void shorten(self, Counted owner, int64_t size) noexcept nogil:
        cdef int64_t dropped = 0
        owner.size -= size
        owner.shape[0] = owner.size
        if owner.touched - owner.size >= SMALLEST_DROPPED:
            dropped = <int64_t>block_drop(<uint8_t*>owner.block + owner.size, <size_t>(owner.touched - owner.size))
        owner.touched -= dropped
        self.give(dropped)


cdef object counted(Counted owner, void* data):
    """The bytes of an owner as a read-only array."""
    cdef cnp.npy_intp size = owner.size
    cdef cnp.ndarray array = cnp.PyArray_SimpleNewFromData(1, &size, cnp.NPY_UINT8, data)
    cnp.set_array_base(array, owner)
    owner.shape = cnp.PyArray_DIMS(array)
    cnp.PyArray_CLEARFLAGS(array, cnp.NPY_ARRAY_WRITEABLE)
    return array


@cython.no_gc
cdef class Counted:
    def __dealloc__(self):
        block_give(self.block, self.capacity)
        if self.allowance is not None:
            self.allowance.give(self.touched)
