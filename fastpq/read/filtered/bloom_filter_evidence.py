"""Bloom filters as evidence: if a filter has none of the values in an ``==`` or ``in`` condition, no row meets the condition."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fastpq.errors import FormatError, KeyAccessError, UnsupportedError
from fastpq.filters.predicate import Condition, Membership, Outcome
from fastpq.index.bloom_format import FilterRequest, StoredFilter, probe_bloom_filters
from fastpq.read.filtered.row_evidence import Evidence, FilteredChunks, PossibleRows, RowGroupPruning
from fastpq.stats.writer_bugs import bloom_filters_are_trusted


class BloomFilterEvidence(Evidence):
    """Bloom filters of the file, as evidence that decides ``==`` and ``in`` conditions.

    Args:
        chunks: the column chunks that the read is about.
    """

    kind = "bloom filter"

    def __init__(self, chunks: FilteredChunks) -> None:
        self._chunks = chunks
        # By row group slot and column number: the bloom filter, or a text that says why it cannot be used.
        self._filters: dict[tuple[int, int], StoredFilter | str] = {}

    def gather(self, groups: Sequence[RowGroupPruning]) -> list[RowGroupPruning]:
        undecided_groups = [group for group in groups if group.outcome is Outcome.SOME]
        if not bloom_filters_are_trusted(self._chunks.metadata.created_by) or self._chunks.are_soon_read(undecided_groups):
            return []
        places: list[tuple[int, int]] = []
        requests: list[FilterRequest] = []
        for group in undecided_groups:
            for column, members in _memberships(group).items():
                try:
                    request = self._request(group, column, members)
                except KeyAccessError:
                    continue
                if request is not None:
                    places.append((group.slot, column))
                    requests.append(request)
        for place, bloom_filter in zip(places, probe_bloom_filters(self._chunks.opener.source, requests), strict=True):
            if isinstance(bloom_filter, FormatError | UnsupportedError):
                self._filters[place] = f"not usable ({bloom_filter.message})"
            elif bloom_filter is not None:
                self._filters[place] = bloom_filter
        return undecided_groups

    def may_match(self, group: RowGroupPruning, leaf: Condition) -> PossibleRows | None:
        bloom_filter = self._filters.get((group.slot, leaf.column.index))
        hashes = leaf.plain_hashes if bloom_filter is not None and isinstance(leaf, Membership) else None
        if bloom_filter is None or hashes is None:
            return None
        if isinstance(bloom_filter, str):
            return PossibleRows(text=bloom_filter)
        return PossibleRows(Outcome.SOME if bloom_filter.probe_hashes(hashes).any() else Outcome.NONE)

    def _request(self, group: RowGroupPruning, number: int, members: list[Membership]) -> FilterRequest | None:
        """Return a request for a chunk's bloom filter, with the hashes of the values to look up in it.

        Return None if the chunk has no filter, or if the conditions' values cannot be looked up.

        Args:
            group: the row group of the chunk.
            number: column number.
            members: the ``==`` and ``in`` conditions on the column.
        """
        column = self._chunks.predicate_columns[number]
        chunk = self._chunks.chunk(group, column)
        in_another_calendar = self._chunks.usable_statistics[number].calendar is not None       # hashes are of stored values
        if chunk.metadata.bloom_filter_offset is None or in_another_calendar:
            return None
        hashes = [each for leaf in members if (each := leaf.plain_hashes) is not None]
        if not hashes:
            return None
        distinct = hashes[0] if len(hashes) == 1 else np.unique(np.concatenate(hashes))
        return FilterRequest(chunk, self._chunks.cipher(chunk, column), self._chunks.claims(group, column), distinct)


def _memberships(group: RowGroupPruning) -> dict[int, list[Membership]]:
    """Return the ``==`` and ``in`` conditions that earlier evidence has not decided, by column number.

    Bloom filters say nothing about ``!=`` and ``not in``. These are left out.
    """
    by_column: dict[int, list[Membership]] = {}
    for leaf in group.open_leaves:
        if isinstance(leaf, Membership) and not leaf.is_negated:
            by_column.setdefault(leaf.column.index, []).append(leaf)
    return by_column
