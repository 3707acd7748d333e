"""Aggregates that Spark's plan leaves to executors: row counts, value counts, smallest and largest values.

A file part has one row with such aggregates, which Spark combines. Statistics in the footer give them where they are exact.
Otherwise the column is read. Values compare as in Spark: NaN is the largest number, and the first one counts among equal zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as st

from fastpq.spark.core import ColumnDescriptor, ParquetFile, SchemaNode, Type, pt
from fastpq.spark.jvm.memory_types import memory_schema
from fastpq.spark.scan.file_scan import FileScan, ScanPlan
from fastpq.spark.scan.splits import Split
from fastpq.spark.tables.spark_types import as_arrow, spark_type

# Types whose bounds in statistics are values in the Spark type, in Spark's order. For floats, statistics leave NaNs out, and do
# not tell whether a zero is negative.
_ORDERED_ALIKE = (
    st.BooleanType, st.ByteType, st.ShortType, st.IntegerType, st.LongType, st.DateType, st.TimestampType, st.TimestampNTZType,
    st.DecimalType, st.StringType, st.BinaryType,
)


@dataclass(frozen=True)
class PartialAggregate:
    """An aggregate over the rows in a file part.

    Attributes:
        kind: ``rows``, ``count`` (values that are not null), ``min`` or ``max``.
        column: the column's name. ``rows`` has none.
    """

    kind: str
    column: str | None = None


@dataclass
class _Summary:
    """What is known about a column's values: their number, and arrays whose values include the smallest and the largest."""

    count: int
    candidates: list[pa.Array]


class PartAggregation:
    """The aggregates over the rows in some row groups.

    Args:
        file: the file.
        split: its row groups. The caller names them all.
        plan: the scan's plan, whose schema has the columns that are aggregated.
    """

    def __init__(self, file: ParquetFile, split: Split, plan: ScanPlan) -> None:
        self._file, self._split, self._plan = file, split, plan
        self._groups: Sequence[int] = split.row_groups or ()

    @property
    def num_rows(self) -> int:
        """Row count."""
        return sum(self._file.metadata.row_group(number).num_rows for number in self._groups)

    def row(self, aggregates: Sequence[PartialAggregate]) -> list[pa.Array]:
        """Return an array with one value for each aggregate.

        Raises:
            ParquetError: as if the columns were read.
        """
        names = dict.fromkeys(aggregate.column for aggregate in aggregates if aggregate.column is not None)
        with_bounds = {aggregate.column for aggregate in aggregates if aggregate.kind in ("min", "max")}
        summaries = {name: self._summary(name, name in with_bounds) for name in names}
        return [self._value(aggregate, summaries) for aggregate in aggregates]

    def _value(self, aggregate: PartialAggregate, summaries: Mapping[str, _Summary]) -> pa.Array:
        if aggregate.column is None:
            return pa.array([self.num_rows], pa.int64())
        summary = summaries[aggregate.column]
        if aggregate.kind == "count":
            return pa.array([summary.count], pa.int64())
        if not summary.candidates:
            return pa.nulls(1, memory_schema(self._schema_of(aggregate.column)).field(0).type)
        return lowest_and_highest(pa.concat_arrays(summary.candidates)).slice(aggregate.kind == "max", 1)

    def _schema_of(self, name: str) -> st.StructType:
        return st.StructType([self._plan.schema[name]])

    def _summary(self, name: str, has_bounds: bool) -> _Summary:
        schema = self._schema_of(name)
        scan = FileScan(self._file, self._split, replace(self._plan, schema=schema, arrow=memory_schema(schema)))
        summary = _Summary(0, [])
        if name not in scan.nodes:
            return summary
        groups_to_read = [number for number in self._groups if not _add_statistics(summary, scan, name, number, has_bounds)]
        for table in scan.tables_of(None, groups_to_read) if groups_to_read else ():
            array = scan.conformed(as_arrow(table[scan.nodes[name].element.name]), scan.field(name))
            summary.count += len(array) - array.null_count
            if has_bounds and array.null_count < len(array):
                summary.candidates.append(lowest_and_highest(array))
        return summary


def _add_statistics(summary: _Summary, scan: FileScan, name: str, row_group: int, has_bounds: bool) -> bool:
    """Add what the footer says about a row group. Return False if that is not all, so that the row group has to be read."""
    group, node = scan.file.metadata.row_group(row_group), scan.nodes[name]
    if not group.num_rows:
        return True
    if not isinstance(node, ColumnDescriptor) or not node.is_flat or scan.calendar.is_hybrid:
        return False
    statistics = group.column(node.index).statistics
    null_count = 0 if node.max_definition_level == 0 else None if statistics is None else statistics.null_count
    if null_count is None:
        return False
    if has_bounds and null_count < group.num_rows:
        if not has_spark_order(node, scan.types[name]) or statistics is None:
            return False
        if not (statistics.is_min_exact and statistics.is_max_exact):
            return False
        try:
            bounds = pa.array([statistics.min, statistics.max], scan.field(name).type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):        # a date or a moment that Python does not have
            return False
        summary.candidates.append(bounds)
    summary.count += group.num_rows - null_count
    return True


def has_spark_order(node: SchemaNode, type_: st.DataType) -> bool:
    """Return whether the bounds in a column's statistics are values in a Spark type, in its units and its order."""
    if not isinstance(node, ColumnDescriptor) or not isinstance(type_, _ORDERED_ALIKE) or node.type.physical == Type.INT96:
        return False
    if isinstance(type_, st.BinaryType) and (node.type.logical is not None or node.type.physical != Type.BYTE_ARRAY):
        return False
    if isinstance(node.type.logical, pt.Timestamp) and node.type.logical.unit != "us":
        return False
    return spark_type(node.type) == type_


def lowest_and_highest(array: pa.Array) -> pa.Array:
    """Return an array with the smallest and the largest value.

    Args:
        array: values in a type that Spark orders. At least one is not null.
    """
    if not pa.types.is_floating(array.type):
        bounds = pc.min_max(array)
        return pa.concat_arrays([pa.repeat(bounds["min"], 1), pa.repeat(bounds["max"], 1)])
    values = array.drop_null().to_numpy(zero_copy_only=False)
    is_nan = np.isnan(values)
    numbers = values[~is_nan] if is_nan.any() else values
    low = numbers[numbers.argmin()] if len(numbers) else values[0]
    high = values[is_nan.argmax()] if is_nan.any() else values[values.argmax()]
    return pa.array(np.array([low, high], values.dtype), array.type)
