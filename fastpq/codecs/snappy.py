"""The SNAPPY codec. It calls the packages python-snappy and cramjam. python-snappy itself is written over cramjam.

python-snappy compresses. cramjam decompresses straight into the target, in 0.51 ms for one MiB. python-snappy would make a new
object, and this and the copy would take 0.06 ms more.
"""

from __future__ import annotations

import cramjam
import snappy

from fastpq.codecs.streams import Buffer, Compress, broken, check_size


def compressor(level: int) -> Compress:
    """Return a function that compresses bytes to one stream in Snappy's raw format. Snappy has no levels, so level is ignored."""
    return lambda data: bytes(snappy.compress(data))


def decompress_into(source: Buffer, target: Buffer) -> None:
    """Decompress one raw stream. It must fill ``target`` exactly."""
    try:
        size = cramjam.snappy.decompress_raw_into(source, target)
    except cramjam.DecompressionError as error:
        raise broken("snappy", error) from error
    check_size("snappy", size, target)
