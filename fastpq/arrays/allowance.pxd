"""Bytes that the results of a read may take in memory."""

from libc.stdint cimport int64_t, uint8_t


cdef class Allowance:
    cdef readonly int64_t limit
    cdef int64_t _taken
    # Counts bytes; more than the limit are an error, and not counted.
    cdef int take(self, int64_t size) except -1
    cdef void give(self, int64_t size) noexcept
    # A new array of size bytes at data, counted from before its allocation to the end of its last view.
    cdef object empty(self, int64_t size, uint8_t** data)
