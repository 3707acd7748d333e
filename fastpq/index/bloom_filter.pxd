"""Split-block Bloom filters: the functions that compiled writers call."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from fastpq.encodings.views cimport Slice


cdef class SplitBlockBloomFilter:
    cdef readonly object bitset         # uint8 array of num_bytes
    cdef uint8_t* bits
    cdef uint64_t blocks
    # Both insert values in PLAIN encoding, without lengths. A slice whose data is NULL stands for a null and is skipped. The
    # caller must have called _check_writable.
    cdef void insert_fixed(self, const uint8_t* values, size_t width, int64_t count) noexcept nogil
    cdef void insert_slices(self, const Slice* values, int64_t count) noexcept nogil
    cdef int _check_writable(self) except -1
