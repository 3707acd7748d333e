"""The LZO codec, by python-lzo (the extra ``lzo``): LZO1X in Hadoop's framing (hadoop-lzo), or a bare stream (Apache Drill)."""

from __future__ import annotations

import importlib
from typing import Any

from fastpq.codecs import framing
from fastpq.codecs.streams import Buffer, Compress, broken, mismatch
from fastpq.errors import FormatError, UnsupportedError


def compressor(level: int) -> Compress:
    """A function from bytes to LZO1X blocks of a level, 1 to 9, in Hadoop's framing."""

    def compress(data: Buffer) -> Buffer:
        package = _package()
        return framing.hadoop_compress(memoryview(data), lambda block: package.compress(bytes(block), level, False))

    return compress


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Decompresses blocks in Hadoop's framing, or else a bare stream, to exactly the size of target."""
    try:
        framing.hadoop_decompress(memoryview(source), memoryview(target), _decompress_block)
    except FormatError as framed:
        try:
            written = _decompress_block(memoryview(source), memoryview(target))
        except FormatError:
            raise framed from None
        if written != len(target):
            raise mismatch("lzo", written, target) from None


def _decompress_block(chunk: memoryview, block: memoryview) -> int:
    package = _package()
    try:
        plain = package.decompress(bytes(chunk), False, len(block))
    except package.error as error:
        raise broken("lzo", error) from error
    block[: len(plain)] = plain
    return len(plain)


def _package() -> Any:
    try:
        return importlib.import_module("lzo")
    except ImportError:
        raise UnsupportedError("the LZO codec needs the package python-lzo (pip install python-lzo)") from None
