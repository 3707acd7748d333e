"""Copying one column chunk from file to file: its pages, its indexes, and its entry in the footer."""

from __future__ import annotations

import copy

from fastpq import format as fmt
from fastpq.encryption.cipher import ModuleCipher
from fastpq.errors import FormatError, ParquetError
from fastpq.index.bloom_format import FilterRequest, read_bloom_filters
from fastpq.index.claims import Claims
from fastpq.index.page_index import COLUMN_INDEX, OFFSET_INDEX, IndexRequest, OffsetIndex, read_stored_page_index
from fastpq.io.sink import Sink
from fastpq.io.source import Source
from fastpq.options import ReaderProperties
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.rewriting.page_copy import CopiedPages, PageCopier
from fastpq.write.row_groups import PlacedChunk


def copy_chunk(
    source: Source, plan: ChunkPlan, opener: ModuleCipher, sealer: ModuleCipher, sink: Sink, properties: ReaderProperties
) -> tuple[PlacedChunk, dict[str, ParquetError]]:
    """Copy the pages of a chunk, and read and check its indexes; the caller writes the sound indexes.

    Args:
        source: the old file.
        plan: the place of the chunk in the old file.
        opener, sealer: the ciphers of the chunk in the old and in the new file.
        sink: the new file.
        properties: bounds and checks of reading.

    Returns:
        The chunk in the new file, and the errors of indexes left out.

    Raises:
        FormatError, UnsupportedError, CryptoError: see fastpq.errors.
    """
    metadata = plan.metadata.metadata
    request = IndexRequest(plan.column, plan.metadata, plan.num_rows, opener)
    indexes, checked = read_stored_page_index(source, request)
    broken: dict[str, ParquetError] = {**indexes.broken}
    claims = Claims(plan.column, plan.num_rows, metadata)
    (bloom_filter,) = read_bloom_filters(source, [FilterRequest(plan.metadata, opener, claims)])
    if isinstance(bloom_filter, ParquetError):
        broken["bloom filter"], bloom_filter = bloom_filter, None
    start = sink.written
    is_repeated = plan.column.max_repetition_level > 0
    [stored] = source.walk([plan.ranges], authentic=plan.metadata.is_encrypted)
    has_dictionary = metadata.dictionary_page_offset is not None
    copier = PageCopier(stored, opener, sealer, has_dictionary, is_repeated, properties)
    _, size = plan.metadata.byte_range
    if not metadata.num_values and not metadata.data_page_offset:
        size = 0        # a chunk without data pages, as Arrow writes one; a dictionary page would serve no value
    pages = copier.copy(size, metadata.num_values, sink)
    column_index, moved = indexes.column_index, None
    if indexes.offset_index is not None and checked.offset_index is not None:
        try:
            moved = _moved(indexes.offset_index, checked.offset_index, pages, plan, start)
        except FormatError as error:
            broken[OFFSET_INDEX] = error
            if column_index is not None:
                broken[COLUMN_INDEX], column_index = error, None
    moved_metadata = _metadata(plan, pages, start)
    placed = PlacedChunk.sealed(moved_metadata, sealer, column_index, moved, bloom_filter)
    placed.entry.unknown = plan.metadata.chunk.unknown
    return placed, broken


def _moved(stored: fmt.OffsetIndex, checked: OffsetIndex, pages: CopiedPages, plan: ChunkPlan, start: int) -> fmt.OffsetIndex:
    """An OffsetIndex with the new places of its pages.

    Raises:
        FormatError: the index lists other pages, or other rows in a page.
    """
    listed = [(location.offset - plan.start, location.compressed_page_size) for location in stored.page_locations]
    if listed != pages.places:
        raise FormatError("an offset index that has other pages than the chunk")
    rows = checked.row_counts.tolist()
    if any(known is not None and known != claimed for known, claimed in zip(pages.rows, rows, strict=True)):
        raise FormatError("an offset index that has other rows in a page than the page itself")
    moved = copy.copy(stored)
    moved.page_locations = []
    offset = start + pages.dictionary_size
    for location, size in zip(stored.page_locations, pages.sizes, strict=True):
        own = copy.copy(location)
        own.offset, own.compressed_page_size = offset, size
        moved.page_locations.append(own)
        offset += size
    return moved


def _metadata(plan: ChunkPlan, pages: CopiedPages, start: int) -> fmt.ColumnMetaData:
    """The chunk's metadata with the new places, sizes and page counts."""
    metadata = copy.copy(plan.metadata.metadata)
    metadata.path_in_schema = list(plan.column.path)    # readers find keys by it
    metadata.data_page_offset = start + pages.dictionary_size
    # readers of an encrypted chunk must know the type of the first page before they open the page
    metadata.dictionary_page_offset = start if pages.dictionary_size else None
    metadata.index_page_offset = metadata.bloom_filter_offset = metadata.bloom_filter_length = None
    metadata.total_compressed_size = pages.stored_size
    metadata.total_uncompressed_size = pages.uncompressed_size
    metadata.encoding_stats = pages.encoding_stats
    metadata.encodings = sorted({*metadata.encodings, *(encoding for _, encoding in pages.counts)})
    return metadata
