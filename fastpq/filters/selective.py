"""Reading the rows for which a predicate holds: indexes first, then the columns of the predicate, then the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastpq.conversion.outputs import Outputs
from fastpq.encryption.cipher import ModuleCipher
from fastpq.errors import FormatError, KeyAccessError, SchemaError
from fastpq.filters.evidence import chunk_bounds, page_bounds
from fastpq.filters.filtering import mask_of
from fastpq.filters.predicate import Bounds, Leaf, Membership, Outcome, Predicate, leaves
from fastpq.filters.pruning import GroupPruning
from fastpq.index.bloom_filter import SplitBlockBloomFilter
from fastpq.index.bloom_format import read_bloom_filters
from fastpq.index.page_index import ChunkIndexes, IndexRequest, OffsetIndex, read_page_indexes
from fastpq.metadata import ColumnChunkMetaData, FileMetaData
from fastpq.nested.columns import take
from fastpq.nested.concat import concat_columns
from fastpq.parallel import run
from fastpq.plan import ChunkPlan, GroupRows, ReadPlan, loosen, plan_pages, plan_read, plan_rows
from fastpq.quirks import bloom_filters_are_trusted
from fastpq.ranges import RowRanges
from fastpq.scan import Scan
from fastpq.schema import ColumnDescriptor
from fastpq.table import AnyColumn, BinaryViews, Column, StructColumn, Table
from fastpq.values.binary import total_size
from fastpq.values.bitmap import pack_bitmap
from fastpq.values.slices import SliceReader

# Views keep the pages that they point into: as long as these are not much larger than the values, nothing is copied.
MOST_SLACK = 2
ALWAYS_HELD = 1 << 16
# Rows of the predicate's columns that are in memory at a time while batches are read.
WINDOW = 1 << 16
# Stored bytes of the predicate's columns that are fetched at a time.
FETCHED = 64 << 20


@dataclass(frozen=True, slots=True)
class GroupSelection:
    """What of a row group is read.

    Attributes:
        pruning: the rows that the predicate may hold for, and by which evidence.
        offset_indexes: where the pages of columns are, by number; columns whose pages are not known are left out.
    """

    pruning: GroupPruning
    offset_indexes: dict[int, OffsetIndex]

    def group(self, rows: RowRanges) -> GroupRows:
        """Some of its rows, to be planned."""
        return GroupRows(self.pruning.row_group, rows, self.offset_indexes)


@dataclass(frozen=True, slots=True)
class _Match:
    """The rows of a row group for which the predicate holds, and the flat columns of the result that are read already."""

    group: GroupRows
    columns: dict[int, Column]


class SelectiveScan:
    """Reads some rows of one file: those asked for, for which a predicate holds.

    Args:
        scan: of the file; variable-length values must come as views.
        metadata: of the file.
        predicate: what must hold; None where nothing must.
        columns: the columns of the result.
        finish: what is done with each column at last.
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
        # by number, in the order of the filters
        self._filtered = {leaf.column.index: leaf.column for leaf in leaves(predicate)} if predicate is not None else {}
        self._filter_columns = list(self._filtered.values())
        self.every_column = list(
            {column.index: column for column in [*self._filter_columns, *self._columns]}.values()
        )
        self.plan(self.every_column, ())       # refuses what cannot be read, before anything is

    def plan(self, columns: Sequence[ColumnDescriptor], row_groups: Iterable[int] | None) -> ReadPlan:
        """The plan of a full read."""
        return plan_read(self._metadata, columns, row_groups, self._scan.source.size)

    # ---- which rows

    def select(self, wanted: Iterable[tuple[int, RowRanges | None]]) -> list[GroupSelection]:
        """Prune row groups, by statistics, then by bloom filters, then by column indexes.

        Args:
            wanted: row groups, each with the rows that are asked for; None for all.

        Returns:
            A selection for each of them, those of which nothing is left among them.

        Raises:
            TagVerificationError: an encrypted index was altered.
        """
        groups = [self._start(index, rows) for index, rows in wanted]
        for group in groups:
            group.by_statistics(self._statistics_of(group))
        self._use_bloom_filters([group for group in groups if group.outcome is Outcome.SOME])
        offset_indexes = self._use_page_indexes([group for group in groups if _may_leave_pages_out(group)])
        return [GroupSelection(group, offset_indexes.get(id(group), {})) for group in groups]

    def _start(self, row_group: int, rows: RowRanges | None) -> GroupPruning:
        num_rows = self._metadata.row_group(row_group).num_rows
        if num_rows < 0:
            raise FormatError(f"a row group of {num_rows} rows", row_group=row_group)
        return GroupPruning.start(self._predicate, row_group, num_rows, rows)

    def _chunk(self, group: GroupPruning, column: ColumnDescriptor) -> ColumnChunkMetaData:
        return self._metadata.row_group(group.row_group).column(column.index)

    def _cipher(self, chunk: ColumnChunkMetaData, column: ColumnDescriptor) -> ModuleCipher:
        return self._scan.decryptor.chunk_cipher(chunk.chunk, chunk.row_group_ordinal, column.index)

    def _statistics_of(self, group: GroupPruning) -> Callable[[Leaf], Bounds | str]:
        def bounds(leaf: Leaf) -> Bounds | str:
            try:
                return chunk_bounds(self._metadata, leaf.column, self._chunk(group, leaf.column), group.num_rows)
            except KeyAccessError:
                return "not known without its key"

        return bounds

    def _use_bloom_filters(self, groups: list[GroupPruning]) -> None:
        if not bloom_filters_are_trusted(self._metadata.created_by):
            return
        wanted: list[tuple[GroupPruning, int, ColumnChunkMetaData, ModuleCipher]] = []
        for group in groups:
            probed = {leaf.column.index: leaf.column for leaf in group.open_leaves if _can_be_probed(leaf)}
            for column in probed.values():
                chunk = self._chunk(group, column)
                try:
                    if chunk.metadata.bloom_filter_offset is not None:
                        wanted.append((group, column.index, chunk, self._cipher(chunk, column)))
                except KeyAccessError:
                    continue
        found = read_bloom_filters(self._scan.source, [(chunk, cipher) for _, _, chunk, cipher in wanted])
        usable: dict[int, dict[int, SplitBlockBloomFilter | str]] = {}
        for (group, index, _, _), bloom_filter in zip(wanted, found, strict=True):
            if isinstance(bloom_filter, SplitBlockBloomFilter):
                usable.setdefault(id(group), {})[index] = bloom_filter
            elif bloom_filter is not None:
                usable.setdefault(id(group), {})[index] = f"not usable ({bloom_filter.message})"
        for group in groups:
            group.by_bloom_filters(usable.get(id(group), {}))

    def _use_page_indexes(self, groups: list[GroupPruning]) -> dict[int, dict[int, OffsetIndex]]:
        """Narrow row groups by column indexes; returns the offset indexes of each group by its id, by column."""
        asked: list[tuple[GroupPruning, IndexRequest]] = []
        for group in groups:
            undecided = {leaf.column.index for leaf in group.open_leaves}
            for column in self.every_column:
                chunk = self._chunk(group, column)
                try:
                    cipher = self._cipher(chunk, column)
                    request = IndexRequest(column, chunk, group.num_rows, cipher, column.index in undecided)
                except KeyAccessError:
                    continue
                asked.append((group, request))
        found: dict[int, dict[int, ChunkIndexes | FormatError]] = {}
        indexes = read_page_indexes(self._scan.source, [request for _, request in asked])
        for (group, request), index in zip(asked, indexes, strict=True):
            found.setdefault(id(group), {})[request.column.index] = index
        for group in groups:
            group.by_column_indexes(self._page_bounds(found.get(id(group), {})))
        return {
            group: {
                column: index.offset_index
                for column, index in of_columns.items()
                if isinstance(index, ChunkIndexes) and index.offset_index is not None
            }
            for group, of_columns in found.items()
        }

    def _page_bounds(
        self, indexes: dict[int, ChunkIndexes | FormatError]
    ) -> dict[int, tuple[OffsetIndex, list[Bounds]] | str]:
        known: dict[int, tuple[OffsetIndex, list[Bounds]] | str] = {}
        for number, index in indexes.items():
            if isinstance(index, FormatError):
                known[number] = f"not usable ({index.message})"
            elif index.column_index is not None and index.offset_index is not None and number in self._filtered:
                bounds = page_bounds(self._metadata, self._filtered[number], index.column_index, index.offset_index)
                known[number] = (index.offset_index, bounds)
        return known

    # ---- their values

    def read(
        self,
        selections: Sequence[GroupSelection],
        threads: int,
        out: Mapping[str, Any] | None = None,
        order: NDArray[np.int64] | None = None,
    ) -> Table:
        """The rows of all selections for which the predicate holds.

        Args:
            selections: of row groups, in the order of the result.
            threads: how many chunks are decoded at the same time.
            out: arrays to read columns into; without a predicate alone, as the number of rows must be known.
            order: the places of the rows of the result among those read; None for all as they are.
        """
        if out is not None and self._predicate is not None:
            raise SchemaError("out with filters: the number of rows is not known before they are read")
        matches = [match for match in self._match(selections, threads) if match.group.rows.count]
        if self._predicate is None:
            return self._read_all(matches, threads, out, order)
        num_rows = sum(match.group.rows.count for match in matches)
        known = {number for match in matches for number in match.columns}
        others = [column for column in self._columns if not (column.is_flat and column.index in known)]
        read = dict(self._read_rows(others, matches, threads))
        for column in self._columns:
            if column.is_flat and column.index in known:
                read[column.name] = self._joined(column, matches, threads)
        names = [column.name for column in self.plan(self._columns, ()).columns]
        return self._finished(Table({name: read[name] for name in names}, num_rows=num_rows))

    def _read_all(
        self,
        matches: Sequence[_Match],
        threads: int,
        out: Mapping[str, Any] | None,
        order: NDArray[np.int64] | None,
    ) -> Table:
        """All rows of some row groups, put in an order."""
        plan = self._plan_rows(self._columns, matches)
        if out is not None:
            return self._finished(self._scan.read(plan, threads, Outputs(out, plan, self._scan.types)))
        read = dict(self._read_rows(self._columns, matches, threads))
        if order is not None:
            read = {name: take(column, order) for name, column in read.items()}
        return self._finished(Table(read, num_rows=plan.num_rows if order is None else len(order)))

    def batches(self, selections: Sequence[GroupSelection], batch_size: int, threads: int) -> Iterator[Table]:
        """The same as Tables of batch_size rows (the last may be shorter).

        Of each row group the columns of the predicate are read first, WINDOW rows at a time, to know its rows, and then the
        columns of the result, a batch at a time.
        """
        waiting = self._nothing
        for selection in selections:
            rows = self._stream_matching(selection, threads)
            if not rows.count:
                continue
            plan = self._plan_rows(self._columns, [_Match(selection.group(rows), {})])
            for table in self._scan.batches(plan, batch_size, threads, first=batch_size - waiting.num_rows):
                whole = Table.concat([waiting, table]) if waiting.num_rows else table
                if whole.num_rows == batch_size:
                    yield self._finished(whole)
                    waiting = self._nothing
                else:
                    waiting = whole
        if waiting.num_rows:
            yield self._finished(waiting)

    def count(self, selections: Sequence[GroupSelection], threads: int) -> int:
        """How many rows there are; row groups that evidence decides are not read."""
        return sum(match.group.rows.count for match in self._match(selections, threads))

    @cached_property
    def _nothing(self) -> Table:
        """The columns of the result without a row."""
        return self._scan.read(self.plan(self._columns, ()), 1)

    def _match(self, selections: Sequence[GroupSelection], threads: int) -> list[_Match]:
        """The rows for which the predicate holds, of each selection with any candidates.

        The columns that the predicate is on are fetched together for as many row groups as FETCHED bytes allow.
        """
        matches: list[_Match] = []
        undecided: list[tuple[int, GroupSelection]] = []
        for selection in selections:
            if selection.pruning.outcome is Outcome.SOME:
                undecided.append((len(matches), selection))
            if selection.pruning.outcome is not Outcome.NONE:
                matches.append(_Match(selection.group(selection.pruning.rows), {}))
        for part in self._parts(undecided):
            plans = [self._plan_rows(self._filter_columns, [matches[place]]) for place, _ in part]
            wanted = [(column, plan.num_rows) for plan in plans for column in plan.columns]
            read = iter(self._scan.columns(wanted, threads))
            columns = [{column.name: next(read) for column in plan.columns} for plan in plans]
            for (place, _), found in zip(part, run(self._masked, zip(part, columns, strict=True), threads), strict=True):
                matches[place] = found
        return matches

    def _parts(self, undecided: list[tuple[int, GroupSelection]]) -> Iterator[list[tuple[int, GroupSelection]]]:
        part: list[tuple[int, GroupSelection]] = []
        size = 0
        for place, selection in undecided:
            chunks = self.plan(self._filter_columns, [selection.pruning.row_group]).chunks
            needed = sum(
                length for chunk in chunks for _, length in self.partial(chunk, selection, selection.pruning.rows).ranges
            )
            if part and size + needed > FETCHED:
                yield part
                part, size = [], 0
            part.append((place, selection))
            size += needed
        if part:
            yield part

    def _masked(self, work: tuple[tuple[int, GroupSelection], dict[str, AnyColumn]]) -> _Match:
        (_, selection), read = work
        mask, columns = self._mask(read)
        wanted = {column.index for column in self._columns}
        kept = None if mask.all() else np.flatnonzero(mask)
        return _Match(
            selection.group(selection.pruning.rows.select(mask)),
            {
                number: column if kept is None else column.take(kept)
                for number, column in columns.items()
                if number in wanted and self._filtered[number].is_flat
            },
        )

    def _mask(self, read: Mapping[str, AnyColumn]) -> tuple[NDArray[np.bool_], dict[int, Column]]:
        """Where the predicate holds, and the columns that it is on, by number."""
        assert self._predicate is not None
        columns = {number: leaf_of(read[column.top.element.name], column) for number, column in self._filtered.items()}
        return mask_of(self._predicate, lambda leaf: columns[leaf.column.index]), columns

    def _stream_matching(self, selection: GroupSelection, threads: int) -> RowRanges:
        """The rows of one selection for which the predicate holds, found a window at a time."""
        rows = selection.pruning.rows
        if selection.pruning.outcome is not Outcome.SOME:
            return rows
        plan = self._plan_rows(self._filter_columns, [_Match(selection.group(rows), {})])
        windows = self._scan.batches(plan, WINDOW, threads)
        return rows.select(np.concatenate([self._mask(window)[0] for window in windows]))

    def _plan_rows(self, columns: Sequence[ColumnDescriptor], matches: Sequence[_Match]) -> ReadPlan:
        groups = [match.group for match in matches]
        return plan_rows(self._metadata, columns, groups, self._scan.source.size)

    def _read_rows(
        self, columns: Sequence[ColumnDescriptor], matches: Sequence[_Match], threads: int
    ) -> Iterator[tuple[str, AnyColumn]]:
        """Columns in the rows of all matches, by name, fetched together."""
        loose = [loosen(column) for column in self._plan_rows(columns, matches).columns]
        found = self._scan.columns([(column.plan, column.num_rows) for column in loose], threads)
        for column, values in zip(loose, found, strict=True):
            yield column.plan.name, values if column.kept is None else take(values, column.kept)

    def _joined(self, column: ColumnDescriptor, matches: Sequence[_Match], threads: int) -> AnyColumn:
        """A column that was read of those row groups that evidence did not decide."""
        decided = [match for match in matches if column.index not in match.columns]
        rest = dict(self._read_rows([column], decided, threads))[column.name] if decided else None
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
        return plan_pages(chunk, selection.offset_indexes.get(chunk.column.index), rows)

    def columns_read(self, selection: GroupSelection) -> list[ColumnDescriptor]:
        """The columns that are read of a row group: those of the predicate too, where evidence does not decide it."""
        match selection.pruning.outcome:
            case Outcome.NONE:
                return []
            case Outcome.ALL:
                return self._columns
        return self.every_column

    def _finished(self, table: Table) -> Table:
        """Text in the layout that was asked for, without the pages that only rows left behind pointed into."""
        columns = {name: self._finish(_compact(column)) for name, column in table.items()}
        return Table(columns, num_rows=table.num_rows)


