"""How a column type is stored in pages and held in memory: the numbers that the page loop works with."""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from fastpq.schema.types import ColumnType, Decimal, Integer, Timestamp, Type

VIEW_WIDTH = 16

_STORED_WIDTH = {Type.BOOLEAN: 1, Type.INT32: 4, Type.INT64: 8, Type.INT96: 12, Type.FLOAT: 4, Type.DOUBLE: 8}
_UNITS_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}


class Conversion(IntEnum):
    """The values of ``Conversion`` in convert.pxd."""

    COPY = 0
    SIGNED = 1
    UNSIGNED = 2
    BOOLEAN = 3
    TIMESTAMP96 = 4
    DECIMAL = 5
    VARIABLE = 6
    VARIABLE_DECIMAL = 7


class Layout(NamedTuple):
    """Widths in bytes of one value in a PLAIN page (0 where it varies) and in memory, and the way between them.

    ``units`` is the number of ticks in a second of an INT96 column's values in memory, else 0; ``digits`` is how many a decimal
    may have, 0 of what is no decimal.
    """

    conversion: Conversion
    stored_width: int
    width: int
    units: int = 0
    text: bool = False
    physical: Type = Type.BYTE_ARRAY
    digits: int = 0


@lru_cache(maxsize=4096)        # asked for every chunk of a column
def layout_of(column_type: ColumnType) -> Layout:
    """The Layout of a column type."""
    digits = column_type.logical.precision if isinstance(column_type.logical, Decimal) else 0
    return _layout_of(column_type)._replace(physical=column_type.physical, digits=digits)


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
