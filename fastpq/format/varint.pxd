"""ULEB128: the variable-length integers in the compact protocol, in run headers and in DELTA_BINARY_PACKED (Encodings.md)."""

from libc.stdint cimport uint8_t, uint64_t


cdef inline uint8_t* write_varint(uint8_t* out, uint64_t value) noexcept nogil:
    """Write an integer in at most ten bytes, and return the end of these bytes."""
    while value >= 0x80:
        out[0] = <uint8_t>(value | 0x80)
        out += 1
        value >>= 7
    out[0] = <uint8_t>value
    return out + 1
