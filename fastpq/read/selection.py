"""Selector: the rows of a file left to a filtered read by statistics, bloom filters, page indexes and dictionary pages.

The evidence is read here; ``fastpq.read.pruning`` draws the conclusions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from fastpq.arrays.table import Column
from fastpq.encryption.cipher import ModuleCipher
from fastpq.errors import FormatError, KeyAccessError, UnsupportedError
from fastpq.filters.evidence import chunk_bounds, exact_bounds, page_bounds
from fastpq.filters.predicate import Bounds, Condition, Membership, Outcome, Predicate, leaves
from fastpq.index.bloom_format import FilterRequest, StoredFilter, probe_bloom_filters
from fastpq.index.claims import Claims
from fastpq.index.page_index import ChunkIndexes, IndexRequest, OffsetIndex, read_page_indexes
from fastpq.index.ranges import RowRanges
from fastpq.metadata.column_chunk import ColumnChunkMetaData
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.coded import stored_dictionary_size
from fastpq.read.dictionaries import read_dictionaries, useful_dictionaries
from fastpq.read.opener import ChunkOpener
from fastpq.read.plan import GroupRows, plan_read
from fastpq.read.pruning import GroupPruning
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.stats.quirks import bloom_filters_are_trusted
from fastpq.stats.trust import trust_in


@dataclass(frozen=True, slots=True)
class GroupSelection:
    """The part of a row group left to a read.

    Attributes:
        pruning: the candidates, rows not ruled out, and the evidence.
        offset_indexes: places of pages, by column number; absent for columns without a usable OffsetIndex.
    """

    pruning: GroupPruning
    offset_indexes: dict[int, OffsetIndex]

    def group(self, rows: RowRanges) -> GroupRows:
        """Some rows of the row group, as input of a plan."""
        return GroupRows(self.pruning.row_group, rows, self.offset_indexes)

    def without_pages(self) -> GroupSelection:
        """The same row group without page indexes: whole chunks are read."""
        return GroupSelection(self.pruning.without_pages(), {})


class Selector:
    """Rules out rows of one file by evidence, before values are read.

    Args:
        opener: opens the file's chunks.
        metadata: footer of the file.
        predicate: condition on the rows; None keeps all.
        columns: the columns of the result.

    Attributes:
        filtered: the columns of the predicate, by number, in the order of the filters.
        every_column: the columns of the predicate, then the other columns of the result.
    """

    def __init__(
        self,
        opener: ChunkOpener,
        metadata: FileMetaData,
        predicate: Predicate | None,
        columns: Sequence[ColumnDescriptor],
    ) -> None:
        self._opener = opener
        self._metadata = metadata
        self._predicate = predicate
        self.filtered = {leaf.column.index: leaf.column for leaf in leaves(predicate)} if predicate is not None else {}
        self._trust = {number: trust_in(metadata, column) for number, column in self.filtered.items()}
        self.every_column = list((self.filtered | {column.index: column for column in columns}).values())

    def select(self, wanted: Iterable[tuple[int, RowRanges | None]]) -> list[GroupSelection]:
        """Rule out rows by statistics, then by bloom filters, then by column indexes, then by dictionary pages.

        Args:
            wanted: row groups, each with its requested rows; None for all rows.

        Returns:
            One selection for each row group, also for a row group without candidates.

        Raises:
            TagVerificationError: an encrypted index was altered.
        """
        groups = [self._start(slot, index, rows) for slot, (index, rows) in enumerate(wanted)]
        for group in groups[:1]:
            self._opener.decryptor.ask_for_keys(self._chunk(group, column).chunk for column in self.every_column)
        for group in groups:
            group.by_statistics(self._statistics_of(group))
        self._use_bloom_filters([group for group in groups if group.outcome is Outcome.SOME])
        offset_indexes, refuted = self._use_page_indexes([group for group in groups if _may_leave_pages_out(group)])
        selections = [GroupSelection(group, offset_indexes.get(group.slot, {})) for group in groups]
        undecided = [selection for selection in selections if selection.pruning.outcome is Outcome.SOME]
        self._use_dictionaries(undecided, refuted)
        return selections

    def _start(self, slot: int, row_group: int, rows: RowRanges | None) -> GroupPruning:
        num_rows = self._metadata.row_group(row_group).num_rows
        if num_rows < 0:
            raise FormatError(f"a row group of {num_rows} rows", row_group=row_group)
        return GroupPruning.start(slot, self._predicate, row_group, num_rows, rows)

    def _chunk(self, group: GroupPruning, column: ColumnDescriptor) -> ColumnChunkMetaData:
        return self._metadata.row_group(group.row_group).column(column.index)

    def _cipher(self, chunk: ColumnChunkMetaData, column: ColumnDescriptor) -> ModuleCipher:
        return self._opener.decryptor.chunk_cipher(chunk.chunk, chunk.row_group_ordinal, column.index)

    def _claims(self, group: GroupPruning, column: ColumnDescriptor) -> Claims:
        return Claims(column, group.num_rows, self._chunk(group, column).metadata, self._trust[column.index])

    def _statistics_of(self, group: GroupPruning) -> Callable[[Condition], tuple[Bounds, str | None]]:
        known: dict[int, tuple[Bounds, str | None]] = {}

        def bounds(leaf: Condition) -> tuple[Bounds, str | None]:
            column = leaf.column
            if column.index not in known:
                try:
                    found, refuted = chunk_bounds(self._claims(group, column))
                    known[column.index] = found, refuted and f"not usable ({refuted})"
                except KeyAccessError:
                    known[column.index] = Bounds(), "not known without its key"
            return known[column.index]

        return bounds

    def _use_bloom_filters(self, groups: list[GroupPruning]) -> None:
        if not bloom_filters_are_trusted(self._metadata.created_by) or self._are_soon_read(groups):
            return
        wanted: list[tuple[GroupPruning, int]] = []
        probes: list[FilterRequest] = []
        for group in groups:
            values: dict[int, set[bytes]] = {}
            for leaf in group.open_leaves:
                stored = leaf.stored() if isinstance(leaf, Membership) else None
                if stored is not None:
                    values.setdefault(leaf.column.index, set()).update(stored)
            for index, probed in values.items():
                column = self.filtered[index]
                chunk = self._chunk(group, column)
                try:
                    if chunk.metadata.bloom_filter_offset is not None:
                        probes.append(FilterRequest(chunk, self._cipher(chunk, column), self._claims(group, column), probed))
                        wanted.append((group, index))
                except KeyAccessError:
                    continue
        usable: dict[int, dict[int, StoredFilter | str]] = {}
        for (group, index), found in zip(wanted, probe_bloom_filters(self._opener.source, probes), strict=True):
            if isinstance(found, FormatError | UnsupportedError):
                usable.setdefault(group.slot, {})[index] = f"not usable ({found.message})"
            elif found is not None:
                usable.setdefault(group.slot, {})[index] = found
        for group in groups:
            group.by_bloom_filters(usable.get(group.slot, {}))

    def _use_page_indexes(
        self, groups: list[GroupPruning]
    ) -> tuple[dict[int, dict[int, OffsetIndex]], set[tuple[int, int]]]:
        """Rule out rows by column indexes.

        Returns:
            Usable offset indexes, by slot of the row group and by column number; and the (slot, column number) of chunks with
            refuted indexes.
        """
        asked: list[tuple[GroupPruning, IndexRequest]] = []
        for group in groups:
            undecided = {leaf.column.index for leaf in group.open_leaves}
            for column in self.every_column:
                chunk = self._chunk(group, column)
                try:
                    cipher = self._cipher(chunk, column)
                    trust = self._trust.get(column.index)
                    request = IndexRequest(column, chunk, group.num_rows, cipher, column.index in undecided, trust)
                except KeyAccessError:
                    continue
                asked.append((group, request))
        found: dict[int, dict[int, ChunkIndexes | FormatError]] = {}
        indexes = read_page_indexes(self._opener.source, [request for _, request in asked])
        for (group, request), index in zip(asked, indexes, strict=True):
            found.setdefault(group.slot, {})[request.column.index] = index
        for group in groups:
            group.by_column_indexes(self._page_bounds(found.get(group.slot, {})))
        refuted = {
            (slot, column)
            for slot, of_columns in found.items()
            for column, index in of_columns.items()
            if isinstance(index, FormatError)
        }
        usable = {
            group: {
                column: index.offset_index
                for column, index in of_columns.items()
                if isinstance(index, ChunkIndexes) and index.offset_index is not None
            }
            for group, of_columns in found.items()
        }
        return usable, refuted

    def _use_dictionaries(self, selections: list[GroupSelection], refuted: set[tuple[int, int]]) -> None:
        """Rule out row groups without a matching value in their dictionary pages.

        Args:
            selections: undecided row groups.
            refuted: (slot, column number) of chunks with refuted indexes: their encoding_stats may be the wrong part.
        """
        if self._are_soon_read([selection.pruning for selection in selections]):
            return
        wanted: list[tuple[GroupPruning, int, ChunkPlan]] = []
        for selection in selections:
            group = selection.pruning
            doubtful = [leaf for leaf in group.open_leaves if self._has_dictionary(group, leaf) and not self._is_met(group, leaf)]
            if not doubtful:
                continue
            chunks = plan_read(self._metadata, self.every_column, [group.row_group], self._opener.source.size).chunks
            useful = useful_dictionaries(self._opener.source, chunks, doubtful, group.rows, selection.offset_indexes)
            wanted += [(group, index, chunk) for index, chunk in useful.items() if (group.slot, index) not in refuted]
        read = read_dictionaries(self._opener, [chunk for _, _, chunk in wanted])
        found: dict[int, dict[int, Column | str]] = {}
        for (group, index, _), dictionary in zip(wanted, read, strict=True):
            found.setdefault(group.slot, {})[index] = dictionary
        for selection in selections:
            selection.pruning.by_dictionaries(found.get(selection.pruning.slot, {}))

    def _are_soon_read(self, groups: list[GroupPruning]) -> bool:
        """Whether a remote file brings all columns of row groups as soon as further evidence (``round_trip_bytes``)."""
        if not self._opener.source.is_remote:
            return False
        chunks = (self._chunk(group, column) for group in groups for column in self.every_column)
        try:
            return sum(chunk.total_compressed_size for chunk in chunks) <= self._opener.properties.round_trip_bytes
        except KeyAccessError:      # the later read of the chunk raises the error
            return False

    def _has_dictionary(self, group: GroupPruning, leaf: Condition) -> bool:
        try:
            return stored_dictionary_size(leaf.column, self._chunk(group, leaf.column)) > 0
        except KeyAccessError:
            return False

    def _is_met(self, group: GroupPruning, leaf: Condition) -> bool:
        """Whether the smallest or the largest value of the chunk meets a condition: the dictionary page has this value too."""
        bounds = exact_bounds(self._claims(group, leaf.column)) or ()
        return any(leaf.outcome(Bounds(key, key, 0, 1)) is Outcome.ALL for key in bounds)

    def _page_bounds(
        self, indexes: dict[int, ChunkIndexes | FormatError]
    ) -> dict[int, tuple[OffsetIndex, list[Bounds]] | str]:
        known: dict[int, tuple[OffsetIndex, list[Bounds]] | str] = {}
        for number, index in indexes.items():
            if isinstance(index, FormatError):
                known[number] = f"not usable ({index.message})"
            elif index.column_index is not None and index.offset_index is not None and number in self.filtered:
                bounds = page_bounds(self._trust[number], self.filtered[number], index.column_index, index.offset_index)
                known[number] = (index.offset_index, bounds)
        return known


def _may_leave_pages_out(group: GroupPruning) -> bool:
    return group.outcome is Outcome.SOME or (group.outcome is Outcome.ALL and not group.rows.is_every)
