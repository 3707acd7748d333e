"""CRC-32C (Castagnoli), which the checksums of FILE values may be (RFC 3385)."""

from libc.stdint cimport uint8_t, uint32_t

cdef uint32_t POLYNOMIAL = 0x82F63B78       # reflected
cdef uint32_t[256] TABLE


cdef void _fill_table() noexcept:
    cdef uint32_t byte, _, crc
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
        TABLE[byte] = crc


_fill_table()


def crc32c(const uint8_t[::1] data not None):
    """The CRC-32C of some bytes.

    Args:
        data: anything with the buffer protocol.
    """
    cdef uint32_t crc = 0xFFFFFFFFU
    cdef Py_ssize_t i, size = len(data)
    with nogil:
        for i in range(size):
            crc = crc >> 8 ^ TABLE[(crc ^ data[i]) & 0xFF]
    return crc ^ 0xFFFFFFFFU
