"""Layouts of strings, binary values and dictionaries for an Arrow consumer."""

from __future__ import annotations

import numpy as np

from fastpq.arrays.nodes import FieldNode
from fastpq.arrays.table import BinaryOffsets, BinaryViews, Column, DictionaryValues
from fastpq.arrow.formats import index_dtype
from fastpq.arrow.restoring import dictionary_of_numbers

_INT32_MAX = 2**31 - 1
_BINARY_LAYOUTS = frozenset(("u", "z", "U", "Z", "vu", "vz"))


def with_layout(column: Column, request: FieldNode | None) -> Column:
    """``column`` in the requested layout; without a request, values other than offsets in their earlier Arrow layout."""
    wanted = request
    if request is None and not isinstance(column.values, BinaryOffsets | DictionaryValues):
        wanted = column.arrow
    if wanted is not None and wanted.dictionary is not None and not isinstance(column.values, DictionaryValues):
        column = _as_dictionary(column, wanted)
    elif wanted is not None and column.type.arrow_format in ("vu", "vz"):
        column = _with_binary_layout(column, wanted.format)
    if isinstance(column.values, DictionaryValues):
        # All consumers take dictionaries of offsets, few take dictionaries of views; a dictionary is small enough to convert.
        dictionary = column.values.dictionary
        if dictionary.type.is_variable:
            stored = wanted if wanted is not None and wanted.dictionary is not None else column.arrow
            text = "u" if stored is None or stored.dictionary is None else stored.dictionary.format
            laid_out = _with_binary_layout(dictionary, text if text in _BINARY_LAYOUTS else "u")
            column = column._with(values=DictionaryValues(column.values.codes, laid_out, column.values.is_ordered))
    return column


def _as_dictionary(column: Column, wanted: FieldNode) -> Column:
    if column.type.is_variable:
        return column.as_dictionary()
    values = column.values
    if not isinstance(values, np.ndarray) or values.dtype.itemsize not in (1, 2, 4, 8):
        return column
    encoded = dictionary_of_numbers(column, np.iinfo(index_dtype(wanted)).max)
    return column if encoded is None else encoded


def _with_binary_layout(column: Column, text: str) -> Column:
    """``column`` in the layout of a format; unchanged where the format is not one of strings or binary."""
    if text in ("vu", "vz"):
        return column if isinstance(column.values, BinaryViews) else column.as_views()
    return _with_offsets(column, wide=text in "UZ") if text in _BINARY_LAYOUTS else column


def _with_offsets(column: Column, *, wide: bool) -> Column:
    """``column`` with int64 offsets (wide), or with int32 offsets unless its data is too large."""
    if not isinstance(column.values, BinaryOffsets):
        column = column.as_offsets(wide=True) if wide else column.as_offsets()
    values = column.values
    assert isinstance(values, BinaryOffsets)
    if not wide and int(values.offsets[-1]) > _INT32_MAX:
        return column
    offsets = values.offsets.astype(np.int64 if wide else np.int32, copy=False)
    return column._with(values=BinaryOffsets(offsets, values.data))
