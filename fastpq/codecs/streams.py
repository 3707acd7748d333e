"""Buffers and callables of codecs from packages, and the errors of broken streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from fastpq.errors import FormatError

Buffer: TypeAlias = bytes | bytearray | memoryview
Compress: TypeAlias = Callable[[Buffer], Buffer]
DecompressInto: TypeAlias = Callable[[Buffer, Buffer], None]


def mismatch(name: str, actual: int, target: Buffer) -> FormatError:
    """The error of a stream with another uncompressed size than the page header's."""
    return FormatError(f"{name} stream of {actual} bytes, the page header claims {len(target)}")


def broken(name: str, error: Exception) -> FormatError:
    """The error of a stream refused by a codec's package."""
    return FormatError(f"broken {name} stream: {error}")


def copy(source: Buffer, target: Buffer) -> None:
    """Copy bytes from source to target. NumPy's assignment releases the GIL; a memoryview's does not."""
    np.frombuffer(target, np.uint8)[:] = np.frombuffer(source, np.uint8)
