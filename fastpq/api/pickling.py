"""Pickling files and datasets: a pickle holds the place and the options with which another process opens them again."""

from __future__ import annotations

import os
from typing import Any

from fastpq.errors import UnsupportedError
from fastpq.io.location import locate


def refuse_keys(kind: str, decryption_properties: object) -> None:
    """Refuse a file or a dataset that was opened with keys, because a pickle never holds keys.

    Args:
        kind: class name, for the message.
        decryption_properties: keys, a function that returns keys, or None.

    Raises:
        UnsupportedError: there are keys.
    """
    if decryption_properties is not None:
        raise UnsupportedError(
            f"a {kind} that was opened with decryption_properties cannot be pickled, because keys never enter a pickle: pass the "
            f"path to the other process, and open {kind}(path, decryption_properties=...) there"
        )


def place_elsewhere(where: Any) -> Any:
    """Return an open file's place in a form that another process can use: an absolute path, a URL, or a RemotePath.

    Raises:
        UnsupportedError: the file is an open stream or a buffer, which have no place.
    """
    place = None if isinstance(where, bytes | bytearray | memoryview) else locate(where)
    if place is None:
        raise UnsupportedError(
            f"a ParquetFile over a {type(where).__name__} cannot be pickled, because another process opens the file by its "
            "place: open a path or a URL, or pass the bytes and open ParquetFile(bytes) in the other process"
        )
    return os.path.abspath(place) if isinstance(place, str) else where


def reopened(kind: type[Any], where: Any, options: dict[str, Any]) -> Any:
    """Open a file or dataset again, with its place and options. This is the counterpart to ``__reduce__``."""
    return kind(where, **options)
