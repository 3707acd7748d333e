"""ULEB128, the variable-length integers of the compact protocol, of Snappy and of Parquet's encodings."""

from __future__ import annotations


def varint(value: int) -> bytes:
    """An unsigned number, seven bits a byte, the lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
