"""The deprecated LZ4 codec. Its dialects are Hadoop's framing (parquet-java), LZ4 frames, and a raw block (old parquet-cpp)."""

from __future__ import annotations

import cramjam

from fastpq.codecs import framing, lz4_raw
from fastpq.codecs.streams import Buffer, Compress, broken, check_size
from fastpq.errors import FormatError

FRAME_MAGIC = b"\x04\x22\x4d\x18"


def compressor(level: int) -> Compress:
    """Return a function that compresses bytes to LZ4 blocks in Hadoop's framing. Levels go from 1 to 12."""
    block = lz4_raw.compressor(level)
    return lambda data: framing.hadoop_compress(memoryview(data), block)


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Decompress the dialect that fits the source and the target.

    A dialect fits if its own lengths match both sizes to the byte. No stream fits two dialects.
    """
    dialects = [_hadoop_into, lz4_raw.decompress_into]
    if bytes(source[:4]) == FRAME_MAGIC:
        dialects.insert(0, _frame_into)
    errors = []
    for dialect in dialects:
        try:
            return dialect(source, target)
        except FormatError as error:
            errors.append(error)
    raise errors[0]


def _hadoop_into(source: Buffer, target: Buffer) -> None:
    framing.hadoop_decompress(memoryview(source), memoryview(target), lz4_raw.decompress_block)


def _frame_into(source: Buffer, target: Buffer) -> None:
    try:
        size = cramjam.lz4.decompress_into(source, target)
    except cramjam.DecompressionError as error:
        raise broken("lz4", error) from error
    check_size("lz4", size, target)
