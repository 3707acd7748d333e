"""The checksum of a page."""

from __future__ import annotations

from isal import isal_zlib

from fastpq.codecs.codec import Buffer


def crc32(data: Buffer) -> int:
    """CRC-32 of a page (README.md, "Checksumming"), as an unsigned integer.

    ISA-L's is three times as fast as zlib's; libdeflate's is twice as fast again, but holds the GIL, so that threads
    would queue for it. To measure: ``python -m timeit -s "from isal import isal_zlib as m; d = bytes(1 << 20)"
    "m.crc32(d)"``, and so with ``zlib`` and ``deflate``.
    """
    return int(isal_zlib.crc32(data))
