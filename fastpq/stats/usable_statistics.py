"""UsableStatistics: which statistics of a column can be used. This depends on its value order and on the writer's bugs."""

from __future__ import annotations

from typing import NamedTuple

from fastpq import format as fmt
from fastpq.metadata.column_chunk import ColumnOrders
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.metadata.legacy_calendar import CalendarRule
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.stats.bounds import FLOAT_ORDERS, order_of
from fastpq.stats.statistics import Order
from fastpq.stats.writer_bugs import (
    bounds_are_trusted,
    deprecated_bounds_are_trusted,
    infinities_are_trusted,
    null_counts_are_trusted,
)


class UsableStatistics(NamedTuple):
    """Tells which kinds of statistics can be used for a column.

    Attributes:
        bounds: whether min_value and max_value in statistics, and the page bounds in a page index, can be used.
        deprecated_bounds: whether min and max in statistics can be used.
        infinities: whether a bound is never the largest finite float in the place of an infinity.
        null_counts: whether null_count in statistics, and null_counts in a page index, can be used.
        order: the order in which the column's values are compared.
        calendar: what happens to bounds that are stored in another calendar, or None.
    """

    bounds: bool
    deprecated_bounds: bool
    infinities: bool
    null_counts: bool
    order: Order
    calendar: CalendarRule | None = None

    def bounds_of(self, statistics: fmt.Statistics) -> tuple[bytes | None, bytes | None]:
        """Return minimum and maximum. One that is absent or cannot be used is None."""
        if statistics.min_value is None and statistics.max_value is None:
            return (statistics.min, statistics.max) if self.deprecated_bounds else (None, None)
        return (statistics.min_value, statistics.max_value) if self.bounds else (None, None)

    def null_count_of(self, statistics: fmt.Statistics) -> int | None:
        """Return the null count, or None if it is absent or cannot be used. parquet-mr writes -1 for an unknown count."""
        if not self.null_counts or statistics.null_count == -1:
            return None
        return statistics.null_count


def usable_statistics_of(metadata: FileMetaData | ColumnOrders, column: ColumnDescriptor) -> UsableStatistics:
    """Return which statistics of a column can be used.

    Args:
        metadata: the file's footer, or its column orders.
        column: the column.
    """
    type_ = column.type
    return UsableStatistics(
        _is_ordered(metadata, column) and bounds_are_trusted(metadata.created_by, type_),
        deprecated_bounds_are_trusted(type_),
        infinities_are_trusted(metadata.created_by, type_),
        null_counts_are_trusted(metadata.created_by, type_),
        order_of(type_),
        metadata.calendar.rule(type_),
    )


def _is_ordered(metadata: FileMetaData | ColumnOrders, column: ColumnDescriptor) -> bool:
    """Return whether a column's bounds have a known order (parquet.thrift, ColumnOrder)."""
    if order_of(column.type) == Order.ORDER_NONE or not _has_known_annotation(column):
        return False
    order = metadata.column_order(column.index)
    if order is None:
        return False
    if order.IEEE_754_TOTAL_ORDER is not None:
        return order_of(column.type) in FLOAT_ORDERS
    return order.TYPE_ORDER is not None


def _has_known_annotation(column: ColumnDescriptor) -> bool:
    """Return False if fastpq does not know the column's logical type. The column's order is then unknown too."""
    element = column.element
    return column.type.logical is not None or (element.logicalType is None and element.converted_type is None)
