"""with_integer_decimals: stores decimals with few digits as INT32 or INT64, as pyarrow's option store_decimal_as_integer does.

Arrow data have decimals of 16 bytes. In a file, integers take more encodings than FIXED_LEN_BYTE_ARRAY does, and become smaller.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import cast

import numpy as np

from fastpq.arrays.flat_column import DictionaryValues
from fastpq.arrays.layouts import Array
from fastpq.arrays.nested_columns import map_leaves
from fastpq.arrays.table import Column, Table
from fastpq.convert.casting import decimal_type
from fastpq.errors import SchemaError
from fastpq.schema.types import ColumnType, Decimal, Type

MOST_DIGITS = 18        # of an INT64


def with_integer_decimals(table: Table, kept_names: Collection[str] = ()) -> Table:
    """Return the table with all decimals of at most 18 digits as integers, nested ones too. Other columns are the same objects.

    Args:
        table: the table.
        kept_names: columns that keep their type, because the caller chose it.

    Raises:
        SchemaError: a decimal has more digits than its column's precision.
    """
    names = [
        name for name, column in zip(table.names, table.columns, strict=True)
        if name not in kept_names and any(_is_convertible(leaf.type) for _, leaf in column.leaves())
    ]
    if not names:
        return table
    pairs = zip(table.names, table.columns, strict=True)
    return table._of(map_leaves(partial(_converted, name=name), column) if name in names else column for name, column in pairs)


def _is_convertible(type_: ColumnType) -> bool:
    logical, is_integer = type_.logical, type_.physical in (Type.INT32, Type.INT64)
    return isinstance(logical, Decimal) and logical.precision <= MOST_DIGITS and not is_integer


def _converted(column: Column, name: str) -> Column:
    if not _is_convertible(column.type):
        return column
    logical = cast(Decimal, column.type.logical)
    type_ = decimal_type(logical.precision, logical.scale)
    if isinstance(column.values, DictionaryValues):
        entries = _converted(column.values.dictionary, name)
        return column._with(type=type_, values=DictionaryValues(column.values.codes, entries, column.values.is_ordered))
    return column._with(type=type_, values=_integers(column, type_, name))


def _integers(column: Column, type_: ColumnType, name: str) -> Array:
    """Return the low bytes of decimals, after a check that the high bytes only repeat the sign."""
    dtype = type_.dtype
    assert dtype is not None
    values = np.ascontiguousarray(cast(Array, column.values))
    words = values.view("<i8").reshape(len(column), values.dtype.itemsize // 8)
    integers = words[:, 0].astype(dtype)
    is_wrong = words[:, 1] != integers >> dtype.itemsize * 8 - 1
    if dtype.itemsize < 8:
        is_wrong |= words[:, 0] != integers
    if is_wrong.any():
        is_wrong &= column.validity_mask()
        if is_wrong.any():
            message = f"a decimal in row {int(np.argmax(is_wrong))} has more digits than the precision of its column"
            raise SchemaError(message, column=name)
    return integers
