"""Matcher: the matching rows of undecided row groups, by the values of the columns of a predicate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fastpq.arrays.table import AnyColumn, Column
from fastpq.common.parallel import run_parallel
from fastpq.common.progress import Meter, Span
from fastpq.filters.filtering import Mask, leaf_mask
from fastpq.filters.predicate import Condition, Outcome, Predicate, fold
from fastpq.filters.verdicts import judged_columns
from fastpq.index.ranges import RowRanges
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.read.coded import are_in_dictionaries
from fastpq.read.costs import FETCHED, WINDOW
from fastpq.read.plan import ColumnPlan, GroupRows, ReadPlan, plan_pages, plan_read, plan_rows
from fastpq.read.scan import Scan
from fastpq.read.selection import GroupSelection
from fastpq.schema.parquet_schema import ColumnDescriptor


@dataclass(frozen=True, slots=True)
class Match:
    """The matching rows of a row group.

    Attributes:
        group: the matching rows.
        columns: flat columns of the result already read for the predicate, by number, cut to the matching rows.
    """

    group: GroupRows
    columns: dict[int, Column]


@dataclass(frozen=True, slots=True)
class _Read:
    """The columns of the predicate in the candidates of one row group.

    Attributes:
        selection: the candidates.
        columns: leaves by number.
        judged: numbers of the leaves read as verdicts.
    """

    selection: GroupSelection
    columns: dict[int, Column]
    judged: frozenset[int]


class Matcher:
    """Finds the matching rows of one file.

    Args:
        scan: scan of the file, with variable-length values as views.
        metadata: footer of the file.
        predicate: condition on the rows; None keeps all.
        filtered: the columns of the predicate, by number.
        columns: the columns of the result.
        part_bytes: most decompressed bytes read together.
    """

    def __init__(
        self,
        scan: Scan,
        metadata: FileMetaData,
        predicate: Predicate | None,
        filtered: Mapping[int, ColumnDescriptor],
        columns: Sequence[ColumnDescriptor],
        part_bytes: int,
    ) -> None:
        self._scan = scan
        self._metadata = metadata
        self._predicate = predicate
        self._filtered = filtered
        self._filter_columns = list(filtered.values())
        chosen = {column.index for column in columns}
        self._kept = {number for number, column in filtered.items() if column.is_flat and number in chosen}
        self._verdicts = {} if predicate is None else judged_columns(predicate, self._kept)
        self._part_bytes = part_bytes

    def match(self, selections: Sequence[GroupSelection], threads: int, meter: Meter | None = None) -> list[Match]:
        """The matching rows of each row group with candidates.

        The columns of the predicate are read in undecided row groups alone, and fetched for several row groups at a time, up to
        FETCHED stored bytes. Progress counts half of the candidates; the read of the other columns counts the other half.
        """
        matches: list[Match] = []
        undecided: list[tuple[int, GroupSelection]] = []
        for selection in selections:
            if selection.pruning.outcome is Outcome.SOME:
                undecided.append((len(matches), selection))
            if selection.pruning.outcome is not Outcome.NONE:
                matches.append(Match(selection.group(selection.pruning.rows), {}))
        for part in self._parts(undecided):
            plans = [self._plan_rows(matches[place].group) for place, _ in part]
            half = sum(selection.pruning.rows.count for _, selection in part) // 2
            read = self._read([selection for _, selection in part], plans, threads, None if meter is None else meter.span(half))
            for (place, _), found in zip(part, run_parallel(self._matched, read, threads), strict=True):
                matches[place] = found
        return matches

    def mask(self, read: Mapping[int, Column], judged: frozenset[int] = frozenset()) -> Mask:
        """A mask of the matching rows.

        Args:
            read: leaves of the predicate, by number.
            judged: numbers of leaves with verdicts in the place of values.
        """
        assert self._predicate is not None

        def of_leaf(leaf: Condition) -> Mask:
            number = leaf.column.index
            return self._verdicts[number].mask(leaf, read[number]) if number in judged else leaf_mask(leaf, read[number])

        return fold(self._predicate, of_leaf, np.logical_and, np.logical_or)

    def leaves_of(self, plans: Sequence[ColumnPlan], read: Sequence[AnyColumn]) -> dict[int, Column]:
        """The leaves of the predicate, by number, of the columns read for the plans."""
        by_node = {plan.node: column for plan, column in zip(plans, read, strict=True)}
        return {number: by_node[column.top].leaf(column.path[1:]) for number, column in self._filtered.items()}

    def stream(self, selection: GroupSelection, threads: int, span: Span | None) -> RowRanges:
        """The matching rows of one row group; the columns of the predicate are read WINDOW rows at a time."""
        rows = selection.pruning.rows
        if selection.pruning.outcome is not Outcome.SOME:
            return rows
        plan = self._plan_rows(selection.group(rows))
        masks: list[Mask] = []
        done = 0
        for window in self._scan.batches(plan, WINDOW, threads):
            masks.append(self.mask(self.leaves_of(plan.columns, window.columns)))
            done += window.num_rows
            if span is not None:
                span.reach(done, rows.count)
        return rows.select(np.concatenate(masks))

    def _plan_rows(self, group: GroupRows) -> ReadPlan:
        return plan_rows(self._metadata, self._filter_columns, [group], self._scan.opener.source.size)

    def _parts(self, undecided: list[tuple[int, GroupSelection]]) -> Iterator[list[tuple[int, GroupSelection]]]:
        """Undecided row groups, in parts to be read together: up to FETCHED stored bytes, and part_bytes."""
        part: list[tuple[int, GroupSelection]] = []
        size = plain = 0
        for place, selection in undecided:
            rows, indexes = selection.pruning.rows, selection.offset_indexes
            chunks = plan_read(
                self._metadata, self._filter_columns, [selection.pruning.row_group], self._scan.opener.source.size).chunks
            needed = sum(plan_pages(chunk, indexes.get(chunk.column.index), rows, 0).num_bytes for chunk in chunks)
            decoded = sum(chunk.metadata.total_uncompressed_size for chunk in chunks)
            if part and (size + needed > FETCHED or plain + decoded > self._part_bytes):
                yield part
                part, size, plain = [], 0, 0
            part.append((place, selection))
            size += needed
            plain += decoded
        if part:
            yield part

    def _read(
        self, selections: Sequence[GroupSelection], plans: Sequence[ReadPlan], threads: int, span: Span | None
    ) -> list[_Read]:
        """The columns of the predicate in row groups; all chunks are fetched together."""
        wanted = [(column, plan.num_rows) for plan in plans for column in plan.columns]
        numbers = [self._judged_number(column) for column, _ in wanted]
        judges: dict[int, Callable[[Column], Mask]] = {
            place: self._verdicts[number].judge for place, number in enumerate(numbers) if number is not None}
        columns = iter(self._scan.columns(wanted, threads, span=span, codes=True, judges=judges))
        places = iter(numbers)
        found = []
        for selection, plan in zip(selections, plans, strict=True):
            leaves = self.leaves_of(plan.columns, [next(columns) for _ in plan.columns])
            judged = frozenset(number for number in [next(places) for _ in plan.columns] if number is not None)
            found.append(_Read(selection, leaves, judged))
        return found

    def _judged_number(self, column: ColumnPlan) -> int | None:
        """The number of a column to be read as verdicts; None for values."""
        if column.flat is None or column.flat[0].index not in self._verdicts:
            return None
        return column.flat[0].index if are_in_dictionaries(self._scan.opener, *column.flat) else None

    def _matched(self, read: _Read) -> Match:
        mask = self.mask(read.columns, read.judged)
        kept = None if not self._kept or mask.all() else np.flatnonzero(mask)
        chosen = {number: read.columns[number] if kept is None else read.columns[number].take(kept) for number in self._kept}
        found = {number: column.as_views() if column.type.is_variable else column for number, column in chosen.items()}
        opener = self._scan.opener      # kept pages count by themselves; values and views are kept to the end of the read
        opener.allowance.keep(sum(len(column) * opener.layout(self._filtered[number]).width for number, column in found.items()))
        return Match(read.selection.group(read.selection.pruning.rows.select(mask)), found)
