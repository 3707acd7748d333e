"""Bytes that the results of a read may take in memory."""

from libc.stdint cimport int64_t, uint8_t
cimport numpy as cnp


cdef class Allowance:
    cdef readonly int64_t limit
    cdef int64_t _taken
    # Counts bytes; more than the limit are an error, and not counted.
    cdef int take(self, int64_t size) except -1
    # As take; returns -1, or where the bytes are not counted, the bytes in use.
    cdef int64_t try_take(self, int64_t size) noexcept nogil
    cdef void give(self, int64_t size) noexcept nogil
    # A new array of size bytes at data, counted from before its allocation to the end of its last view; its memory has room bytes
    # for extend.
    cdef object empty(self, int64_t size, uint8_t** data, int64_t room=*)
    # The next size bytes of the memory of an array of empty, which nobody views yet: the array is lengthened by them, and they
    # are counted. NULL where the memory ends before, or over the limit.
    cdef uint8_t* extend(self, Counted owner, int64_t size) noexcept nogil
    # Shortens such an array by its last size bytes: extend gives their memory again. They are counted as long as the array, but
    # for many of them, whose memory goes back to the operating system.
    cdef void shorten(self, Counted owner, int64_t size) noexcept nogil


# The owner of counted bytes, a block of its own or another array's; gives both back with the last array to view them.
cdef class Counted:
    cdef Allowance allowance
    cdef int64_t size
    cdef int64_t touched            # the greatest size so far: the bytes that are counted
    cdef void* block
    cdef size_t capacity
    cdef cnp.npy_intp* shape        # of the array made first, while it lives
    cdef const uint8_t[::1] room