def _may_leave_pages_out(group: GroupPruning) -> bool:
    return group.outcome is Outcome.SOME or (group.outcome is Outcome.ALL and not group.rows.is_every)


def _can_be_probed(leaf: Leaf) -> bool:
    return isinstance(leaf, Membership) and leaf.stored() is not None


def _compact(column: AnyColumn) -> AnyColumn:
    """A column whose views point into buffers that hold little else than its values."""
    values = column.values if isinstance(column, Column) else None
    if not isinstance(column, Column) or not isinstance(values, BinaryViews):
        return column
    held = sum(buffer.nbytes for buffer in values.buffers)
    size = total_size(SliceReader(values, column.validity if column.null_count else None))
    return column.as_offsets().as_views() if held > MOST_SLACK * size + ALWAYS_HELD else column


def leaf_of(column: AnyColumn, leaf: ColumnDescriptor) -> Column:
    """A leaf that is not repeated, null also where a struct above it is."""
    missing: list[NDArray[np.bool_]] = []
    for name in leaf.path[1:]:
        assert isinstance(column, StructColumn)
        if column.null_count:
            missing.append(~column.validity_mask())
        column = column[name]
    assert isinstance(column, Column)
    if not missing:
        return column
    valid = column.validity_mask() & ~np.logical_or.reduce(missing)
    null_count = len(valid) - int(np.count_nonzero(valid))
    return replace(column, validity=pack_bitmap(valid), null_count=null_count, nullable=True)
