"""project_file: some of a file's columns, in any order, without reading the others."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, Unpack

from fastpq import format as fmt
from fastpq.errors import SchemaError
from fastpq.io.source import Source
from fastpq.metadata.file_metadata import FileMetaData
from fastpq.options import takes_options
from fastpq.rewriting.column_metadata import entries_for_columns
from fastpq.rewriting.one_file import FilePlan, rewrite_file
from fastpq.rewriting.report import RewritingReport
from fastpq.rewriting.rewriting_options import RewritingKeywords, RewritingOptions
from fastpq.schema.parquet_schema import ColumnDescriptor, ColumnKey, ParquetSchema
from fastpq.schema.tree import GroupNode, SchemaNode


@takes_options(RewritingOptions)
def project_file(
    source: Any,
    target: Any,
    columns: Iterable[ColumnKey],
    **options: Unpack[RewritingKeywords],
) -> RewritingReport:
    """Write a file with some of a file's columns, in the given order. Pages are copied, and other columns are not read.

    Row groups, encodings, statistics, page indexes, bloom filters and key-value metadata are kept. Metadata that describe columns
    (ARROW:schema, and those of pandas, GeoParquet, Hugging Face and Spark) describe the new columns. Sorting columns are kept up
    to the first one that is left out.

    Args:
        source: a path, a bytes-like object, a binary file object or an fsspec URL.
        target: a path, a writable binary file object or an fsspec URL. The new file appears completely or not at all. The path
            may be the source's path.
        columns: names (dotted paths for leaves of structs) or numbers. A column's fields keep the order of the file.
        **options: any of the options that are common to all functions that make one file from another:

    Returns:
        A RewritingReport, which counts the copied pages, and lists the parts of the source that were left out.

    Raises:
        SchemaError: a column does not exist, no column is left, or a part of a map or of another annotated group is left out.
        FormatError, UnsupportedError, LimitError, KeyAccessError, TagVerificationError, CryptoError: as in encrypt_file.
    """
    requested_columns = list(columns) if not isinstance(columns, str) else columns

    def plan(file: Source, metadata: FileMetaData) -> FilePlan:
        selected = metadata.schema.select(requested_columns)
        schema, leaves = _projection(metadata.schema, selected)
        names = {column.top.element.name: column.top.element.name for column in selected}
        tops = {column.top: None for column in selected}
        is_partial = len(leaves) != sum(node.last - node.first if isinstance(node, GroupNode) else 1 for node in tops)
        entries, dropped_metadata = entries_for_columns(file, metadata, leaves, names, is_partial=is_partial)
        return FilePlan(schema, leaves, entries, dropped_metadata=dropped_metadata)

    return rewrite_file(source, target, plan, RewritingOptions.of(options))


def _projection(schema: ParquetSchema, selected: list[ColumnDescriptor]) -> tuple[ParquetSchema, list[int]]:
    """Return the schema of some leaves, and their old numbers. A column stands where its first leaf is selected."""
    kept_leaves = {column.index for column in selected}
    if not kept_leaves:
        raise SchemaError("a file needs a column: columns is empty")
    tops = dict.fromkeys(column.top for column in selected)
    elements: list[fmt.SchemaElement] = []
    leaves: list[int] = []
    for node in tops:
        _collect(node, kept_leaves, elements, leaves)
    root = copy.copy(schema.root.element)
    root.num_children = len(tops)
    return ParquetSchema.from_thrift([root, *elements]), leaves


def _collect(node: SchemaNode, kept_leaves: set[int], elements: list[fmt.SchemaElement], leaves: list[int]) -> bool:
    """Add a node's elements and leaves, as far as they are kept. Return whether there are any."""
    if isinstance(node, ColumnDescriptor):
        if node.index in kept_leaves:
            elements.append(node.element)
            leaves.append(node.index)
        return node.index in kept_leaves
    assert isinstance(node, GroupNode)
    element = copy.copy(node.element)
    place = len(elements)
    elements.append(element)
    children = [_collect(child, kept_leaves, elements, leaves) for child in node.children]
    element.num_children = sum(children)
    is_annotated = element.converted_type is not None or element.logicalType is not None
    if is_annotated and not node.is_list and any(children) and not _is_complete(node, kept_leaves):
        raise SchemaError("a part of a map, or of another group with a type of its own, cannot be left out", column=node.name)
    if not any(children):
        del elements[place:]
    return any(children)


def _is_complete(node: GroupNode, kept_leaves: set[int]) -> bool:
    return all(leaf in kept_leaves for leaf in range(node.first, node.last))
