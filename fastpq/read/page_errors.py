"""Offsets in errors about pages: from the bytes of a chunk that were read to the file."""

from __future__ import annotations

from collections.abc import Iterable

from fastpq.errors import ParquetError
from fastpq.io.coalescing import Range


def give_file_offset(error: ParquetError, ranges: Iterable[Range]) -> None:
    """Replace an error's offset within a chunk's stored bytes by the offset in the file.

    Only an error that names a page, and not yet its row group, has an offset within the stored bytes.

    Args:
        error: the error, before its row group is added.
        ranges: the file's byte ranges that were read, as (offset, length). The stored bytes have them one after another.
    """
    context = error.context
    position = context.get("offset")
    if position is None or "page" not in context or "row_group" in context:
        return
    end = None
    for start, length in ranges:
        if position < length:
            context["offset"] = start + position
            return
        position, end = position - length, start + length
    if end is not None:        # just behind the last byte
        context["offset"] = end + position
