"""Reading the rows for which a predicate holds: indexes first, then the columns of the predicate, then the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fastpq.binary import total_size
from fastpq.encryption.cipher import ModuleCipher
from fastpq.errors import FormatError, KeyAccessError
from fastpq.evidence import chunk_bounds, page_bounds
from fastpq.filtering import mask_of
from fastpq.index.bloom_filter import SplitBlockBloomFilter
from fastpq.index.bloom_format import read_bloom_filters
from fastpq.index.page_index import ChunkIndexes, IndexRequest, OffsetIndex, read_page_indexes
from fastpq.index.trust import bloom_filters_are_trusted
from fastpq.metadata import ColumnChunkMetaData, FileMetaData
from fastpq.nested import take
from fastpq.parallel import run
from fastpq.plan import ChunkPlan, ColumnPlan, ReadPlan, plan_pages, plan_read
from fastpq.predicate import Bounds, Leaf, Membership, Outcome, Predicate, leaves
from fastpq.pruning import GroupPruning
from fastpq.ranges import RowRanges
from fastpq.scan import Scan
from fastpq.schema import ColumnDescriptor
from fastpq.slices import SliceReader
from fastpq.table import AnyColumn, BinaryViews, Column, Table

# Views keep the pages that they point into: as long as these are not much larger than the values, nothing is copied.
MOST_SLACK = 2
ALWAYS_HELD = 1 << 16


@dataclass(frozen=True, slots=True)
class GroupSelection:
    """What of a row group is read.

    Attributes:
        pruning: the rows that the predicate may hold for, and by which evidence.
        offset_indexes: where the pages of columns are, by number; columns whose pages are not known are left out.
    """

    pruning: GroupPruning
    offset_indexes: dict[int, OffsetIndex]


class SelectiveScan:
    """Reads the rows of one file for which a predicate holds.

    Args:
        scan: of the file; variable-length values must come as views.
        metadata: of the file.
        predicate: what must hold.
        columns: the columns of the result.
        finish: what is done with each column at last.
    """

    def __init__(
        self,
        scan: Scan,
        metadata: FileMetaData,
        predicate: Predicate,
        columns: Sequence[ColumnDescriptor],
        finish: Callable[[AnyColumn], AnyColumn],
    ) -> None:
        self._scan = scan
        self._finish = finish
        self._metadata = metadata
        self._predicate = predicate
        self._columns = list(columns)
        # by number, in the order of the filters
        self._filtered = {leaf.column.index: leaf.column for leaf in leaves(predicate)}
        self.every_column = list(
            {column.index: column for column in [*self._filtered.values(), *self._columns]}.values()
        )
        self.plan(self.every_column, ())       # refuses what cannot be read, before anything is

    def plan(self, columns: Sequence[ColumnDescriptor], row_groups: Iterable[int] | None) -> ReadPlan:
        """The plan of a full read."""
        return plan_read(self._metadata, columns, row_groups, self._scan.source.size)

    # ---- which rows

    def select(self, row_groups: Iterable[int]) -> list[GroupSelection]:
        """Prune row groups, by statistics, then by bloom filters, then by column indexes.

        Returns:
            A selection for each of row_groups, those of which nothing is left among them.

        Raises:
            TagVerificationError: an encrypted index was altered.
        """
        groups = [self._start(index) for index in row_groups]
        for group in groups:
            group.by_statistics(self._statistics_of(group))
        self._use_bloom_filters([group for group in groups if group.outcome is Outcome.SOME])
        offset_indexes = self._use_page_indexes([group for group in groups if group.outcome is not Outcome.NONE])
        return [GroupSelection(group, offset_indexes.get(id(group), {})) for group in groups]

    def _start(self, row_group: int) -> GroupPruning:
        num_rows = self._metadata.row_group(row_group).num_rows
        if num_rows < 0:
            raise FormatError(f"a row group of {num_rows} rows", row_group=row_group)
        return GroupPruning.start(self._predicate, row_group, num_rows)

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
                if not column.is_flat:
                    continue
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

    def read(self, selections: Sequence[GroupSelection], threads: int) -> Table:
        """The rows of all selections for which the predicate holds."""
        open_ones = [selection for selection in selections if selection.pruning.outcome is not Outcome.NONE]
        inner = 1 if len(open_ones) >= threads else threads
        tables = run(lambda selection: self.read_group(selection, inner), open_ones, threads)
        kept = [table for table in tables if table.num_rows]
        return self._finished(Table.concat(kept) if kept else self._nothing)

    def batches(self, selections: Sequence[GroupSelection], batch_size: int, threads: int) -> Iterator[Table]:
        """The same as Tables of batch_size rows (the last may be shorter), read a row group at a time."""
        waiting: Table | None = None
        for selection in selections:
            if selection.pruning.outcome is Outcome.NONE:
                continue
            table = self.read_group(selection, threads)
            waiting = table if waiting is None or not waiting.num_rows else Table.concat([waiting, table])
            start = 0
            while waiting.num_rows - start >= batch_size:
                yield self._finished(waiting.slice(start, start + batch_size))
                start += batch_size
            waiting = waiting.slice(start)
        if waiting is not None and waiting.num_rows:
            yield self._finished(waiting)

    def count(self, selections: Sequence[GroupSelection], threads: int) -> int:
        """How many rows there are; row groups that evidence decides are not read."""
        open_ones = [selection for selection in selections if selection.pruning.outcome is Outcome.SOME]
        decided = sum(
            selection.pruning.num_rows for selection in selections if selection.pruning.outcome is Outcome.ALL
        )
        inner = 1 if len(open_ones) >= threads else threads
        return decided + sum(run(lambda selection: self._matching(selection, inner)[0].count, open_ones, threads))

    def read_group(self, selection: GroupSelection, threads: int) -> Table:
        """The rows of one row group for which the predicate holds."""
        rows, read = self._matching(selection, threads)
        if not rows.count:
            return self._nothing
        planned = self.plan(self._columns, [selection.pruning.row_group]).columns
        missing = [column for column in planned if column.flat is None or column.flat[0].index not in read]
        found = iter(self._read_rows(selection, missing, rows, threads))
        columns: dict[str, AnyColumn] = {}
        for column in planned:
            known = None if column.flat is None else read.get(column.flat[0].index)
            columns[column.name] = next(found) if known is None else known
        return Table(columns, num_rows=rows.count)

    @cached_property
    def _nothing(self) -> Table:
        """The columns of the result without a row."""
        return self._scan.read(self.plan(self._columns, ()), 1)

    def _matching(self, selection: GroupSelection, threads: int) -> tuple[RowRanges, dict[int, Column]]:
        """The rows for which the predicate holds, and the columns that it is on, by number."""
        pruning = selection.pruning
        if pruning.outcome is not Outcome.SOME:
            return pruning.rows, {}
        planned = self.plan(list(self._filtered.values()), [pruning.row_group]).columns
        found = self._read_rows(selection, planned, pruning.rows, threads)
        read = {number: column for number, column in zip(self._filtered, found, strict=True) if isinstance(column, Column)}
        mask = mask_of(self._predicate, lambda leaf: read[leaf.column.index])
        kept, wanted = np.flatnonzero(mask), {column.index for column in self._columns}
        return pruning.rows.select(mask), {
            number: column if mask.all() else column.take(kept) for number, column in read.items() if number in wanted
        }

    def _read_rows(
        self, selection: GroupSelection, columns: Sequence[ColumnPlan], rows: RowRanges, threads: int
    ) -> list[AnyColumn]:
        """Some rows of some columns, from the pages that hold them."""
        covered: list[RowRanges] = []
        wanted: list[tuple[ColumnPlan, int]] = []
        for column in columns:
            chunks = [(leaf, [self.partial(chunk, selection, rows) for chunk in found]) for leaf, found in column.leaves]
            pages = chunks[0][1][0].pages
            covered.append(RowRanges.every(rows.num_rows) if pages is None else pages.rows)
            wanted.append((ColumnPlan(column.node, chunks), covered[-1].count))
        return [
            column if read == rows else take(column, np.flatnonzero(rows.contain(read.rows())))
            for column, read in zip(self._scan.columns(wanted, threads), covered, strict=True)
        ]

    def partial(self, chunk: ChunkPlan, selection: GroupSelection, rows: RowRanges) -> ChunkPlan:
        """The plan of the pages of a chunk that hold some rows."""
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
