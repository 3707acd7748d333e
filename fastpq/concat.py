"""Parts of a column joined into one, layout by layout."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fastpq.bitmap import pack_bitmap, unpack_bitmap
from fastpq.layouts import (
    INLINE_SIZE,
    MAX_INT32,
    VIEW_DTYPE,
    Array,
    BinaryOffsets,
    BinaryViews,
    DictionaryValues,
    Values,
)


def concat_values(parts: Sequence[Values]) -> Values:
    """Join values of one layout; dictionary codes must be into one dictionary.

    Args:
        parts: at least one.
    """
    first = parts[0]
    if isinstance(first, BinaryViews):
        return _concat_views([part for part in parts if isinstance(part, BinaryViews)])
    if isinstance(first, BinaryOffsets):
        return _concat_offsets([part for part in parts if isinstance(part, BinaryOffsets)])
    if isinstance(first, DictionaryValues):
        codes = [part.codes for part in parts if isinstance(part, DictionaryValues)]
        return DictionaryValues(np.concatenate(codes), first.dictionary)
    return np.concatenate([part for part in parts if isinstance(part, np.ndarray)])


def _concat_views(parts: Sequence[BinaryViews]) -> BinaryViews:
    views = np.concatenate([part.views for part in parts])
    words = views.view(np.int32).reshape(-1, 4)
    buffers: list[Array] = []
    start = 0
    for part in parts:
        stop = start + len(part.views)
        if buffers and part.buffers:
            # Inline values have bytes where longer ones have the number of their buffer.
            words[start:stop, 2] += np.where(words[start:stop, 0] > INLINE_SIZE, np.int32(len(buffers)), np.int32(0))
        buffers.extend(part.buffers)
        start = stop
    return BinaryViews(words.reshape(-1).view(VIEW_DTYPE), buffers)


def _concat_offsets(parts: Sequence[BinaryOffsets]) -> BinaryOffsets:
    ranges = [(int(part.offsets[0]), int(part.offsets[-1])) for part in parts]
    data = np.concatenate([part.data[start:stop] for part, (start, stop) in zip(parts, ranges, strict=True)])
    wide = len(data) > MAX_INT32 or any(part.offsets.dtype == np.int64 for part in parts)
    dtype = np.dtype(np.int64 if wide else np.int32)
    pieces = [np.zeros(1, dtype)]
    end = 0
    for part, (start, stop) in zip(parts, ranges, strict=True):
        pieces.append((part.offsets[1:].astype(np.int64) + (end - start)).astype(dtype))
        end += stop - start
    return BinaryOffsets(np.concatenate(pieces), data)


def concat_validity(parts: Sequence[Array | None], lengths: Sequence[int]) -> Array | None:
    """Join validity bitmaps; None, also among the parts, where no value is null."""
    if all(part is None for part in parts):
        return None
    flags = [
        np.ones(length, np.bool_) if part is None else unpack_bitmap(part, 0, length)
        for part, length in zip(parts, lengths, strict=True)
    ]
    return pack_bitmap(np.concatenate(flags))
