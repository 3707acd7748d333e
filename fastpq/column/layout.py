"""The widths and the conversion of a column type between pages and memory, for the page loop."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fastpq.encodings.registry import readable_encodings
from fastpq.errors import UnsupportedError
from fastpq.schema.types import ColumnType, Decimal, Integer, Time, Timestamp, Type

# Verdicts (uint8) on values (uint8, Layout.width bytes each) with the buffers of their views.
Judge: TypeAlias = "Callable[[np.ndarray[Any, Any], list[np.ndarray[Any, Any]]], np.ndarray[Any, Any]]"

VIEW_WIDTH = 16
CODE_WIDTH = 4

_STORED_WIDTH = {Type.BOOLEAN: 1, Type.INT32: 4, Type.INT64: 8, Type.INT96: 12, Type.FLOAT: 4, Type.DOUBLE: 8}
_UNITS_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_SECONDS_PER_DAY = 86_400


class Conversion(IntEnum):
    """The values of ``Conversion`` in stored_values.pxd."""

    COPY = 0
    SIGNED = 1
    UNSIGNED = 2
    BOOLEAN = 3
    TIMESTAMP96 = 4
    DECIMAL = 5
    VARIABLE = 6
    VARIABLE_DECIMAL = 7


class OutsideUnitError(UnsupportedError):
    """An INT96 timestamp is outside of the unit chosen for its column in memory."""


class Layout(NamedTuple):
    """Widths of one value in bytes, and the conversion between pages and memory.

    Attributes:
        conversion: a Conversion.
        stored_width: in a PLAIN page; 0 for values of variable length.
        width: in memory.
        units: ticks a second of an INT96 column's values in memory; 0 for other columns.
        text: whether values are UTF-8.
        physical: the physical type of the column.
        digits: most digits of a decimal; 0 for other columns.
        ticks: ticks of a day, for a column of times; 0 for other columns, and without a check.
        encodings: a bit for each encoding that is read for the physical type (``readable_encodings``).
        codes: whether values of variable length are codes in memory, into a dictionary of their chunk.
    """

    conversion: Conversion
    stored_width: int
    width: int
    units: int = 0
    text: bool = False
    physical: Type = Type.BYTE_ARRAY
    digits: int = 0
    ticks: int = 0
    encodings: int = 0
    codes: bool = False

    def coded(self) -> Layout:
        """The layout of the same values as codes."""
        return self._replace(width=CODE_WIDTH, codes=True)


@lru_cache(maxsize=4096)
def layout_of(column_type: ColumnType) -> Layout:
    """The Layout of a column type."""
    logical = column_type.logical
    digits = logical.precision if isinstance(logical, Decimal) else 0
    ticks = _SECONDS_PER_DAY * _UNITS_PER_SECOND[logical.unit] if isinstance(logical, Time) else 0
    encodings = readable_encodings(column_type.physical)
    return _layout_of(column_type)._replace(
        physical=column_type.physical, digits=digits, ticks=ticks, encodings=encodings)


def _layout_of(column_type: ColumnType) -> Layout:
    stored = _stored_width(column_type)
    if column_type.is_variable:
        return Layout(Conversion.VARIABLE, 0, VIEW_WIDTH, text=column_type.is_text)
    dtype = column_type.dtype
    assert dtype is not None
    if column_type.physical is Type.BOOLEAN:
        return Layout(Conversion.BOOLEAN, stored, dtype.itemsize)
    if column_type.physical is Type.INT96:
        unit = column_type.logical.unit if isinstance(column_type.logical, Timestamp) else "ns"
        return Layout(Conversion.TIMESTAMP96, stored, dtype.itemsize, _UNITS_PER_SECOND[unit])
    if isinstance(column_type.logical, Decimal) and column_type.physical is Type.FIXED_LEN_BYTE_ARRAY:
        return Layout(Conversion.DECIMAL, stored, dtype.itemsize)
    if isinstance(column_type.logical, Decimal) and column_type.physical is Type.BYTE_ARRAY:
        return Layout(Conversion.VARIABLE_DECIMAL, 0, dtype.itemsize)
    if isinstance(column_type.logical, Integer) and dtype.itemsize < stored:
        return Layout(Conversion.SIGNED if column_type.logical.signed else Conversion.UNSIGNED, stored, dtype.itemsize)
    return Layout(Conversion.COPY, stored, dtype.itemsize)


def _stored_width(column_type: ColumnType) -> int:
    if column_type.physical is Type.FIXED_LEN_BYTE_ARRAY:
        return column_type.length or 0
    return _STORED_WIDTH.get(column_type.physical, 0)
