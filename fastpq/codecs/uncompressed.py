"""The UNCOMPRESSED codec, which leaves bytes as they are."""

from __future__ import annotations

from fastpq.codecs.streams import Buffer, Compress, check_size, copy


def compressor(level: int) -> Compress:
    """Return a function that returns its argument unchanged. The level is ignored."""
    return lambda data: data


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Copy ``source`` to ``target``. Both must have the same size."""
    check_size("uncompressed", len(source), target)
    copy(source, target)
