"""Null count, minimum and maximum of a column, from statistics if possible; the caller's function reads the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fastpq.arrays.layouts import BinaryOffsets
from fastpq.arrays.numpy_output import fixed_values
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.strings import to_objects
from fastpq.arrays.table import Column
from fastpq.errors import KeyAccessError, SchemaError
from fastpq.filters.evidence import chunk_bounds, claims_of, exact_bounds
from fastpq.filters.literals import FloatDomain, IntegerDomain, SortKey, domain_of
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.schema.types import ColumnType, Unknown
from fastpq.stats.bounds import order_of
from fastpq.stats.statistics import Order

ReadColumn = Callable[[list[int]], Column]      # reads the column in the row groups of the given numbers


def null_count(metadata: FileMetaData, column: ColumnDescriptor, read: ReadColumn) -> int:
    """The number of nulls of a column; reads only row groups without a trusted null count in their statistics."""
    if isinstance(column.logical_type, Unknown):        # always null
        return sum(group.num_rows for group in metadata.row_groups)
    known, unknown = 0, []
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        try:
            count = chunk_bounds(claims_of(metadata, column, group.column(column.index), group.num_rows))[0].null_count
        except KeyAccessError:
            count = None
        if count is None:
            unknown.append(index)
        else:
            known += count
    return known + (read(unknown).null_count if unknown else 0)


def smallest_and_largest(metadata: FileMetaData, column: ColumnDescriptor, type_: ColumnType, read: ReadColumn) -> Column | None:
    """A column of the smallest and the largest value of a column; reads only row groups without exact bounds in their statistics.

    Args:
        metadata: metadata of the file.
        column: a flat column.
        type_: the column's type in memory.
        read: reads the column in some row groups.

    Returns:
        Both values, without the Arrow field; None for a column without values. NaNs are left out.

    Raises:
        SchemaError: the column has no order.
    """
    domain = domain_of(type_)
    if order_of(column.type) == Order.ORDER_NONE and not isinstance(domain, IntegerDomain):
        raise SchemaError(f"the values of a {column.type} column have no order", column=column.name)
    keys: list[SortKey] = []
    unknown = []
    for index in range(metadata.num_row_groups):
        group = metadata.row_group(index)
        try:
            claims = claims_of(metadata, column, group.column(column.index), group.num_rows)
            if chunk_bounds(claims)[0].all_null:
                continue
            found = exact_bounds(claims)
        except KeyAccessError:
            found = None
        if found is None:
            unknown.append(index)
        else:
            keys += found
    if unknown:
        keys += _extremes(read(unknown))
    return column_of([min(keys), max(keys)], type_) if keys else None


def extreme_values(column: Column) -> tuple[Any, Any]:
    """The smallest and the largest value of a flat column in memory; (None, None) for nulls and NaNs alone."""
    keys = _extremes(column)
    if not keys:
        return None, None
    low, high = column_of([min(keys), max(keys)], column.type).with_arrow(column.arrow).to_pylist()
    return low, high


def _extremes(column: Column) -> list[SortKey]:
    """The keys of the smallest and the largest value; an empty list for a column of nulls and NaNs alone."""
    domain = domain_of(column.type)
    column = column.take(np.flatnonzero(column.validity_mask())) if column.null_count else column
    if column.type.is_variable:
        raw = [value for value in to_objects(SliceReader(column.values), False).tolist() if value is not None]
        return [min(raw), max(raw)] if raw else []
    values = fixed_values(column)
    if isinstance(domain, FloatDomain):
        values = values[~np.isnan(values)]
        return [(0, float(values.min())), (0, float(values.max()))] if len(values) else []
    if not len(values):
        return []
    if values.dtype.kind != "V":
        return [int(values.min()), int(values.max())]
    stored, width = values.tobytes(), values.dtype.itemsize
    items = [stored[at : at + width] for at in range(0, len(stored), width)]
    keys = [int.from_bytes(item, "little", signed=True) for item in items] if isinstance(domain, IntegerDomain) else items
    return [min(keys), max(keys)]


def values_of(keys: list[SortKey], type_: ColumnType) -> list[Any]:
    """Keys converted back to Python objects of the column type."""
    return column_of(keys, type_).to_pylist()


def column_of(keys: list[SortKey], type_: ColumnType) -> Column:
    """A column of the values of keys."""
    if type_.is_variable:
        offsets = np.cumsum([0, *map(len, keys)]).astype(np.int64)
        return Column(type_, BinaryOffsets(offsets, np.frombuffer(b"".join(keys), np.uint8)))
    dtype = type_.dtype
    assert dtype is not None
    domain = domain_of(type_)
    if isinstance(domain, FloatDomain):
        return Column(type_, np.array([number for _, number in keys], dtype))
    if dtype.kind == "V":
        if isinstance(domain, IntegerDomain):
            keys = [key.to_bytes(dtype.itemsize, "little", signed=True) for key in keys]
        return Column(type_, np.frombuffer(b"".join(keys), dtype))
    return Column(type_, np.array(keys, dtype))
