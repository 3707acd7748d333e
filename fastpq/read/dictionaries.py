"""Dictionary pages as evidence: a dictionary without a matching value rules out the rows of its chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fastpq import format as fmt
from fastpq.arrays.table import Column
from fastpq.errors import FormatError, KeyAccessError, UnsupportedError
from fastpq.filters.filtering import leaf_mask
from fastpq.filters.predicate import Condition, NullTest, Outcome
from fastpq.index.claims import Claims, Part
from fastpq.index.contradictions import fault
from fastpq.index.page_index import OffsetIndex
from fastpq.index.ranges import RowRanges
from fastpq.io.source import Source
from fastpq.metadata.column_chunk import ColumnChunkMetaData
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.costs import ROWS_A_STORED_BYTE, WORTH_A_DICTIONARY, WORTH_A_ROUND_TRIP
from fastpq.read.flat import leaf_column
from fastpq.read.opener import ChunkOpener
from fastpq.read.plan import plan_pages
from fastpq.schema.parquet_schema import ColumnDescriptor
from fastpq.schema.types import Unknown

_DICTIONARY_ENCODINGS = {fmt.Encoding.PLAIN_DICTIONARY, fmt.Encoding.RLE_DICTIONARY}
_LEVEL_ENCODINGS = {fmt.Encoding.RLE, fmt.Encoding.BIT_PACKED}


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


def stored_dictionary_size(column: ColumnDescriptor, chunk: ColumnChunkMetaData) -> int:
    """Stored size of a chunk's dictionary page; 0 if some values of the chunk may be outside the dictionary."""
    start = chunk.dictionary_page_offset
    if chunk.file_path or start is None or not 0 < start < chunk.data_page_offset:
        return 0
    if fault(Part.ENCODING_STATS, Claims(column, 0, chunk.metadata)) is not None:
        return 0
    encodings = {stats.encoding for stats in chunk.encoding_stats if stats.page_type in fmt.DATA_PAGE_TYPES and stats.count}
    if not encodings:       # old writers: PLAIN may be the dictionary page's, but not beside PLAIN_DICTIONARY
        encodings = set(chunk.encodings) - _LEVEL_ENCODINGS
        if fmt.Encoding.PLAIN_DICTIONARY not in encodings:
            return 0
    return chunk.data_page_offset - start if encodings <= _DICTIONARY_ENCODINGS else 0


def reads_codes(opener: ChunkOpener, leaf: ColumnDescriptor, chunks: Sequence[ChunkPlan], with_unused: bool) -> bool:
    """Whether a flat column can be read as codes: all values of its chunks are in dictionaries.

    Args:
        opener: opener of the file's chunks.
        leaf: the column.
        chunks: plans of its chunks.
        with_unused: whether the dictionary may have entries of rows left out.
    """
    if opener.type_of(leaf).dtype is not None or not (with_unused or all(chunk.kept is None for chunk in chunks)):
        return False
    return are_in_dictionaries(opener, leaf, chunks)


def has_few_texts(opener: ChunkOpener, leaf: ColumnDescriptor, chunks: Sequence[ChunkPlan]) -> bool:
    """Whether codes of a flat column take little memory beside views: all values are in dictionary pages, which are small.

    Args:
        opener: opener of the file's chunks.
        leaf: the column.
        chunks: plans of its chunks.
    """
    if opener.type_of(leaf).dtype is not None or not are_in_dictionaries(opener, leaf, chunks):
        return False
    return sum(stored_dictionary_size(leaf, chunk.metadata) for chunk in chunks) * ROWS_A_STORED_BYTE <= sum(
        chunk.num_rows for chunk in chunks)


def are_in_dictionaries(opener: ChunkOpener, leaf: ColumnDescriptor, chunks: Sequence[ChunkPlan]) -> bool:
    """Whether all values of chunks of a flat column are in dictionary pages, by the metadata."""
    if isinstance(opener.type_of(leaf).logical, Unknown):
        return False
    return all(stored_dictionary_size(leaf, chunk.metadata) > 0 for chunk in chunks)


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
