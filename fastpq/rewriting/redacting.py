"""redact_file: some columns become null. All other columns are copied byte for byte."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Unpack

import numpy as np

from fastpq import format as fmt
from fastpq.arrays.nested_columns import ListColumn, StructColumn
from fastpq.arrays.table import AnyColumn
from fastpq.column.shred import LeafToWrite, leaves_to_write
from fastpq.convert.nulls import null_column
from fastpq.errors import FormatError, LimitError, SchemaError
from fastpq.io.source import Source
from fastpq.metadata.file_metadata import FileMetaData, RowGroupMetaData
from fastpq.options import takes_options
from fastpq.read.file_reader import FileReader
from fastpq.read.open_file import OpenFile, ReadRequest
from fastpq.rewriting.one_file import EncodedLeaf, FilePlan, leaves_of, rewrite_file
from fastpq.rewriting.redaction import without_values
from fastpq.rewriting.report import RewritingReport
from fastpq.rewriting.rewriting_options import RewritingKeywords, RewritingOptions
from fastpq.rewriting.similar_file import specs_like
from fastpq.schema.parquet_schema import ParquetSchema
from fastpq.schema.shape import LeafShape, ListShape, Shape, StructShape, shape_of
from fastpq.schema.tree import OPTIONAL, REPEATED, GroupNode, SchemaNode

BYTES_A_ROW = 32        # most bytes that a null takes in memory
FEW_BYTES = 1 << 24     # so few bytes of nulls are not compared with the limit

Steps = tuple[int, ...]     # the way from a column to a column inside of it: the number of a struct's field, or 0 for elements


@takes_options(RewritingOptions)
def redact_file(
    source: Any,
    target: Any,
    columns: Iterable[str],
    **options: Unpack[RewritingKeywords],
) -> RewritingReport:
    """Write a file in which some columns are null in every row. All other columns are copied byte for byte.

    A required column becomes optional. Nothing of a redacted column's values is left: neither in pages and dictionaries, nor in
    statistics, page indexes and bloom filters, nor in entries of the key-value metadata that are known to hold values. A redacted
    top-level column is not read. Inside a struct or a list, a redacted column is decoded, to find out how many nulls it has. Row
    groups keep their sorting columns up to the first redacted one.

    Args:
        source, target: as in ``project_file``.
        columns: the columns, by dotted path. A group stands for all its columns.
        **options: any of the options that are common to all functions that make one file from another:

    Returns:
        A RewritingReport, which counts the copied and the decoded pages, and lists the metadata that were left out.

    Raises:
        SchemaError: there is no such column, or it cannot be null, because it is the key of a map or a repeated group.
        FormatError, UnsupportedError, LimitError, KeyAccessError, TagVerificationError, CryptoError: as in encrypt_file.
    """
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names, not the name {columns!r}")
    names = list(dict.fromkeys(columns))
    arguments = RewritingOptions.of(options)

    def plan(file: Source, metadata: FileMetaData) -> FilePlan:
        metadata.calendar.is_kept = True        # values are written as they are stored
        nodes = [_node(metadata.schema, name) for name in names]
        schema = _with_optional(metadata.schema, nodes)
        specs = specs_like(metadata, schema)
        open_file = OpenFile(file, metadata, arguments.reading, "views", "stored", 1)
        encoded_leaves: dict[int, EncodedLeaf] = {}
        for top in dict.fromkeys(_top(node) for node in nodes):
            own_nodes = [node for node in nodes if _top(node) is top]
            leaf_of = _Redaction(open_file, metadata.schema, top, own_nodes)
            is_whole = top in own_nodes
            for column in leaf_of.redacted_leaves:
                encoded_leaves[column] = EncodedLeaf(partial(leaf_of, column), specs[column], decodes=not is_whole)
        entries, dropped_entries = without_values(metadata, {_top(node).element.name for node in nodes}, arguments.keep_metadata)
        return FilePlan(
            schema, range(metadata.num_columns), entries, dropped_metadata=tuple(dropped_entries), encoded_leaves=encoded_leaves
        )

    return rewrite_file(source, target, plan, arguments)


class _Redaction:
    """Makes the leaves of one top-level column, in which some columns are null.

    Args:
        file: the old file.
        schema: its schema.
        top: the top-level column.
        nodes: the columns that become null.

    Attributes:
        redacted_leaves: numbers of the leaves that become null.

    Raises:
        SchemaError: a node cannot be null.
    """

    def __init__(self, file: OpenFile, schema: ParquetSchema, top: SchemaNode, nodes: list[SchemaNode]) -> None:
        self._file, self._top = file, top
        self._is_whole = top in nodes
        self._leaves = leaves_of(schema, top)
        self._shape = shape_of(top, [leaf.index for leaf in self._leaves])
        self._steps = [_steps(self._shape, node, schema) for node in nodes]
        self.redacted_leaves = sorted({leaf.index for node in nodes for leaf in leaves_of(schema, node)})
        self._last_leaves: tuple[int, dict[int, LeafToWrite]] | None = None       # the leaves of the last row group

    def __call__(self, leaf: int, group: RowGroupMetaData) -> LeafToWrite:
        """Return a leaf of a row group, by its number."""
        if self._last_leaves is None or self._last_leaves[0] != group.index:
            column = self._column(group)
            leaves = leaves_to_write(column, column.nullable)
            self._last_leaves = group.index, dict(zip((each.index for each in self._leaves), leaves, strict=True))
        return self._last_leaves[1][leaf]

    def _column(self, group: RowGroupMetaData) -> AnyColumn:
        if self._is_whole:
            self._check_size(group)
            return null_column(self._shape.type, group.num_rows)
        [column] = FileReader(self._file).read(ReadRequest(self._leaves, [(group.index, None)]), None, None).columns
        for steps in self._steps:
            column = _with_nulls(column, steps)
        return column


    def _check_size(self, group: RowGroupMetaData) -> None:
        """Refuse a row count that nothing in the file confirms, and that takes more memory than a read may take.

        Raises:
            FormatError: the chunk has fewer values than rows.
            LimitError: there are too many rows.
        """
        if group.num_rows > min(group.column(leaf.index).num_values for leaf in self._leaves):
            raise FormatError(f"{group.num_rows} rows, but fewer values", column=self._top.name, row_group=group.index)
        num_bytes = BYTES_A_ROW * len(self._leaves) * group.num_rows
        if num_bytes > FEW_BYTES and num_bytes > self._file.properties.allocation_limit:
            raise LimitError(f"{group.num_rows} rows of nulls pass max_allocation", column=self._top.name, row_group=group.index)


def _with_nulls(column: AnyColumn, steps: Steps) -> AnyColumn:
    """Return a column in which the column at the end of some steps is null."""
    if not steps:
        nulls: AnyColumn = column._with(
            validity=np.zeros((len(column) + 7) // 8, np.uint8), null_count=len(column), nullable=True
        )
        return nulls
    if isinstance(column, ListColumn):
        return column._with(elements=_with_nulls(column.elements, steps[1:]))
    assert isinstance(column, StructColumn)
    children = list(column.children)
    children[steps[0]] = _with_nulls(children[steps[0]], steps[1:])
    return column._with(children=tuple(children))


def _node(schema: ParquetSchema, name: str) -> SchemaNode:
    """Return the node with a dotted path.

    Raises:
        SchemaError: there is no such node, or there are several, so that values of the others would be left.
    """
    nodes = [node for node in list(schema.nodes())[1:] if node.name == name]
    if len(nodes) > 1:
        raise SchemaError(f"{len(nodes)} columns have this name: rename all but one, and redact them one by one", column=name)
    if nodes:
        return nodes[0]
    raise SchemaError(f"there is no column {name}: the columns are {', '.join(schema.names[:20])}")


def _top(node: SchemaNode) -> SchemaNode:
    while node.parent is not None and node.parent.parent is not None:
        node = node.parent
    return node


def _steps(shape: Shape, node: SchemaNode, schema: ParquetSchema) -> Steps:
    """Return the steps from a top-level column to a node.

    Raises:
        SchemaError: the node cannot be null.
    """
    numbers = [leaf.index for leaf in leaves_of(schema, node)]
    if node is _top(node) and node.element.repetition_type != REPEATED:
        return ()
    ways = [steps for steps, each in _shapes(shape, ()) if steps and _is_shape_of(each, node, numbers)]
    if node.element.repetition_type == REPEATED or not ways:
        raise SchemaError("a repeated group cannot be null: name the list above it", column=node.name)
    steps = ways[-1]
    if _is_key(shape, steps):
        raise SchemaError("the key of a map cannot be null: name the map", column=node.name)
    return steps


def _is_shape_of(shape: Shape, node: SchemaNode, numbers: list[int]) -> bool:
    if isinstance(shape, LeafShape):
        return shape.column is node
    is_named = shape.name in (node.element.name, "element", "value")
    return isinstance(node, GroupNode) and is_named and [leaf.column.index for leaf in shape.leaves] == numbers


def _shapes(shape: Shape, steps: Steps) -> Iterator[tuple[Steps, Shape]]:
    yield steps, shape
    children: tuple[Shape, ...] = ()
    if isinstance(shape, StructShape):
        children = shape.children
    elif isinstance(shape, ListShape):
        children = (shape.element,)
    for number, child in enumerate(children):
        yield from _shapes(child, (*steps, number))


def _is_key(shape: Shape, steps: Steps) -> bool:
    """Return whether the last step leads to the key of a map, or into it."""
    is_in_map = 0
    for step in steps:
        if is_in_map == 2 and step == 0:
            return True
        if isinstance(shape, ListShape):
            is_in_map = 2 if shape.is_map else 0
            shape = shape.element
        else:
            assert isinstance(shape, StructShape)
            is_in_map = 0
            shape = shape.children[step]
    return False


def _with_optional(schema: ParquetSchema, nodes: list[SchemaNode]) -> ParquetSchema:
    """Return a schema in which some nodes are optional."""
    elements = [copy.copy(element) for element in schema.elements]
    for element, node in zip(elements, schema.nodes(), strict=True):
        if node in nodes:
            element.repetition_type = fmt.FieldRepetitionType(OPTIONAL)
    return ParquetSchema.from_thrift(elements)
