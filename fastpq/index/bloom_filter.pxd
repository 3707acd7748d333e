"""Split-block Bloom filters, as compiled writers fill them."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from fastpq.encodings.views cimport Slice


cdef class SplitBlockBloomFilter:
    cdef readonly object bitset         # uint8 array of num_bytes
    cdef uint8_t* bits
    cdef uint64_t blocks
    # Values of width bytes as PLAIN stores them; slices without their lengths, those with data NULL are nulls. The caller
    # knows that the filter is one to write to.
    cdef void insert_fixed(self, const uint8_t* values, size_t width, int64_t count) noexcept nogil
    cdef void insert_slices(self, const Slice* values, int64_t count) noexcept nogil
    cdef int _check_writable(self) except -1
