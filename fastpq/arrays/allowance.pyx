"""A limit on the memory that a read's results take (``ReaderProperties.max_allocation``).

If string views refer to a decompressed page, the page counts too: from before its decompression until its last view is gone.
"""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t

cimport cython
cimport numpy as cnp

from fastpq.arrays.memory cimport block_give, block_take

from contextlib import contextmanager

from fastpq.common.process_memory import default_allocation, least_allocation
from fastpq.errors import LimitError

cnp.import_array()

cdef extern from "c/blocks.h" nogil:
    size_t block_drop(void* data, size_t size)

cdef enum:
    # Smallest unused part that goes back to the operating system, in bytes. A smaller part is kept, because the next pages soon
    # use it, and because the system would have to clear fresh memory.
    SMALLEST_DROPPED = 4 << 20

cdef cython.pymutex lock            # guards the counts of all allowances


class AllocationError(LimitError):
    """A read's values need more memory than ``max_allocation``. The file itself may be sound."""


cdef class Allowance:
    """A memory limit that a read's threads share.

    Args:
        limit: largest number of bytes. With None, the limit is ``least_allocation()`` at first. When the read needs more, the
            limit becomes ``default_allocation()``.

    Attributes:
        taken: number of bytes in use.
    """

    def __cinit__(self, limit=None):
        self._is_preliminary = limit is None
        self._limit = least_allocation() if limit is None else min(limit, INT64_MAX)

    @property
    def limit(self):
        """Largest number of bytes."""
        cdef int64_t limit
        if self._is_preliminary:
            limit = default_allocation()
            with lock:
                self._limit = max(self._limit, limit)
                self._is_preliminary = False
        return self._limit

    @property
    def taken(self):
        return self._used_bytes

    def check(self, size):
        """Raise AllocationError if ``size`` more bytes would exceed the limit."""
        with self.reserved(size):
            pass

    def hold(self, array):
        """Return a read-only view of an array. The array's bytes count as used until the last view is gone.

        Args:
            array: uint8, shape (n,).

        Raises:
            AllocationError: the bytes exceed the limit.
        """
        cdef Counted owner = Counted.__new__(Counted)
        if not array.shape[0]:
            return array
        self.take(array.shape[0])
        owner.allowance = self
        owner.size = owner.counted_size = array.shape[0]
        owner.room = array
        return counted_array(owner, <void*>&owner.room[0])

    @contextmanager
    def reserved(self, size):
        """Count ``size`` more bytes as used while a with statement runs.

        Raises:
            AllocationError: the bytes exceed the limit.
        """
        self.keep(size)
        try:
            yield
        finally:
            self.give(size)

    def keep(self, size):
        """Count ``size`` more bytes as used, for the rest of the read.

        Raises:
            AllocationError: the bytes exceed the limit.
        """
        if size > INT64_MAX:        # a forged count
            raise self._over(size)
        self.take(size)

    def _over(self, size):
        return AllocationError(f"the values need {size} bytes, more than max_allocation ({self.limit})")

    cdef int64_t try_take(self, int64_t size) noexcept nogil:
        cdef int64_t in_use = -1
        with lock:
            if size <= self._limit - self._used_bytes:
                self._used_bytes += size
            else:
                in_use = self._used_bytes
        return in_use

    cdef int take(self, int64_t size) except -1:
        cdef int64_t in_use = self.try_take(size)
        if in_use >= 0 and size <= self.limit:      # this thread or another one may have raised the limit
            in_use = self.try_take(size)
        if in_use >= 0:
            raise self._over(<object>in_use + size)
        return 0

    cdef void give(self, int64_t size) noexcept nogil:
        with lock:
            self._used_bytes -= size

    cdef object empty(self, int64_t size, uint8_t** data, int64_t room=0):
        cdef Counted owner = Counted.__new__(Counted)
        self.take(size)
        owner.allowance = self
        owner.size = owner.counted_size = size
        owner.block = block_take(<size_t>max(size, room) + 1, &owner.capacity)  # an empty array needs an address too
        if owner.block == NULL and room > size:
            owner.block = block_take(<size_t>size + 1, &owner.capacity)
        if owner.block == NULL:
            raise MemoryError(f"no memory for {size} bytes")
        data[0] = <uint8_t*>owner.block
        return counted_array(owner, owner.block)

    cdef uint8_t* extend(self, Counted owner, int64_t size) noexcept nogil:
        cdef uint8_t* data = <uint8_t*>owner.block + owner.size
        cdef int64_t growth = max(owner.size + size - owner.counted_size, <int64_t>0)
        if <size_t>(owner.size + size) >= owner.capacity or growth and self.try_take(growth) >= 0:
            return NULL
        owner.counted_size += growth
        owner.size += size
        owner.shape[0] = owner.size
        return data

    cdef void shorten(self, Counted owner, int64_t size) noexcept nogil:
        cdef int64_t dropped_size = 0
        owner.size -= size
        owner.shape[0] = owner.size
        if owner.counted_size - owner.size >= SMALLEST_DROPPED:
            dropped_size = <int64_t>block_drop(<uint8_t*>owner.block + owner.size, <size_t>(owner.counted_size - owner.size))
        owner.counted_size -= dropped_size
        self.give(dropped_size)


cdef object counted_array(Counted owner, void* data):
    """Return the owner's bytes, which begin at ``data``, as a read-only array. The array keeps the owner alive."""
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
            self.allowance.give(self.counted_size)
