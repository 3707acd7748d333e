"""Page indexes as evidence: a page's bounds may rule out all of its rows, or prove that all of them match."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fastpq.errors import FormatError, KeyAccessError
from fastpq.filters.evidence import page_bounds
from fastpq.filters.predicate import Bounds, Condition, Outcome
from fastpq.index.page_index import ChunkIndexes, IndexRequest, OffsetIndex, read_page_indexes
from fastpq.index.ranges import RowRanges
from fastpq.read.filtered.row_evidence import Evidence, FilteredChunks, PossibleRows, RowGroupPruning


class PageIndexEvidence(Evidence):
    """Page indexes as evidence about the single pages of a row group.

    Args:
        chunks: the column chunks that the read is about.

    Attributes:
        refuted_chunks: (row group slot, column number) of the chunks whose page index contradicts the file.
    """

    kind = "column index"

    def __init__(self, chunks: FilteredChunks) -> None:
        self._chunks = chunks
        self._indexes: dict[tuple[int, int], ChunkIndexes | FormatError] = {}       # by row group slot and column number
        self._bounds: dict[tuple[int, int], list[Bounds]] = {}
        self._offset_indexes: dict[int, dict[int, OffsetIndex]] = {}       # by slot, then by column number
        self.refuted_chunks: set[tuple[int, int]] = set()

    def gather(self, groups: Sequence[RowGroupPruning]) -> list[RowGroupPruning]:
        useful_groups = [group for group in groups if _may_leave_pages_out(group)]
        places: list[tuple[int, int]] = []
        requests: list[IndexRequest] = []
        for group in useful_groups:
            undecided_columns = {leaf.column.index for leaf in group.open_leaves}
            for column in self._chunks.every_column:
                chunk = self._chunks.chunk(group, column)
                try:
                    cipher = self._chunks.cipher(chunk, column)
                    usable = self._chunks.usable_statistics.get(column.index)
                    request = IndexRequest(column, chunk, group.num_rows, cipher, column.index in undecided_columns, usable)
                except KeyAccessError:
                    continue
                places.append((group.slot, column.index))
                requests.append(request)
        indexes = read_page_indexes(self._chunks.opener.source, requests)
        self._indexes = dict(zip(places, indexes, strict=True))
        for (slot, number), index in self._indexes.items():
            if isinstance(index, FormatError):
                self.refuted_chunks.add((slot, number))
            elif index.offset_index is not None:
                self._offset_indexes.setdefault(slot, {})[number] = index.offset_index
        return useful_groups

    def may_match(self, group: RowGroupPruning, leaf: Condition) -> PossibleRows | None:
        place = (group.slot, leaf.column.index)
        index = self._indexes.get(place)
        if isinstance(index, FormatError):
            return PossibleRows(text=f"not usable ({index.message})")
        if index is None or index.column_index is None or index.offset_index is None:
            return None
        if place not in self._bounds:
            usable = self._chunks.usable_statistics[leaf.column.index]
            self._bounds[place] = page_bounds(usable, leaf.column, index.column_index, index.offset_index)
        outcomes = [leaf.outcome(page) for page in self._bounds[place]]
        is_possible = np.array([outcome is not Outcome.NONE for outcome in outcomes], np.bool_)
        is_certain = np.array([outcome is Outcome.ALL for outcome in outcomes], np.bool_)
        first_rows = index.offset_index.first_rows
        return PossibleRows(
            text=f"{int(is_possible.sum())} of {len(is_possible)} pages",
            possible=RowRanges.of_parts(first_rows, is_possible, group.num_rows),
            certain=RowRanges.of_parts(first_rows, is_certain, group.num_rows),
        )

    def offset_indexes(self, group: RowGroupPruning) -> dict[int, OffsetIndex]:
        """Return the usable page locations in a row group, by column number."""
        return self._offset_indexes.get(group.slot, {})


def _may_leave_pages_out(group: RowGroupPruning) -> bool:
    return group.outcome is Outcome.SOME or (group.outcome is Outcome.ALL and not group.rows.is_every)
