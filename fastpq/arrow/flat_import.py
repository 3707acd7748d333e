"""Import of flat Arrow arrays as columns: checks buffers, zeroes values under nulls, resolves dictionaries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.table import BinaryOffsets, BinaryViews, Column, DictionaryValues
from fastpq.arrow import loops
from fastpq.arrow.capsules_in import ForeignArray
from fastpq.arrow.formats import ArrowType, FormatLayout
from fastpq.errors import LimitError, SchemaError

_MAX_BYTES = 2**63 - 1


def empty_values(arrow: ArrowType) -> Any:
    """Values of a column without rows."""
    if arrow.layout is FormatLayout.OFFSETS:
        return BinaryOffsets(np.zeros(1, arrow.dtype), np.zeros(0, np.uint8))
    if arrow.layout is FormatLayout.VIEWS:
        return BinaryViews(np.zeros(0, arrow.dtype))
    return np.zeros(0, arrow.type.dtype)


# Fewest and most buffers. Arrays of the null type had a bitmap before Arrow 1.0, and Polars still counts the bitmap.
_BUFFERS = {
    FormatLayout.NONE: (0, 1),
    FormatLayout.BITS: (2, 2),
    FormatLayout.FIXED: (2, 2),
    FormatLayout.OFFSETS: (3, 3),
    FormatLayout.VIEWS: (3, 2**31 + 2),
}


def read_values(array: ForeignArray, arrow: ArrowType, start: int, length: int) -> Column:
    """A column of ``length`` values of an array from ``start`` on, with zeros under nulls."""
    offset = array.offset + start
    fewest, most = _BUFFERS[arrow.layout]
    if not fewest <= array.n_buffers <= most:
        raise SchemaError(f"an Arrow array has {array.n_buffers} buffers instead of {fewest}")
    if arrow.layout is FormatLayout.NONE:
        validity = np.zeros((length + 7) // 8, np.uint8) if length else None
        return Column(arrow.type, np.zeros(length, arrow.type.dtype), validity, length)
    if length == 0:
        return Column(arrow.type, empty_values(arrow))
    validity, null_count = read_validity(array, offset, length)
    return Column(arrow.type, _READERS[arrow.layout](array, arrow, offset, length, validity), validity, null_count)


def read_dictionary(
    array: ForeignArray, dtype: np.dtype[Any], arrow: ArrowType, start: int, length: int, *, is_ordered: bool
) -> Column:
    """A column of ``length`` values of a dictionary-encoded array from ``start`` on; strings and binary keep their dictionary.

    Args:
        array: the array.
        dtype: dtype of its indices.
        arrow: type of its dictionary.
        start: first value.
        length: number of values.
        is_ordered: whether the order of the entries has a meaning.
    """
    foreign = array.dictionary()
    if foreign is None:
        raise SchemaError("an Arrow array has no dictionary, and its schema has one")
    if foreign.length > 2**31 - 1:
        raise LimitError(f"a dictionary of {foreign.length} entries is larger than int32 codes can tell apart")
    if array.n_buffers != 2:
        raise SchemaError(f"an Arrow array of dictionary indices has {array.n_buffers} buffers instead of 2")
    dictionary = read_values(foreign, arrow, 0, foreign.length)
    if length == 0:
        validity, null_count, codes = None, 0, np.zeros(0, np.int32)
    else:
        validity, null_count = read_validity(array, array.offset + start, length)
        indices = _zeroed_nulls(fixed_buffer(array, dtype, array.offset + start, length), validity)
        codes = _checked_codes(indices, foreign.length, all_null=null_count == length)
    if dictionary.null_count and length:
        validity, null_count, codes = _fold_nulls(dictionary, validity, codes)
    if arrow.type.is_variable:
        entries = Column(arrow.type, dictionary.values, nullable=False)
        return Column(arrow.type, DictionaryValues(codes, entries, is_ordered), validity, null_count)
    assert isinstance(dictionary.values, np.ndarray)
    if foreign.length == 0:
        return Column(arrow.type, np.zeros(length, arrow.type.dtype), validity, null_count)
    return Column(arrow.type, _zeroed_nulls(dictionary.values[codes], validity), validity, null_count)


def _checked_codes(indices: NDArray[Any], entries: int, *, all_null: bool) -> NDArray[np.int32]:
    """Indices, 0 under nulls, as int32; raises SchemaError for an index outside a dictionary of ``entries`` entries."""
    low, high = int(indices.min()), int(indices.max())
    if low < 0 or (high >= entries and not all_null):
        raise SchemaError(f"dictionary index {low if low < 0 else high} is outside a dictionary of {entries} entries")
    return indices.astype(np.int32, copy=False)


def _fold_nulls(
    dictionary: Column, validity: NDArray[np.uint8] | None, codes: NDArray[np.int32]
) -> tuple[NDArray[np.uint8] | None, int, NDArray[np.int32]]:
    """Validity, null count and codes of the rows, with rows of null dictionary entries turned into nulls."""
    assert dictionary.validity is not None
    valid = np.unpackbits(dictionary.validity, count=len(dictionary), bitorder="little").view(np.bool_)[codes]
    if validity is not None:
        valid &= np.unpackbits(validity, count=len(codes), bitorder="little").view(np.bool_)
    null_count = len(codes) - int(np.count_nonzero(valid))
    if null_count == 0:
        return None, 0, codes
    return np.packbits(valid, bitorder="little"), null_count, np.where(valid, codes, np.int32(0))


# ---- buffers


def read_validity(array: ForeignArray, offset: int, length: int) -> tuple[NDArray[np.uint8] | None, int]:
    """The validity bitmap of ``length`` rows from ``offset`` on, None without nulls; and the number of nulls."""
    bits = array.buffer(0, (offset + length + 7) // 8)
    if bits is None:
        if array.null_count > 0:
            raise SchemaError(f"an Arrow array claims {array.null_count} nulls and has no validity bitmap")
        return None, 0
    if offset % 8 == 0:
        bits = bits[offset // 8 :]
    else:
        shifted = np.zeros((length + 7) // 8, np.uint8)
        loops.copy_bits(bits, offset, length, shifted)
        bits = shifted
    null_count = length - loops.count_bits(bits, length)
    if length == array.length and array.null_count not in (-1, null_count):
        raise SchemaError(f"an Arrow array claims {array.null_count} nulls and has {null_count}")
    return (bits, null_count) if null_count else (None, 0)


def _needed(array: ForeignArray, index: int, size: int) -> NDArray[np.uint8]:
    """``size`` bytes of a buffer; only an empty buffer may be NULL."""
    if size > _MAX_BYTES:
        raise SchemaError(f"buffer {index} of an Arrow array would have {size} bytes")
    buffer = array.buffer(index, size)
    if buffer is None:
        if size > 0:
            raise SchemaError(f"buffer {index} of an Arrow array is NULL and {size} bytes are needed")
        return np.zeros(0, np.uint8)
    return buffer


def fixed_buffer(array: ForeignArray, dtype: np.dtype[Any], offset: int, length: int, index: int = 1) -> NDArray[Any]:
    """``length`` values of a buffer from ``offset`` on; shares the producer's memory where aligned, else a copy."""
    width = dtype.itemsize
    values = _needed(array, index, (offset + length) * width)[offset * width :].view(dtype)
    return values if values.flags.aligned else values.copy()


