"""Columns with all values in dictionary pages: columns to read as codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastpq import format as fmt
from fastpq.errors import FormatError
from fastpq.index.claims import Claims, Part
from fastpq.index.contradictions import fault
from fastpq.read.costs import ROWS_A_STORED_BYTE, SURELY_CODED
from fastpq.schema.types import Unknown

if TYPE_CHECKING:
    from fastpq.metadata.column_chunk import ColumnChunkMetaData
    from fastpq.read.chunk_plan import ChunkPlan
    from fastpq.read.opener import ChunkOpener
    from fastpq.schema.parquet_schema import ColumnDescriptor

_DICTIONARY_ENCODINGS = {fmt.Encoding.PLAIN_DICTIONARY, fmt.Encoding.RLE_DICTIONARY}
_LEVEL_ENCODINGS = {fmt.Encoding.RLE, fmt.Encoding.BIT_PACKED}


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


def has_few_values(opener: ChunkOpener, leaf: ColumnDescriptor, chunks: Sequence[ChunkPlan]) -> bool:
    """Whether codes of a flat column take little memory beside views: its values are in dictionary pages, which are small.

    The encodings are asked of chunks whose size allows for values outside of the dictionary: many of these, read as codes, would
    take more memory and time.

    Args:
        opener: opener of the file's chunks.
        leaf: the column.
        chunks: plans of its chunks.
    """
    type_ = opener.type_of(leaf)
    if type_.dtype is not None or isinstance(type_.logical, Unknown):
        return False
    rows = sum(chunk.num_rows for chunk in chunks)
    sizes = [chunk.dictionary_size if chunk.has_dictionary else 0 for chunk in chunks]
    if 0 in sizes or sum(sizes) * ROWS_A_STORED_BYTE > rows:
        return False
    doubtful = [chunk for chunk in chunks if not 0 < chunk.uncompressed_size <= SURELY_CODED * chunk.num_rows]
    return are_in_dictionaries(opener, leaf, doubtful)


def are_in_dictionaries(opener: ChunkOpener, leaf: ColumnDescriptor, chunks: Sequence[ChunkPlan]) -> bool:
    """Whether all values of chunks of a flat column are in dictionary pages, by the metadata."""
    if isinstance(opener.type_of(leaf).logical, Unknown):
        return False
    try:
        return all(stored_dictionary_size(leaf, chunk.metadata) > 0 for chunk in chunks)
    except FormatError:     # broken metadata: no error of a read without codes
        return False
