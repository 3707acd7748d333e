"""The SNAPPY codec, by cramjam: its Rust implementation decompresses faster than the C++ one, and straight into the target."""

from __future__ import annotations

import cramjam

from fastpq.codecs.streams import Buffer, Compress, broken, mismatch


def compressor(level: int) -> Compress:
    """A function from bytes to one stream of Snappy's raw format; the level is ignored, Snappy has none."""
    return _compress


def _compress(data: Buffer) -> Buffer:
    return memoryview(cramjam.snappy.compress_raw(data))


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Decompresses one raw stream to exactly the size of target."""
    try:
        size = cramjam.snappy.decompress_raw_into(source, target)
    except cramjam.DecompressionError as error:
        raise broken("snappy", error) from error
    if size != len(target):
        raise mismatch("snappy", size, target)
