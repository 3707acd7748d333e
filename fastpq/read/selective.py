"""SelectiveScan: the rows of a file chosen by ranges and by a predicate.

Statistics and indexes rule out rows first. The columns of the predicate are then read and evaluated, and the other columns of
the result are read last, in the matching rows alone. A small read may take all columns at once.

Candidates are rows not ruled out by statistics and indexes (the evidence). A row group is decided if the evidence proves a match
for all of its rows or for none; only undecided row groups need the columns of the predicate.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.binary import total_size
from fastpq.arrays.concat import concat_columns
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.table import AnyColumn, BinaryViews, Table
from fastpq.common.progress import Meter, Progress, Span
from fastpq.errors import FormatError, LimitError, SchemaError, UnsupportedError
from fastpq.filters.predicate import Outcome, Predicate
from fastpq.index.page_locations import pages_of
from fastpq.index.ranges import RowRanges
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.costs import ALWAYS_HELD, MOST_DOUBTFUL_PAGES, MOST_SLACK, MOST_TOGETHER, MOST_WASTED
from fastpq.read.matching import Match, Matcher
from fastpq.read.outputs import Outputs
from fastpq.read.plan import GroupRows, ReadPlan, plan_pages, plan_read, plan_rows
from fastpq.read.scan import Scan
from fastpq.read.selection import GroupSelection, Selector
from fastpq.schema.parquet_schema import ColumnDescriptor, SchemaNode

R = TypeVar("R")
# Errors of a read at wrong places; of an encrypted file, whose wrong places are an attack, the error is a CryptoError.
MAY_BE_THE_INDEX = (FormatError, UnsupportedError, LimitError)


class SelectiveScan:
    """Reads rows of one file, chosen by ranges and by a predicate.

    Args:
        scan: scan of the file, with variable-length values as views.
        metadata: footer of the file.
        predicate: condition on the rows; None keeps all.
        columns: the columns of the result.
        finish: gives a column of the result its final layout.

    Attributes:
        select: chooses the candidates of row groups by evidence (``Selector.select``).
        every_column: the columns of the predicate, then the other columns of the result.
    """

    def __init__(
        self,
        scan: Scan,
        metadata: FileMetaData,
        predicate: Predicate | None,
        columns: Sequence[ColumnDescriptor],
        finish: Callable[[AnyColumn], AnyColumn],
    ) -> None:
        self._scan = scan
        self._finish = finish
        self._metadata = metadata
        self._predicate = predicate
        self._columns = list(columns)
        selector = Selector(scan.opener, metadata, predicate, columns)
        self.select = selector.select
        self.every_column = selector.every_column
        self._filtered = selector.filtered
        self._filter_columns = list(self._filtered.values())
        self._matcher = Matcher(scan, metadata, predicate, self._filtered, self._columns, self._part_bytes)
        self.plan(self.every_column, ())       # refuses unreadable columns before the first read

    def plan(self, columns: Sequence[ColumnDescriptor], row_groups: Iterable[int] | None) -> ReadPlan:
        """The plan of all rows of row groups."""
        return plan_read(self._metadata, columns, row_groups, self._scan.opener.source.size)

    def read(
        self,
        selections: Sequence[GroupSelection],
        threads: int,
        out: Mapping[str, Any] | None = None,
        order: NDArray[np.int64] | None = None,
        progress: Progress | None = None,
    ) -> Table:
        """The matching rows of all selections as one Table.

        Args:
            selections: results of ``select``: row groups in the order of the result, each with its candidates.
            threads: chunks decoded at the same time.
            out: arrays to read columns into, by name. Their length is the number of rows, unknown with a predicate.
            order: shape (rows of the result,), int64: for each row of the result, its number among the rows read; None keeps
                the rows as read.
            progress: called with the candidates done and all candidates.

        Raises:
            SchemaError: out together with a predicate, or arrays unfit for the columns.
        """
        if out is not None and self._predicate is not None:
            raise SchemaError("out with filters: the number of rows is not known before they are read")
        return _with_whole_chunks(selections, lambda known: self._read(known, threads, out, order, progress))

    def _read(
        self,
        selections: Sequence[GroupSelection],
        threads: int,
        out: Mapping[str, Any] | None,
        order: NDArray[np.int64] | None,
        progress: Progress | None,
    ) -> Table:
        candidates = sum(selection.pruning.rows.count for selection in selections)
        meter = Meter(progress, candidates)
        if self._may_read_together(selections):
            table = self._read_together(selections, threads, meter.span(candidates))
        else:
            matches = [match for match in self._matcher.match(selections, threads, meter) if match.group.rows.count]
            if self._predicate is None:
                table = self._read_all([match.group for match in matches], threads, out, order, meter.span(candidates))
            else:
                table = self._read_matches(matches, threads, meter.span(candidates - candidates // 2))
        meter.finish()
        return table

    def _read_matches(self, matches: Sequence[Match], threads: int, span: Span | None) -> Table:
        """The matching rows as a Table; columns already read for the predicate are not read again."""
        groups = [match.group for match in matches]
        known = {number for match in matches for number in match.columns}
        flat = [column for column in self._columns if column.is_flat and column.index in known]
        read = dict(self._read_rows([column for column in self._columns if column not in flat], groups, threads, span))
        read |= {column.top: self._joined(column, matches, threads) for column in flat}
        columns = [read[node] for node in self._nodes]
        return self._finished(self._table(columns, sum(group.rows.count for group in groups)))

    def _may_read_together(self, selections: Sequence[GroupSelection]) -> bool:
        """Whether to read all columns at once, before the predicate is evaluated.

        Reading at once saves a second round of reads, and costs the values of candidates without a match. All columns are read
        at once if the candidates have few values, and the other columns few bytes in pages with candidates in doubt (in a local
        file, also few of these pages).
        """
        kept = [selection for selection in selections if selection.pruning.outcome is not Outcome.NONE]
        undecided = [selection for selection in kept if selection.pruning.outcome is Outcome.SOME]
        chosen = {column.index for column in self._columns}
        if not undecided or not all(column.is_flat for column in self._filter_columns):
            return False
        if len(undecided) < len(kept) and not self._filtered.keys() <= chosen:
            return False        # decided row groups are read without the columns of the predicate
        is_remote, in_vain = self._scan.opener.source.is_remote, self._scan.opener.properties.round_trip_bytes
        together = max(MOST_TOGETHER, in_vain if is_remote else 0)
        if sum(selection.pruning.rows.count for selection in kept) * len(self.every_column) > together:
            return False
        if self._decoded_bytes(kept) > self._part_bytes:
            return False
        wasted = 0
        for selection in undecided:
            pruning = selection.pruning
            doubtful = pruning.rows & ~pruning.certain
            for column in chosen - self._filtered.keys():
                index = selection.offset_indexes.get(column)
                if index is None:
                    wasted += self._metadata.row_group(pruning.row_group).column(column).total_compressed_size
                    continue
                pages, size = pages_of(index.locations, doubtful)
                wasted += size
                if pages > MOST_DOUBTFUL_PAGES and not is_remote:
                    return False
        return wasted <= (in_vain if is_remote else MOST_WASTED)

    def _decoded_bytes(self, selections: Sequence[GroupSelection]) -> int:
        """Bytes of the chunks of all columns, by their metadata, after decompression."""
        groups = [self._metadata.row_group(selection.pruning.row_group) for selection in selections]
        return sum(group.column(column.index).total_uncompressed_size for group in groups for column in self.every_column)

    @property
    def _part_bytes(self) -> int:
        """Decompressed bytes read together while rows are chosen, far from the bound of the result."""
        return self._scan.opener.allowance.limit // 4

    def _read_together(self, selections: Sequence[GroupSelection], threads: int, span: Span | None) -> Table:
        """The matching rows as a Table; all columns of all candidates are fetched together, and the predicate chooses rows."""
        groups = [selection.group(selection.pruning.rows) for selection in selections if selection.pruning.rows.count]
        read = dict(self._read_rows(self.every_column, groups, threads, span))
        mask = self._matcher.mask({number: read[column.top].leaf(column.path[1:]) for number, column in self._filtered.items()})
        kept = None if mask.all() else np.flatnonzero(mask)
        columns = [read[node] if kept is None else read[node].take(kept) for node in self._nodes]
        return self._finished(self._table(columns, len(mask) if kept is None else len(kept)))

    def _read_all(
        self,
        groups: Sequence[GroupRows],
        threads: int,
        out: Mapping[str, Any] | None,
        order: NDArray[np.int64] | None,
        span: Span | None,
    ) -> Table:
        """All given rows of row groups as a Table, without a predicate.

        Args:
            groups: row groups in the order of the result, each with its rows.
            threads, out, order: as for ``read``.
            span: counts the rows.
        """
        plan = self._plan_rows(self._columns, groups)
        if out is not None:
            return self._finished(self._scan.read(plan, threads, Outputs(out, plan, self._scan.opener.types), span))
        read = [column for _, column in self._read_rows(self._columns, groups, threads, span)]
        if order is not None:
            read = [column.take(order) for column in read]
        return self._finished(self._table(read, plan.num_rows if order is None else len(order)))

    def batches(
        self, selections: Sequence[GroupSelection], batch_size: int, threads: int, progress: Progress | None = None
    ) -> Iterator[Table]:
        """The matching rows of all selections as Tables of batch_size rows; the last may have fewer.

        An undecided row group is read twice: the columns of the predicate WINDOW rows at a time, to find the matching rows, and
        then the columns of the result a batch at a time. Progress counts half of the candidates for each of the two reads.
        """
        returned = 0
        try:
            for table in self._batches(selections, batch_size, threads, progress):
                yield table
                returned += table.num_rows
        except MAY_BE_THE_INDEX:
            if not any(selection.offset_indexes for selection in selections):
                raise
            whole = [selection.without_pages() for selection in selections]
            again = self._batches(whole, batch_size, threads, progress)
            yield from itertools.islice(again, returned // batch_size, None)

    def _batches(
        self, selections: Sequence[GroupSelection], batch_size: int, threads: int, progress: Progress | None
    ) -> Iterator[Table]:
        waiting = self._nothing
        meter = Meter(progress, sum(selection.pruning.rows.count for selection in selections))
        for selection in selections:
            candidates = selection.pruning.rows.count
            half = candidates // 2 if selection.pruning.outcome is Outcome.SOME else 0
            rows = self._matcher.stream(selection, threads, meter.span(half))
            rest = meter.span(candidates - half)
            if not rows.count:
                meter.add(candidates - half)
                continue
            done = 0
            plan = self._plan_rows(self._columns, [selection.group(rows)])
            for table in self._scan.batches(plan, batch_size, threads, first=batch_size - waiting.num_rows):
                done += table.num_rows
                if rest is not None:
                    rest.reach(done, rows.count)
                whole = Table.concat([waiting, table]) if waiting.num_rows else table
                if whole.num_rows == batch_size:
                    yield self._finished(whole)
                    waiting = self._nothing
                else:
                    waiting = whole
        meter.finish()
        if waiting.num_rows:
            yield self._finished(waiting)

    def count(self, selections: Sequence[GroupSelection], threads: int) -> int:
        """Number of matching rows; row groups decided by evidence are counted without a read."""

        def counted(known: Sequence[GroupSelection]) -> int:
            return sum(match.group.rows.count for match in self._matcher.match(known, threads))

        return _with_whole_chunks(selections, counted)

    @cached_property
    def _nodes(self) -> list[SchemaNode]:
        """The columns of the result, in order, as nodes directly under the root."""
        return list(dict.fromkeys(column.top for column in self._columns))

    def _table(self, columns: Iterable[AnyColumn], num_rows: int) -> Table:
        """The result, of its columns in order."""
        names = [node.element.name for node in self._nodes]
        return Table(zip(names, columns, strict=True), num_rows=num_rows)

    @cached_property
    def _nothing(self) -> Table:
        """A Table of the columns of the result, without rows."""
        return self._scan.read(self.plan(self._columns, ()), 1)

    def _plan_rows(self, columns: Sequence[ColumnDescriptor], groups: Sequence[GroupRows]) -> ReadPlan:
        return plan_rows(self._metadata, columns, groups, self._scan.opener.source.size)

    def _read_rows(
        self, columns: Sequence[ColumnDescriptor], groups: Sequence[GroupRows], threads: int, span: Span | None = None
    ) -> Iterator[tuple[SchemaNode, AnyColumn]]:
        """The values of columns in rows of row groups, by the node directly under the root; all chunks are fetched together."""
        plan = self._plan_rows(columns, groups)
        found = self._scan.columns([(column, plan.num_rows) for column in plan.columns], threads, span=span)
        for column, values in zip(plan.columns, found, strict=True):
            yield column.node, values

    def _joined(self, column: ColumnDescriptor, matches: Sequence[Match], threads: int) -> AnyColumn:
        """A column of the predicate in all matching rows.

        The values of undecided row groups were read for the predicate; the values of decided row groups are read here.
        """
        decided = [match.group for match in matches if column.index not in match.columns]
        rest = dict(self._read_rows([column], decided, threads))[column.top] if decided else None
        parts: list[AnyColumn] = []
        start = 0
        for match in matches:
            if column.index in match.columns:
                parts.append(match.columns[column.index])
            elif rest is not None:
                parts.append(rest.slice(start, start + match.group.rows.count))
                start += match.group.rows.count
        return concat_columns(parts, column.name)

    def partial(self, chunk: ChunkPlan, selection: GroupSelection, rows: RowRanges) -> ChunkPlan:
        """The plan of some rows of a chunk."""
        return plan_pages(chunk, selection.offset_indexes.get(chunk.column.index), rows, chunk.row_offset)

    def columns_read(self, selection: GroupSelection) -> list[ColumnDescriptor]:
        """The columns to read of a row group: none without candidates, the columns of the result where every candidate matches,
        and otherwise the columns of the predicate as well."""
        match selection.pruning.outcome:
            case Outcome.NONE:
                return []
            case Outcome.ALL:
                return self._columns
        return self.every_column

    def _finished(self, table: Table) -> Table:
        """A Table with columns in their final layout, released from pages held mostly for omitted rows."""
        return table._of(self._finish(_compact(column)) for column in table.columns)


def _with_whole_chunks(selections: Sequence[GroupSelection], read: Callable[[Sequence[GroupSelection]], R]) -> R:
    """The result of a read; after an error, of a second read of whole chunks: an OffsetIndex may have led to wrong pages."""
    try:
        return read(selections)
    except MAY_BE_THE_INDEX:
        if not any(selection.offset_indexes for selection in selections):
            raise
        return read([selection.without_pages() for selection in selections])


def _compact(column: AnyColumn) -> AnyColumn:
    """A column without much unused memory: values are copied if the buffers behind the views are far larger."""
    if column.is_nested or not isinstance(column.values, BinaryViews):
        return column
    held = sum(buffer.nbytes for buffer in column.values.buffers)
    size = total_size(SliceReader(column.values, column.validity if column.null_count else None))
    return column.as_offsets().as_views() if held > MOST_SLACK * size + ALWAYS_HELD else column
