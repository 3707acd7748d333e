"""How one column of a read is put together from its chunks: all at once (Reading), or some rows at a time (Stream).

The chunks of a flat column are decoded straight into one output; nested columns are in ``fastpq.read.nested``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fastpq.arrays.layouts import Array
from fastpq.column.chunk_reader import ChunkReader, ColumnOutput
from fastpq.errors import ParquetError
from fastpq.format import CompressionCodec
from fastpq.index.ranges import Int64s, cut_ranges
from fastpq.read.fetch import Fetching
from fastpq.read.plan import ChunkPlan, ColumnPlan
from fastpq.schema.parquet_schema import ColumnDescriptor

if TYPE_CHECKING:
    from fastpq.arrays.table import AnyColumn, Column
    from fastpq.read.nested import NestedReading, NestedStream
    from fastpq.read.scan import Scan, Stored

    Reading: TypeAlias = "FlatReading | NestedReading"
    Stream: TypeAlias = "FlatStream | NestedStream"


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


class FlatStream:
    """The chunks of a flat column, read on from wherever the last read ended."""

    def __init__(self, scan: Scan, column: ColumnPlan, buffers: Fetching) -> None:
        assert column.flat is not None
        self._scan = scan
        self._leaf, chunks = column.flat
        leaf = self._leaf
        self._width = scan.layout(leaf).width
        self._parts = Parts(chunks, buffers)
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


class Parts:
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


def count_rows(kept: Int64s) -> int:
    """How many rows there are in ranges."""
    return int((kept[:, 1] - kept[:, 0]).sum())


def _flat_column(scan: Scan, leaf: ColumnDescriptor, output: ColumnOutput, null_count: int) -> Column:
    nulls = (output.validity, null_count)
    return scan.column(scan.type_of(leaf), output.values, output.buffers, nulls, leaf.nullable)
