"""Concatenation of a column's parts: values, offsets and validity bitmaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from fastpq.arrays.binary import encode_dictionary, gather_views, shift_buffers, to_offsets, total_size, views_of_offsets
from fastpq.arrays.bitmap import pack_bitmap, unpack_bitmap
from fastpq.arrays.column_base import ColumnBase
from fastpq.arrays.flat_column import Column, DictionaryValues, Values, fixed_values
from fastpq.arrays.layouts import MAX_INT32, VIEW_DTYPE, Array, BinaryOffsets, BinaryViews, CodedViews
from fastpq.arrays.memory import empty
from fastpq.arrays.nested_columns import ListColumn, StructColumn
from fastpq.arrays.nodes import FieldNode
from fastpq.arrays.slices import SliceReader
from fastpq.common.stack import too_deep
from fastpq.encodings.dictionary import renumber
from fastpq.errors import SchemaError

C = TypeVar("C", bound=ColumnBase)


def concat_columns(parts: Sequence[C], name: str) -> C:
    """Concatenate columns that have the same type.

    Args:
        parts: at least one column.
        name: column name, for errors.

    Raises:
        SchemaError: the types differ, or some parts are durations and not all have the same unit.
        LimitError: the type is nested too deep for the stack.
    """
    try:
        return parts[0] if len(parts) == 1 else _concat(parts, name)
    except RecursionError:
        raise too_deep(name) from None


def _concat(parts: Sequence[C], name: str) -> C:
    first = parts[0]
    _require_equal_types(parts, name)
    validity = concat_validity([part.validity if part.null_count else None for part in parts], [*map(len, parts)])
    null_count = sum(part.null_count for part in parts)
    nulls: dict[str, Any] = {
        "validity": validity, "null_count": null_count, "nullable": any(part.nullable for part in parts)
    }
    columns: Sequence[Any] = parts
    if isinstance(first, ListColumn):
        elements = concat_columns([part.used_elements() for part in columns], name)
        return first._with(offsets=concat_offsets([part.offsets for part in columns]), elements=elements, **nulls)
    if isinstance(first, StructColumn):
        fields_of_parts = zip(*[part.children for part in columns], strict=True)
        children = tuple(concat_columns(fields, name) for fields in fields_of_parts)
        return first._with(children=children, length=sum(map(len, parts)), **nulls)
    arrays = [part.values for part in columns]
    if all(type(array) is np.ndarray for array in arrays):
        values: Values = _concat_arrays(arrays)
    else:
        values = concat_values([part.values for part in _of_one_layout(columns)], validity)
    arrow = _arrow_field([part for part in columns if part.null_count < len(part)], name) or first.arrow
    return first._with(values=values, arrow=arrow, **nulls)


def require_one_type(parts: Sequence[Column], name: str) -> None:
    """Refuse flat columns that cannot be one column.

    Raises:
        SchemaError: the types differ, or some parts are durations and not all have the same unit.
    """
    _require_equal_types(parts, name)
    _arrow_field([part for part in parts if part.null_count < len(part)], name)


def _require_equal_types(parts: Sequence[ColumnBase], name: str) -> None:
    first = parts[0]
    for part in parts:
        if part.type is not first.type and part.type != first.type:
            raise SchemaError(f"{part.type} after {first.type}", column=name)


def _of_one_layout(parts: Sequence[Column]) -> Sequence[Column]:
    """Return the parts in one layout.

    Equal dictionaries become the first one. Otherwise, if layouts differ, strings become views, and fixed-width values replace
    their codes.
    """
    if len({_layout(part) for part in parts}) == 1:
        return parts
    code_parts = [part.values for part in parts if isinstance(part.values, DictionaryValues)]
    if len(code_parts) == len(parts) and all(values.dictionary.equals(code_parts[0].dictionary) for values in code_parts[1:]):
        dictionary, is_ordered = code_parts[0].dictionary, all(values.is_ordered for values in code_parts)
        values = [DictionaryValues(each.codes, dictionary, is_ordered) for each in code_parts]
        return [part._with(values=own) for part, own in zip(parts, values, strict=True)]
    if parts[0].type.is_variable:
        return [part.as_views() for part in parts]
    return [part._with(values=fixed_values(part)) for part in parts]


def _layout(column: Column) -> tuple[type, int]:
    """Return a column's layout, and the id of its dictionary. Parts for which both are equal are joined as they are."""
    values = column.values
    return type(values), id(values.dictionary) if isinstance(values, DictionaryValues) else 0


def _arrow_field(parts: Sequence[Column], name: str) -> FieldNode | None:
    """Return the first part's Arrow field. Refuse parts with different duration units, which only Arrow fields have."""
    durations = {part.arrow.format if part.arrow is not None and part.arrow.is_duration else None for part in parts}
    if len(durations) > 1:
        raise SchemaError(f"durations have different units: {sorted(map(str, durations))}", column=name)
    return parts[0].arrow if parts else None


