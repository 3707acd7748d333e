"""Growing memory for one thread: what a page needs for a moment."""

from libc.stdint cimport uint8_t
from libc.stdlib cimport free, malloc


cdef struct Scratch:
    uint8_t* data
    size_t size


cdef inline uint8_t* scratch_reserve(Scratch* scratch, size_t size) except NULL nogil:
    # At least size bytes, contents undefined. Some slack stays behind the end, so that kernels may store whole words.
    cdef size_t wanted = size + 64
    if scratch.size < wanted:
        free(scratch.data)
        wanted += wanted >> 2
        scratch.data = <uint8_t*>malloc(wanted)
        scratch.size = wanted if scratch.data != NULL else 0
        if scratch.data == NULL:
            with gil:
                raise MemoryError()
    return scratch.data


cdef inline void scratch_free(Scratch* scratch) noexcept nogil:
    free(scratch.data)
    scratch.data = NULL
    scratch.size = 0
