"""IndexAddition: adds the page index, statistics and bloom filter that a copied chunk lacks. Values are decoded only for that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fastpq import format as fmt
from fastpq.codecs.catalogue import codec_for_write
from fastpq.column.shred import LeafToWrite
from fastpq.encryption.cipher import ModuleCipher
from fastpq.errors import FormatError, LimitError, SchemaError
from fastpq.index.page_index import COLUMN_INDEX, OFFSET_INDEX
from fastpq.index.written_pages import WrittenPages
from fastpq.rewriting.chunk_edits import ChunkEdit
from fastpq.stats.statistics import Order
from fastpq.write.chunks import ChunkToWrite, EncodedChunk, encode_chunk
from fastpq.write.spec import ColumnSpec

if TYPE_CHECKING:
    from fastpq.read.chunk_plan import ChunkPlan
    from fastpq.rewriting.copied_chunk import CopiedChunk

UNBOUNDED = 1 << 62         # page size, where rows alone cut pages
STATISTICS, BLOOM_FILTER = "statistics", "bloom filter"


class IndexAddition(ChunkEdit):
    """Edit that changes no page, and adds the indexes that a chunk lacks.

    Args:
        plan: the chunk's place in the old file.
        leaf: decodes the chunk's values.
        spec: what a chunk of the column should have: page index, statistics, bloom filter.
        has_orders: whether the old footer states the columns' orders. Without them the old bounds have no meaning.

    Attributes:
        decoded_pages: how many pages were decoded.
    """

    def __init__(self, plan: ChunkPlan, leaf: Callable[[], LeafToWrite], spec: ColumnSpec, *, has_orders: bool) -> None:
        self._plan, self._leaf, self._spec, self._has_orders = plan, leaf, spec, has_orders
        self.decoded_pages = 0

    def complete(self, chunk: CopiedChunk) -> None:
        spec = self._spec
        metadata = chunk.metadata
        if not self._has_orders:
            chunk.column_index = None
        wants_page_index = spec.has_page_index and bool(chunk.pages.sizes)
        lacks_offsets = wants_page_index and chunk.offset_index is None
        has_bounds = spec.settings.statistics and spec.settings.order != Order.ORDER_NONE
        lacks_bounds = wants_page_index and has_bounds and chunk.column_index is None
        lacks_statistics = spec.settings.statistics and self._lacks_statistics(metadata)
        lacks_filter = spec.settings.bloom_filter_fpp is not None and chunk.bloom_filter is None
        is_nested = self._plan.column.max_repetition_level > 0
        needs_levels = lacks_offsets and is_nested and None in chunk.pages.rows
        leaf: LeafToWrite | None = None
        if lacks_bounds or lacks_statistics or lacks_filter or needs_levels:
            leaf = self._leaf()
            self.decoded_pages = len(chunk.pages.sizes)
        rows: list[int] | None = None
        if lacks_offsets or lacks_bounds:
            try:
                rows = self._rows_of_pages(chunk, leaf)
            except FormatError as error:
                chunk.errors[OFFSET_INDEX] = chunk.errors[COLUMN_INDEX] = error
        try:
            encoded_chunk = None if leaf is None else self._encoded(leaf, rows, has_filter=lacks_filter)
            pages = None if encoded_chunk is None or rows is None else self._checked_pages(encoded_chunk, chunk, rows)
        except (SchemaError, LimitError, FormatError) as error:     # values that a writer refuses: a geometry that is not WKB
            chunk.errors[STATISTICS] = error
            return
        if encoded_chunk is not None and lacks_statistics:
            _describe(metadata, encoded_chunk.placed(0).metadata)
        if encoded_chunk is not None and lacks_filter:
            chunk.bloom_filter = encoded_chunk.writer.bloom_filter
            chunk.errors.pop(BLOOM_FILTER, None)
        if rows is not None:
            self._add_page_index(chunk, rows, pages, has_bounds=has_bounds)

    def _lacks_statistics(self, metadata: fmt.ColumnMetaData) -> bool:
        """Return whether statistics or size statistics are missing that a writer would write."""
        column, statistics, settings = self._plan.column, metadata.statistics, self._spec.settings
        is_sized = column.physical_type == fmt.Type.BYTE_ARRAY or column.max_repetition_level or column.max_definition_level > 1
        if statistics is None or statistics.null_count is None or (is_sized and metadata.size_statistics is None):
            return True
        if settings.order == Order.ORDER_NONE or statistics.null_count == metadata.num_values:
            return False
        return not self._has_orders or statistics.min_value is None or statistics.max_value is None

    def _rows_of_pages(self, chunk: CopiedChunk, leaf: LeafToWrite | None) -> list[int]:
        """Return the row count of each data page.

        Raises:
            FormatError: a page has no row, or begins in the middle of one.
        """
        rows = [count for count in chunk.pages.rows if count is not None]
        if len(rows) < len(chunk.pages.rows):
            assert leaf is not None
            rows = self._rows_by_levels(leaf, np.cumsum(chunk.pages.value_counts))
        if sum(rows) != self._plan.num_rows:
            raise FormatError(f"the pages have {sum(rows)} rows, and the row group has {self._plan.num_rows}")
        if 0 in rows:
            raise FormatError("a page without rows cannot be in a page index")
        return rows

    def _rows_by_levels(self, leaf: LeafToWrite, stops: NDArray[np.int64]) -> list[int]:
        """Return the row count of each data page, by the repetition levels of the chunk.

        Args:
            leaf: the chunk's values.
            stops: shape (pages,): how many values there are to the end of each page.
        """
        num_rows = self._plan.num_rows
        levels = leaf.rows(self._spec.layout, 0, num_rows).levels
        assert levels is not None       # the column has lists: pages of other columns tell their rows
        repetition = np.frombuffer(levels.levels(0, num_rows)[1], np.uint8)
        bounds = np.append(np.flatnonzero(repetition == 0), len(repetition))       # where rows begin, and the end
        ends = np.searchsorted(bounds, stops)
        if ends[-1] > num_rows or not np.array_equal(bounds[ends], stops):
            raise FormatError("a page begins in the middle of a row, which a page index cannot express (PageIndex.md)")
        counts: list[int] = np.diff(ends, prepend=0).tolist()
        return counts

    def _encoded(self, leaf: LeafToWrite, rows: list[int] | None, *, has_filter: bool) -> EncodedChunk:
        """Encode the values as plain pages with these rows. Their bytes are given up, and counts and bounds are kept."""
        spec = self._spec
        settings = replace(
            spec.settings, dictionary=False, value_encoding=fmt.Encoding.PLAIN, checksums=False, version_2=False, statistics=True
        )
        cuts = None
        if rows is not None:
            settings = replace(settings, data_page_size=UNBOUNDED, data_page_rows=UNBOUNDED)
            cuts = np.cumsum(rows, dtype=np.int64)
        if not has_filter:
            settings = replace(settings, bloom_filter_fpp=None)
        plain_spec = spec._replace(codec=codec_for_write(None), settings=settings)
        path, group, num_rows = self._plan.column.path, self._plan.row_group, self._plan.num_rows
        encoded_chunk = encode_chunk(ChunkToWrite(leaf, path, plain_spec, ModuleCipher(), group, 0, num_rows, cuts), _give_up)
        encoded_chunk.writer.pieces.take()
        return encoded_chunk

    def _checked_pages(self, encoded_chunk: EncodedChunk, chunk: CopiedChunk, rows: list[int]) -> WrittenPages:
        """Return counts and bounds for each page of the file.

        Raises:
            FormatError: the pages have other values than their rows.
        """
        pages = encoded_chunk.written_pages()
        if list(pages.num_rows) != rows or list(pages.num_values) != chunk.pages.value_counts:
            raise FormatError("the pages do not have the values of their rows")
        return pages._replace(sizes=chunk.pages.sizes)

    def _add_page_index(self, chunk: CopiedChunk, rows: list[int], pages: WrittenPages | None, *, has_bounds: bool) -> None:
        """Add the OffsetIndex and the ColumnIndex, if the chunk does not have them.

        Args:
            chunk: the chunk.
            rows: the row count of each page.
            pages: counts and bounds for each page. None if the values were not decoded.
            has_bounds: whether the column may have a ColumnIndex.
        """
        metadata = chunk.metadata
        if chunk.offset_index is None:
            known_pages = pages or _pages_without_bounds(self._spec, chunk.pages.sizes, rows)
            chunk.offset_index = known_pages.offset_index(metadata.data_page_offset)
            if pages is None:
                chunk.offset_index.unencoded_byte_array_data_bytes = None
            chunk.errors.pop(OFFSET_INDEX, None)
        if has_bounds and chunk.column_index is None and pages is not None:
            chunk.column_index = pages.column_index(self._spec.truncation)
            chunk.errors.pop(COLUMN_INDEX, None)


def _give_up(pieces: list[bytes | memoryview]) -> None:
    """Take encoded pages that nobody needs."""


def _describe(metadata: fmt.ColumnMetaData, described: fmt.ColumnMetaData) -> None:
    """Give a chunk the statistics of the same values. A distinct count that it has stays."""
    old, new = metadata.statistics, described.statistics
    if old is not None and new is not None and new.distinct_count is None:
        new.distinct_count = old.distinct_count
    metadata.statistics = new
    metadata.size_statistics = described.size_statistics
    if metadata.geospatial_statistics is None:
        metadata.geospatial_statistics = described.geospatial_statistics


def _pages_without_bounds(spec: ColumnSpec, sizes: list[int], rows: list[int]) -> WrittenPages:
    nothing: list[int] = []
    return WrittenPages(spec.type, Order.ORDER_NONE, sizes, rows, nothing, nothing, [], [], nothing, nothing)
