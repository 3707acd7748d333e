"""FilteredScan: reads those rows in a file that ranges and a predicate choose.

First, statistics and indexes rule out rows. Then the predicate's columns are read, and the predicate is evaluated. Last, the
other result columns are read, but only in the matching rows. A small read may take all columns at once.

Candidates are the rows that the evidence does not rule out. A row group is decided if the evidence proves that all of its rows
match, or that none does. The predicate's columns are read only in undecided row groups.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fastpq.arrays.binary import total_size
from fastpq.arrays.concat import concat_columns
from fastpq.arrays.slices import SliceReader
from fastpq.arrays.table import AnyColumn, BinaryViews, Column, Table
from fastpq.common.parallel import run_parallel
from fastpq.common.progress import Meter, Progress, Span
from fastpq.errors import FormatError, LimitError, SchemaError, UnsupportedError
from fastpq.filters.filtering import Mask, columns_of_bits, leaf_mask
from fastpq.filters.predicate import Condition, Outcome, Predicate, fold
from fastpq.index.page_locations import pages_of
from fastpq.index.ranges import RowRanges
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.costs import ALWAYS_HELD, FETCHED, MOST_DOUBTFUL_PAGES, MOST_SLACK, MOST_TOGETHER, MOST_WASTED, WINDOW
from fastpq.read.dictionary_columns import are_in_dictionaries
from fastpq.read.filtered.row_evidence import FilteredChunks
from fastpq.read.filtered.row_selector import RowGroupSelection, RowSelector
from fastpq.read.outputs import Outputs
from fastpq.read.plan import ColumnPlan, GroupRows, ReadPlan, plan_pages, plan_read, plan_rows
from fastpq.read.scan import Scan
from fastpq.schema.parquet_schema import ColumnDescriptor, SchemaNode

R = TypeVar("R")
# Errors that a read raises if page locations are wrong. In an encrypted file this is an attack, and the error is a CryptoError.
MAY_BE_THE_INDEX = (FormatError, UnsupportedError, LimitError)


@dataclass(frozen=True, slots=True)
class MatchingRows:
    """The matching rows in one row group.

    Attributes:
        group: the matching rows.
        columns: flat result columns that were already read for the predicate, by number. They have only the matching rows.
    """

    group: GroupRows
    columns: dict[int, Column]


@dataclass(frozen=True, slots=True)
class FilterColumns:
    """The predicate's columns in one row group, as read for the candidates.

    Attributes:
        selection: the candidates.
        columns: leaves by number.
        coded_leaves: numbers of those leaves that were read as condition bits.
    """

    selection: RowGroupSelection
    columns: dict[int, Column]
    coded_leaves: frozenset[int]


class RowMatcher:
    """Finder of the matching rows in one file.

    Args:
        scan: scan of the file, with variable-length values as views.
        metadata: the file's footer.
        predicate: condition on the rows, or None to keep all rows.
        predicate_columns: the predicate's columns, by number.
        columns: result columns.
        part_bytes: largest number of decompressed bytes that are read together.
    """

    def __init__(
        self, scan: Scan, metadata: FileMetaData, predicate: Predicate | None,
        predicate_columns: Mapping[int, ColumnDescriptor], columns: Sequence[ColumnDescriptor], part_bytes: int,
    ) -> None:
        self._scan = scan
        self._metadata = metadata
        self._predicate = predicate
        self._predicate_columns = predicate_columns
        self._filter_columns = list(predicate_columns.values())
        flat_numbers = {column.index for column in columns if column.is_flat}
        self._shared_numbers = predicate_columns.keys() & flat_numbers
        self._condition_bits = {} if predicate is None else columns_of_bits(predicate, self._shared_numbers)
        self._part_bytes = part_bytes

    def match(self, selections: Sequence[RowGroupSelection], threads: int, meter: Meter | None = None) -> list[MatchingRows]:
        """Return the matching rows in each row group that has candidates.

        The predicate's columns are read only in undecided row groups. They are fetched for several row groups at a time, up to
        FETCHED stored bytes. Progress counts half of the candidates here. The read of the other columns counts the other half.
        """
        matches: list[MatchingRows] = []
        undecided_groups: list[tuple[int, RowGroupSelection]] = []
        for selection in selections:
            if selection.pruning.outcome is Outcome.SOME:
                undecided_groups.append((len(matches), selection))
            if selection.pruning.outcome is not Outcome.NONE:
                matches.append(MatchingRows(selection.group(selection.pruning.rows), {}))
        for part in self._parts(undecided_groups):
            plans = [self._plan_rows(matches[place].group) for place, _ in part]
            half = sum(selection.pruning.rows.count for _, selection in part) // 2
            span = None if meter is None else meter.span(half)
            filter_columns = self._read([selection for _, selection in part], plans, threads, span)
            for (place, _), matching_rows in zip(part, run_parallel(self._matched, filter_columns, threads), strict=True):
                matches[place] = matching_rows
        return matches

    def mask(self, columns: Mapping[int, Column], coded_leaves: frozenset[int] = frozenset()) -> Mask:
        """Return a mask that is True for the matching rows.

        Args:
            columns: the predicate's leaves, by number.
            coded_leaves: numbers of the leaves that have condition bits in place of values.
        """
        assert self._predicate is not None

        def of_leaf(leaf: Condition) -> Mask:
            number = leaf.column.index
            if number in coded_leaves:
                return self._condition_bits[number].mask(leaf, columns[number])
            return leaf_mask(leaf, columns[number])

        return fold(self._predicate, of_leaf, np.logical_and, np.logical_or)

    def leaves_of(self, columns_by_node: Mapping[SchemaNode, AnyColumn]) -> dict[int, Column]:
        """Return the predicate's leaves, by number, from columns that were read, by schema node directly under the root."""
        return {number: columns_by_node[column.top].leaf(column.path[1:]) for number, column in self._predicate_columns.items()}

    def stream(self, selection: RowGroupSelection, threads: int, span: Span | None) -> RowRanges:
        """Return the matching rows in one row group. The predicate's columns are read WINDOW rows at a time."""
        rows = selection.pruning.rows
        if selection.pruning.outcome is not Outcome.SOME:
            return rows
        plan = self._plan_rows(selection.group(rows))
        masks: list[Mask] = []
        num_done = 0
        for window in self._scan.batches(plan, WINDOW, threads):
            columns = zip((column.node for column in plan.columns), window.columns, strict=True)
            masks.append(self.mask(self.leaves_of(dict(columns))))
            num_done += window.num_rows
            if span is not None:
                span.reach(num_done, rows.count)
        return rows.select(np.concatenate(masks))

    def _plan_rows(self, group: GroupRows) -> ReadPlan:
        return plan_rows(self._metadata, self._filter_columns, [group], self._scan.opener.source.size)

    def _parts(self, undecided_groups: list[tuple[int, RowGroupSelection]]) -> Iterator[list[tuple[int, RowGroupSelection]]]:
        """Yield the undecided row groups in parts that are read together.

        A part has at most FETCHED stored bytes and at most ``part_bytes`` decompressed bytes, unless it is one row group.
        """
        part: list[tuple[int, RowGroupSelection]] = []
        size = plain = 0
        for place, selection in undecided_groups:
            rows, indexes = selection.pruning.rows, selection.offset_indexes
            chunks = plan_read(
                self._metadata, self._filter_columns, [selection.pruning.row_group], self._scan.opener.source.size).chunks
            stored_size = sum(plan_pages(chunk, indexes.get(chunk.column.index), rows, 0).num_bytes for chunk in chunks)
            decoded_size = sum(chunk.metadata.total_uncompressed_size for chunk in chunks)
            if part and (size + stored_size > FETCHED or plain + decoded_size > self._part_bytes):
                yield part
                part, size, plain = [], 0, 0
            part.append((place, selection))
            size += stored_size
            plain += decoded_size
        if part:
            yield part

    def _read(
        self, selections: Sequence[RowGroupSelection], plans: Sequence[ReadPlan], threads: int, span: Span | None
    ) -> list[FilterColumns]:
        """Return the predicate's columns in each row group. All chunks are fetched together."""
        requested_columns = [(column, plan.num_rows) for plan in plans for column in plan.columns]
        numbers = [self._coded_number(column) for column, _ in requested_columns]
        judges: dict[int, Callable[[Column], Mask]] = {
            place: self._condition_bits[number].evaluate for place, number in enumerate(numbers) if number is not None}
        columns = iter(self._scan.columns(requested_columns, threads, span=span, codes=True, judges=judges))
        places = iter(numbers)
        filter_columns = []
        for selection, plan in zip(selections, plans, strict=True):
            leaves = self.leaves_of({column.node: next(columns) for column in plan.columns})
            coded_leaves = frozenset(number for number in [next(places) for _ in plan.columns] if number is not None)
            filter_columns.append(FilterColumns(selection, leaves, coded_leaves))
        return filter_columns

    def _coded_number(self, column: ColumnPlan) -> int | None:
        """Return the column number if a column is to be read as condition bits, or None if its values are to be read."""
        if column.flat is None or column.flat[0].index not in self._condition_bits:
            return None
        return column.flat[0].index if are_in_dictionaries(self._scan.opener, *column.flat) else None

    def _matched(self, filter_columns: FilterColumns) -> MatchingRows:
        selection, opener = filter_columns.selection, self._scan.opener
        mask = self.mask(filter_columns.columns, filter_columns.coded_leaves)
        indices = None if not self._shared_numbers or mask.all() else np.flatnonzero(mask)
        columns: dict[int, Column] = {}
        for number in self._shared_numbers:
            column = filter_columns.columns[number] if indices is None else filter_columns.columns[number].take(indices)
            columns[number] = column.as_views() if column.type.is_variable else column
            # values and views stay until the read ends. Pages behind views are counted elsewhere
            opener.allowance.keep(len(column) * opener.layout(self._predicate_columns[number]).width)
        return MatchingRows(selection.group(selection.pruning.rows.select(mask)), columns)


