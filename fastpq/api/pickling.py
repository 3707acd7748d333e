"""Pickles of files and datasets: place and options, by which another process opens the same again."""

from __future__ import annotations

import os
from typing import Any

from fastpq.errors import UnsupportedError
from fastpq.io.location import locate


def refuse_keys(kind: str, decryption_properties: object) -> None:
    """Refuse a file or a dataset opened with keys: a pickle never has keys.

    Args:
        kind: name of the class, for the message.
        decryption_properties: keys, a function that returns keys, or None.

    Raises:
        UnsupportedError: there are keys.
    """
    if decryption_properties is not None:
        raise UnsupportedError(
            f"a {kind} opened with decryption_properties cannot be pickled, since keys never enter a pickle: pass the path "
            f"to the other process, and open {kind}(path, decryption_properties=...) there"
        )


def place_elsewhere(where: Any) -> Any:
    """The place of an open file for another process: an absolute path, a URL, or a RemotePath.

    Raises:
        UnsupportedError: an open stream or a buffer, which has no place.
    """
    place = None if isinstance(where, bytes | bytearray | memoryview) else locate(where)
    if place is None:
        raise UnsupportedError(
            f"a ParquetFile over a {type(where).__name__} cannot be pickled, since another process opens the file by its place: "
            "open a path or a URL, or pass the bytes and open ParquetFile(bytes) in the other process"
        )
    return os.path.abspath(place) if isinstance(place, str) else where


def reopened(kind: type[Any], where: Any, options: dict[str, Any]) -> Any:
    """An object opened by its place and options, the counterpart of ``__reduce__``."""
    return kind(where, **options)
