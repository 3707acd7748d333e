"""UNCOMPRESSED: bytes as they are."""

from __future__ import annotations

from fastpq.codecs.codec import Buffer, Compress, copy, mismatch


def compressor(level: int) -> Compress:
    """Returns the bytes themselves; there are no levels."""
    return _same


def _same(data: Buffer) -> Buffer:
    return data


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Copies source, which has the size of target."""
    if len(source) != len(target):
        raise mismatch("uncompressed", len(source), target)
    copy(source, target)
