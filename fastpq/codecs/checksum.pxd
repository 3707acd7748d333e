"""The checksum of a page."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

# CRC-32 of a page as stored, in its 32 low bits. Without libdeflate, the package isal is called under the GIL.
#   before: CRC-32 of the bytes in front of data
cdef int64_t crc32_of(const uint8_t* data, int64_t size, uint32_t before=*) except -1 nogil
