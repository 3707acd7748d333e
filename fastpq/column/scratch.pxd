"""Memory that one thread reuses page by page. It grows as needed."""

from libc.stdint cimport uint8_t

from fastpq.arrays.memory cimport block_give, block_reuse


cdef struct Scratch:
    uint8_t* data
    size_t size


cdef inline uint8_t* scratch_reserve(Scratch* scratch, size_t size) except NULL nogil:
    # Return at least size bytes, with undefined contents. 64 bytes are added, because kernels may store whole words past the end.
    cdef size_t least_size = size + 64
    if scratch.size < least_size:
        block_give(scratch.data, scratch.size)
        scratch.size = 0
        scratch.data = <uint8_t*>block_reuse(least_size + (least_size >> 2), &scratch.size)
        if scratch.data == NULL:
            scratch.size = 0
            with gil:
                raise MemoryError()
    return scratch.data


cdef inline void scratch_free(Scratch* scratch) noexcept nogil:
    block_give(scratch.data, scratch.size)
    scratch.data = NULL
    scratch.size = 0
