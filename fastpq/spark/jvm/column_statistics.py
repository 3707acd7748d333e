"""Statistics of columns for Spark's planner, from the statistics of footers: nulls, bounds, and a bound of distinct values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import types as st

from fastpq.errors import KeyAccessError, ParquetError
from fastpq.filters.evidence import chunk_bounds, claims_of
from fastpq.filters.predicate import Bounds
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.schema.tree import ColumnDescriptor, SchemaNode
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
    found = {part.name: _Gathered(part.dataType) for part in schema.fields}
    chunks = 0
    try:
        for file in files:      # each footer once: more files than Footers keeps are opened anew for each question
            footer = footers.of(file)
            chunks += footer.num_row_groups * len(found)
            if chunks > MOST_CHUNKS:
                return {}
            columns = columns_by_name(footer.schema, list(found))
            found = {name: one for name, one in found.items() if one.add(footer, columns.get(name))}
    except (ParquetError, OSError):
        return {}
    entries = {name: one.entry() for name, one in found.items()}
    return {name: entry for name, entry in entries.items() if entry}


class _Gathered:
    """Bounds of a column in all row groups of the files so far."""

    def __init__(self, type_: st.DataType) -> None:
        self.type = type_
        self.bounds: list[Bounds] = []
        self.is_alike = True

    def add(self, footer: FileMetaData, column: SchemaNode | None) -> bool:
        """Add a file; False where the column has no statistics in it."""
        if not isinstance(column, ColumnDescriptor) or not column.is_flat:
            return False
        self.is_alike = self.is_alike and _has_units_of(column, self.type)
        try:
            self.bounds += [
                chunk_bounds(claims_of(footer, column, group.column(column.index), group.num_rows))[0]
                for group in footer.row_groups
            ]
        except KeyAccessError:      # a planner without the column's key
            return False
        return True

    def entry(self) -> dict[str, Any]:
        """Statistics of the column, as JSON."""
        return _entry(self.bounds, self.type, self.is_alike)


def _entry(bounds: Sequence[Bounds], type_: st.DataType, is_alike: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {}
    nulls = [one.null_count for one in bounds if one.null_count is not None]
    if len(nulls) == len(bounds):
        entry["nulls"] = sum(nulls)
    with_values = [one for one in bounds if not one.all_null]
    ends = [(one.minimum, one.maximum) for one in with_values if isinstance(one.minimum, int) and isinstance(one.maximum, int)]
    if ends and len(ends) == len(with_values) and is_alike:
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
        entry |= {"min": as_json(low, type_), "max": as_json(high, type_)}
        rows = sum(one.num_values or 0 for one in with_values)
        entry["distinct"] = min(rows, high - low + 1) if isinstance(type_, _COUNTED) else rows
    return entry


def _has_units_of(column: ColumnDescriptor, wanted: st.DataType) -> bool:
    """Whether the bounds of a column are whole numbers in the units of a Spark type."""
    stored = column.type
    is_coarse = isinstance(stored.logical, Timestamp) and stored.logical.unit != "us"
    if is_coarse or stored.physical in (Type.INT96, Type.BOOLEAN):
        return False
    known = (*_COUNTED, st.DecimalType, st.TimestampType, st.TimestampNTZType)
    return isinstance(wanted, known) and spark_type(stored) == wanted
