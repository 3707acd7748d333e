"""Parts of a column joined into one: values layout by layout, offsets and validity bitmaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from fastpq.arrays.binary import encode_dictionary, gather_views, shift_buffers, to_offsets, total_size, views_of_offsets
from fastpq.arrays.bitmap import pack_bitmap, unpack_bitmap
from fastpq.arrays.layouts import (
    MAX_INT32,
    VIEW_DTYPE,
    Array,
    BinaryOffsets,
    BinaryViews,
    CodedViews,
    DictionaryValues,
    Values,
)
from fastpq.arrays.memory import empty
from fastpq.arrays.slices import SliceReader
from fastpq.encodings.dictionary import renumber
from fastpq.errors import SchemaError

if TYPE_CHECKING:
    from fastpq.arrays.column_base import ColumnBase

C = TypeVar("C", bound="ColumnBase")


def concat_columns(parts: Sequence[C], name: str) -> C:
    """The values of columns of one type, one after another.

    Args:
        parts: at least one.
        name: of the column, for errors.

    Raises:
        SchemaError: the types differ, or durations have different units, or have none in some of the parts.
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
    return first._joined(parts, name, validity=validity, null_count=null_count, nullable=nullable)


def concat_values(parts: Sequence[Values], validity: Array | None = None) -> Values:
    """Join values of one layout; dictionary codes must be into one dictionary.

    Args:
        parts: at least one.
        validity: bitmap of the joined values, or None without nulls.
    """
    first = parts[0]
    coded = [part for part in parts if isinstance(part, CodedViews)]
    if len(coded) == len(parts) and 2 * sum(len(part.entries) for part in coded) <= sum(map(len, coded)):
        joined = _concat_arrays([part.codes for part in coded])
        stops = np.cumsum([*map(len, coded)])
        entries = one_dictionary(np.split(joined, stops[:-1]), [part.entries for part in coded])
        return CodedViews(joined, entries, validity)
    if isinstance(first, BinaryViews):
        return _concat_views([part for part in parts if isinstance(part, BinaryViews)])
    if isinstance(first, BinaryOffsets):
        return _concat_offsets([part for part in parts if isinstance(part, BinaryOffsets)])
    if isinstance(first, DictionaryValues):
        codes = [part.codes for part in parts if isinstance(part, DictionaryValues)]
        return DictionaryValues(_concat_arrays(codes), first.dictionary, first.is_ordered)
    return _concat_arrays([part for part in parts if isinstance(part, np.ndarray)])


def _concat_arrays(parts: Sequence[Array]) -> Array:
    """Arrays of one dtype joined, in an idle block of memory where one fits."""
    joined = empty(sum(part.nbytes for part in parts)).view(parts[0].dtype)
    return np.concatenate(parts, out=joined)


def _concat_views(parts: Sequence[BinaryViews]) -> BinaryViews:
    views = _concat_arrays([_views_of(part) for part in parts])
    buffers: list[Array] = []
    start = 0
    for part in parts:
        stop = start + len(part)
        if buffers and part.buffers:
            shift_buffers(views[start:stop], len(buffers))
        buffers.extend(part.buffers)
        start = stop
    return BinaryViews(views, buffers)


def _views_of(part: BinaryViews) -> Array:
    """The views of a part, not kept by it."""
    return gather_views(part.entries.views, part.codes, part.validity) if isinstance(part, CodedViews) else part.views


def one_dictionary(codes: Sequence[Array], entries: Sequence[BinaryViews]) -> BinaryViews:
    """One dictionary of several; codes into each are changed to its codes, in place.

    Args:
        codes: int32, each below the number of the entries; 0 where null.
        entries: of each dictionary, in the order of the codes.
    """
    if not entries:
        return BinaryViews(np.empty(0, VIEW_DTYPE))
    if all(other is entries[0] for other in entries):
        return entries[0]
    joined = _concat_views(entries)
    numbers, firsts = encode_dictionary(SliceReader(joined, None))
    start = 0
    for part, of_part in zip(codes, entries, strict=True):
        places = numbers[start : start + len(of_part)]
        start += len(places)
        renumber(part, places)
    kept = SliceReader(BinaryViews(joined.views[firsts], joined.buffers), None)
    size = total_size(kept)
    return BinaryViews(*views_of_offsets(*to_offsets(kept, size > MAX_INT32, size), None))      # and no bytes of the others


def _concat_offsets(parts: Sequence[BinaryOffsets]) -> BinaryOffsets:
    data = _concat_arrays([part.data[int(part.offsets[0]) : int(part.offsets[-1])] for part in parts])
    return BinaryOffsets(concat_offsets([part.offsets for part in parts]), data)


def concat_offsets(parts: Sequence[Array]) -> Array:
    """Offsets into parts as offsets into the parts joined; int64 where a part has int64 offsets or int32 does not reach."""
    ranges = [(int(offsets[0]), int(offsets[-1])) for offsets in parts]
    total = sum(stop - start for start, stop in ranges)
    wide = total > MAX_INT32 or any(offsets.dtype == np.int64 for offsets in parts)
    dtype = np.dtype(np.int64 if wide else np.int32)
    joined = np.zeros(sum(map(len, parts)) - len(parts) + 1, dtype)
    position, end = 1, 0
    for offsets, (start, stop) in zip(parts, ranges, strict=True):
        # both terms are in range: their sum is at most the total
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
