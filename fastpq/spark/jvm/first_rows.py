"""Executor side of ``order by ... limit n``: leave out rows that are not among the first n rows in a file part.

Spark sorts the remaining rows of all parts and takes the first n. It is therefore no error to hand over more rows than needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from pyspark.sql import types as st

from fastpq.spark.core import Column, ColumnDescriptor, Or
from fastpq.spark.jvm.memory_types import memory_schema
from fastpq.spark.jvm.partial_aggregates import has_spark_order
from fastpq.spark.scan.file_scan import FileScan

MOST_KEPT_ROWS = 0.1        # largest share of rows that is picked. For a larger share, it is faster to hand over all rows
# Types whose values in memory are integers in the order of the Spark type
_NUMBERS = (st.ByteType, st.ShortType, st.IntegerType, st.LongType, st.DateType, st.TimestampType, st.TimestampNTZType)


@dataclass(frozen=True)
class FirstRows:
    """A query's order, and how many rows it takes from the beginning of this order.

    Attributes:
        column: the first column of the order.
        is_descending: whether the largest values come first.
        has_nulls_first: whether nulls come before all values.
        rows: how many rows the query takes.
    """

    column: str
    is_descending: bool
    has_nulls_first: bool
    rows: int


@dataclass(frozen=True)
class _GroupBounds:
    """Bounds of the order column in a row group.

    Attributes:
        number: the row group's number.
        low, high: bounds, or None if they are unknown.
        num_values: count of values that are not null. It is 0 if the bounds are unknown.
        has_nulls: whether there may be nulls.
    """

    number: int
    low: Any
    high: Any
    num_values: int
    has_nulls: bool


def candidates(scan: FileScan, order: FirstRows, groups: Sequence[int]) -> tuple[Any, Sequence[int]]:
    """Return a filter for the first rows, and the row groups that may have such rows.

    Args:
        scan: the file's scan. It has no filters.
        order: the query's order and row count.
        groups: the row groups of the file part.

    Returns:
        (filter, row groups). The filter is None if the column allows none, or if it would not save time.
    """
    schema = st.StructType([scan.plan.schema[order.column]]) if order.column in scan.plan.schema.names else None
    if schema is None or scan.calendar.is_hybrid:
        return None, groups
    node, type_ = scan.nodes.get(order.column), scan.types[order.column]
    if not isinstance(node, ColumnDescriptor) or not node.is_flat or not has_spark_order(node, type_):
        return None, groups
    groups = _groups_with_candidates(_bounds(scan, node, groups), order)
    if not isinstance(type_, _NUMBERS):
        return None, groups
    column_scan = FileScan(scan.file, scan.split, replace(scan.plan, schema=schema, arrow=memory_schema(schema)))
    columns: list[Any] = [table[node.element.name] for table in column_scan.tables_of(None, groups)]
    return _filter(columns, order, node.element.name), groups


def _bounds(scan: FileScan, node: ColumnDescriptor, groups: Sequence[int]) -> list[_GroupBounds]:
    bounds = []
    for number in groups:
        group = scan.file.metadata.row_group(number)
        statistics = group.column(node.index).statistics
        null_count = 0 if node.max_definition_level == 0 else None if statistics is None else statistics.null_count
        if statistics is None or null_count is None or not statistics.has_min_max:
            bounds.append(_GroupBounds(number, None, None, 0, null_count != 0))
        else:
            values = group.num_rows - null_count
            bounds.append(_GroupBounds(number, statistics.min, statistics.max, values, null_count > 0))
    return bounds


def _groups_with_candidates(bounds: Sequence[_GroupBounds], order: FirstRows) -> list[int]:
    """Return the row groups that may have first rows.

    A row group is only left out if at least ``order.rows`` rows of other row groups come before all of its rows.
    """
    bounded_groups = [group for group in bounds if group.low is not None]
    bounded_groups.sort(key=lambda group: group.low if order.is_descending else group.high, reverse=order.is_descending)
    count, last = 0, None
    for group in bounded_groups:
        count += group.num_values
        if count >= order.rows:
            last = group.low if order.is_descending else group.high
            break
    if last is None:
        return [group.number for group in bounds]

    def may_have_first(group: _GroupBounds) -> bool:
        if group.low is None or (order.has_nulls_first and group.has_nulls):
            return True
        return bool(group.high >= last if order.is_descending else group.low <= last)

    return [group.number for group in bounds if may_have_first(group)]


def _filter(columns: Iterable[Column], order: FirstRows, name: str) -> Any:
    """Return a filter that keeps the rows whose values come first.

    Args:
        columns: the order column's values, in any number of parts.
        order: the query's order and row count.
        name: the column's name.

    Returns:
        The filter, or None if it would keep too many rows, or if there are fewer values than the query takes rows.
    """
    num_rows, has_nulls, best = 0, False, []
    for column in columns:
        num_rows += len(column)
        has_nulls |= column.null_count > 0
        values: Any = column.values
        if values.dtype.kind == "M":
            values = values.view(np.int64)
        places = np.flatnonzero(column.validity_mask()) if column.null_count else np.arange(len(column))
        if len(places) > order.rows:
            partition = np.argpartition(values[places], -order.rows if order.is_descending else order.rows - 1)
            places = places[partition[-order.rows :] if order.is_descending else partition[: order.rows]]
        best += [(int(values[place]), column, int(place)) for place in places.tolist()]
    if len(best) < order.rows or order.rows > num_rows * MOST_KEPT_ROWS:
        return None
    best.sort(key=lambda entry: entry[0], reverse=order.is_descending)
    _, column, place = best[order.rows - 1]
    (value,) = column.take(np.array([place])).to_pylist()
    condition = (name, ">=" if order.is_descending else "<=", value)
    return Or(condition, (name, "is null")) if order.has_nulls_first and has_nulls else [condition]
