"""Blocks of memory for compiled code."""

from libc.stdint cimport int64_t, uint8_t

cdef void* block_take(size_t size, size_t* capacity) noexcept nogil
cdef void* block_reuse(size_t size, size_t* capacity) noexcept nogil
cdef void block_give(void* block, size_t capacity) noexcept nogil


cdef class Block:
    cdef void* data
    cdef size_t capacity


cdef class Pieces:
    """Bytes one behind the other, in pieces for a file: blocks of equal size with copies of the bytes, or buffers of others."""

    cdef list waiting                   # buffers not handed over
    cdef readonly int64_t size          # bytes appended
    cdef object give                    # taker of lists of buffers; None: all wait
    cdef int64_t waiting_size           # bytes of the buffers
    cdef Block block                    # the block not full; None without
    cdef uint8_t* end                   # of the bytes in the block
    cdef size_t room                    # bytes free behind the end
    cdef int append(self, const uint8_t* data, size_t size) except -1 nogil
    # Appends a buffer of size bytes, which is kept.
    cdef int append_buffer(self, object buffer, int64_t size) except -1
    # Lets the bytes of the last block wait, too.
    cdef int finish(self) except -1
    cdef int _begin_block(self) except -1
    cdef int _add(self, object buffer, int64_t size) except -1


cdef class GrowingBuffer:
    """A buffer of writable bytes of unknown final size; the first ``size`` bytes are in use."""

    cdef uint8_t* data
    cdef size_t capacity
    cdef readonly size_t size
    cdef bint viewed
    # Room for count more bytes behind the first size ones; their contents are undefined.
    cdef uint8_t* room(self, size_t count) except NULL nogil
