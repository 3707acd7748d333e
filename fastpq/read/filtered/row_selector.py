"""RowSelector: the one place that asks all kinds of evidence, the cheapest first, which rows a filtered read has to look at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fastpq.errors import FormatError
from fastpq.filters.predicate import Predicate
from fastpq.index.page_index import OffsetIndex
from fastpq.index.ranges import RowRanges
from fastpq.read.filtered.bloom_filter_evidence import BloomFilterEvidence
from fastpq.read.filtered.dictionary_evidence import DictionaryEvidence
from fastpq.read.filtered.page_index_evidence import PageIndexEvidence
from fastpq.read.filtered.row_evidence import FilteredChunks, RowGroupPruning
from fastpq.read.filtered.statistics_evidence import StatisticsEvidence
from fastpq.read.plan import GroupRows


@dataclass(frozen=True, slots=True)
class RowGroupSelection:
    """The part of a row group that evidence leaves to a read.

    Attributes:
        pruning: the candidates, which are the rows that are not ruled out, and the evidence.
        offset_indexes: page locations, by column number. Columns without a usable OffsetIndex are absent.
    """

    pruning: RowGroupPruning
    offset_indexes: dict[int, OffsetIndex]

    def group(self, rows: RowRanges) -> GroupRows:
        """Return some rows in the row group as input for a plan."""
        return GroupRows(self.pruning.row_group, rows, self.offset_indexes)

    def without_pages(self) -> RowGroupSelection:
        """Return the same row group without page indexes, so that whole chunks are read."""
        return RowGroupSelection(self.pruning.without_pages(), {})


class RowSelector:
    """Selector that rules out rows in one file by evidence, before values are read.

    Args:
        chunks: the chunks of the read.
        predicate: condition on the rows, or None to keep all rows.
    """

    def __init__(self, chunks: FilteredChunks, predicate: Predicate | None) -> None:
        self._chunks = chunks
        self._predicate = predicate

    def select(self, row_groups: Iterable[tuple[int, RowRanges | None]]) -> list[RowGroupSelection]:
        """Rule out rows by statistics, then by bloom filters, then by page indexes, then by dictionary pages.

        Args:
            row_groups: row group indices, each with its requested rows, or None for all rows.

        Returns:
            One selection for each row group, even if it has no candidates.

        Raises:
            TagVerificationError: an encrypted index was altered.
        """
        chunks = self._chunks
        groups = [self._start(slot, index, rows) for slot, (index, rows) in enumerate(row_groups)]
        for group in groups[:1]:
            chunks.opener.decryptor.prefetch_keys(chunks.chunk(group, column).chunk for column in chunks.every_column)
        pages = PageIndexEvidence(chunks)
        for evidence in (
            StatisticsEvidence(chunks.metadata), BloomFilterEvidence(chunks), pages, DictionaryEvidence(chunks, pages),
        ):
            for group in evidence.gather(groups):
                group.use(evidence)
        return [RowGroupSelection(group, pages.offset_indexes(group)) for group in groups]

    def _start(self, slot: int, row_group: int, rows: RowRanges | None) -> RowGroupPruning:
        num_rows = self._chunks.metadata.row_group(row_group).num_rows
        if num_rows < 0:
            raise FormatError(f"a row group of {num_rows} rows", row_group=row_group)
        return RowGroupPruning.start(slot, self._predicate, row_group, num_rows, rows)
