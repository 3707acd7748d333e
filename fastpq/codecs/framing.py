"""Framings around compressed data: consecutive gzip members (RFC 1952), and the blocks and chunks that Hadoop's codecs write."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

from fastpq.errors import FormatError

# Uncompressed size in bytes of a block that Hadoop's block codecs write.
HADOOP_BLOCK_SIZE = 256 * 1024
GZIP_MAGIC = b"\x1f\x8b"

# Number of bytes that zlib gets at a time. zlib copies all input after a member's end, which would be slow with many members.
_INFLATE_CHUNK = 16 * 1024
_LENGTH = struct.Struct(">I")


def inflate_members(source: memoryview, target: memoryview) -> None:
    """Decompress any number of gzip members or zlib streams (RFC 1950). Some writers store zlib streams under GZIP.

    Args:
        source: one or more members, and nothing else.
        target: filled to the last byte.

    Raises:
        FormatError: the members are broken, or hold more or fewer bytes than ``target``.
    """
    num_written = position = 0
    while True:
        inflate: Any = zlib.decompressobj(_window_bits(source[position : position + 2]))
        while not inflate.eof:
            chunk = source[position : position + _INFLATE_CHUNK]
            if not chunk:
                raise FormatError("broken gzip stream: it ends within a member")
            try:
                plain = inflate.decompress(chunk, len(target) - num_written + 1)
            except zlib.error as error:
                raise FormatError(f"broken gzip stream: {error}") from error
            if len(plain) > len(target) - num_written:
                raise FormatError(f"a gzip stream has more than the {len(target)} bytes that the page header claims")
            target[num_written : num_written + len(plain)] = plain
            num_written += len(plain)
            position += len(chunk) - len(inflate.unused_data)
        if position == len(source):
            break
    if num_written != len(target):
        raise FormatError(f"a gzip stream has {num_written} bytes, and the page header claims {len(target)}")


def _window_bits(magic: memoryview) -> int:
    """Return zlib's ``wbits`` argument for a gzip or zlib stream that begins with these two bytes."""
    if magic == GZIP_MAGIC:
        return 16 + zlib.MAX_WBITS
    if len(magic) == 2 and magic[0] & 0x0F == 8 and (magic[0] << 8 | magic[1]) % 31 == 0:
        return zlib.MAX_WBITS
    raise FormatError(f"broken gzip stream: {magic.hex() or 'nothing'} in place of a member's header")


def hadoop_decompress(source: memoryview, target: memoryview, block: Callable[[memoryview, memoryview], int]) -> None:
    """Decompress the format that Hadoop's BlockCompressorStream writes.

    A block begins with its uncompressed length. Any number of chunks follow. A chunk has its compressed length and the compressed
    bytes. Lengths have 32 bits, big-endian. A last block without bytes stands alone or has an empty chunk.

    Args:
        source: the framed blocks, and nothing else.
        target: filled to the last byte.
        block: decompresses its first argument, a chunk, to the front of its second, and returns how many bytes it wrote. Its
            errors pass through.

    Raises:
        FormatError: the lengths contradict each other, or contradict the sizes of ``source`` and ``target``.
    """
    position = num_written = 0
    while position < len(source):
        block_size = _length(source, position)
        position += 4
        if block_size > len(target) - num_written:
            raise FormatError(f"a Hadoop block has {block_size} bytes, and the page has room for {len(target) - num_written}")
        end = num_written + block_size
        while num_written < end or (block_size == 0 and position < len(source)):
            chunk_size = _length(source, position)
            position += 4
            if chunk_size == 0 or chunk_size > len(source) - position:
                raise FormatError(f"a Hadoop chunk has {chunk_size} bytes, and {len(source) - position} are left")
            block_bytes = block(source[position : position + chunk_size], target[num_written:end])
            if block_bytes == 0 and block_size:
                raise FormatError("a Hadoop chunk is empty")
            position += chunk_size
            num_written += block_bytes
    if num_written != len(target):
        raise FormatError(f"the Hadoop blocks have {num_written} bytes, and the page header claims {len(target)}")


def _length(source: memoryview, position: int) -> int:
    if len(source) - position < 4:
        raise FormatError("the Hadoop framing ends within a length")
    return int(_LENGTH.unpack_from(source, position)[0])


def hadoop_compress(data: memoryview, block: Callable[[memoryview], bytes | bytearray | memoryview]) -> bytes:
    """Compress data in the format that Hadoop's BlockCompressorStream writes, with one chunk in each block.

    Args:
        data: the bytes to compress.
        block: compresses at most HADOOP_BLOCK_SIZE bytes.
    """
    stream = bytearray()
    for start in range(0, len(data), HADOOP_BLOCK_SIZE):
        plain = data[start : start + HADOOP_BLOCK_SIZE]
        chunk = block(plain)
        stream += _LENGTH.pack(len(plain)) + _LENGTH.pack(len(chunk))
        stream += chunk
    return bytes(stream or _LENGTH.pack(0))
