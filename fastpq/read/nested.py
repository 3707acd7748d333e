"""Reads one nested column: all chunks (NestedReading), or some rows at a time (NestedStream).

The number of elements is known only after decoding. Therefore chunks are decoded one after another into an output that grows,
and several outputs are joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from fastpq.arrays.concat import concat_columns
from fastpq.arrays.layouts import MAX_INT32
from fastpq.column.assemble import assemble
from fastpq.column.assembly import NestedOutput
from fastpq.errors import FormatError, ParquetError, UnsupportedError
from fastpq.index.ranges import Int64s
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.costs import ALWAYS_RESERVED, LIKELY_EXPANSION
from fastpq.read.fetch import Fetching
from fastpq.read.flat import BatchPieces, Task, count_rows, leaf_column
from fastpq.read.opener import ChunkOpener
from fastpq.read.plan import ColumnPlan
from fastpq.schema.shape import Shape, shape_of
from fastpq.schema.types import Type

if TYPE_CHECKING:
    from fastpq.arrays.table import AnyColumn, Column
    from fastpq.column.nested_reader import NestedReader

BYTES_A_LAYER = 5       # bytes that an entry takes in each layer, for a flag and an offset


class NestedReading:
    """Read of a whole nested column.

    Row groups are split into runs. Each run is decoded into one output for each leaf. Runs do not depend on each other. Joining
    outputs takes about as long as decoding, so there are only as many runs as keep all threads busy.

    Args:
        opener: opens the file's chunks.
        column: plan for the column.
        shape: the column's shape.
        slots: places of chunks in the buffers. One is drawn for each chunk, leaf by leaf.
        buffers: the chunks' stored bytes.
        parts: number of runs to aim at.
    """

    def __init__(
        self, opener: ChunkOpener, column: ColumnPlan, shape: Shape, slots: Iterator[int], buffers: Fetching, parts: int
    ) -> None:
        self._opener = opener
        self._buffers = buffers
        self._column = column
        self._shape = shape
        self._chunks_with_slots = [(leaf, [(chunk, next(slots)) for chunk in chunks]) for leaf, chunks in column.leaves]
        self._runs = [*_runs([chunks for _, chunks in column.leaves], parts)]
        self._parts: list[dict[int, NestedOutput]] = []

    def open(self) -> None:
        """Do nothing: each chunk is opened when the chunk before it is decoded."""

    def tasks(self) -> Iterator[Task]:
        """Yield a task for each leaf in each run of row groups. The memory for its output is taken here."""
        leaves = {leaf.column.index: leaf for leaf in self._shape.leaves}
        for start, stop in self._runs:
            part: dict[int, NestedOutput] = {}
            self._parts.append(part)
            for leaf, chunks in self._chunks_with_slots:
                run = chunks[start:stop]
                width = self._opener.layout(leaf).width
                each = width + BYTES_A_LAYER * len(leaves[leaf.index].layers)
                part[leaf.index] = output = NestedOutput(leaves[leaf.index], width, _expected([chunk for chunk, _ in run], each))
                yield Task(run[0][0].row_offset, sum(chunk.num_rows for chunk, _ in run), partial(self._decode, run, output))

    def finish(self) -> AnyColumn:
        """Return the column. All tasks must be done."""
        shape = _with_units(self._opener, self._column, self._shape, self._parts)
        parts = [_nested_column(self._opener, shape, part) for part in self._parts]
        if len(parts) == 1:
            return parts[0]
        return concat_columns(parts, shape.name) if parts else _empty(self._opener, shape)

    def _decode(self, run: list[tuple[ChunkPlan, int]], output: NestedOutput) -> None:
        for chunk, slot in run:
            stored_bytes = self._buffers.take(slot)
            try:
                reader = self._opener.nested(chunk, stored_bytes)
                _read_rows(reader, output, chunk, None if chunk.kept is None else chunk.kept.bounds)
                if reader.remaining and chunk.kept is None:
                    raise FormatError(f"the chunk has more rows than its row group, which has {chunk.num_rows}")
            except ParquetError as error:
                self._opener.place(error, chunk)
                raise


def _expected(chunks: list[ChunkPlan], each: int) -> int:
    """Return for how many entries to reserve memory. ``each`` is an entry's size in bytes. The output grows if there are more."""
    if any(chunk.pages is not None or chunk.kept is not None for chunk in chunks):
        return 0
    likely = max(ALWAYS_RESERVED, LIKELY_EXPANSION * sum(chunk.length for chunk in chunks)) // each
    return min(sum(chunk.num_values for chunk in chunks), likely)


