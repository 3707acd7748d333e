"""A compression codec as functions over buffers, and the errors of its streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from fastpq.errors import FormatError

Buffer: TypeAlias = bytes | bytearray | memoryview
Compress: TypeAlias = Callable[[Buffer], Buffer]
DecompressInto: TypeAlias = Callable[[Buffer, Buffer], None]


class Codec(NamedTuple):
    """One codec; stateless, and may be called from several threads at once.

    Attributes:
        number: its value in ``CompressionCodec`` (parquet.thrift).
        name: what ``codec_for_write`` calls it.
        most_expansion: (produced, consumed), the most bytes that any stream of it produces from so many.
        compress: a contiguous buffer of bytes -> the compressed page, bytes-like. Releases the GIL.
        decompress_into: ``(source, target)``, both contiguous buffers of bytes, one-dimensional. Fills target, whose
            size is the uncompressed size of the page header; FormatError when the stream is broken, longer or shorter
            (what target holds is then undefined). No bytes are accepted for no bytes. Releases the GIL.
    """

    number: int
    name: str
    most_expansion: tuple[int, int]
    compress: Compress
    decompress_into: DecompressInto


def mismatch(name: str, actual: int, target: Buffer) -> FormatError:
    """The error of a stream whose size is not that of the page header."""
    return FormatError(f"{name} stream of {actual} bytes, the page header claims {len(target)}")


def broken(name: str, error: Exception) -> FormatError:
    """The error of a stream that a codec's package refuses."""
    return FormatError(f"broken {name} stream: {error}")


def copy(source: Buffer, target: Buffer) -> None:
    """Copy bytes; NumPy's assignment releases the GIL, a memoryview's does not."""
    np.frombuffer(target, np.uint8)[:] = np.frombuffer(source, np.uint8)
