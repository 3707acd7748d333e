"""Lookups: conditions that leave few rows, which planning reads itself; Spark then runs no task for them.

Conditions are counted on the columns they name, in the pages that evidence leaves. Only conditions that fastpq judges as Spark
does make a lookup, for Spark does not apply them again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import types as st

from fastpq.errors import KeyAccessError, ParquetError
from fastpq.filters.predicate import And
from fastpq.schema import types as pt
from fastpq.schema.tree import ColumnDescriptor
from fastpq.spark.batches import FileScan, ScanPlan, scan_split
from fastpq.spark.filters import columns_of
from fastpq.spark.footers import MOST_CHUNKS
from fastpq.spark.jvm.aggregates import as_json, is_ordered_alike
from fastpq.spark.jvm.survivors import survivor_of, survivors
from fastpq.spark.listing import ListedFile
from fastpq.spark.options import ReadOptions
from fastpq.spark.planning import Split

MOST_FILES = 4
MOST_CANDIDATES = 1 << 18       # rows whose values conditions are judged on
MOST_BYTES = 16 << 20           # stored bytes of the pages to read, for conditions and for the rows
_SIMPLE = (
    st.BooleanType, st.ByteType, st.ShortType, st.IntegerType, st.LongType, st.FloatType, st.DoubleType, st.DecimalType,
    st.DateType, st.TimestampType, st.TimestampNTZType, st.StringType, st.BinaryType,
)


def is_lookup(
    conditions: Sequence[Any],
    files: Sequence[ListedFile],
    table: st.StructType,
    partition: Mapping[str, st.DataType],
    options: ReadOptions,
) -> bool:
    """Whether conditions leave few rows of few files, and mean the same for fastpq as for Spark.

    Args:
        conditions: trees of all conditions of a scan.
        files: files of the dataset.
        table: Spark schema of the dataset.
        partition: types of the partition columns.
        options: options of the read.
    """
    if options.filters is not None or not options.lookup_rows:
        return False
    plan = _plan(conditions, st.StructType(), partition, options)
    near = _near(conditions, files, partition, options)
    rows = 0
    try:
        for file in near or ():
            for found in scan_split(Split(file, None, file.size), plan, lambda scan: _matches(scan, table)):
                if found is None or (rows := rows + found) > options.lookup_rows:
                    return False
    except (ParquetError, OSError):     # the task that reads the file raises the error
        return False
    return near is not None


def lookup_rows(
    conditions: Sequence[Any],
    files: Sequence[ListedFile],
    schema: st.StructType,
    partition: Mapping[str, st.DataType],
    options: ReadOptions,
) -> list[list[Any]] | None:
    """The rows of a lookup as JSON for Values.java; None where tasks have to read them.

    Args:
        conditions: as for is_lookup, which was true.
        files: as for is_lookup.
        schema: Spark schema of the rows.
        partition: as for is_lookup.
        options: as for is_lookup.

    Raises:
        FileNotFoundError: a file was deleted after planning.
        ParquetError: as in fastpq.errors, with the file's path, row group and column.
    """
    near = _near(conditions, files, partition, options)
    if near is None or not all(isinstance(part.dataType, _SIMPLE) for part in schema.fields):
        return None
    plan = _plan(conditions, schema, partition, options)
    rows: list[list[Any]] = []
    try:
        for file in near:
            for batch in scan_split(Split(file, None, file.size), plan, _batches):
                if batch is None or len(rows) + batch.num_rows > options.lookup_rows:
                    return None
                columns = (_as_json(array, part.dataType) for array, part in zip(batch.columns, schema.fields, strict=True))
                rows += map(list, zip(*columns, strict=True)) if batch.num_columns else [[]] * batch.num_rows
    except KeyAccessError:      # executors may have keys that the driver lacks
        return None
    return rows


def _plan(
    conditions: Sequence[Any], schema: st.StructType, partition: Mapping[str, st.DataType], options: ReadOptions
) -> ScanPlan:
    return ScanPlan(
        schema,
        tuple(partition.items()),
        And(*conditions),
        service=options.service,
        ignore_missing_files=options.ignore_missing_files,
        time_zone=options.time_zone,
    )


def _near(
    conditions: Sequence[Any], files: Sequence[ListedFile], partition: Mapping[str, st.DataType], options: ReadOptions
) -> list[ListedFile] | None:
    """The files that folders do not rule out; None for many."""
    left = [one.file for one in survivors(files, conditions, partition, options.time_zone, None)]
    return left if len(left) <= MOST_FILES else None


def _groups(scan: FileScan) -> tuple[int, ...] | None:
    """Row groups that the statistics of the footer leave; None for all."""
    return survivor_of(scan.split.file, scan.file.metadata, scan.plan.filters.children, scan.constants).row_groups


def _matches(scan: FileScan, table: st.StructType) -> Iterator[int | None]:
    """Number of the rows for which the filters hold; None where these are judged on many rows, or otherwise than by Spark."""
    columns = {name: table[name].dataType for name in columns_of(scan.plan.filters)}
    chunks = scan.file.metadata.num_row_groups * len(scan.plan.filters.children)
    is_alike = all(_is_judged_alike(scan, name, type_) for name, type_ in columns.items())
    if chunks > MOST_CHUNKS or scan.calendar.is_hybrid or not is_alike:
        yield None
        return
    filters, groups = scan.wanted(), _groups(scan)
    if filters is False or groups == ():
        yield 0
        return
    expected = scan.file.explain(filters, (), row_groups=groups)
    if sum(group.rows for group in expected.row_groups) > MOST_CANDIDATES or expected.bytes_read > MOST_BYTES:
        yield None
        return
    yield from (batch.num_rows for batch in scan.tables_of(filters, groups))


def _is_judged_alike(scan: FileScan, name: str, wanted: st.DataType) -> bool:
    """Whether the values of a column, as they are filtered, are those of the Spark type."""
    if name in scan.constants:
        return not isinstance(wanted, st.FloatType | st.DoubleType)
    column = scan.nodes.get(name)
    if not isinstance(column, ColumnDescriptor) or not column.is_flat:
        return False
    physical = column.type.physical
    if isinstance(wanted, st.FloatType):
        return physical == pt.Type.FLOAT
    if isinstance(wanted, st.DoubleType):
        return physical == pt.Type.DOUBLE
    if isinstance(wanted, st.StringType) and physical != pt.Type.BYTE_ARRAY:
        return False
    return is_ordered_alike(column, wanted)


def _batches(scan: FileScan) -> Iterator[pa.RecordBatch | None]:
    """The rows of a file; None where many bytes have to be read."""
    filters, groups = scan.wanted(), _groups(scan)
    if filters is False or groups == ():
        return
    if scan.file.explain(filters, scan.leaves(), row_groups=groups).bytes_read > MOST_BYTES:
        yield None
        return
    scan.split = replace(scan.split, row_groups=groups)
    yield from scan.batches()


def _as_json(array: pa.Array, type_: st.DataType) -> list[Any]:
    match type_:
        case st.FloatType():
            return [None if value is None else str(*struct.unpack("<i", struct.pack("<f", value))) for value in array.to_pylist()]
        case st.DoubleType():
            return [None if value is None else str(*struct.unpack("<q", struct.pack("<d", value))) for value in array.to_pylist()]
        case st.DateType():
            array = array.cast(pa.int32())
        case st.TimestampType() | st.TimestampNTZType():
            array = array.cast(pa.int64())
    return [as_json(value, type_) for value in array.to_pylist()]