def _runs(leaves: list[list[ChunkPlan]], parts: int) -> Iterator[tuple[int, int]]:
    """Yield runs of row groups as (first, end). The runs have about the same number of values.

    List offsets have 32 bits. Therefore a run may have more than MAX_INT32 values only if it is a single row group.
    """
    sizes = [max(chunk.num_values for chunk in chunks) for chunks in zip(*leaves, strict=True)]
    total = max(1, sum(sizes))
    start = run_size = size_before = 0
    for place, size in enumerate(sizes):
        is_cut = parts >= len(sizes) or size_before * parts // total > (size_before - run_size) * parts // total
        if place > start and (is_cut or run_size + size > MAX_INT32):
            yield start, place
            start, run_size = place, 0
        run_size += size
        size_before += size
    if sizes:
        yield start, len(sizes)


class NestedStream:
    """Read that takes a nested column in order, some rows at a time.

    Args:
        opener: opens the file's chunks.
        column: plan for the column.
        shape: the column's shape.
        slots: places of chunks in the buffers. One is drawn for each chunk, leaf by leaf.
        buffers: the chunks' stored bytes.
    """

    def __init__(self, opener: ChunkOpener, column: ColumnPlan, shape: Shape, slots: Iterator[int], buffers: Fetching) -> None:
        self._opener = opener
        self._column = column
        self._shape = shape
        self._leaves = [
            (leaf, _LeafStream(opener, BatchPieces([(chunk, next(slots)) for chunk in chunks], buffers)))
            for leaf, (_, chunks) in zip(shape.leaves, column.leaves, strict=True)
        ]

    def read(self, rows: int) -> AnyColumn:
        """Return the next rows in new memory."""
        outputs = {}
        for leaf, stream in self._leaves:
            outputs[leaf.column.index] = output = NestedOutput(leaf, self._opener.layout(leaf.column).width)
            stream.read(output, rows)
        return _nested_column(self._opener, _with_units(self._opener, self._column, self._shape, [outputs]), outputs)


class _LeafStream:
    """Reader of one leaf of a nested column, chunk after chunk."""

    def __init__(self, opener: ChunkOpener, parts: BatchPieces) -> None:
        self._opener = opener
        self._parts = parts
        self._reader: NestedReader | None = None

    def read(self, output: NestedOutput, rows: int) -> None:
        while rows:
            chunk, stored_bytes, kept_rows = self._parts.next(rows)
            with self._opener.placed(chunk):
                if stored_bytes is not None:
                    self._reader = self._opener.nested(chunk, stored_bytes)
                assert self._reader is not None
                _read_rows(self._reader, output, chunk, kept_rows)
            rows -= count_rows(kept_rows)


def _read_rows(reader: NestedReader, output: NestedOutput, chunk: ChunkPlan, kept_rows: Int64s | None) -> None:
    """Append a chunk's rows to an output.

    Args:
        reader: reader for the chunk.
        output: the output.
        chunk: the chunk's plan.
        kept_rows: ranges of the rows to append, counted from the reader's position, or None for all rows.
    """
    if kept_rows is None:
        count = chunk.num_rows
        rows_read = reader.read_rows(output, count)
    else:
        count = count_rows(kept_rows)
        rows_read = reader.read_row_ranges(output, kept_rows)
    if rows_read < count:
        raise FormatError(f"the chunk lacks {count - rows_read} of the {chunk.num_rows} rows of its row group")


def _with_units(opener: ChunkOpener, column: ColumnPlan, shape: Shape, parts: Sequence[Mapping[int, NestedOutput]]) -> Shape:
    """Return the shape with a unit for each INT96 leaf that has none: the finest unit that fits all parts."""
    awaiting = [leaf.column for leaf in shape.leaves if leaf.type.physical is Type.INT96 and opener.awaits_unit(leaf.column)]
    if not awaiting:
        return shape
    from fastpq.read.int96 import finest_type

    types = dict(opener.types)
    for leaf in awaiting:
        outputs = [part[leaf.index] for part in parts]
        types[leaf.index] = finest_type((output.contents(), output.validity()[0]) for output in outputs)
    return shape_of(column.node, [leaf.index for leaf, _ in column.leaves], types)


def _nested_column(opener: ChunkOpener, shape: Shape, outputs: dict[int, NestedOutput]) -> AnyColumn:
    leaves: dict[int, Column] = {}
    try:
        for leaf in shape.leaves:
            output = outputs[leaf.column.index]
            # a required leaf has no value in a null struct
            nulls = output.validity() if leaf.nullable else (None, 0)
            values = output.contents()
            if leaf.type.physical is Type.INT96 and opener.awaits_unit(leaf.column):
                from fastpq.read.int96 import converted

                values = converted(values, nulls[0], leaf.type)
            try:
                column = leaf_column(opener, leaf.type, values, output.buffers, nulls, leaf.nullable, in_place=True)
            except UnsupportedError as error:
                raise error.at(column=leaf.column.name) from None
            leaves[leaf.column.index] = column
        return assemble(shape, outputs, leaves)
    except ParquetError as error:
        raise error.at(path=opener.source.name) from None


def _empty(opener: ChunkOpener, shape: Shape) -> AnyColumn:
    outputs = {leaf.column.index: NestedOutput(leaf, opener.layout(leaf.column).width) for leaf in shape.leaves}
    return _nested_column(opener, shape, outputs)
