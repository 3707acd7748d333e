"""ULEB128, the variable-length integers of the compact protocol, of run headers and of DELTA_BINARY_PACKED (Encodings.md)."""

from libc.stdint cimport uint8_t, uint64_t


cdef inline uint8_t* write_varint(uint8_t* out, uint64_t value) noexcept nogil:
    """Write an integer; returns its end, at most ten bytes on."""
    while value >= 0x80:
        out[0] = <uint8_t>(value | 0x80)
        out += 1
        value >>= 7
    out[0] = <uint8_t>value
    return out + 1
