"""SNAPPY, by cramjam: its Rust implementation decompresses faster than the C++ one, and straight into the target."""

from __future__ import annotations

import cramjam

from fastpq.codecs.codec import Buffer, Compress, broken, mismatch


def compressor(level: int) -> Compress:
    """Snappy's raw format; there are no levels."""
    return _compress


def _compress(data: Buffer) -> Buffer:
    return memoryview(cramjam.snappy.compress_raw(data))


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Decompresses one raw stream, as long as target."""
    try:
        size = cramjam.snappy.decompress_raw_into(source, target)
    except cramjam.DecompressionError as error:
        raise broken("snappy", error) from error
    if size != len(target):
        raise mismatch("snappy", size, target)
