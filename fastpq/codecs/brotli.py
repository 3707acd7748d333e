"""The BROTLI codec (RFC 7932). It calls the package brotli."""

from __future__ import annotations

import brotli

from fastpq.codecs.streams import Buffer, Compress, broken, check_size, copy
from fastpq.errors import FormatError


def compressor(level: int) -> Compress:
    """Return a function that compresses bytes to one brotli stream. Levels go from 0 to 11."""
    return lambda data: bytes(brotli.compress(data, quality=level))


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Decompress one stream. It must fill ``target`` exactly."""
    decompressor = brotli.Decompressor()
    try:
        plain = decompressor.process(source, output_buffer_limit=len(target) + 1)
    except brotli.error as error:
        raise broken("brotli", error) from error
    if len(plain) > len(target):
        raise FormatError(f"a brotli stream has more bytes than the {len(target)} that the page header claims")
    if not decompressor.is_finished():
        raise FormatError(f"a brotli stream ends early, after {len(plain)} bytes")
    check_size("brotli", len(plain), target)
    copy(plain, target)