class FilteredScan:
    """Reader of those rows in one file that ranges and a predicate choose.

    Args:
        scan: scan of the file, with variable-length values as views.
        metadata: the file's footer.
        predicate: condition on the rows, or None to keep all rows.
        columns: result columns.
        finish: gives a result column its final layout.

    Attributes:
        select: finds the candidates in row groups by evidence (``RowSelector.select``).
        every_column: the predicate's columns, then the other result columns.
    """

    def __init__(
        self, scan: Scan, metadata: FileMetaData, predicate: Predicate | None, columns: Sequence[ColumnDescriptor],
        finish: Callable[[AnyColumn], AnyColumn],
    ) -> None:
        self._scan = scan
        self._finish = finish
        self._metadata = metadata
        self._predicate = predicate
        self._columns = list(columns)
        chunks = FilteredChunks(scan.opener, metadata, predicate, columns)
        self.select = RowSelector(chunks, predicate).select
        self.every_column = chunks.every_column
        self._predicate_columns = chunks.predicate_columns
        self._filter_columns = list(self._predicate_columns.values())
        self._matcher = RowMatcher(scan, metadata, predicate, self._predicate_columns, self._columns, self._part_bytes)
        self.plan(self.every_column, ())       # refuses unreadable columns before the first read

    def plan(self, columns: Sequence[ColumnDescriptor], row_groups: Iterable[int] | None) -> ReadPlan:
        """Return a plan for all rows in row groups."""
        return plan_read(self._metadata, columns, row_groups, self._scan.opener.source.size)

    def read(
        self, selections: Sequence[RowGroupSelection], threads: int, out: Mapping[str, Any] | None = None,
        order: NDArray[np.int64] | None = None, progress: Progress | None = None,
    ) -> Table:
        """Return the matching rows in all selections as one Table.

        Args:
            selections: results of ``select``: row groups in result order, each with its candidates.
            threads: how many chunks are decoded at the same time.
            out: arrays to read columns into, by name. Their length is the row count, which is unknown with a predicate.
            order: shape (result rows,), int64: for each result row, its number among the rows as read. None keeps their order.
            progress: called with the number of candidates that are done, and with the number of all candidates.

        Raises:
            SchemaError: ``out`` together with a predicate, or arrays that do not fit the columns.
        """
        if out is not None and self._predicate is not None:
            raise SchemaError("out with filters: the number of rows is not known before they are read")
        return _with_whole_chunks(selections, lambda groups: self._read(groups, threads, out, order, progress))

    def _read(
        self, selections: Sequence[RowGroupSelection], threads: int, out: Mapping[str, Any] | None,
        order: NDArray[np.int64] | None, progress: Progress | None,
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

    def _read_matches(self, matches: Sequence[MatchingRows], threads: int, span: Span | None) -> Table:
        """Return the matching rows as a Table. Columns that were already read for the predicate are not read again."""
        groups = [match.group for match in matches]
        shared_numbers = {number for match in matches for number in match.columns}
        shared_columns = [column for column in self._columns if column.is_flat and column.index in shared_numbers]
        other_columns = [column for column in self._columns if column not in shared_columns]
        columns_by_node = self._read_rows(other_columns, groups, threads, span)
        columns_by_node |= {column.top: self._joined(column, matches, threads) for column in shared_columns}
        columns = [columns_by_node[node] for node in self._nodes]
        return self._finished(self._table(columns, sum(group.rows.count for group in groups)))

    def _may_read_together(self, selections: Sequence[RowGroupSelection]) -> bool:
        """Return whether to read all columns at once, before the predicate is evaluated.

        Reading at once saves a second round of reads, but also reads candidates that do not match. Therefore it is done only
        if the candidates have few values, and if the other columns have few bytes in the pages with doubtful candidates. In a
        local file there must also be few such pages.
        """
        selections_to_read = [selection for selection in selections if selection.pruning.outcome is not Outcome.NONE]
        undecided_groups = [selection for selection in selections_to_read if selection.pruning.outcome is Outcome.SOME]
        result_numbers = {column.index for column in self._columns}
        if not undecided_groups or not all(column.is_flat for column in self._filter_columns):
            return False
        if len(undecided_groups) < len(selections_to_read) and not self._predicate_columns.keys() <= result_numbers:
            return False        # decided row groups are read without the predicate's columns
        is_remote, round_trip_bytes = self._scan.opener.source.is_remote, self._scan.opener.properties.round_trip_bytes
        most_values = max(MOST_TOGETHER, round_trip_bytes if is_remote else 0)
        if sum(selection.pruning.rows.count for selection in selections_to_read) * len(self.every_column) > most_values:
            return False
        if self._decoded_bytes(selections_to_read) > self._part_bytes:
            return False
        wasted_bytes = 0
        for selection in undecided_groups:
            pruning = selection.pruning
            doubtful_rows = pruning.rows & ~pruning.certain
            for column in result_numbers - self._predicate_columns.keys():
                index = selection.offset_indexes.get(column)
                if index is None:
                    wasted_bytes += self._metadata.row_group(pruning.row_group).column(column).total_compressed_size
                    continue
                pages, size = pages_of(index.locations, doubtful_rows)
                wasted_bytes += size
                if pages > MOST_DOUBTFUL_PAGES and not is_remote:
                    return False
        return wasted_bytes <= (round_trip_bytes if is_remote else MOST_WASTED)

    def _decoded_bytes(self, selections: Sequence[RowGroupSelection]) -> int:
        """Return the decompressed size in bytes of all columns' chunks, according to their metadata."""
        groups = [self._metadata.row_group(selection.pruning.row_group) for selection in selections]
        return sum(group.column(column.index).total_uncompressed_size for group in groups for column in self.every_column)

    @property
    def _part_bytes(self) -> int:
        """Largest number of decompressed bytes that are read together to find rows. It is far below the limit for the result."""
        return self._scan.opener.allowance.limit // 4

    def _read_together(self, selections: Sequence[RowGroupSelection], threads: int, span: Span | None) -> Table:
        """Return the matching rows as a Table, after all columns of all candidates were fetched together."""
        groups = [selection.group(selection.pruning.rows) for selection in selections if selection.pruning.rows.count]
        columns_by_node = self._read_rows(self.every_column, groups, threads, span)
        mask = self._matcher.mask(self._matcher.leaves_of(columns_by_node))
        start = 0
        for selection in selections:        # evidence counts more than values, as for count and batches
            stop = start + selection.pruning.rows.count
            if selection.pruning.outcome is Outcome.ALL:
                mask[start:stop] = True
            start = stop
        columns = [columns_by_node[node] for node in self._nodes]
        if mask.all():
            return self._finished(self._table(columns, len(mask)))
        indices = np.flatnonzero(mask)
        return self._finished(self._table([column.take(indices) for column in columns], len(indices)))

    def _read_all(
        self, groups: Sequence[GroupRows], threads: int, out: Mapping[str, Any] | None, order: NDArray[np.int64] | None,
        span: Span | None,
    ) -> Table:
        """Return all given rows as a Table. There is no predicate.

        Args:
            groups: row groups in result order, each with its rows.
            threads, out, order: as for ``read``.
            span: counts the rows.
        """
        plan = self._plan_rows(self._columns, groups)
        if out is not None:
            return self._finished(self._scan.read(plan, threads, Outputs(out, plan, self._scan.opener.types), span))
        columns = self._read_rows(self._columns, groups, threads, span).values()
        if order is None:
            return self._finished(self._table(columns, plan.num_rows))
        return self._finished(self._table([column.take(order) for column in columns], len(order)))

    def batches(
        self, selections: Sequence[RowGroupSelection], batch_size: int, threads: int, progress: Progress | None = None
    ) -> Iterator[Table]:
        """Yield the matching rows in all selections as Tables of batch_size rows. The last Table may have fewer.

        An undecided row group is read twice. The first read takes the predicate's columns, WINDOW rows at a time, to find the
        matching rows. The second read takes the result columns, a batch at a time. Progress counts half of the candidates for
        each read.
        """
        num_returned = 0
        try:
            for table in self._batches(selections, batch_size, threads, progress):
                yield table
                num_returned += table.num_rows
        except MAY_BE_THE_INDEX:
            if not any(selection.offset_indexes for selection in selections):
                raise
            whole = [selection.without_pages() for selection in selections]
            again = self._batches(whole, batch_size, threads, progress)
            yield from itertools.islice(again, num_returned // batch_size, None)

    def _batches(
        self, selections: Sequence[RowGroupSelection], batch_size: int, threads: int, progress: Progress | None
    ) -> Iterator[Table]:
        waiting_rows = self._nothing
        meter = Meter(progress, sum(selection.pruning.rows.count for selection in selections))
        for selection in selections:
            candidates = selection.pruning.rows.count
            half = candidates // 2 if selection.pruning.outcome is Outcome.SOME else 0
            rows = self._matcher.stream(selection, threads, meter.span(half))
            rest = meter.span(candidates - half)
            if not rows.count:
                meter.add(candidates - half)
                continue
            num_done = 0
            plan = self._plan_rows(self._columns, [selection.group(rows)])
            for table in self._scan.batches(plan, batch_size, threads, first=batch_size - waiting_rows.num_rows):
                num_done += table.num_rows
                if rest is not None:
                    rest.reach(num_done, rows.count)
                whole = Table.concat([waiting_rows, table]) if waiting_rows.num_rows else table
                if whole.num_rows == batch_size:
                    yield self._finished(whole)
                    waiting_rows = self._nothing
                else:
                    waiting_rows = whole
        meter.finish()
        if waiting_rows.num_rows:
            yield self._finished(waiting_rows)

    def matching_rows(self, selections: Sequence[RowGroupSelection], threads: int) -> dict[int, RowRanges]:
        """Return the matching rows of each row group that has any, by row group. Only the predicate's columns are read."""
        matches = self._matcher.match(selections, threads)
        return {each.group.row_group: each.group.rows for each in matches if each.group.rows.count}

    def count(self, selections: Sequence[RowGroupSelection], threads: int) -> int:
        """Return the number of matching rows. Row groups that the evidence decides are counted without a read."""

        def counted(groups: Sequence[RowGroupSelection]) -> int:
            return sum(match.group.rows.count for match in self._matcher.match(groups, threads))

        return _with_whole_chunks(selections, counted)

    @cached_property
    def _nodes(self) -> list[SchemaNode]:
        """The result columns in order, as schema nodes directly under the root."""
        return list(dict.fromkeys(column.top for column in self._columns))

    def _table(self, columns: Iterable[AnyColumn], num_rows: int) -> Table:
        """Return a Table of the result columns, which are given in order."""
        names = [node.element.name for node in self._nodes]
        return Table(zip(names, columns, strict=True), num_rows=num_rows)

    @cached_property
    def _nothing(self) -> Table:
        """A Table of the result columns, without rows."""
        return self._scan.read(self.plan(self._columns, ()), 1)

    def _plan_rows(self, columns: Sequence[ColumnDescriptor], groups: Sequence[GroupRows]) -> ReadPlan:
        return plan_rows(self._metadata, columns, groups, self._scan.opener.source.size)

    def _read_rows(
        self, columns: Sequence[ColumnDescriptor], groups: Sequence[GroupRows], threads: int, span: Span | None = None
    ) -> dict[SchemaNode, AnyColumn]:
        """Return the columns in the given rows, by schema node directly under the root. All chunks are fetched together."""
        plan = self._plan_rows(columns, groups)
        values = self._scan.columns([(column, plan.num_rows) for column in plan.columns], threads, span=span)
        return dict(zip((column.node for column in plan.columns), values, strict=True))

    def _joined(self, column: ColumnDescriptor, matches: Sequence[MatchingRows], threads: int) -> AnyColumn:
        """Return one of the predicate's columns in all matching rows.

        Its values in undecided row groups were read for the predicate. Its values in decided row groups are read here.
        """
        decided_groups = [match.group for match in matches if column.index not in match.columns]
        rest = self._read_rows([column], decided_groups, threads)[column.top] if decided_groups else None
        parts: list[AnyColumn] = []
        start = 0
        for match in matches:
            if column.index in match.columns:
                parts.append(match.columns[column.index])
            elif rest is not None:
                parts.append(rest.slice(start, start + match.group.rows.count))
                start += match.group.rows.count
        return concat_columns(parts, column.name)

    def partial(self, chunk: ChunkPlan, selection: RowGroupSelection, rows: RowRanges) -> ChunkPlan:
        """Return a plan for some rows of a chunk."""
        return plan_pages(chunk, selection.offset_indexes.get(chunk.column.index), rows, chunk.row_offset)

    def columns_read(self, selection: RowGroupSelection) -> list[ColumnDescriptor]:
        """Return the columns to read in a row group.

        These are no columns if there are no candidates, the result columns if every candidate matches, and otherwise also the
        predicate's columns.
        """
        match selection.pruning.outcome:
            case Outcome.NONE:
                return []
            case Outcome.ALL:
                return self._columns
        return self.every_column

    def _finished(self, table: Table) -> Table:
        """Return a Table whose columns have their final layout and no longer hold pages that are mostly omitted rows."""
        return table._of(self._finish(_compact(column)) for column in table.columns)


def _with_whole_chunks(selections: Sequence[RowGroupSelection], read: Callable[[Sequence[RowGroupSelection]], R]) -> R:
    """Return the result of a read. After an error, read whole chunks instead: an OffsetIndex may have led to wrong pages."""
    try:
        return read(selections)
    except MAY_BE_THE_INDEX:
        if not any(selection.offset_indexes for selection in selections):
            raise
        return read([selection.without_pages() for selection in selections])


def _compact(column: AnyColumn) -> AnyColumn:
    """Return a column without much unused memory. The values are copied if the buffers behind their views are far larger."""
    if column.is_nested or not isinstance(column.values, BinaryViews):
        return column
    held_bytes = sum(buffer.nbytes for buffer in column.values.buffers)
    size = total_size(SliceReader(column.values, column.validity if column.null_count else None))
    return column.as_offsets().as_views() if held_bytes > MOST_SLACK * size + ALWAYS_HELD else column