def concat_values(parts: Sequence[Values], validity: Array | None = None) -> Values:
    """Join values that have the same layout. Dictionary codes must belong to one dictionary.

    Args:
        parts: at least one.
        validity: bitmap for the joined values, or None if no value is null.
    """
    first = parts[0]
    code_parts = [part for part in parts if isinstance(part, CodedViews)]
    if len(code_parts) == len(parts) and 2 * sum(len(part.entries) for part in code_parts) <= sum(map(len, code_parts)):
        result = _concat_arrays([part.codes for part in code_parts])
        stops = np.cumsum([*map(len, code_parts)])
        entries = one_dictionary(np.split(result, stops[:-1]), [part.entries for part in code_parts])
        return CodedViews(result, entries, validity)
    if isinstance(first, BinaryViews):
        return _concat_views([part for part in parts if isinstance(part, BinaryViews)])
    if isinstance(first, BinaryOffsets):
        return _concat_offsets([part for part in parts if isinstance(part, BinaryOffsets)])
    if isinstance(first, DictionaryValues):
        codes = [part.codes for part in parts if isinstance(part, DictionaryValues)]
        return DictionaryValues(_concat_arrays(codes), first.dictionary, first.is_ordered)
    return _concat_arrays([part for part in parts if isinstance(part, np.ndarray)])


def _concat_arrays(parts: Sequence[Array]) -> Array:
    """Join arrays that have the same dtype."""
    result = empty(sum(part.nbytes for part in parts)).view(parts[0].dtype)
    return np.concatenate(parts, out=result)


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
    """Return a part's views. CodedViews do not keep views that are made here."""
    return gather_views(part.entries.views, part.codes, part.validity) if isinstance(part, CodedViews) else part.views


def one_dictionary(codes: Sequence[Array], entries: Sequence[BinaryViews]) -> BinaryViews:
    """Join dictionaries into one. The codes are changed in place, so that they refer to the joined dictionary.

    Args:
        codes: int32 codes for each dictionary, less than its entry count, 0 where null.
        entries: each dictionary's entries, in the same order as ``codes``.
    """
    if not entries:
        return BinaryViews(np.empty(0, VIEW_DTYPE))
    if all(other is entries[0] for other in entries):
        return entries[0]
    result = _concat_views(entries)
    numbers, firsts = encode_dictionary(SliceReader(result, None))
    start = 0
    for part, of_part in zip(codes, entries, strict=True):
        places = numbers[start : start + len(of_part)]
        start += len(places)
        renumber(part, places)
    distinct = SliceReader(BinaryViews(result.views[firsts], result.buffers), None)
    size = total_size(distinct)
    offsets = BinaryOffsets(*to_offsets(distinct, size > MAX_INT32, size))      # drops the bytes of repeated entries
    return BinaryViews(*views_of_offsets(offsets, None))


def _concat_offsets(parts: Sequence[BinaryOffsets]) -> BinaryOffsets:
    data = _concat_arrays([part.data[int(part.offsets[0]) : int(part.offsets[-1])] for part in parts])
    return BinaryOffsets(concat_offsets([part.offsets for part in parts]), data)


def concat_offsets(parts: Sequence[Array]) -> Array:
    """Return the offsets of the joined parts. They are int64 if a part has int64 offsets, or if int32 is too small."""
    ranges = [(int(offsets[0]), int(offsets[-1])) for offsets in parts]
    total = sum(stop - start for start, stop in ranges)
    wide = total > MAX_INT32 or any(offsets.dtype == np.int64 for offsets in parts)
    dtype = np.dtype(np.int64 if wide else np.int32)
    result: Array = empty((sum(map(len, parts)) - len(parts) + 1) * dtype.itemsize).view(dtype)
    result[0] = 0
    position, end = 1, 0
    for offsets, (start, stop) in zip(parts, ranges, strict=True):
        # Both summands are in range, because their sum is at most the total.
        np.add(offsets[1:], dtype.type(end - start), out=result[position : position + len(offsets) - 1], casting="same_kind")
        position += len(offsets) - 1
        end += stop - start
    return result


def concat_validity(parts: Sequence[Array | None], lengths: Sequence[int]) -> Array | None:
    """Join validity bitmaps. None means that a part, or the result, has no nulls."""
    if all(part is None for part in parts):
        return None
    flags = [
        np.ones(length, np.bool_) if part is None else unpack_bitmap(part, 0, length)
        for part, length in zip(parts, lengths, strict=True)
    ]
    return pack_bitmap(np.concatenate(flags))
