"""The encodings in a few lines of Python each, straight from Encodings.md: what the kernels are compared with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


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


def zigzag(data: bytes, position: int) -> tuple[int, int]:
    value, position = varint(data, position)
    return (value >> 1) ^ -(value & 1), position


def delta(data: bytes, bits: int, position: int = 0) -> tuple[list[int], int]:
    """A DELTA_BINARY_PACKED stream of integers of so many bits, and where it ends."""
    block, position = varint(data, position)
    miniblocks, position = varint(data, position)
    count, position = varint(data, position)
    first, position = zigzag(data, position)
    values = [first] if count else []
    while len(values) < count:
        least, position = zigzag(data, position)
        widths = data[position : position + miniblocks]
        position += miniblocks
        for width in widths:
            if len(values) >= count:
                break       # neither width nor bytes of a miniblock that is not needed count
            size = block // miniblocks * width // 8
            for packed in unpack(data[position : position + size], width, block // miniblocks):
                values.append(values[-1] + least + packed)
            position += size
    return [wrap(value, bits) for value in values[:count]], position


def wrap(value: int, bits: int) -> int:
    """Two's complement."""
    return (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def delta_lengths(data: bytes, position: int = 0) -> list[bytes]:
    """DELTA_LENGTH_BYTE_ARRAY values."""
    lengths, position = delta(data, 32, position)
    values = []
    for length in lengths:
        values.append(data[position : position + length])
        position += length
    return values


def delta_strings(data: bytes, previous: bytes = b"") -> list[bytes]:
    """DELTA_BYTE_ARRAY values."""
    prefixes, position = delta(data, 32)
    values = [previous]
    for prefix, suffix in zip(prefixes, delta_lengths(data, position), strict=True):
        values.append(values[-1][:prefix] + suffix)
    return values[1:]


def byte_stream_split(data: bytes, width: int) -> list[bytes]:
    count = len(data) // width
    return [bytes(data[k * count + i] for k in range(width)) for i in range(count)]


def alp(data: bytes, width: int) -> list[bytes]:
    """An ALP page of values of 4 or 8 bytes."""
    number = np.float32 if width == 4 else np.float64
    size = 1 << data[2]
    count = int.from_bytes(data[3:7], "little")
    body = data[7:]
    values: list[bytes] = []
    for start in range(0, count, size):
        some = min(size, count - start)
        vector = body[int.from_bytes(body[start // size * 4 :][:4], "little") :]
        exponent, factor, exceptions = vector[0], vector[1], int.from_bytes(vector[2:4], "little")
        base = int.from_bytes(vector[4 : 4 + width], "little", signed=True)
        bits = vector[4 + width]
        packed = vector[5 + width :]
        positions = packed[(some * bits + 7) // 8 :]
        originals = positions[2 * exceptions :]
        ten, tenth = number(f"1e{factor}"), number(f"1e-{exponent}")
        half = 1 << 8 * width - 1
        integers = [(base + delta + half) % (2 * half) - half for delta in unpack(packed, bits, some)]
        decoded = [(number(integer) * ten * tenth).tobytes() for integer in integers]
        for i in range(exceptions):
            decoded[int.from_bytes(positions[2 * i : 2 * i + 2], "little")] = originals[i * width : (i + 1) * width]
        values += decoded
    return values
