"""The ZSTD codec (RFC 8878), by zstandard; streams of several frames by cramjam."""

from __future__ import annotations

import threading
from functools import cached_property

import cramjam
import zstandard

from fastpq.codecs.streams import Buffer, Compress, broken, copy, mismatch


class _ThreadContexts(threading.local):
    """The zstandard contexts of a thread, kept because a context is expensive to make and not thread-safe."""

    def __init__(self) -> None:
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}

    @cached_property
    def decompressor(self) -> zstandard.ZstdDecompressor:
        return zstandard.ZstdDecompressor()


_contexts = _ThreadContexts()


def compressor(level: int) -> Compress:
    """A function from bytes to one zstd frame of a level."""

    def compress(data: Buffer) -> Buffer:
        context = _contexts.compressors.get(level)
        if context is None:
            context = _contexts.compressors[level] = zstandard.ZstdCompressor(level=level)
        return context.compress(data)

    return compress


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Decompresses any number of frames to exactly the size of target."""
    plain = _single_frame(source, len(target))
    if plain:
        copy(plain, target)
        return
    # cramjam reads any number of frames and refuses trailing bytes, but makes a new context each time (ten microseconds).
    try:
        written = cramjam.zstd.decompress_into(source, target)
    except cramjam.DecompressionError as error:
        raise broken("zstd", error) from error
    if written != len(target):
        raise mismatch("zstd", written, target)


def _single_frame(source: Buffer, size: int) -> bytes:
    """The content of a source of one frame of size bytes, the output of nearly every writer; empty for any other source."""
    try:
        # zstandard allocates the content size stated by the frame, hence this check first; -1 is a frame without a stated size.
        if zstandard.frame_content_size(source) not in (size, -1):
            return b""
        plain = _contexts.decompressor.decompress(source, max_output_size=size, allow_extra_data=False)
    except zstandard.ZstdError:
        return b""  # cramjam decides, and raises the error of a broken stream
    return plain if len(plain) == size else b""
