"""The deprecated LZ4 codec in three dialects: Hadoop's framing (parquet-java), an LZ4 frame, a raw block (old parquet-cpp)."""

from __future__ import annotations

import cramjam

from fastpq.codecs import framing, lz4_raw
from fastpq.codecs.streams import Buffer, Compress, broken, mismatch
from fastpq.errors import FormatError

FRAME_MAGIC = b"\x04\x22\x4d\x18"


def compressor(level: int) -> Compress:
    """A function from bytes to LZ4 blocks of a level, 1 to 12, in Hadoop's framing."""
    block = lz4_raw.compressor(level)

    def compress(data: Buffer) -> Buffer:
        return framing.hadoop_compress(memoryview(data), block)

    return compress


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Decompresses the first exactly fitting dialect to target.

    A dialect fits when its own lengths match the sizes of source and target to the byte; no stream fits two dialects.
    """
    dialects = [_hadoop_into, lz4_raw.decompress_into]
    if bytes(source[:4]) == FRAME_MAGIC:
        dialects.insert(0, _frame_into)
    reasons = []
    for dialect in dialects:
        try:
            return dialect(source, target)
        except FormatError as error:
            reasons.append(error)
    raise reasons[0]


def _hadoop_into(source: Buffer, target: Buffer) -> None:
    framing.hadoop_decompress(memoryview(source), memoryview(target), lz4_raw.decompress_block)


def _frame_into(source: Buffer, target: Buffer) -> None:
    try:
        written = cramjam.lz4.decompress_into(source, target)
    except cramjam.DecompressionError as error:
        raise broken("lz4", error) from error
    if written != len(target):
        raise mismatch("lz4", written, target)
