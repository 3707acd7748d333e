"""Null count, minimum and maximum of a column. Exact statistics give them. Otherwise the values are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fastpq.arrays.flat_column import fixed_values
from fastpq.arrays.layouts import BinaryOffsets
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.strings import to_objects
from fastpq.arrays.table import Column
from fastpq.errors import KeyAccessError, SchemaError
from fastpq.filters.evidence import chunk_bounds, claims_of, exact_bounds
from fastpq.filters.literals import FloatDomain, IntegerDomain, SortKey, domain_of
from fastpq.index.chunk_claims import ChunkMetadataClaims
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.schema.types import ColumnType, Unknown
from fastpq.stats.bounds import order_of
from fastpq.stats.statistics import Order

ReadColumn = Callable[[list[int]], Column]      # reads the column in the row groups with these numbers


def null_count(metadata: FileMetaData, column: ColumnDescriptor, read: ReadColumn) -> int:
    """Return the number of nulls in a column. Only row groups without a usable null count are read."""
    if isinstance(column.logical_type, Unknown):        # always null
        return sum(group.num_rows for group in metadata.row_groups)
    null_count, groups_to_read = 0, []
    for index, claims in enumerate(_claims_of_groups(metadata, column)):
        count = None if claims is None else chunk_bounds(claims)[0].null_count
        if count is None:
            groups_to_read.append(index)
        else:
            null_count += count
    return null_count + (read(groups_to_read).null_count if groups_to_read else 0)


def _claims_of_groups(metadata: FileMetaData, column: ColumnDescriptor) -> Iterator[ChunkMetadataClaims | None]:
    """Yield what the file says about the column's chunk in each row group, or None if the key for its metadata is missing."""
    for group in metadata.row_groups:
        try:
            yield claims_of(metadata, column, group.column(column.index), group.num_rows)
        except KeyAccessError:
            yield None


def smallest_and_largest(metadata: FileMetaData, column: ColumnDescriptor, type_: ColumnType, read: ReadColumn) -> Column | None:
    """Return the smallest and the largest value of a column. Only row groups without exact bounds are read.

    Args:
        metadata: metadata of the file.
        column: a flat column.
        type_: the column's type in memory.
        read: reads the column in some row groups.

    Returns:
        Both values, without the Arrow field, or None for a column without values. NaNs are left out. A zero is returned as 0.0
        because statistics do not tell its sign (parquet.thrift, ColumnOrder).

    Raises:
        SchemaError: the column has no order.
    """
    domain = domain_of(type_)
    if order_of(column.type) == Order.ORDER_NONE and not isinstance(domain, IntegerDomain):
        raise SchemaError(f"the values in a column of {column.type} have no order", column=column.name)
    keys: list[SortKey] = []
    groups_to_read = []
    for index, claims in enumerate(_claims_of_groups(metadata, column)):
        if claims is not None and chunk_bounds(claims)[0].all_null:
            continue
        bounds = None if claims is None else exact_bounds(claims)
        if bounds is None:
            groups_to_read.append(index)
        else:
            keys += bounds
    if groups_to_read:
        column_read = read(groups_to_read)
        keys, type_ = keys + _extremes(column_read), column_read.type       # the values of INT96 columns choose their unit
    return column_of(_least_and_greatest(keys), type_) if keys else None


def extreme_values(column: Column) -> tuple[Any, Any]:
    """Return the smallest and the largest value of a flat column in memory, or (None, None) if it has only nulls and NaNs."""
    keys = _extremes(column)
    if not keys:
        return None, None
    low, high = column_of(_least_and_greatest(keys), column.type).with_arrow(column.arrow).to_pylist()
    return low, high


def _least_and_greatest(keys: list[SortKey]) -> list[SortKey]:
    """Return the smallest and the largest key. A zero becomes 0.0."""
    return [(0, key[1] + 0.0) if isinstance(key, tuple) else key for key in (min(keys), max(keys))]


def _extremes(column: Column) -> list[SortKey]:
    """Return the keys of the smallest and the largest value, or an empty list if there are only nulls and NaNs."""
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
    data, width = values.tobytes(), values.dtype.itemsize
    items = [data[at : at + width] for at in range(0, len(data), width)]
    keys = [int.from_bytes(item, "little", signed=True) for item in items] if isinstance(domain, IntegerDomain) else items
    return [min(keys), max(keys)]


def values_of(keys: list[SortKey], type_: ColumnType) -> list[Any]:
    """Convert keys to Python objects of the column type."""
    return column_of(keys, type_).to_pylist()


def column_of(keys: list[SortKey], type_: ColumnType) -> Column:
    """Return a column with the values that keys stand for."""
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
