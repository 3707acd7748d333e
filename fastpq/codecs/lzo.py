"""The LZO codec, by python-lzo (the extra ``lzo``): LZO1X in Hadoop's framing, the format of hadoop-lzo."""

from __future__ import annotations

import importlib
from typing import Any

from fastpq.codecs import framing
from fastpq.codecs.codec import Buffer, Compress, broken
from fastpq.errors import UnsupportedError


def compressor(level: int) -> Compress:
    """A function from bytes to LZO1X blocks of a level, 1 to 9, in Hadoop's framing."""

    def compress(data: Buffer) -> Buffer:
        package = _package()
        return framing.hadoop_compress(memoryview(data), lambda block: package.compress(bytes(block), level, False))

    return compress


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Decompresses blocks in Hadoop's framing to exactly the size of target."""
    package = _package()

    def decompress(chunk: memoryview, block: memoryview) -> int:
        try:
            plain = package.decompress(bytes(chunk), False, len(block))
        except package.error as error:
            raise broken("lzo", error) from error
        block[: len(plain)] = plain
        return len(plain)

    framing.hadoop_decompress(memoryview(source), memoryview(target), decompress)


def _package() -> Any:
    try:
        return importlib.import_module("lzo")
    except ImportError:
        raise UnsupportedError("the LZO codec needs the package python-lzo (pip install fastpq[lzo])") from None
