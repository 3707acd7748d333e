"""The ZSTD codec (RFC 8878). It calls the package zstandard, and cramjam for streams that have several frames."""

from __future__ import annotations

import threading
from functools import cached_property

import cramjam
import zstandard

from fastpq.codecs.streams import Buffer, Compress, broken, check_size, copy


class _ThreadContexts(threading.local):
    """A thread's zstandard contexts. They are kept, because a context takes long to make and serves only one thread."""

    def __init__(self) -> None:
        self.compressors: dict[int, zstandard.ZstdCompressor] = {}

    @cached_property
    def decompressor(self) -> zstandard.ZstdDecompressor:
        return zstandard.ZstdDecompressor()


_contexts = _ThreadContexts()


def compressor(level: int) -> Compress:
    """Return a function that compresses bytes to one zstd frame."""

    def compress(data: Buffer) -> Buffer:
        context = _contexts.compressors.get(level)
        if context is None:
            context = _contexts.compressors[level] = zstandard.ZstdCompressor(level=level)
        return context.compress(data)

    return compress


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Decompress any number of frames. They must fill ``target`` exactly."""
    plain = _single_frame(source, len(target))
    if plain:
        copy(plain, target)
        return
    # cramjam reads any number of frames and refuses trailing bytes, but makes a new context each time (ten microseconds)
    try:
        size = cramjam.zstd.decompress_into(source, target)
    except cramjam.DecompressionError as error:
        raise broken("zstd", error) from error
    check_size("zstd", size, target)


def _single_frame(source: Buffer, size: int) -> bytes:
    """Return the content if the source is one frame that holds ``size`` bytes. Return nothing for any other source.

    Most writers make such a source.
    """
    try:
        # zstandard allocates the size that the frame states, so that is checked first. -1 means that it states none.
        if zstandard.frame_content_size(source) not in (size, -1):
            return b""
        plain = _contexts.decompressor.decompress(source, max_output_size=size, allow_extra_data=False)
    except zstandard.ZstdError:
        return b""  # cramjam decides, and raises the error for a broken stream
    return plain if len(plain) == size else b""
