"""How one nested column of a read is put together from its chunks, as ``fastpq.read.flat`` does for flat ones.

A chunk's number of values is known when the chunk is decoded: chunks are decoded one behind the other into an output that grows,
and several outputs are joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from fastpq.arrays.layouts import MAX_INT32
from fastpq.arrays.nested_concat import concat_columns
from fastpq.column.assemble import assemble
from fastpq.column.assembly import NestedOutput
from fastpq.column.nested_reader import NestedReader
from fastpq.errors import FormatError, ParquetError
from fastpq.index.ranges import Int64s
from fastpq.read.fetch import Fetching
from fastpq.read.flat import Parts, Task, count_rows
from fastpq.read.plan import ChunkPlan, ColumnPlan
from fastpq.schema.shape import LeafShape, Shape, leaves_of, shape_of

if TYPE_CHECKING:
    from fastpq.arrays.table import AnyColumn, Column
    from fastpq.read.scan import Scan, Stored

# Least buffer size of a nested column, in bytes.
ALWAYS_RESERVED = 1 << 20
# Expected expansion of encoded bytes.
LIKELY_EXPANSION = 16


class NestedReading:
    """All rows of a nested column: some row groups after another into one output for each leaf, since joining outputs takes
    about as long as decoding into them.

    Args:
        scan: of the file.
        column: what is read.
        buffers: its stored bytes.
        parts: how many such runs of row groups are wanted; they are read independently of each other.
    """

    def __init__(self, scan: Scan, column: ColumnPlan, buffers: Fetching, parts: int) -> None:
        self._scan = scan
        self._buffers = buffers
        self._shape = _shape(scan, column)
        self._work: list[tuple[list[ChunkPlan], NestedOutput]] = []
        self._parts: list[dict[int, NestedOutput]] = []
        leaves = {leaf.column.index: leaf for leaf in leaves_of(self._shape)}
        for start, stop in _runs([chunks for _, chunks in column.leaves], parts):
            part = {}
            for leaf, chunks in column.leaves:
                run = chunks[start:stop]
                whole = all(chunk.pages is None and chunk.kept is None for chunk in run)
                width = scan.layout(leaf).width
                # what a footer claims is no reason to take much memory; an output grows
                likely = max(ALWAYS_RESERVED, LIKELY_EXPANSION * sum(chunk.length for chunk in run)) // width
                expected = min(sum(chunk.num_values for chunk in run), likely) if whole else 0
                part[leaf.index] = output = NestedOutput(leaves[leaf.index], width, expected)
                self._work.append((run, output))
            self._parts.append(part)

    def tasks(self) -> Iterator[Task]:
        """The runs of chunks of each leaf, a task each."""
        for chunks, output in self._work:
            yield Task(chunks[0].row_offset, sum(chunk.num_rows for chunk in chunks), partial(self._decode, chunks, output))

    def finish(self) -> AnyColumn:
        """The column, once all tasks are done."""
        parts = [_nested_column(self._scan, self._shape, part) for part in self._parts]
        return concat_columns(parts, self._shape.name) if parts else _empty(self._scan, self._shape)

    def _decode(self, chunks: list[ChunkPlan], output: NestedOutput) -> None:
        for chunk in chunks:
            try:
                reader = open_nested(self._scan, chunk, self._buffers.take(chunk))
                _read_rows(reader, output, chunk, chunk.kept_rows)
                if reader.remaining and chunk.kept is None:
                    raise FormatError(f"the chunk holds more than the {chunk.num_rows} rows of its row group")
            except ParquetError as error:
                self._scan.locate(error, chunk)
                raise


def open_nested(scan: Scan, chunk: ChunkPlan, stored: Stored) -> NestedReader:
    """A NestedReader before the first row of a nested column's chunk."""
    count = chunk.metadata.num_values if chunk.pages is None else scan.pages(chunk, stored).count_values()
    return NestedReader(scan.pages(chunk, stored), scan.layout(chunk.column), count)


def _runs(leaves: list[list[ChunkPlan]], parts: int) -> Iterator[tuple[int, int]]:
    """Row groups cut where the parts of all values would be, were they equal; offsets of lists reach over the values of each."""
    sizes = [max(chunk.num_values for chunk in chunks) for chunks in zip(*leaves, strict=True)]
    total = max(1, sum(sizes))
    start = filled = before = 0
    for place, size in enumerate(sizes):
        is_cut = parts >= len(sizes) or before * parts // total > (before - filled) * parts // total
        if place > start and (is_cut or filled + size > MAX_INT32):
            yield start, place
            start, filled = place, 0
        filled += size
        before += size
    if sizes:
        yield start, len(sizes)


class NestedStream:
    """The chunks of a nested column, read on from wherever the last read ended."""

    def __init__(self, scan: Scan, column: ColumnPlan, buffers: Fetching) -> None:
        self._scan = scan
        self._shape = _shape(scan, column)
        self._leaves = [
            (leaf, _LeafStream(scan, chunks, buffers))
            for leaf, (_, chunks) in zip(leaves_of(self._shape), column.leaves, strict=True)
        ]

    def read(self, rows: int) -> AnyColumn:
        """The next rows, in memory of their own."""
        outputs = {}
        for leaf, stream in self._leaves:
            outputs[leaf.column.index] = output = NestedOutput(leaf, self._scan.layout(leaf.column).width)
            stream.read(output, rows)
        return _nested_column(self._scan, self._shape, outputs)


class _LeafStream:
    """The chunks of one leaf of a nested column."""

    def __init__(self, scan: Scan, chunks: list[ChunkPlan], buffers: Fetching) -> None:
        self._scan = scan
        self._parts = Parts(chunks, buffers)
        self._reader: NestedReader | None = None

    def read(self, output: NestedOutput, rows: int) -> None:
        while rows:
            chunk, stored, kept = self._parts.next(rows)
            try:
                if stored is not None:
                    self._reader = open_nested(self._scan, chunk, stored)
                assert self._reader is not None
                _read_rows(self._reader, output, chunk, kept)
            except ParquetError as error:
                self._scan.locate(error, chunk)
                raise
            rows -= count_rows(kept)


def _read_rows(reader: NestedReader, output: NestedOutput, chunk: ChunkPlan, kept: Int64s) -> None:
    found, count = reader.read_row_ranges(output, kept), count_rows(kept)
    if found < count:
        raise FormatError(f"the chunk ends {count - found} rows before the {chunk.num_rows} of its row group")


def _nested_column(scan: Scan, shape: Shape, outputs: dict[int, NestedOutput]) -> AnyColumn:
    def make_leaf(leaf: LeafShape, output: NestedOutput) -> Column:
        # what is required and missing all the same stands in a struct that is null
        nulls = output.validity() if leaf.nullable else (None, 0)
        return scan.column(leaf.type, output.contents(), output.buffers, nulls, leaf.nullable)

    try:
        return assemble(shape, outputs, make_leaf)
    except ParquetError as error:
        raise error.at(path=scan.source.name) from None


def _empty(scan: Scan, shape: Shape) -> AnyColumn:
    outputs = {leaf.column.index: NestedOutput(leaf, scan.layout(leaf.column).width) for leaf in leaves_of(shape)}
    return _nested_column(scan, shape, outputs)


def _shape(scan: Scan, column: ColumnPlan) -> Shape:
    return shape_of(column.node, [leaf.index for leaf, _ in column.leaves], scan.types)
