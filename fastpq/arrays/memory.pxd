"""Memory for compiled code, in blocks that are reused."""

from libc.stdint cimport int64_t, uint8_t

# Return a block with at least size bytes, whose contents are undefined, and write its size to capacity. Return NULL if there is
# not enough memory.
cdef void* block_take(size_t size, size_t* capacity) noexcept nogil
# Like block_take, but fall back to an idle block up to twice as large.
cdef void* block_reuse(size_t size, size_t* capacity) noexcept nogil
# Take back a block from block_take, with its capacity. NULL is allowed.
cdef void block_give(void* block, size_t capacity) noexcept nogil


cdef class Block:
    cdef void* data
    cdef size_t capacity


cdef class Pieces:
    """Bytes that are appended and handed over in pieces. A piece is a block with copied bytes, or the caller's buffer."""

    cdef list waiting                   # buffers that are not handed over yet
    cdef readonly int64_t size          # number of appended bytes
    cdef object give                    # function that takes lists of buffers, or None: all buffers wait
    cdef int64_t waiting_size           # size of the waiting buffers in bytes
    cdef Block block                    # the block that is not full yet, or None
    cdef uint8_t* end                   # end of the bytes in the block
    cdef size_t room                    # free bytes after the end
    cdef int append(self, const uint8_t* data, size_t size) except -1 nogil
    # Append a buffer with size bytes, without a copy.
    cdef int append_buffer(self, object buffer, int64_t size) except -1
    # Add the last block, which is not full, to the waiting buffers.
    cdef int finish(self) except -1
    # Like finish, but a block with much room is not kept: its bytes are copied. Use it if the pieces wait for long.
    cdef int pause(self) except -1
    cdef int _begin_block(self) except -1
    cdef int _add(self, object buffer, int64_t size) except -1


cdef class GrowingBuffer:
    """A writable buffer whose final size is unknown. The first ``size`` bytes are in use."""

    cdef uint8_t* data
    cdef size_t capacity
    cdef readonly size_t size
    cdef bint has_views
    # Make room for count more bytes after the first size bytes, and return its address. Its contents are undefined.
    cdef uint8_t* room(self, size_t count) except NULL nogil
