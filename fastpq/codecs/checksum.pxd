"""The checksum of a page."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

# CRC-32 of a page as stored, in its 32 low bits. Without libdeflate, the package isal is called under the GIL.
cdef int64_t crc32_of(const uint8_t* data, int64_t size) except -1 nogil
