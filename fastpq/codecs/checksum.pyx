# distutils: language = c
"""The page checksum (README.md of parquet-format, "Checksumming")."""

from cpython.buffer cimport PyBUF_READ
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int64_t, uint8_t, uint32_t

cdef extern from "c/crc32.h" nogil:
    bint CRC32_BY_LIBRARY
    uint32_t library_crc32(uint32_t before, const uint8_t* data, size_t size) noexcept


cdef int64_t crc32_of(const uint8_t* data, int64_t size, uint32_t before=0) except -1 nogil:
    if CRC32_BY_LIBRARY:
        return library_crc32(before, data, <size_t>size)
    with gil:
        return crc32_by_package(PyMemoryView_FromMemory(<char*>data, size, PyBUF_READ), before)


def crc32(const uint8_t[::1] data not None, uint32_t before=0):
    """Return a stored page's CRC-32 as an unsigned integer.

    Args:
        data: a contiguous byte buffer.
        before: CRC-32 of the bytes before ``data``.
    """
    cdef uint8_t nothing = 0        # its address is used in place of NULL if the view is empty
    cdef const uint8_t* first = &data[0] if data.shape[0] else &nothing
    cdef int64_t value
    with nogil:
        value = crc32_of(first, data.shape[0], before)
    return value


def crc32_by_package(data, before=0):
    """Return what ``crc32`` returns. The package isal (ISA-L) is three times as fast as zlib, and half as fast as libdeflate."""
    from isal import isal_zlib
    return isal_zlib.crc32(data, before)
