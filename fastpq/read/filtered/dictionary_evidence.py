"""Dictionary pages as evidence: if no value in a chunk's dictionary meets a condition, no row of the chunk does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fastpq.arrays.table import Column
from fastpq.errors import FormatError, KeyAccessError, UnsupportedError
from fastpq.filters.evidence import exact_bounds
from fastpq.filters.filtering import leaf_mask
from fastpq.filters.predicate import Bounds, Condition, NullTest, Outcome
from fastpq.index.page_index import OffsetIndex
from fastpq.index.ranges import RowRanges
from fastpq.io.source import Source
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.costs import WORTH_A_DICTIONARY, WORTH_A_ROUND_TRIP
from fastpq.read.dictionary_columns import stored_dictionary_size
from fastpq.read.filtered.page_index_evidence import PageIndexEvidence
from fastpq.read.filtered.row_evidence import Evidence, FilteredChunks, PossibleRows, RowGroupPruning
from fastpq.read.flat import leaf_column
from fastpq.read.opener import ChunkOpener
from fastpq.read.plan import plan_pages, plan_read


class DictionaryEvidence(Evidence):
    """Dictionary pages as evidence. A page is read only if it is small compared with the bytes of its row group that it may save.

    Args:
        chunks: the column chunks that the read is about.
        pages: page index evidence. It must be gathered before this evidence.
    """

    kind = "dictionary"

    def __init__(self, chunks: FilteredChunks, pages: PageIndexEvidence) -> None:
        self._chunks = chunks
        self._pages = pages
        # By row group slot and column number: the dictionary page's values, or a text that says why they cannot be used.
        self._dictionaries: dict[tuple[int, int], Column | str] = {}

    def gather(self, groups: Sequence[RowGroupPruning]) -> list[RowGroupPruning]:
        undecided_groups = [group for group in groups if group.outcome is Outcome.SOME]
        if self._chunks.are_soon_read(undecided_groups):
            return []
        source = self._chunks.opener.source
        useful: dict[tuple[int, int], ChunkPlan] = {}
        for group in undecided_groups:
            leaves = [leaf for leaf in group.open_leaves if self._has_dictionary(group, leaf) and not self._is_met(group, leaf)]
            if not leaves:
                continue
            plans = plan_read(self._chunks.metadata, self._chunks.every_column, [group.row_group], source.size).chunks
            worth_it = useful_dictionaries(source, plans, leaves, group.rows, self._pages.offset_indexes(group))
            useful |= {(group.slot, column): plan for column, plan in worth_it.items()}
        # The file contradicts the page index of a refuted chunk. The chunk's encoding_stats may be wrong too.
        useful = {place: plan for place, plan in useful.items() if place not in self._pages.refuted_chunks}
        dictionaries = read_dictionaries(self._chunks.opener, list(useful.values()))
        self._dictionaries = dict(zip(useful, dictionaries, strict=True))
        return undecided_groups

    def may_match(self, group: RowGroupPruning, leaf: Condition) -> PossibleRows | None:
        dictionary = self._dictionaries.get((group.slot, leaf.column.index))
        if isinstance(dictionary, str):
            return PossibleRows(text=dictionary)
        if dictionary is None or isinstance(leaf, NullTest):
            return None
        # A match proves nothing: a chunk need not use every value of its dictionary.
        return PossibleRows(Outcome.SOME if leaf_mask(leaf, dictionary).any() else Outcome.NONE)

    def _has_dictionary(self, group: RowGroupPruning, leaf: Condition) -> bool:
        try:
            return stored_dictionary_size(leaf.column, self._chunks.chunk(group, leaf.column)) > 0
        except KeyAccessError:
            return False

    def _is_met(self, group: RowGroupPruning, leaf: Condition) -> bool:
        """Return whether the smallest or the largest value in the chunk meets a condition.

        If so, the dictionary page has this value too. Then it cannot rule the chunk out, and need not be read.
        """
        bounds = exact_bounds(self._chunks.claims(group, leaf.column)) or ()
        return any(leaf.outcome(Bounds(key, key, 0, 1)) is Outcome.ALL for key in bounds)


def useful_dictionaries(
    source: Source, chunks: Sequence[ChunkPlan], conditions: Sequence[Condition], rows: RowRanges,
    offset_indexes: Mapping[int, OffsetIndex],
) -> dict[int, ChunkPlan]:
    """Return the chunks in a row group whose dictionary pages are worth reading as evidence, by column number.

    A dictionary page is worth reading if it is small compared with the bytes that must be read from the row group without it.

    Args:
        source: the file.
        chunks: read plans for all rows of the row group, one for each column that the read needs.
        conditions: conditions that earlier evidence has not decided.
        rows: the rows that earlier evidence has not ruled out.
        offset_indexes: page locations, by column number.
    """
    bytes_to_read = sum(plan_pages(chunk, offset_indexes.get(chunk.column.index), rows, 0).num_bytes for chunk in chunks)
    if source.is_remote and bytes_to_read < WORTH_A_ROUND_TRIP:
        return {}
    filtered_columns = {leaf.column.index for leaf in conditions if not isinstance(leaf, NullTest)}
    return {
        chunk.column.index: chunk
        for chunk in chunks
        if chunk.column.index in filtered_columns
        and 0 < stored_dictionary_size(chunk.column, chunk.metadata) * WORTH_A_DICTIONARY <= bytes_to_read
    }


def read_dictionaries(opener: ChunkOpener, chunks: Sequence[ChunkPlan]) -> list[Column | str]:
    """Return the values in each chunk's dictionary page, or a text that says why they cannot be used.

    One round of requests fetches all pages.

    Args:
        opener: opens the file's chunks.
        chunks: plans for the chunks. Each chunk has a dictionary page.
    """
    sizes = (stored_dictionary_size(chunk.column, chunk.metadata) for chunk in chunks)
    places = [(chunk.metadata.dictionary_page_offset or 0, size) for chunk, size in zip(chunks, sizes, strict=True)]
    dictionaries: list[Column | str] = []
    for chunk, stored_bytes in zip(chunks, opener.source.read_ranges(places), strict=True):
        try:
            page, type_ = opener.flat(chunk, stored_bytes).dictionary(), opener.type_of(chunk.column)
            dictionaries.append(leaf_column(opener, type_, page.values, page.buffers, (None, 0), False))
        except KeyAccessError:
            dictionaries.append("not known without its key")
        except (FormatError, UnsupportedError) as error:        # the later read of the chunk raises the error
            dictionaries.append(f"not usable ({error.message})")
    return dictionaries
