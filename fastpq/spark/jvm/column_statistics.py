"""Statistics of columns for Spark's planner, from the statistics of footers: nulls, bounds, and a bound of distinct values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import types as st

from fastpq.errors import KeyAccessError, ParquetError
from fastpq.filters.evidence import chunk_bounds, claims_of
from fastpq.filters.predicate import Bounds
from fastpq.schema.tree import ColumnDescriptor
from fastpq.schema.types import Timestamp, Type
from fastpq.spark.batches import columns_by_name
from fastpq.spark.footers import MOST_CHUNKS, Footers
from fastpq.spark.jvm.aggregates import as_json
from fastpq.spark.listing import ListedFile
from fastpq.spark.types import spark_type

_COUNTED = (st.ByteType, st.ShortType, st.IntegerType, st.LongType, st.DateType)      # a bound of their distinct values is known


def column_statistics(files: Sequence[ListedFile], footers: Footers, schema: st.StructType) -> dict[str, dict[str, Any]]:
    """For each flat column, ``nulls``, ``min``, ``max`` and ``distinct`` as JSON for Values.java; without unknown ones.

    Above MOST_CHUNKS column chunks, or if a footer cannot be read, there are none.
    """
    try:
        if sum(footers.of(file).num_row_groups for file in files) * len(schema.fields) > MOST_CHUNKS:
            return {}
        found = {part.name: _of_column(files, footers, part) for part in schema.fields}
    except (ParquetError, OSError):
        return {}
    return {name: entry for name, entry in found.items() if entry}


def _of_column(files: Sequence[ListedFile], footers: Footers, part: st.StructField) -> dict[str, Any]:
    bounds: list[Bounds] = []
    is_alike = True
    for file in files:
        footer = footers.of(file)
        column = columns_by_name(footer.schema, [part.name]).get(part.name)
        if not isinstance(column, ColumnDescriptor) or not column.is_flat:
            return {}
        is_alike = is_alike and _has_units_of(column, part.dataType)
        try:
            bounds += [
                chunk_bounds(claims_of(footer, column, group.column(column.index), group.num_rows))[0]
                for group in footer.row_groups
            ]
        except KeyAccessError:      # a planner without the column's key
            return {}
    entry: dict[str, Any] = {}
    nulls = [one.null_count for one in bounds if one.null_count is not None]
    if len(nulls) == len(bounds):
        entry["nulls"] = sum(nulls)
    with_values = [one for one in bounds if not one.all_null]
    ends = [(one.minimum, one.maximum) for one in with_values if isinstance(one.minimum, int) and isinstance(one.maximum, int)]
    if ends and len(ends) == len(with_values) and is_alike:
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
        entry |= {"min": as_json(low, part.dataType), "max": as_json(high, part.dataType)}
        rows = sum(one.num_values or 0 for one in with_values)
        entry["distinct"] = min(rows, high - low + 1) if isinstance(part.dataType, _COUNTED) else rows
    return entry


def _has_units_of(column: ColumnDescriptor, wanted: st.DataType) -> bool:
    """Whether the bounds of a column are whole numbers in the units of a Spark type."""
    stored = column.type
    is_coarse = isinstance(stored.logical, Timestamp) and stored.logical.unit != "us"
    if is_coarse or stored.physical in (Type.INT96, Type.BOOLEAN):
        return False
    known = (*_COUNTED, st.DecimalType, st.TimestampType, st.TimestampNTZType)
    return isinstance(wanted, known) and spark_type(stored) == wanted
