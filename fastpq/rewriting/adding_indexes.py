"""add_indexes: page indexes, statistics and bloom filters for a file that lacks them. Its pages are copied byte for byte."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from fastpq import format as fmt
from fastpq.io.source import Source
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.options import BloomFilterOption, WriterProperties, takes_options
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.rewriting.chunk_edits import ChunkEdit
from fastpq.rewriting.index_addition import IndexAddition
from fastpq.rewriting.one_file import FilePlan, leaf_of_row_groups, rewrite_file
from fastpq.rewriting.report import RewritingReport
from fastpq.rewriting.rewriting_options import RewritingKeywords, RewritingOptions
from fastpq.write.row_group_appending import specs_in_order


@takes_options(RewritingOptions)
def add_indexes(
    source: Any,
    target: Any,
    *,
    write_page_index: bool = True,
    write_statistics: bool | list[str] = True,
    bloom_filter: Mapping[str, BloomFilterOption] | None = None,
    **options: Unpack[RewritingKeywords],
) -> RewritingReport:
    """Add page indexes, statistics and bloom filters to the column chunks that lack them. Pages are copied byte for byte.

    A chunk that has all of them is copied without decoding. The others are decoded once, because bounds and bloom filters come
    from values. An OffsetIndex for a column without an order needs the page headers alone. What a chunk has already is kept.

    A V1 page of a list may begin in the middle of a row. Its chunk cannot have a page index, and the report says so.

    Args:
        source, target: as in ``project_file``.
        write_page_index: add a ColumnIndex and an OffsetIndex (PageIndex.md).
        write_statistics: add statistics, size statistics and geospatial statistics, for all columns or for the named ones.
            Columns without statistics get no ColumnIndex.
        bloom_filter: which columns get a bloom filter, as in ``write_table`` (BloomFilter.md).
        **options: any of the options that are common to all functions that make one file from another:

    Returns:
        A RewritingReport. All pages count as copied, and ``decoded_pages`` counts those whose values were decoded.
        ``dropped_indexes`` lists the indexes that a chunk cannot have, with the reason.

    Raises:
        SchemaError: an option names an unknown column.
        FormatError, UnsupportedError, LimitError, KeyAccessError, TagVerificationError, CryptoError: as in encrypt_file.
    """
    arguments = RewritingOptions.of(options)
    indexes = WriterProperties(
        write_page_index=write_page_index,
        write_statistics=write_statistics,
        bloom_filter={} if bloom_filter is None else bloom_filter,
    )

    def plan(file: Source, metadata: FileMetaData) -> FilePlan:
        metadata.calendar.is_kept = True        # bounds describe values as they are stored
        has_orders = bool(metadata.column_orders)
        specs = specs_in_order(metadata.schema, metadata.column_orders, indexes)

        def edit_of(chunk: ChunkPlan) -> ChunkEdit:
            leaf = leaf_of_row_groups(file, metadata, arguments.reading, [chunk.row_group], chunk.column)
            return IndexAddition(chunk, leaf, specs[chunk.column.index], has_orders=has_orders)

        type_order = fmt.ColumnOrder(TYPE_ORDER=fmt.TypeDefinedOrder())
        leaves = range(metadata.num_columns)
        orders = None if has_orders else [type_order] * metadata.num_columns
        return FilePlan(metadata.schema, leaves, metadata.key_values or None, edit_of, column_orders=orders)

    return rewrite_file(source, target, plan, arguments)
