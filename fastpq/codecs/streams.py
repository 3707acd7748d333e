"""What the codecs that call packages share: types, errors for broken streams, and a copy that releases the GIL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from fastpq.errors import FormatError

Buffer: TypeAlias = bytes | bytearray | memoryview
Compress: TypeAlias = Callable[[Buffer], Buffer]
DecompressInto: TypeAlias = Callable[[Buffer, Buffer], None]


def check_size(name: str, size: int, target: Buffer) -> None:
    """Raise FormatError if a stream's uncompressed size is not the one in the page header, which the target has."""
    if size != len(target):
        raise FormatError(f"a {name} stream has {size} bytes, and the page header claims {len(target)}")


def broken(name: str, error: Exception) -> FormatError:
    """Return the error for a stream that a codec's package refuses."""
    return FormatError(f"broken {name} stream: {error}")


def copy(source: Buffer, target: Buffer) -> None:
    """Copy bytes from source to target with NumPy, which releases the GIL. An assignment to a memoryview would not release it."""
    np.frombuffer(target, np.uint8)[:] = np.frombuffer(source, np.uint8)
