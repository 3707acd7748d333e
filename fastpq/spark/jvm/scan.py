"""Executor side of a scan for the JVM: the batches of a task as layouts.

A column in the type that Spark wants is laid out as fastpq has decoded it; any other is converted through Arrow, as in the Python
source.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import lru_cache

from fastpq.arrays.table import Table
from fastpq.filters.predicate import Outcome
from fastpq.spark.batches import FileScan, ScanPlan, constant, scan_split
from fastpq.spark.handover import unexpected_nulls
from fastpq.spark.jvm.layout import BatchLayout
from fastpq.spark.jvm.parts import PartialAggregates, TaskParts
from fastpq.spark.jvm.selectivity import is_worth_filtering
from fastpq.spark.planning import Split
from fastpq.spark.types import as_arrow, nulls_of

FEW = 0.1       # share of rows that evidence leaves; of these, other columns are read in matching rows alone


MOST_PARTS = 10_000     # of sums, kept in memory


@lru_cache(4)       # plans of the scans of a query, each for many tasks
def _plan_of(pickled: bytes) -> tuple[ScanPlan, PartialAggregates | None]:
    plan: tuple[ScanPlan, PartialAggregates | None] = pickle.loads(pickled)
    return plan


def batches(plan: bytes, splits: bytes) -> Iterator[tuple[int, BatchLayout]]:
    """Rows and layout of each batch of a task.

    Args:
        plan: pickled ScanPlan, and the aggregates of which the task computes parts or None.
        splits: pickled splits of the task.

    Raises:
        FileNotFoundError: a file was deleted after planning.
        FormatError: nulls denied by the footers read in planning.
        ParquetError: as in fastpq.errors, with the file's path, row group and column.
    """
    chosen, aggregates = _plan_of(plan)
    task: tuple[Split, ...] = pickle.loads(splits)
    if aggregates is not None:
        yield from _parts(aggregates, task, chosen)
        return
    found = 0
    for split in task:
        for rows, layout in scan_split(split, chosen, _layouts, "views"):
            yield rows, layout
            found += rows
            if chosen.limit is not None and found >= chosen.limit:
                return


def _parts(aggregates: PartialAggregates, task: tuple[Split, ...], plan: ScanPlan) -> Iterator[tuple[int, BatchLayout]]:
    """Rows and layouts of the parts of aggregates of a task's rows: one batch, unless sums are cut into very many parts."""
    parts = TaskParts(aggregates)

    def tables(scan: FileScan) -> Iterator[tuple[FileScan, Table]]:
        return ((scan, table) for table in _tables(scan))

    for split in task:
        for scan, table in scan_split(split, plan, tables, "views"):
            parts.add(scan, table)
            if parts.num_rows > MOST_PARTS:
                yield parts.layout()
                parts = TaskParts(aggregates)
    yield parts.layout()


def _layouts(scan: FileScan) -> Iterator[tuple[int, BatchLayout]]:
    for table in _tables(scan):
        yield table.num_rows, _layout(scan, table)


def _tables(scan: FileScan) -> Iterator[Table]:
    """The rows of a file; conditions of Spark's plan, which Spark applies again, leave out rows where that saves time."""
    filters = scan.wanted()
    if filters is False:
        return
    groups = scan.split.row_groups
    if filters is not None and scan.plan.filters is None:
        found = scan.file.explain(filters, (), row_groups=groups).row_groups
        groups = tuple(group.row_group for group in found if group.outcome is not Outcome.NONE)
        candidates, rows = sum(group.rows for group in found), sum(group.num_rows for group in found)
        if candidates > rows * FEW and not is_worth_filtering(scan.file.metadata, filters, groups, scan.leaves()):
            filters = None
    yield from scan.tables_of(filters, groups)


def _layout(scan: FileScan, table: Table) -> BatchLayout:
    layout = BatchLayout()
    for part, wanted in zip(scan.plan.arrow, scan.plan.schema.fields, strict=True):
        if part.name in scan.constants:
            layout.add_constant(constant(scan.constants[part.name], part, 1), table.num_rows)
        elif part.name not in scan.nodes:
            if table.num_rows and part.name in scan.plan.handover.complete:
                raise unexpected_nulls(part.name, table.num_rows)
            layout.add(nulls_of(part, table.num_rows))
        else:
            column = table[scan.nodes[part.name].element.name]
            if column.null_count and part.name in scan.plan.handover.complete:
                raise unexpected_nulls(part.name, column.null_count)
            is_plain = part.nullable and part.name not in scan.int96
            if not (is_plain and layout.add_column(column, wanted.dataType)):
                layout.add(scan.conformed(as_arrow(column), part))
    return layout
