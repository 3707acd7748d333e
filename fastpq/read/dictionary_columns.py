"""Columns whose values are all in dictionary pages, so that they can be read as codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastpq import format as fmt
from fastpq.errors import FormatError
from fastpq.index.chunk_claims import ChunkMetadataClaims, Part
from fastpq.index.consistency_checks import fault
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
    """Return the stored size of a chunk's dictionary page in bytes, or 0 if some values may be outside the dictionary."""
    start = chunk.dictionary_page_offset
    if chunk.file_path or start is None or not 0 < start < chunk.data_page_offset:
        return 0
    if fault(Part.ENCODING_STATS, ChunkMetadataClaims(column, 0, chunk.metadata)) is not None:
        return 0
    encodings = {stats.encoding for stats in chunk.encoding_stats if stats.page_type in fmt.DATA_PAGE_TYPES and stats.count}
    if not encodings:       # old writers, which never list PLAIN for a dictionary page next to PLAIN_DICTIONARY
        encodings = set(chunk.encodings) - _LEVEL_ENCODINGS
        if fmt.Encoding.PLAIN_DICTIONARY not in encodings:
            return 0
    return chunk.data_page_offset - start if encodings <= _DICTIONARY_ENCODINGS else 0


def reads_codes(opener: ChunkOpener, leaf: ColumnDescriptor, chunks: Sequence[ChunkPlan], with_unused: bool) -> bool:
    """Return whether a flat column can be read as codes, because all values in its chunks are in dictionaries.

    Args:
        opener: opens the file's chunks.
        leaf: the column.
        chunks: its chunk plans.
        with_unused: whether the dictionary may have entries that only omitted rows use.
    """
    if opener.type_of(leaf).dtype is not None or not (with_unused or all(chunk.kept is None for chunk in chunks)):
        return False
    return are_in_dictionaries(opener, leaf, chunks)


def has_few_values(opener: ChunkOpener, leaf: ColumnDescriptor, chunks: Sequence[ChunkPlan]) -> bool:
    """Return whether a flat column takes much less memory as codes than as views.

    This is so if its dictionary pages are small and hold all values. Values outside the dictionary would take more memory and
    time as codes. The encodings are looked up only for chunks that are large enough to have many such values.

    Args:
        opener: opens the file's chunks.
        leaf: the column.
        chunks: its chunk plans.
    """
    type_ = opener.type_of(leaf)
    if type_.dtype is not None or isinstance(type_.logical, Unknown):
        return False
    rows = sum(chunk.num_rows for chunk in chunks)
    sizes = [chunk.dictionary_size if chunk.has_dictionary else 0 for chunk in chunks]
    if 0 in sizes or sum(sizes) * ROWS_A_STORED_BYTE > rows:
        return False
    large = [chunk for chunk in chunks if not 0 < chunk.uncompressed_size <= SURELY_CODED * chunk.num_rows]
    return are_in_dictionaries(opener, leaf, large)


def are_in_dictionaries(opener: ChunkOpener, leaf: ColumnDescriptor, chunks: Sequence[ChunkPlan]) -> bool:
    """Return whether the metadata say that all values in some chunks are in dictionary pages. The column is flat."""
    if isinstance(opener.type_of(leaf).logical, Unknown):
        return False
    try:
        return all(stored_dictionary_size(leaf, chunk.metadata) > 0 for chunk in chunks)
    except FormatError:     # broken metadata do not stop a read without codes
        return False
