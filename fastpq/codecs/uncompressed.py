"""The UNCOMPRESSED codec: bytes without change."""

from __future__ import annotations

from fastpq.codecs.streams import Buffer, Compress, copy, mismatch


def compressor(level: int) -> Compress:
    """A function from bytes to the same bytes; the level is ignored."""
    return _same


def _same(data: Buffer) -> Buffer:
    return data


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Copies source to target, of equal size."""
    if len(source) != len(target):
        raise mismatch("uncompressed", len(source), target)
    copy(source, target)
