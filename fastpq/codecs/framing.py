"""Framings of compressed data: series of gzip members (RFC 1952), and the blocks and chunks of Hadoop's codecs."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

from fastpq.errors import FormatError

# Uncompressed bytes of a block, as cut by Hadoop's block codecs.
HADOOP_BLOCK_SIZE = 256 * 1024
GZIP_MAGIC = b"\x1f\x8b"

# Bytes given to zlib at a time: zlib copies all input behind the end of a member, once for each of many members.
_INFLATE_CHUNK = 16 * 1024
_LENGTH = struct.Struct(">I")


def inflate_members(source: memoryview, target: memoryview) -> None:
    """Decompress any number of gzip members or zlib streams (RFC 1950); some writers store zlib streams under GZIP.

    Args:
        source: one or more members, and nothing else.
        target: filled to the last byte.

    Raises:
        FormatError: the members are broken or hold more or fewer bytes than target.
    """
    filled = position = 0
    while True:
        inflate: Any = zlib.decompressobj(_window_bits(source[position : position + 2]))
        while not inflate.eof:
            chunk = source[position : position + _INFLATE_CHUNK]
            if not chunk:
                raise FormatError("broken gzip stream: it ends within a member")
            try:
                plain = inflate.decompress(chunk, len(target) - filled + 1)
            except zlib.error as error:
                raise FormatError(f"broken gzip stream: {error}") from error
            if len(plain) > len(target) - filled:
                raise FormatError(f"gzip stream of more than the {len(target)} bytes that the page header claims")
            target[filled : filled + len(plain)] = plain
            filled += len(plain)
            position += len(chunk) - len(inflate.unused_data)
        if position == len(source):
            break
    if filled != len(target):
        raise FormatError(f"gzip stream of {filled} bytes, the page header claims {len(target)}")


def _window_bits(magic: memoryview) -> int:
    """The wbits argument of zlib for a stream with these first two bytes: gzip or zlib."""
    if magic == GZIP_MAGIC:
        return 16 + zlib.MAX_WBITS
    if len(magic) == 2 and magic[0] & 0x0F == 8 and (magic[0] << 8 | magic[1]) % 31 == 0:
        return zlib.MAX_WBITS
    raise FormatError(f"broken gzip stream: {magic.hex() or 'nothing'} where the header of a member should be")


def hadoop_decompress(source: memoryview, target: memoryview, block: Callable[[memoryview, memoryview], int]) -> None:
    """Decompress the format of Hadoop's BlockCompressorStream.

    A block is the length of its uncompressed bytes and any number of chunks. A chunk is the length of its compressed bytes
    and these bytes. Lengths are 32 bits, big-endian. A last block of no bytes stands alone or has an empty chunk.

    Args:
        source: the framed blocks, and nothing else.
        target: filled to the last byte.
        block: decompresses its first argument, a chunk, to the front of its second; returns the number of bytes written.

    Raises:
        FormatError: the lengths contradict each other or the sizes of source and target; errors of block pass through.
    """
    position = filled = 0
    while position < len(source):
        block_size = _length(source, position)
        position += 4
        if block_size > len(target) - filled:
            raise FormatError(f"Hadoop block of {block_size} bytes where the page has {len(target) - filled} left")
        end = filled + block_size
        while filled < end or (block_size == 0 and position < len(source)):
            chunk_size = _length(source, position)
            position += 4
            if chunk_size == 0 or chunk_size > len(source) - position:
                raise FormatError(f"Hadoop chunk of {chunk_size} bytes where {len(source) - position} are left")
            written = block(source[position : position + chunk_size], target[filled:end])
            if written == 0 and block_size:
                raise FormatError("Hadoop chunk without content")
            position += chunk_size
            filled += written
    if filled != len(target):
        raise FormatError(f"Hadoop blocks of {filled} bytes, the page header claims {len(target)}")


def _length(source: memoryview, position: int) -> int:
    if len(source) - position < 4:
        raise FormatError("Hadoop framing ends within a length")
    return int(_LENGTH.unpack_from(source, position)[0])


def hadoop_compress(data: memoryview, block: Callable[[memoryview], bytes | bytearray | memoryview]) -> bytes:
    """Compress data in the format of Hadoop's BlockCompressorStream, with one chunk in each block.

    Args:
        data: the bytes to compress.
        block: compresses at most HADOOP_BLOCK_SIZE bytes.
    """
    framed = bytearray()
    for start in range(0, len(data), HADOOP_BLOCK_SIZE):
        plain = data[start : start + HADOOP_BLOCK_SIZE]
        chunk = block(plain)
        framed += _LENGTH.pack(len(plain)) + _LENGTH.pack(len(chunk))
        framed += chunk
    return bytes(framed or _LENGTH.pack(0))
