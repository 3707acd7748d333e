"""The LZO codec. It calls the package python-lzo (the extra ``lzo``).

Pages are LZO1X blocks in Hadoop's framing (hadoop-lzo), or one bare stream (Apache Drill).
"""

from __future__ import annotations

import importlib
from typing import Any

from fastpq.codecs import framing
from fastpq.codecs.streams import Buffer, Compress, broken, check_size
from fastpq.errors import FormatError, UnsupportedError


def compressor(level: int) -> Compress:
    """Return a function that compresses bytes to LZO1X blocks in Hadoop's framing. Levels go from 1 to 9."""

    def compress(data: Buffer) -> Buffer:
        package = _package()
        return framing.hadoop_compress(memoryview(data), lambda block: package.compress(bytes(block), level, False))

    return compress


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Decompress blocks in Hadoop's framing, or a bare stream if that fails. Either must fill ``target`` exactly."""
    try:
        framing.hadoop_decompress(memoryview(source), memoryview(target), _decompress_block)
    except FormatError as framing_error:
        try:
            size = _decompress_block(memoryview(source), memoryview(target))
        except FormatError:
            raise framing_error from None
        check_size("lzo", size, target)


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
