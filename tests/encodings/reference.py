"""The encodings in a few lines of Python each, straight from Encodings.md: what the kernels are compared with."""

from __future__ import annotations

from collections.abc import Sequence


def varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def unpack(data: bytes, width: int, count: int) -> list[int]:
    """LSB-first bit-packed values."""
    bits = int.from_bytes(data, "little")
    return [bits >> i * width & (1 << width) - 1 for i in range(count)]


def pack(values: Sequence[int], width: int) -> bytes:
    bits = sum(value << i * width for i, value in enumerate(values))
    return bits.to_bytes((len(values) * width + 7) // 8, "little")


def hybrid(data: bytes, width: int, count: int) -> list[int]:
    """A stream of RLE and bit-packed runs."""
    values: list[int] = []
    position = 0
    while len(values) < count:
        header, position = varint(data, position)
        if header & 1:
            size = (header >> 1) * width
            values += unpack(data[position : position + size], width, (header >> 1) * 8)
        else:
            size = (width + 7) // 8
            values += [int.from_bytes(data[position : position + size], "little")] * (header >> 1)
        position += size
    return values[:count]


def byte_arrays(data: bytes, count: int) -> list[bytes]:
    """PLAIN BYTE_ARRAY values."""
    values = []
    for _ in range(count):
        size = int.from_bytes(data[:4], "little")
        values.append(data[4 : 4 + size])
        data = data[4 + size :]
    return values
