"""The GZIP codec (RFC 1952). It calls the package deflate, and zlib for streams that have several members."""

from __future__ import annotations

import deflate

from fastpq.codecs import framing
from fastpq.codecs.streams import Buffer, Compress, copy


def compressor(level: int) -> Compress:
    """Return a function that compresses bytes to one gzip member. Levels go from 1 to 12."""
    return lambda data: deflate.gzip_compress(data, level)


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Decompress any number of gzip members or zlib streams (RFC 1950). They must fill ``target`` exactly."""
    plain = _single_member(source, len(target))
    if plain:
        copy(plain, target)
    else:
        framing.inflate_members(memoryview(source), memoryview(target))


def _single_member(source: Buffer, size: int) -> bytes | bytearray:
    """Return the content if the source is one member that holds ``size`` bytes. Return nothing for any other source.

    libdeflate is fast, but it stops after the first member and does not report where that ends. The member fills the source if
    the source without its last byte is a broken member.
    """
    if bytes(source[:2]) != framing.GZIP_MAGIC or int.from_bytes(bytes(source[-4:]), "little") != size:
        return b""
    try:
        plain = deflate.gzip_decompress(source, size)
    except deflate.DeflateError:
        return b""  # zlib decides, and raises the error for a broken stream
    try:
        deflate.gzip_decompress(memoryview(source)[:-1], size)
    except deflate.DeflateError:
        return plain if len(plain) == size else b""
    return b""
