"""Reading one nested column: all chunks (NestedReading), or some rows at a time (NestedStream).

The number of elements is known only after decoding. Chunks are therefore decoded one after another into a growing output, and
several outputs are joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from fastpq.arrays.concat import concat_columns
from fastpq.arrays.layouts import MAX_INT32
from fastpq.column.assemble import assemble
from fastpq.column.assembly import NestedOutput
from fastpq.errors import FormatError, ParquetError
from fastpq.index.ranges import Int64s
from fastpq.read.chunk_plan import ChunkPlan
from fastpq.read.costs import ALWAYS_RESERVED, LIKELY_EXPANSION
from fastpq.read.fetch import Fetching
from fastpq.read.flat import Parts, Task, count_rows, leaf_column
from fastpq.read.opener import ChunkOpener
from fastpq.read.plan import ColumnPlan
from fastpq.schema.shape import Shape

if TYPE_CHECKING:
    from fastpq.arrays.table import AnyColumn, Column
    from fastpq.column.nested_reader import NestedReader

BYTES_A_LAYER = 5       # of an entry: a flag and an offset


class NestedReading:
    """All rows of a nested column.

    Row groups are split into runs. Each run is decoded into one output for each leaf, independently of the other runs. Joining
    outputs takes about as long as decoding, so few runs are best, as long as all threads are busy.

    Args:
        opener: opener of the file's chunks.
        column: plan of the column.
        shape: shape of the column.
        slots: places of the chunks in the buffers, drawn leaf by leaf.
        buffers: stored bytes of the chunks.
        parts: wanted number of runs.
    """

    def __init__(
        self, opener: ChunkOpener, column: ColumnPlan, shape: Shape, slots: Iterator[int], buffers: Fetching, parts: int
    ) -> None:
        self._opener = opener
        self._buffers = buffers
        self._shape = shape
        self._numbered = [(leaf, [(chunk, next(slots)) for chunk in chunks]) for leaf, chunks in column.leaves]
        self._runs = [*_runs([chunks for _, chunks in column.leaves], parts)]
        self._parts: list[dict[int, NestedOutput]] = []

    def open(self) -> None:
        """Nothing: each chunk is opened when the chunk before it is decoded."""

    def tasks(self) -> Iterator[Task]:
        """One task for each leaf of each run of row groups; memory of its output is taken here, for few columns at a time."""
        leaves = {leaf.column.index: leaf for leaf in self._shape.leaves}
        for start, stop in self._runs:
            part: dict[int, NestedOutput] = {}
            self._parts.append(part)
            for leaf, chunks in self._numbered:
                run = chunks[start:stop]
                width = self._opener.layout(leaf).width
                each = width + BYTES_A_LAYER * len(leaves[leaf.index].layers)
                part[leaf.index] = output = NestedOutput(leaves[leaf.index], width, _expected([chunk for chunk, _ in run], each))
                yield Task(run[0][0].row_offset, sum(chunk.num_rows for chunk, _ in run), partial(self._decode, run, output))

    def finish(self) -> AnyColumn:
        """The column, once all tasks are done."""
        parts = [_nested_column(self._opener, self._shape, part) for part in self._parts]
        if len(parts) == 1:
            return parts[0]
        return concat_columns(parts, self._shape.name) if parts else _empty(self._opener, self._shape)

    def _decode(self, run: list[tuple[ChunkPlan, int]], output: NestedOutput) -> None:
        for chunk, slot in run:
            stored = self._buffers.take(slot)
            with self._opener.placed(chunk):
                reader = self._opener.nested(chunk, stored)
                _read_rows(reader, output, chunk, None if chunk.kept is None else chunk.kept.bounds)
                if reader.remaining and chunk.kept is None:
                    raise FormatError(f"the chunk holds more than the {chunk.num_rows} rows of its row group")


def _expected(chunks: list[ChunkPlan], each: int) -> int:
    """Number of entries, of so many bytes each, to reserve memory for; the output grows if there are more."""
    if any(chunk.pages is not None or chunk.kept is not None for chunk in chunks):
        return 0
    likely = max(ALWAYS_RESERVED, LIKELY_EXPANSION * sum(chunk.length for chunk in chunks)) // each
    return min(sum(chunk.num_values for chunk in chunks), likely)


def _runs(leaves: list[list[ChunkPlan]], parts: int) -> Iterator[tuple[int, int]]:
    """Split row groups into runs with about equal numbers of values, as (first, end) each.

    Only a run of one row group may have more than MAX_INT32 values: list offsets have 32 bits.
    """
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
    """The rows of a nested column in order, some at a time.

    Args:
        opener: opener of the file's chunks.
        column: plan of the column.
        shape: shape of the column.
        slots: places of the chunks in the buffers, drawn leaf by leaf.
        buffers: stored bytes of the chunks.
    """

    def __init__(self, opener: ChunkOpener, column: ColumnPlan, shape: Shape, slots: Iterator[int], buffers: Fetching) -> None:
        self._opener = opener
        self._shape = shape
        self._leaves = [
            (leaf, _LeafStream(opener, Parts([(chunk, next(slots)) for chunk in chunks], buffers)))
            for leaf, (_, chunks) in zip(shape.leaves, column.leaves, strict=True)
        ]

    def read(self, rows: int) -> AnyColumn:
        """The next rows, in memory of their own."""
        outputs = {}
        for leaf, stream in self._leaves:
            outputs[leaf.column.index] = output = NestedOutput(leaf, self._opener.layout(leaf.column).width)
            stream.read(output, rows)
        return _nested_column(self._opener, self._shape, outputs)


class _LeafStream:
    """The chunks of one leaf of a nested column."""

    def __init__(self, opener: ChunkOpener, parts: Parts) -> None:
        self._opener = opener
        self._parts = parts
        self._reader: NestedReader | None = None

    def read(self, output: NestedOutput, rows: int) -> None:
        while rows:
            chunk, stored, kept = self._parts.next(rows)
            with self._opener.placed(chunk):
                if stored is not None:
                    self._reader = self._opener.nested(chunk, stored)
                assert self._reader is not None
                _read_rows(self._reader, output, chunk, kept)
            rows -= count_rows(kept)


def _read_rows(reader: NestedReader, output: NestedOutput, chunk: ChunkPlan, kept: Int64s | None) -> None:
    """Append rows of a chunk to an output: ranges of the next rows, or all rows for None."""
    if kept is None:
        count = chunk.num_rows
        found = reader.read_rows(output, count)
    else:
        count = count_rows(kept)
        found = reader.read_row_ranges(output, kept)
    if found < count:
        raise FormatError(f"the chunk ends {count - found} rows before the {chunk.num_rows} of its row group")


def _nested_column(opener: ChunkOpener, shape: Shape, outputs: dict[int, NestedOutput]) -> AnyColumn:
    leaves: dict[int, Column] = {}
    try:
        for leaf in shape.leaves:
            output = outputs[leaf.column.index]
            # a required leaf without a value stands in a null struct
            nulls = output.validity() if leaf.nullable else (None, 0)
            found = leaf_column(opener, leaf.type, output.contents(), output.buffers, nulls, leaf.nullable)
            leaves[leaf.column.index] = found
        return assemble(shape, outputs, leaves)
    except ParquetError as error:
        raise error.at(path=opener.source.name) from None


def _empty(opener: ChunkOpener, shape: Shape) -> AnyColumn:
    outputs = {leaf.column.index: NestedOutput(leaf, opener.layout(leaf.column).width) for leaf in shape.leaves}
    return _nested_column(opener, shape, outputs)
