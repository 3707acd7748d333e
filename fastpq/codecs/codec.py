"""Codec, a compression codec as two functions over buffers; and the errors of broken streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from fastpq.errors import FormatError

Buffer: TypeAlias = bytes | bytearray | memoryview
Compress: TypeAlias = Callable[[Buffer], Buffer]
DecompressInto: TypeAlias = Callable[[Buffer, Buffer], None]


class Codec(NamedTuple):
    """A compression codec at one level. Stateless; several threads may call its functions at once.

    Attributes:
        number: the codec's value in ``CompressionCodec`` (parquet.thrift).
        name: the codec's name in ``codec_for_write``.
        most_expansion: greatest expansion of any stream, as (bytes produced, bytes consumed).
        compress: function from a contiguous buffer of bytes to the compressed page, bytes-like. Releases the GIL.
        decompress_into: function of ``(source, target)``, contiguous one-dimensional buffers of bytes. Decompresses source to
            target, sized by the page header. Raises FormatError for a stream broken, too long or too short for target;
            target's content is then undefined. An empty source fits an empty target. Releases the GIL.
    """

    number: int
    name: str
    most_expansion: tuple[int, int]
    compress: Compress
    decompress_into: DecompressInto


def mismatch(name: str, actual: int, target: Buffer) -> FormatError:
    """The error of a stream with another uncompressed size than the page header's."""
    return FormatError(f"{name} stream of {actual} bytes, the page header claims {len(target)}")


def broken(name: str, error: Exception) -> FormatError:
    """The error of a stream refused by a codec's package."""
    return FormatError(f"broken {name} stream: {error}")


def copy(source: Buffer, target: Buffer) -> None:
    """Copy bytes from source to target. NumPy's assignment releases the GIL; a memoryview's does not."""
    np.frombuffer(target, np.uint8)[:] = np.frombuffer(source, np.uint8)
