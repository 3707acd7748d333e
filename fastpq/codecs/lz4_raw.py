"""LZ4_RAW: one LZ4 block."""

from __future__ import annotations

from typing import Any

import cramjam
from lz4 import block

from fastpq.codecs.codec import Buffer, Compress, broken, mismatch


def compressor(level: int) -> Compress:
    """One block. From level 3 on in high-compression mode, as in pyarrow, which cramjam does not have."""
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
    """Decompresses one block, as long as target."""
    written = decompress_block(source, target)
    if written != len(target):
        raise mismatch("lz4", written, target)
