"""Functions that copy one column chunk to another file: its pages, its indexes, and its footer entry."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastpq import format as fmt
from fastpq.encodings.registry import specified_encoding
from fastpq.encryption.cipher import ModuleCipher
from fastpq.errors import FormatError, ParquetError, UnsupportedError
from fastpq.index.bloom_format import FilterRequest, read_bloom_filters
from fastpq.index.chunk_claims import ChunkMetadataClaims
from fastpq.index.page_index import COLUMN_INDEX, OFFSET_INDEX, IndexRequest, OffsetIndex, read_stored_page_index
from fastpq.io.sink import Sink
from fastpq.io.source import Source
from fastpq.io.source_opening import open_source
from fastpq.metadata.file_metadata import FileMetaData, RowGroupMetaData, decryptor_of
from fastpq.options import ReaderProperties
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.plan import plan_chunk
from fastpq.rewriting.chunk_edits import COPIED_AS_IT_IS, ChunkEdit
from fastpq.rewriting.copied_chunk import CopiedChunk, CopiedPages
from fastpq.rewriting.page_copy import PageCopier
from fastpq.rewriting.report import DroppedIndex
from fastpq.write.row_groups import PlacedChunk, RowGroups

LEVEL_ENCODINGS = (fmt.Encoding.RLE, fmt.Encoding.BIT_PACKED)


@contextmanager
def opened_source(where: Any) -> Iterator[Source]:
    """Open a source, and add its name to errors."""
    with open_source(where) as source:
        try:
            yield source
        except ParquetError as error:
            error.at(path=source.name)
            raise


def check_copyable(metadata: FileMetaData, group: RowGroupMetaData) -> None:
    """Refuse a row group that cannot be copied.

    Raises:
        FormatError: it has a negative row count, or other columns than the file.
    """
    if group.num_rows < 0:
        raise FormatError(f"a row group of {group.num_rows} rows", row_group=group.index)
    if group.num_columns != metadata.num_columns:
        message = f"{group.num_columns} chunks in a row group of {metadata.num_columns} columns"
        raise FormatError(message, row_group=group.index)


def places_of_leaf(
    source: Source, metadata: FileMetaData, group: RowGroupMetaData, leaf: int, row_groups: RowGroups, number: int
) -> tuple[ChunkPlan, ModuleCipher, ModuleCipher]:
    """Return a chunk's plan, and its ciphers in the old and in the new file. Arguments are as for ``copy_leaf``.

    Raises:
        UnsupportedError: the chunk is in another file.
    """
    chunk = group.column(leaf)
    if chunk.file_path:
        raise UnsupportedError(f"a column chunk in another file ({chunk.file_path!r}) is not copied")
    plan = plan_chunk(metadata, group.index, metadata.schema.columns[leaf], 0, source.size)
    opener = decryptor_of(metadata).chunk_cipher(chunk.chunk, group.ordinal, leaf)
    return plan, opener, row_groups.cipher(len(row_groups), number)


def copy_leaf(
    source: Source, metadata: FileMetaData, group: RowGroupMetaData, leaf: int, row_groups: RowGroups, sink: Sink,
    properties: ReaderProperties, number: int | None = None, path: tuple[str, ...] | None = None,
    edit_of: Callable[[ChunkPlan], ChunkEdit] = lambda _: COPIED_AS_IT_IS,
) -> tuple[PlacedChunk, ChunkEdit, list[DroppedIndex]]:
    """Copy one leaf's chunk in a row group.

    Args:
        source, metadata: the old file and its footer.
        group: the row group in it.
        leaf: leaf number.
        row_groups: the new file's row groups so far.
        sink: the new file.
        properties: limits and checks for reading.
        number: leaf number in the new file. None takes the old number.
        path: the leaf's path in the new file. None takes the old path.
        edit_of: returns what changes in the chunk, by its plan.

    Returns:
        The chunk in the new file, what changed in it, and the indexes that are left out.

    Raises:
        ParquetError: the chunk cannot be read or copied.
    """
    column = metadata.schema.columns[leaf]
    try:
        plan, opener, sealer = places_of_leaf(source, metadata, group, leaf, row_groups, leaf if number is None else number)
        edit = edit_of(plan)
        chunk, errors = copy_chunk(source, plan, opener, sealer, sink, properties, edit, path)
    except ParquetError as error:
        error.at(column=column.name, row_group=group.index)
        raise
    dropped_indexes = [
        DroppedIndex(source.name, group.index, column.name, kind, error.message) for kind, error in errors.items()]
    return chunk, edit, dropped_indexes


def copy_chunk(
    source: Source,
    plan: ChunkPlan,
    opener: ModuleCipher,
    sealer: ModuleCipher,
    sink: Sink,
    properties: ReaderProperties,
    edit: ChunkEdit = COPIED_AS_IT_IS,
    path: tuple[str, ...] | None = None,
) -> tuple[PlacedChunk, dict[str, ParquetError]]:
    """Copy a chunk's pages, and read and check its indexes. The caller writes the sound indexes.

    Args:
        source: the old file.
        plan: the chunk's place in the old file.
        opener, sealer: the chunk's ciphers in the old and in the new file.
        sink: the new file.
        properties: limits and checks for reading.
        edit: what changes in the chunk.
        path: the column's path in the new file. None takes the old path.

    Returns:
        The chunk in the new file, and the error for each index that is left out.

    Raises:
        FormatError, UnsupportedError, CryptoError: see fastpq.errors.
    """
    metadata = plan.metadata.metadata
    request = IndexRequest(plan.column, plan.metadata, plan.num_rows, opener)
    stored_indexes, checked_indexes = read_stored_page_index(source, request)
    index_errors: dict[str, ParquetError] = {**stored_indexes.errors}
    claims = ChunkMetadataClaims(plan.column, plan.num_rows, metadata)
    (bloom_filter,) = read_bloom_filters(source, [FilterRequest(plan.metadata, opener, claims)])
    if isinstance(bloom_filter, ParquetError):
        index_errors["bloom filter"], bloom_filter = bloom_filter, None
    start = sink.size
    is_repeated = plan.column.max_repetition_level > 0
    [stored_chunk] = source.walk([plan.ranges], authentic=plan.metadata.is_encrypted)
    has_dictionary = metadata.dictionary_page_offset is not None
    copier = PageCopier(stored_chunk, opener, sealer, has_dictionary, is_repeated, properties, edit, plan.ranges)
    _, size = plan.metadata.byte_range
    if not metadata.num_values and not metadata.data_page_offset:
        size = 0        # a chunk without data pages, as Arrow writes it. No value would use a dictionary page
    pages = copier.copy(size, metadata.num_values, sink)
    keeps_offset_index, keeps_column_index, keeps_bloom_filter = edit.kept_indexes
    bloom_filter = bloom_filter if keeps_bloom_filter else None
    column_index, offset_index = stored_indexes.column_index if keeps_column_index else None, None
    if keeps_offset_index and stored_indexes.offset_index is not None and checked_indexes.offset_index is not None:
        try:
            offset_index = _move_offset_index(stored_indexes.offset_index, checked_indexes.offset_index, pages, plan, start)
        except FormatError as error:
            index_errors[OFFSET_INDEX] = error
            if column_index is not None:
                index_errors[COLUMN_INDEX], column_index = error, None
    metadata = _metadata(plan, pages, start, path or plan.column.path)
    copied_chunk = CopiedChunk(pages, metadata, column_index, offset_index, bloom_filter, index_errors)
    edit.edit_metadata(metadata)
    edit.complete(copied_chunk)
    column_index, offset_index, bloom_filter = copied_chunk.column_index, copied_chunk.offset_index, copied_chunk.bloom_filter
    placed_chunk = PlacedChunk.of_structs(metadata, sealer, column_index, offset_index, bloom_filter)
    placed_chunk.entry.unknown_fields = plan.metadata.chunk.unknown_fields
    return placed_chunk, index_errors


def _move_offset_index(
    stored_index: fmt.OffsetIndex, checked_index: OffsetIndex, pages: CopiedPages, plan: ChunkPlan, start: int
) -> fmt.OffsetIndex:
    """Return an OffsetIndex with its pages' new places.

    Raises:
        FormatError: the index has other pages than the chunk, or another row count for a page.
    """
    places = [(location.offset - plan.start, location.compressed_page_size) for location in stored_index.page_locations]
    if places != pages.places:
        raise FormatError("the offset index has other pages than the chunk")
    index_rows = checked_index.row_counts.tolist()
    if any(rows is not None and rows != row_count for rows, row_count in zip(pages.rows, index_rows, strict=True)):
        raise FormatError("the offset index has other rows in a page than the page itself")
    new_index = copy.copy(stored_index)
    new_index.page_locations = []
    offset = start + pages.dictionary_size
    for location, size in zip(stored_index.page_locations, pages.sizes, strict=True):
        new_location = copy.copy(location)
        new_location.offset, new_location.compressed_page_size = offset, size
        new_index.page_locations.append(new_location)
        offset += size
    return new_index


def _metadata(plan: ChunkPlan, pages: CopiedPages, start: int, path: tuple[str, ...]) -> fmt.ColumnMetaData:
    """Return the chunk's metadata with new places, sizes and page counts."""
    metadata = copy.copy(plan.metadata.metadata)
    metadata.path_in_schema = list(path)     # readers find keys by the path
    metadata.data_page_offset = start + pages.dictionary_size
    # readers must know the first page's type before they open it in an encrypted chunk
    metadata.dictionary_page_offset = start if pages.dictionary_size else None
    metadata.index_page_offset = metadata.bloom_filter_offset = metadata.bloom_filter_length = None
    metadata.total_compressed_size = pages.stored_size
    metadata.total_uncompressed_size = pages.uncompressed_size
    metadata.encoding_stats = pages.encoding_stats
    level_encodings = {encoding for encoding in metadata.encodings if encoding in LEVEL_ENCODINGS}
    metadata.encodings = sorted({*level_encodings, *(specified_encoding(encoding) for _, encoding in pages.counts)})
    return metadata
