"""Parts of a column joined into one, layout by layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fastpq.conversion.numpy_output import fixed_values
from fastpq.errors import SchemaError
from fastpq.nested.columns import ListColumn, NestedColumn, StructColumn
from fastpq.values.bitmap import pack_bitmap, unpack_bitmap
from fastpq.values.layouts import (
    INLINE_SIZE,
    MAX_INT32,
    VIEW_DTYPE,
    Array,
    BinaryOffsets,
    BinaryViews,
    DictionaryValues,
    Values,
)

if TYPE_CHECKING:
    from fastpq.table import AnyColumn, Column


def concat_columns(parts: Sequence[AnyColumn], name: str) -> AnyColumn:
    """The values of columns of one type, one after another.

    Args:
        parts: at least one.
        name: of the column, for errors.

    Raises:
        SchemaError: the types differ.
    """
    first = parts[0]
    if len(parts) == 1:
        return first
    for part in parts:
        if part.type != first.type:
            raise SchemaError(f"{part.type} after {first.type}", column=name)
    validity = concat_validity([part.validity if part.null_count else None for part in parts], [*map(len, parts)])
    null_count = sum(part.null_count for part in parts)
    nullable = any(part.nullable for part in parts)
    if isinstance(first, StructColumn):
        fields = zip(*[part.children for part in parts if isinstance(part, StructColumn)], strict=True)
        children = tuple(concat_columns(columns, name) for columns in fields)
        return StructColumn(first.type, children, sum(map(len, parts)), validity, null_count, nullable)
    if isinstance(first, ListColumn):
        lists = [part for part in parts if isinstance(part, ListColumn)]
        elements = concat_columns([part.used_elements() for part in lists], name)
        offsets = concat_offsets([part.offsets for part in lists])
        return ListColumn(first.type, offsets, elements, validity, null_count, nullable)
    leaves = _of_one_layout([part for part in parts if not isinstance(part, NestedColumn)])
    values = concat_values([part.values for part in leaves])
    return replace(first, values=values, validity=validity, null_count=null_count, nullable=nullable)


def _of_one_layout(parts: list[Column]) -> list[Column]:
    """Views take any other layout in; dictionaries of fixed-width values are gathered."""
    if len({_layout(part) for part in parts}) == 1:
        return parts
    if parts[0].type.is_variable:
        return [part.as_views() for part in parts]
    return [replace(part, values=fixed_values(part)) for part in parts]


def _layout(column: Column) -> tuple[type, int]:
    """What must agree for values to be joined as they are."""
    values = column.values
    return type(values), id(values.dictionary) if isinstance(values, DictionaryValues) else 0


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
    data = np.concatenate([part.data[int(part.offsets[0]) : int(part.offsets[-1])] for part in parts])
    return BinaryOffsets(concat_offsets([part.offsets for part in parts]), data)


def concat_offsets(parts: Sequence[Array]) -> Array:
    """Offsets into parts as offsets into the parts joined; int64 where one of them is or int32 does not reach."""
    ranges = [(int(offsets[0]), int(offsets[-1])) for offsets in parts]
    total = sum(stop - start for start, stop in ranges)
    wide = total > MAX_INT32 or any(offsets.dtype == np.int64 for offsets in parts)
    dtype = np.dtype(np.int64 if wide else np.int32)
    joined = np.zeros(sum(map(len, parts)) - len(parts) + 1, dtype)
    position, end = 1, 0
    for offsets, (start, stop) in zip(parts, ranges, strict=True):
        # both terms are in range: what they add up to is at most the total
        np.add(offsets[1:], dtype.type(end - start), out=joined[position : position + len(offsets) - 1], casting="same_kind")
        position += len(offsets) - 1
        end += stop - start
    return joined


def concat_validity(parts: Sequence[Array | None], lengths: Sequence[int]) -> Array | None:
    """Join validity bitmaps; None, also among the parts, where no value is null."""
    if all(part is None for part in parts):
        return None
    flags = [
        np.ones(length, np.bool_) if part is None else unpack_bitmap(part, 0, length)
        for part, length in zip(parts, lengths, strict=True)
    ]
    return pack_bitmap(np.concatenate(flags))
