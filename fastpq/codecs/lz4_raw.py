"""The LZ4_RAW codec: one LZ4 block without a frame. It calls the packages lz4 and cramjam."""

from __future__ import annotations

from typing import Any

import cramjam
from lz4 import block

from fastpq.codecs.streams import Buffer, Compress, broken, check_size


def compressor(level: int) -> Compress:
    """Return a function that compresses bytes to one LZ4 block. Levels go from 1 to 12.

    Levels from 3 on use the high-compression mode, as in pyarrow. The package lz4 has this mode, and cramjam does not.
    """
    options: dict[str, Any] = {"mode": "default"}
    if level > 2:
        options = {"mode": "high_compression", "compression": level}
    return lambda data: bytes(block.compress(data, store_size=False, **options))


def decompress_block(source: Buffer, target: Buffer) -> int:
    """Decompress one block to the front of ``target``, and return how many bytes were written."""
    try:
        return int(cramjam.lz4.decompress_block_into(source, target, output_len=len(target)))
    except cramjam.DecompressionError as error:
        raise broken("lz4", error) from error


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Decompress one block. It must fill ``target`` exactly."""
    size = decompress_block(source, target)
    check_size("lz4", size, target)
