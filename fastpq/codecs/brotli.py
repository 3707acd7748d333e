"""The BROTLI codec (RFC 7932), by the package brotli."""

from __future__ import annotations

import brotli

from fastpq.codecs.streams import Buffer, Compress, broken, copy, mismatch
from fastpq.errors import FormatError


def compressor(level: int) -> Compress:
    """A function from bytes to one brotli stream of a level, 0 to 11."""

    def compress(data: Buffer) -> Buffer:
        return bytes(brotli.compress(data, quality=level))

    return compress


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Decompresses one stream to exactly the size of target."""
    decompressor = brotli.Decompressor()
    try:
        plain = decompressor.process(source, output_buffer_limit=len(target) + 1)
    except brotli.error as error:
        raise broken("brotli", error) from error
    if len(plain) > len(target):
        raise FormatError(f"brotli stream of more bytes than the {len(target)} that the page header claims")
    if not decompressor.is_finished():
        raise FormatError(f"brotli stream ends early, after {len(plain)} bytes")
    if len(plain) != len(target):
        raise mismatch("brotli", len(plain), target)
    copy(plain, target)
