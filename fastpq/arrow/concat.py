"""Columns of one type, one after another, as a single column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpq.arrow import loops
from fastpq.errors import LimitError
from fastpq.table import BinaryOffsets, BinaryViews, Column, DictionaryValues

_INT32_MAX = 2**31 - 1


def concat_columns(columns: Sequence[Column]) -> Column:
    """Concatenate columns.

    Args:
        columns: one or more of equal type and equal kind of values; a single one is returned as it is.

    Returns:
        One column. Offsets are int64 where the data needs it, views keep every buffer, dictionaries that differ are
        merged.

    Raises:
        LimitError: more than 2**31 - 1 view buffers or dictionary entries.
    """
    if len(columns) == 1:
        return columns[0]
    nulls = sum(column.null_count for column in columns)
    return Column(
        columns[0].type,
        _concat_values(columns),
        _concat_validity(columns) if nulls else None,
        nulls,
        any(column.nullable for column in columns),
    )


def _concat_values(columns: Sequence[Column]) -> Any:
    values: list[Any] = [column.values for column in columns]
    if isinstance(values[0], BinaryViews):
        return _concat_views(values)
    if isinstance(values[0], BinaryOffsets):
        return _concat_offsets(values)
    if isinstance(values[0], DictionaryValues):
        return _concat_dictionaries(values)
    return np.concatenate(values)


def _concat_validity(columns: Sequence[Column]) -> NDArray[np.uint8]:
    total = sum(len(column) for column in columns)
    bits = np.zeros((total + 7) // 8, dtype=np.uint8)
    position = 0
    for column in columns:
        if column.validity is None:
            loops.set_bits(bits, position, len(column))
        else:
            loops.copy_bits(column.validity, 0, len(column), bits, position)
        position += len(column)
    return bits


def _concat_views(parts: Sequence[BinaryViews]) -> BinaryViews:
    views = np.concatenate([part.views for part in parts])
    buffers: list[NDArray[np.uint8]] = []
    position = 0
    for part in parts:
        if buffers:
            loops.shift_views(views[position : position + len(part.views)].view(np.uint8), len(buffers))
        buffers.extend(part.buffers)
        if len(buffers) > _INT32_MAX:
            raise LimitError("string views number at most 2**31 - 1 buffers")
        position += len(part.views)
    return BinaryViews(views, buffers)


def _concat_offsets(parts: Sequence[BinaryOffsets]) -> BinaryOffsets:
    sizes = [int(part.offsets[-1]) - int(part.offsets[0]) for part in parts]
    wide = sum(sizes) > _INT32_MAX or any(part.offsets.dtype == np.int64 for part in parts)
    offsets = np.empty(sum(len(part.offsets) - 1 for part in parts) + 1, dtype=np.int64 if wide else np.int32)
    offsets[0] = 0
    position = base = 0
    for part, size in zip(parts, sizes, strict=True):
        count = len(part.offsets) - 1
        out = offsets[position + 1 : position + 1 + count]
        np.subtract(part.offsets[1:], part.offsets[0], out=out)
        np.add(out, base, out=out)
        position += count
        base += size
    data = np.concatenate([part.data[int(part.offsets[0]) : int(part.offsets[-1])] for part in parts])
    return BinaryOffsets(offsets, data)


def _concat_dictionaries(parts: Sequence[DictionaryValues]) -> DictionaryValues:
    first = parts[0].dictionary
    if all(_same_dictionary(first, part.dictionary) for part in parts[1:]):
        return DictionaryValues(np.concatenate([part.codes for part in parts]), first)
    entries: dict[bytes, int] = {}
    codes: list[NDArray[np.int32]] = []
    for part in parts:
        numbers = [entries.setdefault(value, len(entries)) for value in _byte_strings(part.dictionary)]
        if len(entries) > _INT32_MAX:
            raise LimitError("a dictionary has at most 2**31 - 1 entries")
        # codes are 0 where null, also in a part whose dictionary is empty
        codes.append(np.array(numbers or [0], dtype=np.int32)[part.codes])
    return DictionaryValues(np.concatenate(codes), _dictionary_of(entries, first))


def _same_dictionary(one: Column, other: Column) -> bool:
    """Whether two dictionaries stand over the same bytes or hold equal ones in the same layout."""
    left, right = one.values, other.values
    if len(one) != len(other):
        return False
    if isinstance(left, BinaryOffsets) and isinstance(right, BinaryOffsets):
        return np.array_equal(left.offsets, right.offsets) and np.array_equal(left.data, right.data)
    if isinstance(left, BinaryViews) and isinstance(right, BinaryViews):
        same = len(left.buffers) == len(right.buffers) and np.array_equal(left.views.view(np.uint8), right.views.view(np.uint8))
        return same and all(map(np.array_equal, left.buffers, right.buffers))
    return False


def _byte_strings(dictionary: Column) -> Iterator[bytes]:
    values = dictionary.values
    if isinstance(values, BinaryOffsets):
        offsets = values.offsets.tolist()
        for start, stop in pairwise(offsets):
            yield values.data[start:stop].tobytes()
    elif isinstance(values, BinaryViews):
        for view in values.views.tolist():
            length, number, offset = (int.from_bytes(view[at : at + 4], "little") for at in (0, 8, 12))
            yield view[4 : 4 + length] if length <= 12 else values.buffers[number][offset : offset + length].tobytes()


def _dictionary_of(entries: dict[bytes, int], like: Column) -> Column:
    lengths = np.fromiter(map(len, entries), dtype=np.int64, count=len(entries))
    total = int(lengths.sum())
    offsets = np.zeros(len(entries) + 1, dtype=np.int64 if total > _INT32_MAX else np.int32)
    np.cumsum(lengths, out=offsets[1:])
    data = np.frombuffer(b"".join(entries), dtype=np.uint8) if total else np.zeros(0, dtype=np.uint8)
    return replace(like, values=BinaryOffsets(offsets, data))
