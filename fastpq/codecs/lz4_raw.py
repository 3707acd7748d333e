"""The LZ4_RAW codec: one LZ4 block, without a frame."""

from __future__ import annotations

from typing import Any

import cramjam
from lz4 import block

from fastpq.codecs.streams import Buffer, Compress, broken, mismatch


def compressor(level: int) -> Compress:
    """A function from bytes to one LZ4 block of a level, 1 to 12.

    Levels from 3 on compress in high-compression mode, as in pyarrow. cramjam lacks this mode, hence the package lz4.
    """
    options: dict[str, Any] = {"mode": "default"}
    if level > 2:
        options = {"mode": "high_compression", "compression": level}

    def compress(data: Buffer) -> Buffer:
        return bytes(block.compress(data, store_size=False, **options))

    return compress


def decompress_block(source: Buffer, target: Buffer) -> int:
    """Decompresses one block to the front of target; returns the bytes written."""
    try:
        return int(cramjam.lz4.decompress_block_into(source, target, output_len=len(target)))
    except cramjam.DecompressionError as error:
        raise broken("lz4", error) from error


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Decompresses one block to exactly the size of target."""
    written = decompress_block(source, target)
    if written != len(target):
        raise mismatch("lz4", written, target)