def _zeroed_nulls(values: NDArray[Any], validity: NDArray[np.uint8] | None) -> NDArray[Any]:
    """``values`` with zero bytes under nulls, copied only where the producer left other bytes there."""
    if validity is None:
        return values
    width, count = values.dtype.itemsize, len(values)
    if loops.dirty_null(values.view(np.uint8), width, validity, count) < 0:
        return values
    clean = values.copy()
    loops.clear_nulls(clean.view(np.uint8), width, validity, count)
    return clean


def _read_fixed(
    array: ForeignArray, arrow: ArrowType, offset: int, length: int, validity: NDArray[np.uint8] | None
) -> NDArray[Any]:
    values = _zeroed_nulls(fixed_buffer(array, arrow.dtype, offset, length), validity)
    return values if arrow.convert is None else arrow.convert(values)


def _read_bits(
    array: ForeignArray, arrow: ArrowType, offset: int, length: int, validity: NDArray[np.uint8] | None
) -> NDArray[np.bool_]:
    bits = _needed(array, 1, (offset + length + 7) // 8)[offset // 8 :]
    values = np.unpackbits(bits, count=offset % 8 + length, bitorder="little")[offset % 8 :]
    return _zeroed_nulls(values, validity).view(np.bool_)


def _read_offsets(
    array: ForeignArray, arrow: ArrowType, offset: int, length: int, validity: NDArray[np.uint8] | None
) -> BinaryOffsets:
    offsets = checked_offsets(array, arrow.dtype, offset, length)
    return BinaryOffsets(offsets, _needed(array, 2, int(offsets[-1])))


def checked_offsets(array: ForeignArray, dtype: np.dtype[Any], offset: int, length: int) -> NDArray[Any]:
    """The ``length + 1`` offsets from ``offset`` on; raises SchemaError for negative or descending offsets."""
    offsets = fixed_buffer(array, dtype, offset, length + 1)
    wrong = loops.bad_offset(offsets)
    if wrong >= 0:
        raise SchemaError(f"offset {wrong} of an Arrow array, {offsets[wrong]}, is negative or below the one before it")
    return offsets


def checked_list_views(
    array: ForeignArray, dtype: np.dtype[Any], offset: int, length: int, validity: NDArray[np.uint8] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Starts and sizes of ``length`` list views from ``offset`` on, checked to lie within the array's child; 0 under nulls."""
    starts = _zeroed_nulls(fixed_buffer(array, dtype, offset, length), validity).astype(np.int64)
    sizes = _zeroed_nulls(fixed_buffer(array, dtype, offset, length, index=2), validity).astype(np.int64)
    wrong = (starts < 0) | (sizes < 0) | (starts > array.child(0).length - sizes)
    if wrong.any():
        raise SchemaError(f"Arrow list view {int(np.argmax(wrong))} is outside the elements")
    return starts, sizes


def _read_views(
    array: ForeignArray, arrow: ArrowType, offset: int, length: int, validity: NDArray[np.uint8] | None
) -> BinaryViews:
    count = array.n_buffers - 3
    sizes: NDArray[np.int64] = fixed_buffer(array, np.dtype(np.int64), 0, count, index=array.n_buffers - 1)
    if count and int(sizes.min()) < 0:
        raise SchemaError(f"a data buffer of Arrow string views has the size {int(sizes.min())}")
    buffers = [_needed(array, 2 + i, size) for i, size in enumerate(sizes.tolist())]
    views = fixed_buffer(array, arrow.dtype, offset, length)
    wrong = loops.bad_view(views.view(np.uint8), validity, sizes)
    if wrong >= 0:
        raise SchemaError(f"Arrow string view {wrong} points outside its buffer or is not padded with zeros")
    return BinaryViews(_zeroed_nulls(views, validity), buffers)


_READERS: dict[FormatLayout, Any] = {
    FormatLayout.BITS: _read_bits,
    FormatLayout.FIXED: _read_fixed,
    FormatLayout.OFFSETS: _read_offsets,
    FormatLayout.VIEWS: _read_views,
}
