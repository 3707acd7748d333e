"""GZIP (RFC 1952), by libdeflate, and by zlib where there are several members."""

from __future__ import annotations

import deflate

from fastpq.codecs import framing
from fastpq.codecs.codec import Buffer, Compress, copy


def compressor(level: int) -> Compress:
    """One member, of level 1 to 12."""

    def compress(data: Buffer) -> Buffer:
        return deflate.gzip_compress(data, level)

    return compress


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Decompresses any number of members, together as long as target; zlib streams (RFC 1950) too."""
    plain = _single_member(source, len(target))
    if plain:
        copy(plain, target)
    else:
        framing.inflate_members(memoryview(source), memoryview(target))


def _single_member(source: Buffer, size: int) -> bytes | bytearray:
    """The content where source is one member of size bytes; otherwise nothing.

    libdeflate is the fastest, but stops after the first member without saying where. The length in the last
    trailer (ISIZE) tells whether the first is all; a second member of the same length goes unnoticed.
    """
    if bytes(source[:2]) != framing.GZIP_MAGIC or int.from_bytes(bytes(source[-4:]), "little") != size:
        return b""
    try:
        plain = deflate.gzip_decompress(source, size)
    except deflate.DeflateError:
        return b""  # zlib has the last word on it
    return plain if len(plain) == size else b""
