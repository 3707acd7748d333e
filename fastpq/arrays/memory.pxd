"""Blocks of memory for compiled code."""

from libc.stdint cimport int64_t, uint8_t

cdef void* block_take(size_t size, size_t* capacity) noexcept nogil
cdef void* block_reuse(size_t size, size_t* capacity) noexcept nogil
cdef void block_give(void* block, size_t capacity) noexcept nogil


cdef class GrowingBuffer:
    """A buffer of writable bytes of unknown final size; the first ``size`` bytes are in use."""

    cdef uint8_t* data
    cdef size_t capacity
    cdef readonly size_t size
    cdef bint viewed
    # Room for count more bytes behind the first size ones; their contents are undefined.
    cdef uint8_t* room(self, size_t count) except NULL nogil
