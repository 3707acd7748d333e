"""The page checksum."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

# Returns a stored page's CRC-32 in the low 32 bits. Without libdeflate it takes the GIL and calls the package isal.
#   before: CRC-32 of the bytes before data
cdef int64_t crc32_of(const uint8_t* data, int64_t size, uint32_t before=*) except -1 nogil
