"""Trust: the kinds of statistics of a column with a known order and without known mistakes of the file's writer."""

from __future__ import annotations

from typing import NamedTuple

from fastpq import format as fmt
from fastpq.metadata.file_metadata import ColumnOrders, FileMetaData
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.stats.bounds import order_of
from fastpq.stats.quirks import bounds_are_trusted, deprecated_bounds_are_trusted, null_counts_are_trusted
from fastpq.stats.statistics import Order

FLOAT_ORDERS = (Order.ORDER_FLOAT16, Order.ORDER_FLOAT, Order.ORDER_DOUBLE)


class Trust(NamedTuple):
    """The usable kinds of statistics of a column.

    Attributes:
        bounds: min_value and max_value of statistics, and the bounds of pages.
        deprecated_bounds: min and max of statistics.
        null_counts: null_count of statistics.
        order: order of the column's values.
    """

    bounds: bool
    deprecated_bounds: bool
    null_counts: bool
    order: Order

    def bounds_of(self, statistics: fmt.Statistics) -> tuple[bytes | None, bytes | None]:
        """The usable minimum and maximum in statistics; None for unusable ones."""
        if statistics.min_value is None and statistics.max_value is None:
            return (statistics.min, statistics.max) if self.deprecated_bounds else (None, None)
        return (statistics.min_value, statistics.max_value) if self.bounds else (None, None)

    def null_count_of(self, statistics: fmt.Statistics) -> int | None:
        """The usable null count in statistics; -1 is the unknown count of parquet-mr."""
        if not self.null_counts or statistics.null_count == -1:
            return None
        return statistics.null_count


def trust_in(metadata: FileMetaData | ColumnOrders, column: ColumnDescriptor) -> Trust:
    """The usable kinds of statistics of a column, by its order and the file's writer.

    Args:
        metadata: footer of the file, or its orders of columns.
        column: the column.
    """
    type_ = column.type
    return Trust(
        _is_ordered(metadata, column) and bounds_are_trusted(metadata.created_by, type_),
        deprecated_bounds_are_trusted(type_),
        null_counts_are_trusted(metadata.created_by, type_),
        order_of(type_),
    )


def _is_ordered(metadata: FileMetaData | ColumnOrders, column: ColumnDescriptor) -> bool:
    """Whether the bounds of a column are in a known order (parquet.thrift, ColumnOrder)."""
    if order_of(column.type) == Order.ORDER_NONE or not _has_known_annotation(column):
        return False
    order = metadata.column_order(column.index)
    if order is None:
        return False
    if order.IEEE_754_TOTAL_ORDER is not None:
        return order_of(column.type) in FLOAT_ORDERS
    return order.TYPE_ORDER is not None


def _has_known_annotation(column: ColumnDescriptor) -> bool:
    """False for a column with a logical type unknown to fastpq; its order is unknown, too."""
    element = column.element
    return column.type.logical is not None or (element.logicalType is None and element.converted_type is None)
