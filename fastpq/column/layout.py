"""How a column type's values look in pages and in memory, and the conversion between the two."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fastpq.encodings.registry import readable_encodings
from fastpq.errors import UnsupportedError
from fastpq.schema.types import ColumnType, Decimal, Integer, Time, Timestamp, Type

# Returns a verdict (uint8) for each value. The arguments are the values (uint8, Layout.width bytes each) and the views' buffers.
Judge: TypeAlias = "Callable[[np.ndarray[Any, Any], list[np.ndarray[Any, Any]]], np.ndarray[Any, Any]]"

VIEW_WIDTH = 16
CODE_WIDTH = 4
DECIMAL128_WIDTH = 16

_STORED_WIDTH = {Type.BOOLEAN: 1, Type.INT32: 4, Type.INT64: 8, Type.INT96: 12, Type.FLOAT: 4, Type.DOUBLE: 8}
_UNITS_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_SECONDS_PER_DAY = 86_400


class Conversion(IntEnum):
    """The conversions. stored_values.pxd describes them, and has the same numbers."""

    COPY = 0
    SIGNED = 1
    UNSIGNED = 2
    BOOLEAN = 3
    TIMESTAMP96 = 4
    DECIMAL = 5
    VARIABLE = 6
    VARIABLE_DECIMAL = 7
    WIDE_DECIMAL = 8


class OutsideUnitError(UnsupportedError):
    """An INT96 timestamp does not fit the unit that its column has in memory."""


class Layout(NamedTuple):
    """How a column type's values look in pages and in memory.

    Attributes:
        conversion: the conversion between pages and memory.
        stored_width: bytes that a value takes in a PLAIN page; 0 for variable-length values.
        width: bytes that a value takes in memory.
        units: ticks per second, for INT96 timestamps in memory; 0 for other columns.
        text: whether values are UTF-8.
        physical: the column's physical type.
        digits: most digits that a decimal may have; 0 for other columns.
        ticks: ticks per day, to check times of day; 0 for other columns, and without a check.
        encodings: a bit for each encoding that fastpq reads for the physical type (``readable_encodings``).
        codes: whether variable-length values are dictionary codes in memory.
        converted_width: bytes that a value takes after its conversion, if it is converted later than it is decoded; otherwise 0.
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
    converted_width: int = 0

    def with_codes(self) -> Layout:
        """Return the layout for the same values as dictionary codes."""
        return self._replace(width=CODE_WIDTH, codes=True)

    def as_stored(self) -> Layout:
        """Return the layout that keeps each value in memory as its stored bytes, to be converted later."""
        return self._replace(conversion=Conversion.COPY, width=self.stored_width, units=0, converted_width=self.width)

    def as_decimal128(self) -> Layout:
        """Return the layout for decimals of INT32 or INT64 that have 16 bytes in memory."""
        return self._replace(conversion=Conversion.WIDE_DECIMAL, width=DECIMAL128_WIDTH)


@lru_cache(maxsize=4096)
def layout_of(column_type: ColumnType) -> Layout:
    """Return the Layout for a column type."""
    logical = column_type.logical
    digits = logical.precision if isinstance(logical, Decimal) else 0
    ticks = _SECONDS_PER_DAY * _UNITS_PER_SECOND[logical.unit] if isinstance(logical, Time) else 0
    encodings = readable_encodings(column_type.physical)
    return _layout_of(column_type)._replace(
        physical=column_type.physical, digits=digits, ticks=ticks, encodings=encodings)


def _layout_of(column_type: ColumnType) -> Layout:
    stored_width = _stored_width(column_type)
    if column_type.is_variable:
        return Layout(Conversion.VARIABLE, 0, VIEW_WIDTH, text=column_type.is_text)
    dtype = column_type.dtype
    assert dtype is not None
    if column_type.physical is Type.BOOLEAN:
        return Layout(Conversion.BOOLEAN, stored_width, dtype.itemsize)
    if column_type.physical is Type.INT96 and column_type.length is None:
        unit = column_type.logical.unit if isinstance(column_type.logical, Timestamp) else "ns"
        return Layout(Conversion.TIMESTAMP96, stored_width, dtype.itemsize, _UNITS_PER_SECOND[unit])
    if isinstance(column_type.logical, Decimal) and column_type.physical is Type.FIXED_LEN_BYTE_ARRAY:
        return Layout(Conversion.DECIMAL, stored_width, dtype.itemsize)
    if isinstance(column_type.logical, Decimal) and column_type.physical is Type.BYTE_ARRAY:
        return Layout(Conversion.VARIABLE_DECIMAL, 0, dtype.itemsize)
    if isinstance(column_type.logical, Integer) and dtype.itemsize < stored_width:
        return Layout(Conversion.SIGNED if column_type.logical.signed else Conversion.UNSIGNED, stored_width, dtype.itemsize)
    return Layout(Conversion.COPY, stored_width, dtype.itemsize)


def _stored_width(column_type: ColumnType) -> int:
    if column_type.physical is Type.FIXED_LEN_BYTE_ARRAY:
        return column_type.length or 0
    return _STORED_WIDTH.get(column_type.physical, 0)
