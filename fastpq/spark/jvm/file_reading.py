"""Executor side of a scan for the JVM: decode a part of a file into batches, and describe where a batch has each column.

A column that already has the type that Spark wants keeps the layout in which fastpq decoded it. Any other column is converted
through Arrow, as in the Python source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from fastpq.spark.core import (
    And,
    FileMetaData,
    Outcome,
    ParquetError,
    ParquetFile,
    SchemaError,
    Table,
    Type,
    UnsupportedError,
    estimate_filters,
)
from fastpq.spark.jvm.batch_layout import BatchLayout
from fastpq.spark.jvm.conditions import condition_of, known_columns
from fastpq.spark.jvm.first_rows import FirstRows, candidates
from fastpq.spark.jvm.hadoop import Fetch, HadoopFile, is_local
from fastpq.spark.jvm.memory_types import memory_schema
from fastpq.spark.jvm.part_counts import PartCounts
from fastpq.spark.jvm.partial_aggregates import PartAggregation, PartialAggregate
from fastpq.spark.jvm.segments import LARGEST_BATCH_SIZE, segment_places
from fastpq.spark.jvm.settings import read_options_of, struct_of
from fastpq.spark.scan.file_scan import ColumnMapping, FileScan, ScanPlan, open_file
from fastpq.spark.scan.splits import Split
from fastpq.spark.sent import require_versions
from fastpq.spark.tables.listing import ListedFile
from fastpq.spark.tables.spark_types import as_arrow

# Seconds to apply a condition per second to decode its column (TPC-H queries 1, 3, 4, 6, 10, 12, 14, 15, 19)
FIXED_COST = 1.0
TEXT_COST = 12.0
MOST_KEPT = 0.5         # above this share of kept rows, it takes longer to pick rows than to decode all
FEW = 0.1       # if evidence leaves at most this share of the rows, fastpq always filters them itself
MAGIC_BYTES = 4
CONVERTS_INT96, PARQUET_JAVA = "spark.sql.parquet.int96TimestampConversion", "parquet-mr"
READS_BY_ID, FIELD_ID = "spark.sql.parquet.fieldId.read.enabled", '"parquet.field.id"'
LaidOutBatch = tuple[int, BatchLayout]      # row count, and the columns


@dataclass(frozen=True)
class PartPlan:
    """What all tasks of a scan for the JVM share.

    Attributes:
        scan: settings of the scan. Its schema has the columns that are read from files.
        row_index: name of the column for row numbers.
        converts_int96: whether INT96 timestamps are to be converted.
        aggregates: aggregates that stand for the rows of each part, or None if the rows themselves are read.
        limit: most rows that the query takes, or None for all.
        order: the first rows that the query takes in an order, or None for all.
        last_columns: the mapping for the file that was read last, or nothing. Files in a dataset mostly have one schema.
    """

    scan: ScanPlan
    row_index: str
    converts_int96: bool
    aggregates: tuple[PartialAggregate, ...] | None
    limit: int | None
    order: FirstRows | None
    last_columns: list[ColumnMapping] = field(default_factory=list, compare=False)


@lru_cache(8)       # plans of the running queries, each used by many tasks
def _plan_of(text: bytes) -> PartPlan:
    question = json.loads(text)
    require_versions(**question["versions"])
    options = read_options_of(question)
    pushdown = question["pushdown"]
    limit = pushdown.get("limit")
    schema_text = pushdown.get("columns", question["schema"])
    schema = struct_of(schema_text)
    if str(question["session"].get(READS_BY_ID)).lower() == "true" and FIELD_ID in schema_text:
        raise UnsupportedError(f"columns are matched by name, not by the identifiers of fields that {READS_BY_ID} asks for")
    columns = known_columns(struct_of(question["table"]))
    conditions = [condition_of(tree, columns) for tree in question["filters"]]
    trees = [condition.tree for condition in conditions if condition is not None]
    scan = ScanPlan(
        schema,
        pruning=And(*trees) if trees else None,
        batch_rows=min(options.batch_rows, max(limit, 1)) if limit is not None else options.batch_rows,
        service=options.service,
        on_missing_key=options.on_missing_key,
        names="exact" if question["session"].get("spark.sql.caseSensitive") == "true" else "any case",
        arrow=memory_schema(schema),
    )
    aggregates = None
    if "aggregates" in pushdown:
        names = struct_of(question["schema"]).names
        aggregates = tuple(PartialAggregate(*pushdown["aggregates"][name]) for name in names)
    converts_int96 = str(question["session"].get(CONVERTS_INT96)).lower() == "true"
    order = FirstRows(**pushdown["order"]) if "order" in pushdown else None
    return PartPlan(scan, question["rowIndex"], converts_int96, aggregates, limit, order)


class FilePart:
    """A part of a file that one task reads.

    Args:
        plan: the scan's plan, as JSON (FastpqFileFormat.java).
        part: path, start, length and size of the file, as JSON.
        fetch: function for requests to the JVM, for a file that is not local.
    """

    def __init__(self, plan: bytes, part: bytes, fetch: Fetch) -> None:
        self._plan = _plan_of(plan)
        about = json.loads(part)
        self._path: str = about["path"]
        self._start, self._end = int(about["start"]), int(about["start"]) + int(about["length"])
        self._size = int(about["size"])
        self._fetch = fetch
        self._file: ParquetFile | None = None
        self._counts = PartCounts()

    def counts(self) -> dict[str, int]:
        """Return what was counted so far, for the JVM."""
        return self._counts.message(0 if self._file is None else self._file.io.bytes_read)

    def batches(self) -> Iterator[LaidOutBatch]:
        """Yield the row count and the layout for each batch. After the query's limit there is none.

        Raises:
            FileNotFoundError: the file was deleted after planning.
            ParquetError: as in fastpq.errors, with the file's path and column.
        """
        num_rows = 0
        for rows, layout in self._counts.timed(self._all_batches()):
            yield rows, layout
            num_rows += rows
            if self._plan.limit is not None and num_rows >= self._plan.limit:
                return

    def _all_batches(self) -> Iterator[LaidOutBatch]:
        plan = self._plan.scan
        try:
            where: Any = self._path if is_local(self._path) else HadoopFile(self._fetch, self._path)
            with open_file(where, plan.service, "views", plan.on_missing_key, self._path) as self._file:
                groups = self._row_groups(self._file.metadata)
                if groups:
                    self._check_int96(self._file)
                    split = Split(ListedFile(self._path, self._size), groups, self._size)
                    columns = self._plan.last_columns
                    scan = FileScan(self._file, split, plan, columns[0] if columns else None)
                    columns[:] = [scan.columns]
                    yield from self._of_groups(scan, groups)
        except ParquetError as error:
            raise error.at(path=self._path) from error.__cause__

    def _check_int96(self, file: ParquetFile) -> None:
        """Check that a setting does not ask for another time zone of INT96 timestamps, as for files of Impala.

        Raises:
            UnsupportedError: the setting asks for it, and the file has INT96 columns and is not one of parquet-java's.
        """
        is_foreign = PARQUET_JAVA not in (file.metadata.created_by or "")
        if self._plan.converts_int96 and is_foreign and any(column.element.type == Type.INT96 for column in file.schema.columns):
            raise UnsupportedError(f"INT96 timestamps are read as UTC; {CONVERTS_INT96}=true asks for another time zone")

    def _row_groups(self, metadata: FileMetaData) -> tuple[int, ...]:
        """Return the row groups whose middle is in the part. The last part of a file takes all that are behind it, too."""
        numbers, place = [], MAGIC_BYTES
        is_last = self._end >= self._size
        for number, group in enumerate(metadata.row_groups):
            size = group.total_compressed_size or group.total_byte_size
            middle = place + size // 2
            if self._start <= middle and (middle < self._end or is_last):
                numbers.append(number)
            place += size
        return tuple(numbers)

    def _of_groups(self, scan: FileScan, groups: Sequence[int]) -> Iterator[LaidOutBatch]:
        if self._plan.aggregates is not None or not scan.plan.schema.fields:
            self._counts.add_groups(len(groups), len(groups))
            yield from self._without_columns(scan, groups)
            return
        filters, matching_groups = self._matching_groups(scan, groups)
        self._counts.add_groups(len(groups), len(matching_groups))
        if self._plan.row_index not in scan.plan.schema.names:
            for table in scan.tables_of(filters, matching_groups) if matching_groups else ():
                yield from self._laid_out(scan, table, 0)
            return
        for number in matching_groups:       # without filters, which would leave out rows that count
            row = sum(scan.file.metadata.row_group(before).num_rows for before in range(number))
            for table in scan.tables_of(None, (number,)):
                yield from self._laid_out(scan, table, row)
                row += table.num_rows

    def _without_columns(self, scan: FileScan, groups: Sequence[int]) -> Iterator[LaidOutBatch]:
        """Yield row counts, or the aggregates that the query takes instead of rows."""
        if self._plan.aggregates is not None:
            yield from self._aggregated(scan, self._plan.aggregates)
            return
        for number in groups:
            if rows := scan.file.metadata.row_group(number).num_rows:
                yield rows, BatchLayout()

    def _aggregated(self, scan: FileScan, aggregates: Sequence[PartialAggregate]) -> Iterator[LaidOutBatch]:
        """Yield one row of aggregates for the part, or none for a part without rows, which is in no group of the query."""
        part = PartAggregation(scan.file, scan.split, scan.plan)
        if part.num_rows:
            layout = BatchLayout()
            for array in part.row(aggregates):
                layout.add(array)
            yield 1, layout

    def _matching_groups(self, scan: FileScan, groups: Sequence[int]) -> tuple[Any, Sequence[int]]:
        """Return the filters that fastpq applies, and the row groups that may have rows for the query.

        Spark applies its plan's conditions again, so fastpq applies them only where that saves time.
        """
        filters = scan.wanted()
        if filters is False:
            return None, ()
        if filters is None and self._plan.order is not None:
            return candidates(scan, self._plan.order, groups)
        if filters is None:
            return None, self._first_groups(scan.file.metadata, groups)
        evidence = scan.file.explain(filters, (), row_groups=groups).row_groups
        groups = tuple(group.row_group for group in evidence if group.outcome is not Outcome.NONE)
        num_candidates, rows = sum(group.rows for group in evidence), sum(group.num_rows for group in evidence)
        if num_candidates > rows * FEW and not is_worth_filtering(scan.file.metadata, filters, groups, scan.leaves()):
            filters = None
        else:
            self._counts.add_pages(evidence)
        return filters, groups

    def _first_groups(self, metadata: FileMetaData, groups: Sequence[int]) -> Sequence[int]:
        """Return the row groups that have enough rows for the query's limit."""
        if self._plan.limit is None:
            return groups
        num_rows = np.cumsum([metadata.row_group(number).num_rows for number in groups])
        return groups[: int(np.searchsorted(num_rows, self._plan.limit)) + 1]

    def _laid_out(self, scan: FileScan, table: Table, first_row: int, *, is_part: bool = False) -> Iterator[LaidOutBatch]:
        """Yield a table as one batch. A table of more than LARGEST_BATCH_SIZE bytes becomes several batches, of a row at least.

        Args:
            scan: the scan of the file.
            table: decoded rows.
            first_row: the number of the first row in the file.
            is_part: whether the rows are a part of a table that is too large.
        """
        rows, layout = table.num_rows, self._layout(scan, table, first_row, shares_buffers=not is_part)
        size = segment_places(layout.buffers)[1]
        if size <= LARGEST_BATCH_SIZE or rows == 1:
            yield rows, layout
            return
        del layout
        step = max(1, min(rows * LARGEST_BATCH_SIZE // size, rows - 1))
        for start in range(0, rows, step):
            numbers = np.arange(start, min(start + step, rows))
            columns = {name: column.take(numbers) for name, column in table.items()}     # a slice of lists keeps all elements
            yield from self._laid_out(scan, Table(columns, num_rows=len(numbers)), first_row + start, is_part=True)

    def _layout(self, scan: FileScan, table: Table, first_row: int, *, shares_buffers: bool) -> BatchLayout:
        """Describe a table's columns.

        Args:
            scan: the scan of the file.
            table: decoded rows.
            first_row: the number of the first row in the file.
            shares_buffers: whether a column may keep fastpq's layout. In this layout, text keeps whole pages alive. If False, the
                columns hold only the bytes of their own rows.
        """
        layout = BatchLayout()
        for part in scan.plan.schema.fields:
            if part.name == self._plan.row_index:
                layout.add(pa.array(np.arange(first_row, first_row + table.num_rows)))
            elif part.name not in scan.nodes:
                layout.add_missing(table.num_rows)
            else:
                column = table[scan.nodes[part.name].element.name]
                is_plain = shares_buffers and part.name not in scan.int96
                if not (is_plain and layout.add_column(column, scan.types[part.name])):
                    layout.add(scan.conformed(as_arrow(column), scan.field(part.name)))
        return layout


def is_worth_filtering(
    metadata: FileMetaData, filters: object, row_groups: Sequence[int], columns: Sequence[int]
) -> bool:
    """Return whether it takes less time to leave out rows in fastpq than to hand over all rows in the row groups.

    Spark's compiled code takes a few nanoseconds to apply a condition to a row. fastpq reads the filtered columns first, and then
    the other columns only in matching rows. This saves time if few rows match and there are many other columns.

    Args:
        metadata: the file's footer.
        filters: conditions on the file's columns.
        row_groups: numbers of the row groups to read.
        columns: numbers of the columns to read.
    """
    if not row_groups:
        return True
    try:
        estimate = estimate_filters(filters, metadata, row_groups[0])
    except (SchemaError, UnsupportedError):     # for example, a value that does not have the unit of an INT96 column in memory
        return True
    cost = sum(TEXT_COST if column.type.is_variable else FIXED_COST for column in estimate.columns.values())
    others = len(set(columns) - estimate.columns.keys())
    return others * (1 - estimate.share / MOST_KEPT) > cost
