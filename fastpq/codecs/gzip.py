"""The GZIP codec (RFC 1952), by libdeflate; streams of several members by zlib."""

from __future__ import annotations

import deflate

from fastpq.codecs import framing
from fastpq.codecs.streams import Buffer, Compress, copy


def compressor(level: int) -> Compress:
    """A function from bytes to one gzip member of a level, 1 to 12."""

    def compress(data: Buffer) -> Buffer:
        return deflate.gzip_compress(data, level)

    return compress


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Decompresses any number of gzip members or zlib streams (RFC 1950) to exactly the size of target."""
    plain = _single_member(source, len(target))
    if plain:
        copy(plain, target)
    else:
        framing.inflate_members(memoryview(source), memoryview(target))


def _single_member(source: Buffer, size: int) -> bytes | bytearray:
    """The content of a source of one member of size bytes; empty for any other source.

    libdeflate is fast, but stops after the first member without reporting the end. The member is the whole source if the source
    without its last byte is a broken member.
    """
    if bytes(source[:2]) != framing.GZIP_MAGIC or int.from_bytes(bytes(source[-4:]), "little") != size:
        return b""
    try:
        plain = deflate.gzip_decompress(source, size)
    except deflate.DeflateError:
        return b""  # zlib decides, and raises the error of a broken stream
    try:
        deflate.gzip_decompress(memoryview(source)[:-1], size)
    except deflate.DeflateError:
        return plain if len(plain) == size else b""
    return b""
