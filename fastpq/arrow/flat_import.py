"""Import of flat Arrow arrays as columns: buffers are checked, zeros are written under nulls, dictionaries are resolved."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.layouts import empty_binary
from fastpq.arrays.nodes import FieldNode
from fastpq.arrays.table import BinaryOffsets, BinaryViews, Column, DictionaryValues
from fastpq.arrow import loops
from fastpq.arrow.capsules_in import ForeignArray
from fastpq.arrow.formats import ArrowType, FormatLayout
from fastpq.errors import LimitError, SchemaError

Bitmap: TypeAlias = NDArray[np.uint8]

_BYTE = np.dtype(np.uint8)


def empty_values(arrow: ArrowType) -> Any:
    """Return the values of a column that has no rows."""
    if arrow.layout is FormatLayout.OFFSETS:
        return BinaryOffsets(np.zeros(1, arrow.dtype), np.zeros(0, np.uint8))
    if arrow.layout is FormatLayout.VIEWS:
        return BinaryViews(np.zeros(0, arrow.dtype))
    return np.zeros(0, arrow.type.dtype)


# Smallest and largest buffer count. Arrays with the null type had a bitmap before Arrow 1.0, and still have one in Polars.
_BUFFERS = {
    FormatLayout.NONE: (0, 1),
    FormatLayout.BITS: (2, 2),
    FormatLayout.FIXED: (2, 2),
    FormatLayout.OFFSETS: (3, 3),
    FormatLayout.VIEWS: (3, 2**31 + 2),
}


def both_valid(validity: Bitmap | None, parents: Bitmap | None) -> Bitmap | None:
    """Return a bitmap with a one for each value that is valid and has a valid parent. None means no nulls."""
    if validity is None or parents is None:
        return parents if validity is None else validity
    size = min(len(validity), len(parents))
    return validity[:size] & parents[:size]


def read_values(
    array: ForeignArray,
    arrow: ArrowType,
    start: int,
    length: int,
    parents: Bitmap | None = None,
    *,
    nullable: bool = True,
    field: FieldNode | None = None,
) -> Column:
    """Return an array's values from ``start`` to ``start + length`` as a column, with zeros under nulls.

    Args:
        array: the array.
        arrow: its type.
        start: index of the first value.
        length: value count.
        parents: as for ``ImportedField.read``.
        nullable, field: attributes of the column.
    """
    offset = array.offset + start
    least, most = _BUFFERS[arrow.layout]
    if not least <= array.n_buffers <= most:
        raise SchemaError(f"an Arrow array has {array.n_buffers} buffers instead of {least}")
    if arrow.layout is FormatLayout.NONE:
        validity = np.zeros((length + 7) // 8, np.uint8) if length else None
        return Column(arrow.type, np.zeros(length, arrow.type.dtype), validity, length, nullable, field)
    if length == 0:
        return Column(arrow.type, empty_values(arrow), nullable=nullable, arrow=field)
    validity, null_count = read_validity(array, offset, length)
    # Values under null parents matter only where values are checked or converted.
    is_checked = arrow.layout is FormatLayout.VIEWS or arrow.convert is not None
    existing = both_valid(validity, parents) if is_checked else validity
    values = _READERS[arrow.layout](array, arrow, offset, length, existing)
    return Column._made(arrow.type, values, validity=validity, null_count=null_count, nullable=nullable, arrow=field)


def read_dictionary(
    array: ForeignArray,
    dtype: np.dtype[Any],
    arrow: ArrowType,
    start: int,
    length: int,
    parents: Bitmap | None,
    *,
    is_ordered: bool,
    nullable: bool,
) -> Column:
    """Return a dictionary-encoded array's values from ``start`` to ``start + length`` as a column.

    Strings and binary values keep their dictionary. Other values are decoded.

    Args:
        array: the array.
        dtype: its index dtype.
        arrow: its dictionary type.
        start: index of the first value.
        length: value count.
        parents: as for ``ImportedField.read``. Values under null parents become nulls in a nullable field.
        is_ordered: whether the dictionary's order has a meaning.
        nullable: whether the field may have nulls.
    """
    foreign = array.dictionary()
    if foreign is None:
        raise SchemaError("an Arrow array has no dictionary, but its schema has one")
    if foreign.length > 2**31 - 1:
        raise LimitError(f"a dictionary of {foreign.length} entries is too large for int32 codes")
    if array.n_buffers != 2:
        raise SchemaError(f"an Arrow array of dictionary indices has {array.n_buffers} buffers instead of 2")
    dictionary = read_values(foreign, arrow, 0, foreign.length)
    if length == 0:
        validity, null_count, codes = None, 0, np.zeros(0, np.int32)
    else:
        validity, null_count = read_validity(array, array.offset + start, length)
        existing = both_valid(validity, parents)
        missing = 0 if existing is None else length - loops.count_bits(existing, length)
        indices = _zeroed_nulls(array.values(1, dtype, array.offset + start, length), existing)
        codes = _checked_codes(indices, foreign.length, all_null=missing == length)
        if nullable:
            validity, null_count = (existing, missing) if missing else (None, 0)
        elif foreign.length == 0:       # values under null parents need an entry, because they cannot be null
            dictionary = _blank_entry(arrow)
    if dictionary.null_count and length:
        validity, null_count, codes = _fold_nulls(dictionary, validity, codes)
    if arrow.type.is_variable:
        entries = Column(arrow.type, dictionary.values, nullable=False)
        return Column(arrow.type, DictionaryValues(codes, entries, is_ordered), validity, null_count)
    assert isinstance(dictionary.values, np.ndarray)
    if len(dictionary) == 0:
        return Column(arrow.type, np.zeros(length, arrow.type.dtype), validity, null_count)
    return Column(arrow.type, _zeroed_nulls(dictionary.values[codes], validity), validity, null_count)


def _blank_entry(arrow: ArrowType) -> Column:
    """Return a dictionary with one entry, which is empty or zero."""
    if arrow.type.is_variable:
        return Column(arrow.type, empty_binary(1))
    return Column(arrow.type, np.zeros(1, arrow.type.dtype))


def _checked_codes(indices: NDArray[Any], entries: int, *, all_null: bool) -> NDArray[np.int32]:
    """Return indices as int32. Raise SchemaError if one is outside the dictionary. Indices under nulls must be 0."""
    low, high = int(indices.min()), int(indices.max())
    if low < 0 or (high >= entries and not all_null):
        raise SchemaError(f"dictionary index {low if low < 0 else high} is outside a dictionary of {entries} entries")
    return indices.astype(np.int32, copy=False)


def _fold_nulls(
    dictionary: Column, validity: NDArray[np.uint8] | None, codes: NDArray[np.int32]
) -> tuple[NDArray[np.uint8] | None, int, NDArray[np.int32]]:
    """Return the rows' validity, null count and codes. Rows whose dictionary entry is null become nulls."""
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
    """Return the validity bitmap and the null count of ``length`` rows from ``offset`` on. No nulls give None and 0."""
    bits = array.buffer(0, (offset + length + 7) // 8)
    if bits is None:
        if array.null_count > 0:
            raise SchemaError(f"an Arrow array claims {array.null_count} nulls but has no validity bitmap")
        return None, 0
    if offset % 8 == 0:
        bits = bits[offset // 8 :]
    else:
        shifted_bits = np.zeros((length + 7) // 8, np.uint8)
        loops.copy_bits(bits, offset, length, shifted_bits)
        bits = shifted_bits
    null_count = length - loops.count_bits(bits, length)
    if length == array.length and array.null_count not in (-1, null_count):
        raise SchemaError(f"an Arrow array claims {array.null_count} nulls but has {null_count}")
    return (bits, null_count) if null_count else (None, 0)


def _zeroed_nulls(values: NDArray[Any], validity: NDArray[np.uint8] | None) -> NDArray[Any]:
    """Return values with zero bytes under nulls. They are copied only if the producer has non-zero bytes there."""
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
    values = _zeroed_nulls(array.values(1, arrow.dtype, offset, length), validity)
    return values if arrow.convert is None else arrow.convert(values)


def _read_bits(
    array: ForeignArray, arrow: ArrowType, offset: int, length: int, validity: NDArray[np.uint8] | None
) -> NDArray[np.bool_]:
    bits = array.values(1, _BYTE, offset // 8, (offset % 8 + length + 7) // 8)
    values = np.unpackbits(bits, count=offset % 8 + length, bitorder="little")[offset % 8 :]
    return _zeroed_nulls(values, validity).view(np.bool_)


def _read_offsets(
    array: ForeignArray, arrow: ArrowType, offset: int, length: int, validity: NDArray[np.uint8] | None
) -> BinaryOffsets:
    offsets = checked_offsets(array, arrow.dtype, offset, length)
    return BinaryOffsets(offsets, array.values(2, _BYTE, 0, int(offsets[-1])))


def checked_offsets(array: ForeignArray, dtype: np.dtype[Any], offset: int, length: int) -> NDArray[Any]:
    """Return the ``length + 1`` offsets from ``offset`` on.

    Raise SchemaError if one is negative or less than the previous one.
    """
    offsets = array.values(1, dtype, offset, length + 1)
    place = loops.bad_offset(offsets)
    if place >= 0:
        raise SchemaError(f"offset {place} of an Arrow array is {offsets[place]}, negative or less than the previous one")
    return offsets


def checked_list_views(
    array: ForeignArray, dtype: np.dtype[Any], offset: int, length: int, validity: NDArray[np.uint8] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the starts and sizes of ``length`` list views from ``offset`` on. Both are 0 under nulls.

    Raises:
        SchemaError: a view is outside the elements.
    """
    starts = _zeroed_nulls(array.values(1, dtype, offset, length), validity).astype(np.int64)
    sizes = _zeroed_nulls(array.values(2, dtype, offset, length), validity).astype(np.int64)
    is_outside = (starts < 0) | (sizes < 0) | (starts > array.child(0).length - sizes)
    if is_outside.any():
        raise SchemaError(f"Arrow list view {int(np.argmax(is_outside))} is outside the elements")
    return starts, sizes


def _read_views(
    array: ForeignArray, arrow: ArrowType, offset: int, length: int, validity: NDArray[np.uint8] | None
) -> BinaryViews:
    count = array.n_buffers - 3
    sizes: NDArray[np.int64] = array.values(array.n_buffers - 1, np.dtype(np.int64), 0, count)
    if count and int(sizes.min()) < 0:
        raise SchemaError(f"a data buffer of Arrow string views has the negative size {int(sizes.min())}")
    buffers = [array.values(2 + i, _BYTE, 0, size) for i, size in enumerate(sizes.tolist())]
    views = array.values(1, arrow.dtype, offset, length)
    place = loops.bad_view(views.view(np.uint8), validity, sizes)
    if place >= 0:
        raise SchemaError(f"Arrow string view {place} points outside its buffer or is not padded with zeros")
    return BinaryViews(_zeroed_nulls(views, validity), buffers)


_READERS: dict[FormatLayout, Any] = {
    FormatLayout.BITS: _read_bits,
    FormatLayout.FIXED: _read_fixed,
    FormatLayout.OFFSETS: _read_offsets,
    FormatLayout.VIEWS: _read_views,
}
