"""Decimals that are stored as INT32 or INT64, but have 16 bytes in memory, as Arrow's decimal128 has (``decimals="decimal128"``).

In memory they have the type that an imported decimal128 column has. The page decoder makes the 16 bytes of a value
(``Conversion.WIDE_DECIMAL``), so that an export to Arrow copies nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.allowance import Allowance
from fastpq.arrays.nested_columns import map_leaves
from fastpq.arrays.table import AnyColumn, Column, DictionaryValues
from fastpq.schema.nested_types import DataType, ListType, MapType, StructType
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.schema.types import ColumnType, Decimal, Type


def is_narrow_decimal(type_: DataType) -> bool:
    """Return whether values of a type are decimals with 4 or 8 bytes in memory."""
    return isinstance(type_, ColumnType) and isinstance(type_.logical, Decimal) and type_.physical in (Type.INT32, Type.INT64)


def is_wide_decimal(type_: DataType) -> bool:
    """Return whether values of a type are decimals with 16 bytes in memory that a FIXED_LEN_BYTE_ARRAY stores."""
    if not isinstance(type_, ColumnType) or not isinstance(type_.logical, Decimal):
        return False
    return type_.physical is Type.FIXED_LEN_BYTE_ARRAY and type_.dtype == np.dtype("V16")


@lru_cache(maxsize=256)
def wide_type(type_: ColumnType) -> ColumnType:
    """Return the type that decimals of INT32 or INT64 have when they are widened.

    Different types have different objects, so that ``ChunkOpener`` can tell INT32 columns from INT64 columns by them.
    """
    from fastpq.arrow.formats import decimal_length

    decimal = cast(Decimal, type_.logical)
    return ColumnType(Type.FIXED_LEN_BYTE_ARRAY, decimal_length(decimal.precision), decimal)


def wide_types(leaves: Iterable[ColumnDescriptor]) -> dict[int, ColumnType]:
    """Return the types of the leaves that are widened, by leaf number. Leaves of a VARIANT keep their types."""
    return {
        leaf.index: wide_type(leaf.type)
        for leaf in leaves
        if leaf.element.type in (Type.INT32, Type.INT64) and is_narrow_decimal(leaf.type) and not _is_in_variant(leaf)
    }


def _is_in_variant(leaf: ColumnDescriptor) -> bool:
    group = leaf.parent
    while group is not None:
        logical = group.element.logicalType
        if logical is not None and logical.VARIANT is not None:
            return True
        group = group.parent
    return False


def with_wide_decimals(column: AnyColumn, allowance: Allowance | None = None) -> AnyColumn:
    """Return a column whose decimals of 4 or 8 bytes, at every level of nesting, have 16 bytes. VARIANT columns do not change.

    Args:
        column: the column.
        allowance: counts the new memory. None counts nothing.
    """
    if not _has_narrow_decimals(column.type):
        return column
    return map_leaves(partial(_widened, allowance=allowance), column, variants=False)


def _has_narrow_decimals(type_: DataType) -> bool:
    match type_:
        case StructType(fields, annotation):
            return annotation != "VARIANT" and any(_has_narrow_decimals(field.type) for field in fields)
        case ListType(element):
            return _has_narrow_decimals(element.type)
        case MapType():
            return _has_narrow_decimals(type_.entry.type)
    return is_narrow_decimal(type_)


def _widened(column: Column, allowance: Allowance | None) -> Column:
    if not is_narrow_decimal(column.type):
        return column
    if isinstance(column.values, DictionaryValues):
        entries = _widened(column.values.dictionary, allowance)
        values = DictionaryValues(column.values.codes, entries, column.values.is_ordered)
        return column._with(type=entries.type, values=values)
    from fastpq.arrow.casts import widen_decimals

    narrow = np.ascontiguousarray(cast("NDArray[np.int64]", column.values))
    wide = widen_decimals(narrow)
    if allowance is not None:
        wide = allowance.hold(wide.view(np.uint8)).view(wide.dtype)
    return column._with(type=wide_type(column.type), values=wide)
