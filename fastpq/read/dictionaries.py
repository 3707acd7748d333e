"""Dictionary pages as evidence: a dictionary without a matching value rules out the rows of its chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fastpq.arrays.table import Column
from fastpq.errors import FormatError, KeyAccessError, UnsupportedError
from fastpq.filters.filtering import leaf_mask
from fastpq.filters.predicate import Condition, NullTest, Outcome
from fastpq.index.page_index import OffsetIndex
from fastpq.index.ranges import RowRanges
from fastpq.io.source import Source
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.coded import stored_dictionary_size
from fastpq.read.costs import WORTH_A_DICTIONARY, WORTH_A_ROUND_TRIP
from fastpq.read.flat import leaf_column
from fastpq.read.opener import ChunkOpener
from fastpq.read.plan import plan_pages


def useful_dictionaries(
    source: Source,
    chunks: Sequence[ChunkPlan],
    conditions: Sequence[Condition],
    rows: RowRanges,
    offset_indexes: Mapping[int, OffsetIndex],
) -> dict[int, ChunkPlan]:
    """Chunks of a row group with dictionary pages worth reading as evidence, by column number.

    A dictionary page is worth reading if small beside the bytes to read of the row group.

    Args:
        source: the file.
        chunks: plans of the whole chunks of the row group.
        conditions: undecided conditions.
        rows: candidates, rows not ruled out.
        offset_indexes: places of pages, by column number.
    """
    needed = sum(plan_pages(chunk, offset_indexes.get(chunk.column.index), rows, 0).num_bytes for chunk in chunks)
    if source.is_remote and needed < WORTH_A_ROUND_TRIP:
        return {}
    wanted = {leaf.column.index for leaf in conditions if not isinstance(leaf, NullTest)}
    return {
        chunk.column.index: chunk
        for chunk in chunks
        if chunk.column.index in wanted
        and 0 < stored_dictionary_size(chunk.column, chunk.metadata) * WORTH_A_DICTIONARY <= needed
    }


def read_dictionaries(opener: ChunkOpener, chunks: Sequence[ChunkPlan]) -> list[Column | str]:
    """The values of each chunk's dictionary page, or the reason for none; all pages are read with one round of requests."""
    sizes = (stored_dictionary_size(chunk.column, chunk.metadata) for chunk in chunks)
    places = [(chunk.metadata.dictionary_page_offset or 0, size) for chunk, size in zip(chunks, sizes, strict=True)]
    read: list[Column | str] = []
    for chunk, stored in zip(chunks, opener.source.read_ranges(places), strict=True):
        try:
            found = opener.flat(chunk, stored).dictionary()
        except KeyAccessError:
            read.append("not known without its key")
        except (FormatError, UnsupportedError) as error:        # the later read of the chunk raises the error
            read.append(f"not usable ({error.message})")
        else:
            type_ = opener.type_of(chunk.column)
            read.append(leaf_column(opener, type_, found.values, found.buffers, (None, 0), False))
    return read


def outcome_in(leaf: Condition, dictionary: Column) -> Outcome:
    """NONE if no value of the dictionary meets a condition, otherwise SOME: a chunk need not use every value."""
    return Outcome.SOME if leaf_mask(leaf, dictionary).any() else Outcome.NONE
