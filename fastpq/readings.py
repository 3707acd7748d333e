"""How one column of a read is put together from its chunks: all at once (Reading), or some rows at a time (Stream).

The chunks of a flat column are decoded straight into one output. How many values a nested column's chunk has is known when it is
decoded: each has an output of its own, and these are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from fastpq.assemble import assemble
from fastpq.column.assembly import NestedOutput
from fastpq.column.nested import NestedReader
from fastpq.column.reader import ChunkReader, ColumnOutput
from fastpq.concat import concat_columns
from fastpq.errors import FormatError, ParquetError
from fastpq.format import CompressionCodec
from fastpq.plan import ChunkPlan, ColumnPlan
from fastpq.schema import ColumnDescriptor
from fastpq.shape import Leaf, Shape, leaves_of, shape_of

if TYPE_CHECKING:
    from fastpq.scan import Buffers, Scan, Stored
    from fastpq.table import AnyColumn, Column

Task: TypeAlias = Callable[[], None]


class FlatReading:
    """All rows of a flat column, decoded into one output."""

    def __init__(
        self, scan: Scan, leaf: ColumnDescriptor, chunks: list[ChunkPlan], num_rows: int, buffers: Buffers
    ) -> None:
        self._scan = scan
        self._leaf = leaf
        view = self._view(chunks, buffers)
        self._work = [(chunk, buffers[id(chunk)]) for chunk in chunks] if view is None else []
        self._output = ColumnOutput(num_rows, scan.layout(leaf).width, leaf.nullable, view)
        self._nulls = [0] * len(self._work)

    def tasks(self) -> Iterator[Task]:
        """Independent pieces of work."""
        return (partial(self._decode, number, chunk, stored) for number, (chunk, stored) in enumerate(self._work))

    def finish(self) -> AnyColumn:
        """The column, once all tasks are done."""
        return _flat_column(self._scan, self._leaf, self._output, sum(self._nulls))

    def _decode(self, number: int, chunk: ChunkPlan, stored: Stored) -> None:
        try:
            reader = self._scan.open_flat(chunk, stored)
            self._nulls[number] = reader.read(self._output, chunk.row_offset, chunk.num_rows)
        except ParquetError as error:
            self._scan.locate(error, chunk)
            raise

    def _view(self, chunks: list[ChunkPlan], buffers: Buffers) -> Stored | None:
        """A column that stands in the file as it would in memory, as a view of the file."""
        if len(chunks) != 1 or chunks[0].metadata.codec != CompressionCodec.UNCOMPRESSED:
            return None
        try:
            return self._scan.open_flat(chunks[0], buffers[id(chunks[0])]).view()
        except ParquetError as error:
            self._scan.locate(error, chunks[0])
            raise


class NestedReading:
    """All rows of a nested column, an output for each chunk of each leaf."""

    def __init__(self, scan: Scan, column: ColumnPlan, num_rows: int, buffers: Buffers) -> None:
        self._scan = scan
        self._shape = _shape(scan, column)
        self._num_rows = num_rows
        self._work: list[tuple[ChunkPlan, Stored, NestedOutput]] = []
        self._parts: list[dict[int, NestedOutput]] = []
        leaves = {leaf.column.index: leaf for leaf in leaves_of(self._shape)}
        for chunks in zip(*[chunks for _, chunks in column.leaves], strict=True):
            part = {}
            for chunk in chunks:
                leaf = leaves[chunk.column.index]
                part[chunk.column.index] = output = NestedOutput(leaf, scan.layout(chunk.column).width)
                self._work.append((chunk, buffers[id(chunk)], output))
            self._parts.append(part)

    def tasks(self) -> Iterator[Task]:
        """Independent pieces of work."""
        return (partial(self._decode, *item) for item in self._work)

    def finish(self) -> AnyColumn:
        """The column, once all tasks are done."""
        parts = [_nested_column(self._scan, self._shape, part) for part in self._parts]
        return concat_columns(parts, self._shape.name) if parts else _empty(self._scan, self._shape)

    def _decode(self, chunk: ChunkPlan, stored: Stored, output: NestedOutput) -> None:
        try:
            reader = self._scan.open_nested(chunk, stored)
            _read_rows(reader, output, chunk, chunk.num_rows)
            if reader.remaining:
                raise FormatError(f"the chunk holds more than the {chunk.num_rows} rows of its row group")
        except ParquetError as error:
            self._scan.locate(error, chunk)
            raise


class FlatStream:
    """The chunks of a flat column, read on from wherever the last read ended."""

    def __init__(self, scan: Scan, leaf: ColumnDescriptor, chunks: list[ChunkPlan]) -> None:
        self._scan = scan
        self._leaf = leaf
        self._width = scan.layout(leaf).width
        self._waiting = list(reversed(chunks))
        self._reader: ChunkReader | None = None

    def read(self, rows: int) -> AnyColumn:
        """The next rows, in memory of their own."""
        output = ColumnOutput(rows, self._width, self._leaf.nullable)
        done = nulls = 0
        while done < rows:
            if self._reader is None or self._reader.remaining == 0:
                self._chunk = self._waiting.pop()
                self._reader = self._scan.open_flat(self._chunk, self._scan.fetch(self._chunk))
            count = min(rows - done, self._reader.remaining)
            try:
                nulls += self._reader.read(output, done, count)
            except ParquetError as error:
                self._scan.locate(error, self._chunk)
                raise
            done += count
        return _flat_column(self._scan, self._leaf, output, nulls)


class NestedStream:
    """The chunks of a nested column, read on from wherever the last read ended."""

    def __init__(self, scan: Scan, column: ColumnPlan) -> None:
        self._scan = scan
        self._shape = _shape(scan, column)
        self._leaves = [
            (leaf, _LeafStream(scan, chunks))
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

    def __init__(self, scan: Scan, chunks: list[ChunkPlan]) -> None:
        self._scan = scan
        self._waiting = list(reversed(chunks))
        self._reader: NestedReader | None = None
        self._rows_left = 0

    def read(self, output: NestedOutput, rows: int) -> None:
        while rows:
            if self._reader is None or self._rows_left == 0:
                self._chunk = self._waiting.pop()
                self._reader = self._scan.open_nested(self._chunk, self._scan.fetch(self._chunk))
                self._rows_left = self._chunk.num_rows
            count = min(rows, self._rows_left)
            try:
                _read_rows(self._reader, output, self._chunk, count)
            except ParquetError as error:
                self._scan.locate(error, self._chunk)
                raise
            self._rows_left -= count
            rows -= count


Reading: TypeAlias = FlatReading | NestedReading
Stream: TypeAlias = FlatStream | NestedStream


def _read_rows(reader: NestedReader, output: NestedOutput, chunk: ChunkPlan, count: int) -> None:
    found = reader.read_rows(output, count)
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
