"""How one column of a read is put together from its chunks: all at once (Reading), or some rows at a time (Stream).

The chunks of a flat column are decoded straight into one output. How many values a nested column's chunk has is known when it is
decoded: chunks are decoded one behind the other into an output that grows, and several outputs are joined.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fastpq.column.assembly import NestedOutput
from fastpq.column.nested import NestedReader
from fastpq.column.reader import ChunkReader, ColumnOutput
from fastpq.errors import FormatError, ParquetError
from fastpq.fetching import Fetching
from fastpq.format import CompressionCodec
from fastpq.nested.assemble import assemble
from fastpq.nested.concat import concat_columns
from fastpq.nested.shape import Leaf, Shape, leaves_of, shape_of
from fastpq.plan import ChunkPlan, ColumnPlan
from fastpq.ranges import Int64s, cut_ranges
from fastpq.schema import ColumnDescriptor
from fastpq.values.layouts import MAX_INT32, Array

if TYPE_CHECKING:
    from fastpq.scan import Scan, Stored
    from fastpq.table import AnyColumn, Column



class Task(NamedTuple):
    """A piece of a read that is independent of the others.

    Attributes:
        row: first row that is decoded, counted in the output.
        num_rows: rows that are decoded.
        work: decodes them.
    """

    row: int
    num_rows: int
    work: Callable[[], None]


# Bytes that an output of a nested column reserves whatever the stored bytes, and how much larger than these otherwise.
ALWAYS_RESERVED = 1 << 20
LIKELY_EXPANSION = 16


class FlatReading:
    """All rows of a flat column, decoded into one output."""

    def __init__(
        self, scan: Scan, column: ColumnPlan, num_rows: int, buffers: Fetching, memory: Array | None = None
    ) -> None:
        assert column.flat is not None
        self._scan = scan
        self._buffers = buffers
        self._leaf, chunks = column.flat
        may_be_view = len(chunks) == 1 and memory is None and chunks[0].kept is None
        stored = view = None
        if may_be_view and chunks[0].metadata.codec == CompressionCodec.UNCOMPRESSED:
            stored = buffers.take(chunks[0])
            view = self._view(chunks[0], stored)
        self._work = [(chunk, stored) for chunk in chunks] if view is None else []
        width = scan.layout(self._leaf).width
        self._output = ColumnOutput(num_rows, width, self._leaf.nullable, view if memory is None else memory)
        self._nulls = [0] * len(self._work)

    def tasks(self) -> Iterator[Task]:
        """The chunks, a task each."""
        for number, (chunk, stored) in enumerate(self._work):
            yield Task(chunk.row_offset, chunk.num_rows, partial(self._decode, number, chunk, stored))

    def finish(self) -> AnyColumn:
        """The column, once all tasks are done."""
        return _flat_column(self._scan, self._leaf, self._output, sum(self._nulls))

    def _decode(self, number: int, chunk: ChunkPlan, stored: Stored | None) -> None:
        try:
            reader = self._scan.open_flat(chunk, self._buffers.take(chunk) if stored is None else stored)
            self._nulls[number] = reader.read_ranges(self._output, chunk.row_offset, chunk.kept_rows)
        except ParquetError as error:
            self._scan.locate(error, chunk)
            raise

    def _view(self, chunk: ChunkPlan, stored: Stored) -> Stored | None:
        """A column that stands in the file as it would in memory, as a view of the file."""
        try:
            return self._scan.open_flat(chunk, stored).view()
        except ParquetError as error:
            self._scan.locate(error, chunk)
            raise


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
                reader = self._scan.open_nested(chunk, self._buffers.take(chunk))
                _read_rows(reader, output, chunk, chunk.kept_rows)
                if reader.remaining and chunk.kept is None:
                    raise FormatError(f"the chunk holds more than the {chunk.num_rows} rows of its row group")
            except ParquetError as error:
                self._scan.locate(error, chunk)
                raise


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


class FlatStream:
    """The chunks of a flat column, read on from wherever the last read ended."""

    def __init__(self, scan: Scan, column: ColumnPlan, buffers: Fetching) -> None:
        assert column.flat is not None
        self._scan = scan
        self._leaf, chunks = column.flat
        leaf = self._leaf
        self._width = scan.layout(leaf).width
        self._parts = _Parts(chunks, buffers)
        self._reader: ChunkReader | None = None

    def read(self, rows: int) -> AnyColumn:
        """The next rows, in memory of their own."""
        output = ColumnOutput(rows, self._width, self._leaf.nullable)
        done = nulls = 0
        while done < rows:
            chunk, stored, kept = self._parts.next(rows - done)
            try:
                if stored is not None:
                    self._reader = self._scan.open_flat(chunk, stored)
                assert self._reader is not None
                nulls += self._reader.read_ranges(output, done, kept)
            except ParquetError as error:
                self._scan.locate(error, chunk)
                raise
            done += count_rows(kept)
        return _flat_column(self._scan, self._leaf, output, nulls)


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
        self._parts = _Parts(chunks, buffers)
        self._reader: NestedReader | None = None

    def read(self, output: NestedOutput, rows: int) -> None:
        while rows:
            chunk, stored, kept = self._parts.next(rows)
            try:
                if stored is not None:
                    self._reader = self._scan.open_nested(chunk, stored)
                assert self._reader is not None
                _read_rows(self._reader, output, chunk, kept)
            except ParquetError as error:
                self._scan.locate(error, chunk)
                raise
            rows -= count_rows(kept)


class _Parts:
    """Which rows of which chunk come next."""

    def __init__(self, chunks: list[ChunkPlan], buffers: Fetching) -> None:
        self._buffers = buffers
        self._waiting = deque(chunks)
        self._left = 0

    def next(self, rows: int) -> tuple[ChunkPlan, Stored | None, Int64s]:
        """A chunk, its stored bytes where it is a new one, and at most so many of its rows, counted from its reader's next."""
        stored = None
        if self._left == 0:
            self._chunk = self._waiting.popleft()
            stored = self._buffers.take(self._chunk)
            self._kept = self._chunk.kept_rows
            self._position = 0
            self._left = self._chunk.num_rows
        done = self._chunk.num_rows - self._left
        count = min(rows, self._left)
        kept = cut_ranges(self._kept, done, done + count)
        self._left -= count
        position, self._position = self._position, int(kept[-1, 1]) if count else self._position
        return self._chunk, stored, kept - position


Reading: TypeAlias = FlatReading | NestedReading
Stream: TypeAlias = FlatStream | NestedStream


def count_rows(kept: Int64s) -> int:
    """How many rows there are in ranges."""
    return int((kept[:, 1] - kept[:, 0]).sum())


def _read_rows(reader: NestedReader, output: NestedOutput, chunk: ChunkPlan, kept: Int64s) -> None:
    found, count = reader.read_row_ranges(output, kept), count_rows(kept)
    if found < count:
        raise FormatError(f"the chunk ends {count - found} rows before the {chunk.num_rows} of its row group")


def _flat_column(scan: Scan, leaf: ColumnDescriptor, output: ColumnOutput, null_count: int) -> Column:
    nulls = (output.validity, null_count)
    return scan.column(scan.type_of(leaf), output.values, output.buffers, nulls, leaf.nullable)


def _nested_column(scan: Scan, shape: Shape, outputs: dict[int, NestedOutput]) -> AnyColumn:
    def make_leaf(leaf: Leaf, output: NestedOutput) -> Column:
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
