"""ZSTD (RFC 8878), by zstandard, and by cramjam where there are several frames."""

from __future__ import annotations

import threading
from functools import cached_property

import cramjam
import zstandard

from fastpq.codecs.codec import Buffer, Compress, broken, copy, mismatch


class _ThreadContexts(threading.local):
    """Contexts of a thread: expensive to make, and not thread-safe."""

    def __init__(self) -> None:
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}

    @cached_property
    def decompressor(self) -> zstandard.ZstdDecompressor:
        return zstandard.ZstdDecompressor()


_contexts = _ThreadContexts()


def compressor(level: int) -> Compress:
    """One frame."""

    def compress(data: Buffer) -> Buffer:
        context = _contexts.compressors.get(level)
        if context is None:
            context = _contexts.compressors[level] = zstandard.ZstdCompressor(level=level)
        return context.compress(data)

    return compress


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Decompresses any number of frames, together as long as target."""
    plain = _single_frame(source, len(target))
    if plain:
        copy(plain, target)
        return
    # No context is kept here, which costs ten microseconds, but any number of frames is read, and no byte is left over.
    try:
        written = cramjam.zstd.decompress_into(source, target)
    except cramjam.DecompressionError as error:
        raise broken("zstd", error) from error
    if written != len(target):
        raise mismatch("zstd", written, target)


def _single_frame(source: Buffer, size: int) -> bytes:
    """The content where source is one frame of size bytes, as nearly every writer makes it; otherwise nothing."""
    try:
        # zstandard allocates what a frame states, hence a look at it first; -1 is a frame that states nothing.
        if zstandard.frame_content_size(source) not in (size, -1):
            return b""
        plain = _contexts.decompressor.decompress(source, max_output_size=size, allow_extra_data=False)
    except zstandard.ZstdError:
        return b""  # the streaming decoder has the last word on it
    return plain if len(plain) == size else b""
