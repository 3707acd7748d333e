"""Growing memory for one thread, reused page by page."""

from libc.stdint cimport uint8_t

from fastpq.arrays.memory cimport block_give, block_reuse


cdef struct Scratch:
    uint8_t* data
    size_t size


cdef inline uint8_t* scratch_reserve(Scratch* scratch, size_t size) except NULL nogil:
    # At least size bytes, contents undefined. Kernels may store whole words past the end, into the slack.
    cdef size_t wanted = size + 64
    if scratch.size < wanted:
        block_give(scratch.data, scratch.size)
        scratch.size = 0
        scratch.data = <uint8_t*>block_reuse(wanted + (wanted >> 2), &scratch.size)
        if scratch.data == NULL:
            scratch.size = 0
            with gil:
                raise MemoryError()
    return scratch.data


cdef inline void scratch_free(Scratch* scratch) noexcept nogil:
    block_give(scratch.data, scratch.size)
    scratch.data = NULL
    scratch.size = 0
